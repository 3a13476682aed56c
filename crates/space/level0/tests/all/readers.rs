//! Products of real captures, read by independent programs: ccsdspy and libera_utils.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on says so by failing"
)]

use crate::support::captures::{CAPTURES, frames, mission};
use crate::support::{python, shared};
use serde_json::{Value, json};
use skyhaul_ccsds::extract::Extractor;
use skyhaul_ccsds::generate::{ErrorPlan, Generator, GeneratorOptions, Layout, Source};
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::quality::{FrameVerdict, Reason};
use skyhaul_level0::naming::Digit;
use skyhaul_level0::report::{ApidReport, Product};
use skyhaul_level0::{
    ContactClose, ContactInfo, ContactProcessor, Files, FillPolicy, Limits, ProductRuleSet,
    SortedBy,
};
use skyhaul_units::{Duration, Utc};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files in a folder.
struct Folder(PathBuf);

impl Files for Folder {
    type Writer = File;
    type Reader = File;

    fn create(&mut self, name: &str) -> io::Result<File> {
        File::create(self.0.join(name))
    }
    fn open(&mut self, name: &str) -> io::Result<File> {
        File::open(self.0.join(name))
    }
    fn publish(&mut self, _file: File, working: &str, name: &str) -> io::Result<()> {
        std::fs::rename(self.0.join(working), self.0.join(name))
    }
    fn remove(&mut self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.0.join(name))
    }
}

fn start() -> Utc {
    Utc::from_day(20_063, Duration::from_secs(63_495))
}

/// Products of a recording, cut packets dropped or filled up. With `damage`, every tenth frame is
/// set aside and every seventh counts as corrected.
fn products(
    recording: &[u8],
    name: &str,
    folder: &Path,
    damage: bool,
    fill: FillPolicy,
) -> Vec<Product> {
    let mut frames = frames(recording, start());
    if damage {
        for (at, frame) in frames.iter_mut().enumerate() {
            frame.set_aside = (at % 10 == 5).then_some(Reason::ReedSolomon);
            if at % 7 == 0 {
                frame.quality.verdict = FrameVerdict::Corrected;
            }
        }
    }
    let mission = mission(name);
    let files = Folder(folder.to_owned());
    let mut processor =
        ContactProcessor::new(&mission, contact(&mission), Limits::default(), files)
            .with_rules(ProductRuleSet { fill, ..ProductRuleSet::default() });
    frames.iter().for_each(|frame| processor.frame(frame).unwrap());
    processor.finish(close()).unwrap()
}

fn contact(mission: &Mission) -> ContactInfo {
    ContactInfo {
        station: "here".to_owned(),
        contact: mission.name().to_owned(),
        scid: mission.scids()[0],
        opened: start(),
        also_fits: Vec::new(),
        file: None,
        window: None,
    }
}

fn close() -> ContactClose {
    let closed = start() + Duration::from_secs(600);
    ContactClose { closed, created: closed + Duration::from_secs(1), uniqueness: Digit::default() }
}

/// Packets delivered and set aside, by APID, over all products.
fn counts(products: &[Product]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for sidecar in products.iter().map(|product| &product.sidecar) {
        assert!(sidecar.accounting.balanced);
        let delivered = sidecar.apids.iter().map(|apid| (apid.apid, apid.packets));
        let aside = sidecar.set_aside.packets.iter().map(|entry| (entry.apid.unwrap(), 1));
        for (apid, packets) in delivered.chain(aside) {
            *counts.entry(apid.to_string()).or_default() += packets;
        }
    }
    counts
}

#[test]
fn every_packet_that_independent_decoders_found_is_in_a_product_or_set_aside() {
    let Some(expected) = shared::read("expected.json") else { return };
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    for (file, name) in CAPTURES {
        let folder = tempfile::tempdir().unwrap();
        let recording = shared::read(&format!("cadu/{file}")).unwrap();
        let products = products(&recording, name, folder.path(), false, FillPolicy::Drop);
        let channels = expected[format!("cadu/{file}")]["vcids"].as_object().unwrap();
        let mut packets: BTreeMap<String, u64> = BTreeMap::new();
        for (apid, count) in
            channels.values().filter_map(|channel| channel["apids"].as_object()).flatten()
        {
            *packets.entry(apid.clone()).or_default() += count.as_u64().unwrap();
        }
        let idle = packets.remove("2047").unwrap_or_default();
        assert_eq!(counts(&products), packets, "{file}");
        let reasons: Vec<_> = products
            .iter()
            .flat_map(|product| product.sidecar.set_aside.reasons.keys().copied())
            .collect();
        let cut_at_the_start =
            if name == "suomi-npp" { vec![skyhaul_level0::SetAsideReason::NoTime] } else { vec![] };
        assert_eq!(reasons, cut_at_the_start, "{file}");
        let report = &products[0].sidecar.frames;
        assert_eq!((report.idle_packets, report.missing), (idle, 0), "{file}");
        for channel in &report.channels {
            assert_eq!(channels[&channel.vcid.to_string()]["frames"], channel.frames, "{file}");
        }
        let left: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|file| file.unwrap().file_name())
            .collect();
        let published: usize = products.iter().map(|product| product.files.len()).sum();
        assert_eq!(left.len(), published, "{left:?}");
    }
}

#[test]
fn every_packet_of_the_real_captures_has_its_time() {
    for (file, name) in CAPTURES {
        let Some(recording) = shared::read(&format!("cadu/{file}")) else { return };
        let folder = tempfile::tempdir().unwrap();
        let products = products(&recording, name, folder.path(), false, FillPolicy::Drop);
        for product in products.iter().map(|product| &product.sidecar.product) {
            assert_eq!(product.sorted_by, SortedBy::PacketTime, "{file}: {}", product.name);
            for stamp in [product.first, product.last].into_iter().flatten() {
                let time = stamp.time.unwrap();
                let apart = time.since(start()).max(start().since(time));
                assert!(
                    apart < Duration::from_secs(3 * 3_600),
                    "{file}: {} at {time}",
                    product.name
                );
            }
        }
    }
}

#[test]
fn the_scatterometers_shared_counter_shows_a_packet_that_was_removed() {
    let Some(recording) = shared::read("cadu/metopb.20241206T152751.dat") else { return };
    let mission = mission("metop-b");
    let mut extractor = Extractor::new(mission.clone());
    let mut packets = Vec::new();
    for frame in frames(&recording, start()) {
        extractor.push(&frame, |packet| packets.push(packet)).unwrap();
    }
    packets.retain(|packet| packet.channel.vcid.value() == 15 && !packet.header.is_idle());
    assert_eq!(packets.len(), 14);
    for removed in 0..packets.len() {
        let folder = tempfile::tempdir().unwrap();
        let files = Folder(folder.path().to_owned());
        let mut processor =
            ContactProcessor::new(&mission, contact(&mission), Limits::default(), files);
        for (_, packet) in packets.iter().enumerate().filter(|(at, _)| *at != removed) {
            processor.packet(packet.clone()).unwrap();
        }
        let products = processor.finish(close()).unwrap();
        let accounting = products[0].sidecar.accounting;
        let inside = u64::from((1..packets.len() - 1).contains(&removed));
        assert_eq!(
            (accounting.gaps, accounting.missing),
            (inside, inside),
            "without packet {removed}"
        );
    }
}

#[test]
fn a_longer_pass_made_of_real_packets_has_no_gaps() {
    for (file, name) in CAPTURES {
        let Some(recording) = shared::read(&format!("cadu/{file}")) else { return };
        let mission = mission(name);
        let source = Source::from_frames(&mission, &frames(&recording, start())).unwrap();
        let options = GeneratorOptions {
            frames: 5 * 1_023,
            errors: ErrorPlan::default(),
            offset_bits: 3,
            seed: 1,
            layout: Layout::Cadus,
        };
        let longer: Vec<u8> = Generator::new(source, options).flatten().collect();
        let folder = tempfile::tempdir().unwrap();
        for product in products(&longer, name, folder.path(), false, FillPolicy::Drop) {
            let sidecar = &product.sidecar;
            let resets: u64 = sidecar.apids.iter().map(|apid| apid.resets).sum();
            assert_eq!(
                (sidecar.accounting.gaps, resets),
                (0, 0),
                "{file}: {}",
                sidecar.product.name
            );
        }
    }
}

#[test]
fn independent_readers_find_what_the_account_says() {
    let Some(python) = python::python() else { return };
    for (file, name) in CAPTURES {
        let Some(recording) = shared::read(&format!("cadu/{file}")) else { return };
        for (damage, fill) in
            [(false, FillPolicy::Pad), (true, FillPolicy::Drop), (true, FillPolicy::Pad)]
        {
            let folder = tempfile::tempdir().unwrap();
            let products = products(&recording, name, folder.path(), damage, fill);
            let octets: u64 =
                products.iter().map(|product| product.sidecar.accounting.fill_octets).sum();
            assert_eq!(
                damage && fill == FillPolicy::Pad,
                octets > 0,
                "{file}: {octets} octets of fill"
            );
            let gaps: u64 = products.iter().map(|product| product.sidecar.accounting.gaps).sum();
            assert_eq!(damage, gaps > 0, "{file}: {gaps} gaps");
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/read.py");
            let read = Command::new(&python).arg(script).arg(folder.path()).output().unwrap();
            assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
            let read: BTreeMap<String, Value> = serde_json::from_slice(&read.stdout).unwrap();
            let ours: BTreeMap<_, _> = products
                .iter()
                .filter_map(|product| Some((product.name.to_string(), figures(product)?)))
                .collect();
            assert_eq!(read, ours, "{file}");
        }
    }
}

/// What `read.py` says of a product, from the product's own account; `None` where it has no
/// packets.
fn figures(product: &Product) -> Option<Value> {
    let sidecar = &product.sidecar;
    let packets = sidecar.product.packet_file.as_ref()?;
    let accounting = &sidecar.accounting;
    let apids: BTreeMap<_, _> =
        sidecar.apids.iter().map(|apid| (apid.apid.to_string(), apid.packets)).collect();
    let time = |stamp: Option<skyhaul_level0::PacketTimestamps>| {
        stamped(stamp.and_then(|stamp| stamp.time))
    };
    Some(json!({
        "apids": apids,
        "record": {
            "id": product.name.stem(),
            "packets": accounting.delivered,
            "bytes": packets.bytes,
            "gaps": accounting.gaps,
            "corrected_packets": accounting.corrected_packets,
            "fill_octets": accounting.fill_octets,
            "length_discrepancies": accounting.length_discrepancies,
            "first": time(sidecar.product.first),
            "last": time(sidecar.product.last),
            "opened": sidecar.contacts[0].opened,
            "closed": sidecar.contacts[0].closed,
            "files": [sidecar.product.construction_record, packets.name],
            "apids": sidecar.apids.iter().map(|apid| entry(apid,
                sidecar.contacts[0].scid.value())).collect::<Vec<_>>(),
        },
    }))
}

fn entry(apid: &ApidReport, scid: u16) -> Value {
    let gaps: Vec<_> = apid
        .gap_list
        .iter()
        .map(|gap| {
            json!({
                "first_missing": gap.first_missing,
                "missed": gap.missed,
                "offset": gap.offset,
                "preceding": stamped(gap.preceding.time),
                "following": stamped(gap.following.time),
            })
        })
        .collect();
    json!({
        "scid": scid,
        "apid": apid.apid,
        "vcids": apid.vcids,
        "first_offset": apid.first_offset,
        "packets": apid.packets,
        "bytes": apid.bytes,
        "corrected_packets": apid.corrected_packets,
        "first": stamped(apid.first.time),
        "last": stamped(apid.last.time),
        "gaps": gaps,
        "fill": apid.incomplete.fill_list.iter().map(|fill| [u64::from(fill.count), fill.offset,
            fill.first_fill.into()]).collect::<Vec<_>>(),
        "fill_octets": apid.incomplete.fill_octets,
        "length_discrepancies": apid.incomplete.length_discrepancy_list,
    })
}

/// A time as `read.py` prints it; a record without a time has all zeros, which is 1958.
fn stamped(time: Option<Utc>) -> String {
    time.map_or("1958-01-01T00:00:00.000000Z".to_owned(), |time| time.to_string())
}
