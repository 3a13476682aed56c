//! A path over one TCP connection, for networks that block UDP. Sans-IO: time and bytes are
//! arguments.
//!
//! A [`TlsConnections`] knows the connections of a node by their ids, for the session manager of
//! its sessions. A [`TlsEndpoint`] has the node's key and the keys that it trusts. Each of its
//! connections is one [`TcpPath`]: TLS 1.3 with bare public keys (RFC 7250), which carries the
//! datagrams of a session and one control stream in frames ([`wire`]). TCP retransmits and paces,
//! so nothing is lost before the path ends, and loss on the line shows as delay. The bytes under
//! way are bounded by what the line carries, so that the scheduler can decide late.
//!
//! It leaves out: sockets and timers (crate `net`), the choice between this and QUIC (crate
//! `transport`), and any disguise as another protocol.
//!
//! ```
//! use skyhaul_identity::Identity;
//! use skyhaul_tcp::{TlsEndpoint, TlsEndpointConfig};
//! use skyhaul_transport::{Path, PathEvent};
//! use skyhaul_units::Instant;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (station, centre) = (Identity::from_seed(&[1; 32])?, Identity::from_seed(&[2; 32])?);
//! let mut config = TlsEndpointConfig::new(centre.clone());
//! config.trusted.insert(station.fingerprint());
//!
//! let now = Instant::ZERO;
//! let mut station = TlsEndpoint::new(TlsEndpointConfig::new(station));
//! let mut calling = station.connect(now, centre.fingerprint())?;
//! let mut called = TlsEndpoint::new(config).accept(now)?;
//! for _ in 0..3 {
//!     let bytes = calling.poll_transmit(now).to_vec();
//!     calling.written(called.receive(now, &bytes));
//!     let bytes = called.poll_transmit(now).to_vec();
//!     called.written(calling.receive(now, &bytes));
//! }
//! assert_eq!(calling.poll(now), Some(PathEvent::Up { payload: 1438 }));
//! # Ok(())
//! # }
//! ```

mod channel;
mod config;
mod connections;
mod endpoint;
mod ledger;
mod lifecycle;
mod path;
mod pulse;
mod receiver;
mod refusal;
mod sender;
mod terms;
mod tls_stream;
mod window;
pub mod wire;

pub use config::{TlsEndpointConfig, TlsPathConfig};
pub use connections::TlsConnections;
pub use endpoint::TlsEndpoint;
pub use lifecycle::TcpLifecycle;
pub use path::{TcpExportError, TcpPath, TlsPathCounters, close_to_go_on};
