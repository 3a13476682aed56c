//! When this node reports itself in a session.

use super::desk::ReportDesk;
use bytes::Bytes;
use skyhaul_events::NodeReport;
use skyhaul_net::SessionManager;
use skyhaul_sessions::SessionId;
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// The reports of this node in one session.
#[derive(Debug, Default)]
pub(crate) struct SessionReports {
    /// When the next one is due.
    due: Instant,
    /// When one may go before, because the alarms are others.
    soonest: Instant,
    /// The change that the last one had.
    told: Option<u64>,
}

/// Between two reports where the line has room.
const EVERY: Duration = Duration::from_secs(10);
/// On a thin line reports take a hundredth of it, as far as one within this span does.
const LEAST: Duration = Duration::from_secs(600);
const SHARE: u64 = 100;
/// Other alarms are told this many times sooner.
const SOONER: u64 = 10;
/// After a message that the line had no room for.
const RETRY: Duration = Duration::from_secs(1);

impl SessionReports {
    /// Sends a report, where one is due and the session is open.
    pub(crate) fn work(
        &mut self,
        now: Instant,
        desk: &ReportDesk,
        manager: &mut SessionManager,
        id: SessionId,
    ) {
        let change = desk.change();
        if !self.is_due(now, change) {
            return;
        }
        let Some(own) = desk.own() else { return };
        let rate = manager.estimate(id).map(|estimate| estimate.rate);
        let Some(session) = manager.session(id).filter(|session| session.is_open()) else { return };
        let (body, pause) = message(&own, rate);
        match session.control_mut().tell(Bytes::from(body)) {
            Ok(()) => self.went(now, pause, change),
            // What waits for the line is worth more: receipts, and questions for missing frames.
            Err(_) => (self.due, self.soonest) = (now + RETRY, now + RETRY),
        }
    }

    fn is_due(&self, now: Instant, change: u64) -> bool {
        now >= self.due || (self.told != Some(change) && now >= self.soonest)
    }

    fn went(&mut self, now: Instant, pause: Duration, change: u64) {
        self.due = now + pause;
        self.soonest = now + pause.scaled(1, SOONER);
        self.told = Some(change);
    }
}

/// A report for a line of this rate, and the time until the next one, which it names.
fn message(own: &NodeReport, rate: Option<Rate>) -> (Vec<u8>, Duration) {
    let every = |pause: Duration| {
        let every_s = pause.as_millis().div_ceil(1_000).clamp(1, NodeReport::EVERY_MAX_S);
        NodeReport { every_s, ..own.clone() }.encode()
    };
    let body = every(EVERY);
    let takes = rate.map(|rate| rate.time_for(ByteCount::of(body.len())).scaled(SHARE, 1));
    match takes.unwrap_or(EVERY).clamp(EVERY, LEAST) {
        EVERY => (body, EVERY),
        pause => (every(pause), pause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_report_goes_every_ten_seconds_and_after_a_second_where_alarms_change() {
        let mut reports = SessionReports::default();
        assert!(reports.is_due(at(0), 1), "the first of a session");
        reports.went(at(0), EVERY, 1);
        assert!(!reports.is_due(at(9_999), 1) && reports.is_due(at(10_000), 1));
        assert!(!reports.is_due(at(999), 2) && reports.is_due(at(1_000), 2));
    }

    #[test]
    fn on_a_thin_line_reports_take_a_hundredth_of_it_and_say_when_the_next_one_comes() {
        let own = NodeReport { version: "1".to_owned(), ..NodeReport::default() };
        let (body, pause) = message(&own, Some(Rate::from_mbps(10)));
        assert_eq!((pause, NodeReport::decode(&body).unwrap().every_s), (EVERY, 10));
        let thin = Rate::from_bps(2_400);
        let (body, pause) = message(&own, Some(thin));
        let read = NodeReport::decode(&body).unwrap();
        assert!(read.every() >= pause && pause > EVERY, "{pause}");
        let share = thin.time_for(ByteCount::of(body.len())).scaled(90, 1);
        assert!(share <= pause, "{pause}");
        assert_eq!(message(&own, Some(Rate::from_bps(1))).1, LEAST);
        assert_eq!(message(&own, None).1, EVERY);
    }
}
