//! One session's streams, and the queue of connections that have something to send in each of its
//! lanes.

use super::FarRules;
use crate::guests::{FlowRange, Share};
use skyhaul_forward::{Mux, Role};
use skyhaul_transport::{Block, BlockId, ClassId, SendError, Session, Stats, cost};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A session.
#[derive(Debug)]
pub(super) struct Peer {
    pub mux: Mux,
    /// The place among the nodes that forwards lead to, where it is one of them.
    pub node: Option<usize>,
    /// What the far node may have this one do.
    pub rules: Arc<FarRules>,
    /// Both ends have introduced themselves.
    pub open: bool,
    /// Connections that have something to read, in each class and priority; each has its turn.
    pub lanes: BTreeMap<(ClassId, u8), VecDeque<u64>>,
    pub rtt: Duration,
    /// What the session has done.
    pub stats: Stats,
    rate: Rate,
    /// Where the streams' flows lie among those of the session.
    pub range: FlowRange,
    share: Share,
    was_quiet: bool,
}

/// What a session is to the forwards that go through it.
#[derive(Debug, Clone)]
pub struct ForwardSession {
    /// Which end this is.
    pub role: Role,
    /// The place of the far node among those that forwards lead to.
    pub node: Option<usize>,
    /// What it may have this one do.
    pub rules: Arc<FarRules>,
    /// Where the streams' flows lie among those of the session.
    pub range: FlowRange,
    /// What of the session's send buffer is theirs; none: all of it.
    pub share: Option<ByteCount>,
}

/// What waits in a lane for the line at most before more is read: what the line carries in this
/// time, so that it is never idle between two looks, and a short queue for what comes next.
const AHEAD: Duration = Duration::from_millis(5);
/// Least and most of that, for lines of which nothing is known yet, and for very fast ones.
const AHEAD_LEAST: u64 = 64 << 10;
const AHEAD_MOST: u64 = 4 << 20;
/// Least and most of datagrams that wait, for lines of which nothing is known yet, and so that
/// streams have room beside them.
const IN_TIME_LEAST: u64 = 256 << 10;
const IN_TIME_MOST: u64 = 16 << 20;
/// Blocks of bulk: large enough to cost little each, and no larger than what a line carries in
/// [`AHEAD`].
const BLOCK_LEAST: u64 = 4 << 10;
pub(super) const BLOCK_MOST: u64 = 64 << 10;

impl Peer {
    pub fn new(member: ForwardSession, session: &Session, budget: ByteCount) -> Self {
        let ForwardSession { role, node, rules, range, share } = member;
        Self {
            mux: Mux::new(role, session.classes(), budget),
            node,
            rules,
            open: false,
            lanes: BTreeMap::new(),
            rtt: Duration::ZERO,
            stats: Stats::default(),
            rate: Rate::ZERO,
            range,
            share: share.map_or_else(Share::whole, Share::of),
            was_quiet: false,
        }
    }

    /// Whether there was nothing to be done at the last look either, on a session that others use
    /// meanwhile.
    pub fn stays_quiet(&mut self) -> bool {
        let is_quiet = self.range != FlowRange::Own && self.mux.is_quiet();
        core::mem::replace(&mut self.was_quiet, is_quiet) && is_quiet
    }

    /// What the session takes of the streams' blocks now.
    pub fn room(&self, session: &Session) -> u64 {
        session.room().as_u64().min(self.share.room())
    }

    /// The session has told what became of a block of theirs.
    pub fn settled(&mut self, block: BlockId) {
        self.share.settled(block);
    }

    /// Takes what the paths measure now.
    pub fn measure(&mut self, session: &Session) {
        (self.rtt, self.stats) = (session.rtt(), session.stats());
        self.rate =
            Rate::from_bps(session.paths().map(|(_, path)| path.estimate.rate.as_bps()).sum());
    }

    /// What may wait in a lane.
    pub fn ahead(&self) -> u64 {
        (self.rate * AHEAD).as_u64().clamp(AHEAD_LEAST, AHEAD_MOST)
    }

    /// How much may wait for datagrams still to leave before they are late.
    pub fn in_time(&self, deadline: Duration) -> u64 {
        (self.rate * deadline).as_u64().clamp(IN_TIME_LEAST, IN_TIME_MOST)
    }

    /// The size of a block of bulk.
    pub fn block(&self) -> usize {
        (self.rate * AHEAD).as_u64().clamp(BLOCK_LEAST, BLOCK_MOST) as usize
    }

    /// Hands over what the streams have to say; whether all of it.
    pub fn flush(&mut self, now: Instant, session: &mut Session) -> bool {
        while let Some(block) = self.mux.poll_block() {
            let cost = cost(block.bytes.len());
            let outer = self.range.outer(block.flow).filter(|_| self.share.room() >= cost);
            let sent = match outer {
                Some(flow) => session.send(now, Block { flow, ..block.clone() }),
                None => Err(SendError::Full { room: ByteCount::new(self.share.room()) }),
            };
            match sent {
                Ok(id) => self.share.took(id, cost),
                Err(SendError::Full { .. } | SendError::NotOpen) => {
                    self.mux.put_back(block);
                    return false;
                }
                // No block of ours is empty, too long for any session or without its deadline, and
                // flows are fewer than a session has.
                Err(_) => {}
            }
        }
        true
    }
}
