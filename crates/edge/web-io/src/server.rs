//! The server: its thread, its limits, what its connections share.

use crate::connection;
use crate::desk::WebDesk;
use crate::shared::{ORDERS_AT_A_TIME, READINGS_AT_A_TIME, SharedParts, WebLook, WebShared};
use skyhaul_http_io::{HttpThread, HttpThreadSetup, acceptor};
use skyhaul_net::Clock;
use skyhaul_serve::{Gate, GateLimits};
use skyhaul_units::{Duration, Utc};
use skyhaul_web::access::{AccessTerms, WebAccess, WebRole, WebTls, WebUsers};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_rustls::TlsAcceptor;

/// Connections at a time.
pub const CONNECTIONS_MAX: u32 = 256;
/// Of them from one address: a wall of screens, a scraper and a person behind one proxy.
const PER_ADDRESS_MAX: u32 = 128;

/// What a server is made of.
pub struct WebSetup {
    /// Where it listens.
    pub bind: SocketAddr,
    /// The names of the host, beside its addresses and `localhost`.
    pub hosts: Vec<String>,
    /// The first look.
    pub look: WebLook,
    /// The clock of the node.
    pub clock: Clock,
    /// What somebody without a token or a password may do.
    pub anonymous: Option<WebRole>,
    /// A session in which nobody does anything ends after so long.
    pub session_idle: Duration,
    /// When tokens were used, as far as it was kept.
    pub uses: BTreeMap<String, Utc>,
    /// Who carries orders out.
    pub desk: Arc<dyn WebDesk>,
}

/// The texts of the files that a server is configured with.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct WebFiles {
    /// The certificate with those that lead to it (PEM), and its private key; none is no TLS.
    pub tls: Option<(String, String)>,
    /// The users file; without it nobody can log in.
    pub users: Option<String>,
}

impl core::fmt::Debug for WebFiles {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("WebFiles(…)")
    }
}

/// Why a server does not start, or does not take other files.
#[derive(Debug, thiserror::Error)]
pub enum WebFault {
    /// The socket cannot be used.
    #[error("the TCP port of [web] cannot be used ({0})")]
    Socket(io::Error),
    /// The thread cannot be started.
    #[error("cannot start a thread ({0})")]
    Thread(io::Error),
    /// Certificate or key.
    #[error("TLS of [web] cannot be used: {0}")]
    Tls(String),
    /// The users.
    #[error("the users file of [web] cannot be used: {0}")]
    Users(String),
}

/// What has happened since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WebCounters {
    /// Connections now.
    pub connections: u32,
    /// Streams of looks now.
    pub streams: u32,
    /// Sessions of people who have logged in.
    pub sessions: u32,
    /// Requests that were answered with a success.
    pub answered: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Requests whose caller is not known, or may not do so.
    pub unauthorized: u64,
    /// Connections that were closed at once, because there were too many.
    pub refused_connections: u64,
}

/// A server that runs until it is dropped.
pub struct WebServer {
    shared: Arc<WebShared>,
    address: SocketAddr,
    files: Mutex<WebFiles>,
    _thread: HttpThread,
}

impl WebServer {
    /// Starts it.
    ///
    /// # Errors
    /// See [`WebFault`].
    pub fn start(setup: WebSetup, files: &WebFiles) -> Result<Self, WebFault> {
        let read = ReadFiles::of(files)?;
        let listener = TcpListener::bind(setup.bind).map_err(WebFault::Socket)?;
        let address = listener.local_addr().map_err(WebFault::Socket)?;
        let limits = GateLimits { connections: CONNECTIONS_MAX, per_address: PER_ADDRESS_MAX };
        let gate = Gate::new(limits, None);
        let tls = if read.tls.is_some() { WebTls::Here } else { WebTls::No };
        let WebSetup { bind: _, hosts, look, clock, anonymous, session_idle, uses, desk } = setup;
        let terms = AccessTerms { anonymous, idle: session_idle, tls, port: address.port() };
        let mut access = WebAccess::new(read.users, terms);
        access.recall(uses);
        let parts = SharedParts { look, hosts, clock, gate, access, desk };
        let shared = Arc::new(WebShared::new(parts));
        shared.set_tls(read.tls);
        let of = shared.clone();
        // A password, orders, readings, a verdict, and when tokens were used.
        let readers_max = ORDERS_AT_A_TIME + READINGS_AT_A_TIME + 3;
        let threads = HttpThreadSetup { name: "web", readers: "web-orders", readers_max };
        let thread = HttpThread::start(threads, listener, move |stream, peer| {
            // Bound before the next line: the lock is not held while the connection is served.
            let admitted = of.gate().connect(peer);
            admitted.is_ok().then(|| connection::serve(of.clone(), stream, peer))
        });
        let _thread = thread.map_err(WebFault::Thread)?;
        Ok(Self { shared, address, files: Mutex::new(files.clone()), _thread })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it has TLS.
    pub fn has_tls(&self) -> bool {
        self.shared.tls().is_some()
    }

    /// Answers from this look from now on, and sends it to those who watch.
    pub fn show(&self, look: WebLook) {
        self.shared.show(look);
    }

    /// Whether a server could run with these files.
    ///
    /// # Errors
    /// See [`WebFault`].
    pub fn check(files: &WebFiles) -> Result<(), WebFault> {
        ReadFiles::of(files).map(drop)
    }

    /// Takes other files; connections that are open keep their certificate. Returns what has
    /// changed, for the log.
    ///
    /// # Errors
    /// See [`WebFault`]: nothing has changed.
    pub fn adopt(&self, files: &WebFiles) -> Result<Vec<String>, WebFault> {
        let ReadFiles { tls, users } = ReadFiles::of(files)?;
        let mut before = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changes = Vec::new();
        if before.tls != files.tls {
            self.shared.set_tls(tls);
            changes.push("the certificate of [web] changed".to_owned());
        }
        if before.users != files.users {
            let differ = self.shared.access().adopt(users);
            changes.push(format!("the users of [web] changed: {}", in_short(&differ)));
        }
        before.clone_from(files);
        Ok(changes)
    }

    /// What has happened since the start.
    pub fn counters(&self) -> WebCounters {
        let gate = self.shared.gate().counters();
        let [answered, refused] = self.shared.counts();
        let now = self.shared.clock.now();
        let access = self.shared.access();
        WebCounters {
            connections: gate.connections,
            streams: self.shared.streams.load(Ordering::Relaxed),
            answered,
            refused,
            sessions: u32::try_from(access.sessions(now)).unwrap_or(u32::MAX),
            unauthorized: access.unauthorized(),
            refused_connections: gate.refused_connections,
        }
    }
}

impl core::fmt::Debug for WebServer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("WebServer").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Changes, as many as one reads in a line.
fn in_short(changes: &[String]) -> String {
    match changes {
        [] => "no user or token".to_owned(),
        [shown @ .., _] if shown.len() >= SHOWN_MAX => {
            let (shown, more) = (&changes[..SHOWN_MAX], changes.len() - SHOWN_MAX);
            format!("{}, and {more} more", shown.join(", "))
        }
        all => all.join(", "),
    }
}

const SHOWN_MAX: usize = 20;

/// Files that were read.
struct ReadFiles {
    tls: Option<TlsAcceptor>,
    users: Option<WebUsers>,
}

impl ReadFiles {
    fn of(files: &WebFiles) -> Result<Self, WebFault> {
        let pair = files.tls.as_ref();
        let tls = pair.map(|(certificate, key)| acceptor(certificate, key)).transpose();
        let users = files.users.as_deref().map(WebUsers::parse).transpose();
        Ok(Self {
            tls: tls.map_err(WebFault::Tls)?,
            users: users.map_err(|error| WebFault::Users(error.to_string()))?,
        })
    }
}
