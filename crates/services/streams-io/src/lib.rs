//! Streams of a constant rate over a session: sources, sinks, and the two ends.
//!
//! [`send`] reads a [`StreamSource`] and sends its frames. [`serve`] receives a stream and writes
//! it to a sink that [`AllowedSinks`] permits. Both run over any session and end with a
//! [`StreamSummary`]. There is no backpressure on the source: frames that the line cannot carry
//! within the lateness bound are dropped and counted. The sink gets frames in order; each one that
//! is missing at its time is replaced with an invalid frame.
//!
//! The formats of frames and groups and the detection of missing frames are in `skyhaul-streams`,
//! the frames of RTP streams and what they need in `skyhaul-rtp`. Threads and files are here.

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
pub use spec::{EndpointSpecError, FarSink, Numbering, RtpSourceSpec, SinkSpec, SourceSpec};
pub use wait::Waiter;
