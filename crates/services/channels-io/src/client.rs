//! Sessions for programs: a thread runs the transport, and the program awaits futures.
//!
//! An [`AppClient`] is a node on its sockets. It connects to others and accepts them; each session
//! with another node is an [`AppChannel`]. [`AppChannel::send`] waits while the session's buffer is
//! full, and returns a [`Sent`], which resolves to the block's outcome. [`AppChannel::recv`]
//! returns blocks as they arrive; each holds its part of the receive window until it is dropped.
//! The futures run on any executor.
//!
//! ```
//! # use skyhaul_channels_io::{AppClient, ClientSetup};
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
//! let called = AppClient::start(ClientSetup::new("centre", centre).trusting([keys.0]))?;
//! let calling = AppClient::start(ClientSetup::new("station", station))?;
//! # let address = called.addresses()[0];
//! block_on(async {
//!     let near = calling.connect(address, keys.1).await?;
//!     let sent = near.send(Block::reliable(FlowId(0), "a frame".into())).await?;
//!     let far = called.accept().await.ok_or("stopped")?;
//!     assert_eq!(far.recv().await.ok_or("closed")?.bytes, "a frame");
//!     assert_eq!(sent.await, Some(Outcome::Delivered));
//!     Ok(())
//! })
//! # }
//! ```

use crate::channel::AppChannel;
use crate::channel_driver::ChannelDriver;
use crate::channel_error::AppChannelError;
use crate::path_choice::PathChoice;
use crate::state::{ConnectRequest, Shared};
use core::net::SocketAddr;
use skyhaul_net::{Clock, Driver, SessionManager, Socket, UdpEndpoint, Waker};
use skyhaul_quic::{ConfigError, EndpointConfig, Fingerprint, Identity, PathConfig, QuicEndpoint};
use skyhaul_transport::{PathOptions, SessionConfig};
use skyhaul_units::Rate;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// How a node is set up.
#[derive(Debug, Clone)]
pub struct ClientSetup {
    /// Its name, for the far ends' logs.
    pub name: String,
    /// Its key.
    pub identity: Identity,
    /// The addresses of its sockets; a path begins at one of them. Default: any free port of the
    /// loopback interface.
    pub bind: Vec<SocketAddr>,
    /// Keys of the nodes that may connect; with none, it does not accept connections.
    pub trusted: BTreeSet<Fingerprint>,
    /// For every path.
    pub path: PathConfig,
    /// For every session.
    pub session: SessionConfig,
}

impl ClientSetup {
    /// A node that only connects, on the loopback interface, with a declared rate of 1 Gbit/s.
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

    /// Accepts the nodes with these keys.
    #[must_use]
    pub fn trusting(mut self, keys: impl IntoIterator<Item = Fingerprint>) -> Self {
        self.trusted.extend(keys);
        self
    }
}

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum ClientStartError {
    /// A socket could not be opened, or no address is given.
    #[error("the sockets cannot be bound ({0}): check the addresses")]
    Socket(#[from] io::Error),
    /// The paths' configuration is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// A node on its sockets, run by a thread of its own. Dropping it closes its channels.
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
    /// See [`ClientStartError`].
    pub fn start(mut setup: ClientSetup) -> Result<Self, ClientStartError> {
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
            Ok::<_, ClientStartError>(UdpEndpoint::new(quic()?, socket))
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
        let mut channels = ChannelDriver::new(setup.name, Arc::clone(&shared));
        let stopped = Arc::clone(&stop);
        let thread =
            std::thread::Builder::new().name("skyhaul-exchange".to_owned()).spawn(move || {
                let ended = driver.run(&mut channels, &stopped);
                channels.stop(
                    ended
                        .err()
                        .map_or("the node has stopped".to_owned(), |error| error.to_string()),
                );
            })?;
        Ok(Self { shared, addresses, stop, waker, thread: Some(thread) })
    }

    /// The addresses of its sockets, in the order of [`ClientSetup::bind`].
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Connects to the node at `remote`, which must have the key `peer`, from the first socket.
    ///
    /// # Errors
    /// See [`AppChannelError`].
    pub async fn connect(
        &self,
        remote: SocketAddr,
        peer: Fingerprint,
    ) -> Result<AppChannel, AppChannelError> {
        self.connect_over(
            &[PathChoice { socket: 0, remote, options: PathOptions::default() }],
            peer,
        )
        .await
    }

    /// The same over several paths. The channel is open as soon as the first path is; the others
    /// join it then, and [`AppChannel::refused_paths`] reports those that could not be made.
    ///
    /// # Errors
    /// See [`AppChannelError`].
    pub async fn connect_over(
        &self,
        paths: &[PathChoice],
        peer: Fingerprint,
    ) -> Result<AppChannel, AppChannelError> {
        let id = self.shared.connect(ConnectRequest { paths: paths.to_vec(), peer });
        // Dropping it closes what was begun, if the attempt fails or this future is dropped.
        let channel = AppChannel::new(Arc::clone(&self.shared), id);
        let waiter = self.shared.waiter(Some(id));
        poll_fn(|context| waiter.poll_open(context)).await?;
        Ok(channel)
    }

    /// The next session of a node that has connected; `None` once this node has stopped.
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
            // A thread that panicked has reported it on standard error.
            let _ = thread.join();
        }
    }
}
