//! Inputs from receivers and demodulators other than plain bytes: VITA 49 packets over UDP, soft
//! symbols of either convention.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support;
use crate::support::process::{printed, run};
use crate::support::recordings::{CLEAN, DAMAGED, expected, recording};
use crate::support::refusal::assert_refused;
use crate::support::site::Site;
use serde_json::Value;
use skyhaul_store::RealDisk;
use skyhaul_store::raw::{RawConfig, RawKind, RawRecorder, RawStamp};
use skyhaul_units::{Duration, Utc};
use std::sync::Arc;

/// Bytes of symbols in one packet.
const PAYLOAD: usize = 1_024;
/// The datagrams played at once. With the overhead of the system they take 150 kB of the 208 KiB
/// that the buffer of a socket has by default.
const GROUP: usize = 64;
/// The time from one packet to the next by their time stamps: 10 Mbit/s of hard bits.
const STEP: Duration = Duration::from_micros(820);
/// A second in 2024, which is the reception time of the packets.
const SECOND: u32 = 1_730_419_200;

/// A channel for VITA 49 packets, and the address at which it receives them.
fn site_of_packets() -> (Site, support::process::Running, String) {
    let site = Site::new();
    let channel = "[[channel]]\nname = \"x\"\ninput = \"udp:127.0.0.1:0\"\nformat = \
                  \"vita49\"\nsilence = \"5 s\"\n";
    site.write(&format!("[line]\nrate = \"93 Mbit/s\"\n{channel}"));
    let station = site.start_to_stay();
    let address = site.until(|status| Some(status["channels"][0]["address"].as_str()?.to_owned()));
    (site, station, address)
}

/// Signal data of stream 7, in UTC with picoseconds.
fn data(count: usize, payload: &[u8]) -> Vec<u8> {
    let picos = (count as u64 * STEP.as_nanos() * 1_000) % 1_000_000_000_000;
    let second = SECOND + (count as u64 * STEP.as_nanos() / 1_000_000_000) as u32;
    let head = 0x1060_0000 | (count as u32 & 0xF) << 16 | (5 + payload.len() as u32 / 4);
    let words = [head, 7, second, (picos >> 32) as u32, picos as u32];
    words.iter().flat_map(|word| word.to_be_bytes()).chain(payload.iter().copied()).collect()
}

/// A context packet of stream 7, which describes its numbers.
fn context(payload_format: u64) -> Vec<u8> {
    let words = [0x4000_0005, 7, 1 << 15, (payload_format >> 32) as u32, payload_format as u32];
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Plays datagrams to the station at `address` as from a recording: as many at once as the buffer
/// of a socket holds, and the next ones when those have been read, however slow the machine is.
fn play(site: &Site, datagrams: &[Vec<u8>], address: &str) {
    let mut input = 0;
    for group in datagrams.chunks(GROUP) {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(RealDisk::open(folder.path()).unwrap());
        let mut recorder = RawRecorder::open(disk, "raw/x", RawConfig::default()).unwrap();
        for datagram in group {
            let received = Utc::from_micros(1_730_419_200_000_000);
            recorder
                .append(RawStamp { received, input, kind: RawKind::Datagram }, datagram)
                .unwrap();
            input += datagram.len() as u64;
        }
        recorder.flush().unwrap();
        drop(recorder);
        printed(&["replay", ".", "--rate", "max", "--to-udp", address], folder.path());
        site.until(|status| (status["channels"][0]["bytes"].as_u64()? >= input).then_some(()));
    }
}

#[test]
fn vita49_packets_give_their_bits_and_their_reception_times() {
    let (site, station, address) = site_of_packets();
    let capture = std::fs::read(recording(DAMAGED)).unwrap();
    let datagrams: Vec<Vec<u8>> =
        capture.chunks(PAYLOAD).enumerate().map(|(count, payload)| data(count, payload)).collect();
    play(&site, &datagrams, &address);
    let contact = site.assert_whole();
    let packets = site.until(|status| Some(status["channels"][0]["vita49"].clone()));
    assert_eq!((&packets["data"], &packets["lost"]), (&datagrams.len().into(), &0.into()));
    assert!(site.shown("station.toml").contains("VITA 49: 1024 packets, 0 lost"));
    // The packets have times in 2024. Data with another time would be years later.
    let minutes = contact["margin"]["minutes"].as_array().unwrap();
    assert_eq!((minutes.len(), &minutes[0]["unix_s"]), (1, &SECOND.into()), "{contact}");
    let codewords = |bin: usize| minutes[0]["codewords"][bin].as_u64().unwrap();
    let frames = contact["frames"].as_u64().unwrap() + contact["set_aside"].as_u64().unwrap();
    assert_eq!((0..8).map(codewords).sum::<u64>(), 4 * frames, "four codewords a frame");
    assert_eq!(codewords(7), contact["uncorrectable_codewords"].as_u64().unwrap());
    station.signal(rustix::process::Signal::TERM);
    assert_eq!(station.end().code, Some(0));
}

#[test]
fn lost_and_late_packets_are_counted_and_cost_no_more_than_their_frames() {
    let (site, _station, address) = site_of_packets();
    let capture = std::fs::read(recording(DAMAGED)).unwrap();
    let mut datagrams: Vec<Vec<u8>> =
        capture.chunks(PAYLOAD).enumerate().map(|(count, payload)| data(count, payload)).collect();
    datagrams.swap(300, 301);
    datagrams.remove(100);
    play(&site, &datagrams, &address);
    let contact = site.centre_until(|status| {
        let contact =
            status["contacts"].as_array()?.iter().find(|contact| contact["state"] == "done")?;
        Some(contact.clone())
    });
    let packets = site.until(|status| Some(status["channels"][0]["vita49"].clone()));
    assert_eq!((&packets["lost"], &packets["reordered"]), (&2.into(), &1.into()));
    let expected = expected(DAMAGED);
    let (all, came) =
        (expected["good_frames"].as_u64().unwrap(), contact["frames"].as_u64().unwrap());
    assert!(came < all && came + 24 >= all, "{came} of {all} frames");
}

#[test]
fn samples_instead_of_symbols_raise_an_alarm_that_says_what_is_missing() {
    let (site, _station, address) = site_of_packets();
    let difi = 1 << 63 | 1 << 61 | 7 << 38 | 7 << 32;
    play(&site, &[context(difi), data(0, &[1; PAYLOAD])], &address);
    let alarm = site.until(|status| {
        let alarms = status["alarms"].as_array()?;
        alarms
            .iter()
            .filter_map(|alarm| alarm["sentence"].as_str())
            .find(|alarm| alarm.contains("VITA 49"))
            .map(str::to_owned)
    });
    assert!(alarm.contains("channel x") && alarm.contains("put a demodulator in front"), "{alarm}");
}

#[test]
fn soft_symbols_of_either_convention_give_the_same_frames() {
    let capture = std::fs::read(recording(DAMAGED)).unwrap();
    let bits = capture.iter().flat_map(|byte| (0..8).rev().map(move |place| byte >> place & 1));
    let signed: Vec<u8> =
        bits.map(|bit| if bit == 1 { 60 } else { 256u16.wrapping_sub(60) as u8 }).collect();
    for (convention, symbols) in [
        ("signed", signed.clone()),
        ("offset", signed.iter().map(|symbol| symbol ^ 0x80).collect()),
    ] {
        let site = Site::new();
        std::fs::write(site.folder().join("pass.soft"), symbols).unwrap();
        let channel = "[[channel]]\nname = \"x\"\ninput = \"file:pass.soft\"\nformat = \"soft\"\n";
        site.write(&format!("[line]\nrate = \"93 Mbit/s\"\n{channel}soft = \"{convention}\"\n"));
        assert_eq!(site.start().end().code, Some(0));
        site.assert_whole();
    }
}

#[test]
fn the_format_vita49_is_refused_for_inputs_without_packets() {
    let folder = tempfile::tempdir().unwrap();
    let head = "[node]\nname = \"s\"\nkey = \"s.key\"\nstate = \"state\"\n[[destination]]\n\
    to = \"node:c\"\n[[peer]]\nname = \
               \"c\"\naddresses = [\"127.0.0.1:9\"]\n\
                fingerprints = \
                [\"SHA256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"]\n";
    let channel = "[[channel]]\nname = \"x\"\ninput = \"stdin\"\nformat = \"vita49\"\n";
    std::fs::write(folder.path().join("station.toml"), format!("{head}{channel}")).unwrap();
    let checked = run(&["config", "check", "station.toml"], folder.path());
    assert_refused(&checked, 2, &["no udp: input", "udp:0.0.0.0:4991"]);
    let decoded = run(&["decode", "pass.dat", "--format", "vita49"], folder.path());
    assert_refused(&decoded, 2, &["format of datagrams", "station"]);
}

/// A file and a TCP stream that change from one spacecraft to another without a pause give two
/// contacts.
#[test]
fn a_second_downlink_without_a_pause_begins_another_contact() {
    let site = Site::new();
    let both = [CLEAN[0], CLEAN[1]].map(|name| std::fs::read(recording(name)).unwrap()).concat();
    std::fs::write(site.folder().join("both.dat"), &both).unwrap();
    let channels = "[[channel]]\nname = \"file\"\ninput = \"file:both.dat\"\n\
                    [[channel]]\nname = \"live\"\ninput = \"tcp-listen:127.0.0.1:0\"\n";
    site.write(&format!("[line]\nrate = \"93 Mbit/s\"\n{channels}"));
    let _station = site.start_to_stay();
    let address = site.until(|status| Some(status["channels"][1]["address"].as_str()?.to_owned()));
    printed(&["replay", "both.dat", "--rate", "max", "--to-tcp", &address], site.folder());
    let contacts = site.centre_until(|status| {
        let contacts = status["contacts"].as_array()?;
        let done = contacts.iter().filter(|contact| contact["state"] == "done");
        (done.count() == 4).then(|| contacts.clone())
    });
    for channel in ["file", "live"] {
        for (name, mission) in [(CLEAN[0], "suomi-npp"), (CLEAN[1], "aqua")] {
            let is_this =
                |contact: &&Value| contact["channel"] == channel && contact["mission"] == mission;
            let contact = contacts.iter().find(is_this);
            let contact = contact.unwrap_or_else(|| panic!("{mission} of {channel}: {contacts:?}"));
            assert_eq!(contact["frames"], expected(name)["frames_total"], "{mission} of {channel}");
            assert_eq!(
                contact["frames_sha256"],
                expected(name)["frames_sha256"],
                "{mission} of {channel}"
            );
            // The recording ends inside a frame, which the bits of the other recording complete.
            assert!(contact["set_aside"].as_u64().unwrap() <= 1, "{contact}");
        }
    }
}
