//! What the connections of a server share: the newest look, the gate, who may what, the counters.

use crate::desk::WebDesk;
use skyhaul_http_io::is_local_host;
use skyhaul_net::Clock;
use skyhaul_serve::{Gate, GateTime, ServeAnswer, ServeRequest};
use skyhaul_web::access::{WebAccess, WebCaller, WebCredential, WebRole};
use skyhaul_web::{WebSource, needed_role};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

/// Streams of looks at a time.
pub const STREAMS_MAX: u32 = 64;

/// Orders that are carried out at a time.
pub const ORDERS_AT_A_TIME: usize = 2;

/// Readings of the history at a time.
pub const READINGS_AT_A_TIME: usize = 2;

/// What is shared, before it is.
pub struct SharedParts {
    pub look: WebLook,
    pub hosts: Vec<String>,
    pub clock: Clock,
    pub gate: Gate,
    pub access: WebAccess,
    pub desk: Arc<dyn WebDesk>,
}

/// A look at the node, for threads.
pub type WebLook = Arc<dyn WebSource + Send + Sync>;

/// Who works for clients at a time; others wait.
pub struct WebTurns {
    /// Orders that are carried out.
    pub orders: Arc<Semaphore>,
    /// Readings of the history, of events, and of what an admin sees.
    pub readings: Arc<Semaphore>,
    /// Observations of sessions: one serves all who ask meanwhile.
    pub verdicts: Arc<Semaphore>,
}

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
    access: Mutex<WebAccess>,
    /// The name of the cookie of sessions.
    pub cookie: String,
    /// Who carries orders out.
    pub desk: Arc<dyn WebDesk>,
    /// Passwords that are compared at a time: each takes 19 MiB and a processor.
    pub logins: Arc<Semaphore>,
    /// Logins that are compared, or wait.
    pub logins_waiting: AtomicU32,
    pub turns: WebTurns,
    tls: Mutex<Option<TlsAcceptor>>,
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WebShared {
    /// Shows the look of `parts` first.
    pub fn new(parts: SharedParts) -> Self {
        let SharedParts { look, hosts, clock, gate, access, desk } = parts;
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
            cookie: access.cookie(),
            access: Mutex::new(access),
            desk,
            logins: Arc::new(Semaphore::new(1)),
            logins_waiting: AtomicU32::new(0),
            turns: WebTurns {
                orders: Arc::new(Semaphore::new(ORDERS_AT_A_TIME)),
                readings: Arc::new(Semaphore::new(READINGS_AT_A_TIME)),
                verdicts: Arc::new(Semaphore::new(1)),
            },
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

    /// Users, sessions, attempts. No other lock is taken while it is held.
    pub fn access(&self) -> MutexGuard<'_, WebAccess> {
        lock(&self.access)
    }

    /// Now.
    pub fn time(&self) -> GateTime {
        GateTime { now: self.clock.now(), utc: self.clock.utc() }
    }

    /// Checks that the caller of a request may do what it asks for; nothing where all may.
    pub fn admit(
        &self,
        request: &ServeRequest,
        credential: &WebCredential,
    ) -> Result<Option<WebCaller>, ServeAnswer> {
        let Some(role) = needed_role(request) else { return Ok(None) };
        self.access().admit(credential, role, self.time()).map(Some)
    }

    /// Whether who opened a stream may still look.
    pub fn still_looks(&self, credential: &WebCredential) -> bool {
        self.access().admit(credential, WebRole::Viewer, self.time()).is_ok()
    }

    /// Counts an answer.
    pub fn count(&self, status: u16) {
        let counter = if status < 400 { &self.answered } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// A place among the streams that may be open at a time.
pub struct StreamPlace(Arc<WebShared>);

impl StreamPlace {
    /// Takes a place; none where there is none.
    pub fn take(shared: &Arc<WebShared>) -> Option<Self> {
        let more = |open: u32| (open < STREAMS_MAX).then_some(open + 1);
        let taken = shared.streams.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then(|| Self(shared.clone()))
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}
