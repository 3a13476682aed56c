//! Frames that a station's capture lost come back from its recording by themselves, through the program.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

mod support;

use serde_json::Value;
use std::path::{Path, PathBuf};
use support::patience::until;
use support::process::{Running, printed, run, text};
use support::site::Site;

const CADU: usize = 1_024;

/// A downlink of so many frames, in which one marker in a hundred, at random, has four wrong bits.
fn downlink(folder: &Path, frames: usize) -> (PathBuf, u64) {
    let count = frames.to_string();
    printed(&["generate", "--mission", "noaa-21", "--frames", &count, "--output", "x.dat"], folder);
    let path = folder.join("x.dat");
    let mut bytes = std::fs::read(&path).unwrap();
    let (mut seed, mut damaged) = (20_261_122_u64, 0);
    for cadu in bytes.chunks_exact_mut(CADU) {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if (seed >> 33) % 100 == 0 {
            cadu[0] ^= 0x81;
            cadu[2] ^= 0x42;
            damaged += 1;
        }
    }
    std::fs::write(&path, bytes).unwrap();
    (path, damaged)
}

/// A station that believes no marker with a wrong bit, and records what it receives.
fn strict(file: &Path, keys: &str) -> String {
    format!(
        "[sync]\nsearch_errors = 0\ncheck_errors = 0\nlock_errors = 0\nflywheel_frames = 0\nslip_bits = 0\n\
         [[channel]]\nname = \"x\"\ninput = \"file:{}\"\nrate = \"40 Mbit/s\"\nmission = \"noaa-21\"\n{keys}",
        file.display()
    )
}

/// What `skyhaul gaps` says, once `enough` does.
#[track_caller]
fn gaps(site: &Site, enough: impl Fn(&Value) -> bool) -> Value {
    let look = || {
        let said = run(&["gaps", "--config", "centre.toml", "--json"], site.folder());
        serde_json::from_slice(&said.stdout).ok().filter(|said| enough(said))
    };
    until(look, || text(&run(&["gaps", "--config", "centre.toml"], site.folder()).stdout).to_owned())
}

fn relay(site: &Site) -> (Running, String) {
    let flags = ["relay", "--listen", "127.0.0.1:0", "--to", &site.address, "--delay", "80ms"];
    let mut relay = Running::start(&flags, site.folder());
    let address = relay.address();
    (relay, address)
}

fn count(said: &Value, what: &str) -> u64 {
    said["counts"][what].as_u64().unwrap()
}

/// The test of the promise: 1 % of frames lost at random, all back with no operator.
#[test]
fn frames_lost_at_random_come_back_from_the_recording_by_themselves() {
    let site = Site::new();
    let (file, damaged) = downlink(site.folder(), 4_000);
    let (_relay, way) = relay(&site);
    site.write_by(&way, &strict(&file, "record_raw = true\n"));
    let _station = site.start_to_stay();
    let done = |said: &Value| {
        count(said, "filled") > 0
            && ["open", "requested", "missing_frames"].iter().all(|what| count(said, what) == 0)
    };
    let contact = site.centre_until(|status| {
        let contacts = status["contacts"].as_array()?;
        contacts.iter().find(|contact| contact["state"] == "done" && contact["missing"] != 0).cloned()
    });
    let said = gaps(&site, done);
    assert_eq!(count(&said, "unrecoverable"), 0, "{said}");
    let frames = said["gaps"].as_array().unwrap().iter().filter(|gap| gap["apid"].is_null());
    let missed: u64 = frames.map(|gap| gap["missed"].as_u64().unwrap()).sum();
    assert_eq!(contact["missing"].as_u64(), Some(missed), "what the contact missed is what was asked for");
    assert!(missed > 0 && missed <= damaged, "{missed} of {damaged}");
    // And the product is made again with them.
    let assembled = site.centre_until(|status| {
        let made = status["assembled"].as_array()?.clone();
        let is_whole = |one: &Value| one["state"] == "made" && one["version"] == 2 && one["missing"] == 0;
        (!made.is_empty() && made.iter().all(is_whole)).then_some(made)
    });
    assert!(assembled.iter().any(|one| one["added"].as_u64() > Some(0)), "{assembled:?}");
}

#[test]
fn without_a_recording_the_centre_says_why_frames_stay_missing() {
    let site = Site::new();
    let (file, _) = downlink(site.folder(), 1_000);
    site.write(&strict(&file, ""));
    let _station = site.start_to_stay();
    let said = gaps(&site, |said| count(said, "unrecoverable") > 0 && count(said, "requested") == 0);
    assert_eq!((count(&said, "open"), count(&said, "filled")), (0, 0), "{said}");
    let why = said["gaps"][0]["why"].as_str().unwrap();
    assert!(why.contains("no recording") && why.contains("record_raw"), "{why}");
    let asked = run(&["gaps", "--config", "station.toml"], site.folder());
    assert!(text(&asked.stderr).contains("ask its centre"), "{}", text(&asked.stderr));
}
