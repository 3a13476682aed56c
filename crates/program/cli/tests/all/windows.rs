//! Time-based products: of a window of UTC, over contacts, with new versions when more data
//! arrives.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use crate::support::node;
use crate::support::patience::until;
use crate::support::process::printed;
use crate::support::recordings::{recording, sha256};
use crate::support::site::Site;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const RECORDING: &str = "npp.20241206T173815.dat";

fn channel(name: &str, file: &Path) -> String {
    format!("[[channel]]\nname = \"{name}\"\ninput = \"file:{}\"\n", file.display())
}

/// Waits until `enough` accepts the newest versions that the centre has made, and returns them by
/// product.
fn assembled(site: &Site, enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    site.centre_until(|status| {
        let made = status["assembled"].as_array()?.clone();
        enough(&made).then_some(made)
    })
}

fn all_made(made: &[Value], version: u64) -> bool {
    !made.is_empty() && made.iter().all(|one| one["state"] == "made" && one["version"] == version)
}

#[test]
fn a_window_product_is_made_of_contacts_and_made_again_when_the_rest_arrives() {
    let site = Site::with("time = true\nwait = \"10 min\"\n");
    let whole = std::fs::read(recording(RECORDING)).unwrap();
    // First everything except a stretch in the middle, then everything.
    let cadu = 1_024;
    let (first, rest) = (whole.len() / cadu / 3 * cadu, whole.len() / cadu / 2 * cadu);
    let part = site.folder().join("part.dat");
    std::fs::write(&part, [&whole[..first], &whole[rest..]].concat()).unwrap();
    site.write(&channel("part", &part));
    assert_eq!(site.start().end().code, Some(0));
    let one = assembled(&site, |made| all_made(made, 1));
    site.write(&channel("whole", &recording(RECORDING)));
    assert_eq!(site.start().end().code, Some(0));
    let two = assembled(&site, |made| all_made(made, 2));
    let imager =
        |made: &[Value]| made.iter().find(|one| one["product"] == "viirs-science").unwrap().clone();
    let (one, two) = (imager(&one), imager(&two));
    assert_eq!(
        (&two["from"], &two["to"]),
        (&"2024-12-06T16:00:00.000000Z".into(), &"2024-12-06T18:00:00.000000Z".into())
    );
    let count = |of: &Value, what: &str| of[what].as_u64().unwrap();
    assert_eq!(count(&two, "packets"), count(&one, "packets") + count(&two, "added"));
    assert!(count(&two, "added") > 0, "{two}");
    // The recording is shorter than a scan, in which each application sends once: a gap need not
    // show in any count.
    assert!(count(&two, "missing") <= count(&one, "missing"), "{one} {two}");
    assert_eq!(count(&two, "contacts"), 2);
    // The window has what a contact that received everything has by itself.
    let contacts = site.centre_until(|status| status["contacts"].as_array().cloned());
    let heard = contacts.iter().find(|contact| contact["channel"] == "whole").unwrap();
    let sha = &heard["products"][0]["sha256"];
    assert_eq!(&two["sha256"], sha, "{heard}");
    let path = two["path"].as_str().unwrap();
    assert!(path.contains("VIIRSSCIENCEAT"), "{path}");
    // The path is as the centre writes it, which runs in that folder.
    let account = std::fs::read(site.folder().join(path.replace("01.PDS", "00.json"))).unwrap();
    let account: Value = serde_json::from_slice(&account).unwrap();
    assert_eq!(account["product"]["replaces"]["version"], 1);
    assert_eq!(account["accounting"]["balanced"], true);
}

/// What is published in a folder, with the digest of each file.
fn published(folder: &Path) -> BTreeMap<String, String> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.is_file());
    files
        .map(|path| {
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                sha256(&std::fs::read(path).unwrap()),
            )
        })
        .collect()
}

/// The digests of the packet files of products of this basis, by the product's name, as their
/// accounts say.
fn accounts(folder: &Path, basis: &str) -> BTreeMap<String, String> {
    let mut accounts = BTreeMap::new();
    for name in published(folder).into_keys().filter(|name| name.ends_with(".json")) {
        let account: Value =
            serde_json::from_slice(&std::fs::read(folder.join(&name)).unwrap()).unwrap();
        let product = &account["product"];
        assert_eq!(
            (&account["accounting"]["balanced"], &product["version"]),
            (&true.into(), &1.into()),
            "{name}"
        );
        if product["basis"] == basis {
            let digest = product["packet_file"]["sha256"].as_str().unwrap_or_default().to_owned();
            let twice = accounts.insert(product["name"].as_str().unwrap().to_owned(), digest);
            assert_eq!(twice, None, "{name} is there twice");
        }
    }
    accounts
}

/// Whether the centre has made what is to be made of the window.
fn is_made(site: &Site) -> bool {
    let status = node::part("centre.toml", site.folder());
    let waits = |status: Value| {
        status["assembled"].as_array().unwrap().iter().any(|one| one["state"] == "waiting")
    };
    status.is_some_and(|status| !waits(status))
        && !accounts(&site.folder().join("products"), "time").is_empty()
}

#[test]
fn a_job_killed_at_any_instant_gives_the_same_products() {
    let mut site = Site::with("time = true\nwait = \"0 s\"\n");
    let (products, downlink) = (site.folder().join("products"), site.folder().join("long.dat"));
    // 25 MB: a few tenths of a second of work.
    let generate =
        ["generate", "--mission", "noaa-21", "--frames", "20000", "--output", "long.dat"];
    printed(&generate, site.folder());
    site.write(&channel("long", &downlink));
    assert_eq!(site.start().end().code, Some(0));
    let work = products.join(".assembly.work");
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut kills, mut seen) = (0, BTreeMap::new());
    // Each kill comes later in the job, until the job is done before the kill.
    while kills < 12 {
        let state = || if work.exists() { Some(true) } else { is_made(&site).then_some(false) };
        if !until(state, || "the job neither goes nor is done".to_owned()) {
            break;
        }
        std::thread::park_timeout(Duration::from_millis(rng.random_range(0..15 * (kills + 1))));
        site.kill_centre();
        kills += 1;
        let now = published(&products);
        for (name, digest) in &seen {
            assert_eq!(now.get(name), Some(digest), "{name} after {kills} kills");
        }
        seen = now;
        site.start_centre();
    }
    println!("{kills} kills");
    assert!(kills >= 2, "the job was over before it could be killed");
    until(|| is_made(&site).then_some(()), || "the job is not done".to_owned());
    let now = published(&products);
    assert!(seen.iter().all(|(name, digest)| now.get(name) == Some(digest)));
    assert!(!now.keys().any(|name| name.starts_with('.')), "something is left over: {now:?}");
    assert!(!work.exists());
    // One contact received everything: the window has the same, each product once.
    let own = accounts(&products, "session");
    assert!(own.len() > 1);
    assert_eq!(accounts(&products, "time"), own);
}
