//! Two sessions under one virtual clock, over a path whose losses, lies and delays a seed decides.

use bytes::Bytes;
use skyhaul_transport::{
    Estimate, Event, Path, PathEvent, Received, Resume, Session, SessionConfig, Token, drive,
};
use skyhaul_units::{Bytes as Amount, Duration, Instant, Rate};
use std::collections::BTreeMap;

/// What the path between the two does.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    pub rate: Rate,
    pub one_way_delay: Duration,
    /// Datagrams lost, in parts per thousand, each way.
    pub loss: u64,
    /// Datagrams that the path calls arrived although they were dropped behind it, in parts per thousand.
    pub lies: u64,
    /// Datagrams of whose fate the path never tells, in parts per thousand.
    pub silence: u64,
    pub payload: usize,
}

impl Default for Line {
    fn default() -> Self {
        let (rate, one_way_delay) = (Rate::from_mbps(93), Duration::from_millis(80));
        Self { rate, one_way_delay, loss: 0, lies: 0, silence: 0, payload: 1438 }
    }
}

/// One end's view of the path.
pub struct End {
    line: Line,
    random: u64,
    up: bool,
    free_at: Instant,
    order: u64,
    to_me: BTreeMap<(Instant, u64), PathEvent>,
    to_peer: Vec<(Instant, PathEvent)>,
    /// When the last control bytes arrive: the stream keeps its order.
    control_at: Instant,
    pub closed: Option<String>,
}

impl End {
    fn new(line: Line, seed: u64) -> Self {
        Self {
            line,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            up: false,
            free_at: Instant::ZERO,
            order: 0,
            to_me: BTreeMap::new(),
            to_peer: Vec::new(),
            control_at: Instant::ZERO,
            closed: None,
        }
    }

    fn chance(&mut self, per_thousand: u64) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % 1000 < per_thousand
    }

    fn deliver(&mut self, at: Instant, event: PathEvent) {
        self.order += 1;
        self.to_me.insert((at, self.order), event);
    }

    fn next_event(&self) -> Option<Instant> {
        self.to_me.keys().next().map(|(at, _)| *at)
    }
}

impl Path for End {
    fn room(&mut self, now: Instant) -> usize {
        usize::from(self.closed.is_none() && self.free_at <= now)
    }

    fn send(&mut self, now: Instant, token: Option<Token>, datagram: Bytes) {
        assert!(datagram.len() <= self.line.payload, "{} bytes", datagram.len());
        let packet = Amount::of(datagram.len() + 62);
        self.free_at = self.free_at.max(now) + self.line.rate.time_for(packet);
        let arrival = self.free_at + self.line.one_way_delay;
        let lost = self.chance(self.line.loss);
        let lie = !lost && self.chance(self.line.lies);
        if !lost && !lie {
            self.to_peer.push((arrival, PathEvent::Datagram(datagram)));
        }
        if let Some(token) = token
            && !self.chance(self.line.silence)
        {
            let round_trip = self.line.one_way_delay * 2;
            if lost {
                self.deliver(self.free_at + round_trip.scaled(5, 4), PathEvent::Lost(token));
            } else {
                self.deliver(self.free_at + round_trip, PathEvent::Acked(token));
            }
        }
    }

    fn send_control(&mut self, now: Instant, bytes: &[u8]) -> usize {
        let late = if self.chance(self.line.loss) { self.line.one_way_delay * 3 } else { Duration::ZERO };
        let len = bytes.len().min(700);
        self.control_at = self.control_at.max(now + self.line.one_way_delay + late);
        self.to_peer.push((self.control_at, PathEvent::Control(Bytes::copy_from_slice(&bytes[..len]))));
        len
    }

    fn poll(&mut self, now: Instant) -> Option<PathEvent> {
        if !std::mem::replace(&mut self.up, true) {
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

/// Two nodes: 0 greets first, as a station does; both then send and receive.
pub struct World {
    pub now: Instant,
    pub sessions: [Session; 2],
    pub ends: [End; 2],
    pub received: [Vec<Received>; 2],
    pub events: [Vec<Event>; 2],
    /// Whether each end's application gives received blocks back at once.
    pub releases: [bool; 2],
}

impl World {
    pub fn new(line: Line, config: SessionConfig, seed: u64) -> Self {
        Self {
            now: Instant::ZERO,
            sessions: [Session::new(config), Session::new(config)],
            ends: [End::new(line, seed), End::new(line, seed ^ 0x5555)],
            received: Default::default(),
            events: Default::default(),
            releases: [true; 2],
        }
    }

    /// Both ends introduced to each other.
    pub fn opened(line: Line, config: SessionConfig, seed: u64) -> Self {
        let mut world = Self::new(line, config, seed);
        world.sessions[0].open("station", Resume::default());
        world.sessions[1].open("centre", Resume::default());
        let open = world.run_until(Instant::from_nanos(20_000_000_000), |world| {
            world.sessions.iter().all(Session::is_open)
        });
        assert!(open, "the sessions opened");
        world
    }

    /// Runs until `done`, or `deadline`; whether it was `done`.
    pub fn run_until(&mut self, deadline: Instant, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        loop {
            for side in 0..2 {
                self.step(side);
            }
            if done(self) {
                return true;
            }
            let timeouts = self.sessions.iter().filter_map(Session::next_timeout);
            let arrivals = self.ends.iter().filter_map(End::next_event);
            let sends =
                (0..2).filter(|side| self.sessions[*side].has_symbol()).map(|side| self.ends[side].free_at);
            // A time-out that waits for the path's room comes again at once: time must still go on.
            let tick = self.now + Duration::from_micros(1);
            let next = timeouts.chain(arrivals).chain(sends).min().unwrap_or(deadline).max(tick);
            if next >= deadline {
                self.now = deadline;
                return done(self);
            }
            self.now = next;
        }
    }

    fn step(&mut self, side: usize) {
        let session = &mut self.sessions[side];
        drive(session, &mut self.ends[side], self.now);
        while let Some(event) = session.poll() {
            match event {
                Event::Block(received) => {
                    if self.releases[side] {
                        session.release(received.block.bytes.len());
                    }
                    self.received[side].push(received);
                }
                other => self.events[side].push(other),
            }
        }
        assert!(session.stats().balances(), "{:?}", session.stats());
        for (at, event) in std::mem::take(&mut self.ends[side].to_peer) {
            self.ends[1 - side].deliver(at, event);
        }
    }
}
