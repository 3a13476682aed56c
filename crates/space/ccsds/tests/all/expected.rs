//! Byte-identical to what independent decoders made of real downlinks (`testdata/expected.json`,
//! made by the programs that its `peers` name).

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may fail, and says what it skips"
)]

use serde_json::Value;
use skyhaul_ccsds::account::{Account, ChannelReport, FileReport};
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
use skyhaul_ccsds::decode::restore_cadu;
use skyhaul_ccsds::identify::{Identification, InputLayout};
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_ccsds::quality::{BitPosition, CapturedFrame};
use skyhaul_units::Utc;
use std::path::PathBuf;

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata");
const SHARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/data");

struct Captured {
    identification: Identification,
    events: Vec<CaptureEvent>,
    report: FileReport,
}

impl Captured {
    fn frames(&self) -> impl Iterator<Item = &CapturedFrame> {
        self.events.iter().filter_map(|event| {
            if let CaptureEvent::Frame(frame) = event { Some(frame) } else { None }
        })
    }
}

fn capture(bytes: &[u8], options: CaptureOptions, push: usize) -> Captured {
    capture_among(MissionSet::built_in(), bytes, options, push)
}

fn capture_among(
    missions: MissionSet,
    bytes: &[u8],
    options: CaptureOptions,
    push: usize,
) -> Captured {
    let mut capture = Capture::new(missions.clone(), options);
    let mut events = Vec::new();
    for (number, chunk) in bytes.chunks(push).enumerate() {
        capture.push(Utc::from_micros(number as i64), chunk);
        events.extend(std::iter::from_fn(|| capture.poll()));
    }
    capture.finish();
    events.extend(std::iter::from_fn(|| capture.poll()));
    let CaptureEvent::Identified(identification) = events.remove(0) else { panic!("{:?}", events) };
    let mut account = Account::new(&identification.mission, &missions);
    for event in &events {
        if let CaptureEvent::Frame(frame) = event {
            account.feed(frame);
        }
    }
    Captured { identification: *identification, events, report: account.finish("file") }
}

fn cadu_file(name: &str) -> Vec<u8> {
    std::fs::read(PathBuf::from(TESTDATA).join("cadu").join(name)).unwrap()
}

fn expected(path: &str) -> Value {
    let text = std::fs::read_to_string(PathBuf::from(TESTDATA).join("expected.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()[path].take()
}

/// Compares a channel with the independent result, as far as that goes.
fn assert_channel(report: &ChannelReport, expected: &Value, context: &str) {
    let report = serde_json::to_value(report).unwrap();
    let names = [
        ("frames", "good_frames"),
        ("good_frames", "good_frames"),
        ("missing", "missing_frames"),
        ("missing_frames", "missing_frames"),
        ("packets", "packets"),
        ("bytes", "bytes"),
        ("packet_bytes", "bytes"),
        ("packets_sha256", "packets_sha256"),
        ("apids", "apids"),
    ];
    let mut compared = 0;
    for (theirs, ours) in names {
        if let Some(value) = expected.get(theirs) {
            assert_eq!(&report[ours], value, "{context} {theirs}");
            compared += 1;
        }
    }
    assert!(compared >= 2, "{context}: nothing to compare");
}

fn assert_channels(report: &FileReport, expected: &Value, context: &str) {
    for (vcid, channel) in expected["vcids"].as_object().unwrap() {
        let ours = &report.vcids[&vcid.parse().unwrap()];
        assert_channel(ours, channel, &format!("{context} channel {vcid}"));
    }
}

#[test]
fn clean_captures_equal_the_independent_results() {
    let cases = [
        ("npp.20241206T173815.dat", "suomi-npp", InputLayout::Bits),
        ("aqua.20241206T175646.dat", "aqua", InputLayout::Bits),
        ("metopb.20241206T152751.dat", "metop-b", InputLayout::Bits),
        ("snpp_synchronized_cadus.dat", "suomi-npp", InputLayout::Cadus),
    ];
    for (name, mission, format) in cases {
        let expected = expected(&format!("cadu/{name}"));
        let Captured { identification, report, .. } =
            capture(&cadu_file(name), CaptureOptions::default(), 5000);
        assert_eq!(
            (identification.mission.name(), identification.format),
            (mission, format),
            "{name}"
        );
        assert_eq!(Value::from(report.scid.unwrap().value()), expected["scid"], "{name}");
        assert_eq!(Value::from(report.good_frames), expected["frames_total"], "{name}");
        assert_eq!(
            Value::from(report.good_frames_sha256.clone()),
            expected["frames_sha256"],
            "{name}"
        );
        assert_eq!((report.corrected_frames, report.uncorrectable_frames), (0, 0), "{name}");
        assert_channels(&report, &expected, name);
        let theirs = expected["vcids"].as_object().unwrap().len();
        assert_eq!((report.vcids.len(), report.other_spacecraft.len()), (theirs, 0), "{name}");
    }
}

#[test]
fn symbol_errors_are_corrected_and_counted_as_independent_decoders_do() {
    let name = "npp_rs_errors.dat";
    let expected = expected(&format!("cadu/{name}"));
    let report = capture(&cadu_file(name), CaptureOptions::default(), 64 * 1024).report;
    let ours = serde_json::to_value(&report).unwrap();
    let names = [
        ("cadus", "cadus"),
        ("clean_frames", "clean_frames"),
        ("rs_corrected_frames", "corrected_frames"),
        ("rs_uncorrectable_frames", "uncorrectable_frames"),
        ("rs_corrected_symbols_in_good_frames", "corrected_symbols"),
        ("good_frames", "good_frames"),
        ("good_frames_sha256", "good_frames_sha256"),
    ];
    for (theirs, name) in names {
        assert_eq!(ours[name], expected[theirs], "{theirs}");
    }
    assert_channels(&report, &expected, name);
}

#[test]
fn impaired_synchronisation_loses_only_what_cannot_be_recovered() {
    let clean = capture(&cadu_file("npp.20241206T173815.dat"), CaptureOptions::default(), 4096);
    let impaired = capture(&cadu_file("npp_sync_impaired.dat"), CaptureOptions::default(), 4096);
    // The bits were deleted inside one CADU and another one was dropped: what is left of the clean
    // capture is known.
    let kept = clean
        .frames()
        .enumerate()
        .filter(|(index, _)| ![150, 450].contains(index))
        .map(|(_, frame)| frame);
    let mut account = Account::new(&clean.identification.mission, &MissionSet::empty());
    kept.for_each(|frame| account.feed(frame));
    let best = account.finish("file");
    assert_eq!(best.good_frames, 1021);
    let expected = expected("cadu/npp_sync_impaired.dat");
    assert_eq!(expected["best_possible_good_frames"], Value::from(best.good_frames));
    assert_eq!(impaired.report.good_frames_sha256, best.good_frames_sha256);
    assert_eq!(impaired.report.vcids, best.vcids);
    assert_eq!(impaired.report.uncorrectable_frames, 1);
    let channel = &impaired.report.vcids[&16];
    let theirs = &expected["vcids"]["16"];
    assert!(channel.packets > theirs["packets"].as_u64().unwrap());
    for (apid, count) in theirs["apids"].as_object().unwrap() {
        assert!(channel.apids[&apid.parse().unwrap()] >= count.as_u64().unwrap(), "{apid}");
    }
    let inverted = impaired.frames().filter(|frame| frame.quality.inverted).count();
    assert_eq!(inverted, 1023 - 600);
    let slipped =
        impaired.frames().filter(|frame| frame.quality.slip != 0).map(|frame| frame.quality.slip);
    assert_eq!(slipped.collect::<Vec<i8>>(), [-3, 5]);
}

#[test]
fn the_size_of_the_pushes_does_not_matter() {
    for name in ["npp_sync_impaired.dat", "metopb.20241206T152751.dat"] {
        let bytes = &cadu_file(name)[..200_000];
        let whole = capture(bytes, CaptureOptions::default(), bytes.len());
        for push in [1, 1023, 8192] {
            let pieces = capture(bytes, CaptureOptions::default(), push);
            assert_eq!(pieces.report, whole.report, "{name} {push}");
            let positions = |captured: &Captured| {
                captured.frames().map(|frame| frame.position).collect::<Vec<_>>()
            };
            assert_eq!(positions(&pieces), positions(&whole), "{name} {push}");
        }
    }
}

#[test]
fn a_capture_resumed_after_any_frame_continues_with_the_next() {
    let bytes = cadu_file("npp_sync_impaired.dat");
    let whole = capture(&bytes, CaptureOptions::default(), 4096);
    let frames: Vec<&CapturedFrame> = whole.frames().filter(|frame| frame.is_good()).collect();
    let mission = whole.identification.mission.clone();
    for index in [0, 9, 10, 148, 149, 150, 298, 299, 300, 598, 599, 1019] {
        let start = frames[index].position.plus_bits(8 * mission.cadu_len() as u64);
        let options = CaptureOptions {
            start,
            mission: Some(mission.clone()),
            format: Some(InputLayout::Bits),
            ..CaptureOptions::default()
        };
        let end = bytes.len().min(start.byte() as usize + 20_000);
        let resumed = capture(&bytes[start.byte() as usize..end], options, 1000);
        let first = resumed.frames().find(|frame| frame.is_good()).unwrap();
        assert_eq!(
            (first.position, &first.bytes),
            (frames[index + 1].position, &frames[index + 1].bytes),
            "{index}"
        );
    }
}

#[test]
fn restored_cadus_equal_the_received_ones_bit_by_bit() {
    for name in
        ["npp.20241206T173815.dat", "aqua.20241206T175646.dat", "metopb.20241206T152751.dat"]
    {
        let bytes = cadu_file(name);
        let options = CaptureOptions { keep_check_symbols: true, ..CaptureOptions::default() };
        let captured = capture(&bytes, options, 8192);
        let mission = &captured.identification.mission;
        let mut compared = 0;
        for frame in captured.frames() {
            let restored = restore_cadu(frame, mission).unwrap();
            let position = frame.position.as_bits() as usize;
            let received: Vec<u8> = (0..mission.cadu_len())
                .map(|byte| {
                    let at = position + 8 * byte;
                    let pair =
                        u16::from_be_bytes([bytes[at / 8], *bytes.get(at / 8 + 1).unwrap_or(&0)]);
                    (pair >> (8 - at % 8)) as u8
                })
                .collect();
            assert_eq!(restored, received, "{name} at {position}");
            assert_eq!(frame.check_symbols.len(), 128);
            compared += 1;
        }
        assert_eq!(compared, 1023, "{name}");
    }
}

#[test]
fn packet_times_are_those_of_the_pass() {
    let cases = [
        ("npp.20241206T173815.dat", "2024-12-06T17:", 10),
        ("aqua.20241206T175646.dat", "2024-12-06T1", 500),
        ("metopb.20241206T152751.dat", "2024-12-06T15:", 50),
    ];
    for (name, prefix, fewest) in cases {
        let captured = capture(&cadu_file(name), CaptureOptions::default(), 8192);
        let mission = captured.identification.mission.clone();
        let mut account = Account::new(&mission, &MissionSet::empty());
        let mut timed = 0;
        for frame in captured.frames() {
            account.feed_with(frame, |packet| {
                if let Some(time) = mission.packet_time(&packet.bytes) {
                    timed += 1;
                    let header = packet.header;
                    assert!(
                        time.to_string().starts_with(prefix),
                        "{name} {time} {header:?} {:02x?}",
                        &packet.bytes[..24]
                    );
                }
            });
        }
        assert!(timed >= fewest, "{name}: {timed} packets with a time");
    }
}

/// Frame files of deep-space missions, and the program's missions for them.
const FRAME_FILES: [(&str, &str); 7] = [
    ("europa_clipper_aos_1113.bin", "europa-clipper"),
    ("psyche_2023-10-13T155116_aos_1113.bin", "psyche"),
    ("euclid_lowrate_tm_1113.bin", "euclid"),
    ("change5_2020-11-29_0_aos_220.bin", "change-5"),
    ("change5_2021-01-23_aos_220.bin", "change-5"),
    ("escapade_gold_1649_tm_1113.bin", "escapade-gold"),
    ("equuleus_aos_444.bin", "equuleus"),
];

fn frame_file(name: &str) -> Option<(Vec<u8>, Value)> {
    let bytes = std::fs::read(PathBuf::from(SHARED).join("frames").join(name));
    let text = std::fs::read_to_string(PathBuf::from(SHARED).join("expected.json"));
    let (Ok(bytes), Ok(text)) = (bytes, text) else {
        eprintln!("SKIPPED: {name} is not on this machine");
        return None;
    };
    Some((bytes, serde_json::from_str::<Value>(&text).unwrap()[format!("frames/{name}")].take()))
}

#[test]
fn deep_space_frame_files_equal_the_independent_results() {
    for (name, mission) in FRAME_FILES {
        let Some((bytes, expected)) = frame_file(name) else { continue };
        let captured = capture(&bytes, CaptureOptions::default(), 4096);
        assert_eq!(captured.identification.format, InputLayout::Frames, "{name}");
        assert_eq!(captured.identification.mission.name(), mission, "{name}");
        assert_eq!(Value::from(captured.report.cadus), expected["frames_total"], "{name}");
        assert_channels(&captured.report, &expected, name);
    }
}

#[test]
fn unknown_frame_files_give_their_frames_as_generic() {
    for (name, _) in FRAME_FILES {
        let Some((bytes, expected)) = frame_file(name) else { continue };
        let captured = capture_among(MissionSet::empty(), &bytes, CaptureOptions::default(), 4096);
        assert!(captured.identification.is_generic, "{name}");
        assert_eq!(captured.identification.format, InputLayout::Frames, "{name}");
        assert_eq!(
            Value::from(captured.identification.mission.frame().length),
            expected["frame_len"],
            "{name}"
        );
        assert_eq!(Value::from(captured.report.cadus), expected["frames_total"], "{name}");
    }
}

#[test]
fn unknown_spacecraft_give_their_frames_as_generic() {
    for name in ["npp.20241206T173815.dat", "npp_rs_errors.dat"] {
        let bytes = cadu_file(name);
        let mut capture = Capture::new(MissionSet::empty(), CaptureOptions::default());
        capture.push(Utc::default(), &bytes);
        capture.finish();
        let Some(CaptureEvent::Identified(found)) = capture.poll() else {
            panic!("not identified")
        };
        assert!(found.is_generic);
        assert_eq!((found.mission.cadu_len(), found.scid.unwrap().value()), (1024, 157));
        let good = std::iter::from_fn(|| capture.poll())
            .filter(|event| matches!(event, CaptureEvent::Frame(frame) if frame.is_good()))
            .count();
        assert!(good >= 921, "{good}");
    }
}

#[test]
fn of_two_missions_that_fit_the_one_with_more_whole_packets_is_taken() {
    let bytes = cadu_file("npp.20241206T173815.dat");
    let npp = MissionSet::built_in().by_name("suomi-npp").unwrap().text().to_owned();
    let own = |name: &str, zone: &str| {
        let text = npp
            .replace("\"suomi-npp\"", &format!("\"{name}\""))
            .replace("length = 892", &format!("length = 892\n{zone}"));
        Mission::from_toml(&text).unwrap()
    };
    let mut missions = MissionSet::built_in();
    missions.add(own("wrong-zones", "insert_zone = 5")).unwrap();
    let captured = capture_among(missions.clone(), &bytes, CaptureOptions::default(), 4096);
    assert_eq!(captured.identification.mission.name(), "suomi-npp");
    assert_eq!(captured.identification.also_fits, ["wrong-zones"]);
    // Among equals one's own comes before the program's.
    missions.add(own("same", "")).unwrap();
    let captured = capture_among(missions, &bytes, CaptureOptions::default(), 4096);
    assert_eq!(captured.identification.mission.name(), "same");
    assert_eq!(captured.identification.also_fits, ["wrong-zones", "suomi-npp"]);
}

#[test]
fn two_spacecraft_in_one_stream_are_told_apart() {
    // Eight frames of the one, then one of the other, which have the same coding.
    let npp = cadu_file("npp.20241206T173815.dat");
    let aqua = cadu_file("aqua.20241206T175646.dat");
    let cadus = |bytes: &[u8]| {
        let captured = capture(bytes, CaptureOptions::default(), 4096);
        let restored =
            captured.frames().map(|frame| restore_cadu(frame, &captured.identification.mission));
        restored.collect::<Result<Vec<_>, _>>().unwrap()
    };
    let (npp, aqua) = (cadus(&npp), cadus(&aqua));
    let mut bytes = Vec::new();
    for (index, cadus) in npp.chunks(8).enumerate() {
        bytes.extend(cadus.iter().flatten());
        bytes.extend(&aqua[index]);
    }
    let captured = capture(&bytes, CaptureOptions::default(), 4096);
    let others = captured.events.iter().filter_map(|event| match event {
        CaptureEvent::OtherSpacecraft { scid, mission } => {
            Some((scid.value(), mission.as_ref().unwrap().name().to_owned()))
        }
        _ => None,
    });
    assert_eq!(others.collect::<Vec<_>>(), [(154, "aqua".to_owned())]);
    assert_channels(&captured.report, &expected("cadu/npp.20241206T173815.dat"), "npp");
    let [other] = captured.report.other_spacecraft.as_slice() else {
        panic!("one other spacecraft")
    };
    assert_eq!(other.good_frames, npp.len().div_ceil(8) as u64);
}

#[test]
fn inputs_without_frames_end_unidentified() {
    let mut state = 7u64;
    let noise: Vec<u8> = (0..600_000)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect();
    for bytes in
        [&[][..], &noise[..], &[0u8; 100_000][..], &cadu_file("npp.20241206T173815.dat")[..500]]
    {
        let mut capture = Capture::new(MissionSet::built_in(), CaptureOptions::default());
        for chunk in bytes.chunks(10_000) {
            capture.push(Utc::default(), chunk);
        }
        capture.finish();
        let events: Vec<CaptureEvent> = std::iter::from_fn(|| capture.poll()).collect();
        assert!(
            matches!(events[..], [CaptureEvent::Unidentified(_)]),
            "{} bytes: {events:?}",
            bytes.len()
        );
        assert_eq!(capture.stats().sync.dropped_bits, 8 * bytes.len() as u64);
    }
}

#[test]
fn a_capture_that_begins_in_noise_is_identified_when_the_signal_comes() {
    let mut bytes = vec![0x55u8; 700_001];
    bytes.extend(cadu_file("npp.20241206T173815.dat"));
    let captured = capture(&bytes, CaptureOptions::default(), 4096);
    assert_eq!(captured.report.good_frames, 1023);
    let first = captured.frames().next().unwrap();
    assert!(first.position > BitPosition::from_bits(8 * 700_001));
}
