//! A stream of blocks with deadlines over one path: what the kinds `blocks` and `bisect` run.

use super::{Broken, watched};
use crate::workload::{Arrivals, HandedOver, Lifetime, Pattern, StreamConfig, Traffic};
use crate::world::{Over, Sessions, Tap, Users, WorldConfig, WorldPath};
use skyhaul_transport::repair::Goal;
use skyhaul_transport::{ClassId, Mode, PathStats, SessionConfig, Stats};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Probability, Rate};

/// The stream and its line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    /// The line's rate, counted in IP packets.
    pub rate: Rate,
    /// Round trip of the empty line.
    pub rtt: Duration,
    /// Share of packets lost, each alone, in both directions.
    pub loss: Probability,
    /// When which blocks are handed over.
    pub pattern: Pattern,
    /// How long they are worth something.
    pub lifetime: Lifetime,
    /// Share of groups of the code that may stay unrepaired. Left out: the session's default.
    pub target: Option<Probability>,
    /// From when on blocks are counted, and until when they are handed over.
    pub watched: (Duration, Duration),
}

/// What became of it.
#[derive(Debug)]
pub(super) struct Ran {
    /// Every block.
    pub ledger: HandedOver,
    /// What the sending session did while blocks counted.
    pub sent: Sent,
    /// The receiving session's counters.
    pub received: Stats,
}

/// What a session sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sent {
    /// Symbols for the first time.
    pub symbols: u64,
    /// Symbols again.
    pub repeated: u64,
    /// Bytes of both.
    pub bytes: u64,
    /// Bytes of repair symbols.
    pub repair_bytes: u64,
}

impl Stream {
    /// Runs it; `tap` sees what is sent over a plain path.
    ///
    /// # Errors
    /// The sessions did not open, or not before the first block is due.
    pub fn run(&self, over: Over, seed: u64, tap: Option<Tap>) -> Result<Ran, Broken> {
        let (from, until) = self.watched;
        let near = Traffic::new([self.config()], seed);
        let users = Users { near, far: Arrivals::default() };
        let world = WorldConfig::alike(self.session());
        let mut sessions = Sessions::open(over, world, &[self.path()], seed, users)?;
        if let Some(tap) = tap {
            sessions.set_tap(tap);
        }
        if sessions.now() > Instant::ZERO + SETTLING {
            return Err(Broken(format!("the sessions opened at {} only", sessions.now())));
        }
        sessions.run_until(Instant::ZERO + SETTLING + from)?;
        let before = Sent::of(&sessions, 0)?;
        let rest = self.lifetime.fixed + self.rtt * 3;
        sessions.run_until(Instant::ZERO + SETTLING + until + rest)?;
        let sent = Sent::of(&sessions, 0)? - before;
        let received = sessions.session(1)?.stats();
        let (traffic, arrivals) = sessions.into_users()?;
        let mut ledger = traffic.ledger;
        ledger.settle(&arrivals);
        Ok(Ran { ledger, sent, received })
    }

    /// When the first block that counts is handed over.
    pub fn counted_from(&self) -> Instant {
        Instant::ZERO + SETTLING + self.watched.0
    }

    fn path(&self) -> WorldPath {
        watched::path(self.rate, self.rtt, self.loss)
    }

    fn session(&self) -> SessionConfig {
        let goal =
            self.target.map_or_else(Goal::default, |target| Goal { target, ..Goal::default() });
        let (receive_window, send_buffer) = WINDOWS;
        SessionConfig {
            repair: Some(goal),
            receive_window,
            send_buffer,
            ..SessionConfig::default()
        }
    }

    fn config(&self) -> StreamConfig {
        StreamConfig {
            flow: FLOW,
            class: ClassId::default(),
            priority: 0,
            lifetime: Some(self.lifetime),
            mode: Mode::Expendable,
            pattern: self.pattern,
            start: Instant::ZERO + SETTLING,
            stop: Instant::ZERO + SETTLING + self.watched.1,
        }
    }
}

impl Sent {
    fn of(sessions: &Sessions<Traffic, Arrivals>, side: usize) -> Result<Self, Broken> {
        let session = sessions.session(side)?;
        let stats = session.stats();
        let sum =
            |of: fn(PathStats) -> u64| session.paths().iter().map(|(_, path)| of(path.stats)).sum();
        Ok(Self {
            symbols: stats.sent.symbols_sent,
            repeated: stats.sent.symbols_repeated,
            bytes: sum(|stats| stats.bytes_sent),
            repair_bytes: sum(|stats| stats.repair_bytes),
        })
    }

    /// Repair and repetition over what was sent first, in bytes; repeated symbols are taken to be
    /// as long as the others.
    pub fn overhead(&self) -> f64 {
        let share = self.repeated as f64 / (self.symbols + self.repeated) as f64;
        let again = self.bytes as f64 * share;
        (self.repair_bytes as f64 + again) / (self.bytes as f64 - again)
    }
}

impl core::ops::Sub for Sent {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            symbols: self.symbols - before.symbols,
            repeated: self.repeated - before.repeated,
            bytes: self.bytes - before.bytes,
            repair_bytes: self.repair_bytes - before.repair_bytes,
        }
    }
}

/// The stream's flow.
pub(super) const FLOW: FlowId = FlowId(0);
/// A handshake over QUIC in which two of three packets are lost takes so long at most; nothing is
/// sent before.
const SETTLING: Duration = Duration::from_secs(30);
/// What far and near side hold at most: three minutes of a stream of 31 Mbit/s are 700 MB.
const WINDOWS: (ByteCount, ByteCount) = (ByteCount::mib(512), ByteCount::mib(1024));
