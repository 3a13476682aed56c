//! What the connections of a server share: the newest look, the gate, the counters.

use skyhaul_http_io::is_local_host;
use skyhaul_net::Clock;
use skyhaul_serve::{Gate, GateTime, ServeAnswer, ServeRequest};
use skyhaul_web::WebSource;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// Streams of looks at a time.
pub const STREAMS_MAX: u32 = 64;

/// A look at the node, for threads.
pub type WebLook = Arc<dyn WebSource + Send + Sync>;

/// What connections share.
pub struct WebShared {
    pub clock: Clock,
    pub looks: watch::Receiver<WebLook>,
    pub streams: AtomicU32,
    answered: AtomicU64,
    refused: AtomicU64,
    newest: watch::Sender<WebLook>,
    hosts: Vec<String>,
    gate: Mutex<Gate>,
    tls: Mutex<Option<TlsAcceptor>>,
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WebShared {
    /// Shows `look` first.
    pub fn new(look: WebLook, hosts: Vec<String>, clock: Clock, gate: Gate) -> Self {
        let (newest, looks) = watch::channel(look);
        Self {
            clock,
            looks,
            streams: AtomicU32::new(0),
            answered: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            newest,
            hosts,
            gate: Mutex::new(gate),
            tls: Mutex::default(),
        }
    }

    /// Answers from this look from now on, and sends it to those who watch.
    pub fn show(&self, look: WebLook) {
        self.newest.send_replace(look);
    }

    /// New connections have this TLS.
    pub fn set_tls(&self, acceptor: Option<TlsAcceptor>) {
        *lock(&self.tls) = acceptor;
    }

    /// Requests that were answered with a success, and those that were refused.
    pub fn counts(&self) -> [u64; 2] {
        [&self.answered, &self.refused].map(|count| count.load(Ordering::Relaxed))
    }

    /// The gate. No other lock is taken while it is held.
    pub fn gate(&self) -> MutexGuard<'_, Gate> {
        lock(&self.gate)
    }

    /// The TLS of new connections.
    pub fn tls(&self) -> Option<TlsAcceptor> {
        lock(&self.tls).clone()
    }

    /// The newest look.
    pub fn look(&self) -> WebLook {
        self.looks.borrow().clone()
    }

    /// Refuses names that are not this server's.
    pub fn check_host(&self, request: &ServeRequest) -> Result<(), ServeAnswer> {
        let host = request.header("host").unwrap_or_default();
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let is_own = |own: &String| own.eq_ignore_ascii_case(name);
        if is_local_host(host) || self.hosts.iter().any(is_own) {
            return Ok(());
        }
        let what = "this server does not have this name; use its address, or write the name \
                    into `hosts` of [web]";
        Err(ServeAnswer::problem(421, what))
    }

    /// Checks the token, where tokens are needed.
    pub fn admit(&self, request: &ServeRequest) -> Result<(), ServeAnswer> {
        // A supervisor has no token.
        if request.segments() == ["livez"] {
            return Ok(());
        }
        let time = GateTime { now: self.clock.now(), utc: self.clock.utc() };
        let mut gate = self.gate();
        let admission = gate.admit(request, None, time)?;
        // What it takes is in memory: the budget of requests counts, and nothing else.
        gate.end(&admission);
        Ok(())
    }

    /// Counts an answer.
    pub fn count(&self, status: u16) {
        let counter = if status < 400 { &self.answered } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
