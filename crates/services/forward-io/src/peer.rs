//! One session's streams, and in each of its lanes the queue of connections that are ready to be
//! read.

use crate::{Counters, FarRules};
use skyhaul_channels::{FlowRange, SessionEnd, Share};
use skyhaul_forward::{ForwardStreams, Lane, Target};
use skyhaul_transport::{Block, BlockId, Mode, SendError, Session, Stats, cost};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

/// A session and the forwards over it.
#[derive(Debug)]
pub(super) struct Peer {
    pub mux: ForwardStreams,
    /// The far node's index among the nodes that forwards lead to, if it is one of them.
    pub node: Option<usize>,
    /// What the far node may have this one do.
    pub rules: Arc<FarRules>,
    /// Targets of the listeners that this node asks the far one for. It may connect to them.
    asked_for: Vec<Target>,
    /// The handshake is complete.
    pub open: bool,
    /// Connections that are ready to be read, in turn.
    pub lanes: BTreeMap<Lane, VecDeque<u64>>,
    pub rtt: Duration,
    /// The session's counters at the latest measurement.
    stats: Stats,
    rate: Rate,
    /// Where the streams' flows lie among those of the session.
    pub range: FlowRange,
    share: Share,
    was_quiet: bool,
    datagrams: SentDatagrams,
}

/// Datagrams handed to the session.
#[derive(Debug, Default)]
struct SentDatagrams {
    /// Those without an outcome so far; the session's send buffer bounds them.
    open: BTreeSet<BlockId>,
    /// Those that the session did not take.
    refused: u64,
}

/// How forwards use a session.
#[derive(Debug, Clone)]
pub struct ForwardSession {
    /// Which end this is.
    pub end: SessionEnd,
    /// The far node's index among the nodes that forwards lead to.
    pub node: Option<usize>,
    /// What it may have this one do.
    pub rules: Arc<FarRules>,
    /// Where the streams' flows lie among those of the session.
    pub range: FlowRange,
    /// The forwards' share of the session's send buffer; none: all of it.
    pub share: Option<ByteCount>,
}

/// Limit of the bytes that wait in a lane for the line: as much as the line carries in this time.
/// More would delay what comes next in the lane; less would leave the line idle between two turns
/// of this thread.
const AHEAD: Duration = Duration::from_millis(5);
/// Bounds of that limit: for a line whose rate is not known yet, and for a very fast one.
const AHEAD_LEAST: u64 = 64 << 10;
const AHEAD_MOST: u64 = 4 << 20;
/// Bounds of the datagrams that wait: for a line whose rate is not known yet, and so that streams
/// keep room in the send buffer.
const IN_TIME_LEAST: u64 = 256 << 10;
const IN_TIME_MOST: u64 = 16 << 20;
/// Bounds of a block of bulk data. A block has some 50 bytes of overhead, about 1 % of the least;
/// it is no larger than what a line carries in [`AHEAD`].
const BLOCK_LEAST: u64 = 4 << 10;
pub(super) const BLOCK_MOST: u64 = 64 << 10;

impl Peer {
    pub fn new(
        member: ForwardSession,
        session: &Session,
        budget: ByteCount,
        asked_for: Vec<Target>,
    ) -> Self {
        let ForwardSession { end, node, rules, range, share } = member;
        Self {
            mux: ForwardStreams::new(end, session.sender().classes(), budget),
            node,
            rules,
            asked_for,
            open: false,
            lanes: BTreeMap::new(),
            rtt: Duration::ZERO,
            stats: Stats::default(),
            rate: Rate::ZERO,
            range,
            share: share.map_or_else(Share::whole, Share::of),
            was_quiet: false,
            datagrams: SentDatagrams::default(),
        }
    }

    /// Whether this node may connect to `target` at `address` for the far one: by a rule, or
    /// because it asked the far node to listen for it.
    pub fn permits(&self, target: &Target, address: Option<IpAddr>) -> bool {
        self.rules.allow.iter().any(|rule| rule.permits(target, address))
            || self.asked_for.contains(target)
    }

    /// Whether an address of `target` could be permitted.
    pub fn may_look_up(&self, target: &Target) -> bool {
        !self.rules.allow.is_empty() || self.asked_for.contains(target)
    }

    /// Whether the streams were idle at the previous call too. Always false on a session of their
    /// own, where nobody else takes the measurements.
    pub fn stays_quiet(&mut self) -> bool {
        let is_quiet = self.range != FlowRange::Own && self.mux.is_quiet();
        core::mem::replace(&mut self.was_quiet, is_quiet) && is_quiet
    }

    /// The cost of blocks that the session takes of the streams now.
    pub fn room(&self, session: &Session) -> u64 {
        session.room().as_u64().min(self.share.room())
    }

    /// The outcome of a block of the streams is known.
    pub fn settled(&mut self, block: BlockId) {
        self.share.settled(block);
        self.datagrams.open.remove(&block);
    }

    /// Adds what the session has done to `counters`.
    pub fn count(&self, counters: &mut Counters) {
        counters.add(&self.stats);
        counters.datagrams.dropped += self.mux.datagrams_dropped() + self.datagrams.refused;
    }

    /// The same of a session that has ended: nobody will know what became of the datagrams that
    /// have no outcome yet.
    pub fn count_ended(&self, counters: &mut Counters) {
        self.count(counters);
        counters.datagrams.late += (self.datagrams.open.len() + self.mux.datagrams_unsent()) as u64;
    }

    /// Takes the paths' measurements.
    pub fn measure(&mut self, session: &Session) {
        (self.rtt, self.stats) = (session.paths().rtt(), session.stats());
        self.rate = Rate::from_bps(
            session.paths().iter().map(|(_, path)| path.estimate.rate.as_bps()).sum(),
        );
    }

    /// How many bytes may wait in a lane for the line.
    pub fn ahead(&self) -> u64 {
        (self.rate * AHEAD).as_u64().clamp(AHEAD_LEAST, AHEAD_MOST)
    }

    /// How many bytes may wait so that a datagram behind them still meets its deadline.
    pub fn in_time(&self, deadline: Duration) -> u64 {
        (self.rate * deadline).as_u64().clamp(IN_TIME_LEAST, IN_TIME_MOST)
    }

    /// The size of a block of bulk data.
    pub fn block(&self) -> usize {
        (self.rate * AHEAD).as_u64().clamp(BLOCK_LEAST, BLOCK_MOST) as usize
    }

    /// Hands the streams' blocks to the session. Returns false where it has no room for all.
    pub fn flush(&mut self, now: Instant, session: &mut Session) -> bool {
        while let Some(block) = self.mux.poll_block() {
            let cost = cost(block.bytes.len());
            let is_datagram = block.mode == Mode::Expendable;
            let outer = self.range.outer(block.flow).filter(|_| self.share.room() >= cost);
            let sent = match outer {
                Some(flow) => session.send(now, Block { flow, ..block.clone() }),
                None => Err(SendError::Full { room: ByteCount::new(self.share.room()) }),
            };
            match sent {
                Ok(id) => {
                    self.share.took(id, cost);
                    if is_datagram {
                        self.datagrams.open.insert(id);
                    }
                }
                Err(SendError::Full { .. } | SendError::NotOpen) => {
                    self.mux.put_back(block);
                    return false;
                }
                // The other errors cannot occur: no block here is empty, longer than a session
                // takes or without its deadline, and there are fewer flows than a session has.
                Err(_) => self.datagrams.refused += u64::from(is_datagram),
            }
        }
        true
    }
}
