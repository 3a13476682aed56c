//! A path on the QUIC state machine, and the only crate that names it. Sans-IO: time and bytes are
//! arguments.
//!
//! A [`QuicEndpoint`] opens and accepts connections; each is one [`QuicPath`], which carries
//! symbols in DATAGRAM frames (RFC 9221), one a packet, paced by the declared line's controller,
//! and one ordered control stream. Nodes know each other by the [`Fingerprint`] of a bare Ed25519
//! key (RFC 7250); nothing else is trusted. It leaves out: sockets and timers (crate `net`),
//! several paths as one session (crate `transport`), migration of a path to another line (each line
//! is a path of its own).
//!
//! ```
//! use skyhaul_quic::{EndpointConfig, Identity, PathConfig, QuicEndpoint};
//! use skyhaul_units::{Instant, Rate};
//!
//! # #[allow(clippy::disallowed_methods)]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let station = Identity::from_seed(&[1; 32])?;
//! let centre = Identity::from_seed(&[2; 32])?;
//! let path = PathConfig::over(Rate::from_mbps(93));
//! let config = EndpointConfig::new(station, path, std::time::Instant::now());
//! let mut endpoint = QuicEndpoint::new(config)?;
//!
//! endpoint.connect(Instant::ZERO, "192.0.2.1:4433".parse()?, centre.fingerprint())?;
//! let mut datagram = Vec::new();
//! let transmit = endpoint.poll_transmit(Instant::ZERO, &mut datagram).expect("the first hello");
//! assert_eq!((transmit.size, datagram.len()), (1200, 1200));
//! # Ok(())
//! # }
//! ```

mod clock;
mod closing;
mod config;
mod control;
mod endpoint;
mod event;
mod feed;
mod machine;
mod memories;
mod path;
mod sender;
mod setup;
mod silence;
mod state;
mod tls;

pub use config::{EndpointConfig, PathConfig};
pub use endpoint::{ConfigError, Counters, QuicEndpoint};
pub use path::{ExportError, PathCounters, QuicPath};
/// A session manager whose connections are all QUIC's.
pub type SessionManager = skyhaul_sessions::SessionManager<QuicEndpoint>;
pub use skyhaul_identity::{
    Fingerprint, FingerprintError, Identity, IdentityError, OwnKey, Refusal,
};
