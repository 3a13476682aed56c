//! Applications of the lab: what they hand over and when, and how much of it arrives in time.
//!
//! [`Traffic`] is a set of [`BlockStream`]s that feed a session; a [`HandedOver`] notes what was
//! handed over, and [`Arrivals`] when what arrived. Both use a session of a
//! [`World`](crate::world::World). Sizes and instants of hand-over come from a seed, so that the
//! same seed gives the same traffic whatever carries it.

mod arrivals;
mod due;
mod ledger;
mod stream;

pub use arrivals::Arrivals;
pub use due::Due;
pub use ledger::{BlockRecord, HandedOver};
pub use stream::{BlockStream, Lifetime, Pattern, Settled, StreamConfig, Traffic};
