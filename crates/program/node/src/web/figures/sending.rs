//! What a station captures and sends.

use super::families::{count, counter, gauge, store_ok};
use crate::status::{ChannelState, DestinationStatus, LineState, StationStatus};
use crate::web::words::word;
use skyhaul_web::MetricFamily;
use std::collections::BTreeMap;

pub(super) fn all(station: &StationStatus) -> Vec<MetricFamily> {
    let mut families = of_channels(station);
    families.extend(of_spool(station));
    families.extend(of_destinations(&station.destinations));
    families.extend(of_guests(station));
    families
}

fn of_channels(station: &StationStatus) -> Vec<MetricFamily> {
    let mut locked = gauge("channel_locked", "Whether the input receives frames.");
    let mut bytes = counter("channel_received_bytes", "Bytes that the input gave.");
    let mut frames = counter("channel_frames", "Frames by their fate.");
    let mut corrected = counter("channel_corrected_symbols", "Symbols corrected in good frames.");
    let mut dropped =
        counter("channel_dropped_datagrams", "Datagrams that the system dropped unread.");
    for channel in &station.channels {
        let of = [("channel", &*channel.name)];
        locked.add(&of, count(u64::from(channel.state == ChannelState::Lock)));
        bytes.add(&of, count(channel.bytes));
        frames.add(&[of[0], ("fate", "good")], count(channel.frames));
        frames.add(&[of[0], ("fate", "set_aside")], count(channel.set_aside));
        corrected.add(&of, count(channel.corrected_symbols));
        dropped.add(&of, count(channel.dropped_datagrams));
    }
    let mut contacts = gauge("captured_contacts", "Of the last 1,000 contacts, those in a state.");
    let mut by_state: BTreeMap<String, u64> = BTreeMap::new();
    for contact in &station.contacts {
        *by_state.entry(word(&contact.state)).or_default() += 1;
    }
    for (state, number) in by_state {
        contacts.add(&[("state", &*state)], count(number));
    }
    vec![locked, bytes, frames, corrected, dropped, contacts]
}

fn of_spool(station: &StationStatus) -> [MetricFamily; 4] {
    let spool = &station.spool;
    [
        gauge("spool_ok", "Whether the spool takes data.").value(store_ok(spool.state)),
        gauge("spool_blocks", "Blocks that a destination lacks.").value(count(spool.blocks)),
        gauge("spool_bytes", "Their bytes.").value(count(spool.bytes)),
        gauge("spool_disk_bytes", "Bytes of the spool on disk.").value(count(spool.disk_bytes)),
    ]
}

fn of_destinations(destinations: &[DestinationStatus]) -> Vec<MetricFamily> {
    let mut up = gauge("line_up", "Whether the line to the node is open.");
    let mut connects = counter("line_connects", "How often the line was set up.");
    let mut held = gauge("line_held_back", "Whether the node's receive window is full.");
    let mut blocks = gauge("destination_waiting_blocks", "Blocks that the node lacks.");
    let mut bytes = gauge("destination_waiting_bytes", "Their bytes.");
    let mut gone = counter(
        "destination_gone_blocks",
        "Blocks that a full disk took before the node had them.",
    );
    let mut spare = gauge(
        "contact_spare_seconds",
        "The least time that a contact has to spare until its deadline; negative: it is late.",
    );
    let mut symbols = counter("line_symbols", "Symbols by what became of them.");
    let mut waited = counter("session_waited_seconds", "What the session waited for.");
    for one in destinations {
        let (of, line) = ([("node", &*one.name)], &one.line);
        up.add(&of, count(u64::from(line.state == LineState::Open)));
        connects.add(&of, count(line.connects));
        held.add(&of, count(u64::from(line.held_back)));
        blocks.add(&of, count(one.backlog.blocks));
        bytes.add(&of, count(one.backlog.bytes));
        gone.add(&of, count(one.backlog.gave_way_blocks));
        let least = one.forecasts.iter().filter_map(|forecast| forecast.spare_s);
        if let Some(least) = least.reduce(f64::min) {
            spare.add(&of, least);
        }
        for (fate, number) in [
            ("sent", line.symbols_sent),
            ("repeated", line.symbols_repeated),
            ("lost", line.symbols_lost),
        ] {
            symbols.add(&[of[0], ("fate", fate)], count(number));
        }
        if let Some(session) = &line.session {
            let on = session.waited_s;
            for (what, seconds) in [
                ("application", on.application),
                ("window", on.window),
                ("buffer", on.buffer),
                ("classes", on.classes),
                ("path", on.path),
            ] {
                waited.add(&[of[0], ("on", what)], seconds);
            }
        }
    }
    vec![up, connects, held, blocks, bytes, gone, spare, symbols, waited]
}

/// Folders, mirrors and streams, by their place in the configuration and their source.
fn of_guests(station: &StationStatus) -> Vec<MetricFamily> {
    let mut waiting = gauge("folder_waiting_files", "Files that are to be handed over.");
    let mut handed = counter("folder_handed_files", "Files handed over.");
    for one in &station.folders {
        let of = [("folder", &*one.name), ("to", one.to.as_deref().unwrap_or_default())];
        waiting.add(&of, count(one.waiting));
        handed.add(&of, count(one.handed));
    }
    let mut frames = gauge(
        "stream_frames",
        "Frames of the stream's present run, or of the last one, by their fate.",
    );
    for one in &station.streams {
        for (fate, number) in [
            ("in_time", one.received),
            ("repaired", one.repaired),
            ("late", one.late),
            ("lost", one.lost),
            ("unsent", one.unsent),
        ] {
            frames.add(&[("stream", &*one.source), ("fate", fate)], count(number));
        }
    }
    vec![waiting, handed, frames]
}
