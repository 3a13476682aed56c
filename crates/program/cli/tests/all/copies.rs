//! State folders that are restored from older copies, or cloned, and stations with the same key:
//! nothing is lost, no contact mixes two stations, and the log reports it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::node;
use crate::support::patience::until;
use crate::support::process::{Ended, Running, text};
use crate::support::recordings::{CLEAN, expected, recording};
use crate::support::site::Site;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const DEAD: &str = "127.0.0.1:9";

/// A channel that plays the recording with this number. Each recording has its own channel, so that
/// each is played from its beginning.
fn channel(number: usize) -> String {
    let path = recording(CLEAN[number]);
    format!("[[channel]]\nname = \"x{number}\"\ninput = \"file:{}\"\n", path.display())
}

/// Plays a recording until the centre has it.
#[track_caller]
fn play(site: &Site, number: usize) -> Ended {
    site.write(&channel(number));
    let ended = station(site, "station.toml").end();
    assert_eq!(ended.code, Some(0), "{}", ended.log);
    ended
}

/// A station that ends when the centre has everything that it captured. Its log is read at its end.
fn station(site: &Site, config: &str) -> Running {
    Running::start_logged(&["run", config, "--until-sent"], site.folder())
}

/// Writes the configuration of another station with the same key, whose state is in the folder
/// `state`.
fn write_other(site: &Site, state: &str, tables: &str) -> String {
    site.write(tables);
    let at = site.folder();
    let config = fs::read_to_string(at.join("station.toml")).unwrap();
    let name = format!("{state}.toml");
    fs::write(at.join(&name), config.replace("state = \"spool\"", &format!("state = \"{state}\"")))
        .unwrap();
    name
}

/// Copies the files of a folder, as a backup does.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (kind, to) = (entry.file_type().unwrap(), to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &to);
        } else if kind.is_file() {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Restores the state folder of the station from a copy.
fn put_back(site: &Site, copied: &str) {
    let state = site.folder().join("spool");
    fs::remove_dir_all(&state).unwrap();
    copy(&site.folder().join(copied), &state);
}

fn alarms(status: &Value) -> Vec<String> {
    let alarms = status["alarms"].as_array().into_iter().flatten();
    alarms.map(|alarm| alarm["sentence"].as_str().unwrap().to_owned()).collect()
}

/// Asserts that the centre has a complete contact of each of these recordings and no other, and
/// that it reports another spool.
#[track_caller]
fn assert_whole(site: &Site, recordings: &[usize]) {
    let (contacts, alarms) = site.centre_until(|status| {
        let contacts = status["contacts"].as_array()?;
        let is_over = contacts.iter().all(|contact| contact["state"] == "done");
        (is_over && contacts.len() >= recordings.len()).then(|| (contacts.clone(), alarms(status)))
    });
    let of = |contact: &Value| (contact["frames"].as_u64(), contact["frames_sha256"].to_string());
    let ours: BTreeSet<_> = contacts.iter().map(of).collect();
    let known = |number: &usize| {
        let known = expected(CLEAN[*number]);
        (known["frames_total"].as_u64(), known["frames_sha256"].to_string())
    };
    assert_eq!(ours, recordings.iter().map(known).collect(), "{contacts:#?}");
    assert_eq!(contacts.len(), recordings.len(), "{contacts:#?}");
    let keys: BTreeSet<_> = contacts
        .iter()
        .map(|contact| (contact["station"].to_string(), contact["flow"].as_u64()))
        .collect();
    assert_eq!(keys.len(), contacts.len(), "each has a name of its own");
    assert!(alarms.iter().any(|alarm| alarm.contains("station s has another spool")), "{alarms:?}");
}

#[track_caller]
fn assert_copied(ended: &Ended) {
    assert!(ended.log.contains("the spool exists in two copies"), "{}", ended.log);
    assert!(ended.log.contains("restored from an older copy"), "{}", ended.log);
}

#[test]
fn a_spool_restored_from_an_older_copy_loses_nothing_that_it_captures_without_its_line() {
    let site = Site::new();
    play(&site, 0);
    copy(&site.folder().join("spool"), &site.folder().join("copy"));
    play(&site, 1);
    put_back(&site, "copy");
    site.write_by(DEAD, &channel(2));
    let cut_off = site.start_to_stay();
    site.until(|status| {
        let is_over =
            status["channels"][0]["state"] == "ended" && status["spool"]["blocks"].as_u64()? > 0;
        is_over.then_some(())
    });
    cut_off.signal(Signal::TERM);
    assert_eq!(cut_off.end().code, Some(0));
    assert_copied(&play(&site, 2));
    assert_whole(&site, &[0, 1, 2]);
}

#[test]
fn a_spool_restored_from_an_older_copy_goes_on_while_its_line_is_up() {
    let site = Site::new();
    play(&site, 0);
    copy(&site.folder().join("spool"), &site.folder().join("copy"));
    play(&site, 1);
    put_back(&site, "copy");
    assert_copied(&play(&site, 2));
    assert_whole(&site, &[0, 1, 2]);
    // From now on it is another spool, and nothing reports a fault.
    put_back(&site, "copy");
    assert_copied(&play(&site, 1));
}

#[test]
fn two_stations_that_start_together_with_one_key_deliver_one_contact_each() {
    let site = Site::new();
    let other = write_other(&site, "other", &channel(1));
    site.write(&channel(0));
    let both = [station(&site, "station.toml"), station(&site, &other)];
    for ended in both.map(Running::end) {
        assert_eq!(ended.code, Some(0), "{}", ended.log);
    }
    assert_whole(&site, &[0, 1]);
}

#[test]
fn a_cloned_station_and_its_original_deliver_contacts_of_their_own() {
    let site = Site::new();
    play(&site, 0);
    copy(&site.folder().join("spool"), &site.folder().join("clone"));
    let clone = write_other(&site, "clone", &channel(2));
    site.write(&channel(1));
    let both = [station(&site, "station.toml"), station(&site, &clone)];
    let ended = both.map(Running::end);
    for ended in &ended {
        assert_eq!(ended.code, Some(0), "{}", ended.log);
    }
    let copied = ended.iter().filter(|ended| ended.log.contains("the spool exists in two copies"));
    assert!(copied.count() >= 1, "{}\n{}", ended[0].log, ended[1].log);
    assert_whole(&site, &[0, 1, 2]);
}

/// Of two stations that stay, the older one waits longer each time, and connects again when the
/// newer one has gone.
#[test]
fn of_two_stations_with_one_key_the_newer_stays_connected_and_both_ends_report_it() {
    let site = Site::new();
    let newer = write_other(&site, "newer", &channel(1));
    site.write(&channel(0));
    let older = site.start_to_stay();
    site.until(|status| (status["destinations"][0]["line"]["state"] == "open").then_some(()));
    let ask = |config: &str| node::part(config, site.folder());
    let mut newer_runs = Running::start(&["run", &newer], site.folder());
    let shares = |alarms: &[String], what: &str| alarms.iter().any(|alarm| alarm.contains(what));
    site.until(|status| shares(&alarms(status), "this station's key").then_some(()));
    site.centre_until(|status| {
        shares(&alarms(status), "the key of station s: two nodes").then_some(())
    });
    let kept = until(|| ask(&newer), || "the newer does not answer".to_owned());
    assert_eq!(
        (&kept["destinations"][0]["line"]["state"], &kept["destinations"][0]["line"]["connects"]),
        (&"open".into(), &1.into())
    );
    newer_runs.kill();
    site.until(|status| {
        let is_back = status["destinations"][0]["line"]["state"] == "open";
        (is_back && !shares(&alarms(status), "this station's key")).then_some(())
    });
    assert_whole(&site, &[0, 1]);
    older.signal(Signal::TERM);
    let ended = older.end();
    assert_eq!(ended.code, Some(0), "{}", text(ended.log.as_bytes()));
}
