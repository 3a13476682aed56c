//! `skyhaul generate`: `skyhaul decode` recovers from its downlinks what it says can be recovered.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may fail, and receives beside the program that it tests"
)]

use crate::support::process::{printed, run, text};
use serde_json::Value;
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;

/// Compares the account of a decoded file with the truth.
fn assert_truth(folder: &Path, file: &str, mission: &[&str]) -> Value {
    let truth = std::fs::read_to_string(folder.join(file).with_extension("truth.json")).unwrap();
    let truth: Value = serde_json::from_str(&truth).unwrap();
    let arguments = [&["decode", file, "--json"], mission].concat();
    let report: Value = serde_json::from_str(&printed(&arguments, folder)).unwrap();
    let found = &report["files"][0];
    assert_eq!(found["mission"], truth["mission"]);
    for key in ["good_frames", "good_frames_sha256", "corrected_frames", "corrected_symbols"] {
        assert_eq!(found[key], truth[key], "{file} {key}");
    }
    let channels = truth["vcids"].as_object().unwrap();
    assert_eq!(found["vcids"].as_object().unwrap().len(), channels.len(), "{file}");
    for (vcid, channel) in channels {
        for key in ["good_frames", "packets", "bytes", "packets_sha256", "apids"] {
            assert_eq!(found["vcids"][vcid][key], channel[key], "{file} channel {vcid} {key}");
        }
    }
    truth
}

#[test]
fn a_hundred_thousand_frames_of_noaa_21_are_decoded_as_they_were_sent() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["generate", "--mission", "noaa-21", "--frames", "100000", "--output", "x.dat"];
    let said = printed(&arguments, folder.path());
    assert!(said.starts_with("100000 frames of mission noaa-21, 127900000 bytes"), "{said}");
    let truth = assert_truth(folder.path(), "x.dat", &[]);
    assert_eq!((&truth["frames_sent"], &truth["good_frames"]), (&100_000.into(), &100_000.into()));
    assert!(truth["vcids"]["16"]["packets"].as_u64().unwrap() > 10_000);
}

#[test]
fn decoding_loses_what_the_truth_file_says() {
    let folder = tempfile::tempdir().unwrap();
    let errors = [
        "--correctable",
        "10%",
        "--uncorrectable",
        "1%",
        "--bursts",
        "1%",
        "--burst-bytes",
        "70",
        "--slipped",
        "1%",
    ];
    let more = [
        "--gaps",
        "1%",
        "--gap-frames",
        "20",
        "--marker",
        "1%",
        "--inverted",
        "1%",
        "--offset-bits",
        "5",
    ];
    for mission in ["suomi-npp", "terra", "gcom-w1", "metop-sg-b1"] {
        let file = format!("{mission}.dat");
        let start = ["generate", "--mission", mission, "--frames", "3000", "--output", &file];
        printed(&[&start[..], &errors, &more].concat(), folder.path());
        let truth = assert_truth(folder.path(), &file, &[]);
        assert!(
            truth["corrected_frames"].as_u64() > Some(200)
                && truth["dropped_frames"].as_u64() > Some(20)
        );
    }
}

#[test]
fn a_description_sets_mission_packets_and_errors() {
    let folder = tempfile::tempdir().unwrap();
    let mission = "name = \"own\"\ntitle = \"Own\"\nscids = [40000]\n[frame]\nkind = \
                  \"uslp\"\nlength = 892\nfecf = true\n\
                   [coding]\nrandomiser = \"ccsds255\"\n[coding.reed_solomon]\ncorrects = \
                   16\ninterleave = 4\nbasis = \"dual\"\n";
    std::fs::write(folder.path().join("own.toml"), mission).unwrap();
    let description = "mission = \"own.toml\"\nrate = \"2 Mbit/s\"\n[errors]\ndropped = \"1 %\"\n\
                       [[packets]]\nvcid = 4\nmap = 7\napids = [\"10-12\"]\nevery = \"30 \
                       ms\"\ngroup = 2\n";
    std::fs::write(folder.path().join("downlink.toml"), description).unwrap();
    let arguments =
        ["generate", "downlink.toml", "--duration", "5s", "--output", "own.dat", "--json"];
    let said: Value = serde_json::from_str(&printed(&arguments, folder.path())).unwrap();
    assert_eq!(said["frames_sent"], 1_221, "5 s of 1024 bytes at 2 Mbit/s");
    let truth = assert_truth(folder.path(), "own.dat", &["--mission", "own.toml"]);
    assert!(truth["dropped_frames"].as_u64() > Some(0));
    assert_eq!(truth["vcids"]["4"]["apids"].as_object().unwrap().len(), 4, "idle packets too");
}

#[test]
fn a_downlink_goes_to_standard_output_and_over_tcp_alike() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["generate", "--mission", "equuleus", "--layout", "frames", "--frames", "300"];
    let output = run(&[&arguments[..], &["--output", "-"]].concat(), folder.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(output.stdout.len(), 300 * 444);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let receiver = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let over =
        ["--to-tcp", &address, "--paced", "--rate", "10 Mbit/s", "--truth", "got.truth.json"];
    printed(&[&arguments[..], &over].concat(), folder.path());
    let bytes = receiver.join().unwrap();
    assert!(bytes == output.stdout);
    std::fs::write(folder.path().join("got.bin"), bytes).unwrap();
    assert_truth(folder.path(), "got.bin", &[]);
}

#[test]
fn noisy_symbols_decode_to_what_was_sent() {
    let folder = tempfile::tempdir().unwrap();
    let parity = "name = \"parity\"\ntitle = \"Parity\"\nscids = [77]\n[frame]\nkind = \
                 \"tm\"\nlength = 512\n\
                  [coding]\nrandomiser = \"ccsds255\"\n[coding.ldpc]\ncode = \"ar4ja\"\nrate = \
                  \"1/2\"\nk = 4096\n";
    std::fs::write(folder.path().join("parity.toml"), parity).unwrap();
    for (mission, ebn0, format) in [
        ("suomi-npp", "4", "soft"),
        ("suomi-npp", "6.5", "hard"),
        ("noaa-21", "9", "soft"),
        ("parity.toml", "2.4", "soft"),
        ("parity.toml", "7", "hard"),
    ] {
        let symbols = ["--symbols", format, "--ebn0", ebn0, "--frames", "400", "--output", "x.dat"];
        printed(&[&["generate", "--mission", mission], &symbols[..]].concat(), folder.path());
        let format = if format == "soft" { "soft" } else { "symbols" };
        let truth = std::fs::read(folder.path().join("x.truth.json")).unwrap();
        let truth: Value = serde_json::from_slice(&truth).unwrap();
        let decoded = ["decode", "x.dat", "--json", "--mission", mission, "--format", format];
        let decoded: Value = serde_json::from_str(&printed(&decoded, folder.path())).unwrap();
        for key in ["good_frames", "good_frames_sha256"] {
            assert_eq!(decoded["files"][0][key], truth[key], "{mission}, {format}");
        }
        assert!(truth["symbols"]["wrong_symbols"].as_u64() > Some(0), "{mission}: {truth}");
    }
    let decoded = ["decode", "x.dat", "--mission", "parity.toml", "--format", "symbols"];
    let table = printed(&decoded, folder.path());
    assert!(
        table.contains("for 400 codewords, ") && table.contains(" at most; 0 not met"),
        "{table}"
    );
}

#[test]
fn what_cannot_be_sent_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], code: i32, said: &str| {
        let output = run(&[&["generate", "--output", "x.dat"], arguments].concat(), folder.path());
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{error}");
        assert!(error.contains(said) && error.contains("; help: "), "{error}");
    };
    std::fs::write(folder.path().join("wrong.toml"), "mission = \"aqua\"\nspeed = 3\n").unwrap();
    refused(&[], 2, "no mission is given");
    refused(&["--mission", "apollo"], 2, "there is no mission `apollo`");
    let frames = ["--mission", "aqua", "--layout", "frames", "--symbols", "soft"];
    refused(&frames, 2, "frames alone are not sent as symbols");
    refused(&["wrong.toml"], 2, "line 2: unknown field `speed`");
    refused(&["nothing.toml"], 3, "the description cannot be read");
    refused(&["--mission", "psyche", "--slipped", "1%"], 2, "need a mission with error control");
    refused(
        &["--mission", "goes-16", "--correctable", "1%"],
        2,
        "need a mission with a Reed-Solomon code",
    );
    refused(&["--mission", "aqua", "--rate", "0 bit/s"], 2, "does not carry frames");
    refused(&["--mission", "aqua", "--gap-frames", "500"], 2, "a gap of 500 frames is too long");
    assert!(!folder.path().join("x.dat").exists(), "nothing was begun");
}
