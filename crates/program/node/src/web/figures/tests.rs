//! Bounds of the metrics.

use super::*;
use crate::status::{CentreStatus, ContactReceived, ProductStatus, StationStatus};

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
