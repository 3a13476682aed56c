//! What becomes of blocks: whole at the far end, too late, taken back; and how either end learns of
//! it.

use super::outgoing::id;
use super::{Flow, Outbox, block_mut, key_of};
use crate::block::{BlockId, Outcome, cost};
use crate::inflight::Slice;
use crate::ranges::RangeSet;
use crate::schedule::LineEstimate;
use crate::stats::Stats;
use crate::wire::{AbandonedNotice, FlowReport, NOTICE_MAX};
use skyhaul_units::{Duration, Instant, Seq};

/// A block the far end need not wait for.
#[derive(Debug)]
pub struct GivenUp {
    cost: u64,
    told: Option<Instant>,
}

/// What a settled block costs for as long as its place is kept: those of a flow whose first block
/// stays open, or of which the far end does not hear, are bounded by the send buffer too.
pub(super) const PLACE: u64 = cost(0);
/// Blocks given up that later ones may depend on.
const FAILED_MAX: usize = 4_096;
/// A block all under way is looked at again after this, at the soonest.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

impl Outbox {
    /// Gives a block up: nothing of it is sent any more, nor of what depends on it. Whether it was
    /// open.
    pub fn give_up(&mut self, name: BlockId, outcome: Outcome) -> bool {
        let mut stack = vec![name];
        let mut any = false;
        while let Some(name) = stack.pop() {
            let Some((cost, begun)) = self.close(name, outcome) else { continue };
            any = true;
            self.given_up.insert(name, GivenUp { cost: if begun { cost } else { 0 }, told: None });
            self.failed.push_back((name, outcome));
            if self.failed.len() > FAILED_MAX {
                self.failed.pop_front();
            }
            stack.extend(self.dependents.remove(&name).unwrap_or_default());
        }
        any
    }

    /// Gives up what cannot arrive in time any more over a line of this delay. What is all under
    /// way may still be in time: whether it was, the far end's report says within `news`.
    pub fn expire(&mut self, now: Instant, line: &LineEstimate, news: Duration) {
        while let Some((at, name)) = self.deadlines.first().copied()
            && at <= now + line.one_way_delay
        {
            self.deadlines.pop_first();
            let Some(block) = self.block(name).filter(|block| block.is_open()) else { continue };
            let Some(deadline) = block.deadline else { continue };
            if block.sent < block.len || now >= deadline + news {
                self.give_up(name, Outcome::Expired);
            } else {
                self.drop_repetitions(name);
                let look = (deadline + news).max(now + line.one_way_delay + LOOK_AGAIN);
                if let Some(block) = block_mut(&mut self.flows, name.flow, name.seq) {
                    block.look = Some(look);
                    self.deadlines.insert((look, name));
                }
            }
        }
    }

    /// What is to be sent again of a block would be late: repair may still stand for it, repetition
    /// no longer.
    fn drop_repetitions(&mut self, name: BlockId) {
        let Some(block) = block_mut(&mut self.flows, name.flow, name.seq) else { return };
        let (pending, key) = (block.pending(), key_of(name.flow, block));
        if pending > 0 {
            block.again = RangeSet::default();
            self.queues.take(key, name.seq.0, pending, 0);
        }
    }

    /// When [`Self::expire`] has something to do.
    pub fn expiry_due(&self, line: &LineEstimate) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at - line.one_way_delay)
    }

    /// What the far end has to know was given up, and has not been told for `settle`.
    pub fn notice(&mut self, now: Instant, settle: Duration) -> Option<AbandonedNotice> {
        let due = self
            .given_up
            .iter_mut()
            .filter(|(_, given)| given.is_due(now, settle))
            .take(NOTICE_MAX);
        let given_up: Vec<_> = due
            .map(|(name, given)| {
                given.told = Some(now);
                (name.flow, name.seq.0, given.cost)
            })
            .collect();
        (!given_up.is_empty()).then_some(AbandonedNotice { given_up })
    }

    /// Whether [`Self::notice`] has something, and when it will have.
    pub fn notice_due(&self, settle: Duration) -> Option<Instant> {
        self.given_up
            .values()
            .map(|given| given.told.map_or(Instant::ZERO, |told| told + settle))
            .min()
    }

    /// Takes a flow's report: frees what is whole; sends again what the path claimed but the far
    /// end denies. A denial counts only `settle` after the last claim, since the two cross on the
    /// way; without it, not at all.
    pub fn report(
        &mut self,
        now: Instant,
        report: &FlowReport,
        settle: Option<Duration>,
        stats: &mut Stats,
    ) {
        if !self.flows.contains_key(&report.flow) {
            return;
        }
        // The far end had the flow before this session, and counts nothing of it against the limit.
        let finished = report.next == Seq::FINISHED.0;
        let (first, end) = self.flows.get(&report.flow).map_or((0, 0), Flow::span);
        for seq in first..report.next.min(end) {
            self.confirm(id(report.flow, seq), finished, stats);
        }
        for (start, stop) in &report.done {
            for seq in (*start).max(first)..(*stop).min(end) {
                self.confirm(id(report.flow, seq), false, stats);
            }
        }
        let Some(flow) = self.flows.get_mut(&report.flow) else { return };
        let dropped = flow.drop_settled(|seq| self.given_up.contains_key(&id(report.flow, seq)));
        self.held -= dropped * PLACE;
        if flow.first != report.next {
            return;
        }
        let Some(block) = flow.blocks.front_mut().filter(|block| block.is_open()) else { return };
        if settle.is_none_or(|settle| now.since(block.last_arrival) < settle) {
            return;
        }
        let mut denied = Vec::new();
        for &(start, end) in &report.missing {
            let (start, end) = (start.min(block.sent), end.unwrap_or(block.sent).min(block.sent));
            if start < end && block.arrived.contains(start, end) {
                block.arrived.remove(start, end);
                block.last_arrival = now;
                stats.symbols_denied += 1;
                denied.push(Slice { flow: report.flow, seq: Seq(report.next), start, end });
            }
        }
        for slice in denied {
            self.wait_again(slice);
        }
    }

    /// The far end has a block whole, or waits for it no longer.
    fn confirm(&mut self, name: BlockId, finished: bool, stats: &mut Stats) {
        if let Some(given) = self.given_up.remove(&name)
            && finished
        {
            self.begun -= given.cost;
        }
        let Some(block) = self.block(name).filter(|block| block.sent == block.len || finished)
        else {
            return;
        };
        let len = block.len;
        let Some((cost, begun)) = self.close(name, Outcome::Delivered) else { return };
        stats.blocks_reported += 1;
        stats.bytes_reported += u64::from(len);
        if finished && begun {
            self.begun -= cost;
        }
        self.dependents.remove(&name);
    }

    /// Settles an open block: its bytes go, its place stays until those before it are settled. What
    /// it cost, and whether it was begun.
    pub(super) fn close(&mut self, name: BlockId, outcome: Outcome) -> Option<(u64, bool)> {
        let block =
            block_mut(&mut self.flows, name.flow, name.seq).filter(|block| block.is_open())?;
        let (pending, key) = (block.pending(), key_of(name.flow, block));
        let (cost, begun, look, needed) =
            (block.cost(), block.begun, block.look.take(), block.block.depends_on);
        block.settle(outcome);
        self.held -= cost - PLACE;
        if pending > 0 {
            self.queues.take(key, name.seq.0, pending, 0);
        }
        if let Some(look) = look {
            self.deadlines.remove(&(look, name));
        }
        if let Some(dependents) = needed.and_then(|needed| self.dependents.get_mut(&needed)) {
            dependents.remove(&name);
        }
        self.settled.push_back((name, outcome));
        Some((cost, begun))
    }
}

impl GivenUp {
    fn is_due(&self, now: Instant, settle: Duration) -> bool {
        self.told.is_none_or(|told| now.since(told) >= settle)
    }
}
