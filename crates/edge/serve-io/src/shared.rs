//! What the connections of a server share.

use crate::holdings::Readers;
use crate::place::{ServeNotice, ServePlace};
use skyhaul_net::Clock;
use skyhaul_serve::{Gate, GateTime, UseMeter};
use skyhaul_units::Duration;
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
    gate: Mutex<Gate>,
    tls: Mutex<Option<TlsAcceptor>>,
    log: Mutex<AccessLog>,
    notify: Box<dyn Fn(ServeNotice) + Send + Sync>,
}

/// Lines for the log, and no more than people read.
#[derive(Debug)]
struct AccessLog {
    lines: UseMeter,
    left_out: u64,
}

/// Lines of the log: 10 a second, 100 at once.
const LINES: u64 = 10;
const LINES_BURST: Duration = Duration::from_secs(10);
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
            gate: Mutex::new(gate),
            tls: Mutex::default(),
            log: Mutex::new(AccessLog {
                lines: UseMeter::new(LINES, Duration::from_secs(1), LINES_BURST),
                left_out: 0,
            }),
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

    pub fn warn(&self, what: String) {
        (self.notify)(ServeNotice::Warning(what));
    }

    /// Logs an answered request, unless there are too many.
    pub fn access(&self, line: &str) {
        let now = self.clock.now();
        let left_out = {
            let mut log = lock(&self.log);
            if log.lines.wait(now) > Duration::ZERO {
                log.left_out += 1;
                return;
            }
            log.lines.charge(now, 1);
            std::mem::take(&mut log.left_out)
        };
        let more = match left_out {
            0 => String::new(),
            count => format!(" (lines left out: {count})"),
        };
        (self.notify)(ServeNotice::Access(format!("{line}{more}")));
    }
}

/// What all pieces of files in memory may take: 64 MiB.
pub const PIECES_MAX: u64 = 64 << 20;
/// A TLS record has 16 KiB.
const PIECE_MIN: u64 = 16 << 10;
/// More saves nothing: a thread takes 20 µs to hand over a piece.
const PIECE_MAX: u64 = 256 << 10;
