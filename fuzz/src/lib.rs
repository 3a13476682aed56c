//! The bodies of the fuzz targets: each takes any bytes, and panics only where the program is
//! wrong.
//!
//! libFuzzer calls them (`make fuzz`), and so does a bounded, seeded driver on the stable toolchain
//! (`tests/replay.rs`, part of `make test`).

mod access;
mod blocks;
mod capture;
mod catalogue;
mod channels;
mod configuration;
mod events;
mod files;
mod forward;
mod hints;
mod history;
mod keys;
mod offload;
mod one_way;
mod page;
mod pairing;
mod passes;
mod probe;
mod products;
mod repair;
mod rtp;
mod serving;
mod session;
mod storage;
mod streams;
mod tls;
mod upgrade;
mod vita49;
mod wire;

pub use access::web_access;
pub use blocks::blocks;
pub use capture::{
    bit_stream, contact_records, description, frame_stream, frames, mission, packed_records,
    packet_scan, packets, symbols,
};
pub use catalogue::{bag_manifests, filter};
pub use channels::channels;
pub use configuration::configuration;
pub use events::{acknowledgements, audit_lines, event_lines, node_report};
pub use files::files;
pub use forward::forward;
pub use hints::{contact_plan, feed_lines};
pub use history::history_files;
pub use keys::{key_record, key_talk};
pub use offload::offload_packets;
pub use one_way::one_way;
pub use page::page;
pub use pairing::{address_book, pairing};
pub use passes::{orbit_elements, pass_plan};
pub use probe::{probe, tcp_sockets};
pub use products::{
    common_rdr, construction_record, delivery_notice, gap_talk, product_name, rdr_table,
    record_check,
};
pub use repair::repair_symbols;
pub use rtp::rtp;
pub use serving::{serving, signed_requests};
pub use session::session;
pub use storage::log_segment;
pub use streams::streams;
pub use tls::{tls_frames, tls_path};
pub use upgrade::upgrade_talk;
pub use vita49::vita49;
pub use wire::{wire_control, wire_datagram};

/// A fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name: the program's, the corpus folder's and the function's.
    pub name: &'static str,
    /// What is fuzzed.
    pub body: fn(&[u8]),
    /// Mutated inputs that `make test-all` runs, a few seconds' worth; `make test` runs a quarter.
    pub rounds: u32,
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "acknowledgements", body: acknowledgements, rounds: 20_000 },
    Target { name: "bit_stream", body: bit_stream, rounds: 300 },
    Target { name: "symbols", body: symbols, rounds: 30 },
    Target { name: "blocks", body: blocks, rounds: 100_000 },
    Target { name: "channels", body: channels, rounds: 100_000 },
    Target { name: "common_rdr", body: common_rdr, rounds: 200_000 },
    Target { name: "configuration", body: configuration, rounds: 20_000 },
    Target { name: "contact_records", body: contact_records, rounds: 200_000 },
    Target { name: "construction_record", body: construction_record, rounds: 200_000 },
    Target { name: "contact_plan", body: contact_plan, rounds: 20_000 },
    Target { name: "history_files", body: history_files, rounds: 2_000 },
    Target { name: "pass_plan", body: pass_plan, rounds: 5_000 },
    Target { name: "orbit_elements", body: orbit_elements, rounds: 2_000 },
    Target { name: "upgrade_talk", body: upgrade_talk, rounds: 5_000 },
    Target { name: "description", body: description, rounds: 500 },
    Target { name: "event_lines", body: event_lines, rounds: 50_000 },
    Target { name: "feed_lines", body: feed_lines, rounds: 50_000 },
    Target { name: "audit_lines", body: audit_lines, rounds: 20_000 },
    Target { name: "web_access", body: web_access, rounds: 20_000 },
    Target { name: "filter", body: filter, rounds: 50_000 },
    Target { name: "bag_manifests", body: bag_manifests, rounds: 20_000 },
    Target { name: "serving", body: serving, rounds: 20_000 },
    Target { name: "signed_requests", body: signed_requests, rounds: 20_000 },
    Target { name: "files", body: files, rounds: 50_000 },
    Target { name: "forward", body: forward, rounds: 100_000 },
    Target { name: "frame_stream", body: frame_stream, rounds: 5_000 },
    Target { name: "frames", body: frames, rounds: 5_000 },
    Target { name: "gap_talk", body: gap_talk, rounds: 200_000 },
    Target { name: "key_record", body: key_record, rounds: 20_000 },
    Target { name: "key_talk", body: key_talk, rounds: 20_000 },
    Target { name: "node_report", body: node_report, rounds: 50_000 },
    Target { name: "log_segment", body: log_segment, rounds: 20_000 },
    Target { name: "mission", body: mission, rounds: 5_000 },
    Target { name: "offload_packets", body: offload_packets, rounds: 100_000 },
    Target { name: "one_way", body: one_way, rounds: 20_000 },
    Target { name: "page", body: page, rounds: 20_000 },
    Target { name: "pairing", body: pairing, rounds: 2_000 },
    Target { name: "address_book", body: address_book, rounds: 5_000 },
    Target { name: "packed_records", body: packed_records, rounds: 100_000 },
    Target { name: "packet_scan", body: packet_scan, rounds: 20_000 },
    Target { name: "packets", body: packets, rounds: 200_000 },
    Target { name: "delivery_notice", body: delivery_notice, rounds: 200_000 },
    Target { name: "probe", body: probe, rounds: 100_000 },
    Target { name: "product_name", body: product_name, rounds: 200_000 },
    Target { name: "rdr_table", body: rdr_table, rounds: 5_000 },
    Target { name: "record_check", body: record_check, rounds: 100_000 },
    Target { name: "repair_symbols", body: repair_symbols, rounds: 50_000 },
    Target { name: "rtp", body: rtp, rounds: 50_000 },
    Target { name: "session", body: session, rounds: 300 },
    Target { name: "streams", body: streams, rounds: 50_000 },
    Target { name: "tcp_sockets", body: tcp_sockets, rounds: 100_000 },
    Target { name: "tls_frames", body: tls_frames, rounds: 200_000 },
    Target { name: "tls_path", body: tls_path, rounds: 1_000 },
    Target { name: "vita49", body: vita49, rounds: 200_000 },
    Target { name: "wire_control", body: wire_control, rounds: 200_000 },
    Target { name: "wire_datagram", body: wire_datagram, rounds: 200_000 },
];
