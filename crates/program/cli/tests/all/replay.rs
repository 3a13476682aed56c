//! Recordings of what a station received: kept byte for byte, and played again into a station,
//! which finds the same frames.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support;
use crate::support::ports::ClosedTcp;
use crate::support::process::{Running, printed, run, skyhaul, text};
use crate::support::recordings::{DAMAGED, recording, sha256};
use crate::support::refusal::assert_refused;
use crate::support::site::{Site, channel};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;

/// A site whose station has recorded the damaged capture on its channel `x`.
fn recorded() -> Site {
    let site = Site::new();
    site.write(&format!(
        "[line]\nrate = \"93 Mbit/s\"\n{}",
        channel("record_raw = true\nrate = \"60 Mbit/s\"\n")
    ));
    assert_eq!(site.start().end().code, Some(0));
    site.assert_whole();
    site
}

#[test]
fn a_recording_plays_into_another_station_which_finds_the_same_frames() {
    let first = recorded();
    let capture = std::fs::read(recording(DAMAGED)).unwrap();
    let kept = std::fs::read(first.folder().join("spool/raw/x/00000000000000000000.raw")).unwrap();
    assert_eq!(
        sha256(&kept),
        sha256(&capture),
        "the file holds the bytes as received, and nothing else"
    );

    let second = Site::new();
    second.write(
        "[line]\nrate = \"93 Mbit/s\"\n[[channel]]\nname = \"y\"\ninput = \
        \"tcp-listen:127.0.0.1:0\"\n",
    );
    let station = second.start_to_stay();
    let address =
        second.until(|status| Some(status["channels"][0]["address"].as_str()?.to_owned()));
    let arguments = ["replay", "spool", "--rate", "x2", "--to-tcp", &address, "--json"];
    let summary: Value = serde_json::from_str(&printed(&arguments, first.folder())).unwrap();
    assert_eq!(summary["bytes"], capture.len());
    assert_eq!((&summary["interrupted"], &summary["gaps"]), (&false.into(), &0.into()));
    second.assert_whole();
    station.signal(Signal::TERM);
    assert_eq!(station.end().code, Some(0));
}

#[test]
fn a_recording_goes_to_a_file_a_client_and_datagrams_and_spans_are_cut() {
    let site = recorded();
    let capture = std::fs::read(recording(DAMAGED)).unwrap();
    let at = site.folder();
    printed(&["replay", "spool", "--rate", "max", "--output", "all.dat"], at);
    assert_eq!(std::fs::read(at.join("all.dat")).unwrap(), capture);
    let piped =
        skyhaul(&["replay", "spool/raw/x", "--rate", "max", "--output", "-"], at).output().unwrap();
    assert_eq!(piped.stdout, capture);
    assert!(text(&piped.stderr).contains("played"), "the summary goes beside the data");

    let summary =
        printed(&["replay", "spool", "--rate", "max", "--output", "all.dat", "--json"], at);
    let summary: Value = serde_json::from_str(&summary).unwrap();
    let last = summary["last"].as_str().unwrap();
    let of_last = ["replay", "spool", "--from", last, "--rate", "max", "--output", "end.dat"];
    printed(&of_last, at);
    let end = std::fs::read(at.join("end.dat")).unwrap();
    assert!(!end.is_empty() && end.len() < capture.len() && capture.ends_with(&end));

    let player = ["replay", "spool", "--rate", "max", "--listen", "127.0.0.1:0"];
    let mut player = Running::start_logged(&player, at);
    let said = player.log_until("waiting for a client");
    let address = said.trim().rsplit(' ').next().unwrap().to_owned();
    let mut taken = Vec::new();
    std::io::Read::read_to_end(&mut std::net::TcpStream::connect(address).unwrap(), &mut taken)
        .unwrap();
    assert_eq!(sha256(&taken), sha256(&capture));
    assert_eq!(player.end().code, Some(0));

    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
    let to = socket.local_addr().unwrap().to_string();
    std::fs::write(at.join("short.dat"), &capture[..10_000]).unwrap();
    printed(&["replay", "short.dat", "--rate", "10mbit", "--to-udp", &to], at);
    let mut taken = Vec::new();
    while taken.len() < 10_000 {
        let mut datagram = [0; 2_000];
        let len = socket.recv(&mut datagram).unwrap();
        taken.extend_from_slice(&datagram[..len]);
    }
    assert_eq!(taken, capture[..10_000]);
}

#[test]
fn an_interrupt_ends_a_replay_which_reports_how_far_it_was() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("long.dat"), [7; 100_000]).unwrap();
    let arguments = ["replay", "long.dat", "--rate", "8kbit", "--output", "out.dat", "--json"];
    let player = Running::start_logged(&arguments, folder.path());
    let out = folder.path().join("out.dat");
    support::patience::until(
        || std::fs::metadata(&out).is_ok_and(|played| played.len() > 0).then_some(()),
        || "nothing is played".to_owned(),
    );
    player.signal(Signal::INT);
    let ended = player.end();
    assert_eq!(ended.code, Some(130), "{}", ended.log);
    let summary: Value = serde_json::from_str(&ended.output).unwrap();
    assert_eq!(summary["interrupted"], true);
    assert_eq!(summary["bytes"], std::fs::metadata(&out).unwrap().len());
}

#[test]
fn what_cannot_be_played_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(at.join("pass.dat"), [0; 100]).unwrap();
    std::fs::create_dir_all(at.join("state/raw/x")).unwrap();
    std::fs::create_dir_all(at.join("state/raw/y")).unwrap();
    std::fs::create_dir_all(at.join("empty")).unwrap();
    let refused = |arguments: &[&str], exit, parts: &[&str]| refused_in(at, arguments, exit, parts);
    let to_file = |first: &[&str]| [&["replay"], first, &["--output", "out"]].concat().join(" ");
    for (arguments, exit, parts) in [
        (&["absent.dat"][..], 3, &["absent.dat", "capture file"][..]),
        (&["empty"], 2, &["no recording", "record_raw"]),
        (&["state"], 2, &["several channels", "x, y"]),
        (&["state", "--channel", "z"], 2, &["`z` has no recording", "x, y"]),
        (&["state", "--channel", "x"], 1, &["nothing was recorded", "record_raw"]),
        (&["pass.dat", "--channel", "x"], 2, &["neither channels nor times"]),
        (&["pass.dat", "--rate", "original"], 2, &["has no reception times", "--rate"]),
    ] {
        let line = to_file(arguments);
        refused(&line.split(' ').collect::<Vec<_>>(), exit, parts);
    }
    refused(
        &["replay", "pass.dat", "--to-udp", "127.0.0.1:9"],
        2,
        &["faster than any receiver", "--rate"],
    );
    let closed = ClosedTcp::new();
    let port = closed.address().to_string();
    refused(
        &["replay", "pass.dat", "--to-tcp", &port],
        3,
        &["the receiver refuses the connection", &port],
    );
}

#[track_caller]
fn refused_in(folder: &Path, arguments: &[&str], exit: i32, parts: &[&str]) {
    assert_refused(&run(arguments, folder), exit, parts);
}
