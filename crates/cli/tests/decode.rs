//! `skyhaul decode` against what independent decoders found in real captures, and against bad input.

mod support;

use serde_json::Value;
use std::path::Path;
use std::process::Output;
use support::process::{run, text};
use support::recordings::{CLEAN, expected, noise, recording, sha256};
use support::refusal::assert_refused;

const NPP: &str = CLEAN[0];
const AQUA: &str = CLEAN[1];
const METOP: &str = CLEAN[2];

#[test]
fn the_account_is_that_of_independent_decoders() {
    let files = CLEAN.map(|name| recording(name).display().to_string());
    let arguments: Vec<&str> = files.iter().map(String::as_str).chain(["--json"]).collect();
    let output = decode(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let files = report["files"].as_array().unwrap();
    assert_eq!(files.len(), CLEAN.len());
    for (name, found) in CLEAN.iter().zip(files) {
        let known = expected(name);
        assert!(known["frames_total"].is_u64(), "nothing is known of {name}");
        assert_eq!(found["scid"], known["scid"], "{name}");
        assert_eq!(found["cadus"], known["frames_total"], "{name}");
        assert_eq!(found["clean_frames"], known["frames_total"], "{name}");
        assert_eq!(found["good_frames_sha256"], known["frames_sha256"], "{name}");
        let channels = known["vcids"].as_object().unwrap();
        assert_eq!(found["vcids"].as_object().unwrap().len(), channels.len(), "{name}");
        for (vcid, known) in channels {
            let found = &found["vcids"][vcid];
            assert_eq!(
                (&found["good_frames"], &found["missing_frames"]),
                (&known["frames"], &known["missing"])
            );
            if known.get("packets").is_some() {
                for key in ["packets", "bytes", "packets_sha256", "apids"] {
                    assert_eq!(found[key], known[key], "{name}, channel {vcid}, {key}");
                }
            }
        }
    }
}

#[test]
fn frames_and_packets_are_written_as_accounted() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let capture = recording(NPP).display().to_string();
    let (packets, frames) = (at("packets"), at("frames.bin"));
    let output = decode(&[&capture, "--packets-out", &packets, "--frames-out", &frames, "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let report = &report["files"][0];
    assert_eq!(report["good_frames_sha256"], sha256(&std::fs::read(&frames).unwrap()));
    let file = format!("{NPP}-scid157-vcid16.packets");
    assert_eq!(
        report["vcids"]["16"]["packets_sha256"],
        sha256(&std::fs::read(Path::new(&packets).join(file)).unwrap())
    );

    let again = decode(&[&frames, "--mission", "suomi-npp", "--format", "frames", "--json"]);
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["files"][0]["good_frames_sha256"], report["good_frames_sha256"]);
    assert_eq!(again["files"][0]["vcids"], report["vcids"]);
}

#[test]
fn the_table_names_mission_channels_and_applications() {
    let capture = recording(METOP).display().to_string();
    let table = text(&decode(&[&capture]).stdout);
    for part in ["mission metop-b, spacecraft 11", "1023 clean, 0 corrected", "130: 11, 135: 11"] {
        assert!(table.contains(part), "{table}");
    }
}

#[test]
fn a_truncated_capture_gives_the_frames_that_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.dat");
    std::fs::write(&cut, &std::fs::read(recording(AQUA)).unwrap()[..100_000]).unwrap();
    let output = decode(&[cut.to_str().unwrap(), "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["files"][0]["clean_frames"], 97);
}

#[test]
fn input_that_is_no_capture_is_told_in_one_sentence_and_does_not_keep_others_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (empty, noisy, absent) = (at("empty.dat"), at("noise.dat"), at("absent.dat"));
    std::fs::write(&empty, b"").unwrap();
    std::fs::write(&noisy, noise(100_000)).unwrap();
    for (file, exit, part) in
        [(&empty, 1, "empty.dat"), (&noisy, 1, "no CCSDS marker"), (&absent, 3, "cannot be read")]
    {
        assert_refused(&decode(&[file]), exit, &[part]);
    }
    let capture = recording(NPP).display().to_string();
    let output = decode(&[&noisy, &capture]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("mission suomi-npp"));
}

#[test]
fn unknown_missions_and_unwritable_outputs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.toml");
    std::fs::write(&wrong, "name = \"x\"\nlenght = 3\n").unwrap();
    let capture = recording(NPP).display().to_string();
    let taken = wrong.join("packets");
    for (flags, exit, part) in [
        (["--mission", "suomi"], 2, "write one of"),
        (["--mission", wrong.to_str().unwrap()], 2, "wrong.toml:"),
        (["--packets-out", taken.to_str().unwrap()], 3, "cannot be written"),
        (["--frames-out", taken.to_str().unwrap()], 3, "cannot be written"),
    ] {
        let output = decode(&[&[capture.as_str()], &flags[..]].concat());
        assert_refused(&output, exit, &[part]);
    }
}

fn decode(arguments: &[&str]) -> Output {
    run(&[&["decode"], arguments].concat(), Path::new("."))
}
