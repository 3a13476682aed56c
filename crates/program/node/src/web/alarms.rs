//! The alarms that stand.

use super::orders::alarm_id;
use super::words::named;
use serde_json::Value;
use skyhaul_events::AlarmStatus;

/// An alarm.
pub(super) fn alarm(alarm: &AlarmStatus) -> Value {
    named(&alarm_id(alarm.kind, &alarm.subject), alarm)
}
