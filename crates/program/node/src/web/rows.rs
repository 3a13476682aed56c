//! The rows of the lists.

use super::alarms::alarm;
use super::words::{named, segment, word};
use crate::looks::NodeLook;
use crate::status::{
    ChannelStatus, DestinationStatus, FolderStatus, LinePath, MirrorStatus, PassStatus,
    ProductStatus, StationStatus, StreamStatus,
};
use core::ops::ControlFlow;
use serde_json::{Value, json};
use skyhaul_web::RowVisit;
use std::path::Path;

/// Other nodes as they report themselves, the worst first.
pub(super) fn nodes(look: &NodeLook, visit: &mut RowVisit<'_>) -> ControlFlow<()> {
    look.status.nodes.iter().try_for_each(|one| visit(&one.name, &|| named(&one.name, one)))
}

/// Nodes that are connected.
pub(super) fn stations(look: &NodeLook, visit: &mut RowVisit<'_>) -> ControlFlow<()> {
    let peers = look.status.centre.iter().flat_map(|centre| &centre.stations);
    for peer in peers {
        visit(&peer.name, &|| {
            let mut row = named(&peer.name, peer);
            row["paths"] = json!(peer.paths.len());
            row
        })?;
    }
    ControlFlow::Continue(())
}

/// A planned pass.
pub(super) fn pass(pass: &PassStatus) -> Value {
    named(&pass_id(pass), pass)
}

fn pass_id(pass: &PassStatus) -> String {
    let words = [Some(&pass.start), pass.name.as_ref(), pass.mission.as_ref()];
    let words = words.into_iter().chain([pass.station.as_ref(), pass.channel.as_ref()]);
    segment(&words.flatten().map(String::as_str).collect::<Vec<_>>().join("-"))
}

/// Planned passes, in the order of their start.
pub(super) fn passes(look: &NodeLook, visit: &mut RowVisit<'_>) -> ControlFlow<()> {
    look.status.passes.iter().try_for_each(|one| visit(&pass_id(one), &|| pass(one)))
}

/// An input.
pub(super) fn channel(channel: &ChannelStatus) -> Value {
    named(&channel.name, channel)
}

/// Inputs.
pub(super) fn channels(look: &NodeLook, visit: &mut RowVisit<'_>) -> ControlFlow<()> {
    for one in look.status.station.iter().flat_map(|station| &station.channels) {
        visit(&one.name, &|| channel(one))?;
    }
    ControlFlow::Continue(())
}

/// A destination in short: its line, and what waits for it.
pub(super) fn destination(one: &DestinationStatus) -> Value {
    let line = &one.line;
    json!({
        "id": one.name,
        "name": one.name,
        "shadow": one.shadow,
        "state": word(&line.state),
        "reason": line.reason,
        "rtt_s": line.rtt_s,
        "loss": line.loss,
        "rate_bps": line.rate_bps,
        "held_back": line.held_back,
        "waiting_blocks": one.backlog.blocks,
        "waiting_bytes": one.backlog.bytes,
        "gave_way_blocks": one.backlog.gave_way_blocks,
        "clear_s": clear(one),
        "paths": line.paths.len(),
    })
}

/// Seconds until everything is there, by the forecasts.
fn clear(one: &DestinationStatus) -> Option<f64> {
    let mut seconds = one.forecasts.iter().map(|forecast| forecast.done_s);
    seconds.try_fold(0.0, |most, done| Some(f64::max(most, done?)))
}

/// Paths of all sessions.
pub(super) fn paths(look: &NodeLook, visit: &mut RowVisit<'_>) -> ControlFlow<()> {
    let sent = look.status.station.iter().flat_map(|station| &station.destinations);
    for one in sent {
        each_path(&one.name, &one.line.paths, visit)?;
    }
    let received = look.status.centre.iter().flat_map(|centre| &centre.stations);
    for one in received {
        each_path(&one.name, &one.paths, visit)?;
    }
    ControlFlow::Continue(())
}

fn each_path(node: &str, paths: &[LinePath], visit: &mut RowVisit<'_>) -> ControlFlow<()> {
    for path in paths {
        let id = path.id(node);
        visit(&id, &|| {
            let mut row = named(&id, path);
            row["node"] = json!(node);
            row
        })?;
    }
    ControlFlow::Continue(())
}

/// What waits.
pub(super) fn queues(look: &NodeLook, visit: &mut RowVisit<'_>) -> ControlFlow<()> {
    if let Some(station) = &look.status.station {
        queues_of_station(station, visit)?;
    }
    if let Some(centre) = &look.status.centre {
        let store = &centre.store;
        visit("store", &|| {
            json!({"id": "store", "kind": "store", "name": "store", "state": word(&store.state),
                   "waiting": 0, "waiting_bytes": 0, "disk_bytes": store.disk_bytes,
                   "done": store.blocks})
        })?;
    }
    ControlFlow::Continue(())
}

fn queues_of_station(station: &StationStatus, visit: &mut RowVisit<'_>) -> ControlFlow<()> {
    let spool = &station.spool;
    visit("spool", &|| {
        json!({"id": "spool", "kind": "spool", "name": "spool", "state": word(&spool.state),
               "waiting": spool.blocks, "waiting_bytes": spool.bytes,
               "disk_bytes": spool.disk_bytes})
    })?;
    for one in &station.destinations {
        let id = segment(&format!("destination.{}", one.name));
        visit(&id, &|| {
            json!({"id": id, "kind": "destination", "name": one.name,
                   "state": word(&one.line.state), "waiting": one.backlog.blocks,
                   "waiting_bytes": one.backlog.bytes, "clear_s": clear(one),
                   "lost": one.backlog.gave_way_blocks, "why": one.line.reason})
        })?;
    }
    for (nth, one) in station.folders.iter().enumerate() {
        let id = format!("folder.{nth}");
        visit(&id, &|| folder(&id, one))?;
    }
    for (nth, one) in station.mirrors.iter().enumerate() {
        let id = format!("mirror.{nth}");
        visit(&id, &|| mirror(&id, one))?;
    }
    for (nth, one) in station.streams.iter().enumerate() {
        let id = format!("stream.{nth}");
        visit(&id, &|| stream(&id, one))?;
    }
    ControlFlow::Continue(())
}

fn folder(id: &str, one: &FolderStatus) -> Value {
    json!({"id": id, "kind": "folder", "name": one.name, "to": one.to, "state": word(&one.state),
           "waiting": one.waiting, "done": one.handed, "lost": one.gave_way, "why": one.reason})
}

fn mirror(id: &str, one: &MirrorStatus) -> Value {
    json!({"id": id, "kind": "mirror", "name": one.source, "to": one.to,
           "state": word(&one.state), "done": one.copied, "why": one.reason})
}

fn stream(id: &str, one: &StreamStatus) -> Value {
    let lost = one.lost + one.late + one.unsent;
    json!({"id": id, "kind": "stream", "name": one.source, "to": one.to,
           "state": word(&one.state), "done": one.received, "lost": lost, "why": one.reason})
}

/// Missing frames and packets, newest contact first.
pub(super) fn gaps(look: &NodeLook, visit: &mut RowVisit<'_>) -> ControlFlow<()> {
    for gap in look.gaps.gaps.iter().rev() {
        let contact = format!("{}-{}", gap.station, gap.flow);
        let channels: Vec<String> = gap.vcids.iter().map(u8::to_string).collect();
        let of = gap.apid.map_or(String::new(), |apid| format!(".apid-{apid}"));
        let id = format!("{contact}.vc-{}{of}.{}", channels.join("-"), gap.first);
        visit(&id, &|| {
            let mut row = named(&id, gap);
            row["contact"] = json!(contact);
            row
        })?;
    }
    ControlFlow::Continue(())
}

/// Products: of several contacts, and of single ones, newest first.
pub(super) fn products(look: &NodeLook, visit: &mut RowVisit<'_>) -> ControlFlow<()> {
    let Some(centre) = &look.status.centre else { return ControlFlow::Continue(()) };
    for (nth, one) in centre.products.assembled.iter().enumerate().rev() {
        let id = match one.path.is_empty() {
            true => format!("waiting.{nth}"),
            false => format!("{}.v{}", file_name(&one.path), one.version),
        };
        visit(&id, &|| {
            let mut row = named(&id, one);
            row["name"] = json!(file_name(&one.path));
            row
        })?;
    }
    for contact in centre.contacts.iter().rev() {
        for product in &contact.products {
            let id = segment(&file_name(&product.path));
            visit(&id, &|| {
                let mut row = of_contact(&id, product);
                row["station"] = json!(contact.station);
                row["contact"] = json!(contact.name());
                row["mission"] = json!(contact.mission);
                row["from"] = json!(contact.opened);
                row["to"] = json!(contact.closed);
                row
            })?;
        }
    }
    ControlFlow::Continue(())
}

fn of_contact(id: &str, product: &ProductStatus) -> Value {
    let mut row = named(id, product);
    row["name"] = json!(file_name(&product.path));
    row["state"] = json!("made");
    row
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Deliveries, newest first.
pub(super) fn deliveries(look: &NodeLook, visit: &mut RowVisit<'_>) -> ControlFlow<()> {
    let all = look.status.centre.iter().flat_map(|centre| &centre.products.deliveries);
    let mut all: Vec<_> = all.collect();
    all.reverse();
    for one in all {
        let id = one.id.to_string();
        visit(&id, &|| named(&id, one))?;
    }
    ControlFlow::Continue(())
}

/// What an operator must act on, the worst first.
pub(super) fn alarms(look: &NodeLook, visit: &mut RowVisit<'_>) -> ControlFlow<()> {
    for one in look.status.standing_alarms() {
        let row = alarm(one);
        let id = row["id"].as_str().unwrap_or_default().to_owned();
        visit(&id, &|| row.clone())?;
    }
    ControlFlow::Continue(())
}

/// The stages of a frame's way, in their order.
const STAGES: [&str; 8] =
    ["capture", "spool", "queue", "line", "repair", "store", "level0", "total"];

/// Times of frames in each stage.
pub(super) fn latency(look: &NodeLook, visit: &mut RowVisit<'_>) -> ControlFlow<()> {
    let Some(centre) = &look.status.centre else { return ControlFlow::Continue(()) };
    for stage in STAGES {
        if let Some(times) = centre.latency_s.get(stage) {
            visit(stage, &|| {
                json!({"id": stage, "stage": stage, "frames": times.count, "min_s": times.min,
                       "p50_s": times.p50, "p99_s": times.p99, "max_s": times.max})
            })?;
        }
    }
    ControlFlow::Continue(())
}
