//! What a node tells others of itself.

use crate::status::{
    CentreStatus, ContactCaptured, ContactReceived, ContactState, NodeStatus, ProcessStatus,
    StationStatus, StoreState, count_deliveries,
};
use skyhaul_events::{NodeReport, ReportedDeliveries, ReportedSpool, ReportedState, ReportedStore};

/// Contacts that are named.
const NAMED: usize = 4;

/// The report of a node with this status.
pub(crate) fn own_report(status: &NodeStatus) -> NodeReport {
    let (station, centre) = (status.station.as_ref(), status.centre.as_ref());
    let process: Option<&ProcessStatus> = station.map(|part| &part.process);
    let process = process.or(centre.map(|part| &part.process));
    let contacts = captured(station).count() + received(centre).count();
    let captured = captured(station).map(|one| format!("{} {}", one.channel, one.mission));
    let received = received(centre).map(|one| format!("{} {}", one.name(), one.mission));
    let report = NodeReport {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        sends: station.is_some(),
        receives: centre.is_some(),
        up_s: process.map_or(0, |process| whole(process.uptime_s)),
        contacts: contacts as u64,
        under_way: captured.chain(received).take(NAMED).collect(),
        spool: station.map(|part| ReportedSpool {
            state: state(part.spool.state),
            blocks: part.spool.blocks,
            bytes: part.spool.bytes,
            disk_bytes: part.spool.disk_bytes,
            oldest_s: whole(part.spool.oldest_s),
        }),
        store: centre.map(|part| ReportedStore {
            state: state(part.store.state),
            disk_bytes: part.store.disk_bytes,
        }),
        deliveries: centre.map(|part| {
            let counts = count_deliveries(&part.products.deliveries);
            ReportedDeliveries { waiting: counts.waiting, late: counts.late, failed: counts.failed }
        }),
        ..NodeReport::default()
    };
    report.with_alarms(&status.standing_alarms())
}

/// Contacts that are captured now, newest first.
fn captured(station: Option<&StationStatus>) -> impl Iterator<Item = &ContactCaptured> {
    let all = station.into_iter().flat_map(|part| part.contacts.iter().rev());
    all.filter(|one| one.state == ContactState::Open)
}

/// Contacts that come in now, newest first.
fn received(centre: Option<&CentreStatus>) -> impl Iterator<Item = &ContactReceived> {
    let all = centre.into_iter().flat_map(|part| part.contacts.iter().rev());
    all.filter(|one| one.state == ContactState::Open)
}

/// Whole seconds of a figure of the status.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "never negative")]
const fn whole(seconds: f64) -> u64 {
    seconds as u64
}

const fn state(state: StoreState) -> ReportedState {
    match state {
        StoreState::Ok => ReportedState::Ok,
        StoreState::Full => ReportedState::Full,
        StoreState::Failed => ReportedState::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{CentreProducts, SpoolStatus};

    #[test]
    fn a_relay_reports_both_parts_and_names_the_newest_contacts_that_are_open() {
        let contact = |flow, state| ContactReceived {
            station: "s".to_owned(),
            flow,
            mission: "npp".to_owned(),
            state,
            ..ContactReceived::default()
        };
        let open = (2..9).map(|flow| contact(flow, ContactState::Open));
        let centre = CentreStatus {
            contacts: [contact(1, ContactState::Done)].into_iter().chain(open).collect(),
            products: CentreProducts::default(),
            ..CentreStatus::default()
        };
        let station = StationStatus {
            contacts: vec![ContactCaptured {
                channel: "x".to_owned(),
                mission: "npp".to_owned(),
                state: ContactState::Open,
                ..ContactCaptured::default()
            }],
            spool: SpoolStatus { blocks: 7, oldest_s: 3.9, ..SpoolStatus::default() },
            process: ProcessStatus { uptime_s: 61.2, ..ProcessStatus::default() },
            ..StationStatus::default()
        };
        let status =
            NodeStatus { station: Some(station), centre: Some(centre), ..NodeStatus::default() };
        let report = own_report(&status);
        assert!(report.sends && report.receives);
        assert_eq!((report.up_s, report.contacts), (61, 8));
        assert_eq!(report.under_way, ["x npp", "s-8 npp", "s-7 npp", "s-6 npp"]);
        let spool = report.spool.expect("it sends");
        assert_eq!((spool.blocks, spool.oldest_s), (7, 3));
    }
}
