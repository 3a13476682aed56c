//! How fast a path may send. Sans-IO: time is an argument.
//!
//! A [`Controller`] says how much and how fast; the [`Pacer`] spreads it out in time; a [`Sender`] keeps account of the
//! packets under way and measures what the controller must know. [`Line`] is for a line whose
//! rate is declared by its operator: it uses that rate to the full, takes no notice of random loss, and
//! gives way while a queue stands.
//!
//! ```
//! use skyhaul_congestion::{Controller, Line, LineConfig, Pacer};
//! use skyhaul_units::{Bytes, Instant, Rate};
//!
//! let line = Line::new(LineConfig::declared(Rate::from_mbps(93)));
//! let mut pacer = Pacer::new(line.pacing_rate(), Bytes::new(1500), Instant::ZERO);
//! let now = Instant::from_nanos(2_000_000);
//! assert!(pacer.available(now) >= Bytes::new(1500));
//! pacer.spend(now, Bytes::new(1500));
//! ```

mod choice;
mod controller;
mod delivery;
mod line;
mod meter;
mod pacer;
mod sender;

pub use choice::ControllerConfig;
pub use controller::{Ack, Controller, Loss, Memory, Phase, Status};
pub use delivery::RateSample;
pub use line::{Line, LineConfig};
pub use meter::Meter;
pub use pacer::Pacer;
pub use sender::Sender;
