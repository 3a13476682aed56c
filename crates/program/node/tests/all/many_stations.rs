//! The status of a centre with more stations than a machine has room for: four paths each, and all
//! of them report themselves.

use skyhaul_events::NodeReport;
use skyhaul_node::status::{
    CentreStatus, LinePath, NodeSeen, NodeSeenState, NodeStatus, StationPeer, StationStatus,
};

pub fn status(stations: usize) -> NodeStatus {
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
