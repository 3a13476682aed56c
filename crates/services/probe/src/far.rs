//! The serving end: answers, receives streams and sends them, for several near ends at once.
//!
//! It cannot be made to send to a host that did not ask. A near end first shows with a cookie that
//! it receives at its address (as in RFC 9000 8.1); until then nothing is kept, and no answer is
//! longer than the question. After that, what is sent to it is bounded: streams by the announced
//! limits, one by one and together; answers by the limits' rate; and a stream ends when the near
//! end has been silent for [`SILENCE_MAX`].

mod session;

use crate::host::HostCounters;
use crate::stream::{Spec, StreamDirection};
use crate::wire::{Cookie, DATAGRAM_MAX, Message, RequestLimits, RequestRefusal, WireError};
use session::{Down, Session, Up};
use sha2::{Digest, Sha256};
use skyhaul_units::{ByteCount, Duration, Instant, Rate, Utc};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// How an end serves.
#[derive(Debug, Clone, Copy)]
pub struct FarConfig {
    /// The most that it allows.
    pub limits: RequestLimits,
    /// Calendar time at the zero of the clock that `now` is of.
    pub utc_at_zero: Utc,
    /// Unknown to others; cookies and session numbers are made of it.
    pub secret: [u8; 32],
}

/// A datagram that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeReceived<'a> {
    /// When it came.
    pub at: Instant,
    /// Where from.
    pub from: SocketAddr,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// Where a message came from and when, as far as an answer needs it.
#[derive(Debug, Clone, Copy)]
struct Request {
    from: SocketAddr,
    /// Of the datagram: no answer to a stranger may be longer.
    len: usize,
    arrived: Instant,
    now: Instant,
}

/// The stream that a near end asks for.
#[derive(Debug, Clone, Copy)]
struct StreamRequest {
    stream: u32,
    direction: StreamDirection,
    spec: Spec,
}

/// A datagram to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeDatagram {
    /// Where to.
    pub to: SocketAddr,
    /// Its bytes.
    pub datagram: Vec<u8>,
    /// The session whose stream it is of: call [`ProbeServer::refused`] with it where the system
    /// does not take the datagram.
    pub stream: Option<u64>,
}

/// What an end has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FarCounters {
    /// Measurements that began.
    pub sessions: u64,
    /// Callers that were refused, for whatever reason.
    pub refused: u64,
    /// Datagrams that were nothing of ours, or damaged.
    pub foreign: u64,
    /// Answers that were left out, because a caller asked for more than the limits.
    pub withheld: u64,
}

/// The serving end.
#[derive(Debug)]
pub struct ProbeServer {
    config: FarConfig,
    /// At most [`SESSIONS_MAX`].
    sessions: BTreeMap<u64, Session>,
    /// At most [`ANSWERS_MAX`].
    answers: VecDeque<ProbeDatagram>,
    counters: FarCounters,
    next_sweep: Instant,
}

impl ProbeServer {
    /// An end that waits for callers.
    pub fn new(config: FarConfig) -> Self {
        Self {
            config,
            sessions: BTreeMap::new(),
            answers: VecDeque::new(),
            counters: FarCounters::default(),
            next_sweep: Instant::ZERO,
        }
    }

    /// What it has done so far.
    pub const fn counters(&self) -> FarCounters {
        self.counters
    }

    /// Measurements that go on.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Whether a stream is being sent or received: no time for anything slow.
    pub fn is_measuring(&self) -> bool {
        self.sessions.values().any(|session| session.down.as_ref().is_some_and(Down::is_running))
    }

    /// Handles a datagram at `now`. `host` reads the host's counters, which takes long and is done
    /// at the ends of a stream only.
    pub fn datagram(
        &mut self,
        now: Instant,
        received: ProbeReceived<'_>,
        host: &mut dyn FnMut() -> HostCounters,
    ) {
        let ProbeReceived { at: arrived, from, bytes } = received;
        let request = Request { from, len: bytes.len(), arrived, now };
        match Message::decode(bytes) {
            // Streams first: they are nearly everything that comes.
            Ok(Message::Data { session, stream, seq, .. }) => {
                let at = self.utc(arrived);
                if let Some(session) = self.session(session, from, now) {
                    session.receive(stream, seq, at);
                }
            }
            Ok(message) => self.message(request, message, host),
            Err(WireError::Version(_)) => self.refuse(request, 0, RequestRefusal::Version),
            Err(WireError::Foreign | WireError::Damaged) => self.counters.foreign += 1,
        }
        self.sweep(now);
    }

    /// The next datagram to send at `now`.
    pub fn poll(&mut self, now: Instant) -> Option<ProbeDatagram> {
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer);
        }
        let utc = self.utc(now);
        self.sessions.iter_mut().find_map(|(id, session)| {
            let datagram = session.due(*id, now, utc)?;
            Some(ProbeDatagram { to: session.address, datagram, stream: Some(*id) })
        })
    }

    /// The system did not take a datagram of this session's stream.
    pub fn refused(&mut self, session: u64) {
        if let Some(down) =
            self.sessions.get_mut(&session).and_then(|session| session.down.as_mut())
        {
            down.refused += 1;
        }
    }

    /// When to poll next; `None` while nothing is to be sent.
    pub fn next_timeout(&self) -> Option<Instant> {
        if !self.answers.is_empty() {
            return Some(Instant::ZERO);
        }
        self.sessions
            .values()
            .filter_map(|session| {
                session.down.as_ref().filter(|down| down.is_running()).map(Down::due)
            })
            .min()
    }

    fn utc(&self, at: Instant) -> Utc {
        self.config.utc_at_zero + at.since(Instant::ZERO)
    }

    /// The session, where it is of this address.
    fn session(&mut self, id: u64, from: SocketAddr, now: Instant) -> Option<&mut Session> {
        let session = self.sessions.get_mut(&id).filter(|session| session.address == from)?;
        session.heard = now;
        Some(session)
    }

    fn message(
        &mut self,
        request: Request,
        message: Message,
        host: &mut dyn FnMut() -> HostCounters,
    ) {
        let Request { from, len, arrived, now } = request;
        match message {
            Message::Hello { nonce } => {
                let answer = Message::Challenge { nonce, cookie: self.cookie(from, now) };
                let answer = answer.encode(0);
                if answer.len() <= len {
                    self.answer(from, answer);
                }
            }
            Message::Open { nonce, cookie } => self.open(request, nonce, cookie),
            Message::Ping { session, number, sent } => {
                let (reached, answered) = (self.utc(arrived), self.utc(now));
                let pong = Message::Pong { session, number, sent, reached, answered };
                self.reply(request, session, &pong, 0);
            }
            Message::Size { session, number, answer } => {
                let arrived = u16::try_from(len).unwrap_or(u16::MAX);
                let sized = Message::Sized { session, number, arrived };
                self.reply(request, session, &sized, usize::from(answer).min(DATAGRAM_MAX));
            }
            Message::Begin { session, stream, direction, spec } => {
                let asked = StreamRequest { stream, direction, spec };
                let begun = match self.begin(request, session, asked, host) {
                    Ok(()) => Message::Begun { session, stream },
                    Err(reason) => Message::Refused { about: u64::from(stream), reason },
                };
                self.reply(request, session, &begun, 0);
            }
            Message::Ask { session, stream } => {
                let Some(found) = self.session(session, from, now) else {
                    return self.refuse(request, session, RequestRefusal::Session);
                };
                let tally = found.tally(stream, host);
                self.reply(request, session, &Message::Told { session, stream, tally }, 0);
            }
            Message::Fetch { session, stream, from: first } => {
                let Some(found) = self.session(session, from, now) else {
                    return self.refuse(request, session, RequestRefusal::Session);
                };
                let arrivals = found.arrivals(stream, first);
                let answer = Message::Arrivals { session, stream, from: first, arrivals };
                self.reply(request, session, &answer, 0);
            }
            Message::Close { session } => {
                if self.session(session, from, now).is_some() {
                    self.sessions.remove(&session);
                }
            }
            // Messages that only this end sends.
            _ => self.counters.foreign += 1,
        }
    }

    fn open(&mut self, request: Request, nonce: u64, cookie: Cookie) {
        let Request { from, now, .. } = request;
        let known = self
            .sessions
            .iter()
            .find(|(_, session)| session.address == from && session.nonce == nonce);
        let limits = self.config.limits;
        if let Some((id, _)) = known {
            let session = *id;
            return self.answer(from, Message::Opened { nonce, session, limits }.encode(0));
        }
        let recent = [now, now - COOKIE_TIME].map(|at| self.cookie(from, at));
        if !recent.contains(&cookie) {
            return self.refuse(request, nonce, RequestRefusal::Cookie);
        }
        self.expire(now);
        if self.sessions.len() >= SESSIONS_MAX {
            return self.refuse(request, nonce, RequestRefusal::Busy);
        }
        self.counters.sessions += 1;
        let number = self.counters.sessions.to_be_bytes();
        let id = self.digest(&[b"session", &number, from.to_string().as_bytes()]);
        let session = u64::from_be_bytes(id.first_chunk().copied().unwrap_or_default());
        self.sessions.insert(session, Session::new(from, nonce, now));
        self.answer(from, Message::Opened { nonce, session, limits }.encode(0));
    }

    fn begin(
        &mut self,
        request: Request,
        session: u64,
        asked: StreamRequest,
        host: &mut dyn FnMut() -> HostCounters,
    ) -> Result<(), RequestRefusal> {
        let Request { from, now, .. } = request;
        let StreamRequest { stream, direction, spec } = asked;
        let limits = self.config.limits;
        let busy: u64 = self
            .sessions
            .iter()
            .filter(|(id, _)| **id != session)
            .filter_map(|(_, other)| other.down.as_ref().filter(|down| down.is_running()))
            .map(|down| down.spec.rate().as_bps())
            .sum();
        let held: usize = self.sessions.values().map(Session::held).sum();
        let found = self.session(session, from, now).ok_or(RequestRefusal::Session)?;
        if found.is_of(stream) {
            return Ok(());
        }
        let is_within = spec.rate() <= limits.rate
            && spec.time() <= limits.time
            && spec.count <= limits.datagrams
            && spec.count > 0
            && spec.payload.as_usize() <= DATAGRAM_MAX
            && spec.payload.as_usize() >= crate::wire::DATA_LEN;
        if !is_within {
            return Err(RequestRefusal::Limit);
        }
        match direction {
            StreamDirection::Up => {
                if held.saturating_add(spec.count as usize) > ARRIVALS_MAX {
                    return Err(RequestRefusal::Busy);
                }
                found.up = Some(Up::new(stream, spec, host()));
                found.down = None;
            }
            StreamDirection::Down => {
                if busy.saturating_add(spec.rate().as_bps()) > limits.rate.as_bps() {
                    return Err(RequestRefusal::Busy);
                }
                found.down = Some(Down::new(stream, spec, now + LEAD, host()));
                found.up = None;
            }
        }
        Ok(())
    }

    /// Answers a session's question, where there is such a session and it has not had more than the
    /// limits.
    fn reply(&mut self, request: Request, id: u64, message: &Message, pad: usize) {
        let Request { from, now, .. } = request;
        let rate = self.config.limits.rate.max(ANSWER_RATE_MIN);
        let Some(session) = self.session(id, from, now) else {
            return self.refuse(request, id, RequestRefusal::Session);
        };
        let allowed = rate * (now.since(session.opened) + Duration::from_secs(1));
        let answer = message.encode(pad);
        if session.answered + ByteCount::of(answer.len()) > allowed {
            self.counters.withheld += 1;
            return;
        }
        session.answered += ByteCount::of(answer.len());
        self.answer(from, answer);
    }

    fn refuse(&mut self, request: Request, about: u64, reason: RequestRefusal) {
        self.counters.refused += 1;
        let refusal = Message::Refused { about, reason }.encode(0);
        if refusal.len() <= request.len {
            self.answer(request.from, refusal);
        }
    }

    fn answer(&mut self, to: SocketAddr, datagram: Vec<u8>) {
        if self.answers.len() >= ANSWERS_MAX {
            self.counters.withheld += 1;
            return;
        }
        self.answers.push_back(ProbeDatagram { to, datagram, stream: None });
    }

    /// Forgets sessions that are over, once a second.
    fn sweep(&mut self, now: Instant) {
        if now >= self.next_sweep {
            self.next_sweep = now + Duration::from_secs(1);
            self.expire(now);
        }
    }

    fn expire(&mut self, now: Instant) {
        let most = self.config.limits.time;
        self.sessions.retain(|_, session| {
            now.since(session.heard) < IDLE_MAX && now.since(session.opened) < most
        });
    }

    fn cookie(&self, address: SocketAddr, now: Instant) -> Cookie {
        let epoch = (now.as_nanos() / COOKIE_TIME.as_nanos()).to_be_bytes();
        let digest = self.digest(&[b"cookie", &epoch, address.to_string().as_bytes()]);
        Cookie(digest.first_chunk().copied().unwrap_or_default())
    }

    /// A keyed digest: the secret stands before and behind, so that no digest can be extended.
    fn digest(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut hash = Sha256::new_with_prefix(self.config.secret);
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.update(self.config.secret);
        hash.finalize().into()
    }
}

/// A stream ends when the near end has been silent for so long; it pings ten times a second.
pub const SILENCE_MAX: Duration = Duration::from_secs(3);

/// Measurements at a time.
pub const SESSIONS_MAX: usize = 64;

/// Arrivals kept for all sessions together: 64 MiB.
const ARRIVALS_MAX: usize = 4 << 20;

/// Answers that wait to be sent.
const ANSWERS_MAX: usize = 1_024;

/// A cookie is good for this long, and for as long again.
const COOKIE_TIME: Duration = Duration::from_secs(30);

/// A session that was not heard from for so long is over.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// From agreeing to a stream to its first datagram: the answer goes first.
const LEAD: Duration = Duration::from_millis(5);

/// Answers may make this much even where streams may not: arrivals have to be reported.
const ANSWER_RATE_MIN: Rate = Rate::from_mbps(10);

#[cfg(test)]
mod tests;
