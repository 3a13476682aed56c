//! A long object at a store, whose node is killed three times: at most one part is sent twice for
//! each kill. `SKYHAUL_OBJECT_GIB=5` makes it 5 GiB long.

use super::line::CountedLine;
use super::store::{Gateway, Store};
use super::{answers, backfill, deliveries, deliveries_in, is_all, subscription, until};
use crate::outlets::{catalogue_of, item_file, publish_files};
use crate::support::site::Site;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// What is sent at a time.
const PART: u64 = 64 << 20;
/// What a request has beside its part, and the trials of a destination: a thousandth.
const BESIDE: u64 = 1_000;

/// The store: one that keeps files, where it is installed, and else one that keeps its objects in
/// memory.
enum Place {
    Gateway(Gateway),
    Memory(Store),
}

#[test]
fn of_a_long_object_at_most_a_part_goes_twice_for_each_kill() {
    if !is_all() {
        eprintln!("SKIPPED: an object of 20 GiB is sent where all is tested");
        return;
    }
    let (store, size) = match (Gateway::start(), Store::start()) {
        (Some(gateway), _) => (Place::Gateway(gateway), gibibytes() << 30),
        (None, Some(store)) => (Place::Memory(store), 1 << 30),
        (None, None) => return,
    };
    let line = CountedLine::to(match &store {
        Place::Gateway(gateway) => gateway.port,
        Place::Memory(store) => store.port,
    });
    let table = match &store {
        Place::Gateway(gateway) => gateway.destination("long", line.port),
        Place::Memory(store) => store.destination_by("long", line.port),
    };
    let keys = "to = \"long\"\ninto = \"in\"\n";
    let mut site = Site::with(&(table + &subscription("all", keys)));
    // A file without content: it takes no room here.
    let sparse = |path: PathBuf| File::create(path).unwrap().set_len(size).unwrap();
    let name = "P0000001V1.PDS";
    sparse(site.folder().join("products").join(name));
    let sha256 = digest(&mut File::open(site.folder().join("products").join(name)).unwrap());
    let file = item_file(name, size, sha256);
    publish_files(&catalogue_of(site.folder()), 1, 1, vec![file]);
    backfill(&site, "all");
    let sent_until = |wanted: u64, site: &Site| {
        let mut last = line.sent();
        while last < wanted {
            let more = || Some(line.sent()).filter(|now| *now > last);
            last = until(more, || format!("{:?}", deliveries(site, &json!({}))));
        }
    };
    sent_until(size / 4, &site);
    for nth in 2..=4 {
        site.kill_centre();
        site.start_centre();
        answers(&site);
        if nth < 4 {
            sent_until(size * nth / 4, &site);
        }
    }
    let done = || !deliveries_in(&site, "long", "accepted").is_empty();
    let mut last = 0;
    while !done() {
        // Nothing more goes while the store puts the parts together.
        let next = || done().then_some(u64::MAX).or(Some(line.sent()).filter(|now| *now > last));
        last = until(next, || format!("{:?}", deliveries(&site, &json!({}))));
    }
    let twice = line.sent().saturating_sub(size);
    eprintln!("{size} bytes, three kills: {twice} went twice or are of the protocol");
    assert!(twice <= 3 * PART + size / BESIDE, "{twice} bytes went twice");
    let there = match &store {
        Place::Gateway(gateway) => digest(&mut File::open(gateway.path("in", name)).unwrap()),
        Place::Memory(store) => digest(&mut store.object(&format!("in/{name}")).as_slice()),
    };
    assert_eq!(there, sha256);
}

#[allow(clippy::disallowed_methods, reason = "how long a test runs is the caller's choice")]
fn gibibytes() -> u64 {
    std::env::var("SKYHAUL_OBJECT_GIB").map_or(20, |text| text.parse().unwrap())
}

fn digest(content: &mut dyn Read) -> [u8; 32] {
    let (mut digest, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        match content.read(&mut buffer).unwrap() {
            0 => return digest.finalize().into(),
            length => digest.update(&buffer[..length]),
        }
    }
}
