//! `skyhaul archive verify`, `restore` and `write`: a flipped bit is found and named, and mended
//! from a copy; volumes are bags that an independent reader validates.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use crate::archive::ordered_only;
use crate::outlets::{backfill, deliveries, destination, files, publish, subscription};
use crate::sftp::Sshd;
use crate::support::patience::until;
use crate::support::process::{printed, run, text};
use crate::support::refusal::{assert_alone, assert_refused};
use crate::support::site::Site;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn archive(site: &Site, order: &[&str]) -> Output {
    run(&[&["archive"], order, &["--config", "centre.toml"]].concat(), site.folder())
}

/// Flips one bit of a file.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

fn all_accepted(site: &Site, count: usize) {
    let accepted = || deliveries(site, &json!({ "state": "accepted" }));
    until(|| (accepted().len() == count).then_some(()), || format!("{:?}", accepted()));
}

#[test]
fn a_flipped_bit_is_found_named_and_mended_from_the_copy_that_is_good() {
    let sshd = Sshd::start();
    let mut tables = destination("out", "") + &subscription("out", "to = \"out\"\ninto = \"a\"\n");
    if let Some(sshd) = &sshd {
        tables += &sshd.destination("nas", "");
        tables += &subscription("nas", "to = \"nas\"\n");
    }
    let site = Site::with(&tables);
    publish(&site, 0..3, 1);
    let places = if sshd.is_some() { 2 } else { 1 };
    backfill(&site, "out");
    if sshd.is_some() {
        backfill(&site, "nas");
    }
    all_accepted(&site, 3 * places);
    let good = archive(&site, &["verify", "--copies"]);
    assert!(good.status.success(), "{}", text(&good.stderr));
    assert!(text(&good.stdout).starts_with("3 products, 6 files"), "{}", text(&good.stdout));

    let own = site.folder().join("products/P0000001V1.PDS");
    let copy = site.folder().join("out/out/a/P0000001V1.PDS");
    let before = fs::read(&own).unwrap();
    flip(&own);
    flip(&copy);
    let found = archive(&site, &["verify"]);
    assert_alone(&found, 1, &["1 files are not as they were published", "archive restore"]);
    let line = text(&found.stdout);
    assert!(line.starts_with("product-1-v1: P0000001V1.PDS has other bytes (SHA-256 "), "{line}");
    let found = archive(&site, &["verify", "--copies", "--json"]);
    let report: Value = serde_json::from_slice(&found.stdout).unwrap();
    let mut names: Vec<&str> = report["damaged"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["copy"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["out", "products"], "{report}");
    let restored = archive(&site, &["restore", "product-1"]);
    if sshd.is_some() {
        let said = text(&restored.stdout);
        assert!(
            said.contains("P0000001V1.PDS restored from nas"),
            "{said}{}",
            text(&restored.stderr)
        );
    } else {
        assert_refused(&restored, 1, &["cannot be restored", "at out it has other bytes"]);
        flip(&copy);
        assert!(archive(&site, &["restore", "product-1"]).status.success());
    }
    assert_eq!(fs::read(&own).unwrap(), before);
    fs::remove_file(site.folder().join("products/P0000002V1.CR")).unwrap();
    assert!(text(&archive(&site, &["verify"]).stdout).contains("P0000002V1.CR is not there"));
    assert!(archive(&site, &["restore", "product-2-v1"]).status.success());
    assert!(archive(&site, &["verify"]).status.success());
    let hidden = fs::read_dir(site.folder().join("products")).unwrap();
    let left = hidden.filter(|entry| {
        entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".restore")
    });
    assert_eq!(left.count(), 0);
}

/// The Python with the reader of bags, installed on first use.
fn python() -> Option<String> {
    let install =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../space/level0/tests/readers/install.py");
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/bag-reader");
    let wanted = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/bagit.txt");
    let installed = Command::new("python3").args([install, folder, wanted]).output();
    let Ok(installed) = installed else {
        eprintln!("SKIPPED: there is no python3");
        return None;
    };
    if !installed.status.success() {
        let said = text(&installed.stderr);
        eprintln!("SKIPPED: {}", said.trim().lines().last().unwrap_or("no word from install.py"));
        return None;
    }
    Some(text(&installed.stdout).trim().to_owned())
}

fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| match entry.metadata().unwrap() {
            about if about.is_dir() => size(&entry.path()),
            about => about.len(),
        })
        .sum()
}

#[test]
fn volumes_are_bounded_bags_that_the_catalogue_knows_and_products_come_back_from_them() {
    let rule = "[[retention]]\nkeep = \"30 d\"\nhold = [\"last-copy\"]\n";
    let site = ordered_only(rule);
    publish(&site, 0..5, 1);
    let media = site.folder().join("media");
    fs::create_dir(&media).unwrap();
    let due = text(&archive(&site, &["evict", "--dry-run"]).stdout);
    assert!(due.contains("0 would leave"), "{due}");
    let small = archive(&site, &["write", "--to", "media", "--volume-size", "5 kB"]);
    assert_refused(&small, 2, &["more than a volume of 5 kB"]);
    let written = archive(&site, &["write", "--to", "media", "--volume-size", "16 kB", "--json"]);
    let volumes: Value = serde_json::from_slice(&written.stdout).unwrap();
    assert_eq!(volumes.as_array().unwrap().len(), 3, "{volumes}");
    let folders: Vec<PathBuf> = volumes
        .as_array()
        .unwrap()
        .iter()
        .map(|volume| media.join(volume["name"].as_str().unwrap()))
        .collect();
    for folder in &folders {
        assert!(size(folder) <= 16_000, "{}: {}", folder.display(), size(folder));
        let name = folder.to_str().unwrap();
        assert!(
            text(&run(&["archive", "verify", "--volume", name], site.folder()).stdout)
                .ends_with(": verified\n")
        );
    }
    if let Some(python) = python() {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/bag.py");
        let mut reader = Command::new(python);
        let read = reader.arg(script).args(&folders).stdin(Stdio::null()).output().unwrap();
        assert!(read.status.success(), "{}", text(&read.stderr));
        assert_eq!(text(&read.stdout).lines().count(), 3);
    }
    let again = archive(&site, &["write", "--to", "media", "--volume-size", "16 kB"]);
    assert_eq!(text(&again.stdout), "every product is on a volume\n");
    let list = printed(&["archive", "list", "--config", "centre.toml", "--json"], site.folder());
    let list: Value = serde_json::from_str(&list).unwrap();
    for item in list["items"].as_array().unwrap() {
        assert_eq!(item["volumes"].as_array().unwrap().len(), 1, "{item}");
    }

    // Now another copy is known: they may leave, and come back.
    assert!(text(&archive(&site, &["evict"]).stdout).starts_with("5 left"));
    assert!(files(&site.folder().join("products")).is_empty());
    let lost = archive(&site, &["restore", "product-0"]);
    assert_refused(&lost, 1, &["no copy is known", "--from"]);
    let data = folders[0].join("data");
    let back = archive(&site, &["restore", "product-0", "--from", data.to_str().unwrap()]);
    assert!(back.status.success(), "{}", text(&back.stderr));
    assert_eq!(files(&site.folder().join("products")).len(), 2);
    assert!(text(&archive(&site, &["evict"]).stdout).starts_with("0 left"), "it is held");

    flip(&data.join("P0000000V1.PDS"));
    let name = folders[0].to_str().unwrap();
    let damaged = run(&["archive", "verify", "--volume", name], site.folder());
    assert_alone(&damaged, 1, &["1 files of the volume are damaged"]);
    assert!(text(&damaged.stdout).starts_with("data/P0000000V1.PDS has other bytes"));
    let none = run(&["archive", "verify", "--volume", "media"], site.folder());
    assert_refused(&none, 2, &["this is no volume"]);
}

#[test]
fn a_product_that_is_sent_again_has_a_record_with_a_new_number() {
    let tables = destination("out", "") + &subscription("cnm", "to = \"out\"\nrecord = \"cnm\"\n");
    let site = Site::with(&tables);
    publish(&site, 0..1, 1);
    backfill(&site, "cnm");
    let record = || {
        let found = files(&site.folder().join("out/out"));
        let (_, path) = found.iter().find(|(name, _)| name.ends_with(".cnm.json"))?;
        let message: Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        message["identifier"].as_str().map(str::to_owned)
    };
    all_accepted(&site, 1);
    let first = record().unwrap();
    let id = deliveries(&site, &json!({}))[0]["id"].to_string();
    printed(&["deliveries", "again", &id, "--config", "centre.toml"], site.folder());
    let second = until(|| record().filter(|second| *second != first), || first.clone());
    let number = |text: &str| text.rsplit(':').next().unwrap().parse::<u32>().unwrap();
    assert!(number(&second) > number(&first), "{first} {second}");
}
