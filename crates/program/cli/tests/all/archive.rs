//! `skyhaul archive`: what is due leaves, with its reason; what is needed, held or the last copy
//! stays; a clock that jumps removes nothing; and no kill parts files from their rows.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use crate::outlets::{backfill, deliveries, destination, files, publish, subscription};
use crate::support::patience::until;
use crate::support::process::{Running, printed, run};
use crate::support::refusal::assert_refused;
use crate::support::site::Site;
use serde_json::{Value, json};
use skyhaul_catalogue_io::Catalogue;
use skyhaul_units::Utc;
use std::collections::{BTreeMap, BTreeSet};

/// A site whose node removes nothing by itself: its clock is a year ahead of its last look, as far
/// as it can tell.
pub fn ordered_only(tables: &str) -> Site {
    let mut site = Site::with(tables);
    restart_ordered_only(&mut site);
    site
}

/// Kills the node, and starts it so again.
fn restart_ordered_only(site: &mut Site) {
    site.kill_centre();
    let catalogue = Catalogue::open(&site.folder().join("state/catalogue.db")).unwrap();
    catalogue.archive().looked(Utc::from_micros(1_758_000_000_000_000)).unwrap();
    drop(catalogue);
    site.start_centre();
    site.centre_until(|status| {
        let alarms = status["alarms"].as_array()?;
        let is_it = |alarm: &Value| {
            alarm["sentence"].as_str().is_some_and(|it| it.contains("are not removed"))
        };
        alarms.iter().any(is_it).then_some(())
    });
}

/// What is due, by name: why it stays, or nothing.
fn due(site: &Site) -> BTreeMap<String, Option<String>> {
    let page = asked(site, &["evict", "--dry-run"]);
    let items = page["due"].as_array().unwrap().iter();
    let of = |item: &Value| {
        let stays = item["stays"]["name"].as_str().map(str::to_owned);
        (item["name"].as_str().unwrap().to_owned(), stays)
    };
    items.map(of).collect()
}

fn asked(site: &Site, order: &[&str]) -> Value {
    let order = [&["archive"], order, &["--config", "centre.toml", "--json"]].concat();
    serde_json::from_str(&printed(&order, site.folder())).unwrap()
}

fn said(site: &Site, order: &[&str]) -> String {
    let order = [&["archive"], order, &["--config", "centre.toml"]].concat();
    printed(&order, site.folder())
}

/// The names of the files that rows say are there, and those that are.
fn agreement(site: &Site) -> (BTreeSet<String>, BTreeSet<String>) {
    let order = ["catalogue", "export", "--filter", "state = 'present'", "--config", "centre.toml"];
    let told = printed(&order, site.folder());
    let items = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let names = |item: Value| -> Vec<String> {
        item["assets"].as_object().unwrap().keys().cloned().collect()
    };
    let told = items.flat_map(names).collect();
    (told, files(&site.folder().join("products")).into_keys().collect())
}

#[test]
fn what_is_due_leaves_with_its_reason_and_what_is_needed_held_or_the_last_copy_stays() {
    let rule = "[[retention]]\nfilter = \"mission = 'aqua'\"\nkeep = \"30 d\"\nhold = \
                [\"last-copy\"]\n[[retention]]\nfilter = \"mission = 'terra'\"\nkeep = \"30 d\"\n\
                leave = \"nothing\"\n";
    let away = "[[destination]]\nname = \"away\"\nto = \"https://127.0.0.1:9/in\"\n";
    let tables = format!(
        "{rule}{away}{}{}{}",
        destination("out", ""),
        subscription("copies", "to = \"out\"\nfilter = \"id IN ('product-0', 'product-2')\"\n"),
        subscription("never", "to = \"away\"\nfilter = \"id = 'product-1'\"\n"),
    );
    let site = ordered_only(&tables);
    publish(&site, 0..6, 1);
    backfill(&site, "copies");
    backfill(&site, "never");
    let accepted = || deliveries(&site, &json!({ "subscription": "copies", "state": "accepted" }));
    until(|| (accepted().len() == 2).then_some(()), || format!("{:?}", accepted()));
    said(&site, &["hold", "product-2", "--why", "fire study"]);
    let expected: BTreeMap<String, Option<String>> = [
        ("product-0-v1", None),
        ("product-1-v1", Some("pending")),
        ("product-2-v1", Some("held")),
        ("product-3-v1", None),
        ("product-4-v1", Some("last-copy")),
        ("product-5-v1", None),
    ]
    .map(|(name, stays)| (name.to_owned(), stays.map(str::to_owned)))
    .into();
    assert_eq!(due(&site), expected);
    let text = said(&site, &["evict", "--dry-run"]);
    assert!(text.contains("it stays: an operator holds it: fire study"), "{text}");
    assert!(text.contains("[[retention]] 1, published at 2026-09-21"), "{text}");
    assert_eq!(asked(&site, &["evict"])["leaves"], 3);
    let (told, there) = agreement(&site);
    assert_eq!((&told, told.len()), (&there, 6));
    let list = asked(&site, &["list", "--filter", "state = 'removed'"]);
    let names: Vec<&Value> =
        list["items"].as_array().unwrap().iter().map(|item| &item["name"]).collect();
    assert_eq!(names, ["product-0-v1"], "the other rule leaves no record");
    let order = ["archive", "hold", "product-0", "--why", "x", "--config", "centre.toml"];
    assert_refused(&run(&order, site.folder()), 2, &["are removed", "archive restore"]);
    // What has left cannot be sent again.
    let id = deliveries(&site, &json!({ "item": "product-0" }))[0]["id"].to_string();
    let again = run(&["deliveries", "again", &id, "--config", "centre.toml"], site.folder());
    assert_refused(&again, 2, &["archive restore"]);
    said(&site, &["release", "product-2"]);
    // It is due now, or has left already.
    assert_eq!(due(&site).get("product-2-v1").cloned().flatten(), None);
    assert_eq!(asked(&site, &["list", "--held"])["items"], Value::Array(Vec::new()));
}

#[test]
fn a_clock_that_is_a_year_ahead_removes_nothing_until_an_operator_confirms_it() {
    let site = ordered_only("[[retention]]\nkeep = \"1 d\"\n");
    publish(&site, 0..3, 1);
    let alarm = site.centre_until(|status| {
        let alarms =
            status["alarms"].as_array()?.iter().filter_map(|alarm| alarm["sentence"].as_str());
        alarms.into_iter().find(|alarm| alarm.contains("are not removed")).map(str::to_owned)
    });
    assert!(alarm.contains("days ahead of the last look, from 2025-09-16"), "{alarm}");
    assert!(alarm.contains("skyhaul archive evict"), "{alarm}");
    assert_eq!(files(&site.folder().join("products")).len(), 6);
    assert!(
        said(&site, &["evict", "--dry-run"]).starts_with("nothing leaves by itself: the clock")
    );
    assert_eq!(asked(&site, &["evict"])["leaves"], 3);
    assert!(files(&site.folder().join("products")).is_empty());
    site.centre_until(|status| status["alarms"].as_array()?.is_empty().then_some(()));
}

#[test]
fn a_kill_while_products_leave_parts_no_file_from_its_row() {
    let mut site = ordered_only("[[retention]]\nkeep = \"1 d\"\n");
    let count = 600;
    publish(&site, 0..count, 1);
    let there = |site: &Site| files(&site.folder().join("products")).len();
    for part in 1..=3 {
        let order = ["archive", "evict", "--config", "centre.toml"];
        let evict = Running::start(&order, site.folder());
        let most = 2 * count as usize - part * 200;
        until(|| (there(&site) <= most).then_some(()), || there(&site).to_string());
        // The first look finishes what was marked before the kill, and removes nothing else.
        restart_ordered_only(&mut site);
        drop(evict);
        let (told, found) = agreement(&site);
        let differ: Vec<&String> = told.symmetric_difference(&found).take(5).collect();
        assert!(differ.is_empty(), "after kill {part}: {differ:?}");
    }
    said(&site, &["evict"]);
    assert_eq!(there(&site), 0);
}
