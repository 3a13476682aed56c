//! `skyhaul packets` on real packet files, beside what independent decoders found in them, and on
//! damaged ones.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on says so by failing"
)]

use crate::python;
use crate::shared;
use crate::support;
use crate::support::process::{printed, run, text};
use crate::support::recordings::{CLEAN, expected, recording, sha256};
use crate::support::refusal::assert_alone;
use serde_json::Value;
use skyhaul_ccsds::id::Apid;
use skyhaul_ccsds::packet::{Grouping, SpaceHeader};
use skyhaul_ccsds::time::TimeCode;
use skyhaul_level0::construction::{
    ApidEntry, ApidSpan, ConstructionRecord, FileEntry, FileSetTotals, FixedText, GapEntry,
    ProductKind, RecordTime, SoftwareVersion, SpacecraftApid, SpacecraftVcid, Span,
};
use skyhaul_units::{ByteCount, Duration, Utc};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The packet files of the data set that are packets and nothing else.
const WHOLE: [&str; 9] = [
    "P1590011AAAAAAAAAAAAAT21099051420501.PDS",
    "viirs_merge1.dat",
    "viirs_merge2.dat",
    "viirs_packets.dat",
    "ctim_ccsds_2021_155_14_39_51",
    "imap_ultra45_tv_20240124.ccsds",
    "imap_hit_apid1252.pkts",
    "europa_clipper_ecm_raw2.bin",
    "cygnss_f7_2022_086_first101.tlm",
];

/// A construction record with a gap in one application.
fn construction_record() -> Vec<u8> {
    let at =
        |second: i64| RecordTime::cds(Utc::from_micros(1_733_506_700_000_000 + 1_000_000 * second));
    let span = Span { first: at(0), last: at(9) };
    let gap = GapEntry {
        first_missing: 17,
        offset: ByteCount::new(900),
        missed: 3,
        packet_times: span,
        reception: span,
    };
    let apid = ApidEntry {
        stream: SpacecraftApid::new(157, 801),
        first_offset: ByteCount::ZERO,
        vcids: vec![SpacecraftVcid::new(157, 16)],
        gaps: vec![gap],
        fill: Vec::new(),
        fill_octets: ByteCount::ZERO,
        length_discrepancies: Vec::new(),
        packet_times: span,
        reception: span,
        corrected_packets: 2,
        packets: 40,
        size: ByteCount::new(4_000),
    };
    let totals = FileSetTotals {
        packets: 40,
        size: ByteCount::new(4_000),
        gaps: 1,
        ..FileSetTotals::default()
    };
    let record = ConstructionRecord {
        software: SoftwareVersion { major: 1, minor: 2 },
        kind: ProductKind::Pds,
        id: FixedText::new("P1570801AAAAAAAAAAAAAT24341173820000").unwrap(),
        test: false,
        sessions: vec![span],
        totals: FileSetTotals {
            packet_times: span,
            reception: span,
            corrected_packets: 2,
            ..totals
        },
        completed: at(60),
        apids: vec![apid],
        files: vec![FileEntry {
            name: FixedText::new("P1570801AAAAAAAAAAAAAT24341173820001.PDS").unwrap(),
            apids: vec![ApidSpan { stream: SpacecraftApid::new(157, 801), packet_times: span }],
        }],
    };
    record.write().unwrap()
}

#[test]
fn a_construction_record_is_shown_with_its_contents() {
    let folder = tempfile::tempdir().unwrap();
    let name = "P1570801AAAAAAAAAAAAAT24341173820000.PDS";
    let bytes = construction_record();
    std::fs::write(folder.path().join(name), &bytes).unwrap();
    let shown = printed(&["packets", name], folder.path());
    for part in ["production data set", "40 packets, 4000 bytes; 1 gaps", " 801 ", "file P1570801"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let line: Value =
        serde_json::from_str(&printed(&["packets", name, "--json"], folder.path())).unwrap();
    let record = &line["construction_record"];
    assert_eq!((&record["packets"], &record["software"]), (&40.into(), &"1.2".into()));
    assert_eq!(record["apids"][0]["gaps"][0]["missed"], 3);
    assert_eq!(record["completed"], "2024-12-06T17:39:20.000000Z");
    let output = run(&["packets", name, "--csv"], folder.path());
    assert!(!output.status.success() && text(&output.stderr).contains("has no packets"));
    // A damaged one is reported as the kind of file that its name gives.
    std::fs::write(folder.path().join(name), &bytes[..bytes.len() - 5]).unwrap();
    let output = run(&["packets", name], folder.path());
    assert!(
        !output.status.success() && text(&output.stderr).contains("construction record ends early")
    );
}

/// The summary of one file.
fn summary(arguments: &[&str], folder: &Path) -> Value {
    let printed = printed(&[&["packets", "--json", "--summary"], arguments].concat(), folder);
    let mut summary: Value = serde_json::from_str(&printed).unwrap();
    summary["files"][0].take()
}

/// The lines that `--json` prints.
fn lines(arguments: &[&str], folder: &Path) -> Vec<Value> {
    let printed = printed(&[&["packets", "--json"], arguments].concat(), folder);
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Packets by application.
fn counts(summary: &Value) -> Vec<(String, Value)> {
    let apids = summary["apids"].as_object().unwrap();
    let mut counts: Vec<_> =
        apids.iter().map(|(apid, found)| (apid.clone(), found["packets"].clone())).collect();
    counts.sort_by_key(|(apid, _)| apid.parse::<u16>().unwrap());
    counts
}

/// A folder with the packets of the imager of a real pass in `imager.packets`. Returns the path and
/// the name of the file.
struct Pass {
    folder: tempfile::TempDir,
    file: &'static str,
    bytes: Vec<u8>,
}

impl Pass {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let input = recording(CLEAN[0]).display().to_string();
        printed(&["decode", &input, "--packets-out", "packets"], folder.path());
        let file = "packets/npp.20241206T173815.dat-scid157-vcid16.packets";
        let bytes = std::fs::read(folder.path().join(file)).unwrap();
        Self { folder, file, bytes }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn lines(&self, arguments: &[&str]) -> Vec<Value> {
        lines(&[&[self.file], arguments].concat(), self.path())
    }
}

#[test]
fn the_files_of_the_data_set_hold_what_independent_readers_found() {
    let folder = tempfile::tempdir().unwrap();
    let Some(known) = shared::read("expected.json") else { return };
    let known: Value = serde_json::from_slice(&known).unwrap();
    for name in WHOLE {
        let path = shared::path(&format!("l0/{name}")).display().to_string();
        let known = &known[format!("l0/{name}")];
        let found = summary(&[&path, "--output", "copy"], folder.path());
        assert_eq!(found["packets"], known["packets"], "{name}");
        let breaks = found["gaps"].as_u64().unwrap() + found["resets"].as_u64().unwrap();
        assert_eq!(breaks, known["sequence_gaps"].as_u64().unwrap(), "{name}");
        let theirs = known["apids"].as_object().unwrap();
        let mut theirs: Vec<_> =
            theirs.iter().map(|(apid, count)| (apid.clone(), count.clone())).collect();
        theirs.sort_by_key(|(apid, _)| apid.parse::<u16>().unwrap());
        assert_eq!(counts(&found), theirs, "{name}");
        let copy = std::fs::read(folder.path().join("copy")).unwrap();
        assert_eq!(sha256(&copy), known["packets_sha256"].as_str().unwrap(), "{name}");
        assert_eq!(found["damage"], Value::Array(Vec::new()), "{name}");
    }
}

#[test]
fn the_name_of_a_product_gives_its_mission_and_so_the_times() {
    let name = WHOLE[0];
    let folder = tempfile::tempdir().unwrap();
    let Some(known) = shared::read("expected.json") else { return };
    let known: Value = serde_json::from_slice(&known).unwrap();
    let found =
        summary(&[&shared::path(&format!("l0/{name}")).display().to_string()], folder.path());
    let record = &known["l0/P1590011AAAAAAAAAAAAAT21099051420500.PDS"];
    assert_eq!(found["mission"], "noaa-20");
    for (ours, theirs) in [("first", "first_packet_utc"), ("last", "last_packet_utc")] {
        let theirs = record[theirs].as_str().unwrap().replace(' ', "T").replace("+00:00", "Z");
        assert_eq!(found[ours], theirs);
    }
}

#[test]
fn a_file_with_extra_bytes_before_each_packet_is_not_a_packet_file() {
    let path = shared::path("l0/suda_sciData_2022_130_17_41_53.spl");
    if shared::read("l0/suda_sciData_2022_130_17_41_53.spl").is_none() {
        return;
    }
    let output = run(&["packets", &path.display().to_string()], Path::new("."));
    assert_alone(&output, 1, &["suda_sciData"]);
}

#[test]
fn decoded_packets_agree_with_the_account_of_the_capture() {
    let pass = Pass::new();
    let found = summary(&[pass.file], pass.path());
    let known = &expected(CLEAN[0])["vcids"]["16"];
    assert_eq!((&found["packets"], &found["bytes"]), (&known["packets"], &known["bytes"]));
    assert_eq!(found["mission"], "suomi-npp");
    let theirs = known["apids"].as_object().unwrap();
    assert_eq!(counts(&found).len(), theirs.len());
    for (apid, count) in counts(&found) {
        assert_eq!(count, theirs[&apid], "{apid}");
    }
    let table = printed(&["packets", pass.file], pass.path());
    assert!(table.contains("mission suomi-npp"), "{table}");
    assert!(table.lines().any(|line| line.trim_start().starts_with("817 ")), "{table}");
}

#[test]
fn lines_values_and_bytes_are_those_of_the_packets() {
    let pass = Pass::new();
    let all = pass.lines(&["--bytes"]);
    let bytes: String = all.iter().map(|line| line["bytes"].as_str().unwrap()).collect();
    assert_eq!(bytes, support::recordings::hex(&pass.bytes));
    let mut offset = 0;
    for line in &all {
        assert_eq!(line["offset"], offset);
        offset += line["length"].as_u64().unwrap();
    }
    let csv = printed(&["packets", "--csv", pass.file], pass.path());
    let mut rows = csv.lines();
    let columns: Vec<&str> = rows.next().unwrap().split(',').collect();
    assert_eq!(rows.clone().count(), all.len());
    for (row, line) in rows.zip(&all) {
        for (column, value) in columns.iter().zip(row.split(',')) {
            let ours = match &line[*column] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(value, ours, "{column} of {line}");
        }
    }
}

#[test]
fn packets_are_chosen_by_application_and_time_and_number() {
    let pass = Pass::new();
    let all = pass.lines(&[]);
    let apid = |line: &Value| line["apid"].as_u64().unwrap();
    let some: Vec<_> =
        all.iter().filter(|line| [802, 803, 817].contains(&apid(line))).cloned().collect();
    assert!(!some.is_empty());
    assert_eq!(pass.lines(&["--apid", "802-803,817"]), some);
    assert_eq!(pass.lines(&["--head"]), all[..10]);
    assert_eq!(pass.lines(&["--apid", "802-803,817", "--head", "3"]), some[..3]);
}

#[test]
fn a_selection_by_time_takes_a_group_by_the_time_of_its_first_packet() {
    let bench = tempfile::tempdir().unwrap();
    let start: Utc = Utc::from_day(20_063, Duration::ZERO);
    let parts = [Grouping::First, Grouping::Continuation, Grouping::Last];
    let packets = (0..60u16).flat_map(|count| {
        let grouping = parts[usize::from(count) % 3];
        let has_secondary = grouping == Grouping::First;
        let apid = Apid::new(800).unwrap();
        let header = SpaceHeader {
            is_telecommand: false,
            has_secondary,
            apid,
            grouping,
            count,
            total_len: 30,
        };
        let mut packet = [0x40; 30];
        packet[..6].copy_from_slice(&header.to_bytes());
        let time = start + Duration::from_secs(u64::from(count / 3));
        assert!(!has_secondary || TimeCode::Cds8.write(time, &mut packet[6..]));
        packet
    });
    let name = "generated-scid157-vcid16.packets";
    std::fs::write(bench.path().join(name), packets.collect::<Vec<_>>()).unwrap();
    let counts = |arguments: &[&str]| -> Vec<u64> {
        let lines = lines(&[&[name], arguments].concat(), bench.path());
        lines.iter().map(|line| line["count"].as_u64().unwrap()).collect()
    };
    let (fifth, tenth) = ("2024-12-06T00:00:05Z", "2024-12-06T00:00:10Z");
    assert_eq!(counts(&["--to", fifth]), (0..15).collect::<Vec<_>>());
    assert_eq!(counts(&["--from", fifth, "--to", tenth]), (15..30).collect::<Vec<_>>());
    let found = summary(&[name, "--from", fifth], bench.path());
    assert_eq!((&found["packets"], &found["passed_over"]), (&45.into(), &15.into()));
    assert_eq!(
        (&found["first"], &found["last"]),
        (&"2024-12-06T00:00:05.000000Z".into(), &"2024-12-06T00:00:19.000000Z".into())
    );
}

#[test]
fn packets_are_read_from_standard_input_too() {
    let pass = Pass::new();
    let file = std::fs::File::open(pass.path().join(pass.file)).unwrap();
    let mut command =
        support::process::skyhaul(&["packets", "-", "--json", "--summary"], pass.path());
    let output = command.stdin(file).output().unwrap();
    assert!(output.status.success());
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["files"][0]["bytes"], pass.bytes.len());
}

#[test]
fn damage_is_reported_with_its_place_and_the_other_packets_are_read() {
    let pass = Pass::new();
    let all = pass.lines(&[]);
    let place = |at: usize| all[at]["offset"].as_u64().unwrap() as usize;
    let mut wrong_header = pass.bytes.clone();
    wrong_header[place(50)] |= 0x60;
    let cut = pass.bytes[..pass.bytes.len() - 5].to_vec();
    let noisy = [&pass.bytes[..place(70)], &[0x55; 5_000], &pass.bytes[place(70)..]].concat();
    for (name, bytes, lost, offset) in [
        ("header.packets", wrong_header, 1, place(50)),
        ("cut.packets", cut, 1, place(all.len() - 1)),
        ("noisy.packets", noisy, 0, place(70)),
    ] {
        pass.write(name, &bytes);
        let output = run(&["packets", name, "--json", "--summary"], pass.path());
        assert_alone(&output, 1, &["are not packets", &format!("byte {offset}:"), name]);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let found = &found["files"][0];
        assert_eq!(found["packets"], all.len() - lost, "{name}");
        assert_eq!(found["damaged_places"], 1, "{name}");
        assert_eq!(found["damage"][0]["offset"], offset, "{name}");
        let whole = found["bytes"].as_u64().unwrap() + found["damaged_bytes"].as_u64().unwrap();
        assert_eq!(whole, bytes.len() as u64, "{name}");
    }
}

#[test]
fn parquet_files_hold_the_same_values_as_the_lines() {
    let Some(python) = python::python() else { return };
    let pass = Pass::new();
    let encapsulation =
        pass.write("encapsulation.packets", &[pass.bytes.as_slice(), &[0xE9, 3, 7, 0xE0]].concat());
    let files = [pass.file, encapsulation.to_str().unwrap()];
    for flags in [&[][..], &["--bytes"]] {
        let arguments = [&files[..], flags].concat();
        let made = [&["packets", "--json", "--parquet", "p.parquet"], &arguments[..]].concat();
        let ours = printed(&made, pass.path());
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/table.py");
        let read =
            Command::new(&python).arg(script).arg(pass.path().join("p.parquet")).output().unwrap();
        assert!(read.status.success(), "{}", text(&read.stderr));
        let theirs = text(&read.stdout);
        let (ours, theirs): (Vec<_>, Vec<_>) = (ours.lines().collect(), theirs.lines().collect());
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(theirs) {
            let (mut ours, theirs): (Value, Value) =
                (serde_json::from_str(ours).unwrap(), serde_json::from_str(theirs).unwrap());
            ours.as_object_mut().unwrap().remove("protocol");
            assert_eq!(ours, theirs);
        }
    }
}
