//! Congestion control and pacing of a path. Sans-IO: time is an argument.
//!
//! A [`Controller`] limits the data in flight and sets the rate; the [`Pacer`] spreads datagrams in
//! time; a [`Sender`] tracks the packets in flight and measures what the controller needs. [`Line`]
//! is for a line whose rate is declared by its operator: it uses the full rate, ignores random
//! loss, and gives way while a queue stands. [`Adaptive`] finds the rate by itself. The others are
//! for comparison, each as its authors describe it; a [`ControllerConfig`] names them all.
//!
//! ```
//! use skyhaul_congestion::{Controller, Line, LineConfig, Pacer};
//! use skyhaul_units::{ByteCount, Instant, Rate};
//!
//! let line = Line::new(LineConfig::declared(Rate::from_mbps(93)));
//! let mut pacer = Pacer::new(line.pacing_rate(), ByteCount::new(1500), Instant::ZERO);
//! let now = Instant::from_nanos(2_000_000);
//! assert!(pacer.available(now) >= ByteCount::new(1500));
//! pacer.spend(now, ByteCount::new(1500));
//! ```

mod adaptive;
mod bbr;
mod bbr3;
mod choice;
mod controller;
mod cubic;
mod delivery;
mod highspeed;
mod hybla;
mod illinois;
mod line;
mod max_filter;
mod meter;
mod pacer;
mod reno;
mod scalable;
mod segments;
mod sender;
mod westwood;
mod window;

pub use adaptive::Adaptive;
pub use bbr::BbrConfig;
pub use bbr3::Bbr3Config;
pub use choice::{ControllerConfig, ControllerNameError};
pub use controller::{Ack, Controller, LossEvent, Memory, Phase, Status};
pub use cubic::CubicConfig;
pub use delivery::RateSample;
pub use highspeed::HighSpeedConfig;
pub use hybla::HyblaConfig;
pub use illinois::IllinoisConfig;
pub use line::{Line, LineConfig};
pub use meter::Meter;
pub use pacer::Pacer;
pub use reno::RenoConfig;
pub use scalable::{ScalableCappedConfig, ScalableConfig};
pub use sender::Sender;
pub use westwood::WestwoodConfig;
