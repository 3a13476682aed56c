//! What is kept of the reports of other nodes: the last one of each, and how old it is.

use crate::status::{NodeSeen, NodeSeenState};
use skyhaul_events::{Moment, NodeReport, NodeReportError, Severity};
use skyhaul_units::{Duration, Instant, Utc};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which part of this node has sessions with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PeerSide {
    /// What sends: the other one is a destination.
    Destination,
    /// What receives: the other one brings contacts.
    Caller,
}

/// The nodes of which reports are wanted, by name: no more than the configuration has.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptReports {
    nodes: BTreeMap<String, KeptNode>,
}

#[derive(Debug, Clone, Default)]
struct KeptNode {
    /// The parts of this node that know it, and whether each has a session with it.
    sides: BTreeMap<PeerSide, IsConnected>,
    last: Option<LastReport>,
    /// Reports that were not taken.
    wrong: u64,
    window: TakenWindow,
}

#[derive(Debug, Clone, Copy)]
struct IsConnected(bool);

#[derive(Debug, Clone)]
struct LastReport {
    report: Arc<NodeReport>,
    at: Moment,
}

/// Messages that were looked at in the present window of [`WINDOW`].
#[derive(Debug, Clone, Copy, Default)]
struct TakenWindow {
    begun: Instant,
    count: u32,
}

/// A report is stale when so many times the span has passed in which the next one was to come.
const MISSED: u64 = 3;
/// How often a node may report: one that changes its alarms each second stays far below.
const WINDOW: Duration = Duration::from_secs(10);
const TAKEN_MAX: u32 = 64;

impl TakenWindow {
    fn takes(&mut self, now: Instant) -> bool {
        if self.count == 0 || now.since(self.begun) >= WINDOW {
            (self.begun, self.count) = (now, 0);
        }
        self.count = self.count.saturating_add(1);
        self.count <= TAKEN_MAX
    }
}

impl KeptNode {
    fn is_connected(&self) -> bool {
        self.sides.values().any(|IsConnected(is)| *is)
    }

    /// What is known of it now.
    fn seen(&self, name: &str, now: Instant) -> NodeSeen {
        let is_connected = self.is_connected();
        let unheard = || NodeSeen {
            name: name.to_owned(),
            state: NodeSeenState::Unheard,
            is_connected,
            wrong_reports: self.wrong,
            ..NodeSeen::default()
        };
        let Some(LastReport { report, at }) = &self.last else { return unheard() };
        let age = now.since(at.now);
        let is_stale = !is_connected || age > report.every().scaled(MISSED, 1);
        let state = match report.severity() {
            _ if is_stale => NodeSeenState::Stale,
            Some(_) => NodeSeenState::Alarm,
            None => NodeSeenState::Ok,
        };
        NodeSeen {
            state,
            heard: Some(at.utc.to_string()),
            age_s: Some(age.as_secs_f64()),
            started: Some(started(at.utc, report)),
            report: Some((**report).clone()),
            ..unheard()
        }
    }
}

/// When a node began, by this node's clock: to the second, as its report says.
fn started(heard: Utc, report: &NodeReport) -> String {
    let at = heard - Duration::from_secs(report.up_s);
    Utc::from_day(at.day(), Duration::from_secs(at.in_day().as_millis() / 1_000)).to_string()
}

impl KeptReports {
    fn of(&mut self, name: &str) -> &mut KeptNode {
        self.nodes.entry(name.to_owned()).or_default()
    }

    pub(super) fn expect(&mut self, side: PeerSide, name: &str) {
        self.of(name).sides.entry(side).or_insert(IsConnected(false));
    }

    pub(super) fn connected(&mut self, side: PeerSide, name: &str) {
        self.of(name).sides.insert(side, IsConnected(true));
    }

    pub(super) fn lost(&mut self, side: PeerSide, name: &str) {
        if let Some(is) = self.nodes.get_mut(name).and_then(|node| node.sides.get_mut(&side)) {
            *is = IsConnected(false);
        }
    }

    pub(super) fn forget(&mut self, side: PeerSide, name: &str) {
        let Some(node) = self.nodes.get_mut(name) else { return };
        node.sides.remove(&side);
        if node.sides.is_empty() {
            self.nodes.remove(name);
        }
    }

    /// Takes a report of a node that has a session here. Returns the first fault of its reports.
    pub(super) fn take(&mut self, at: Moment, name: &str, body: &[u8]) -> Option<NodeReportError> {
        let node = self.nodes.get_mut(name).filter(|node| node.is_connected())?;
        if !node.window.takes(at.now) {
            node.wrong += 1;
            return None;
        }
        match NodeReport::decode(body) {
            Ok(report) => {
                node.last = Some(LastReport { report: Arc::new(report), at });
                None
            }
            Err(error) => {
                node.wrong += 1;
                (node.wrong == 1).then_some(error)
            }
        }
    }

    /// All of them, the worst first.
    pub(super) fn seen(&self, now: Instant) -> Vec<NodeSeen> {
        let mut all: Vec<NodeSeen> =
            self.nodes.iter().map(|(name, node)| node.seen(name, now)).collect();
        all.sort_by_key(rank);
        all
    }
}

/// The worst come first: what is known to be lost, then what nothing is known of any more.
fn rank(seen: &NodeSeen) -> u8 {
    match (seen.severity(), seen.state) {
        (Some(Severity::Critical), _) => 0,
        (_, NodeSeenState::Stale) => 1,
        (Some(Severity::Major), _) => 2,
        (Some(Severity::Minor | Severity::Info), _) => 3,
        (None, NodeSeenState::Unheard) => 4,
        (None, NodeSeenState::Alarm | NodeSeenState::Ok) => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_events::ReportedAlarms;

    const CALLER: PeerSide = PeerSide::Caller;

    fn at(seconds: u64) -> Moment {
        let span = Duration::from_secs(seconds);
        Moment { now: Instant::ZERO + span, utc: Utc::from_micros(0) + span }
    }

    fn body(critical: u64, minor: u64) -> Vec<u8> {
        let alarms = ReportedAlarms { critical, minor, ..ReportedAlarms::default() };
        NodeReport { every_s: 10, up_s: 3, alarms, ..NodeReport::default() }.encode()
    }

    fn states(kept: &KeptReports, seconds: u64) -> Vec<(String, NodeSeenState)> {
        let seen = kept.seen(at(seconds).now).into_iter();
        seen.map(|one| (one.name, one.state)).collect()
    }

    #[test]
    fn a_report_grows_stale_when_three_were_missed_or_the_session_has_ended() {
        let mut kept = KeptReports::default();
        kept.connected(CALLER, "polar");
        let is = |state| vec![("polar".to_owned(), state)];
        assert_eq!(states(&kept, 1), is(NodeSeenState::Unheard));
        assert_eq!(kept.take(at(5), "polar", &body(0, 0)), None);
        assert_eq!(states(&kept, 35), is(NodeSeenState::Ok));
        assert_eq!(states(&kept, 36), is(NodeSeenState::Stale));
        let seen = &kept.seen(at(36).now)[0];
        assert_eq!(
            (seen.age_s, seen.heard.as_deref()),
            (Some(31.0), Some(&*at(5).utc.to_string()))
        );
        assert_eq!(seen.started.as_deref(), Some(&*at(2).utc.to_string()));
        assert_eq!(kept.take(at(40), "polar", &body(0, 1)), None);
        assert_eq!(states(&kept, 41), is(NodeSeenState::Alarm));
        kept.lost(CALLER, "polar");
        assert_eq!(states(&kept, 41), is(NodeSeenState::Stale));
    }

    #[test]
    fn the_worst_come_first() {
        let mut kept = KeptReports::default();
        for (name, critical, minor) in
            [("fine", 0, 0), ("minor", 0, 1), ("gone", 0, 0), ("bad", 2, 0), ("also-fine", 0, 0)]
        {
            kept.connected(CALLER, name);
            kept.take(at(0), name, &body(critical, minor));
        }
        kept.expect(PeerSide::Destination, "never");
        kept.lost(CALLER, "gone");
        let names: Vec<String> = states(&kept, 1).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["bad", "gone", "minor", "never", "also-fine", "fine"]);
    }

    #[test]
    fn reports_of_nobody_known_are_not_kept_and_wrong_ones_are_counted_and_said_once() {
        let mut kept = KeptReports::default();
        assert_eq!(kept.take(at(0), "stranger", &body(1, 0)), None);
        kept.expect(CALLER, "polar");
        assert_eq!(kept.take(at(0), "polar", &body(1, 0)), None);
        assert_eq!(states(&kept, 0), [("polar".to_owned(), NodeSeenState::Unheard)]);
        kept.connected(CALLER, "polar");
        kept.take(at(0), "polar", &body(0, 0));
        assert_eq!(kept.take(at(1), "polar", b"R\x02{}"), Some(NodeReportError::Form(2)));
        assert_eq!(kept.take(at(1), "polar", b"R\x01{"), None, "said before");
        let seen = &kept.seen(at(1).now)[0];
        assert_eq!((seen.state, seen.wrong_reports), (NodeSeenState::Ok, 2), "the last stays");
        assert_eq!(kept.nodes.len(), 1);
    }

    #[test]
    fn a_node_that_reports_without_end_is_read_a_bounded_number_of_times() {
        let mut kept = KeptReports::default();
        kept.connected(CALLER, "polar");
        for _ in 0..1_000 {
            kept.take(at(1), "polar", &body(0, 0));
        }
        kept.take(at(2), "polar", &body(1, 0));
        assert_eq!(kept.seen(at(2).now)[0].wrong_reports, 1_001 - u64::from(TAKEN_MAX));
        assert_eq!(states(&kept, 2)[0].1, NodeSeenState::Ok);
        kept.take(at(11), "polar", &body(1, 0));
        assert_eq!(states(&kept, 11)[0].1, NodeSeenState::Alarm);
    }

    #[test]
    fn a_node_that_two_parts_know_stays_until_both_forget_it() {
        let mut kept = KeptReports::default();
        kept.expect(PeerSide::Destination, "hub");
        kept.connected(CALLER, "hub");
        kept.take(at(0), "hub", &body(0, 0));
        kept.forget(CALLER, "hub");
        assert_eq!(states(&kept, 1), [("hub".to_owned(), NodeSeenState::Stale)]);
        kept.forget(PeerSide::Destination, "hub");
        assert!(states(&kept, 1).is_empty());
    }
}
