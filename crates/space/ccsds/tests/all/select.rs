//! Real downlinks, received twice with different damage: selected, they are what independent
//! decoders made of the undamaged files (`testdata/expected.json`).

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use serde_json::Value;
use skyhaul_ccsds::account::Account;
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_ccsds::quality::CapturedFrame;
use skyhaul_ccsds::select::{InputAccount, Select, SelectOptions};
use skyhaul_units::{Duration, Rate, Utc};
use std::path::PathBuf;

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata");
/// Of all these downlinks.
const CADU: usize = 1024;

fn cadu_file(name: &str) -> Vec<u8> {
    std::fs::read(PathBuf::from(TESTDATA).join("cadu").join(name)).unwrap()
}

fn expected(path: &str) -> Value {
    let text = std::fs::read_to_string(PathBuf::from(TESTDATA).join("expected.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()[path].take()
}

/// A file as one antenna receives it: at 15 Mbit/s, in pieces of 4 KiB, so much later than it was
/// sent.
fn received(bytes: &[u8], skew: Duration) -> (Mission, Vec<CapturedFrame>) {
    let mut capture = Capture::new(MissionSet::built_in(), CaptureOptions::default());
    let mut frames = Vec::new();
    let mut mission = None;
    let mut take = |capture: &mut Capture| {
        while let Some(event) = capture.poll() {
            match event {
                CaptureEvent::Identified(found) => mission = Some(found.mission),
                CaptureEvent::Frame(frame) => frames.push(frame),
                _ => {}
            }
        }
    };
    for (number, piece) in bytes.chunks(4096).enumerate() {
        let sent = Rate::from_mbps(15).time_for(skyhaul_units::ByteCount::of(4096 * (number + 1)));
        capture.push(Utc::from_micros(0) + sent + skew, piece);
        take(&mut capture);
    }
    capture.finish();
    take(&mut capture);
    (mission.unwrap(), frames)
}

/// The digest of the good frames that go out, their number, and the inputs' accounts.
fn selected(inputs: &[Vec<u8>], skews: &[Duration]) -> (String, u64, Vec<InputAccount>) {
    let captured: Vec<_> =
        inputs.iter().zip(skews).map(|(bytes, skew)| received(bytes, *skew)).collect();
    let mission = captured[0].0.clone();
    let mut select = Select::new(*mission.frame(), inputs.len(), SelectOptions::default());
    (0..inputs.len()).for_each(|input| select.stride(input, 8 * CADU as u64));
    let mut pushes: Vec<_> = captured
        .iter()
        .enumerate()
        .flat_map(|(input, (_, frames))| {
            frames.iter().map(move |frame| (frame.received, input, frame))
        })
        .collect();
    pushes.sort_by_key(|(at, input, _)| (*at, *input));
    let mut account = Account::new(&mission, &MissionSet::built_in());
    let mut take = |select: &mut Select, now: Utc| {
        while let Some(out) = select.poll(now) {
            assert!(now.since(out.frame.received) <= Duration::from_millis(50));
            account.feed(&out.frame);
        }
    };
    for (at, input, frame) in pushes {
        while let Some(due) = select.due().filter(|due| *due <= at) {
            take(&mut select, due);
        }
        select.push(input, frame.clone());
        take(&mut select, at);
    }
    while let Some(due) = select.due() {
        take(&mut select, due);
    }
    let report = account.finish("file");
    let accounts = (0..inputs.len()).filter_map(|input| select.account(input)).collect();
    (report.good_frames_sha256, report.good_frames, accounts)
}

/// Destroys every third frame from `first` on beyond correction, in turn without and with its
/// marker, and takes the first `late` frames and a few bits away.
fn damaged(clean: &[u8], first: usize, late: usize) -> Vec<u8> {
    let mut bytes = clean.to_vec();
    let (_, frames) = received(clean, Duration::ZERO);
    for (number, frame) in frames.iter().enumerate().skip(first).step_by(3) {
        let start = frame.position.byte() as usize + if number % 2 == 0 { 8 } else { 0 };
        bytes[start..start + 600].iter_mut().for_each(|byte| *byte ^= 0x80 | number as u8);
    }
    let bits = 3;
    let shifted = |pair: &[u8]| pair[0] << bits | pair[1] >> (8 - bits);
    bytes[late * CADU..].windows(2).map(shifted).chain([bytes[bytes.len() - 1] << bits]).collect()
}

#[test]
fn real_downlinks_damaged_in_two_ways_come_out_whole() {
    for name in
        ["aqua.20241206T175646.dat", "metopb.20241206T152751.dat", "npp.20241206T173815.dat"]
    {
        let clean = cadu_file(name);
        let ways = [damaged(&clean, 7, 0), damaged(&clean, 8, 6)];
        let (digest, frames, accounts) =
            selected(&ways, &[Duration::from_millis(20), Duration::ZERO]);
        let expected = expected(&format!("cadu/{name}"));
        assert_eq!(Value::from(frames), expected["frames_total"], "{name} {accounts:?}");
        assert_eq!(Value::from(digest), expected["frames_sha256"], "{name}");
        assert!(
            accounts.iter().all(|account| account.only_here > 200 && account.late == 0),
            "{accounts:?}"
        );
        assert!(accounts[0].skew >= Duration::from_millis(15), "{name} {accounts:?}");
    }
}

#[test]
fn a_downlink_with_symbol_errors_and_one_with_slips_and_inversions_make_a_whole_one() {
    let ways = [cadu_file("npp_rs_errors.dat"), cadu_file("npp_sync_impaired.dat")];
    let (digest, frames, accounts) = selected(&ways, &[Duration::ZERO, Duration::from_millis(30)]);
    let expected = expected("cadu/npp.20241206T173815.dat");
    assert_eq!(Value::from(frames), expected["frames_total"], "{accounts:?}");
    assert_eq!(Value::from(digest), expected["frames_sha256"], "{accounts:?}");
}
