//! What a path offers when it has room for a symbol, and how a symbol is cut for it.

use super::outgoing::{Now, OutgoingBlock};
use crate::path::PathId;
use crate::schedule::LineEstimate;
use crate::wire::PROTECTION;
use skyhaul_units::{Duration, Instant};

/// A path that asks for a symbol.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    pub at: Now,
    pub path: PathId,
    /// Largest datagram, header included.
    pub payload: usize,
    /// Bytes that faster paths will have delivered before anything sent here now arrives: these are
    /// left to them.
    pub lead: u64,
    /// Of a metered path: what the other paths achieve. Only blocks that would be late with them
    /// alone are sent here.
    pub only_late_for: Option<LineEstimate>,
    /// This path's own delay and rate.
    pub line: LineEstimate,
    /// Blocks with less time to spare than this are covered by FEC repair, and cut into datagrams
    /// of at most so many bytes: smaller ones make larger groups.
    pub coded: (Duration, usize),
    /// With fewer bytes than this to send, a transfer is near its end, and its symbols are covered
    /// by FEC repair too.
    pub tail: u64,
    /// Nothing else is to be sent: blocks that will hardly be in time may be.
    pub also_late: bool,
    /// Only blocks that may expire are sent, and no duplicates or further copies.
    pub perishable_only: bool,
}

/// How large the next symbol of a block is cut, and whether FEC repair covers it.
#[derive(Debug, Clone, Copy)]
pub struct SymbolCut {
    /// Largest datagram, header included.
    pub payload: usize,
    /// Covered by FEC repair, which must be sent by then, where the block has a deadline.
    pub protection: Option<Option<Instant>>,
}

impl SymbolCut {
    /// For the next symbol of `block`, where `waiting` bytes are to be sent in all.
    pub fn of(block: &mut OutgoingBlock, waiting: u64, offer: &Offer) -> Self {
        let slack =
            block.deadline.map(|deadline| deadline.since(offer.at.now + offer.line.one_way_delay));
        let near_end = slack.is_none() && waiting < offer.tail;
        let progress = &mut block.progress;
        let (due, payload) = match (slack, progress.retransmit.first()) {
            // A symbol that was cut for FEC repair is retransmitted in the same size.
            (_, Some((start, _)))
                if near_end && progress.coded_from.is_some_and(|from| start >= from) =>
            {
                (None, offer.payload.saturating_sub(PROTECTION))
            }
            // Retransmissions of others are covered by their copies, not by FEC repair.
            (_, Some(_)) => (None, offer.payload),
            // No time for a retransmission: FEC repair must do.
            (Some(slack), _) if slack < offer.coded.0 => {
                (Some(offer.at.now + slack), offer.payload.min(offer.coded.1))
            }
            // A loss among the last symbols would lengthen the transfer by a round trip.
            _ if near_end => {
                progress.coded_from.get_or_insert(progress.sent);
                (None, offer.payload.saturating_sub(PROTECTION))
            }
            _ => (None, offer.payload),
        };
        Self { payload, protection: (payload < offer.payload).then_some(due) }
    }
}
