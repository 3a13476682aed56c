//! Which stations are there: what events say of it, and from when their absence is an alarm.

use super::super::admission::AdmittedStation;
use super::super::shared::CentreShared;
use crate::journal::EventNote;
use crate::reports::PeerSide;
use skyhaul_events::EventKind;
use skyhaul_quic::Fingerprint;
use skyhaul_transport::DownReason;
use std::collections::BTreeMap;
use std::net::SocketAddr;

type Admitted = BTreeMap<Fingerprint, AdmittedStation>;

/// Expects sessions with the stations that have sent contacts before.
pub fn watch(shared: &CentreShared, peers: &Admitted) {
    for AdmittedStation { name, patience, .. } in peers.values() {
        let is_station = !shared.store().spaces().known(name, 1).is_empty();
        if !is_station {
            continue;
        }
        shared.desk.reports.expect(PeerSide::Caller, name.as_str());
        if let Some(patience) = patience {
            shared.alarms.expect(name.as_str(), *patience);
        }
    }
}

/// Stations that are not configured any more are not expected.
pub fn forget(shared: &CentreShared, before: &Admitted, now: &Admitted) {
    for old in before.values() {
        if !now.values().any(|new| new.name == old.name) {
            shared.alarms.forget(old.name.as_str());
            shared.desk.reports.forget(PeerSide::Caller, old.name.as_str());
        }
    }
}

/// A station brings contacts.
pub fn connected(shared: &CentreShared, station: &AdmittedStation) {
    let name = station.name.as_str();
    if let Some(patience) = station.patience {
        shared.alarms.expect(name, patience);
        shared.alarms.connected(name);
    }
    shared.desk.reports.connected(PeerSide::Caller, name);
    let sentence = format!("station {name} is connected");
    let note = EventNote::new(EventKind::PeerConnected, format!("node {name}"), sentence);
    shared.alarms.events().note(note.with("peer", name));
}

/// The last session with a node has ended.
pub fn lost(shared: &CentreShared, node: &AdmittedStation) {
    shared.alarms.lost(node.name.as_str());
    shared.desk.reports.lost(PeerSide::Caller, node.name.as_str());
}

/// The session with a station that brought contacts has ended.
pub fn ended(shared: &CentreShared, station: &AdmittedStation, reason: &DownReason) {
    let name = station.name.as_str();
    let sentence = match reason {
        DownReason::GoesOnElsewhere => format!("station {name} goes on in another process"),
        _ => format!("the session with station {name} has ended"),
    };
    let note = EventNote::new(EventKind::PeerDisconnected, format!("node {name}"), sentence);
    shared.alarms.events().note(note.because(reason).with("peer", name));
}

/// A node was refused.
pub fn refused(shared: &CentreShared, remote: &SocketAddr, sentence: String) {
    shared.alarms.events().tell(EventKind::PeerRefused, remote.to_string(), sentence);
}

/// Missing frames of a contact were requested.
pub fn asked(shared: &CentreShared, contact: String, frames: u64) {
    let sentence = format!("{contact}: {frames} missing frames are requested");
    let note = EventNote::new(EventKind::GapAsked, contact, sentence);
    shared.alarms.events().note(note.with("frames", frames));
}
