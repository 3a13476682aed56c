//! The alarms that stand.

use super::orders::alarm_id;
use super::words::named;
use crate::status::NodeStatus;
use serde_json::Value;
use skyhaul_events::AlarmStatus;

/// All alarms, the worst first, and those that others explain last; of a relay, those of both
/// parts.
pub(super) fn standing(status: &NodeStatus) -> Vec<&AlarmStatus> {
    let mut all: Vec<&AlarmStatus> = Vec::new();
    let parts = [
        status.station.as_ref().map(|part| &part.alarms),
        status.centre.as_ref().map(|part| &part.alarms),
    ];
    for alarm in parts.into_iter().flatten().flatten() {
        if !all.iter().any(|known| known.kind == alarm.kind && known.subject == alarm.subject) {
            all.push(alarm);
        }
    }
    all.sort_by_key(|alarm| (alarm.caused_by.is_some(), std::cmp::Reverse(alarm.severity)));
    all
}

/// The alarms that no other one explains.
pub(super) fn unexplained(status: &NodeStatus) -> usize {
    standing(status).iter().filter(|alarm| alarm.caused_by.is_none()).count()
}

/// An alarm.
pub(super) fn alarm(alarm: &AlarmStatus) -> Value {
    named(&alarm_id(alarm.kind, &alarm.subject), alarm)
}
