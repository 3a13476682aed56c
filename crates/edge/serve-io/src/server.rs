//! The server: its thread, its listener, its end.

use crate::connection;
use crate::holdings::Readers;
use crate::place::{ServeFiles, ServeNotice, ServePlace, ServedContacts, ServedProducts};
use crate::shared::ServeShared;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use skyhaul_http_io::{HttpThread, HttpThreadSetup, acceptor};
use skyhaul_net::Clock;
use skyhaul_serve::{AccountUsage, Accounts, Gate, GateCounters, GateLimits, ServeRoot};
use skyhaul_units::Duration;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_rustls::TlsAcceptor;

/// Threads that read files and search the catalogue.
pub const READERS_MAX: usize = 8;

/// What a server is made of.
pub struct ServeSetup {
    /// Where it listens.
    pub bind: SocketAddr,
    /// The name of the node.
    pub node: String,
    /// What addresses in answers begin with; without it, what the client calls the server.
    pub address: Option<String>,
    /// The interfaces.
    pub roots: Vec<ServeRoot>,
    /// Products that are served; none where there are no interfaces of them.
    pub products: Option<ServedProducts>,
    /// Contacts that are offered; none where the interface of contacts is not.
    pub contacts: Option<ServedContacts>,
    /// Limits of all clients together.
    pub limits: GateLimits,
    /// A client that takes nothing for so long is closed.
    pub idle: Duration,
    /// The clock of the node.
    pub clock: Clock,
    /// Told what the server has to say, from its threads.
    pub notify: Box<dyn Fn(ServeNotice) + Send + Sync>,
}

/// A server that runs until it is dropped.
pub struct ServeServer {
    shared: Arc<ServeShared>,
    address: SocketAddr,
    files: Mutex<ServeFiles>,
    _thread: HttpThread,
}

/// Why a server does not start, or does not take other files.
#[derive(Debug, thiserror::Error)]
pub enum ServeFault {
    /// The socket cannot be used.
    #[error("the TCP port of [serve] cannot be used ({0})")]
    Socket(io::Error),
    /// The thread cannot be started.
    #[error("cannot start a thread ({0})")]
    Thread(io::Error),
    /// Certificate or key.
    #[error("TLS of [serve] cannot be used: {0}")]
    Tls(String),
    /// The accounts.
    #[error("the accounts file cannot be used: {0}")]
    Accounts(String),
    /// The accounts file has secrets, and others can read it.
    #[error("the accounts file has access keys, and other users can read it")]
    Exposed,
}

/// Files that a node has open beside: its logs, spools, sockets.
const OTHER_FILES: u64 = 256;

impl ServeServer {
    /// Starts it.
    ///
    /// # Errors
    /// See [`ServeFault`].
    pub fn start(setup: ServeSetup, files: &ServeFiles) -> Result<Self, ServeFault> {
        let Adopted { tls, accounts } = Adopted::of(files)?;
        let listener = TcpListener::bind(setup.bind).map_err(ServeFault::Socket)?;
        let address = listener.local_addr().map_err(ServeFault::Socket)?;
        let limits = GateLimits {
            connections: possible(setup.limits.connections, &*setup.notify),
            ..setup.limits
        };
        let readers = Readers::new(setup.products.as_ref().map(|of| of.catalogue.clone()));
        let place = ServePlace {
            node: setup.node,
            address: setup.address,
            roots: setup.roots,
            products: setup.products,
            contacts: setup.contacts,
            idle: setup.idle,
        };
        let gate = Gate::new(limits, accounts);
        let shared = ServeShared::new(place, setup.clock, readers, gate, setup.notify);
        shared.set_tls(tls);
        let of = shared.clone();
        let setup =
            HttpThreadSetup { name: "serve", readers: "serve-read", readers_max: READERS_MAX };
        let thread = HttpThread::start(setup, listener, move |stream, peer| {
            // Bound before the next line: the lock is not held while the connection is served.
            let admitted = of.gate().connect(peer);
            admitted.is_ok().then(|| connection::serve(of.clone(), stream, peer))
        });
        let _thread = thread.map_err(ServeFault::Thread)?;
        let files = Mutex::new(files.clone());
        Ok(Self { shared, address, files, _thread })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether a server could run with these files.
    ///
    /// # Errors
    /// See [`ServeFault`].
    pub fn check(files: &ServeFiles) -> Result<(), ServeFault> {
        Adopted::of(files).map(drop)
    }

    /// Takes other files; connections that are open keep their certificate. Returns what has
    /// changed, for the log.
    ///
    /// # Errors
    /// See [`ServeFault`]: nothing has changed.
    pub fn adopt(&self, files: &ServeFiles) -> Result<Vec<&'static str>, ServeFault> {
        let Adopted { tls, accounts } = Adopted::of(files)?;
        let mut before = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changes = Vec::new();
        if before.tls != files.tls {
            self.shared.set_tls(tls);
            changes.push("the certificate of [serve] changed");
        }
        if before.accounts != files.accounts {
            let now = self.shared.clock.now();
            self.shared.gate().adopt(accounts, now);
            changes.push("the accounts of [serve] changed");
        }
        before.clone_from(files);
        Ok(changes)
    }

    /// What has happened since the start.
    pub fn counters(&self) -> GateCounters {
        self.shared.gate().counters()
    }

    /// What each account has used.
    pub fn usage(&self) -> Vec<AccountUsage> {
        self.shared.gate().usage()
    }
}

impl core::fmt::Debug for ServeServer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ServeServer").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Files that were read.
struct Adopted {
    tls: Option<TlsAcceptor>,
    accounts: Option<Accounts>,
}

impl Adopted {
    fn of(files: &ServeFiles) -> Result<Self, ServeFault> {
        let pair = files.tls.as_ref();
        let tls = pair
            .map(|(certificate, key)| acceptor(certificate, key))
            .transpose()
            .map_err(ServeFault::Tls)?;
        let accounts = files
            .accounts
            .as_deref()
            .map(Accounts::parse)
            .transpose()
            .map_err(|error| ServeFault::Accounts(error.to_string()))?;
        if files.is_exposed && accounts.as_ref().is_some_and(Accounts::has_keys) {
            return Err(ServeFault::Exposed);
        }
        Ok(Self { tls, accounts })
    }
}

/// As many connections as this process may have, with a file for each.
fn possible(wanted: u32, notify: &dyn Fn(ServeNotice)) -> u32 {
    let limit = getrlimit(Resource::Nofile);
    // What is refused here shows in the limit that is read below.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let possible = u32::try_from(files.saturating_sub(OTHER_FILES) / 2).unwrap_or(u32::MAX).max(1);
    if possible < wanted {
        notify(ServeNotice::Warning(format!(
            "this user may open {files} files: at most {possible} connections instead of {wanted}; \
             raise the limit (ulimit -n)"
        )));
    }
    possible.min(wanted)
}
