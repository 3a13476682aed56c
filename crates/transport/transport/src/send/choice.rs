//! The block that a path with room carries next: of those that may be sent, in the order of the
//! policy, the first that this path does not leave to faster ones.

use super::dependents::Dependents;
use super::eligibility::Eligibility;
use super::flows::OutgoingFlows;
use super::offer::Offer;
use super::outgoing::{OutgoingBlock, id};
use super::queues::{Queue, QueueKey, Queues};
use super::window::SendWindow;
use crate::block::BlockId;
use crate::classes::ClassId;
use crate::schedule::{Candidate, Followers, Policy, SendOrder, Worth, can_arrive};
use skyhaul_units::ByteCount;

/// Blocks of one queue that are searched for one that may be sent: bounds the time of a choice.
const LOOK_AHEAD: usize = 16;
/// Followers of a block that count for its rank: a group of pictures of one second.
const FOLLOWERS_MAX: usize = 32;

/// One choice for one offer.
pub struct Chooser<'a> {
    pub flows: &'a mut OutgoingFlows,
    pub dependents: &'a Dependents,
    pub window: &'a SendWindow,
    pub offer: &'a Offer,
    pub policy: &'a dyn Policy,
}

impl Chooser<'_> {
    /// The block of `class` that this path should carry next.
    pub fn choose(&mut self, class: ClassId, queues: &mut Queues) -> Option<(QueueKey, BlockId)> {
        let order = queues.order(self.offer.at.now, class, |key, queue| self.first(key, queue));
        let mut lead = self.offer.lead;
        let found = order.iter().find_map(|(key, first)| {
            let queue = queues.get(key)?;
            self.choose_in(key, queue, first, &mut lead).map(|name| (key, name))
        });
        queues.keep(class, order);
        found
    }

    /// The block of a queue that goes first, with its rank. Expendable blocks do not wait for one
    /// another: of those that may be sent, the one of the smallest rank. Reliable ones go in the
    /// flow's order.
    fn first(&self, key: QueueKey, queue: &Queue) -> Option<(SendOrder, u64)> {
        let flow = self.flows.get(key.flow)?;
        let blocks =
            queue.places.iter().take(LOOK_AHEAD).filter_map(|seq| Some((*seq, flow.block(*seq)?)));
        let ranked = |(seq, block): (u64, &OutgoingBlock)| {
            let candidate = candidate(self.flows, self.dependents, id(key.flow, seq), block);
            (self.policy.key(self.offer.at.now, &candidate, &self.offer.line), seq)
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
        let eligibility = self.eligibility();
        blocks
            .filter(|(_, block)| eligibility.may_follow(block) && in_turn(block))
            .map(ranked)
            .min()
    }

    /// The block of a queue that this path should carry, where `lead` bytes of the queues from this
    /// one on are left to faster paths. What they take of this queue is subtracted from `lead`.
    fn choose_in(
        &mut self,
        key: QueueKey,
        queue: &Queue,
        first: u64,
        lead: &mut u64,
    ) -> Option<BlockId> {
        let pin = self.flows.pinned_to(key.flow);
        if pin.is_some_and(|pin| pin != self.offer.path) {
            return None;
        }
        // No other path carries a flow that is pinned to this one.
        let no_lead = &mut 0;
        let lead = if pin.is_some() { no_lead } else { lead };
        if *lead >= queue.bytes {
            *lead -= queue.bytes;
            return None;
        }
        self.flows.get_mut(key.flow)?.skip_begun();
        let flow = self.flows.get(key.flow)?;
        let eligibility = self.eligibility();
        let fits = |seq: &u64| {
            flow.block(*seq).is_some_and(|block| {
                eligibility.may_begin(flow, *seq, block)
                    && eligibility.may_follow(block)
                    && suits(block, self.offer)
            })
        };
        let begins = *queue.places.first()?;
        let left = core::mem::take(lead);
        let from = match flow.block(first).map(OutgoingBlock::pending) {
            // Faster paths do not finish this block before what is sent here now arrives.
            Some(pending) if pending > left && fits(&first) => return Some(id(key.flow, first)),
            _ if left == 0 => begins,
            // Skip as many blocks as the faster paths take meanwhile.
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

    const fn eligibility(&self) -> Eligibility<'_> {
        Eligibility { flows: self.flows, window: self.window }
    }
}

/// What scheduling has to know of a block: itself, and the blocks that depend on it.
pub fn candidate(
    flows: &OutgoingFlows,
    dependents: &Dependents,
    name: BlockId,
    block: &OutgoingBlock,
) -> Candidate {
    let mut followers = Followers::default();
    let waiting = dependents.of(name).take(FOLLOWERS_MAX);
    for follower in waiting.filter_map(|name| flows.block(name)) {
        followers.count += 1;
        followers.unsent += ByteCount::new(follower.pending());
    }
    Candidate { followers, ..block.candidate() }
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
    // A block without deadline is never late without this path.
    let needed = offer.only_late_for.is_none_or(|others| {
        block.deadline.is_some() && can_arrive(offer.at.now, &candidate, &others) != Worth::Start
    });
    in_time && needed && (block.is_expendable() || !offer.perishable_only)
}
