//! Bounds of the metrics.

use crate::many_stations;
use skyhaul_node::metrics_of;

#[test]
fn a_thousand_stations_stay_within_60_000_series() {
    let families = metrics_of(many_stations::status(1_000));
    let series: usize = families.iter().map(|family| family.len()).sum();
    assert!((30_000..60_000).contains(&series), "{series}");
}
