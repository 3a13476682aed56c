//! Quantities with their arithmetic: time, size, rate, probability.
//!
//! Every quantity is an integer in one fixed unit (nanoseconds, bytes, bits per second, parts per
//! billion), so state compares and replays exactly; floating point is for reports. Text forms carry
//! their unit (`"160 ms"`, `"93 Mbit/s"`, `"1 %"`) and a number without one is refused.
//!
//! ```
//! use skyhaul_units::{Duration, Rate};
//! let line: Rate = "93 Mbit/s".parse()?;
//! let round_trip: Duration = "160 ms".parse()?;
//! assert_eq!((line * round_trip).as_u64(), 1_860_000);
//! # Ok::<(), skyhaul_units::ParseError>(())
//! ```

mod byte_count;
mod id;
mod parse;
mod probability;
mod rate;
mod text;
mod time;
mod utc;
pub mod wire;

pub use byte_count::ByteCount;
pub use id::{BlockMark, FlowId, Held, Seq, SpoolId, SpoolIdentity, SpoolOpening};
pub use parse::ParseError;
pub use probability::Probability;
pub use rate::Rate;
pub use text::printable;
pub use time::{Duration, Instant};
pub use utc::Utc;
