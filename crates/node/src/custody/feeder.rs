//! The station's side: blocks from the spool into the session, from where the centre's custody ends.

use crate::payload::{LOST, with_taken};
use bytes::Bytes;
use skyhaul_store::{Seq, Spool, SpoolError, SpoolItem, SpoolReader};
use skyhaul_transport::{Block, Resume, SendError, Session};
use skyhaul_units::{FlowId, Instant, Utc};
use std::collections::{BTreeMap, VecDeque};

/// Feeds one session from the spool.
#[derive(Debug, Default)]
pub struct Feeder {
    /// Where the spool is read on; none while the centre has not said what it has.
    reader: Option<SpoolReader>,
    /// Blocks read and not taken by the session yet: one record, or the places of a hole (at most those of a segment).
    held: VecDeque<Piece>,
    /// The place behind the last block that the session took, of each flow that is not finished: as many as the spool
    /// has live flows.
    sent: BTreeMap<FlowId, Seq>,
}

/// Why the session is not fed.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The spool cannot be read.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The session does not take what the spool holds.
    #[error(transparent)]
    Session(#[from] SendError),
    /// The spool does not give a flow's blocks in their order.
    #[error("block {given:?} of {flow:?} is out of order; the next is {next:?}")]
    Order {
        /// The flow.
        flow: FlowId,
        /// What was read.
        given: Seq,
        /// What was due.
        next: Seq,
    },
}

impl Feeder {
    /// The centre has said what it has: that is its custody, and reading begins behind it.
    pub fn greeted(&mut self, spool: &mut Spool, resume: &Resume) {
        for flow in spool.live_flows() {
            spool.custody(flow, resume.next(flow).unwrap_or(Seq::FINISHED));
        }
        self.reader = Some(spool.reader_from_custody());
        self.held.clear();
        self.sent.clear();
    }

    /// The centre has everything of `flow` below `next` on its disk. What this session has not taken yet stays in the
    /// spool even so: the receipt may be for what an earlier session brought, and this one began before it and goes on
    /// without holes. The centre will say so again when it gets those blocks once more.
    pub fn custody(&mut self, spool: &mut Spool, flow: FlowId, next: Seq) {
        if next == Seq::FINISHED {
            self.sent.remove(&flow);
            self.held.retain(|block| block.flow != flow);
            spool.custody(flow, next);
        } else if let Some(sent) = self.sent.get(&flow) {
            spool.custody(flow, next.min(*sent));
        }
    }

    /// The session is gone; the next one begins anew from what is in custody.
    pub fn disconnected(&mut self) {
        *self = Self::default();
    }

    /// Whether the centre has said what it has.
    pub const fn is_feeding(&self) -> bool {
        self.reader.is_some()
    }

    /// Moves blocks to the session while it has room; `read` reads the spool, `taken` is the time now.
    ///
    /// # Errors
    /// See [`FeedError`].
    pub fn feed(
        &mut self,
        mut read: impl FnMut(&mut SpoolReader) -> Result<Option<SpoolItem>, SpoolError>,
        session: &mut Session,
        (now, taken): (Instant, Utc),
    ) -> Result<(), FeedError> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        loop {
            while let Some(block) = self.held.front() {
                if !self.sent.contains_key(&block.flow) {
                    session.start_flow(block.flow, block.seq);
                }
                let next = session.next_place(block.flow);
                if next != block.seq {
                    return Err(FeedError::Order { flow: block.flow, given: block.seq, next });
                }
                match session.send(now, Block::reliable(block.flow, block.bytes.clone())) {
                    Ok(id) => {
                        self.sent.insert(id.flow, id.seq.next());
                        self.held.pop_front()
                    }
                    Err(SendError::Full { .. } | SendError::NotOpen) => return Ok(()),
                    Err(error) => return Err(error.into()),
                };
            }
            match read(reader)? {
                Some(item) => self.held.extend(blocks(item, taken)),
                None => return Ok(()),
            }
        }
    }
}

/// A block read from the spool.
#[derive(Debug)]
struct Piece {
    flow: FlowId,
    seq: Seq,
    bytes: Bytes,
}

/// A record as a block for the wire, or the places of a hole.
fn blocks(item: SpoolItem, taken: Utc) -> Vec<Piece> {
    let block = |flow: FlowId, seq: Seq, payload: &[u8]| {
        let bytes = Bytes::from(with_taken(taken, payload));
        Piece { flow, seq, bytes }
    };
    match item {
        SpoolItem::Block(record) => vec![block(record.flow, record.seq, &record.payload)],
        SpoolItem::Missing { flow, first, last } => {
            (first.0..=last.0).map(|seq| block(flow, Seq(seq), LOST)).collect()
        }
    }
}
