//! A node with several destinations: files, mirrors and streams go where their tables say, each
//! destination by itself.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::centres::Centres;
use std::fs;
use std::path::Path;

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
