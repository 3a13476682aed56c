//! Inputs that pause in the middle of a frame, and stations that are stopped for a while, as real
//! processes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::patience::{now, until};
use crate::support::recordings::{DAMAGED, expected, recording};
use crate::support::site::{Site, channel};
use rustix::process::Signal;
use serde_json::Value;
use std::io::Write;
use std::time::Duration;

/// Short, so that a pause need not be long.
const SILENCE: &str = "silence = \"300 ms\"\n";
/// Longer than that, for a process that is stopped.
const STOPPED: Duration = Duration::from_millis(900);

/// Waits until this many contacts are done, and returns them.
#[track_caller]
fn done(site: &Site, count: usize) -> Vec<Value> {
    site.centre_until(|status| {
        let contacts = status["contacts"].as_array()?;
        let is_done = contacts.iter().filter(|contact| contact["state"] == "done").count() >= count;
        is_done.then(|| contacts.clone())
    })
}

/// Asserts that every frame of the recording is in one of the contacts.
#[track_caller]
fn assert_nothing_is_lost(contacts: &[Value]) {
    let known = expected(DAMAGED);
    let all =
        |key: &str| contacts.iter().map(|contact| contact[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(known["good_frames"], all("frames"), "{contacts:?}");
    assert_eq!(known["rs_uncorrectable_frames"], all("set_aside"), "{contacts:?}");
}

#[test]
fn a_pause_in_the_middle_of_a_frame_costs_no_frame() {
    let site = Site::new();
    site.write(&format!("[[channel]]\nname = \"x\"\ninput = \"stdin\"\n{SILENCE}"));
    let (input, mut downlink) = std::io::pipe().unwrap();
    let mut station = site.start_from(input);
    let bytes = std::fs::read(recording(DAMAGED)).unwrap();
    // Whole frames, and 300 bytes of one.
    let (first, rest) = bytes.split_at(bytes.len() / 2 / 1_024 * 1_024 + 300);
    downlink.write_all(first).unwrap();
    done(&site, 1);
    downlink.write_all(rest).unwrap();
    drop(downlink);
    let contacts = done(&site, 2);
    assert_eq!(contacts.len(), 2);
    assert_nothing_is_lost(&contacts);
    assert!(until(|| station.status(), || "the station goes on".to_owned()).success());
}

#[test]
fn a_station_that_is_stopped_while_it_plays_a_file_goes_on_with_the_contact() {
    let site = Site::new();
    site.write(&channel(&format!("rate = \"4 Mbit/s\"\n{SILENCE}")));
    let mut station = site.start();
    site.until(|status| (status["channels"][0]["frames"].as_u64()? > 100).then_some(()));
    station.signal(Signal::STOP);
    let stopped = now();
    until(|| (stopped.elapsed() > STOPPED).then_some(()), String::new);
    station.signal(Signal::CONT);
    assert!(until(|| station.status(), || "the station goes on".to_owned()).success());
    let contacts = done(&site, 1);
    assert_eq!(contacts.len(), 1, "{contacts:?}");
    assert_nothing_is_lost(&contacts);
}
