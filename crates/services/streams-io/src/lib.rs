//! Streams of a constant rate over a session: sources, sinks, and what the two ends do.
//!
//! [`send`] reads a [`Source`] and sends what it gives; [`serve`] takes a stream at the other end
//! and writes it to a sink that is
//! [`Allowed`] there. Both run over any session, and end with a [`Summary`]. A source is never held
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

pub use end::{End, Look, Near, Run, Summary};
pub use pace::{Pace, PaceError};
pub use ring::Ring;
pub use send::{Options, groups, send};
pub use serve::serve;
pub use sink::Allowed;
pub use source::{Holds, Source, SourceError};
pub use spec::{FarSink, SinkSpec, SourceSpec, SpecError};
pub use wait::Waiter;
