//! What other nodes report of themselves.

use super::families::{count, counter, gauge};
use crate::status::{NodeSeen, NodeSeenState};
use skyhaul_web::MetricFamily;

/// A node whose report is stale has no alarms here: nothing is known of them any more.
pub(super) fn all(nodes: &[NodeSeen]) -> Vec<MetricFamily> {
    if nodes.is_empty() {
        return Vec::new();
    }
    let mut alarms = gauge(
        "reported_alarms",
        "Alarms that the node reports, without those that others explain; none of a stale report.",
    );
    let mut age = gauge("report_age_seconds", "Time since the last report of the node.");
    let mut stale = gauge(
        "report_stale",
        "Whether the report of the node is old, or it never reported since this node started.",
    );
    let refused = nodes.iter().map(|one| one.wrong_reports).sum();
    let help = "Reports of other nodes that could not be read, or were too many.";
    let wrong = counter("wrong_reports", help).value(count(refused));
    for one in nodes {
        let of = [("node", &*one.name)];
        let is_fresh = matches!(one.state, NodeSeenState::Ok | NodeSeenState::Alarm);
        stale.add(&of, count(u64::from(!is_fresh)));
        if let Some(seconds) = one.age_s {
            age.add(&of, seconds);
        }
        if let Some(report) = one.report.as_ref().filter(|_| is_fresh) {
            for (severity, number) in [
                ("critical", report.alarms.critical),
                ("major", report.alarms.major),
                ("minor", report.alarms.minor),
            ] {
                alarms.add(&[of[0], ("severity", severity)], count(number));
            }
        }
    }
    vec![alarms, age, stale, wrong]
}
