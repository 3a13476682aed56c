//! A path without QUIC between two sessions: for tests of what lies above a path, thousands of runs at a time.
//!
//! It knows the fate of each datagram when it is sent, and tells it after a round trip, or lies about it, or keeps it
//! to itself: a path's claims are hints, and the session above must do without them.

use bytes::Bytes;
use skyhaul_transport::{DownReason, Estimate, Path, PathEvent, Token};
use skyhaul_units::{Bytes as Amount, Duration, Instant, Probability, Rate};
use std::collections::BTreeMap;

/// What the path does, the same in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainLine {
    /// The line's rate, counted in IP packets.
    pub rate: Rate,
    /// From the end of a datagram's transmission to its arrival.
    pub one_way_delay: Duration,
    /// Datagrams lost.
    pub loss: Probability,
    /// Datagrams that the path calls arrived although they were dropped behind it.
    pub lies: Probability,
    /// Datagrams of whose fate the path never tells.
    pub silence: Probability,
    /// Largest datagram, in bytes.
    pub payload: usize,
}

impl Default for PlainLine {
    /// 93 Mbit/s, 160 ms there and back, nothing lost, datagrams as QUIC leaves them of IPv4 packets of 1500 bytes.
    fn default() -> Self {
        let (rate, one_way_delay) = (Rate::from_mbps(93), Duration::from_millis(80));
        let (loss, lies, silence) = Default::default();
        Self { rate, one_way_delay, loss, lies, silence, payload: 1438 }
    }
}

/// A path's two ends. After an end was used, [`PlainPath::exchange`] moves what it sent.
#[derive(Debug)]
pub struct PlainPath {
    /// The ends, to drive a session over.
    pub ends: [PlainEnd; 2],
}

impl PlainPath {
    /// A path whose chances `seed` decides.
    pub fn new(line: PlainLine, seed: u64) -> Self {
        Self { ends: [PlainEnd::new(line, seed), PlainEnd::new(line, seed ^ 0x5555)] }
    }

    /// Puts what each end sent under way to the other.
    pub fn exchange(&mut self) {
        for side in 0..2 {
            for (at, event) in core::mem::take(&mut self.ends[side].to_peer) {
                self.ends[1 - side].deliver(at, event);
            }
        }
    }

    /// Lets nothing through before `until`. What is under way arrives.
    pub fn cut(&mut self, until: Instant) {
        for end in &mut self.ends {
            end.cut_until = end.cut_until.max(until);
        }
    }
}

/// One end of a path.
#[derive(Debug)]
pub struct PlainEnd {
    line: PlainLine,
    /// Xorshift64 (Marsaglia 2003).
    random: u64,
    up: bool,
    free_at: Instant,
    cut_until: Instant,
    order: u64,
    /// Bounded by what the line holds in a round trip, as `to_peer` is.
    to_me: BTreeMap<(Instant, u64), PathEvent>,
    to_peer: Vec<(Instant, PathEvent)>,
    /// When the last control bytes arrive: the stream keeps its order.
    control_at: Instant,
    closed: Option<String>,
}

impl PlainEnd {
    fn new(line: PlainLine, seed: u64) -> Self {
        Self {
            line,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            up: false,
            free_at: Instant::ZERO,
            cut_until: Instant::ZERO,
            order: 0,
            to_me: BTreeMap::new(),
            to_peer: Vec::new(),
            control_at: Instant::ZERO,
            closed: None,
        }
    }

    /// When the next event arrives here.
    pub fn next_event(&self) -> Option<Instant> {
        self.to_me.keys().next().map(|(at, _)| *at)
    }

    /// When the line takes the next datagram.
    pub const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Why it was closed here, where it was.
    pub fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }

    /// The path ends for this end at `at`, and nothing arrives after that.
    pub fn end(&mut self, at: Instant, reason: DownReason) {
        self.to_me.retain(|(arrival, _), _| *arrival < at);
        self.deliver(at, PathEvent::Down(reason));
    }

    fn chance(&mut self, probability: Probability) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % u64::from(Probability::ONE.as_ppb()) < u64::from(probability.as_ppb())
    }

    fn deliver(&mut self, at: Instant, event: PathEvent) {
        self.order += 1;
        self.to_me.insert((at, self.order), event);
    }
}

impl Path for PlainEnd {
    fn room(&mut self, now: Instant) -> usize {
        usize::from(self.closed.is_none() && self.free_at <= now)
    }

    fn send(&mut self, now: Instant, token: Option<Token>, datagram: Bytes) {
        assert!(datagram.len() <= self.line.payload, "{} bytes", datagram.len());
        let packet = Amount::of(datagram.len()) + HEADERS;
        self.free_at = self.free_at.max(now) + self.line.rate.time_for(packet);
        let lost = self.chance(self.line.loss) || self.free_at < self.cut_until;
        let lie = !lost && self.chance(self.line.lies);
        if !lost && !lie {
            self.to_peer.push((self.free_at + self.line.one_way_delay, PathEvent::Datagram(datagram)));
        }
        if let Some(token) = token
            && !self.chance(self.line.silence)
        {
            let round_trip = self.line.one_way_delay * 2;
            let news = if lost { round_trip.scaled(5, 4) } else { round_trip };
            // News cross the cut as little as datagrams do.
            let at = (self.free_at + news).max(self.cut_until + self.line.one_way_delay);
            self.deliver(at, if lost { PathEvent::Lost(token) } else { PathEvent::Acked(token) });
        }
    }

    fn send_control(&mut self, now: Instant, bytes: &[u8]) -> usize {
        let late = if self.chance(self.line.loss) { self.line.one_way_delay * 3 } else { Duration::ZERO };
        let len = bytes.len().min(CONTROL_PIECE);
        self.control_at = self.control_at.max(now.max(self.cut_until) + self.line.one_way_delay + late);
        self.to_peer.push((self.control_at, PathEvent::Control(Bytes::copy_from_slice(&bytes[..len]))));
        len
    }

    fn poll(&mut self, now: Instant) -> Option<PathEvent> {
        if !core::mem::replace(&mut self.up, true) {
            return Some(PathEvent::Up { payload: self.line.payload });
        }
        let entry = self.to_me.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }

    fn estimate(&self) -> Estimate {
        Estimate::default()
    }

    fn close(&mut self, _: Instant, reason: &str) {
        self.closed = Some(reason.to_owned());
    }
}

/// IPv4, UDP and QUIC around a datagram: 20, 8 and 34 bytes.
const HEADERS: Amount = Amount::new(62);
/// Control bytes taken at a time: so few that messages come in pieces.
const CONTROL_PIECE: usize = 700;
