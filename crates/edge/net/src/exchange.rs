//! Sessions for programs: a thread runs the transport, and the program awaits.
//!
//! An [`AppClient`] is a node on its sockets. It calls others and is called; each session with
//! another node is a [`AppChannel`].
//! [`AppChannel::send`] waits while the session's buffer is full, and gives a [`Sent`], which resolves to
//! what became of the block; [`AppChannel::recv`] gives blocks as they arrive, and each holds its part of
//! the receive window until it is dropped. Any executor will do: nothing here needs one of its own.
//!
//! ```
//! # use skyhaul_net::exchange::{AppClient, Setup};
//! # use skyhaul_quic::Identity;
//! # use skyhaul_transport::{Block, FlowId, Outcome};
//! # fn block_on<F: Future>(future: F) -> F::Output {
//! #     struct Unpark(std::thread::Thread);
//! #     impl std::task::Wake for Unpark {
//! #         fn wake(self: std::sync::Arc<Self>) { self.0.unpark() }
//! #     }
//! #     let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
//! #     let mut future = std::pin::pin!(future);
//! #     loop {
//! #         match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
//! #             std::task::Poll::Ready(output) => return output,
//! #             std::task::Poll::Pending => std::thread::park(),
//! #         }
//! #     }
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (station, centre) = (Identity::from_seed(&[1; 32])?, Identity::from_seed(&[2; 32])?);
//! let keys = (station.fingerprint(), centre.fingerprint());
//! let called = AppClient::start(Setup::new("centre", centre).trusting([keys.0]))?;
//! let calling = AppClient::start(Setup::new("station", station))?;
//! # let address = called.addresses()[0];
//! block_on(async {
//!     let link = calling.connect(address, keys.1).await?;
//!     let sent = link.send(Block::reliable(FlowId(0), "a frame".into())).await?;
//!     let far = called.accept().await.ok_or("stopped")?;
//!     assert_eq!(far.recv().await.ok_or("closed")?.bytes, "a frame");
//!     assert_eq!(sent.await, Some(Outcome::Delivered));
//!     Ok(())
//! })
//! # }
//! ```

mod bridge;
mod lent;
mod link;
mod state;

pub use lent::ChannelService;
pub(crate) use lent::{SharedSession, SharedSessionOwner};
pub use link::{AppChannel, IncomingBlock, LinkError, Sent};

use crate::SessionManager;
use crate::{Clock, Driver, Socket, UdpEndpoint, Waker};
use bridge::ChannelDriver;
use core::net::SocketAddr;
use skyhaul_quic::{ConfigError, EndpointConfig, Fingerprint, Identity, PathConfig, QuicEndpoint};
use skyhaul_transport::{PathOptions, SessionConfig};
use skyhaul_units::Rate;
use state::{Call, Shared};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// How a node takes part.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Its name, for the far end's log.
    pub name: String,
    /// Its key.
    pub identity: Identity,
    /// Its sockets; a path goes from one of them. Default: one, any free port of the loopback
    /// interface.
    pub bind: Vec<SocketAddr>,
    /// Keys of the nodes that may call; with none, calls are not taken.
    pub trusted: BTreeSet<Fingerprint>,
    /// For every path.
    pub path: PathConfig,
    /// For every session.
    pub session: SessionConfig,
}

impl Setup {
    /// A node that calls and isn't called, on the loopback interface, with a declared line of 1
    /// Gbit/s.
    pub fn new(name: &str, identity: Identity) -> Self {
        Self {
            name: name.to_owned(),
            identity,
            bind: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
            trusted: BTreeSet::new(),
            path: PathConfig::over(Rate::from_mbps(1_000)),
            session: SessionConfig::default(),
        }
    }

    /// Lets the nodes with these keys call.
    #[must_use]
    pub fn trusting(mut self, keys: impl IntoIterator<Item = Fingerprint>) -> Self {
        self.trusted.extend(keys);
        self
    }
}

/// A path to another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathChoice {
    /// The place in [`Setup::bind`] of the socket that it goes from.
    pub socket: usize,
    /// The far end's address.
    pub remote: SocketAddr,
    /// How the session may use it.
    pub options: PathOptions,
}

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A socket could not be had, or none was asked for.
    #[error("the sockets cannot be bound ({0}): check the addresses")]
    Socket(#[from] io::Error),
    /// The paths' configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// A node on its sockets, run by a thread of its own. Dropping it closes its links.
#[derive(Debug)]
pub struct AppClient {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl AppClient {
    /// Binds the sockets and starts the thread.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(mut setup: Setup) -> Result<Self, StartError> {
        let clock = Clock::start();
        setup.session.utc_at_zero = clock.utc_at_start();
        let quic = || {
            let mut config =
                EndpointConfig::new(setup.identity.clone(), setup.path, clock.std_start());
            config.listen = !setup.trusted.is_empty();
            config.trusted.clone_from(&setup.trusted);
            QuicEndpoint::new(config)
        };
        let mut addresses = Vec::new();
        let mut endpoints = setup.bind.iter().map(|address| {
            let socket = Socket::bind(*address)?;
            addresses.push(socket.local_addr()?);
            Ok::<_, StartError>(UdpEndpoint::new(quic()?, socket))
        });
        let first = endpoints
            .next()
            .unwrap_or_else(|| Err(io::Error::other("no address is given").into()))?;
        let mut driver =
            Driver::new(SessionManager::new(first.into(), setup.session.clone()), clock)?;
        for endpoint in endpoints {
            driver.add_endpoint(endpoint?);
        }
        let (waker, stop) = (driver.waker(), Arc::new(AtomicBool::new(false)));
        let shared = Arc::new(Shared::new(waker.clone()));
        let mut bridge = ChannelDriver::new(setup.name, Arc::clone(&shared));
        let stopped = Arc::clone(&stop);
        let thread =
            std::thread::Builder::new().name("skyhaul-exchange".to_owned()).spawn(move || {
                let ended = driver.run(&mut bridge, &stopped);
                bridge.over(
                    ended
                        .err()
                        .map_or("the node has stopped".to_owned(), |error| error.to_string()),
                );
            })?;
        Ok(Self { shared, addresses, stop, waker, thread: Some(thread) })
    }

    /// Where its sockets are, in the order of [`Setup::bind`].
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Calls the node at `remote`, which must have the key `peer`, from the first socket.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn connect(
        &self,
        remote: SocketAddr,
        peer: Fingerprint,
    ) -> Result<AppChannel, LinkError> {
        self.connect_over(
            &[PathChoice { socket: 0, remote, options: PathOptions::default() }],
            peer,
        )
        .await
    }

    /// The same over several paths. The link stands once the first does; the others join it then,
    /// and those that are turned away are told by [`AppChannel::refused_paths`].
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn connect_over(
        &self,
        ways: &[PathChoice],
        peer: Fingerprint,
    ) -> Result<AppChannel, LinkError> {
        let id = self.shared.call(Call { ways: ways.to_vec(), peer });
        // Dropped, it closes what was begun: where the call fails, and where nobody waits for its
        // end.
        let link = AppChannel::new(Arc::clone(&self.shared), id);
        let waiter = self.shared.waiter(Some(id));
        poll_fn(|context| waiter.poll_open(context)).await?;
        Ok(link)
    }

    /// The next session of a node that called; `None` once the node has stopped.
    pub async fn accept(&self) -> Option<AppChannel> {
        let waiter = self.shared.waiter(None);
        let id = poll_fn(|context| waiter.poll_accept(context)).await?;
        Some(AppChannel::new(Arc::clone(&self.shared), id))
    }
}

impl Drop for AppClient {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has told so on standard error.
            let _ = thread.join();
        }
    }
}
