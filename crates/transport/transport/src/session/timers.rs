//! When the timers of a session expire.

use super::multipath::Multipath;
use super::timer::Timer;
use skyhaul_units::Instant;

impl Multipath {
    /// The timer that expires first.
    pub(super) fn next_timer(&self) -> Option<(Timer, Instant)> {
        let Self { sender, receiver, paths, .. } = self;
        let outbox = &sender.outbox;
        let is_holding = outbox.backlog.flows.held() > 0;
        let of_blocks = [
            (Timer::Probe, is_holding.then_some(sender.next_probe)),
            (Timer::SendExpiry, outbox.expiry_due(&paths.line())),
            (Timer::ReceiveExpiry, receiver.expiry_due()),
        ];
        let of_sending = [
            (Timer::Report, receiver.report_due()),
            (Timer::AbandonedNotice, outbox.abandoned.notice_due(paths.confirmation_time())),
            (Timer::FurtherCopy, outbox.copy_due()),
            (Timer::ClassRate, sender.sharing.class_due(self.clock, &outbox.backlog)),
            (Timer::LineRate, sender.sharing.rate_due(self.clock)),
        ];
        let usable = paths.usability();
        let of_paths = paths.attached.values().flat_map(|path| path.timers(self.clock, usable));
        // While no path brings anything over, what is to be sent waits for one.
        let has_path = paths.any_usable();
        let of_sending = of_sending.into_iter().filter(|_| has_path);
        let all = of_paths.chain(of_blocks).chain(of_sending);
        all.filter_map(|(timer, due)| Some((timer, due?))).min_by_key(|(_, due)| *due)
    }
}
