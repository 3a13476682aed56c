//! Families and figures from counts and states of the status.

use crate::status::StoreState;
use skyhaul_web::MetricFamily;

/// Counts of the status, as figures.
#[allow(clippy::cast_precision_loss, reason = "a report")]
pub(super) fn count(value: u64) -> f64 {
    value as f64
}

pub(super) fn store_ok(state: StoreState) -> f64 {
    count(u64::from(state == StoreState::Ok))
}

pub(super) fn gauge(name: &str, help: &'static str) -> MetricFamily {
    MetricFamily::gauge(name, help)
}

pub(super) fn counter(name: &str, help: &'static str) -> MetricFamily {
    MetricFamily::counter(name, help)
}
