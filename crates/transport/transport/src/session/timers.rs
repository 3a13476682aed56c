//! The timers of a session: what each is for, and when it expires.

use super::Session;
use super::attached::Attached;
use super::health::UsablePaths;
use crate::reassembly::Inbox;
use skyhaul_units::Instant;

/// What a session waits for. [`Session::next_timeout`] is the earliest of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    /// Look for blocks whose last symbols the far end never acknowledged.
    Probe,
    /// A block to be sent can no longer arrive before its deadline.
    SendExpiry,
    /// A block in reassembly has passed its deadline.
    ReceiveExpiry,
    /// A report to the far end.
    Report,
    /// A notice of abandoned blocks, for the first time or again.
    AbandonedNotice,
    /// A further copy of a retransmitted slice.
    FurtherCopy,
    /// The rate of a class lets its next symbol go.
    ClassRate,
    /// A datagram under way on a path counts as lost.
    Loss,
    /// An open group of a path closes, or its next FEC repair symbol goes out.
    RepairGroup,
    /// A path's last symbols get FEC repair ahead of any loss.
    RepairTail,
    /// A path may be silent: what was retransmitted there goes on another too.
    SilenceDoubted,
    /// A path counts as stalled, silent or as a black hole.
    Stall,
    /// A stalled path is tried again.
    StalledPathTry,
    /// An outage or a rate that was foretold of a path begins or ends.
    HintChange,
    /// A path's new datagram size has stayed for long enough to be reported.
    PathResize,
}

impl Session {
    /// When [`Session::handle_timeout`] is due, or a datagram will be.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.next_timer().map(|(_, due)| due)
    }

    /// The timer that expires first.
    fn next_timer(&self) -> Option<(Timer, Instant)> {
        if self.closed {
            return None;
        }
        let usable = self.usable_paths();
        let paths = self.paths.values().flat_map(move |path| self.path_timers(path, usable));
        // While no path brings anything over, what is to be sent waits for one.
        let has_path = self.paths.values().any(Attached::is_usable);
        let sending = self.sending_timers().into_iter().filter(move |_| has_path);
        let all = paths.chain(self.block_timers()).chain(sending);
        all.filter_map(|(timer, due)| Some((timer, due?))).min_by_key(|(_, due)| *due)
    }

    /// The timers of blocks, at both ends of their way.
    fn block_timers(&self) -> [(Timer, Option<Instant>); 3] {
        [
            (Timer::Probe, (self.outbox.backlog.flows.held() > 0).then_some(self.next_probe)),
            (Timer::SendExpiry, self.outbox.expiry_due(&self.line())),
            (Timer::ReceiveExpiry, self.inbox.as_ref().and_then(Inbox::expiry_due)),
        ]
    }

    /// The timers of what any usable path may carry.
    fn sending_timers(&self) -> [(Timer, Option<Instant>); 4] {
        [
            (Timer::Report, self.report_due()),
            (Timer::AbandonedNotice, self.outbox.abandoned.notice_due(self.settle())),
            (Timer::FurtherCopy, self.outbox.copy_due()),
            (Timer::ClassRate, self.class_due()),
        ]
    }

    /// The timers of one path.
    fn path_timers(&self, path: &Attached, usable: UsablePaths) -> [(Timer, Option<Instant>); 8] {
        // Silence during an outage that was foretold means nothing, and nothing is sent then.
        let unless_absent = |due: Option<Instant>| due.filter(|_| !path.hints.is_absent());
        // Nothing but a try now and then goes on a stalled path, so that repair waits.
        let unless_stalled = |due: Option<Instant>| due.filter(|_| !path.is_stalled());
        // Without another path there is none to send copies on; a doubt that has passed is settled.
        let several = usable == UsablePaths::Several;
        let is_doubtful = |at: &Instant| several && path.is_usable() && *at > self.clock;
        let loss = path.inflight.next_timeout().map(|due| due.max(path.hints.judge_from));
        [
            (Timer::Loss, loss),
            (Timer::RepairGroup, unless_absent(unless_stalled(path.coder.next_timeout()))),
            (Timer::RepairTail, unless_absent(unless_stalled(self.tail_due(path)))),
            (Timer::SilenceDoubted, path.doubted_at().filter(is_doubtful)),
            (Timer::Stall, unless_absent(path.stalls_at(usable))),
            (Timer::StalledPathTry, unless_absent(path.is_stalled().then_some(path.try_at))),
            (Timer::HintChange, path.hints.next_change(self.clock)),
            (Timer::PathResize, path.size_due()),
        ]
    }
}
