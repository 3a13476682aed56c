//! The key of an exchange, and the proofs made with it.

use crate::code::PairingCode;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::{constant_time, hmac};
use rand_core::{CryptoRng, RngCore};
use spake2::{Ed25519Group, Identity, Password, Spake2};

/// The end that gives a proof, and what it shows by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairingProofBy {
    /// The one that connected shows that it knows the code.
    Connecting,
    /// The one that waited shows the same.
    Listening,
    /// The one that connected has accepted the other.
    Done,
}

/// The first half of the exchange.
pub struct PairingStart {
    spake: Spake2<Ed25519Group>,
}

/// What both ends have if they have the same code.
#[derive(Clone)]
pub struct PairingKey(Box<hmac::Key>);

/// A point of the group with the letter of its side.
pub type PairingShare = [u8; SHARE];

pub const SHARE: usize = 33;
pub const PROOF: usize = 32;

impl PairingStart {
    /// As the connecting end, with 64 random bytes.
    pub fn connecting(code: &PairingCode, random: [u8; 64]) -> (Self, PairingShare) {
        let password = Password::new(code.password());
        let (spake, share) =
            Spake2::start_a_with_rng(&password, &side(A), &side(B), FixedRandom::new(random));
        (Self { spake }, fixed(&share))
    }

    /// As the listening end, with 64 random bytes.
    pub fn listening(code: &PairingCode, random: [u8; 64]) -> (Self, PairingShare) {
        let password = Password::new(code.password());
        let (spake, share) =
            Spake2::start_b_with_rng(&password, &side(A), &side(B), FixedRandom::new(random));
        (Self { spake }, fixed(&share))
    }

    /// The key; `None` if `theirs` is no point of the group or of the same side.
    pub fn finish(self, theirs: &PairingShare) -> Option<PairingKey> {
        let shared = self.spake.finish(theirs).ok()?;
        Some(PairingKey(Box::new(hmac::Key::new(hmac::HMAC_SHA256, &shared))))
    }
}

impl PairingKey {
    /// The proof over all messages so far.
    pub fn prove(&self, by: PairingProofBy, transcript: &[u8]) -> [u8; PROOF] {
        let mut message = label(by).to_vec();
        message.extend_from_slice(digest(&SHA256, transcript).as_ref());
        let mut proof = [0; PROOF];
        proof.copy_from_slice(hmac::sign(&self.0, &message).as_ref());
        proof
    }

    /// Whether `proof` is that. Takes the same time for any proof.
    pub fn is_proved(&self, by: PairingProofBy, transcript: &[u8], proof: &[u8; PROOF]) -> bool {
        constant_time::verify_slices_are_equal(&self.prove(by, transcript), proof).is_ok()
    }
}

/// Secret random bytes made of a seed, one draw after the other.
pub struct PairingRandom {
    seed: hmac::Key,
    drawn: u64,
}

impl PairingRandom {
    /// Of 32 random bytes from the system.
    pub fn new(seed: [u8; 32]) -> Self {
        Self { seed: hmac::Key::new(hmac::HMAC_SHA256, &seed), drawn: 0 }
    }

    /// 64 bytes that were not drawn before.
    pub fn draw(&mut self) -> [u8; 64] {
        let mut drawn = [0; 64];
        for half in drawn.chunks_exact_mut(32) {
            half.copy_from_slice(hmac::sign(&self.seed, &self.drawn.to_be_bytes()).as_ref());
            self.drawn += 1;
        }
        drawn
    }
}

fn side(name: &[u8]) -> Identity {
    Identity::new(name)
}

/// One is no prefix of another.
fn label(by: PairingProofBy) -> &'static [u8] {
    match by {
        PairingProofBy::Connecting => b"skyhaul pairing 1 connecting",
        PairingProofBy::Listening => b"skyhaul pairing 1 listening",
        PairingProofBy::Done => b"skyhaul pairing 1 done",
    }
}

fn fixed(share: &[u8]) -> PairingShare {
    share.try_into().expect("a share is a letter and a point of 32 bytes")
}

const A: &[u8] = b"skyhaul pairing 1 connecting";
const B: &[u8] = b"skyhaul pairing 1 listening";

/// The random bytes that the caller gave, as the library takes them. It takes 64 once, for its
/// scalar.
struct FixedRandom {
    bytes: [u8; 64],
    taken: usize,
}

impl FixedRandom {
    const fn new(bytes: [u8; 64]) -> Self {
        Self { bytes, taken: 0 }
    }
}

impl RngCore for FixedRandom {
    fn next_u32(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.fill_bytes(&mut bytes);
        u32::from_be_bytes(bytes)
    }
    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill_bytes(&mut bytes);
        u64::from_be_bytes(bytes)
    }
    fn fill_bytes(&mut self, dest: &mut [u8]) {
        assert!(self.taken + dest.len() <= self.bytes.len(), "a scalar takes 64 bytes, once");
        dest.copy_from_slice(&self.bytes[self.taken..][..dest.len()]);
        self.taken += dest.len();
    }
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), rand_core::Error> {
        self.fill_bytes(dest);
        Ok(())
    }
}

impl CryptoRng for FixedRandom {}
