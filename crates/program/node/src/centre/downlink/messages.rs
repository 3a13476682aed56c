//! Messages between this node and those that call it, beside blocks: of keys, of what lacks here,
//! of what a standby need not send, and reports of both.

use super::Downlink;
use crate::centre::standby_teller::StandbyTeller;
use bytes::Bytes;
use skyhaul_events::{Moment, NodeReport};
use skyhaul_identity::KeyTalk;
use skyhaul_level0::ledger::talk::Talk;
use skyhaul_level0::standby::StandbyRequest;
use skyhaul_net::SessionManager;
use skyhaul_sessions::SessionId;
use skyhaul_units::Instant;

/// A message of a station.
pub(super) fn received(downlink: &mut Downlink, now: Instant, id: SessionId, body: &[u8]) {
    let Some(caller) = downlink.connections.get_mut(&id) else { return };
    let (station, sender) = (&caller.admitted.name, &caller.sender);
    if KeyTalk::is_marked(body) {
        return caller.keys.received(&downlink.lines.keys, station.as_str(), body);
    }
    if NodeReport::is_marked(body) {
        if sender.is_some() {
            let at = Moment { now, utc: downlink.shared.clock().utc_of(now) };
            downlink.shared.desk.reports.take(at, station.as_str(), body);
        }
        return;
    }
    match (Talk::decode(body), sender) {
        (Ok(Talk::Answer(answer)), Some(sender)) => {
            downlink.shared.gaps().ledger().answer(sender.space.as_str(), &answer);
        }
        (Ok(Talk::StandBy(request)), _) => stands_by(&mut caller.standby, request),
        (Ok(_), _) => {}
        (Err(error), _) => tracing::warn!(station = station.as_str(), "{error}"),
    }
}

/// A station stands by for another one.
fn stands_by(told: &mut Option<StandbyTeller>, request: StandbyRequest) {
    match told {
        Some(teller) => teller.asked(request),
        None => *told = Some(StandbyTeller::new(request)),
    }
}

/// Tells the standby stations what is here of the stations that they stand by for.
pub(super) fn tell_standbys(downlink: &mut Downlink, now: Instant, manager: &mut SessionManager) {
    let peers = &downlink.lines.peers;
    let is_known = |name: &str| peers.values().any(|peer| peer.name.as_str() == name);
    for (id, caller) in &mut downlink.connections {
        let Some(teller) = &mut caller.standby else { continue };
        let Some(session) = manager.session(*id).filter(|session| session.is_open()) else {
            continue;
        };
        let Some(report) = teller.report(now, &downlink.shared, is_known) else { continue };
        let said = Bytes::from(Talk::Delivered(report).encode());
        if session.control_mut().tell(said).is_err() {
            teller.not_told();
        }
    }
}

/// Reports this node to the stations that bring contacts.
pub(super) fn report(downlink: &mut Downlink, now: Instant, manager: &mut SessionManager) {
    let desk = &downlink.shared.desk.reports;
    let stations = downlink.connections.iter_mut().filter(|(_, caller)| caller.sender.is_some());
    for (id, caller) in stations {
        caller.reports.work(now, desk, manager, *id);
    }
}
