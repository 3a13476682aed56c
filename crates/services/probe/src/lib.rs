//! Measuring a line with datagrams of UDP: round trip, one-way delay, rate, loss, order, path MTU,
//! and where what is missing went.
//!
//! One end serves ([`ProbeServer`]), the other measures ([`ProbeClient`]) over a [`ProbeIo`], which
//! is a socket or a simulated one. The result of a stream of datagrams is a [`Trace`]; [`stats`]
//! and [`StreamAccount`] make figures of it, and [`survey`](survey::survey) describes a whole line.
//! Nothing here reads a clock or a socket.
//!
//! ```
//! use skyhaul_probe::stats::{Character, LossProcess};
//! // A burst of forty datagrams, lost in two thousand.
//! let lost: Vec<bool> = (0..2_000).map(|seq| (500..540).contains(&seq)).collect();
//! let process = LossProcess::of(&lost);
//! assert_eq!((process.character, process.run_mean), (Character::Bursts, 40.0));
//! ```

mod account;
mod clock;
mod far;
mod host;
pub mod iperf;
pub mod losses;
mod near;
pub mod paths;
pub mod report;
pub mod stats;
mod stream;
pub mod survey;
pub mod sweep;
pub mod watch;
pub mod why;
pub mod wire;

pub use account::{ReceivingHost, StreamAccount};
pub use clock::{Ping, PingComparison};
pub use far::{
    FarConfig, FarCounters, ProbeDatagram, ProbeReceived, ProbeServer, SESSIONS_MAX, SILENCE_MAX,
};
pub use host::HostCounters;
pub use near::{Handed, LineError, NearError, Payloads, ProbeClient, ProbeIo};
pub use stream::{ProbeArrival, Spec, StreamDirection, Trace};
