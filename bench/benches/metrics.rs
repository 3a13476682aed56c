//! What a scrape of the metrics of a centre costs that has 1,000 stations of four paths each, all
//! of which report themselves. Bar: 250 ms, and fewer than 60,000 series.
#![allow(clippy::disallowed_methods, reason = "wall-clock figures, to be read")]

#[path = "../../crates/program/node/tests/all/many_stations.rs"]
mod many_stations;

use skyhaul_node::metrics_of;
use skyhaul_web::{ExpositionForm, MetricFamily, exposition};
use std::time::Instant;

/// The slowest and the median of so many turns are told.
const TURNS: usize = 21;

fn main() {
    for stations in [1, 100, 1_000] {
        let mut spans = Vec::new();
        let (mut series, mut bytes) = (0, 0);
        for _ in 0..TURNS {
            let status = many_stations::status(stations);
            let begun = Instant::now();
            let families = metrics_of(status);
            bytes = exposition(&families, ExpositionForm::OpenMetrics).len();
            spans.push(begun.elapsed().as_secs_f64() * 1e3);
            series = families.iter().map(MetricFamily::len).sum();
        }
        spans.sort_by(f64::total_cmp);
        println!(
            "{stations} stations: {series} series, {bytes} bytes in {:.1} ms (median), {:.1} ms \
             (worst of {TURNS}); bar 60,000 series, 250 ms",
            spans[TURNS / 2],
            spans[TURNS - 1]
        );
    }
}
