//! What the settings of a host allow, and what a line needs of them.
//!
//! [`Settings`] are read from `/proc` and `/sys` of this host, or of a copy. [`advise`] compares
//! them with the needs of a [`HostLine`] and gives a [`SettingFinding`] for each, with the reason.
//! [`throughput`] computes what one TCP connection can reach with them. [`sysctl`] records the
//! changes, and the way back. Nothing here changes the host but [`sysctl::apply`].
//!
//! ```
//! use skyhaul_host::{HostLine, Settings, advise, throughput};
//! use skyhaul_units::Probability;
//! let (rate, round_trip) = ("1 Gbit/s".parse()?, "148 ms".parse()?);
//! let line = HostLine { rate, round_trip, loss: Probability::from_ppb(0) };
//! let settings = Settings::typical();
//! // 4 MB of send buffer hold two thirds of that under way, a seventh of what the line holds.
//! let today = throughput::of(&settings, &line);
//! assert_eq!(today.limit, throughput::Limit::SendBuffer);
//! assert_eq!(today.rate.as_bps() / 1_000_000, 151);
//! assert!(advise(&settings, &line).iter().any(|finding| finding.setting == "net.ipv4.tcp_rmem"));
//! # Ok::<(), skyhaul_units::ParseError>(())
//! ```

mod advice;
mod change;
mod interface;
mod line;
mod settings;
pub mod sysctl;
pub mod throughput;

pub use advice::{SettingFinding, State, advise};
pub use change::SettingChange;
pub use interface::{
    Interface, InterfaceRing, Interfaces, OffloadFeature, offloads, queue_discipline, rings,
};
pub use line::HostLine;
pub use settings::{BufferSettings, ProcessingSettings, QueueSettings, Settings, TcpSettings};
