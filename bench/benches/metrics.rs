//! What a scrape of the metrics of a centre costs that has 1,000 stations of four paths each, all
//! of which report themselves. Bar: 250 ms, and fewer than 60,000 series.
#![allow(clippy::disallowed_methods, reason = "wall-clock figures, to be read")]

use skyhaul_events::NodeReport;
use skyhaul_node::metrics_of;
use skyhaul_node::status::{
    CentreStatus, LinePath, NodeSeen, NodeSeenState, NodeStatus, StationPeer, StationStatus,
};
use skyhaul_web::{ExpositionForm, MetricFamily, exposition};
use std::time::Instant;

/// The slowest and the median of so many turns are told.
const TURNS: usize = 21;

fn status(stations: usize) -> NodeStatus {
    let path = |name| LinePath { name, over: "udp".to_owned(), ..LinePath::default() };
    let peer = |number| StationPeer {
        name: format!("s-{number}"),
        paths: (0..4).map(|nth| path(format!("s-{number}/{nth}"))).collect(),
        ..StationPeer::default()
    };
    let seen = |number| NodeSeen {
        name: format!("s-{number}"),
        state: NodeSeenState::Ok,
        age_s: Some(1.0),
        report: Some(NodeReport::default()),
        ..NodeSeen::default()
    };
    let stations_of = (0..stations).map(peer).collect();
    NodeStatus {
        centre: Some(CentreStatus { stations: stations_of, ..CentreStatus::default() }),
        station: Some(StationStatus::default()),
        nodes: (0..stations).map(seen).collect(),
        ..NodeStatus::default()
    }
}

fn main() {
    for stations in [1, 100, 1_000] {
        let mut spans = Vec::new();
        let (mut series, mut bytes) = (0, 0);
        for _ in 0..TURNS {
            let status = status(stations);
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
