//! Streams of a constant rate over a session: sources, sinks, and what the two ends do.
//!
//! [`send`] reads a [`StreamSource`] and sends what it gives; [`serve`] takes a stream at the other end
//! and writes it to a sink that is
//! [`AllowedSinks`] there. Both run over any session, and end with a [`StreamSummary`]. A source is never held
//! back: what the line has no room for within the lateness bound is dropped and counted. A sink
//! gets frames in their order, each at its time or an invalid one for it.
//!
//! How frames and groups look, and how it is known which ones are missing, is in `skyhaul-streams`.
//! Threads and files are here.

mod end;
mod pace;
mod queue;
mod ring;
mod send;
mod serve;
mod sink;
mod source;
mod spec;
mod wait;

pub use end::{Look, SourceTotals, StreamContext, StreamFailure, StreamSummary};
pub use pace::{PaceError, SourcePace};
pub use ring::Ring;
pub use send::{Options, groups, send};
pub use serve::serve;
pub use sink::AllowedSinks;
pub use source::{Holds, StreamSource, StreamSourceError};
pub use spec::{EndpointSpecError, FarSink, Numbering, SinkSpec, SourceSpec};
pub use wait::Waiter;
