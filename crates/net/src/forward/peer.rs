//! One session's streams, and the queue of connections that have something to send in each of its lanes.

use skyhaul_forward::{Mux, Role};
use skyhaul_transport::{ClassId, SendError, Session, Stats};
use skyhaul_units::{Bytes, Duration, Instant, Rate};
use std::collections::{BTreeMap, VecDeque};

/// A session.
#[derive(Debug)]
pub(super) struct Peer {
    pub mux: Mux,
    /// The place among the nodes to call, where we called.
    pub node: Option<usize>,
    /// Both ends have introduced themselves.
    pub open: bool,
    /// Connections that have something to read, in each class and priority; each has its turn.
    pub lanes: BTreeMap<(ClassId, u8), VecDeque<u64>>,
    pub rtt: Duration,
    /// What the session has done.
    pub stats: Stats,
    rate: Rate,
}

/// What waits in a lane for the line at most before more is read: what the line carries in this time, so that
/// it is never idle between two looks, and a short queue for what comes next.
const AHEAD: Duration = Duration::from_millis(5);
/// Least and most of that, for lines of which nothing is known yet, and for very fast ones.
const AHEAD_LEAST: u64 = 64 << 10;
const AHEAD_MOST: u64 = 4 << 20;
/// Least and most of datagrams that wait, for lines of which nothing is known yet, and so that streams have room beside them.
const IN_TIME_LEAST: u64 = 256 << 10;
const IN_TIME_MOST: u64 = 16 << 20;
/// Blocks of bulk: large enough to cost little each, and no larger than what a line carries in [`AHEAD`].
const BLOCK_LEAST: u64 = 4 << 10;
pub(super) const BLOCK_MOST: u64 = 64 << 10;

impl Peer {
    pub fn new(role: Role, session: &Session, budget: Bytes, node: Option<usize>) -> Self {
        Self {
            mux: Mux::new(role, session.classes(), budget),
            node,
            open: false,
            lanes: BTreeMap::new(),
            rtt: Duration::ZERO,
            stats: Stats::default(),
            rate: Rate::ZERO,
        }
    }

    /// Takes what the paths measure now.
    pub fn measure(&mut self, session: &Session) {
        (self.rtt, self.stats) = (session.rtt(), session.stats());
        self.rate = Rate::from_bps(session.paths().map(|(_, path)| path.estimate.rate.as_bps()).sum());
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
            match session.send(now, block.clone()) {
                Ok(_) => {}
                Err(SendError::Full { .. } | SendError::NotOpen) => {
                    self.mux.put_back(block);
                    return false;
                }
                // No block of ours is empty, too long for any session or without its deadline, and flows are fewer than a
                // session has.
                Err(_) => {}
            }
        }
        true
    }
}
