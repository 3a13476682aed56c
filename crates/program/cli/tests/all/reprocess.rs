//! `skyhaul reprocess`: by the same rules products come out byte for byte the same, and by other
//! rules those that differ are new versions, which subscribers get as they want.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use crate::outlets::{deliveries, destination, files, subscription};
use crate::support::patience::until;
use crate::support::process::{printed, run};
use crate::support::recordings::sha256;
use crate::support::refusal::assert_refused;
use crate::support::site::{Site, channel};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

const ALL: [&str; 6] =
    ["--from", "2000-01-01T00:00:00Z", "--to", "2100-01-01T00:00:00Z", "--config", "centre.toml"];

/// A site that has the products of a damaged recording.
fn made() -> (Site, String) {
    let tables = format!(
        "{}{}{}",
        destination("out", ""),
        subscription("each", "to = \"out\"\ninto = \"each\"\nversions = \"all\"\n"),
        subscription("first", "to = \"out\"\ninto = \"first\"\nversions = \"first\"\n"),
    );
    let site = Site::with(&tables);
    site.write(&channel(""));
    assert_eq!(site.start().end().code, Some(0));
    let contact = site.assert_whole();
    (site, contact["mission"].as_str().unwrap().to_owned())
}

fn reprocessed(site: &Site, mission: &str, arguments: &[&str]) -> Value {
    let order = [&["reprocess", "--mission", mission, "--json"], &ALL[..], arguments].concat();
    serde_json::from_str(&printed(&order, site.folder())).unwrap()
}

/// How many products of an order had each outcome.
fn outcomes(report: &Value) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for product in report["products"].as_array().unwrap() {
        *found.entry(product["outcome"].as_str().unwrap().to_owned()).or_insert(0) += 1;
    }
    found
}

#[test]
fn the_same_rules_give_the_same_bytes_and_other_rules_a_new_version_of_what_differs() {
    let (mut site, mission) = made();
    let products = || -> BTreeMap<String, String> {
        let all = files(&site.folder().join("products")).into_iter();
        all.map(|(name, path)| (name, sha256(&fs::read(path).unwrap()))).collect()
    };
    let before = products();
    let dry = reprocessed(&site, &mission, &["--dry-run"]);
    assert_eq!(dry["jobs"].as_array().unwrap().len(), 1, "{dry}");
    let same = reprocessed(&site, &mission, &[]);
    let count = same["products"].as_array().unwrap().len();
    assert!(count > 0, "{same}");
    assert_eq!(outcomes(&same), BTreeMap::from([("same".to_owned(), count)]), "{same}");
    assert_eq!(products(), before, "nothing was published");

    fs::write(site.folder().join("rules.toml"), "[products]\nfill = \"pad\"\n").unwrap();
    let other = reprocessed(&site, &mission, &["--rules", "rules.toml"]);
    let changed: Vec<&Value> = {
        let products = other["products"].as_array().unwrap().iter();
        products.filter(|product| product["outcome"] == "changed").collect()
    };
    assert!(!changed.is_empty(), "a damaged recording has cut packets: {other}");
    let after = products();
    assert!(before.iter().all(|(name, sum)| after.get(name) == Some(sum)), "no file changed");
    for product in &changed {
        assert_eq!(product["version"], 2);
        let name = product["name"].as_str().unwrap();
        let shown = printed(&["catalogue", "show", name, "--config", "centre.toml"], site.folder());
        assert!(shown.contains("\"version\": \"2\"") && shown.contains("\"version\": \"1\""));
        let accounts = after.keys().filter(|file| file.ends_with(".json"));
        let read = |file: &String| -> Value {
            let text = fs::read(site.folder().join("products").join(file)).unwrap();
            serde_json::from_slice(&text).unwrap()
        };
        let is_new = |account: &Value| {
            account["product"]["name"] == product["product"] && account["product"]["version"] == 2
        };
        let account = accounts.map(read).find(is_new).unwrap();
        assert_eq!(account["product"]["replaces"]["version"], 1, "it names its predecessor");
        assert!(account["accounting"]["filled_packets"].as_u64().unwrap() > 0);
    }
    // Who wants each version gets the new ones too, and who wants the first gets none.
    let count_of = |name: &str| deliveries(&site, &json!({ "subscription": name })).len();
    assert_eq!(count_of("each") - count_of("first"), changed.len());
    let is_there = || {
        let all = deliveries(&site, &json!({ "subscription": "each" }));
        all.iter().all(|one| one["state"] == "accepted").then_some(())
    };
    until(is_there, || format!("{:?}", deliveries(&site, &json!({}))));
    // Again by those rules: as the newest version is.
    let again = reprocessed(&site, &mission, &["--rules", "rules.toml"]);
    assert_eq!(outcomes(&again), BTreeMap::from([("same".to_owned(), count)]), "{again}");
    // An order outlives a kill.
    let order = [&["reprocess", "--mission", &mission, "--no-wait"], &ALL[..]].concat();
    printed(&order, site.folder());
    site.kill_centre();
    site.start_centre();
    let newest = || {
        let found =
            run(&["catalogue", "search", "--json", "--config", "centre.toml"], site.folder());
        let page: Value = serde_json::from_slice(&found.stdout).ok()?;
        let is_third = |item: &Value| item["properties"]["version"] == "3";
        let count = page["items"].as_array()?.iter().filter(|item| is_third(item)).count();
        (count == changed.len()).then_some(())
    };
    until(newest, || "no third version".to_owned());
}

#[test]
fn what_cannot_be_made_is_refused_with_what_to_do() {
    let (site, mission) = made();
    let of = |mission: &str, arguments: &[&str]| {
        let order = [&["reprocess", "--mission", mission], &ALL[..], arguments].concat();
        run(&order, site.folder())
    };
    assert_refused(&of("none", &[]), 2, &["no stored contact", "how long they stay"]);
    let late = of(&mission, &["--contact", "s-999"]);
    assert_refused(&late, 2, &["no stored contact"]);
    for (rules, what) in [
        ("[products]\nfill = \"more\"\n", "`more` is not a policy"),
        ("[products]\ndir = \"x\"\n", "remove `dir`"),
        ("[other]\n", "unknown field"),
        ("[[product", "[products] and [[product]]"),
    ] {
        fs::write(site.folder().join("rules.toml"), rules).unwrap();
        assert_refused(&of(&mission, &["--rules", "rules.toml"]), 2, &[what]);
    }
}
