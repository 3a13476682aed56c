//! Bounds of the metrics.

use super::*;
use crate::status::{
    CentreStatus, ContactReceived, LinePath, NodeSeen, NodeSeenState, ProductStatus, StationPeer,
    StationStatus,
};
use skyhaul_events::NodeReport;

fn series(status: NodeStatus) -> usize {
    metrics_of(status).iter().map(MetricFamily::len).sum()
}

fn centre(centre: CentreStatus) -> NodeStatus {
    let station = Some(StationStatus::default());
    NodeStatus { centre: Some(centre), station, ..NodeStatus::default() }
}

#[test]
fn contacts_and_products_add_no_series() {
    let contact = |flow| ContactReceived {
        station: "s".to_owned(),
        flow,
        mission: format!("m-{flow}"),
        products: vec![ProductStatus::default(); 50],
        ..ContactReceived::default()
    };
    let with = |contacts| {
        series(centre(CentreStatus {
            contacts: (0..contacts).map(contact).collect(),
            ..CentreStatus::default()
        }))
    };
    assert_eq!(with(1), with(1_000));
}

#[test]
fn a_thousand_stations_stay_within_60_000_series() {
    let path = |name| LinePath { name, over: "udp".to_owned(), ..LinePath::default() };
    let station = |number| StationPeer {
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
    let stations = (0..1_000).map(station).collect();
    let centre = centre(CentreStatus { stations, ..CentreStatus::default() });
    let series = series(NodeStatus { nodes: (0..1_000).map(seen).collect(), ..centre });
    assert!((30_000..60_000).contains(&series), "{series}");
}
