//! What the connections of a server share.

use crate::holdings::Readers;
use crate::place::{ServeNotice, ServePlace};
use skyhaul_net::Clock;
use skyhaul_serve::{Gate, GateTime, UseMeter};
use skyhaul_units::{Duration, Instant};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// The state that connections share.
pub struct ServeShared {
    pub place: ServePlace,
    pub clock: Clock,
    pub readers: Readers,
    /// Searches at a time; others wait.
    pub searches: Arc<Semaphore>,
    /// Bodies that are going out.
    pub bodies: AtomicU64,
    /// The identifier of the next request.
    pub requests: AtomicU64,
    gate: Mutex<Gate>,
    tls: Mutex<Option<TlsAcceptor>>,
    log: Mutex<BoundedLines>,
    warnings: Mutex<BoundedLines>,
    notify: Box<dyn Fn(ServeNotice) + Send + Sync>,
}

/// Lines for the log, and no more than people read.
#[derive(Debug)]
struct BoundedLines {
    lines: UseMeter,
    left_out: u64,
}

impl BoundedLines {
    fn new(of_each: Duration, burst: Duration) -> Self {
        Self { lines: UseMeter::new(LINES, of_each, burst), left_out: 0 }
    }

    /// The line, with how many were left out before it; none where it is left out too.
    fn bounded(&mut self, now: Instant, line: &str) -> Option<String> {
        if self.lines.wait(now) > Duration::ZERO {
            self.left_out += 1;
            return None;
        }
        self.lines.charge(now, 1);
        Some(match std::mem::take(&mut self.left_out) {
            0 => line.to_owned(),
            count => format!("{line} (lines left out: {count})"),
        })
    }
}

/// Lines of the log in a time: of answers 10 a second, 100 at once; of warnings, which one client
/// can bring with each request, 10 a minute.
const LINES: u64 = 10;
const ANSWERS_IN: Duration = Duration::from_secs(1);
const ANSWERS_BURST: Duration = Duration::from_secs(10);
const WARNINGS_IN: Duration = Duration::from_secs(60);
/// Searches at a time: they leave threads for reading files.
pub const SEARCHES_MAX: usize = 4;

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ServeShared {
    pub fn new(
        place: ServePlace,
        clock: Clock,
        readers: Readers,
        gate: Gate,
        notify: Box<dyn Fn(ServeNotice) + Send + Sync>,
    ) -> Arc<Self> {
        Arc::new(Self {
            place,
            clock,
            readers,
            searches: Arc::new(Semaphore::new(SEARCHES_MAX)),
            bodies: AtomicU64::new(0),
            // Of another start there are others.
            requests: AtomicU64::new(clock.utc().as_micros().cast_unsigned()),
            gate: Mutex::new(gate),
            tls: Mutex::default(),
            log: Mutex::new(BoundedLines::new(ANSWERS_IN, ANSWERS_BURST)),
            warnings: Mutex::new(BoundedLines::new(WARNINGS_IN, WARNINGS_IN)),
            notify,
        })
    }

    /// The gate. No other lock is taken while it is held.
    pub fn gate(&self) -> MutexGuard<'_, Gate> {
        lock(&self.gate)
    }

    /// The TLS of new connections.
    pub fn tls(&self) -> Option<TlsAcceptor> {
        lock(&self.tls).clone()
    }

    pub fn set_tls(&self, acceptor: Option<TlsAcceptor>) {
        *lock(&self.tls) = acceptor;
    }

    pub fn time(&self) -> GateTime {
        GateTime { now: self.clock.now(), utc: self.clock.utc() }
    }

    /// How many bytes of a file a connection may hold.
    pub fn piece(&self) -> u64 {
        let bodies = self.bodies.load(Ordering::Relaxed).max(1);
        (PIECES_MAX / bodies).clamp(PIECE_MIN, PIECE_MAX)
    }

    /// Says what an operator should know, unless there is too much of it.
    pub fn warn(&self, what: &str) {
        let line = lock(&self.warnings).bounded(self.clock.now(), what);
        line.into_iter().for_each(|line| (self.notify)(ServeNotice::Warning(line)));
    }

    /// Logs an answered request, unless there are too many.
    pub fn access(&self, line: &str) {
        let line = lock(&self.log).bounded(self.clock.now(), line);
        line.into_iter().for_each(|line| (self.notify)(ServeNotice::Access(line)));
    }
}

/// What all pieces of files in memory may take: 64 MiB.
pub const PIECES_MAX: u64 = 64 << 20;
/// A TLS record has 16 KiB.
const PIECE_MIN: u64 = 16 << 10;
/// More saves nothing: a thread takes 20 µs to hand over a piece.
const PIECE_MAX: u64 = 256 << 10;
