//! The sending half of a session: the blocks taken from the application, until their outcome is
//! known.
//!
//! [`SendBacklog`] holds the blocks and queues those that have something to send; [`Eligibility`] says
//! which of them may be sent, and [`Chooser`] which one is. Beside the queues, symbols are sent
//! once more by time ([`SpacedRetransmits`]), on further paths ([`Duplicates`]), and as probes.
//! [`Dependents`] and [`Abandoned`] follow blocks that are given up.

mod abandoned;
mod attempts;
mod backlog;
mod choice;
mod dependents;
mod duplicates;
mod eligibility;
mod flow;
mod flows;
mod offer;
mod one_way;
mod outcomes;
mod outgoing;
mod progress;
mod queues;
mod retransmit_times;
mod retransmits;
#[cfg(test)]
mod tests;
mod window;

pub use backlog::SendBacklog;
pub use offer::Offer;
pub use outgoing::{Now, Outsymbol, relative};

use crate::block::{Block, BlockId, Outcome};
use crate::classes::{ClassId, ClassPicker};
use crate::inflight::Slice;
use crate::schedule::{Candidate, LineEstimate, Policy};
use abandoned::Abandoned;
use choice::{Chooser, candidate};
use dependents::Dependents;
use duplicates::Duplicates;
use eligibility::Eligibility;
use offer::SymbolCut;
use outgoing::{BlockStage, OutgoingBlock, Sending, block_of};
use queues::QueueKey;
use retransmits::SpacedRetransmits;
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Seq};
use std::collections::{BTreeSet, VecDeque};
use window::SendWindow;

/// Blocks taken from the application whose outcome is open, and those given up of which the far end
/// must be told.
#[derive(Debug, Default)]
pub struct Outbox {
    pub backlog: SendBacklog,
    pub window: SendWindow,
    pub duplicates: Duplicates,
    pub abandoned: Abandoned,
    spaced: SpacedRetransmits,
    /// Slices sent only so that the far end answers with a report, at most one a flow.
    probes: VecDeque<Slice>,
    /// When to check whether a block is late: [`OutgoingBlock::check_at`] of each that has one.
    checks: BTreeSet<(Instant, BlockId)>,
    dependents: Dependents,
    settled: VecDeque<(BlockId, Outcome)>,
}

/// Bytes of a block that a probe carries. Any symbol makes the far end report, so a short one will
/// do.
const PROBE: u32 = 64;

impl Outbox {
    /// Takes a block, which [`flows::OutgoingFlows::admits`].
    pub fn push(&mut self, now: Instant, block: Block) -> BlockId {
        let (needed, alone) = (block.depends_on, block.useful_alone);
        let (id, outgoing) = self.backlog.push(now, block);
        if outgoing.is_expendable() {
            outgoing.check_at = outgoing.deadline;
            self.checks.extend(outgoing.deadline.map(|deadline| (deadline, id)));
        }
        if let Some(needed) = needed.filter(|_| !alone) {
            if let Some(outcome) = self.dependents.failure_of(needed) {
                self.give_up(id, outcome);
            } else if self.backlog.flows.block(needed).is_some_and(OutgoingBlock::is_open) {
                self.dependents.add(needed, id);
            }
        }
        id
    }

    /// What became of a block.
    pub fn poll_settled(&mut self) -> Option<(BlockId, Outcome)> {
        self.settled.pop_front()
    }

    /// The next symbol for the path that asks.
    pub fn next_symbol(
        &mut self,
        offer: &Offer,
        classes: &mut impl ClassPicker,
        policy: &dyn Policy,
    ) -> Option<Outsymbol> {
        if !offer.perishable_only
            && let Some(symbol) = self.next_unqueued(offer)
        {
            return Some(symbol);
        }
        let (key, id) = self.pick(offer, classes, policy).or_else(|| {
            // A path that leaves something to faster ones does not take what is hardly in time.
            let late = Offer { also_late: true, ..*offer };
            (offer.lead == 0).then(|| self.pick(&late, classes, policy)).flatten()
        })?;
        let waiting = self.backlog.queues.bytes();
        let block = self.backlog.flows.block_mut(id)?;
        if block.stage == BlockStage::Waiting {
            block.stage = BlockStage::Begun;
            self.window.begin(block.cost());
        }
        let cut = SymbolCut::of(block, waiting, offer);
        let symbol = self.backlog.next_symbol(id, cut.payload, offer.at)?;
        if self.backlog.flows.block(id).is_some_and(|block| block.pending() == 0) {
            for dependent in self.dependents.of(id) {
                self.backlog.may_follow_now(dependent);
            }
        }
        let bytes = ByteCount::of(symbol.header.len() + symbol.bytes.len());
        classes.charge(offer.at.now, key.class, bytes);
        Some(Outsymbol { protection: cut.protection, ..symbol })
    }

    fn pick(
        &mut self,
        offer: &Offer,
        classes: &mut impl ClassPicker,
        policy: &dyn Policy,
    ) -> Option<(QueueKey, BlockId)> {
        let SendBacklog { flows, queues } = &mut self.backlog;
        if queues.is_empty() {
            return None;
        }
        let (dependents, window) = (&self.dependents, &self.window);
        let mut chooser = Chooser { flows, dependents, window, offer, policy };
        let mut found: Vec<(ClassId, (QueueKey, BlockId))> = Vec::new();
        let leaf = classes.pick(offer.at.now, offer.path, |class| {
            let choice = chooser.choose(class, queues);
            found.extend(choice.map(|choice| (class, choice)));
            choice.is_some()
        })?;
        found.into_iter().find(|(class, _)| *class == leaf).map(|(_, choice)| choice)
    }

    /// A symbol that no queue holds: a probe, a further copy of a retransmission, or a duplicate of
    /// what another path carries.
    fn next_unqueued(&mut self, offer: &Offer) -> Option<Outsymbol> {
        let flows = &mut self.backlog.flows;
        while let Some(slice) = self.probes.pop_front() {
            if let Some(block) = flows.open_block_mut(block_of(&slice)) {
                let sending = if slice.start < block.progress.sent {
                    Sending::Retransmission
                } else {
                    Sending::First
                };
                return Some(block.cut(slice, offer.payload, sending, offer.at));
            }
        }
        while let Some((due, slice)) = self.spaced.pop_due(offer.at.now) {
            if let Some(symbol) = flows.cut(slice, offer.payload, Sending::Retransmission, offer.at)
            {
                // What does not fit into this datagram is sent by itself: otherwise the arrival of
                // the start would count for all of the copy.
                let rest = Slice { start: symbol.slice.end, ..slice };
                if rest.start < rest.end
                    && let Some(block) = flows.block_mut(block_of(&rest))
                {
                    block.progress.attempts.sent(rest.start, rest.end, 1);
                    self.spaced.put_back(due, rest);
                }
                return Some(symbol);
            }
        }
        while let Some(slice) = self.duplicates.pop(offer.path) {
            if let Some(symbol) = flows.cut(slice, offer.payload, Sending::First, offer.at) {
                return Some(symbol);
            }
        }
        None
    }

    /// `slice` was retransmitted, and goes out `times` in all, `gap` apart, unless it is
    /// acknowledged before.
    pub fn retransmitted(&mut self, now: Instant, slice: Slice, times: u8, gap: Duration) {
        let queued = self.spaced.add(now, slice, times, gap);
        if let Some(block) = self.backlog.flows.block_mut(block_of(&slice)) {
            block.progress.attempts.sent(slice.start, slice.end, queued);
        }
    }

    /// When the next further copy of a retransmission is due.
    pub fn copy_due(&self) -> Option<Instant> {
        self.spaced.due()
    }

    /// Whether there may be something to send.
    pub fn has_symbol(&self) -> bool {
        !self.probes.is_empty() || (!self.backlog.queues.is_empty() && !self.is_held_back())
    }

    /// Whether blocks wait only because the far end takes no more now.
    pub fn is_held_back(&self) -> bool {
        Eligibility { flows: &self.backlog.flows, window: &self.window }
            .is_held_back(&self.backlog.queues)
    }

    /// Asks for a report, where for `settle` none has said what must be known:
    ///
    /// - The paths acknowledged a block whole, and no report has confirmed it: its end is sent
    ///   again.
    /// - Blocks are held back: the start of the first one is sent, because the report that gave
    ///   more room may be lost although its path acknowledged it (compare the zero-window probes of
    ///   RFC 9293 3.8.6.1).
    pub fn probe(&mut self, now: Instant, settle: Duration) {
        if !self.probes.is_empty() {
            return;
        }
        for (flow_id, flow) in self.backlog.flows.iter_mut() {
            let seq = Seq(flow.first);
            let Some(block) = flow.blocks.front_mut() else { continue };
            let (claimed, progress) = (block.is_claimed(), &mut block.progress);
            if claimed && now.since(progress.last_arrival.max(progress.probed)) >= settle {
                progress.probed = now;
                let (start, end) = (block.len.saturating_sub(PROBE), block.len);
                self.probes.push_back(Slice { flow: flow_id, seq, start, end });
            }
        }
        let held_back = self.is_held_back().then(|| self.backlog.queues.heads().next()).flatten();
        if let Some((_, id)) = held_back
            && let Some(block) = self.backlog.flows.block_mut(id)
            && now.since(block.progress.probed) >= settle
        {
            block.progress.probed = now;
            let end = PROBE.min(block.len);
            self.probes.push_back(Slice { flow: id.flow, seq: id.seq, start: 0, end });
        }
    }

    /// Candidates with something to send, in the order of scheduling, by flow.
    pub fn candidates(
        &self,
        now: Instant,
        line: &LineEstimate,
        policy: &dyn Policy,
    ) -> Vec<(FlowId, Candidate)> {
        let SendBacklog { flows, queues } = &self.backlog;
        let mut found: Vec<_> = queues
            .heads()
            .filter_map(|(key, id)| {
                let unsent = ByteCount::new(queues.get(key)?.bytes);
                let block = flows.block(id)?;
                let candidate =
                    Candidate { unsent, ..candidate(flows, &self.dependents, id, block) };
                Some((policy.key(now, &candidate, line), (key.flow, candidate)))
            })
            .collect();
        found.sort_by_key(|(key, _)| *key);
        found.into_iter().map(|(_, found)| found).collect()
    }
}
