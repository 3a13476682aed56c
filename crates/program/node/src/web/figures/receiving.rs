//! What a centre receives and makes of it.

use super::families::{count, counter, gauge, store_ok};
use crate::status::{CentreStatus, ContactState};
use crate::web::words::word;
use skyhaul_web::MetricFamily;
use std::collections::BTreeMap;

pub(super) fn all(centre: &CentreStatus) -> Vec<MetricFamily> {
    let mut families = of_store(centre);
    families.extend(of_stations(centre));
    families.extend(of_contacts(centre));
    families.extend(of_latency(centre));
    families
}

fn of_store(centre: &CentreStatus) -> Vec<MetricFamily> {
    let store = &centre.store;
    let mut blocks = counter("store_blocks", "Blocks that came, by their fate.");
    blocks.add(&[("fate", "stored")], count(store.blocks));
    blocks.add(&[("fate", "duplicate")], count(store.duplicates));
    let mut families = vec![
        gauge("store_ok", "Whether the store takes data.").value(store_ok(store.state)),
        gauge("store_disk_bytes", "Bytes of the store on disk.").value(count(store.disk_bytes)),
        counter("store_disk_busy_seconds", "Time in calls to the disk.").value(store.disk_busy_s),
        blocks,
        counter("refused_callers", "Unknown callers that were refused.")
            .value(count(centre.refused)),
    ];
    if let Some(drops) = centre.socket_drops {
        let help = "Datagrams that the system dropped because the line's socket was full.";
        families.push(counter("line_dropped_datagrams", help).value(count(drops)));
    }
    families
}

fn of_stations(centre: &CentreStatus) -> Vec<MetricFamily> {
    let mut connected = gauge("station_connected", "Always 1 while the node is connected.");
    let mut bytes =
        counter("station_delivered_bytes", "Bytes of blocks delivered in this connection.");
    let mut blocks = counter("station_blocks", "Blocks delivered in this connection, by fate.");
    let mut held = gauge("station_held_bytes", "Bytes that count against the receive window.");
    for one in &centre.stations {
        let of = [("station", &*one.name)];
        connected.add(&of, 1.0);
        bytes.add(&of, count(one.bytes_delivered));
        blocks.add(&[of[0], ("fate", "delivered")], count(one.blocks_delivered));
        blocks.add(&[of[0], ("fate", "repaired")], count(one.blocks_repaired));
        held.add(&of, count(one.held_bytes));
    }
    let all = count(centre.stations.len() as u64);
    let number = gauge("stations_connected", "Nodes that are connected.").value(all);
    vec![number, connected, bytes, blocks, held]
}

fn of_contacts(centre: &CentreStatus) -> Vec<MetricFamily> {
    let mut contacts = gauge("received_contacts", "Of the last 1,000 contacts, those in a state.");
    let mut by_state: BTreeMap<String, u64> = BTreeMap::new();
    for contact in &centre.contacts {
        *by_state.entry(word(&contact.state)).or_default() += 1;
    }
    for (state, number) in by_state {
        contacts.add(&[("state", &*state)], count(number));
    }
    let open = centre.contacts.iter().filter(|one| one.state == ContactState::Open).count();
    let counts = &centre.products.gaps;
    let mut gaps = gauge("gaps", "Gaps of frames by state.");
    for (state, number) in [
        ("open", counts.open),
        ("requested", counts.requested),
        ("filled", counts.filled),
        ("unrecoverable", counts.unrecoverable),
    ] {
        gaps.add(&[("state", state)], count(number));
    }
    let mut deliveries = gauge("deliveries", "Of the newest 1,000 deliveries, those in a state.");
    let mut by_state: BTreeMap<String, u64> = BTreeMap::new();
    for delivery in &centre.products.deliveries {
        *by_state.entry(word(&delivery.state)).or_default() += 1;
    }
    for (state, number) in by_state {
        deliveries.add(&[("state", &*state)], count(number));
    }
    let late = centre.products.deliveries.iter().filter(|one| one.is_late).count();
    vec![
        contacts,
        gauge("contacts_open", "Contacts whose data comes in.").value(count(open as u64)),
        gauge("missing_frames", "Frames missing now.").value(count(counts.missing_frames)),
        gaps,
        counter("gap_questions", "Questions to stations for missing frames.")
            .value(count(counts.asks)),
        deliveries,
        gauge("deliveries_late", "Deliveries on their way after their deadline.")
            .value(count(late as u64)),
    ]
}

fn of_latency(centre: &CentreStatus) -> Vec<MetricFamily> {
    let mut frames = counter("stage_frames", "Frames measured in the stage.");
    let mut median = gauge("stage_latency_median_seconds", "The median since the start.");
    let mut high =
        gauge("stage_latency_p99_seconds", "All but one in a hundred frames were faster.");
    for (stage, times) in &centre.latency_s {
        let of = [("stage", &**stage)];
        frames.add(&of, count(times.count));
        median.add(&of, times.p50);
        high.add(&of, times.p99);
    }
    vec![frames, median, high]
}
