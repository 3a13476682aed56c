//! Which block a path that has room is given: of the blocks that may go, in the order of the
//! policy, the first that this path does not leave to faster ones.

use super::outgoing::{OutgoingBlock, id};
use super::queues::{Queue, QueueKey};
use super::{Flow, Offer, Outbox};
use crate::block::{Block, BlockId};
use crate::classes::ClassId;
use crate::schedule::{Candidate, Followers, Policy, SendOrder, Worth, can_arrive};
use skyhaul_units::ByteCount;

/// Blocks looked at in one queue for one that may be sent.
const LOOK_AHEAD: usize = 16;
/// Followers of a block that count for its rank: a group of pictures of one second.
const FOLLOWERS_MAX: usize = 32;
/// Blocks of a flow behind which others wait in queues of their own; those of further ones wait in
/// their flow's order.
const QUEUES_MAX: usize = 32;

impl Outbox {
    /// The block of its flow behind which a new block waits, in a queue apart: when that one is
    /// sent or given up, all of these are worth their bytes or nothing, whatever else the flow has.
    pub(super) fn after(&self, name: BlockId, new: &Block) -> Option<u64> {
        let needed =
            new.depends_on.filter(|needed| needed.flow == name.flow && !new.useful_alone)?;
        let after = match self.block(needed) {
            Some(needed) if !needed.is_expendable() => return None,
            Some(block) => block.after.unwrap_or(needed.seq.0),
            None => needed.seq.0,
        };
        let key = QueueKey {
            class: new.class,
            priority: new.priority,
            flow: new.flow,
            after: Some(after),
        };
        self.queues.has_or_fits(key, QUEUES_MAX).then_some(after)
    }

    /// The block of `class` that this path should carry next.
    pub(super) fn choose(
        &mut self,
        class: ClassId,
        offer: &Offer,
        policy: &dyn Policy,
    ) -> Option<(QueueKey, BlockId)> {
        let mut queues = core::mem::take(&mut self.queues);
        let order =
            queues.order(offer.at.now, class, |key, queue| self.first(key, queue, offer, policy));
        self.queues = queues;
        let mut lead = offer.lead;
        let found = order.iter().find_map(|(key, first)| {
            self.choose_in(key, first, &mut lead, offer).map(|name| (key, name))
        });
        self.queues.keep(class, order);
        found
    }

    /// The block of a queue that goes first, with its rank: of expendable ones that may be sent the
    /// one of the smallest rank, since none of them waits for another; of others the first in the
    /// flow's order.
    fn first(
        &self,
        key: QueueKey,
        queue: &Queue,
        offer: &Offer,
        policy: &dyn Policy,
    ) -> Option<(SendOrder, u64)> {
        let (now, line) = (offer.at.now, offer.line);
        let flow = self.flows.get(&key.flow)?;
        let blocks =
            queue.places.iter().take(LOOK_AHEAD).filter_map(|seq| Some((*seq, flow.block(*seq)?)));
        let ranked = |(seq, block): (u64, &OutgoingBlock)| {
            (policy.key(now, &self.candidate(id(key.flow, seq), block), &line), seq)
        };
        let mut blocks = blocks.peekable();
        if !blocks.peek()?.1.is_expendable() {
            return blocks.next().map(ranked);
        }
        let mut reliable = 0;
        let mut in_turn = |block: &OutgoingBlock| {
            reliable += usize::from(!block.is_expendable());
            block.is_expendable() || reliable == 1
        };
        blocks.filter(|(_, block)| self.may_follow(block) && in_turn(block)).map(ranked).min()
    }

    /// What scheduling has to know of a block.
    pub(super) fn candidate(&self, name: BlockId, block: &OutgoingBlock) -> Candidate {
        let mut followers = Followers::default();
        let waiting = self.dependents.get(&name).into_iter().flatten().take(FOLLOWERS_MAX);
        for follower in waiting.filter_map(|name| self.block(*name)) {
            followers.count += 1;
            followers.unsent += ByteCount::new(follower.pending());
        }
        Candidate { followers, ..block.candidate() }
    }

    fn choose_in(
        &mut self,
        key: QueueKey,
        first: u64,
        lead: &mut u64,
        offer: &Offer,
    ) -> Option<BlockId> {
        let pin = self.pins.get(&key.flow);
        if pin.is_some_and(|pin| *pin != offer.path) {
            return None;
        }
        // No other path brings what is pinned to this one.
        let no_lead = &mut 0;
        let lead = if pin.is_some() { no_lead } else { lead };
        let queue = self.queues.get(key)?;
        if *lead >= queue.bytes {
            *lead -= queue.bytes;
            return None;
        }
        let flow = self.flows.get_mut(&key.flow)?;
        while flow.block(flow.unbegun).is_some_and(|block| block.begun || !block.is_open()) {
            flow.unbegun += 1;
        }
        let flow = self.flows.get(&key.flow)?;
        let fits = |seq: &u64| {
            let block = flow.block(*seq);
            block.is_some_and(|block| {
                self.may_begin(flow, *seq, block) && self.may_follow(block) && suits(block, offer)
            })
        };
        let begins = *queue.places.first()?;
        let left = core::mem::take(lead);
        let from = match flow.block(first).map(OutgoingBlock::pending) {
            // The faster paths will not be through with it: what goes here now arrives before they
            // are.
            Some(pending) if pending > left && fits(&first) => return Some(id(key.flow, first)),
            _ if left == 0 => begins,
            _ => {
                let begins = flow.block(begins)?;
                let beyond = begins.start + begins.cost() - begins.pending() + left;
                flow.first
                    + flow.blocks.partition_point(|block| block.start + block.cost() <= beyond)
                        as u64
            }
        };
        let seq = queue.places.range(from..).take(LOOK_AHEAD).copied().find(fits)?;
        Some(id(key.flow, seq))
    }

    /// Whether the far end takes `block`. A reliable one is delivered after those before it in its
    /// flow, and keeps its room until then: they must find room as well, and so must what they
    /// depend on in other flows.
    pub(super) fn may_begin(&self, flow: &Flow, seq: u64, block: &OutgoingBlock) -> bool {
        if block.begun {
            return true;
        }
        let mut ahead = 0;
        if seq > flow.unbegun && !block.is_expendable() {
            ahead = flow.block(flow.unbegun).map_or(0, |unbegun| block.start - unbegun.start);
            let waits =
                |place: &u64| flow.block(*place).is_some_and(|block| self.waits_for_unbegun(block));
            if flow.foreign.range(flow.unbegun..seq).any(waits) {
                return false;
            }
        }
        self.begun + ahead + block.cost() <= self.limit
    }

    fn waits_for_unbegun(&self, block: &OutgoingBlock) -> bool {
        let needed = block.block.depends_on.filter(|_| block.is_open() && !block.begun);
        needed
            .and_then(|needed| self.block(needed))
            .is_some_and(|needed| needed.is_open() && !needed.begun)
    }

    /// Whether what the block depends on has been sent whole: before that it would take room from
    /// it.
    fn may_follow(&self, block: &OutgoingBlock) -> bool {
        let needed = block.block.depends_on.and_then(|needed| self.block(needed));
        needed.is_none_or(|needed| !needed.is_open() || needed.sent == needed.len)
    }
}

/// Whether the path may carry this block: in time, and only if it must where it costs.
fn suits(block: &OutgoingBlock, offer: &Offer) -> bool {
    let candidate = block.candidate();
    let in_time = !block.is_expendable()
        || match can_arrive(offer.at.now, &candidate, &offer.line) {
            Worth::Start => true,
            Worth::Wait => offer.also_late,
            Worth::TooLate => false,
        };
    let needed = offer.only_late_for.is_none_or(|others| {
        block.deadline.is_some() && can_arrive(offer.at.now, &candidate, &others) != Worth::Start
    });
    in_time && needed && (block.is_expendable() || !offer.perishable_only)
}
