//! What subscriptions say of products at a folder of another node: versions, order, deadlines and
//! promises are as at a folder of this machine; and what waited goes when the node is back, however
//! long the pause of the retries is.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use crate::node_outlets::{Caller, Pair};
use crate::outlets::{files, publish_in};
use crate::support::node;
use crate::support::patience::until;
use crate::support::process::printed;
use serde_json::Value;
use std::path::Path;

/// A subscription to all products that goes to `lance`, unless `keys` say otherwise. Its pauses are
/// longer than the patience of a test.
fn subscription(name: &str, keys: &str) -> String {
    let to = if keys.contains("to = ") { "" } else { "to = \"lance\"\n" };
    format!(
        "[[subscription]]\nof = \"products\"\nname = \"{name}\"\n{to}{keys}[subscription.retry]\n\
         first = \"30 min\"\nmost = \"30 min\"\n"
    )
}

fn publish(pair: &Pair, numbers: core::ops::Range<u32>, version: u32) {
    publish_in(pair.folder(), numbers, version, |number| 5_000 + number as usize);
}

/// Has a subscription deliver all that was published before.
fn backfill(pair: &Pair, name: &str) {
    let from = "1970-01-01T00:00:00Z";
    let order = ["subscription", "backfill", name, "--from", from, "--config", "centre.toml"];
    printed(&order, pair.folder());
}

/// Waits until the centre has found that there is no session.
fn until_missed(pair: &Pair) {
    let missed = |one: &Value| {
        one["reason"].as_str().is_some_and(|reason| reason.contains("there is no session with it"))
    };
    let look = || pair.deliveries().iter().any(missed).then_some(());
    until(look, || format!("{:?}\n{}", pair.deliveries(), pair.logs()));
}

/// The products of a subscription in the order in which they got there.
fn in_order(all: &[Value], subscription: &str) -> Vec<String> {
    let its = all.iter().filter(|one| one["subscription"] == subscription);
    let mut its: Vec<&Value> = its.filter(|one| one["state"] == "accepted").collect();
    its.sort_by_key(|one| one["since"].as_str().unwrap().to_owned());
    its.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

fn names(numbers: &[u32], version: u32) -> Vec<String> {
    numbers.iter().map(|number| format!("P{number:07}V{version}")).collect()
}

fn packet_files(folder: &Path) -> Vec<String> {
    let names = files(folder).into_keys();
    names.filter_map(|name| Some(name.strip_suffix(".PDS")?.to_owned())).collect()
}

/// Regression: what waited for a node that was back went when the pause of its last failure was
/// over, half an hour later.
#[test]
fn a_node_that_was_away_gets_each_version_that_is_wanted_at_once() {
    for caller in [Caller::Centre, Caller::Customer] {
        let tables = [
            subscription("latest", "into = \"latest\"\n"),
            subscription("all", "into = \"all\"\nversions = \"all\"\n"),
            subscription("first", "into = \"first\"\nversions = \"first\"\n"),
        ];
        let pair = Pair::with(caller, &tables.concat(), "");
        let _centre = pair.start_centre();
        for version in 1..=2 {
            publish(&pair, 0..2, version);
            ["latest", "all", "first"].iter().for_each(|name| backfill(&pair, name));
            until_missed(&pair);
        }
        let _far = pair.start("customer");
        pair.settled(8, "accepted");
        let replaced = pair.settled(2, "replaced");
        let is_first_of_latest = |one: &&Value| {
            one["subscription"] == "latest" && one["version"] == 1 && one["state"] == "replaced"
        };
        assert_eq!(replaced.iter().filter(is_first_of_latest).count(), 2, "{replaced:?}");
        let both = [names(&[0, 1], 1), names(&[0, 1], 2)];
        assert_eq!(packet_files(&pair.got("latest")), both[1]);
        assert_eq!(packet_files(&pair.got("first")), both[0]);
        let mut all = both.concat();
        all.sort();
        assert_eq!(packet_files(&pair.got("all")), all);
    }
}

#[test]
fn products_for_a_node_go_in_the_order_of_each_subscription_also_those_from_before_it() {
    let orders = ["newest", "oldest", "deadline"];
    let table = |order: &&str| {
        let since = "since = \"1970-01-01T00:00:00Z\"\ndeadline = \"1 d\"\n";
        subscription(order, &format!("into = \"{order}\"\norder = \"{order}\"\n{since}"))
    };
    let tables: String = orders.iter().map(table).collect();
    let pair = Pair::with(Caller::Centre, &format!("connections = 1\n{tables}"), "");
    let mut centre = pair.start_centre();
    // The first one is on its way, in vain, in each lane before the others are there.
    publish(&pair, 0..1, 1);
    let restart = |centre: &mut crate::support::process::Running| {
        centre.kill();
        *centre = pair.start_centre();
    };
    restart(&mut centre);
    until_missed(&pair);
    publish(&pair, 1..5, 1);
    restart(&mut centre);
    let look = || (pair.deliveries().len() == 15).then_some(());
    until(look, || format!("{:?}\n{}", pair.deliveries(), pair.logs()));
    let _far = pair.start("customer");
    let all = pair.settled(15, "accepted");
    assert_eq!(in_order(&all, "newest"), names(&[4, 3, 2, 1, 0], 1));
    assert_eq!(in_order(&all, "oldest"), names(&[0, 1, 2, 3, 4], 1));
    // It was offered first.
    assert_eq!(in_order(&all, "deadline")[0], names(&[0], 1)[0]);
    assert!(orders.iter().all(|order| packet_files(&pair.got(order)).len() == 5));
}

#[test]
fn a_node_that_is_away_breaks_the_promises_that_need_it_and_no_other() {
    let promise = |name: &str, to: &str| {
        let keys =
            format!("into = \"{name}\"\nto = {to}\nsettle = \"{name}\"\ndeadline = \"1 s\"\n");
        subscription(name, &keys)
    };
    let near = "[[destination]]\nname = \"near\"\nto = \"folder:near\"\n";
    let tables = [
        near.to_owned(),
        promise("any", "[\"lance\", \"near\"]"),
        promise("first", "[\"near\", \"lance\"]"),
        promise("all", "[\"lance\", \"near\"]"),
    ];
    let pair = Pair::with(Caller::Centre, &tables.concat(), "");
    let _centre = pair.start_centre();
    publish(&pair, 0..1, 1);
    let late = || {
        let status = node::status("centre.toml", pair.folder())?;
        let alarms = status["centre"]["alarms"].as_array()?.iter();
        let mut said = alarms.filter_map(|alarm| alarm["sentence"].as_str());
        said.find(|sentence| sentence.contains("are late")).map(str::to_owned)
    };
    // The longest over is looked at first: what `all` breaks is told behind what the others keep.
    for (count, name) in [(1, "any"), (2, "first"), (3, "all")] {
        backfill(&pair, name);
        pair.settled(count, "accepted");
    }
    let told = until(late, || pair.logs());
    assert!(told.contains("products for lance are late: delivery 5 for all was due"), "{told}");
    let waiting = pair.settled(3, "waiting");
    let is_late = |one: &&Value| one["destination"] == "lance" && one["is_late"] == true;
    assert_eq!(waiting.iter().filter(is_late).count(), 3, "{waiting:?}");
    let _far = pair.start("customer");
    pair.settled(6, "accepted");
    until(|| late().is_none().then_some(()), || pair.logs());
    ["any", "first", "all"].iter().for_each(|name| {
        assert_eq!(packet_files(&pair.got(name)), names(&[0], 1));
    });
}
