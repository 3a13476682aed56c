//! How the outcome of a block becomes known: the far end confirms it, its deadline passes, or the
//! application takes it back.

use super::Outbox;
use super::outgoing::{BlockStage, id};
use crate::block::{BlockId, Outcome};
use crate::inflight::Slice;
use crate::schedule::LineEstimate;
use crate::stats::SentStats;
use crate::wire::FlowReport;
use skyhaul_units::{Duration, FlowId, Instant, Seq};

/// What a block that is resolved had cost the far end.
pub(super) struct Resolved {
    cost: u64,
    was_begun: bool,
}

/// Who counts a confirmed block against the limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Confirmation {
    /// The far end does: it came in this session.
    Counted,
    /// Nobody: the far end had finished the flow before this session.
    Uncounted,
}

/// The earliest next check of a late block that is in flight whole. Checks in between would find
/// nothing new: reports come no more often.
const CHECK_AGAIN: Duration = Duration::from_millis(10);

impl Outbox {
    /// Gives a block up: nothing more of it is sent, nor of what depends on it. Returns whether it
    /// was open.
    pub fn give_up(&mut self, id: BlockId, outcome: Outcome) -> bool {
        let mut stack = vec![id];
        let mut any = false;
        while let Some(id) = stack.pop() {
            let Some(resolved) = self.resolve(id, outcome) else { continue };
            any = true;
            self.abandoned.add(id, if resolved.was_begun { resolved.cost } else { 0 });
            self.dependents.failed(id, outcome);
            stack.extend(self.dependents.take(id));
        }
        any
    }

    /// Gives up what cannot arrive in time any more over a line of this delay. A block that is in
    /// flight whole may still be in time: the far end's report says so within `news`.
    pub fn expire(&mut self, now: Instant, line: &LineEstimate, news: Duration) {
        while let Some((at, id)) = self.checks.first().copied()
            && at <= now + line.one_way_delay
        {
            self.checks.pop_first();
            let Some(block) = self.backlog.flows.open_block_mut(id) else { continue };
            let Some(deadline) = block.deadline else { continue };
            if !block.is_sent_whole() || now >= deadline + news {
                self.give_up(id, Outcome::Expired);
            } else {
                let next = (deadline + news).max(now + line.one_way_delay + CHECK_AGAIN);
                block.check_at = Some(next);
                self.checks.insert((next, id));
                self.backlog.drop_retransmits(id);
            }
        }
    }

    /// When [`Self::expire`] has something to do.
    pub fn expiry_due(&self, line: &LineEstimate) -> Option<Instant> {
        self.checks.first().map(|(at, _)| *at - line.one_way_delay)
    }

    /// Takes a flow's report: frees the blocks that arrived whole, and retransmits what a path
    /// acknowledged but the far end lacks. Since such a denial and the acknowledgement may cross on
    /// the way, it counts only `settle` after the last acknowledgement; without `settle`, never.
    pub fn report(
        &mut self,
        now: Instant,
        report: &FlowReport,
        settle: Option<Duration>,
        stats: &mut SentStats,
    ) {
        let Some(flow) = self.backlog.flows.get(report.flow) else { return };
        let (first, end) = (flow.first, flow.end());
        let confirmation = if report.next == Seq::FINISHED.0 {
            Confirmation::Uncounted
        } else {
            Confirmation::Counted
        };
        for seq in first..report.next.min(end) {
            self.confirm(id(report.flow, seq), confirmation, stats);
        }
        for (start, stop) in &report.done {
            for seq in (*start).max(first)..(*stop).min(end) {
                self.confirm(id(report.flow, seq), Confirmation::Counted, stats);
            }
        }
        self.drop_confirmed(report.flow);
        if let Some(settle) = settle {
            self.deny(now, report, settle, stats);
        }
    }

    /// Retransmits what a path acknowledged of the first block of a flow but its report denies.
    fn deny(&mut self, now: Instant, report: &FlowReport, settle: Duration, stats: &mut SentStats) {
        let id = id(report.flow, report.next);
        if self.backlog.flows.first_held(report.flow) != report.next {
            return;
        }
        let Some(block) = self.backlog.flows.open_block_mut(id) else { return };
        let progress = &mut block.progress;
        if now.since(progress.last_arrival) < settle {
            return;
        }
        let sent = progress.sent;
        let mut denied = Vec::new();
        for &(start, end) in &report.missing {
            let (start, end) = (start.min(sent), end.unwrap_or(sent).min(sent));
            if progress.deny(now, start, end) {
                denied.push(Slice { flow: id.flow, seq: id.seq, start, end });
            }
        }
        stats.symbols_denied += denied.len() as u64;
        for slice in denied {
            self.backlog.retransmit_anyway(slice);
        }
    }

    /// The far end has a block whole, or waits for it no longer.
    fn confirm(&mut self, id: BlockId, confirmation: Confirmation, stats: &mut SentStats) {
        let finished = confirmation == Confirmation::Uncounted;
        if let Some(cost) = self.abandoned.remove(id)
            && finished
        {
            self.window.refund(cost);
        }
        let block = self.backlog.flows.block(id);
        // Of a block that is not sent whole, a report in this session cannot be true.
        let Some(block) = block.filter(|block| block.is_sent_whole() || finished) else { return };
        let len = block.len;
        let Some(resolved) = self.resolve(id, Outcome::Delivered) else { return };
        stats.blocks_reported += 1;
        stats.bytes_reported += u64::from(len);
        if finished && resolved.was_begun {
            self.window.refund(resolved.cost);
        }
        self.dependents.take(id);
    }

    /// Drops the blocks of a flow that neither end needs.
    pub(super) fn drop_confirmed(&mut self, flow: FlowId) {
        let abandoned = &self.abandoned;
        self.backlog.flows.drop_resolved(flow, |id| abandoned.contains(id));
    }

    /// The outcome of an open block is known. None if it was known before.
    pub(super) fn resolve(&mut self, id: BlockId, outcome: Outcome) -> Option<Resolved> {
        let block = self.backlog.flows.open_block_mut(id)?;
        let resolved = Resolved { cost: block.cost(), was_begun: block.stage == BlockStage::Begun };
        if let Some(check) = block.check_at.take() {
            self.checks.remove(&(check, id));
        }
        if let Some(needed) = block.block.depends_on {
            self.dependents.remove(needed, id);
        }
        self.backlog.resolve(id);
        self.settled.push_back((id, outcome));
        Some(resolved)
    }
}
