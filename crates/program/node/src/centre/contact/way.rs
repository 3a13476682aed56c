//! When the frames of a block passed each stage, and why a block could not be read.

use crate::centre::board::{FrameStage, StageTime};
use crate::centre::shared::CentreShared;
use crate::custody::Stamps;
use crate::status::ContactReceived;
use skyhaul_catalogue::BlockTimes;
use skyhaul_records::payload::BlockHead;
use skyhaul_store::Seq;
use skyhaul_units::Utc;

/// Why a block could not be read.
pub enum Unread {
    /// What one of its records says.
    Entry(String),
    /// One of its records.
    Record(String),
}

impl Unread {
    /// What is wrong, of the block of this place.
    pub fn sentence(self, seq: Seq) -> String {
        match self {
            Self::Entry(reason) => reason,
            Self::Record(reason) => format!("block {seq}: {reason}"),
        }
    }
}

/// The times at which a block's frames passed each stage.
pub struct Way<'a> {
    pub frames: &'a [Utc],
    pub head: &'a BlockHead,
    pub taken: Utc,
    pub stamps: Stamps,
    /// None where the block was durable before the start, or is read again.
    pub durable: Option<Utc>,
    pub processed: Utc,
}

impl Way<'_> {
    /// Notes them for the account of the contact's products, and for status.
    pub fn record(&self, contact: &ContactReceived, shared: &CentreShared) {
        if let Some(last_received) = self.frames.iter().max() {
            let frames = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
            let times = self.times(*last_received, frames);
            shared.commits.ways.block(&contact.name(), times);
        }
        if let Some(durable) = self.durable {
            self.show(durable, contact, shared);
        }
    }

    /// For the account of products.
    const fn times(&self, last_received: Utc, frames: u32) -> BlockTimes {
        let Stamps { sent, last_original, delivered, .. } = self.stamps;
        BlockTimes {
            frames,
            last_received,
            closed: self.head.closed,
            taken: self.taken,
            sent,
            arrived: last_original,
            whole: delivered,
            // Where it is not known any more, the time counts as that of Level-0.
            stored: match self.durable {
                Some(durable) => durable,
                None => delivered,
            },
            sorted: self.processed,
        }
    }

    /// For status and history.
    fn show(&self, durable: Utc, contact: &ContactReceived, shared: &CentreShared) {
        let count = self.frames.len() as u64;
        let time = |stage, from: Utc, to: Utc, frames| {
            let span = to.since(from);
            StageTime { stage, span, frames }
        };
        let Stamps { sent, last_original, delivered, .. } = self.stamps;
        let closed = self.head.closed;
        let mut times = vec![
            time(FrameStage::Spool, closed, self.taken, count),
            time(FrameStage::Queue, self.taken, sent, count),
            time(FrameStage::Line, sent, last_original, count),
            time(FrameStage::Repair, last_original, delivered, count),
            time(FrameStage::Store, delivered, durable, count),
            time(FrameStage::Level0, durable, self.processed, count),
        ];
        for received in self.frames {
            times.push(time(FrameStage::Capture, *received, closed, 1));
            times.push(time(FrameStage::Total, *received, durable, 1));
        }
        shared.board.latency(contact, &times);
    }
}
