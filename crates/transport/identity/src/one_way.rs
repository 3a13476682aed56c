//! Sealed datagrams for a path without return: both ends hold a shared key, and no handshake is
//! needed.
//!
//! Each session of a sender has its own key, derived (HKDF, RFC 5869, SHA-256) from the shared one,
//! the session's name, which every datagram carries in clear, and an epoch that changes every 2^20
//! datagrams, long before AES-GCM has sealed too much under one key (RFC 9001, B.1). The datagram's
//! number is the nonce.

use aws_lc_rs::aead::{AES_256_GCM, Aad, Algorithm, LessSafeKey, MAX_TAG_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest::{Context, SHA256};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use aws_lc_rs::rand;

/// A key that a sender and its receivers share. Whoever has it can read and forge datagrams: keep
/// it secret.
#[derive(Clone, PartialEq, Eq)]
pub struct OneWayKey([u8; 32]);

/// Why there is no shared key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OneWayKeyError {
    /// The text is not a key.
    #[error("the file holds no one-way key: make one with `skyhaul keygen --one-way`")]
    NotAKey,
    /// The system gave no random bytes.
    #[error("the system gives no random bytes for a key: check its random number device")]
    NoRandomness,
}

/// The name of a sender's session: its start, and a random part. Later sessions have greater names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OneWaySession([u8; 16]);

/// Seals the datagrams of one session.
#[derive(Debug)]
pub struct Sealer {
    secret: OneWayKey,
    session: OneWaySession,
    next: u64,
    key: EpochKey,
}

/// Opens datagrams, and drops those that are forged, altered, replayed, or of a session that a
/// later one has replaced.
#[derive(Debug)]
pub struct Opener {
    secret: OneWayKey,
    /// The current sessions, the newest last.
    sessions: Vec<Followed>,
}

/// The content of a datagram.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened<'a> {
    /// The session.
    pub session: OneWaySession,
    /// Whether this is the first datagram of it.
    pub is_new: bool,
    /// The datagram's number in it, counted from 0.
    pub number: u64,
    /// The plain bytes.
    pub plain: &'a [u8],
}

/// Why a datagram was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unopened {
    /// It is too short, or of another version.
    #[error("not a sealed datagram of this version")]
    Malformed,
    /// It was not sealed with this key, or was altered.
    #[error("not sealed with this key")]
    Forged,
    /// It arrived before, or is too old to tell.
    #[error("received before (replay)")]
    Replayed,
    /// Its session began before a current one.
    #[error("its session is older than the current one")]
    Superseded,
}

/// What sealing adds to a datagram, in bytes: version, session, number, tag.
pub const ONE_WAY_SEAL: usize = HEADER + MAX_TAG_LEN;

#[derive(Debug)]
struct EpochKey {
    epoch: u64,
    key: LessSafeKey,
}

#[derive(Debug)]
struct Followed {
    session: OneWaySession,
    window: Window,
    /// Of the epoch of the newest datagram and the one before.
    keys: Vec<EpochKey>,
}

/// Replay window: which of the last datagrams arrived.
#[derive(Debug)]
struct Window {
    /// One above the highest number that arrived.
    end: u64,
    came: Box<[u64; (WINDOW / 64) as usize]>,
}

const VERSION: u8 = 0x71;
const SESSION: usize = 16;
const HEADER: usize = 1 + SESSION + 8;
/// Datagrams sealed with one key: 2^20.
const EPOCH_BITS: u32 = 20;
/// Current sessions at one time, of senders that replace one another quickly. The oldest is dropped
/// first.
const SESSIONS_MAX: usize = 4;
/// How many datagrams one may be behind the newest: 1 s of 93 Mbit/s.
const WINDOW: u64 = 8_192;

impl OneWayKey {
    /// A new key from the system's random numbers.
    ///
    /// # Errors
    /// The system gives none.
    pub fn generate() -> Result<Self, OneWayKeyError> {
        let mut key = [0; 32];
        rand::fill(&mut key).map_err(|_| OneWayKeyError::NoRandomness)?;
        Ok(Self(key))
    }

    /// The key of 32 given secret bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads a key file: a line with [`Self::to_text`]'s word and 64 hexadecimal digits.
    ///
    /// # Errors
    /// The text is no key.
    pub fn from_text(text: &str) -> Result<Self, OneWayKeyError> {
        let digits =
            text.trim().strip_prefix(WORD).ok_or(OneWayKeyError::NotAKey)?.trim().as_bytes();
        let mut key = [0; 32];
        if digits.len() != 2 * key.len() {
            return Err(OneWayKeyError::NotAKey);
        }
        for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
            let digit =
                |at: usize| char::from(pair[at]).to_digit(16).ok_or(OneWayKeyError::NotAKey);
            *byte = (digit(0)? * 16 + digit(1)?) as u8;
        }
        Ok(Self(key))
    }

    /// The key as its file holds it. Keep it secret.
    pub fn to_text(&self) -> String {
        format!("{WORD} {}\n", hex(&self.0))
    }

    /// By which people see that two ends have the same key; it tells nothing of the key.
    pub fn fingerprint(&self) -> String {
        let mut hash = Context::new(&SHA256);
        hash.update(b"skyhaul one-way fingerprint");
        hash.update(&self.0);
        format!("one-way:{}", hex(&hash.finish().as_ref()[..16]))
    }

    fn epoch(&self, session: OneWaySession, number: u64) -> EpochKey {
        let epoch = number >> EPOCH_BITS;
        let info: [&[u8]; 2] = [b"skyhaul one-way 1", &epoch.to_be_bytes()];
        let secret = Salt::new(HKDF_SHA256, &session.0).extract(&self.0);
        let algorithm: &'static Algorithm = &AES_256_GCM;
        let derived = secret.expand(&info, algorithm).map(UnboundKey::from);
        let key = derived.expect("32 bytes are within what HKDF gives");
        EpochKey { epoch, key: LessSafeKey::new(key) }
    }
}

impl core::fmt::Debug for OneWayKey {
    /// Without the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "OneWayKey({})", self.fingerprint())
    }
}

impl OneWaySession {
    /// A session that begins so many microseconds after 1970; `salt` distinguishes it from others
    /// of that moment.
    pub fn new(began_micros: u64, salt: [u8; 8]) -> Self {
        let mut name = [0; SESSION];
        name[..8].copy_from_slice(&began_micros.to_be_bytes());
        name[8..].copy_from_slice(&salt);
        Self(name)
    }

    /// Eight random bytes from the system.
    ///
    /// # Errors
    /// The system provides none.
    pub fn random_salt() -> Result<[u8; 8], OneWayKeyError> {
        let mut salt = [0; 8];
        rand::fill(&mut salt).map_err(|_| OneWayKeyError::NoRandomness)?;
        Ok(salt)
    }

    /// When it began, in microseconds since 1970.
    pub fn began_micros(&self) -> u64 {
        self.0[..8].iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }
}

impl core::fmt::Display for OneWaySession {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl Sealer {
    /// Starts a session, whose name must never be used twice with one key.
    pub fn new(secret: OneWayKey, session: OneWaySession) -> Self {
        let key = secret.epoch(session, 0);
        Self { secret, session, next: 0, key }
    }

    /// The session.
    pub const fn session(&self) -> OneWaySession {
        self.session
    }

    /// The datagram that carries `plain`: [`ONE_WAY_SEAL`] bytes longer.
    pub fn seal(&mut self, plain: &[u8]) -> Vec<u8> {
        let number = self.next;
        self.next += 1;
        if number >> EPOCH_BITS != self.key.epoch {
            self.key = self.secret.epoch(self.session, number);
        }
        let mut datagram = Vec::with_capacity(plain.len() + ONE_WAY_SEAL);
        datagram.push(VERSION);
        datagram.extend_from_slice(&self.session.0);
        datagram.extend_from_slice(&number.to_be_bytes());
        datagram.extend_from_slice(plain);
        let (head, body) = datagram.split_at_mut(HEADER);
        let sealed =
            self.key.key.seal_in_place_separate_tag(nonce(number), Aad::from(&head[..]), body);
        let tag = sealed.expect("a datagram is far shorter than what AES-GCM seals");
        datagram.extend_from_slice(tag.as_ref());
        datagram
    }
}

impl Opener {
    /// Opens the sessions sealed with this key.
    pub const fn new(secret: OneWayKey) -> Self {
        Self { secret, sessions: Vec::new() }
    }

    /// Opens a datagram in place.
    ///
    /// # Errors
    /// The datagram must be dropped.
    pub fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Result<Opened<'a>, Unopened> {
        if datagram.len() < ONE_WAY_SEAL || datagram[0] != VERSION {
            return Err(Unopened::Malformed);
        }
        let (head, body) = datagram.split_at_mut(HEADER);
        let mut session = OneWaySession([0; SESSION]);
        session.0.copy_from_slice(&head[1..=SESSION]);
        let number =
            head[1 + SESSION..].iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        if number == u64::MAX {
            return Err(Unopened::Malformed);
        }
        let known = self.sessions.iter().position(|followed| followed.session == session);
        match known.map(|at| &self.sessions[at]) {
            Some(followed) if !followed.window.is_new(number) => return Err(Unopened::Replayed),
            None if self.sessions.last().is_some_and(|newest| newest.session > session) => {
                return Err(Unopened::Superseded);
            }
            _ => {}
        }
        let epoch = number >> EPOCH_BITS;
        let held =
            known.and_then(|at| self.sessions[at].keys.iter().find(|key| key.epoch == epoch));
        let derived = held.is_none().then(|| self.secret.epoch(session, number));
        let key = held.or(derived.as_ref()).ok_or(Unopened::Forged)?;
        let plain = key
            .key
            .open_in_place(nonce(number), Aad::from(&head[..]), body)
            .map_err(|_| Unopened::Forged)?;
        let followed = match known {
            Some(at) => &mut self.sessions[at],
            None => {
                if self.sessions.len() == SESSIONS_MAX {
                    self.sessions.remove(0);
                }
                self.sessions.push(Followed { session, window: Window::new(), keys: Vec::new() });
                self.sessions.last_mut().ok_or(Unopened::Malformed)?
            }
        };
        followed.window.take(number);
        if let Some(key) = derived {
            followed.keys.push(key);
            followed.keys.sort_by_key(|key| key.epoch);
            if followed.keys.len() > 2 {
                followed.keys.remove(0);
            }
        }
        Ok(Opened { session, is_new: known.is_none(), number, plain })
    }

    /// Whether a session is current.
    pub fn follows(&self, session: OneWaySession) -> bool {
        self.sessions.iter().any(|followed| followed.session == session)
    }
}

impl Window {
    fn new() -> Self {
        Self { end: 0, came: Box::new([0; (WINDOW / 64) as usize]) }
    }

    fn is_new(&self, number: u64) -> bool {
        number >= self.end
            || (self.end - number <= WINDOW && self.came[word(number)] & bit(number) == 0)
    }

    fn take(&mut self, number: u64) {
        if number >= self.end + WINDOW {
            self.came.fill(0);
        } else {
            for passed in self.end..=number {
                self.came[word(passed)] &= !bit(passed);
            }
        }
        self.end = self.end.max(number + 1);
        self.came[word(number)] |= bit(number);
    }
}

const fn word(number: u64) -> usize {
    (number % WINDOW / 64) as usize
}

const fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first word of a key file.
const WORD: &str = "skyhaul-one-way-key";

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> OneWayKey {
        OneWayKey::from_bytes([seed; 32])
    }

    fn session(began: u64) -> OneWaySession {
        OneWaySession::new(began, [7; 8])
    }

    fn open(opener: &mut Opener, datagram: &[u8]) -> Result<Vec<u8>, Unopened> {
        opener.open(&mut datagram.to_vec()).map(|opened| opened.plain.to_vec())
    }

    #[test]
    fn what_is_sealed_is_opened_once() {
        let (mut sealer, mut opener) = (Sealer::new(key(1), session(5)), Opener::new(key(1)));
        let first = sealer.seal(b"first");
        let second = sealer.seal(b"");
        assert_eq!(first.len(), 5 + ONE_WAY_SEAL);
        assert_eq!(open(&mut opener, &second), Ok(Vec::new()));
        assert_eq!(open(&mut opener, &first), Ok(b"first".to_vec()));
        assert_eq!(open(&mut opener, &first), Err(Unopened::Replayed));
        assert_eq!(open(&mut opener, &second), Err(Unopened::Replayed));
    }

    #[test]
    fn any_altered_bit_is_found() {
        let datagram = Sealer::new(key(1), session(5)).seal(b"content");
        for bit in 0..datagram.len() * 8 {
            let mut altered = datagram.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            let refused = open(&mut Opener::new(key(1)), &altered).unwrap_err();
            let expected = if bit < 8 { Unopened::Malformed } else { Unopened::Forged };
            assert_eq!(refused, expected, "bit {bit}");
        }
        assert_eq!(open(&mut Opener::new(key(2)), &datagram), Err(Unopened::Forged));
        assert_eq!(
            open(&mut Opener::new(key(1)), &datagram[..ONE_WAY_SEAL - 1]),
            Err(Unopened::Malformed)
        );
    }

    #[test]
    fn forged_datagrams_change_nothing() {
        let (mut sealer, mut opener) = (Sealer::new(key(1), session(5)), Opener::new(key(1)));
        let mut forged = sealer.seal(b"one");
        let honest = forged.clone();
        // A number far ahead must not move the window, nor a later session replace this one.
        forged[HEADER - 2] = 0xff;
        assert_eq!(open(&mut opener, &forged), Err(Unopened::Forged));
        let later = Sealer::new(key(9), session(99)).seal(b"x");
        assert_eq!(open(&mut opener, &later), Err(Unopened::Forged));
        assert_eq!(open(&mut opener, &honest), Ok(b"one".to_vec()));
    }

    #[test]
    fn a_later_session_is_recognised_and_earlier_ones_do_not_come_back() {
        let mut opener = Opener::new(key(1));
        let old = Sealer::new(key(1), session(4)).seal(b"old");
        let mut current = Sealer::new(key(1), session(5));
        let (first, second) = (current.seal(b"a"), current.seal(b"b"));
        assert!(opener.open(&mut first.clone()).unwrap().is_new);
        assert!(!opener.open(&mut second.clone()).unwrap().is_new);
        assert_eq!(open(&mut opener, &old), Err(Unopened::Superseded));
        for began in 6..=9 {
            let restarted = Sealer::new(key(1), session(began)).seal(b"new");
            assert!(opener.open(&mut restarted.clone()).unwrap().is_new);
        }
        assert!(!opener.follows(session(5)) && opener.follows(session(6)));
        assert_eq!(open(&mut opener, &current.seal(b"late")), Err(Unopened::Superseded));
    }

    #[test]
    fn keys_change_with_the_epoch_and_the_one_before_is_still_known() {
        let (mut sealer, mut opener) = (Sealer::new(key(1), session(5)), Opener::new(key(1)));
        sealer.next = (1 << EPOCH_BITS) - 2;
        let sealed: Vec<Vec<u8>> = (0..4u8).map(|number| sealer.seal(&[number])).collect();
        for at in [0, 3, 1, 2] {
            assert_eq!(open(&mut opener, &sealed[at]), Ok(vec![at as u8]));
        }
    }

    #[test]
    fn the_window_tells_new_from_old_whatever_the_order() {
        let mut window = Window::new();
        let mut came = std::collections::BTreeSet::new();
        let mut state = 1u64;
        for _ in 0..60_000 {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let spread = if state >> 60 == 0 { 20_000 } else { 3_000 };
            let number = (window.end + (state >> 33) % spread).saturating_sub(spread * 3 / 4);
            let expected = !came.contains(&number) && number + WINDOW >= window.end;
            assert_eq!(window.is_new(number), expected, "{number} of {}", window.end);
            if expected {
                window.take(number);
                came.insert(number);
            }
        }
    }

    #[test]
    fn a_key_survives_its_file_and_what_is_none_is_refused() {
        let made = OneWayKey::generate().unwrap();
        assert_eq!(OneWayKey::from_text(&made.to_text()), Ok(made.clone()));
        assert_ne!(made.fingerprint(), OneWayKey::generate().unwrap().fingerprint());
        for text in ["", "skyhaul-one-way-key", "skyhaul-one-way-key 00", &made.to_text()[1..]] {
            assert_eq!(OneWayKey::from_text(text), Err(OneWayKeyError::NotAKey));
        }
        assert!(!format!("{made:?}").contains(&made.to_text()[20..60]));
    }

    /// Made by another implementation: HKDF-SHA-256 and AES-256-GCM of the layout in
    /// docs/reference/wire.md.
    #[test]
    fn the_layout_is_as_documented() {
        let sealed = Sealer::new(key(0x0b), OneWaySession::new(1, [2; 8])).seal(b"skyhaul");
        assert_eq!(hex(&sealed), VECTOR);
    }

    const VECTOR: &str = "71000000000000000102020202020202020000000000000000\
        d4521c77cd8932afa3102a7c080819ae3b0e421d4d7c7c";
}
