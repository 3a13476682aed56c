//! A model of one direction of one link: a policer, a drop-tail queue, a line of a rate, a delay,
//! and what goes wrong on it.
//!
//! The same model stands behind the virtual-time tests and the UDP proxy. It reads no clock and
//! holds whatever item the caller gives it: a byte buffer, or nothing at all. All arithmetic is in
//! integers and all chance comes from ChaCha8 under a given seed, so that the same calls give the
//! same deliveries on any machine.
//!
//! What it leaves out: fair queueing and active queue management, duplication, corruption, and
//! links that share one line (send both through one [`Link`] for that).
//!
//! ```
//! use skyhaul_link::{Link, LinkConfig};
//! use skyhaul_units::{ByteCount, Duration, Instant, Rate};
//! let config = LinkConfig {
//!     rate: Some(Rate::from_mbps(12)),
//!     one_way_delay: Duration::from_millis(80),
//!     ..LinkConfig::default()
//! };
//! let mut link = Link::new(config, 1);
//! link.send(Instant::ZERO, ByteCount::new(1500), "hello");
//! assert_eq!(link.next_event(), Some(Instant::ZERO + Duration::from_millis(81)));
//! assert_eq!(link.poll(Instant::ZERO + Duration::from_millis(81)), Some("hello"));
//! ```

mod chance;
mod config;
mod counters;
mod line;
mod link;
mod loss;
mod policer;
mod schedule;
mod size;

pub use config::{Change, LinkConfig, Outage, Reordering};
pub use counters::{LinkCounters, QueueDelay};
pub use link::{Link, MAX_ITEMS};
pub use loss::{GilbertElliott, Loss, LossError};
pub use policer::Policer;
pub use size::ip_packet_size;
