//! The timers of a session: what each is for, and when it expires.

use super::multipath::Multipath;
use super::sender::Sender;
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

impl Multipath {
    /// The timer that expires first.
    pub(super) fn next_timer(&self) -> Option<(Timer, Instant)> {
        let usable = self.paths.usability();
        let paths = &self.paths.attached;
        let of_paths = paths.values().flat_map(|path| path.timers(self.clock, usable));
        // While no path brings anything over, what is to be sent waits for one.
        let has_path = self.paths.any_usable();
        let sending = self.sending_timers().into_iter().filter(|_| has_path);
        let all = of_paths.chain(self.block_timers()).chain(sending);
        all.filter_map(|(timer, due)| Some((timer, due?))).min_by_key(|(_, due)| *due)
    }

    /// The timers of blocks, at both ends of their way.
    fn block_timers(&self) -> [(Timer, Option<Instant>); 3] {
        let Sender { outbox, next_probe, .. } = &self.sender;
        [
            (Timer::Probe, (outbox.backlog.flows.held() > 0).then_some(*next_probe)),
            (Timer::SendExpiry, outbox.expiry_due(&self.paths.line())),
            (Timer::ReceiveExpiry, self.receiver.expiry_due()),
        ]
    }

    /// The timers of what any usable path may carry.
    fn sending_timers(&self) -> [(Timer, Option<Instant>); 4] {
        let outbox = &self.sender.outbox;
        [
            (Timer::Report, self.receiver.report_due()),
            (Timer::AbandonedNotice, outbox.abandoned.notice_due(self.paths.confirmation_time())),
            (Timer::FurtherCopy, outbox.copy_due()),
            (Timer::ClassRate, self.sender.class_due(self.clock)),
        ]
    }
}
