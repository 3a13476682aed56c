//! Endpoints over emulated links in virtual time.
//!
//! The lab runs the production core, never a copy of it: whatever implements [`NetworkNode`] is
//! joined by [links](skyhaul_link::Link) into a [`Network`] with one virtual clock. Minutes of line
//! time take as long as the endpoints need to compute, and the same endpoints, links and seeds give
//! the same run, event by event.
//!
//! A [`Peer`] is the production session manager as an endpoint; a [`PlainPath`] is a path without
//! QUIC, for tests of what lies above it, and a [`world`] is two sessions over several of them.
//! [`flow`] runs bare congestion controllers over one bottleneck, at millions of packets a second.
//!
//! What it leaves out: sockets and real time (that is the proxy's part), routing over several hops,
//! and address translation.
//!
//! ```
//! use skyhaul_lab::{NetworkDatagram, Network, NetworkNode};
//! use skyhaul_link::LinkConfig;
//! use skyhaul_units::{Duration, Instant};
//!
//! /// Returns what it gets to where it came from.
//! #[derive(Default)]
//! struct Echo(Vec<NetworkDatagram>, u32);
//! impl NetworkNode for Echo {
//!     fn handle_datagram(&mut self, _now: Instant, datagram: NetworkDatagram) {
//!         self.1 += 1;
//!         self.0.push(NetworkDatagram { from: datagram.to, to: datagram.from, ..datagram });
//!     }
//!     fn poll_transmit(&mut self, _now: Instant) -> Option<NetworkDatagram> {
//!         self.0.pop()
//!     }
//!     fn next_timeout(&mut self) -> Option<Instant> {
//!         None
//!     }
//!     fn handle_timeout(&mut self, _now: Instant) {}
//! }
//!
//! let (station, centre) = ("10.0.0.1:1".parse()?, "10.0.0.2:1".parse()?);
//! let mut network = Network::new();
//! let first = network.add_node(Echo::default(), &[station]);
//! network.add_node(Echo::default(), &[centre]);
//! let line = LinkConfig { one_way_delay: Duration::from_millis(80), ..LinkConfig::default() };
//! network.join(station, centre, &line, 1);
//! network.node_mut(first).0.push(NetworkDatagram::new(station, centre, "ping"));
//! network.run_until(Instant::ZERO + Duration::from_secs(1))?;
//! assert_eq!(network.node(first).1, 6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod endpoint;
pub mod flow;
mod network;
mod peer;
mod plain;
pub mod scenario;
pub mod workload;
pub mod world;

pub use endpoint::{EcnMark, NetworkDatagram, NetworkNode};
pub use network::{Event, LinkId, Network, NetworkCounters, NodeId, Stop, Stuck};
pub use peer::{Application, Peer, PeerConfig};
pub use plain::{Acknowledging, PlainChange, PlainEnd, PlainLine, PlainPath};
pub use skyhaul_page as page;
