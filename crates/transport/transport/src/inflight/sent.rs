//! What goes out on a path, as it is remembered until its fate is known.

use crate::wire::Recovered;
use skyhaul_units::{FlowId, Seq};

/// What was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SentDatagram {
    Slice(Slice),
    Report {
        flows: Vec<FlowId>,
        recovered: Vec<Recovered>,
    },
    /// Sent again by a time-out of its own, or a copy.
    Notice,
    /// Sent to see whether a full datagram arrives.
    Padding,
    Repair,
}

/// Part of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    pub flow: FlowId,
    pub seq: Seq,
    pub start: u32,
    pub end: u32,
}
