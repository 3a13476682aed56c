//! One end of a plain path.

use super::acks::{Acks, Holes};
use super::chance::{Chance, Losses};
use super::timeline::Timeline;
use super::{PlainChange, PlainLine};
use bytes::Bytes;
use skyhaul_transport::{DownReason, Estimate, Path, PathEvent, Token};
use skyhaul_units::{ByteCount, Duration, Instant};
use std::collections::VecDeque;

/// One end of a path: what it sends takes its line's way to the other.
#[derive(Debug)]
pub struct PlainEnd {
    line: PlainLine,
    chance: Chance,
    losses: Losses,
    /// In the order in which they happen.
    changes: VecDeque<(Instant, PlainChange)>,
    up: bool,
    free_at: Instant,
    /// When nothing gets through from here; as few as were told.
    holes: Holes,
    acks: Acks,
    to_me: Timeline,
    to_peer: Vec<(Instant, PathEvent)>,
    /// As IP packets, since the beginning.
    sent: ByteCount,
    /// Datagrams of which the far end will tell, and has not yet.
    open: u64,
    /// When the last control bytes arrive: the stream keeps its order.
    control_at: Instant,
    closed: Option<String>,
}

impl PlainEnd {
    pub(super) fn new(line: PlainLine, back: PlainLine, seed: u64) -> Self {
        Self {
            line,
            chance: Chance::new(seed),
            losses: Losses::new(line.loss, line.mean_burst),
            changes: VecDeque::new(),
            up: false,
            free_at: Instant::ZERO,
            holes: Holes::default(),
            acks: Acks::new(line.acknowledging, back, !seed),
            to_me: Timeline::default(),
            to_peer: Vec::new(),
            sent: ByteCount::ZERO,
            open: 0,
            control_at: Instant::ZERO,
            closed: None,
        }
    }

    /// When the next event arrives here.
    pub fn next_event(&self) -> Option<Instant> {
        let up = (!self.up).then_some(Instant::ZERO);
        [self.to_me.next_at(), self.acks.next_at(), up].into_iter().flatten().min()
    }

    /// When the line takes the next datagram.
    pub fn free_at(&self) -> Instant {
        let at = Instant::ZERO + self.free_at.since(Instant::ZERO + self.line.ahead);
        let news = || self.to_me.next_news().into_iter().chain(self.acks.next_at()).min();
        if self.is_full() { news().map_or(at, |news| news.max(at)) } else { at }
    }

    /// When the last datagram sent will have left.
    pub const fn last_left(&self) -> Instant {
        self.free_at
    }

    /// The line as it is now.
    pub const fn line(&self) -> &PlainLine {
        &self.line
    }

    /// Why it was closed here, where it was.
    pub fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }

    /// The path ends for this end at `at`, and nothing arrives after that.
    pub fn end(&mut self, at: Instant, reason: DownReason) {
        self.to_me.stop(at);
        self.to_me.add(at, PathEvent::Down(reason));
    }

    pub(super) fn cut(&mut self, until: Instant) {
        self.holes.add(Instant::ZERO, until);
        self.acks.add_hole(Instant::ZERO, until);
    }

    pub(super) fn change(&mut self, at: Instant, change: PlainChange) {
        match change {
            PlainChange::Hole(span) => self.holes.add(at, at + span),
            _ => self.changes.push_back((at, change)),
        }
    }

    /// The direction to here changes: news of what was sent here come over it.
    pub(super) fn change_back(&mut self, at: Instant, change: PlainChange) {
        match change {
            PlainChange::Hole(span) => self.acks.add_hole(at, at + span),
            PlainChange::Loss(loss) => self.acks.change_loss(at, loss),
            PlainChange::Rate(_) | PlainChange::OneWayDelay(_) => {}
        }
    }

    /// Puts what was sent here under way to `peer`.
    pub(super) fn pass_on(&mut self, peer: &mut Self) {
        for (at, event) in self.to_peer.drain(..) {
            peer.to_me.add(at, event);
        }
    }

    /// Makes the changes that have happened.
    fn become_as_of(&mut self, now: Instant) {
        while let Some((at, change)) = self.changes.front().copied()
            && at <= now
        {
            self.changes.pop_front();
            match change {
                PlainChange::Rate(rate) => self.line.rate = rate,
                PlainChange::OneWayDelay(delay) => {
                    self.line.one_way_delay = delay;
                    self.acks.set_delay(delay);
                }
                PlainChange::Loss(loss) => {
                    self.line.loss = loss;
                    self.losses = Losses::new(loss, self.line.mean_burst);
                }
                PlainChange::Hole(_) => {}
            }
        }
    }

    fn round_trip(&self) -> Duration {
        self.line.one_way_delay + self.acks.delay()
    }

    /// Two round trips, and a few datagrams for lines that hold none.
    fn is_full(&self) -> bool {
        let packet = (ByteCount::of(self.line.payload) + HEADERS).as_u64();
        self.open > (self.line.rate * (self.round_trip() * 2 + SPARE)).as_u64() / packet + 16
    }
}

impl Path for PlainEnd {
    fn room(&mut self, now: Instant) -> usize {
        self.become_as_of(now);
        usize::from(
            self.closed.is_none() && self.free_at <= now + self.line.ahead && !self.is_full(),
        )
    }

    fn send(&mut self, now: Instant, token: Option<Token>, datagram: Bytes) {
        assert!(datagram.len() <= self.line.payload, "{} bytes", datagram.len());
        let packet = ByteCount::of(datagram.len()) + HEADERS;
        self.sent += packet;
        self.free_at = self.free_at.max(now) + self.line.rate.time_for(packet);
        let left = self.free_at;
        let swallowed = self.holes.until(left);
        let lost = self.losses.next(&mut self.chance) || swallowed.is_some();
        let lie = !lost && self.chance.happens(self.line.lies);
        let arrives = left + self.line.one_way_delay;
        if !lost && !lie {
            self.to_peer.push((arrives, PathEvent::Datagram(datagram)));
        }
        let Some(token) = token.filter(|_| !self.chance.happens(self.line.silence)) else {
            if lost {
                self.acks.silent_lost();
            }
            return;
        };
        self.open += 1;
        if lost {
            let late = arrives + self.round_trip() / 4;
            let known = swallowed.map_or(late, |until| until.max(late));
            self.acks.datagram_lost(token, arrives, known, &mut self.to_me);
        } else {
            self.acks.datagram_arrives(token, arrives, self.line.one_way_delay, &mut self.to_me);
        }
    }

    fn send_control(&mut self, now: Instant, bytes: &[u8]) -> usize {
        self.become_as_of(now);
        let lost = self.chance.happens(self.line.loss);
        let late = if lost { self.line.one_way_delay * 3 } else { Duration::ZERO };
        let len = bytes.len().min(CONTROL_PIECE);
        let leaves = self.holes.until(now).unwrap_or(now);
        self.control_at = self.control_at.max(leaves + self.line.one_way_delay + late);
        self.to_peer
            .push((self.control_at, PathEvent::Control(Bytes::copy_from_slice(&bytes[..len]))));
        len
    }

    fn poll(&mut self, now: Instant) -> Option<PathEvent> {
        self.become_as_of(now);
        if !core::mem::replace(&mut self.up, true) {
            return Some(PathEvent::Up { payload: self.line.payload });
        }
        self.acks.advance(now, &mut self.to_me);
        let event = self.to_me.take(now)?;
        if matches!(event, PathEvent::Acked(_) | PathEvent::Lost(_)) {
            self.open -= 1;
        }
        Some(event)
    }

    /// The truth: a controller that knows the line.
    fn estimate(&self) -> Estimate {
        let rtt = self.round_trip();
        Estimate {
            rtt,
            min_rtt: rtt,
            rtt_variation: Duration::ZERO,
            rate: self.line.rate,
            loss: self.line.loss,
            answered: Instant::ZERO,
            sent: self.sent,
        }
    }

    fn close(&mut self, _: Instant, reason: &str) {
        self.closed = Some(reason.to_owned());
    }
}

/// IPv4, UDP and QUIC around a datagram: 20, 8 and 34 bytes.
pub const HEADERS: ByteCount = ByteCount::new(62);
/// Control bytes taken at a time: so few that messages come in pieces.
const CONTROL_PIECE: usize = 700;
/// Beyond two round trips: acknowledgements that wait, and ticks.
const SPARE: Duration = Duration::from_millis(60);
