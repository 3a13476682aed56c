//! A path of the worst kind between two sessions: it loses, repeats, reorders and spoils datagrams,
//! lies about their fate or keeps it to itself, and falls silent.

use super::chance::Chance;
use bytes::Bytes;
use skyhaul_transport::{DownReason, Estimate, Path, PathEvent, Token};
use skyhaul_units::{ByteCount, Duration, Instant, Probability, Rate};
use std::collections::BTreeMap;

/// How bad a line is; shares in thousandths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    pub loss: u64,
    pub duplicate: u64,
    pub reorder: u64,
    /// Datagrams that arrive as something no node sends.
    pub spoil: u64,
    /// Datagrams called arrived that were dropped behind the path.
    pub lies: u64,
    /// Datagrams of whose fate nothing is ever told.
    pub silence: u64,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineConfig {
    pub rate: Rate,
    /// From the end of transmission to arrival, from each end.
    pub delay: [Duration; 2],
    pub payload: usize,
    /// Whether the path measures anything.
    pub measured: bool,
    pub faults: Faults,
}

/// Both ends.
#[derive(Debug)]
pub struct Line {
    pub ends: [End; 2],
}

/// One end.
#[derive(Debug)]
pub struct End {
    side: usize,
    config: LineConfig,
    chance: Chance,
    /// Whether this end is in use.
    pub alive: bool,
    up: bool,
    free_at: Instant,
    cut_until: Instant,
    /// Bounded by what the line holds, as `to_peer` is.
    to_me: BTreeMap<(Instant, u64), PathEvent>,
    order: u64,
    to_peer: Vec<(Instant, PathEvent)>,
    control_at: Instant,
    /// Datagrams whose fate is to be told.
    open: usize,
    pub sent: u64,
    pub closed: bool,
}

/// What a path lets be under way at once at least, as a congestion window does; else twice what the
/// line holds.
const OPEN_MIN: usize = 400;
/// IPv4, UDP and QUIC around a datagram.
const HEADERS: ByteCount = ByteCount::new(62);
/// Control bytes taken at a time: so few that messages come in pieces.
const CONTROL_PIECE: usize = 90;

impl Line {
    pub fn new(config: LineConfig, chance: &mut Chance) -> Self {
        let mut end = |side| End {
            side,
            config,
            chance: chance.split(),
            alive: true,
            up: false,
            free_at: Instant::ZERO,
            cut_until: Instant::ZERO,
            to_me: BTreeMap::new(),
            order: 0,
            to_peer: Vec::new(),
            control_at: Instant::ZERO,
            open: 0,
            sent: 0,
            closed: false,
        };
        Self { ends: [end(0), end(1)] }
    }

    /// Puts what each end sent under way to the other.
    pub fn exchange(&mut self) {
        for side in 0..2 {
            for (at, event) in core::mem::take(&mut self.ends[side].to_peer) {
                if self.ends[1 - side].alive {
                    self.ends[1 - side].deliver(at, event);
                }
            }
        }
    }

    /// Lets nothing through before `until`, in the directions from the ends named.
    pub fn cut(&mut self, sides: &[usize], until: Instant) {
        for side in sides {
            self.ends[*side].cut_until = self.ends[*side].cut_until.max(until);
        }
    }

    pub fn set_faults(&mut self, faults: Faults) {
        self.ends.iter_mut().for_each(|end| end.config.faults = faults);
    }

    pub fn clear(&mut self) {
        self.set_faults(Faults::default());
        self.ends.iter_mut().for_each(|end| end.cut_until = Instant::ZERO);
    }

    /// `side` uses the path no longer, and the other end is told in time, unless it is gone too.
    pub fn leave(&mut self, side: usize, now: Instant) {
        let end = &mut self.ends[side];
        end.alive = false;
        end.to_me.clear();
        let at = now.max(end.cut_until) + end.config.delay[side];
        let other = &mut self.ends[1 - side];
        if other.alive {
            other.to_me.retain(|(arrival, _), _| *arrival < at);
            other.deliver(at, PathEvent::Down(DownReason::ClosedByPeer("left".to_owned())));
        }
    }
}

impl End {
    pub fn next_event(&self) -> Option<Instant> {
        self.to_me.keys().next().map(|(at, _)| *at).filter(|_| self.alive)
    }

    pub const fn free_at(&self) -> Instant {
        self.free_at
    }

    fn deliver(&mut self, at: Instant, event: PathEvent) {
        self.order += 1;
        self.to_me.insert((at, self.order), event);
    }

    fn round_trip(&self) -> Duration {
        self.config.delay[0] + self.config.delay[1]
    }
}

impl Path for End {
    fn room(&mut self, now: Instant) -> usize {
        let held = (self.config.rate * self.round_trip()).as_usize() / self.config.payload;
        let most = OPEN_MIN.max(held * 2);
        usize::from(self.alive && !self.closed && self.free_at <= now && self.open < most)
    }

    fn send(&mut self, now: Instant, token: Option<Token>, datagram: Bytes) {
        assert!(datagram.len() <= self.config.payload, "{} bytes", datagram.len());
        self.sent += 1;
        let faults = self.config.faults;
        self.free_at = self.free_at.max(now)
            + self.config.rate.time_for(ByteCount::of(datagram.len()) + HEADERS);
        let one_way = self.config.delay[self.side];
        let lost = self.chance.happens(faults.loss) || self.free_at < self.cut_until;
        let lie = !lost && self.chance.happens(faults.lies);
        if !lost && !lie {
            let mut at = self.free_at + one_way;
            if self.chance.happens(faults.reorder) {
                at += one_way.scaled(self.chance.below(1000), 1000);
            }
            if self.chance.happens(faults.duplicate) {
                let again = at + one_way.scaled(self.chance.below(2000), 1000);
                self.to_peer.push((again, PathEvent::Datagram(datagram.clone())));
            }
            let datagram = if self.chance.happens(faults.spoil) {
                let mut bytes = datagram.to_vec();
                bytes[0] |= 0x80;
                Bytes::from(bytes)
            } else {
                datagram
            };
            self.to_peer.push((at, PathEvent::Datagram(datagram)));
        }
        if let Some(token) = token
            && !self.chance.happens(faults.silence)
        {
            self.open += 1;
            let news = if lost { self.round_trip().scaled(5, 4) } else { self.round_trip() };
            // News cross a cut as little as datagrams do.
            let at = (self.free_at + news).max(self.cut_until + one_way);
            self.deliver(at, if lost { PathEvent::Lost(token) } else { PathEvent::Acked(token) });
        }
    }

    fn send_control(&mut self, now: Instant, bytes: &[u8]) -> usize {
        let one_way = self.config.delay[self.side];
        let late =
            if self.chance.happens(self.config.faults.loss) { one_way * 3 } else { Duration::ZERO };
        let len = bytes.len().min(CONTROL_PIECE);
        self.control_at = self.control_at.max(now.max(self.cut_until) + one_way + late);
        self.to_peer
            .push((self.control_at, PathEvent::Control(Bytes::copy_from_slice(&bytes[..len]))));
        len
    }

    fn poll(&mut self, now: Instant) -> Option<PathEvent> {
        if !core::mem::replace(&mut self.up, true) {
            return Some(PathEvent::Up { payload: self.config.payload });
        }
        let entry = self.to_me.first_entry().filter(|entry| entry.key().0 <= now)?;
        let event = entry.remove();
        if matches!(event, PathEvent::Acked(_) | PathEvent::Lost(_)) {
            self.open -= 1;
        }
        Some(event)
    }

    fn estimate(&self) -> Estimate {
        if !self.config.measured {
            return Estimate::default();
        }
        let rtt = self.round_trip();
        let loss = Probability::of(self.config.faults.loss, 1000);
        Estimate {
            rtt,
            min_rtt: rtt,
            rtt_variation: rtt / 20,
            rate: self.config.rate,
            loss,
            ..Estimate::default()
        }
    }

    fn close(&mut self, _: Instant, _: &str) {
        self.closed = true;
    }
}
