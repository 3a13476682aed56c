//! Messages between this node and the destination beside blocks: of keys, of what lacks there, and
//! reports of both.

use super::Uplink;
use bytes::Bytes;
use skyhaul_events::{Moment, NodeReport};
use skyhaul_identity::KeyTalk;
use skyhaul_level0::ledger::talk::Talk;
use skyhaul_net::SessionManager;
use skyhaul_units::Instant;

/// A message of the destination.
pub(super) fn received(uplink: &mut Uplink, now: Instant, body: &[u8]) {
    if KeyTalk::is_marked(body) {
        return uplink.keys.received(&uplink.centre.name, body);
    }
    if NodeReport::is_marked(body) {
        let at = Moment { now, utc: uplink.clock.utc_of(now) };
        return uplink.shared.reports.take(at, &uplink.centre.name, body);
    }
    match Talk::decode(body) {
        Ok(Talk::Ask(ask)) => uplink.shared.questions.ask(uplink.place, ask),
        Ok(Talk::Delivered(report)) => {
            if let Some(standby) = uplink.feeder.standby() {
                standby.report(now, report);
            }
        }
        Ok(Talk::Answer(_) | Talk::StandBy(_)) => {}
        Err(error) => tracing::warn!(centre = %uplink.centre.address, "{error}"),
    }
}

/// Sends the answers to the destination's questions for missing frames, and the report of this
/// node.
pub(super) fn send(uplink: &mut Uplink, now: Instant, manager: &mut SessionManager) {
    let Some(id) = uplink.connection.id() else { return };
    if let Some(session) = manager.session(id) {
        uplink.shared.questions.give(uplink.place, |answer| {
            let said = Talk::Answer(answer.clone()).encode();
            session.control_mut().tell(Bytes::from(said)).is_ok()
        });
    }
    uplink.timers.report.work(now, &uplink.shared.reports, manager, id);
}
