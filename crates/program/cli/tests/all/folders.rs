//! Drop folders: each file becomes one contact, or one file of the destination, whatever happens to
//! the node, the file or the folder.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::patience::until;
use crate::support::process::{printed, run, text};
use crate::support::recordings::{CLEAN, expected, noise, recording};
use crate::support::site::Site;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const CHANNEL: &str = "[[channel]]\nname = \"x\"\ninput = \"folder\"\n";
const CAPTURES: &str =
    "[[folder]]\nname = \"captures\"\npath = \"drop\"\nas = \"contacts\"\nchannel = \"x\"\n";
const FILES: &str = "[[folder]]\nname = \"out\"\npath = \"drop\"\nas = \"files\"\ninto = \"in\"\n\
                     quiet = \"50 ms\"\n";

/// Puts a file into the drop folder as programs do: under another name, then renamed.
fn put(site: &Site, name: &str, bytes: &[u8]) {
    let drop = site.folder().join("drop");
    fs::create_dir_all(&drop).unwrap();
    fs::write(drop.join(format!("{name}.part")), bytes).unwrap();
    fs::rename(drop.join(format!("{name}.part")), drop.join(name)).unwrap();
}

fn folder_status(status: &Value) -> &Value {
    &status["folders"][0]
}

#[track_caller]
fn until_sent(site: &Site) {
    let ended = site.start().end();
    assert_eq!(ended.code, Some(0), "{}", ended.log);
}

/// The centre has exactly these recordings, each as a whole contact so often.
#[track_caller]
fn assert_contacts(site: &Site, each: &BTreeMap<String, usize>) {
    // A status may be 0.1 s old: one from before the last contact would show neither what lacks
    // nor what is too much.
    let old = site.centre_until(|status| status["uptime_s"].as_f64());
    let count = each.values().sum();
    let contacts = site.centre_until(|status| {
        let contacts = status["contacts"].as_array()?;
        let is_done = contacts.iter().all(|contact| contact["state"] == "done");
        let is_new = status["uptime_s"].as_f64() > Some(old);
        (is_new && is_done && contacts.len() >= count).then(|| contacts.clone())
    });
    let mut found = BTreeMap::<String, usize>::new();
    for contact in contacts {
        let is_it = |name: &&&str| {
            let known = expected(name);
            contact["frames"] == known["frames_total"]
                && contact["frames_sha256"] == known["frames_sha256"]
        };
        let name = CLEAN.iter().find(is_it).unwrap_or_else(|| panic!("{contact:#}"));
        *found.entry((*name).to_owned()).or_default() += 1;
    }
    assert_eq!(&found, each);
}

#[test]
fn each_capture_becomes_one_contact_also_when_the_node_is_killed_while_it_reads() {
    let site = Site::new();
    let slow = format!("{CHANNEL}rate = \"4 Mbit/s\"\n{CAPTURES}quiet = \"100 ms\"\n");
    site.write(&slow);
    for name in CLEAN {
        put(&site, name, &fs::read(recording(name)).unwrap());
    }
    put(&site, "noise.dat", &noise(300_000));
    put(&site, "empty.dat", b"");
    fs::write(site.folder().join("drop/later.part"), b"not whole").unwrap();
    // Killed in the middle of the first file, then in the middle of a later one.
    for handed in [0, 1] {
        let mut station = site.start_to_stay();
        site.until(|status| {
            let folder = folder_status(status);
            let is_reading = folder["state"] == "busy"
                && status["channels"][0]["frames"].as_u64() > Some(100)
                && folder["handed"].as_u64() >= Some(handed);
            is_reading.then_some(())
        });
        station.kill();
    }
    site.write(&format!("{CHANNEL}{CAPTURES}quiet = \"100 ms\"\n"));
    until_sent(&site);
    let each: BTreeMap<_, _> = CLEAN.iter().map(|name| ((*name).to_owned(), 1)).collect();
    assert_contacts(&site, &each);
    // What is no capture is beside its reason.
    let failed = site.folder().join("drop/failed");
    let reason = fs::read_to_string(failed.join("noise.dat.reason.txt")).unwrap();
    assert!(reason.contains("no CCSDS marker") && reason.contains("to try again"), "{reason}");
    assert!(failed.join("noise.dat").exists() && failed.join("empty.dat").exists());
    // Renamed, touched and copied over itself, nothing is handed over again.
    let drop = site.folder().join("drop");
    fs::rename(drop.join(CLEAN[0]), drop.join("renamed.dat")).unwrap();
    let again = fs::read(recording(CLEAN[1])).unwrap();
    fs::write(drop.join(CLEAN[1]), &again).unwrap();
    until_sent(&site);
    assert_contacts(&site, &each);
    // The name is in the account of the products, and in what the station shows.
    let shown = site_products(&site);
    for name in CLEAN {
        assert!(shown.contains(&format!("\"file\": \"{name}\"")), "{name} is not in {shown}");
    }
    // Other contents under an old name are another contact.
    put(&site, CLEAN[1], &fs::read(recording(CLEAN[2])).unwrap());
    until_sent(&site);
    let mut more = each;
    *more.get_mut(CLEAN[2]).unwrap() += 1;
    assert_contacts(&site, &more);
}

/// The accounts of all products of the centre, as text.
fn site_products(site: &Site) -> String {
    fn gather(folder: &Path, text: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                gather(&path, text);
            } else if path.extension().is_some_and(|end| end == "json") {
                text.push_str(&fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut text = String::new();
    gather(&site.folder().join("products"), &mut text);
    text
}

#[test]
fn each_file_is_sent_once_and_then_removed_also_when_the_node_is_killed() {
    let site = Site::with("[peer.files]\nroot = \"files\"\n");
    site.write(&format!("{FILES}done = \"delete\"\n"));
    let content = |number: usize| vec![number as u8; 1 + number * 97];
    for number in 0..400 {
        put(&site, &format!("f{number}"), &content(number));
    }
    fs::write(site.folder().join("drop/later.part"), b"not whole").unwrap();
    let far = site.folder().join("files/in");
    for least in [1, 100, 300] {
        let mut station = site.start_to_stay();
        until(
            || {
                let there = fs::read_dir(&far).map_or(0, Iterator::count);
                (there >= least).then_some(())
            },
            || site.shown("station.toml"),
        );
        station.kill();
    }
    until_sent(&site);
    for number in 0..400 {
        assert_eq!(fs::read(far.join(format!("f{number}"))).unwrap(), content(number));
    }
    assert_eq!(fs::read_dir(&far).unwrap().count(), 400);
    let left: Vec<_> = fs::read_dir(site.folder().join("drop"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["later.part"]);
    // A consumer takes a file away there; the same file comes here once more.
    fs::remove_file(far.join("f7")).unwrap();
    put(&site, "f7", &content(7));
    until_sent(&site);
    assert_eq!(fs::read(far.join("f7")).unwrap(), content(7));
}

#[test]
fn a_folder_that_is_missing_raises_an_alarm_and_nothing_is_forgotten() {
    let site = Site::with("[peer.files]\nroot = \"files\"\n");
    site.write(FILES);
    put(&site, "a", b"one");
    let station = site.start_to_stay();
    let handed = |count: u64| {
        site.until(|status| (folder_status(status)["handed"] == count).then_some(()));
    };
    handed(1);
    let (drop, away) = (site.folder().join("drop"), site.folder().join("away"));
    fs::rename(&drop, &away).unwrap();
    let alarm = site.until(|status| {
        let alarms = status["alarms"].as_array()?;
        let found = alarms.iter().filter_map(|alarm| alarm["sentence"].as_str());
        found.map(str::to_owned).find(|alarm| alarm.starts_with("folder out cannot be listed"))
    });
    assert!(alarm.contains("mount its file system, or make the folder"), "{alarm}");
    // An empty folder in its place is what a file system that is not mounted looks like.
    fs::create_dir(&drop).unwrap();
    site.until(|status| (folder_status(status)["state"] == "done").then_some(()));
    fs::remove_dir(&drop).unwrap();
    // A consumer takes the file away there: only what is sent again would bring it back.
    fs::remove_file(site.folder().join("files/in/a")).unwrap();
    fs::rename(&away, &drop).unwrap();
    put(&site, "b", b"two");
    handed(2);
    let status = site.until(|status| {
        (folder_status(status)["state"] == "done").then(|| folder_status(status).clone())
    });
    assert_eq!((&status["remembered"], &status["waiting"]), (&Value::from(2), &Value::from(0)));
    assert!(!site.folder().join("files/in/a").exists(), "it was sent again");
    let shown = site.shown("station.toml");
    assert!(shown.contains("folder   out (") && shown.contains("2 handed over"), "{shown}");
    drop_station(station);
    // Neither after a restart.
    until_sent(&site);
    assert!(!site.folder().join("files/in/a").exists(), "it was sent again");
}

fn drop_station(mut station: crate::support::process::Running) {
    station.kill();
}

#[test]
fn a_folder_is_shown_by_config_check_and_a_ledger_of_a_later_version_is_refused() {
    let site = Site::new();
    site.write(&format!(
        "{CHANNEL}{CAPTURES}done = \"move:taken\"\n{}",
        FILES.replace("drop", "o")
    ));
    let shown = printed(&["config", "check", "station.toml"], site.folder());
    assert!(
        shown.contains("once as contacts of channel x when it stood still for 2 s, then moved to"),
        "{shown}"
    );
    assert!(shown.contains("once as files in in at c when"), "{shown}");
    fs::create_dir_all(site.folder().join("spool")).unwrap();
    fs::write(site.folder().join("spool/folder-out.ledger"), "skyhaul-folder 2\n").unwrap();
    let output = run(&["run", "station.toml"], site.folder());
    let refused = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{refused}");
    assert!(refused.contains("the ledger has version 2"), "{refused}");
    assert!(refused.contains("run the newer program that wrote it"), "{refused}");
}
