//! A node with several destinations: files, mirrors and streams go where their tables say, each
//! destination by itself.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::disk_full::small_disk::on_a_small_disk;
use crate::support::centres::Centres;
use crate::support::process::{Running, skyhaul};
use crate::support::recordings::{CLEAN, expected, recording};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// Puts a file into a folder as programs do: under another name, then renamed.
fn put(folder: &Path, name: &str, text: &str) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join(format!("{name}.part")), text).unwrap();
    fs::rename(folder.join(format!("{name}.part")), folder.join(name)).unwrap();
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn a_file_goes_once_to_each_destination_of_its_folder_and_leaves_when_all_have_it() {
    let site = Centres::new();
    site.write(
        &["oper", "backup"],
        "[[folder]]\nname = \"out\"\npath = \"drop\"\nas = \"files\"\nto = [\"oper\", \
         \"node:backup\"]\ndone = \"delete\"\nquiet = \"50 ms\"\n",
    );
    let drop_folder = site.folder().join("drop");
    for name in ["a", "b", "c"] {
        put(&drop_folder, name, name);
    }
    let oper = site.start("oper");
    let mut station = site.start("s");
    site.wait(|| ["a", "b", "c"].iter().all(|name| site.file("oper", name).exists()));
    site.until(|status| {
        let [oper, backup] = &status["folders"].as_array()?[..] else { return None };
        let is_to = oper["to"] == "oper" && backup["to"] == "backup";
        (is_to && oper["handed"] == 3 && backup["handed"] == 0).then_some(())
    });
    assert!(drop_folder.join("a").exists(), "the other destination lacks it");
    // A consumer takes a file away: it must not come again.
    fs::remove_file(site.file("oper", "a")).unwrap();
    station.kill();
    put(&drop_folder, "d", "d");
    let mut station = site.start("s");
    site.wait(|| site.file("oper", "d").exists());
    site.until(|status| (status["folders"][0]["handed"] == 1).then_some(()));
    station.kill();
    let backup = site.start("backup");
    let station = site.start("s");
    site.wait(|| ["a", "b", "c", "d"].iter().all(|name| site.file("backup", name).exists()));
    site.wait(|| is_empty(&drop_folder));
    let [first, second] = site.until(|status| {
        let folders = status["folders"].as_array()?;
        let is_done = folders.iter().all(|one| one["state"] == "done" && one["remembered"] == 0);
        is_done.then(|| [folders[0].clone(), folders[1].clone()])
    });
    assert_eq!((&first["handed"], &second["handed"]), (&0.into(), &4.into()));
    assert!(!site.file("oper", "a").exists(), "it was handed over once");
    assert_eq!(fs::read_to_string(site.file("backup", "a")).unwrap(), "a");
    drop((oper, backup, station));
}

#[test]
fn on_a_full_file_system_a_folder_lets_go_what_its_rule_allows_and_counts_it() {
    let name = "on_a_full_file_system_a_folder_lets_go_what_its_rule_allows_and_counts_it";
    on_a_small_disk(name, |disk| {
        let site = Centres::new();
        let drop_folder = disk.folder("drop");
        site.write(
            &["oper", "backup"],
            &format!(
                "[[folder]]\nname = \"out\"\npath = \"{}\"\nas = \"files\"\nto = [\"oper\", \
                 \"backup\"]\ndone = \"delete\"\nsettle = \"any\"\nquiet = \"50 ms\"\n",
                drop_folder.display()
            ),
        );
        for name in ["a", "b"] {
            put(&drop_folder, name, name);
        }
        let (oper, station) = (site.start("oper"), site.start("s"));
        let handed = |count: u64| {
            site.until(|status| (status["folders"][0]["handed"] == count).then_some(()));
        };
        handed(2);
        assert!(drop_folder.join("a").exists(), "there is room, and the other one lacks it");
        disk.fill(1 << 20);
        site.wait(|| is_empty(&drop_folder));
        let status =
            site.until(|status| (status["folders"][1]["gave_way"] == 2).then(|| status.clone()));
        assert_eq!(status["folders"][0]["gave_way"], 0, "{:#}", status["folders"]);
        let alarms = status["alarms"].to_string();
        let alarm = "folder out to backup does not get all files: 2 files left the folder before";
        assert!(alarms.contains(alarm), "{alarms}");
        disk.clear();
        let backup = site.start("backup");
        put(&drop_folder, "c", "c");
        site.wait(|| ["oper", "backup"].iter().all(|to| site.file(to, "c").exists()));
        site.wait(|| is_empty(&drop_folder));
        assert!(!site.file("backup", "a").exists(), "it has left");
        drop((oper, backup, station));
    });
}

#[test]
fn a_mirror_is_copied_to_each_of_its_destinations_and_one_that_was_away_catches_up() {
    let site = Centres::new();
    let tables = "[[mirror]]\nsource = \"logs\"\ninto = \"m\"\nto = [\"oper\", \"backup\"]\n";
    site.write(&["oper", "backup"], tables);
    let logs = site.folder().join("logs");
    put(&logs, "one", "1");
    let oper = site.start("oper");
    let mut station = site.start("s");
    site.wait(|| site.file("oper", "m/one").exists());
    site.until(|status| {
        let [oper, backup] = &status["mirrors"].as_array()?[..] else { return None };
        let is_to = oper["to"] == "oper" && backup["to"] == "backup";
        (is_to && oper["state"] == "done" && backup["state"] == "waiting").then_some(())
    });
    station.kill();
    put(&logs, "two", "2");
    let station = site.start("s");
    site.wait(|| site.file("oper", "m/two").exists());
    assert!(!site.file("backup", "m").exists());
    let backup = site.start("backup");
    site.wait(|| ["m/one", "m/two"].iter().all(|name| site.file("backup", name).exists()));
    site.until(|status| {
        let mirrors = status["mirrors"].as_array()?;
        mirrors.iter().all(|mirror| mirror["state"] == "done").then_some(())
    });
    drop((oper, backup, station));
}

#[test]
fn a_stream_goes_to_the_destination_that_it_names_also_while_the_first_is_away() {
    let site = Centres::new();
    site.write(
        &["oper", "backup"],
        "[[stream]]\nfrom = \"vdif:8 Mbit/s\"\nto = \"scan-{utc}.vdif\"\ndestination = \
         \"backup\"\n",
    );
    let (backup, station) = (site.start("backup"), site.start("s"));
    site.until(|status| {
        let stream = &status["streams"][0];
        let goes = stream["to"] == "backup" && stream["received"].as_u64() > Some(0);
        goes.then_some(())
    });
    assert!(!is_empty(&site.folder().join("backup-streams")));
    assert!(!site.folder().join("oper-streams").exists());
    drop((backup, station));
}

fn destination<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    status["destinations"].as_array()?.iter().find(|one| one["name"] == name)
}

/// How often the line to a destination was opened, and what it is called in its session.
fn session(status: &Value, name: &str) -> Option<(u64, Value)> {
    let line = &destination(status, name)?["line"];
    let opened = line["connects"].as_u64()?;
    (line["state"] == "open").then(|| (opened, line["paths"][0]["name"].clone()))
}

#[test]
fn a_destination_comes_and_goes_at_sighup_and_the_contact_under_way_to_another_goes_on() {
    let site = Centres::new();
    let (input, mut output) = std::io::pipe().unwrap();
    let channel = "[[channel]]\nname = \"x\"\ninput = \"stdin\"\nsilence = \"1 h\"\n";
    site.write(&["oper"], channel);
    let (oper, backup) = (site.start("oper"), site.start("backup"));
    let log = fs::File::create(site.folder().join("s.log")).unwrap();
    let mut command = skyhaul(&["run", "s.toml"], site.folder());
    let station = Running::of(command.stdin(input).stdout(Stdio::null()).stderr(log));
    let bytes = fs::read(recording(CLEAN[0])).unwrap();
    let (first, second) = bytes.split_at(bytes.len() / 2);
    std::io::Write::write_all(&mut output, first).unwrap();
    let at_oper = |probe: &dyn Fn(&Value) -> bool| {
        site.node_until("oper", |status| {
            let contacts = status["contacts"].as_array()?;
            contacts.first().filter(|contact| probe(contact)).cloned()
        })
    };
    at_oper(&|contact| contact["frames"].as_u64() > Some(0));
    let before = site.until(|status| session(status, "oper"));
    site.write(&["oper", "backup"], channel);
    let said = site.reload(&station);
    assert!(said.contains("destination backup added"), "{said}");
    site.until(|status| session(status, "backup"));
    assert_eq!(site.until(|status| session(status, "oper")), before, "its session stays");
    // Nothing of a contact that began before is for a destination that is new.
    let backlog = |status: &Value| destination(status, "backup")?["backlog"]["blocks"].as_u64();
    assert_eq!(site.until(backlog), 0);
    site.write(&["oper"], channel);
    let said = site.reload(&station);
    assert!(said.contains("destination backup removed"), "{said}");
    site.until(|status| destination(status, "backup").is_none().then_some(()));
    site.node_until("backup", |status| status["stations"].as_array()?.is_empty().then_some(()));
    // And again, with what the spool has: another number, from the beginning.
    site.write(&["oper", "backup"], &format!("since = \"kept\"\n{channel}"));
    let said = site.reload(&station);
    assert!(said.contains("destination backup added"), "{said}");
    std::io::Write::write_all(&mut output, second).unwrap();
    drop(output);
    let known = expected(CLEAN[0]);
    for centre in ["oper", "backup"] {
        let contact = site.node_until(centre, |status| {
            let contact = status["contacts"].as_array()?.first()?.clone();
            (contact["state"] == "done").then_some(contact)
        });
        assert_eq!(contact["frames"], known["frames_total"], "{centre}");
        assert_eq!(contact["frames_sha256"], known["frames_sha256"], "{centre}");
    }
    let after = site.until(|status| session(status, "oper"));
    assert_eq!(after, before, "its session stayed");
    drop((oper, backup, station));
}
