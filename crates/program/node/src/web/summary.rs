//! The node in short: the first screen, and what the stream sends each second.

use super::alarms::alarm;
use super::contacts;
use super::rows::{channel, destination, pass};
use super::words::word;
use crate::looks::NodeLook;
use crate::status::{
    ChannelState, LineState, NodeSeenState, NodeStatus, PassStatus, count_deliveries,
};
use serde_json::{Value, json};
use skyhaul_events::{AlarmStatus, Severity};
use skyhaul_passes::PassState;

/// Passes of the first screen.
const PASSES_SHOWN: usize = 8;
/// Rows of each kind: 64 pages get this each second.
const SHOWN_MAX: usize = 200;

/// The node in short.
pub(super) fn of(look: &NodeLook) -> Value {
    let status = &look.status;
    let (station, centre) = (status.station.as_ref(), status.centre.as_ref());
    let process = station.map(|part| &part.process).or(centre.map(|part| &part.process));
    let name = station.map(|part| &part.name).or(centre.map(|part| &part.name));
    let alarms = status.standing_alarms();
    let contacts = contacts::newest(look);
    let channels = station.iter().flat_map(|part| &part.channels).take(SHOWN_MAX).map(channel);
    let destinations =
        station.iter().flat_map(|part| &part.destinations).take(SHOWN_MAX).map(destination);
    let peers = centre.iter().flat_map(|part| &part.stations).take(SHOWN_MAX);
    let peers = peers.map(|peer| {
        json!({"id": peer.name, "name": peer.name, "bytes_delivered": peer.bytes_delivered,
               "blocks_delivered": peer.blocks_delivered, "paths": peer.paths.len()})
    });
    json!({
        "number": look.number,
        "at": look.taken.to_string(),
        "node": {
            "name": name,
            "version": env!("CARGO_PKG_VERSION"),
            "sends": station.is_some(),
            "receives": centre.is_some(),
            "uptime_s": process.map(|process| process.uptime_s),
            "rss_bytes": process.map(|process| process.rss_bytes),
        },
        "verdict": verdict(status, &alarms, &contacts),
        // The worst come first; the list of alarms has all.
        "alarms": alarms.iter().take(SHOWN_MAX).map(|one| alarm(one)).collect::<Vec<_>>(),
        "alarm_count": status.unexplained_alarms(),
        "channels": channels.collect::<Vec<_>>(),
        "destinations": destinations.collect::<Vec<_>>(),
        "stations": peers.collect::<Vec<_>>(),
        "nodes": nodes(status),
        "contacts": contacts,
        "passes": next_passes(status),
        "spool": station.map(|part| &part.spool),
        "store": centre.map(|part| &part.store),
        "gaps": centre.map(|part| &part.products.gaps),
        "deliveries": centre.map(|part| count_deliveries(&part.products.deliveries)),
        "rates": look.rates,
    })
}

/// Passes that go on, and those that are next.
fn next_passes(status: &NodeStatus) -> Vec<Value> {
    let is_over = |pass: &&PassStatus| {
        matches!(pass.state, PassState::Came | PassState::Missed | PassState::Unknown)
    };
    status.passes.iter().filter(|pass| !is_over(pass)).take(PASSES_SHOWN).map(pass).collect()
}

/// How many nodes are in each state by their reports.
fn nodes(status: &NodeStatus) -> Value {
    let count = |state| status.nodes.iter().filter(|one| one.state == state).count();
    json!({
        "ok": count(NodeSeenState::Ok),
        "alarm": count(NodeSeenState::Alarm),
        "stale": count(NodeSeenState::Stale),
        "unheard": count(NodeSeenState::Unheard),
    })
}

/// One sentence: that all is well, or what is worst.
fn verdict(status: &NodeStatus, alarms: &[&AlarmStatus], contacts: &[Value]) -> Value {
    let say = |level: &str, text: String| json!({"level": level, "text": text});
    if let Some(first) = alarms.first() {
        let more = status.unexplained_alarms().saturating_sub(1);
        let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
        let level = if first.severity <= Severity::Minor { "warning" } else { "alarm" };
        return say(level, format!("{}{more}", first.sentence));
    }
    let late = contacts.iter().find(|row| row["spare_s"].as_f64().is_some_and(|s| s < 0.0));
    if let Some(late) = late {
        let seconds = -late["spare_s"].as_f64().unwrap_or_default();
        let id = late["id"].as_str().unwrap_or_default();
        return say("warning", format!("Contact {id} will be {seconds:.0} s late."));
    }
    let mut destinations = status.station.iter().flat_map(|station| &station.destinations);
    if let Some(down) = destinations.find(|one| one.line.state != LineState::Open) {
        let state = word(&down.line.state);
        return say("warning", format!("The line to {} is not open: {state}.", down.name));
    }
    say("ok", well(status, contacts))
}

/// What a node does that lacks nothing.
fn well(status: &NodeStatus, contacts: &[Value]) -> String {
    let under_way = contacts
        .iter()
        .filter(|row| matches!(row["state"].as_str(), Some("open" | "closed")))
        .count();
    let mut parts = Vec::new();
    if let Some(station) = &status.station {
        let locked = station.channels.iter().filter(|one| one.state == ChannelState::Lock).count();
        if !station.channels.is_empty() {
            parts.push(format!("{locked} of {} inputs in lock", station.channels.len()));
        }
        parts.push(counted(station.destinations.len(), "line open", "lines open"));
    }
    if let Some(centre) = &status.centre {
        parts.push(counted(centre.stations.len(), "node connected", "nodes connected"));
        let missing = centre.products.gaps.missing_frames;
        if missing > 0 {
            parts.push(format!("{missing} frames missing"));
        }
    }
    parts.push(counted(under_way, "contact under way", "contacts under way"));
    format!("All is well: {}.", parts.join(", "))
}

fn counted(count: usize, one: &str, several: &str) -> String {
    let what = if count == 1 { one } else { several };
    match count {
        0 => format!("no {several}"),
        count => format!("{count} {what}"),
    }
}
