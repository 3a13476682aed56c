//! Packet files, read by independent programs: ccsdspy and space_packet_parser find in them what
//! our account says and what other decoders found; spacepackets cuts USLP frames as we do.
//! Construction records are read so beside their writer, in the crate for Level-0.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on says so by failing"
)]

use crate::python;
use crate::shared;
use crate::support::process::printed;
use crate::support::recordings::{CLEAN, DAMAGED, WHOLE_CADUS, expected, recording, sha256};
use serde::Deserialize;
use serde_json::{Value, json};
use skyhaul_ccsds::count::{CountStep, Modulus};
use skyhaul_ccsds::packet::{Header, Packets};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A recording with damaged markers: other decoders lose packets in it that we keep.
const IMPAIRED: &str = "npp_sync_impaired.dat";

/// What a reader finds in a packet file.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Found {
    bytes: usize,
    /// The digest of all packets, one after the other.
    sha256: String,
    /// Sequence count and length in bytes of each packet, by application.
    apids: BTreeMap<u16, Vec<(u16, usize)>>,
}

impl Found {
    /// What we find.
    fn by_us(file: &[u8]) -> Self {
        let mut apids: BTreeMap<u16, Vec<_>> = BTreeMap::new();
        let mut packets = Packets::new(file);
        for (header, packet) in packets.by_ref() {
            let Header::Space(header) = header else {
                panic!("{header:?} is in a file of space packets")
            };
            apids.entry(header.apid.value()).or_default().push((header.count, packet.len()));
        }
        let whole = &file[..file.len() - packets.rest().len()];
        Self { bytes: whole.len(), sha256: sha256(whole), apids }
    }

    /// In the words of our account and of `expected.json`.
    fn account(&self) -> Value {
        let apids: BTreeMap<_, _> =
            self.apids.iter().map(|(apid, packets)| (apid, packets.len())).collect();
        let packets: usize = apids.values().sum();
        json!({ "packets": packets, "bytes": self.bytes, "packets_sha256": self.sha256,
            "apids": apids })
    }

    /// The places where the sequence count does not continue.
    fn sequence_gaps(&self) -> usize {
        let breaks = |packets: &Vec<(u16, usize)>| {
            let steps = packets
                .windows(2)
                .map(|pair| Modulus::PACKET.step(pair[0].0.into(), pair[1].0.into()));
            steps.filter(|step| *step != CountStep::Next).count()
        };
        self.apids.values().map(breaks).sum()
    }
}

/// What the independent readers find in the files, by reader.
fn by_others(python: &str, files: &[PathBuf]) -> BTreeMap<String, Vec<Found>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/packets.py");
    let read = Command::new(python).arg(script).args(files).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let found: BTreeMap<String, Vec<Found>> = serde_json::from_slice(&read.stdout).unwrap();
    assert_eq!(found.keys().collect::<Vec<_>>(), ["ccsdspy", "space_packet_parser"]);
    assert!(found.values().all(|found| found.len() == files.len()));
    found
}

/// What the independent readers find in the files, by reader. Asserts that it equals what we find.
#[track_caller]
fn read_alike(python: &str, files: &[PathBuf]) -> BTreeMap<String, Vec<Found>> {
    let found = by_others(python, files);
    for (reader, found) in &found {
        for (file, theirs) in files.iter().zip(found) {
            let ours = Found::by_us(&std::fs::read(file).unwrap());
            assert_eq!(theirs.account(), ours.account(), "{reader}, {}", file.display());
            for (apid, packets) in &ours.apids {
                assert_eq!(&theirs.apids[apid], packets, "{reader}, {}, {apid}", file.display());
            }
        }
    }
    found
}

/// The packet files of a decoded capture, with the account of each and what independent decoders
/// found in it.
fn decoded(capture: &str, folder: &Path) -> Vec<(PathBuf, Value, Value)> {
    let input = recording(capture).display().to_string();
    let report = printed(&["decode", &input, "--packets-out", "packets", "--json"], folder);
    let report: Value = serde_json::from_str(&report).unwrap();
    let report = &report["files"][0];
    let known = expected(capture);
    let channels = report["vcids"].as_object().unwrap();
    let with_packets = channels.iter().filter(|(_, channel)| channel["packets"] != 0);
    let files = with_packets.map(|(vcid, channel)| {
        let file = format!("packets/{capture}-scid{}-vcid{vcid}.packets", report["scid"]);
        (folder.join(file), channel.clone(), known["vcids"][vcid].clone())
    });
    files.collect()
}

/// Asserts that `found` says the same of what a packet file holds.
#[track_caller]
fn assert_account(account: &Value, found: &Value, context: &str) {
    for (key, value) in account.as_object().unwrap() {
        assert_eq!(&found[key], value, "{context}, {key}");
    }
}

#[test]
fn independent_readers_of_packet_files_agree_with_the_account_and_other_decoders() {
    let Some(python) = python::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let captures = CLEAN.into_iter().chain([WHOLE_CADUS, DAMAGED, IMPAIRED]);
    let decoded: Vec<_> = captures.flat_map(|capture| decoded(capture, folder.path())).collect();
    let files: Vec<PathBuf> = decoded.iter().map(|(file, ..)| file.clone()).collect();
    let written = std::fs::read_dir(folder.path().join("packets")).unwrap();
    let written: BTreeSet<_> = written.map(|file| file.unwrap().path()).collect();
    assert_eq!(
        written,
        files.iter().cloned().collect(),
        "a file for each channel with packets, and no other"
    );
    for (reader, found) in read_alike(&python, &files) {
        for ((file, account, known), found) in decoded.iter().zip(found) {
            let context = format!("{reader}, {}", file.display());
            assert_account(&found.account(), account, &context);
            if context.contains(IMPAIRED) {
                assert!(account["packets"].as_u64() > known["packets"].as_u64(), "{context}");
            } else {
                assert_account(&found.account(), known, &context);
            }
        }
    }
}

#[test]
fn a_changed_byte_in_a_packet_file_is_seen_by_every_reader() {
    let Some(python) = python::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (file, ..) = decoded(CLEAN[0], folder.path()).swap_remove(0);
    let bytes = std::fs::read(&file).unwrap();
    let unchanged = Found::by_us(&bytes);
    let second = Packets::new(&bytes).next().unwrap().1.len();
    // The APID, the sequence count, the packet's data.
    let files = [1, 3, 20].map(|place| {
        let mut changed = bytes.clone();
        changed[second + place] ^= 1;
        let file = folder.path().join(format!("changed-{place}.packets"));
        std::fs::write(&file, changed).unwrap();
        file
    });
    for (reader, found) in read_alike(&python, &files) {
        for (file, found) in files.iter().zip(found) {
            assert_ne!(found, unchanged, "{reader}, {}", file.display());
            assert_eq!(found.bytes, unchanged.bytes, "{reader}, {}", file.display());
        }
    }
}

#[test]
fn packet_files_of_other_missions_agree_with_independent_readers() {
    let Some(known) = shared::read("expected.json") else { return };
    let known: BTreeMap<String, Value> = serde_json::from_slice(&known).unwrap();
    let known: Vec<_> = known
        .iter()
        .filter(|(name, known)| name.starts_with("l0/") && known["packets_sha256"].is_string())
        .collect();
    assert_eq!(known.len(), 9, "packet files with an independent result");
    for (name, known) in &known {
        let file = shared::read(name).unwrap();
        let ours = Found::by_us(&file);
        assert_eq!(ours.bytes, file.len(), "{name} is read to its end");
        let distinct: BTreeSet<&[u8]> = Packets::new(&file).map(|(_, packet)| packet).collect();
        assert_eq!(known["distinct_packets"], distinct.len(), "{name}");
        assert_eq!(known["sequence_gaps"], ours.sequence_gaps(), "{name}");
        let account = ours.account();
        for key in ["packets", "apids", "packets_sha256"] {
            assert_eq!(known[key], account[key], "{name}, {key}");
        }
    }
    let Some(python) = python::python() else { return };
    let files: Vec<PathBuf> = known.iter().map(|(name, _)| shared::path(name)).collect();
    read_alike(&python, &files);
}

#[test]
fn an_independent_reader_splits_variable_length_frames_in_the_same_way() {
    let Some(python) = python::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mission = "name = \"own\"\ntitle = \"Own\"\nscids = [40000]\n[frame]\nkind = \
                  \"uslp\"\nlength = 700\n\
                   variable_length = true\ntruncated_length = 60\nocf = true\nfecf = \
                   true\n[coding]\nrandomiser = \"none\"\n";
    std::fs::write(folder.path().join("own.toml"), mission).unwrap();
    printed(
        &["generate", "--mission", "own.toml", "--frames", "800", "--output", "x.dat"],
        folder.path(),
    );
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/uslp.py");
    let read = Command::new(python)
        .arg(script)
        .arg(folder.path().join("x.dat"))
        .arg("60")
        .output()
        .unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let found: Value = serde_json::from_slice(&read.stdout).unwrap();
    let truth = std::fs::read(folder.path().join("x.truth.json")).unwrap();
    let truth: Value = serde_json::from_slice(&truth).unwrap();
    assert_eq!(found["frames"], truth["frames_sent"]);
    assert!(found["truncated"].as_u64() > Some(30), "{}", found["truncated"]);
    let channels = truth["vcids"].as_object().unwrap();
    assert_eq!(found["vcids"].as_object().unwrap().len(), channels.len());
    for (vcid, channel) in channels {
        let theirs = &found["vcids"][vcid];
        let lengths = theirs["lengths"].as_array().unwrap();
        assert_eq!(channel["good_frames"], lengths.len(), "channel {vcid}");
        let different: BTreeSet<u64> = lengths.iter().filter_map(Value::as_u64).collect();
        assert!(different.len() > 20, "channel {vcid}: {different:?}");
        assert_account(
            &json!({"packets": channel["packets"], "packets_sha256": channel["packets_sha256"]}),
            theirs,
            vcid,
        );
    }
}
