//! The station's side of custody transfer: reads blocks behind one destination's custody from the
//! spool and hands them to the session with it. A spool with several destinations has one feeder
//! for each.
//!
//! Contacts with the same class, priority and deadline share a lane, which has a reader of the
//! spool of its own: urgent blocks do not wait behind others. Half of the session's buffer is
//! divided evenly among the lanes, so that each has blocks there; lanes compete for the other half.

use super::standby::{BlockReading, StandbyChanges, StandbyFeed};
use bytes::Bytes;
use skyhaul_config::{ContactLabel, LineSharing, SendingTerms};
use skyhaul_level0::standby::{BlockVerdict, StandbyGate};
use skyhaul_records::payload::{BlockHead, KEPT_BACK, LOST, with_taken};
use skyhaul_store::{DestinationId, LogRecord, Seq, Spool, SpoolError, SpoolItem, SpoolReader};
use skyhaul_transport::{Block, BlockId, Resume, SendError, Session, cost};
use skyhaul_units::{ByteCount, FlowId, Instant, Utc};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Feeds the sessions with one destination from the spool, one session at a time.
#[derive(Debug)]
pub struct Feeder {
    to: DestinationId,
    /// The flows of the backlog that the destination came back to: at most the spool's live flows.
    behind: BTreeSet<FlowId>,
    sharing: LineSharing,
    /// The session's buffer.
    buffer: u64,
    /// One for each combination of class, priority and deadline; none until the centre has named
    /// its custody. Bounded by the channels.
    lanes: Vec<Lane>,
    /// The flows of which anything was read: as many as the spool has live flows.
    flows: BTreeMap<FlowId, Known>,
    /// The block after the last one that the session took, of each flow that is not finished: as
    /// many as the spool has live flows.
    sent: BTreeMap<FlowId, Seq>,
    /// Blocks without an outcome yet, with their lane and cost: bounded by the session's buffer.
    open: BTreeMap<BlockId, (usize, u64)>,
    /// The same of all sessions together, as far as flows are open: the destination may finish one
    /// with what an earlier session brought.
    reached: BTreeMap<FlowId, Seq>,
    /// Flows that the destination finished while they were open, with what it had been sent: as
    /// many as the spool has live flows.
    early: BTreeMap<FlowId, Seq>,
    /// Where this node stands by for another one.
    standby: Option<StandbyFeed>,
}

/// Contacts with the same class, priority and deadline.
#[derive(Debug)]
struct Lane {
    delivery: SendingTerms,
    reader: SpoolReader,
    /// Blocks that were read and the session has not taken yet: one record, or empty blocks for a
    /// hole (at most a segment's).
    held: VecDeque<Piece>,
    /// Cost of its blocks in the session.
    open: u64,
}

/// What is known of a flow.
#[derive(Debug)]
struct Known {
    /// None where its first block could not be read.
    label: Option<ContactLabel>,
    lane: usize,
}

/// What a lane gave.
#[derive(Debug, PartialEq, Eq)]
enum Fed {
    Block,
    Nothing,
    /// The session is full.
    Full,
}

/// Why the session gets no blocks.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The spool cannot be read.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// The session refuses a block of the spool.
    #[error(transparent)]
    Session(#[from] SendError),
    /// The spool returned a flow's blocks out of order.
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
    /// A feeder of sessions with a destination, of a send buffer of `buffer`, which share the line
    /// after `sharing`.
    pub const fn new(to: DestinationId, sharing: LineSharing, buffer: ByteCount) -> Self {
        Self {
            to,
            behind: BTreeSet::new(),
            sharing,
            buffer: buffer.as_u64(),
            lanes: Vec::new(),
            flows: BTreeMap::new(),
            sent: BTreeMap::new(),
            open: BTreeMap::new(),
            reached: BTreeMap::new(),
            early: BTreeMap::new(),
            standby: None,
        }
    }

    /// The same for a node that stands by for another one.
    pub fn standing_by(self, gate: StandbyGate) -> Self {
        Self { standby: Some(StandbyFeed::new(self.to, gate)), ..self }
    }

    /// Where this node stands by for another one: what is held back.
    pub const fn standby(&mut self) -> Option<&mut StandbyFeed> {
        self.standby.as_mut()
    }

    /// Whether blocks of a flow go to the destination: a standby holds some back.
    pub fn gives(&self, flow: FlowId) -> bool {
        self.standby.as_ref().is_none_or(|standby| standby.is_released(flow))
    }

    /// Looks what the destination lacks of what is held back.
    pub fn look(&mut self, spool: &mut Spool, now: Instant, utc: Utc) -> StandbyChanges {
        let Some(standby) = &mut self.standby else { return StandbyChanges::default() };
        let changes = standby.look(spool, now, utc);
        for flow in &changes.held {
            self.lanes.iter_mut().for_each(|lane| lane.held.retain(|piece| piece.flow != *flow));
        }
        if !changes.released.is_empty() && self.is_feeding() {
            // What was passed over is read now.
            self.set_lanes(spool);
        }
        changes
    }

    /// The destination that it feeds.
    pub const fn to(&self) -> DestinationId {
        self.to
    }

    /// The class tree, the policy and the delivery of contacts.
    pub const fn sharing(&self) -> &LineSharing {
        &self.sharing
    }

    /// What a flow is of, once a block of it was read.
    pub fn label(&self, flow: FlowId) -> Option<&ContactLabel> {
        self.flows.get(&flow)?.label.as_ref()
    }

    /// How a contact with this label is sent.
    pub fn delivery(&self, flow: FlowId, label: &ContactLabel) -> SendingTerms {
        delivery_of(&self.sharing, Some(label), ContactAge::of(flow, &self.behind))
    }

    /// The block after the last one of a flow that the session took.
    pub fn place(&self, flow: FlowId) -> Option<Seq> {
        self.sent.get(&flow).copied()
    }

    /// The destination's greeting named its custody: reading begins behind that.
    pub fn greeted(&mut self, spool: &mut Spool, resume: &Resume, now: Utc) {
        self.disconnected();
        self.reached.retain(|flow, _| is_open(spool, *flow));
        for flow in spool.queue().flows_to(self.to) {
            let next = resume.next(flow).unwrap_or(Seq::FINISHED);
            if next == Seq::FINISHED && self.is_early(spool, flow, resume) {
                continue;
            }
            spool.resume(self.to, flow, next);
        }
        if let Some(catch_up) = self.sharing.catch_up() {
            let mut live = spool.queue().open_flows();
            live.sort_unstable_by_key(|open| open.flow);
            let is_open = |flow| live.binary_search_by_key(&flow, |open| open.flow).is_ok();
            let waiting = spool.queue().waiting(self.to, |_| None);
            let old = waiting.iter().filter(|waiting| now.since(waiting.newest) > catch_up.after);
            self.behind = old.map(|waiting| waiting.flow).filter(|flow| !is_open(*flow)).collect();
        }
        self.set_lanes(spool);
    }

    /// Replaces the class tree and the delivery of contacts. Blocks that the session has taken
    /// keep their class.
    pub fn share(&mut self, spool: &Spool, sharing: LineSharing) {
        self.sharing = sharing;
        if self.is_feeding() {
            self.set_lanes(spool);
        }
    }

    fn set_lanes(&mut self, spool: &Spool) {
        let ways = self.sharing.deliveries();
        let lane = |delivery| Lane {
            delivery,
            reader: spool.queue().reader_from_custody(self.to),
            held: VecDeque::new(),
            open: 0,
        };
        self.lanes = ways.into_iter().map(lane).collect();
        for (flow, known) in &mut self.flows {
            let age = ContactAge::of(*flow, &self.behind);
            let delivery = delivery_of(&self.sharing, known.label.as_ref(), age);
            known.lane = lane_of(&self.lanes, delivery);
        }
        for (block, (lane, cost)) in &mut self.open {
            *lane = self.flows.get(&block.flow).map_or(0, |known| known.lane);
            if let Some(lane) = self.lanes.get_mut(*lane) {
                lane.open += *cost;
            }
        }
    }

    /// The centre has everything of `flow` below `next` on its disk. Blocks that this session has
    /// not taken yet stay in the spool: the receipt may be for blocks of an earlier session, and
    /// this one must carry each flow without holes. The centre repeats the receipt when it gets
    /// those blocks again.
    pub fn custody(&mut self, spool: &mut Spool, flow: FlowId, next: Seq) {
        if next == Seq::FINISHED && is_open(spool, flow) {
            // It may have ended just now, or the destination is wrong: what was not sent to it
            // must not go.
            let has = spool.queue().extent(self.to, flow).map(|extent| extent.custody);
            let sent = self.reached.get(&flow).copied().max(has).unwrap_or(Seq::FIRST);
            self.early.entry(flow).or_insert(sent);
        } else if next == Seq::FINISHED {
            self.sent.remove(&flow);
            self.flows.remove(&flow);
            self.lanes.iter_mut().for_each(|lane| lane.held.retain(|block| block.flow != flow));
            spool.custody(self.to, flow, next);
        } else if let Some(sent) = self.sent.get(&flow) {
            spool.custody(self.to, flow, next.min(*sent));
        }
    }

    /// Whether the destination is wrong about the end of an open flow: what it has last of it is
    /// not the last there is.
    fn is_early(&mut self, spool: &mut Spool, flow: FlowId, resume: &Resume) -> bool {
        let Some(extent) = spool.queue().extent(self.to, flow).filter(|_| is_open(spool, flow))
        else {
            return false;
        };
        let sent = self.reached.get(&flow).copied().unwrap_or(extent.custody).max(extent.custody);
        if sent >= extent.next {
            return false;
        }
        let last = Seq(extent.next.0.saturating_sub(1));
        let mark = spool.queue_mut().mark_of(flow, last).ok().flatten();
        let held = resume.held(flow).map(|held| held.last);
        let has_all = mark.is_none() || held.is_none() || mark == held;
        if !has_all {
            self.early.insert(flow, sent);
        }
        !has_all
    }

    /// The flows that the destination finished while they were open, with the first place of each
    /// that it was not sent.
    pub fn early(&self) -> impl Iterator<Item = (FlowId, Seq)> + '_ {
        self.early.iter().map(|(flow, sent)| (*flow, *sent))
    }

    /// Takes the custody of flows that the destination finished, and that have ended since then:
    /// what it lacked of them goes to it in others by now. Returns those flows.
    pub fn settle_finished(&mut self, spool: &mut Spool) -> Vec<FlowId> {
        let ended = self.early.keys().copied().filter(|flow| !is_open(spool, *flow));
        let ended: Vec<FlowId> = ended.collect();
        for flow in &ended {
            self.early.remove(flow);
            self.custody(spool, *flow, Seq::FINISHED);
        }
        ended
    }

    /// The session reported the outcome of a block.
    pub fn settled(&mut self, block: BlockId) {
        if let Some((lane, cost)) = self.open.remove(&block)
            && let Some(lane) = self.lanes.get_mut(lane)
        {
            lane.open = lane.open.saturating_sub(cost);
        }
    }

    /// The session ended; the next one begins behind custody.
    pub fn disconnected(&mut self) {
        self.lanes.clear();
        self.flows.clear();
        self.sent.clear();
        self.open.clear();
        self.behind.clear();
        self.early.clear();
        if let Some(standby) = &mut self.standby {
            standby.disconnected();
        }
    }

    /// Whether the centre has named its custody.
    pub const fn is_feeding(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// Moves blocks to the session while it has room, one block of each lane in turn. `read` reads
    /// the spool, limited to the flows that it is given. `utc` tells the time at which a block is
    /// taken: blocks may be stored while a call is under way.
    ///
    /// # Errors
    /// See [`FeedError`].
    pub fn feed(
        &mut self,
        mut read: impl FnMut(
            &mut SpoolReader,
            &dyn Fn(FlowId) -> bool,
        ) -> Result<Option<SpoolItem>, SpoolError>,
        session: &mut Session,
        now: Instant,
        utc: impl Fn() -> Utc,
    ) -> Result<(), FeedError> {
        loop {
            let mut any = false;
            for index in 0..self.lanes.len() {
                let has_block = self.has_share(index) && self.fill(index, &mut read)?;
                match if has_block { self.give(index, session, now, utc())? } else { Fed::Nothing }
                {
                    Fed::Block => any = true,
                    Fed::Nothing => {}
                    Fed::Full => return Ok(()),
                }
            }
            if !any {
                return Ok(());
            }
        }
    }

    /// Whether the lane's share of the session's buffer has room.
    fn has_share(&self, index: usize) -> bool {
        let own = self.buffer / 2 / self.lanes.len().max(1) as u64;
        let beyond: u64 = self.lanes.iter().map(|lane| lane.open.saturating_sub(own)).sum();
        self.lanes.get(index).is_some_and(|lane| lane.open < own) || beyond < self.buffer / 2
    }

    /// Reads until the lane holds a block. Returns whether it does.
    fn fill(
        &mut self,
        index: usize,
        read: &mut impl FnMut(
            &mut SpoolReader,
            &dyn Fn(FlowId) -> bool,
        ) -> Result<Option<SpoolItem>, SpoolError>,
    ) -> Result<bool, FeedError> {
        while let Some(lane) = self.lanes.get_mut(index) {
            if !lane.held.is_empty() {
                return Ok(true);
            }
            let (flows, standby) = (&self.flows, self.standby.as_ref());
            let wanted = |flow: FlowId| {
                flows.get(&flow).is_none_or(|known| known.lane == index)
                    && standby.is_none_or(|standby| standby.is_released(flow))
            };
            let Some(item) = read(&mut lane.reader, &wanted)? else { return Ok(false) };
            let flow = match &item {
                SpoolItem::Block(record) => record.flow,
                SpoolItem::Missing { flow, .. } => *flow,
            };
            if self.meet(flow, &item) == index
                && let Some(lane) = self.lanes.get_mut(index)
            {
                lane.held.extend(pieces(item, lane.delivery));
            }
        }
        Ok(false)
    }

    /// The lane of the flow that an item is of.
    fn meet(&mut self, flow: FlowId, item: &SpoolItem) -> usize {
        let age = ContactAge::of(flow, &self.behind);
        let (lanes, sharing) = (&self.lanes, &self.sharing);
        let known = self.flows.entry(flow).or_insert_with(|| {
            let label = match item {
                SpoolItem::Block(record) => label(record, sharing.own()),
                SpoolItem::Missing { .. } => None,
            };
            let delivery = delivery_of(sharing, label.as_ref(), age);
            Known { lane: lane_of(lanes, delivery), label }
        });
        known.lane
    }

    /// Gives the session the block that a lane holds.
    fn give(
        &mut self,
        index: usize,
        session: &mut Session,
        now: Instant,
        taken: Utc,
    ) -> Result<Fed, FeedError> {
        let Some(lane) = self.lanes.get_mut(index) else { return Ok(Fed::Nothing) };
        let Some(piece) = lane.held.front_mut() else { return Ok(Fed::Nothing) };
        let has_begun = self.sent.contains_key(&piece.flow);
        if !has_begun {
            session.sender_mut().start_flow(piece.flow, piece.seq);
        }
        let next = session.sender().next_seq(piece.flow);
        if has_begun && piece.seq < next {
            // The session took it before the class tree was replaced.
            lane.held.pop_front();
            return Ok(Fed::Block);
        }
        if next != piece.seq {
            return Err(FeedError::Order { flow: piece.flow, given: piece.seq, next });
        }
        let verdict = self.standby.as_mut().map(|standby| {
            let reading = piece.reading.get_or_insert_with(|| BlockReading::of(&piece.payload));
            standby.verdict(piece.flow, *reading, taken)
        });
        let payload = match verdict {
            Some(BlockVerdict::Wait) => return Ok(Fed::Nothing),
            Some(BlockVerdict::KeepBack) => KEPT_BACK,
            Some(BlockVerdict::Send) | None => &piece.payload[..],
        };
        let bytes = Bytes::from(with_taken(taken, payload));
        let len = bytes.len();
        let block = Block {
            class: lane.delivery.class,
            priority: lane.delivery.priority,
            deadline: piece.due.map(|due| due.since(taken)),
            ..Block::reliable(piece.flow, bytes)
        };
        match session.send(now, block) {
            Ok(id) => {
                self.sent.insert(id.flow, id.seq.next());
                let reached = self.reached.entry(id.flow).or_insert(Seq::FIRST);
                *reached = id.seq.next().max(*reached);
                self.open.insert(id, (index, cost(len)));
                lane.open += cost(len);
                lane.held.pop_front();
                if let (Some(BlockVerdict::KeepBack), Some(standby)) = (verdict, &mut self.standby)
                {
                    standby.kept_back();
                }
                Ok(Fed::Block)
            }
            Err(SendError::Full { .. } | SendError::NotOpen) => Ok(Fed::Full),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a contact waited for its destination's return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContactAge {
    Live,
    Backlog,
}

impl ContactAge {
    fn of(flow: FlowId, behind: &BTreeSet<FlowId>) -> Self {
        if behind.contains(&flow) { Self::Backlog } else { Self::Live }
    }
}

/// How a contact is sent: as its label says, the usual way where that is not known, and behind live
/// contacts where it is backlog.
fn delivery_of(
    sharing: &LineSharing,
    label: Option<&ContactLabel>,
    age: ContactAge,
) -> SendingTerms {
    let live = label.map_or_else(|| sharing.usual(), |label| sharing.of(label));
    match (age, sharing.catch_up()) {
        (ContactAge::Backlog, Some(catch_up)) => catch_up.of(live),
        _ => live,
    }
}

/// The lane of this delivery.
fn lane_of(lanes: &[Lane], delivery: SendingTerms) -> usize {
    lanes.iter().position(|lane| lane.delivery == delivery).unwrap_or_default()
}

/// A block read from the spool.
#[derive(Debug)]
struct Piece {
    flow: FlowId,
    seq: Seq,
    payload: Vec<u8>,
    /// When it should be at the centre.
    due: Option<Utc>,
    /// What a standby wants to know of it, once it did.
    reading: Option<BlockReading>,
}

/// What a contact is of that the node `own` captured, or passes on.
fn label(record: &LogRecord, own: &str) -> Option<ContactLabel> {
    let (BlockHead { channel, mission, hops, .. }, _) = BlockHead::decode(&record.payload).ok()?;
    let station = hops.into_iter().next().map_or_else(|| own.to_owned(), |hop| hop.node);
    Some(ContactLabel { station, channel, mission })
}

/// The blocks of a record, or empty ones for a hole.
fn pieces(item: SpoolItem, delivery: SendingTerms) -> Vec<Piece> {
    match item {
        SpoolItem::Block(record) => {
            let due =
                delivery.deadline.and_then(|span| Some(BlockHead::closed(&record.payload)? + span));
            let LogRecord { flow, seq, payload, .. } = record;
            vec![Piece { flow, seq, payload, due, reading: None }]
        }
        SpoolItem::Missing { flow, first, last } => {
            let lost = |seq| {
                let payload = LOST.to_vec();
                Piece { flow, seq: Seq(seq), payload, due: None, reading: None }
            };
            (first.0..=last.0).map(lost).collect()
        }
    }
}

/// Whether a flow takes more records.
fn is_open(spool: &Spool, flow: FlowId) -> bool {
    spool.queue().open_flows().iter().any(|open| open.flow == flow)
}

#[cfg(test)]
mod tests;
