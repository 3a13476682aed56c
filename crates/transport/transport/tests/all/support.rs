//! Two sessions under one virtual clock, over a path whose losses, lies and delays a seed decides.

use skyhaul_lab::{PlainEnd, PlainLine, PlainPath};
use skyhaul_transport::{
    Block, BlockId, Custody, Event, Opening, Received, Resume, SendError, Session, SessionConfig,
    drive,
};
use skyhaul_units::{Duration, Instant, Probability};

/// So many thousandths.
pub fn thousandths(parts: u64) -> Probability {
    Probability::of(parts, 1000)
}

/// Two nodes: 0 greets first, as a station does; both then send and receive.
pub struct World {
    pub now: Instant,
    pub sessions: [Session; 2],
    pub path: PlainPath,
    pub received: [Vec<Received>; 2],
    pub events: [Vec<Event>; 2],
    /// Whether each end's application gives received blocks back at once.
    pub releases: [bool; 2],
}

impl World {
    pub fn new(line: PlainLine, config: SessionConfig, seed: u64) -> Self {
        Self {
            now: Instant::ZERO,
            sessions: [Session::new(config.clone()), Session::new(config)],
            path: PlainPath::new(line, seed),
            received: Default::default(),
            events: Default::default(),
            releases: [true; 2],
        }
    }

    /// An end introduces itself.
    pub fn open(&mut self, side: usize, name: &str, resume: Resume) {
        self.sessions[side].open(Opening {
            name: name.to_owned(),
            custody: vec![Custody { resume, ..Custody::default() }],
            ..Opening::default()
        });
    }

    /// Hands a block over at `side`.
    pub fn send(&mut self, side: usize, block: Block) -> Result<BlockId, SendError> {
        self.sessions[side].send(self.now, block)
    }

    /// Both ends introduced to each other.
    pub fn opened(line: PlainLine, config: SessionConfig, seed: u64) -> Self {
        let mut world = Self::new(line, config, seed);
        world.open(0, "station", Resume::default());
        world.open(1, "centre", Resume::default());
        let open = world.run_until(Instant::from_nanos(20_000_000_000), |world| {
            world.sessions.iter().all(Session::is_open)
        });
        assert!(open, "the sessions opened");
        world
    }

    /// Runs until `done`, or `deadline`; whether it was `done`.
    pub fn run_until(
        &mut self,
        deadline: Instant,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> bool {
        loop {
            for side in 0..2 {
                self.step(side);
            }
            if done(self) {
                return true;
            }
            let timeouts = self.sessions.iter().filter_map(Session::next_timeout);
            let arrivals = self.path.ends.iter().filter_map(PlainEnd::next_event);
            let sends = (0..2)
                .filter(|side| self.sessions[*side].has_symbol())
                .map(|side| self.path.ends[side].free_at());
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
        drive(session, &mut self.path.ends[side], self.now);
        while let Some(event) = session.poll() {
            match event {
                Event::Block(received) => {
                    if self.releases[side] {
                        session.release(received.bytes.len());
                    }
                    self.received[side].push(received);
                }
                Event::PathUp(_) => {}
                other => self.events[side].push(other),
            }
        }
        assert!(session.stats().balances(), "{:?}", session.stats());
        self.path.exchange();
    }
}
