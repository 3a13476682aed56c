//! Frames that the capture of a station lost are recovered from its recording without an operator.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::node;
use crate::support::patience::until;
use crate::support::process::{Running, printed, run, text};
use crate::support::site::Site;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};

/// The number of bytes from one marker to the next.
const CADU: usize = 1_279;
/// The number of frames at the start and at the end that stay undamaged, because a gap shows only
/// between two frames of a channel.
const SPARED: usize = 200;

/// Writes a downlink of this many frames. One frame in a hundred, at random, has two wrong bits in
/// its marker and an extra byte before and after it: a station searches for the frame at its due
/// place, and finds no marker elsewhere that it would accept. Returns the number of these frames.
/// The downlink without the damage is in `clean.dat`.
fn downlink(folder: &Path, frames: usize) -> (PathBuf, u64) {
    let count = frames.to_string();
    printed(
        &["generate", "--mission", "noaa-21", "--frames", &count, "--output", "clean.dat"],
        folder,
    );
    let clean = std::fs::read(folder.join("clean.dat")).unwrap();
    assert_eq!(clean.len(), CADU * frames);
    let (mut bytes, mut seed, mut damaged) = (Vec::new(), 20_261_122_u64, 0);
    for (at, cadu) in clean.chunks_exact(CADU).enumerate() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let is_hit = (seed >> 33) % 100 == 0 && (SPARED..frames - SPARED).contains(&at);
        bytes.extend(is_hit.then_some(0x55));
        let start = bytes.len();
        bytes.extend_from_slice(cadu);
        if is_hit {
            bytes[start + 1] ^= 0x24;
            bytes.push(0x55);
            damaged += 1;
        }
    }
    let path = folder.join("x.dat");
    std::fs::write(&path, bytes).unwrap();
    (path, damaged)
}

fn channel(file: &Path, keys: &str) -> String {
    format!(
        "[[channel]]\nname = \"x\"\ninput = \"file:{}\"\nrate = \"40 Mbit/s\"\nmission = \
        \"noaa-21\"\n{keys}",
        file.display()
    )
}

/// Repeats `skyhaul gaps` until `enough` accepts the result, and returns it.
#[track_caller]
fn gaps(site: &Site, enough: impl Fn(&Value) -> bool) -> Value {
    let look = || {
        let said = node::asked("centre.toml", site.folder(), &json!({ "ask": "gaps" }));
        said.filter(|said| enough(said))
    };
    until(look, || text(&run(&["gaps", "--config", "centre.toml"], site.folder()).stdout))
}

fn proxy(site: &Site) -> (Running, String) {
    let flags = [
        "emulate",
        "--listen",
        "127.0.0.1:0",
        "--to",
        &site.address,
        "--delay",
        "80ms",
        "--loss",
        "1 %",
    ];
    let mut proxy = Running::start(&flags, site.folder());
    let address = proxy.address();
    (proxy, address)
}

fn count(said: &Value, what: &str) -> u64 {
    said["counts"][what].as_u64().unwrap()
}

/// Gaps of frames, without those of packets.
fn of_frames(said: &Value) -> Vec<&Value> {
    said["gaps"].as_array().unwrap().iter().filter(|gap| gap["apid"].is_null()).collect()
}

/// Runs of frames: virtual channel, first count and how many, in that order.
fn sorted<'a>(runs: impl IntoIterator<Item = &'a Value>, many: &str) -> Vec<[u64; 3]> {
    let vcid = |run: &Value| run["vcid"].as_u64().or(run["vcids"][0].as_u64()).unwrap();
    let run =
        |run: &Value| [vcid(run), run["first"].as_u64().unwrap(), run[many].as_u64().unwrap()];
    let mut runs: Vec<[u64; 3]> = runs.into_iter().map(run).collect();
    runs.sort_unstable();
    runs
}

/// Kills the centre as a power cut would, and starts it again.
fn kill_centre(site: &mut Site) {
    site.centre.signal(Signal::KILL);
    until(|| site.centre.status(), || "the centre is still there".to_owned());
    let config = site.folder().join("centre.toml");
    let text = std::fs::read_to_string(&config).unwrap().replace("127.0.0.1:0", &site.address);
    std::fs::write(config, text).unwrap();
    site.centre = Running::start(&["run", "centre.toml"], site.folder());
    site.centre_until(|status| {
        status["address"].as_str().filter(|address| !address.is_empty()).map(drop)
    });
}

/// The sidecar of a product, of which `path` names another file.
fn account(site: &Site, path: &Value) -> Value {
    let path = site.folder().join(path.as_str().unwrap().replace("01.PDS", "00.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The test of the promise: of 1 % of the frames, lost at random, all are recovered without an
/// operator, each after one request.
#[test]
fn frames_lost_at_random_are_recovered_from_the_recording_without_an_operator() {
    let mut site = Site::new();
    let (file, damaged) = downlink(site.folder(), 4_000);
    let (_proxy, way) = proxy(&site);
    site.write_by(&way, &channel(&file, "record_raw = true\n"));
    let station = site.start_to_stay();
    let contact = site.centre_until(|status| {
        let contacts = status["contacts"].as_array()?;
        contacts
            .iter()
            .find(|contact| contact["state"] == "done" && contact["missing"] != 0)
            .cloned()
    });
    let said = gaps(&site, |said| {
        count(said, "filled") > 0
            && ["open", "requested", "missing_frames"].iter().all(|what| count(said, what) == 0)
    });
    assert_eq!(count(&said, "unrecoverable"), 0, "{said}");
    let missed: u64 = of_frames(&said).iter().map(|gap| gap["missed"].as_u64().unwrap()).sum();
    assert_eq!(contact["missing"].as_u64(), Some(missed), "what was lost is what was asked for");
    // The others are idle frames.
    assert!(missed <= damaged && missed > damaged * 8 / 10, "{missed} of {damaged}");
    // One request and one answer: a round trip and the time of the transfer, however long the line
    // is.
    assert!(
        of_frames(&said).iter().all(|gap| gap["asked"] == 1 && gap["state"] == "filled"),
        "{said}"
    );

    // The products are made again with the recovered frames.
    let assembled = site.centre_until(|status| {
        let made = status["assembled"].as_array()?.clone();
        let is_whole =
            |one: &Value| one["state"] == "made" && one["version"] == 2 && one["missing"] == 0;
        (!made.is_empty() && made.iter().all(is_whole)).then_some(made)
    });
    for one in &assembled {
        let account = account(&site, &one["path"]);
        assert_eq!(account["accounting"]["balanced"], true, "{account}");
        let replaces = &account["product"]["replaces"];
        assert_eq!(replaces["version"], 1);
        assert_eq!(
            sorted(replaces["frames"].as_array().unwrap(), "frames"),
            sorted(of_frames(&said), "missed")
        );
    }
    assert!(assembled.iter().any(|one| one["added"].as_u64() > Some(0)), "{assembled:?}");

    // They equal the products of a contact that received everything.
    drop(station);
    site.write(&channel(&site.folder().join("clean.dat"), "").replace("\"x\"", "\"whole\""));
    assert_eq!(site.start().end().code, Some(0));
    let whole = site.centre_until(|status| {
        let contacts = status["contacts"].as_array()?;
        contacts
            .iter()
            .find(|contact| contact["channel"] == "whole" && contact["state"] == "done")
            .cloned()
    });
    let heard: Vec<&Value> =
        whole["products"].as_array().unwrap().iter().map(|one| &one["sha256"]).collect();
    assert!(assembled.iter().all(|one| heard.contains(&&one["sha256"])), "{assembled:?} {whole}");

    // The known gaps are known after a kill too.
    let before = gaps(&site, |_| true);
    kill_centre(&mut site);
    let again = gaps(&site, |_| true);
    assert_eq!(
        (&again["gaps"], count(&again, "filled")),
        (&before["gaps"], count(&said, "filled"))
    );
}

#[test]
fn without_a_recording_the_centre_says_why_frames_stay_missing_also_after_a_kill() {
    let mut site = Site::new();
    let (file, damaged) = downlink(site.folder(), 1_000);
    site.write(&channel(&file, ""));
    let station = site.start_to_stay();
    let missed = site.centre_until(|status| {
        let contacts = status["contacts"].as_array()?;
        contacts.iter().find(|contact| contact["state"] == "done")?["missing"].as_u64()
    });
    let said = gaps(&site, |said| {
        ["open", "requested"].iter().all(|what| count(said, what) == 0)
            && count(said, "missing_frames") == missed
    });
    assert!(
        missed > 0
            && missed <= damaged
            && count(&said, "unrecoverable") > 0
            && count(&said, "filled") == 0,
        "{said}"
    );
    let why = said["gaps"][0]["why"].as_str().unwrap();
    assert!(why.contains("no recording") && why.contains("record_raw"), "{why}");
    let asked = run(&["gaps", "--config", "station.toml"], site.folder());
    assert!(
        text(&asked.stderr).contains("ask the node that the contacts go to"),
        "{}",
        text(&asked.stderr)
    );
    let asked =
        run(&["gaps", "ask", "--config", "centre.toml", "--station", "nobody"], site.folder());
    assert_eq!(asked.status.code(), Some(2));
    assert!(
        text(&asked.stderr).contains("no gap of frames is known for this contact"),
        "{}",
        text(&asked.stderr)
    );
    // The answers of the last two seconds need not be kept: the station is asked again, and answers
    // the same.
    kill_centre(&mut site);
    let known = |said: &Value| {
        let known = |gap: &&Value| {
            (gap["first"].clone(), gap["vcids"].clone(), gap["state"].clone(), gap["why"].clone())
        };
        said["gaps"].as_array().unwrap().iter().map(|gap| known(&gap)).collect::<Vec<_>>()
    };
    gaps(&site, |now| known(now) == known(&said));
    drop(station);
}

#[test]
fn frames_that_a_station_did_not_search_arrive_when_an_operator_requests_them_again() {
    let site = Site::new();
    let (file, _) = downlink(site.folder(), 1_000);
    let channel = channel(&file, "record_raw = true\n");
    site.write(&format!("[refill]\nenabled = false\n{channel}"));
    let station = site.start_to_stay();
    site.centre_until(|status| {
        let contacts = status["contacts"].as_array()?;
        contacts.iter().find(|contact| contact["state"] == "done").map(drop)
    });
    let said = gaps(&site, |said| {
        ["open", "requested"].iter().all(|what| count(said, what) == 0)
            && count(said, "unrecoverable") > 0
    });
    assert!(said["gaps"][0]["why"].as_str().unwrap().contains("enabled = false"), "{said}");
    // Ended, not killed, because its recording is written after the capture.
    station.signal(Signal::TERM);
    assert_eq!(station.end().code, Some(0));
    site.write(&channel);
    let _station = site.start_to_stay();
    let gap = of_frames(&said)[0];
    let contact = format!("{}-{}", gap["station"].as_str().unwrap(), gap["flow"]);
    let ask = ["gaps", "ask", "--config", "centre.toml", "--contact", &contact, "--json"];
    let asked: Value = serde_json::from_str(&printed(&ask, site.folder())).unwrap();
    let frames: u64 = of_frames(&said).iter().map(|gap| gap["missing"].as_u64().unwrap()).sum();
    assert_eq!(
        (&asked["gaps"], &asked["frames"], &asked["left"]),
        (&said["counts"]["unrecoverable"], &frames.into(), &0.into())
    );
    gaps(&site, |said| {
        count(said, "filled") == asked["gaps"].as_u64().unwrap()
            && count(said, "missing_frames") == 0
    });
    let again = printed(&["gaps", "ask", "--config", "centre.toml"], site.folder());
    assert!(again.starts_with("no gap there can be filled"), "{again}");
}

/// Each end is killed while a contact goes on whose frames are being recovered; in the end
/// everything is recovered. The downlink waits meanwhile, however slow the machine is.
#[test]
fn a_recovery_of_gaps_is_complete_although_station_and_centre_are_killed() {
    let mut site = Site::new();
    let (file, _) = downlink(site.folder(), 4_000);
    let bytes = std::fs::read(file).unwrap();
    let channel = "[[channel]]\nname = \"x\"\ninput = \"tcp-listen:127.0.0.1:0\"\nmission = \
                  \"noaa-21\"\n\
                   record_raw = true\nsilence = \"1 h\"\n";
    site.write(channel);
    let mut station = site.start_to_stay();
    let connect = |site: &Site| {
        let address = |status: &Value| Some(status["channels"][0]["address"].as_str()?.to_owned());
        TcpStream::connect(site.until(address)).unwrap()
    };
    let mut input = connect(&site);
    // At the instant of the kill a request is sent, or answered in part, and more gaps follow.
    let is_going = |said: &Value| count(said, "requested") + count(said, "filled") > 0;
    let (first, rest) = bytes.split_at(bytes.len() / 3);
    input.write_all(first).unwrap();
    gaps(&site, is_going);
    kill_centre(&mut site);
    site.write(channel);
    let (second, third) = rest.split_at(rest.len() / 2);
    input.write_all(second).unwrap();
    let before = gaps(&site, is_going);
    gaps(&site, |said| {
        said["gaps"].as_array().unwrap().len() > before["gaps"].as_array().unwrap().len() / 2
    });
    station.kill();
    drop(input);
    let _station = site.start_to_stay();
    let mut input = connect(&site);
    input.write_all(third).unwrap();
    drop(input);
    site.centre_until(|status| {
        let contacts = status["contacts"].as_array()?;
        let frames: u64 = contacts.iter().filter_map(|contact| contact["frames"].as_u64()).sum();
        (frames > 2_000).then_some(())
    });
    let said = gaps(&site, |said| {
        ["open", "requested", "missing_frames"].iter().all(|what| count(said, what) == 0)
            && count(said, "filled") > 0
    });
    assert_eq!(count(&said, "unrecoverable"), 0, "{said}");
}
