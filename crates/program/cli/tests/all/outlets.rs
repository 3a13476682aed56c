//! Products at several destinations: one that hangs delays no other; and destinations and
//! subscriptions that come, change and go while the node runs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use crate::support::node;
use crate::support::patience::until;
use crate::support::process::{printed, run};
use crate::support::refusal::assert_refused;
use crate::support::site::Site;
use rustix::process::Signal;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use skyhaul_catalogue::{Item, ItemFile, ItemForm, ItemState};
use skyhaul_catalogue_io::Catalogue;
use skyhaul_units::Utc;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Puts products into the catalogue of a site, as if it had published them: two files each.
pub fn publish(site: &Site, numbers: core::ops::Range<u32>, version: u32) {
    publish_in(site.folder(), numbers, version, |number| 3_000 + number as usize % 70_000);
}

/// The same into the catalogue `state/catalogue.db` of a folder, with packet files of this length.
pub fn publish_in(
    folder: &Path,
    numbers: core::ops::Range<u32>,
    version: u32,
    length: impl Fn(u32) -> usize,
) {
    let catalogue = catalogue_of(folder);
    for number in numbers {
        let write = |suffix: &str, size: usize| {
            let content: Vec<u8> =
                (0..size).map(|at| (at as u32 ^ number ^ (version << 4)) as u8).collect();
            let name = format!("P{number:07}V{version}.{suffix}");
            fs::write(folder.join("products").join(&name), &content).unwrap();
            item_file(&name, size as u64, Sha256::digest(&content).into())
        };
        let record = ItemFile { is_metadata: true, ..write("CR", 200) };
        publish_files(&catalogue, number, version, vec![write("PDS", length(number)), record]);
    }
}

/// The catalogue of the node whose folder this is.
pub fn catalogue_of(folder: &Path) -> Catalogue {
    Catalogue::open(&folder.join("state/catalogue.db")).unwrap()
}

/// A file of data.
pub fn item_file(name: &str, size: u64, sha256: [u8; 32]) -> ItemFile {
    ItemFile { name: name.to_owned(), size, sha256, md5: None, cksum: None, is_metadata: false }
}

/// Puts a product of files that are there into the catalogue.
pub fn publish_files(catalogue: &Catalogue, number: u32, version: u32, files: Vec<ItemFile>) {
    let item = Item {
        name: format!("product-{number}"),
        version,
        form: ItemForm::Session,
        mission: if number.is_multiple_of(2) { "aqua" } else { "terra" }.to_owned(),
        product: "modis".to_owned(),
        stations: vec!["s".to_owned()],
        apids: vec![64],
        start: None,
        end: None,
        published: Utc::from_micros(1_790_000_000_000_000 + i64::from(number)),
        packets: 1,
        missing: 0,
        state: ItemState::Present,
        files,
    };
    catalogue.publish(item, Vec::new(), Utc::from_micros(1_790_000_000_000_000)).unwrap();
}

pub fn destination(name: &str, keys: &str) -> String {
    format!("[[destination]]\nname = \"{name}\"\nto = \"folder:out/{name}\"\n{keys}")
}

pub fn subscription(name: &str, keys: &str) -> String {
    format!(
        "[[subscription]]\nof = \"products\"\nname = \"{name}\"\n{keys}[subscription.retry]\nfirst \
         = \"1 s\"\nmost = \"2 s\"\n"
    )
}

/// Has a subscription deliver all that was published before.
pub fn backfill(site: &Site, name: &str) -> Value {
    let from = "1970-01-01T00:00:00Z";
    let order =
        ["subscription", "backfill", name, "--from", from, "--config", "centre.toml", "--json"];
    serde_json::from_str(&printed(&order, site.folder())).unwrap()
}

/// The deliveries of the centre that `filter` takes: an object of what they must have.
pub fn deliveries(site: &Site, filter: &Value) -> Vec<Value> {
    node::deliveries("centre.toml", site.folder(), filter).expect("the centre answers")
}

/// The files of a folder by name, without those that are not visible.
pub fn files(folder: &Path) -> BTreeMap<String, PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeMap::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_file());
    let named = |path: PathBuf| (path.file_name().unwrap().to_str().unwrap().to_owned(), path);
    paths.map(named).filter(|(name, _)| !name.starts_with('.')).collect()
}

fn deliveries_in(site: &Site, destination: &str, state: &str) -> Vec<Value> {
    deliveries(site, &json!({ "destination": destination, "state": state }))
}

/// A server that takes connections and never says a word.
fn silent() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// A store that answers 503 to everything, until the test ends.
#[allow(clippy::disallowed_methods, reason = "a test's own server needs a thread")]
fn overloaded() -> u16 {
    let (listener, port) = silent();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4_096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(
                b"HTTP/1.1 503 Slow Down\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            );
        }
    });
    port
}

#[test]
fn destinations_that_hang_or_refuse_delay_no_other() {
    let (_listener, hung) = silent();
    let busy = overloaded();
    let keys = tempfile::tempdir().unwrap();
    let credentials = keys.path().join("credentials");
    fs::write(&credentials, "[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
        .unwrap();
    fs::write(keys.path().join("password"), "secret\n").unwrap();
    use std::os::unix::fs::PermissionsExt;
    for name in ["credentials", "password"] {
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(keys.path().join(name), mode).unwrap();
    }
    let tables = [
        destination("near", ""),
        destination("stuck", ""),
        format!(
            "[[destination]]\nname = \"hung\"\nto = \"sftp://a@127.0.0.1:{hung}/in\"\npassword = \
             \"{}\"\nhost_keys = [\"SHA256:{}\"]\n",
            keys.path().join("password").display(),
            "a".repeat(43)
        ),
        format!(
            "[[destination]]\nname = \"busy\"\nto = \"s3://bucket/in\"\nendpoint = \
             \"http://127.0.0.1:{busy}\"\nprofile_file = \"{}\"\n",
            credentials.display()
        ),
        subscription("all", "deadline = \"1 s\"\n"),
    ];
    let site = Site::with(&tables.concat());
    // Who opens the first file at one of them waits for ever.
    let stuck = site.folder().join("out/stuck");
    fs::create_dir_all(&stuck).unwrap();
    let made = Command::new("mkfifo").arg(stuck.join("P0000000V1.PDS")).status();
    assert!(made.unwrap().success());
    publish(&site, 0..20, 1);
    backfill(&site, "all");
    until(
        || (deliveries_in(&site, "near", "accepted").len() == 20).then_some(()),
        || format!("{:?}", deliveries(&site, &json!({ "destination": "near" }))),
    );
    for name in ["hung", "busy"] {
        assert_eq!(deliveries_in(&site, name, "accepted").len(), 0, "{name}");
    }
    assert!(deliveries_in(&site, "stuck", "accepted").len() < 20);
    // They are over their deadline: an alarm, and shown; nothing is dropped.
    let alarm = |part: &str| {
        site.centre_until(|status| {
            let alarms = status["alarms"].as_array()?;
            let alarms = alarms.iter().filter_map(|alarm| alarm["sentence"].as_str());
            alarms.into_iter().find(|alarm| alarm.contains(part)).map(str::to_owned)
        })
    };
    alarm("products for hung are late: delivery");
    alarm("products for busy are late: delivery");
    alarm("products for busy cannot be delivered, retrying");
    let late = deliveries(&site, &json!({ "destination": "busy" }));
    assert_eq!(late.len(), 20);
    assert!(late.iter().all(|one| one["is_late"] == true), "{late:?}");
}

#[test]
fn destinations_and_subscriptions_come_change_and_go_while_the_node_runs() {
    let site = Site::with(&[destination("a", ""), subscription("all", "")].concat());
    let file = site.folder().join("centre.toml");
    let base = fs::read_to_string(&file).unwrap();
    let own = base.find("[[destination]]").unwrap();
    let reload = |tables: &[String]| {
        fs::write(&file, base[..own].to_owned() + &tables.concat()).unwrap();
        site.centre.signal(Signal::HUP);
    };
    publish(&site, 0..4, 1);
    let out = |name: &str| site.folder().join("out").join(name);
    // A subscription that comes later gets what was published before, as far as it takes it.
    let only = "since = \"1970-01-01T00:00:00Z\"\nfilter = \"mission = 'aqua'\"\nto = \"b\"\n";
    let a = [destination("a", ""), subscription("all", "to = \"a\"\n")].concat();
    reload(&[a.clone(), destination("b", ""), subscription("aqua", only)]);
    until(|| (files(&out("b")).len() == 4).then_some(()), || format!("{:?}", files(&out("b"))));
    assert!(files(&out("a")).is_empty(), "it has no `since`");
    let test = ["subscription", "test", "all", "--config", "centre.toml"];
    let said = printed(&test, site.folder());
    assert!(said.starts_with("all takes 4 products, "), "{said}");
    assert!(said.contains("a: 0 are there, 0 have a delivery, 4 have no delivery"), "{said}");
    let dry = ["subscription", "backfill", "all", "--from", "2026-09-01T00:00:00Z", "--dry-run"];
    let dry = [&dry[..], &["--config", "centre.toml"]].concat();
    assert!(printed(&dry, site.folder()).contains("4 would begin"));
    assert!(deliveries(&site, &json!({ "subscription": "all" })).is_empty(), "it was dry");
    // A destination moves, and a subscription gets another folder.
    let moved = "since = \"1970-01-01T00:00:00Z\"\nto = \"a\"\ninto = \"deep/er\"\n";
    reload(&[destination("a", "").replace("out/a", "out/moved"), subscription("late", moved)]);
    let deep = out("moved").join("deep/er");
    until(|| (files(&deep).len() == 8).then_some(()), || format!("{:?}", files(&deep)));
    let list = ["destination", "list", "--config", "centre.toml", "--json"];
    let listed: Value = serde_json::from_str(&printed(&list, site.folder())).unwrap();
    assert_eq!(listed[0]["subscriptions"], serde_json::json!(["late"]));
    assert_eq!(listed[0]["deliveries"]["accepted"], 4);
    assert_eq!(listed.as_array().unwrap().len(), 1, "`b` is gone");
    // What a trial finds is kept, and shown.
    let tried = printed(&["destination", "test", "a", "--config", "centre.toml"], site.folder());
    assert!(tried.contains("replaces by renaming yes") && tried.contains("  free "), "{tried}");
    let list = ["destination", "list", "--config", "centre.toml"];
    let shown = printed(&list, site.folder());
    assert!(shown.contains("  tried                20") && shown.contains("4 accepted"), "{shown}");
    let unknown = ["subscription", "test", "mars", "--config", "centre.toml"];
    let wanted = "the node has no subscription `mars` to products";
    assert_refused(&run(&unknown, site.folder()), 2, &[wanted]);
}

/// Regression: a thread looked at what was new when all that waited was delivered, and sent a
/// delivery that was ordered anew meanwhile again and again, until then without end.
#[test]
fn a_backlog_holds_up_neither_a_newer_product_nor_an_order() {
    // More than the patience of the test: a second for each product.
    let tables = [destination("a", "rate = \"24 kbit/s\"\n"), subscription("all", "to = \"a\"\n")];
    let site = Site::with(&tables.concat());
    publish(&site, 0..200, 1);
    backfill(&site, "all");
    let state = || format!("{:?}", deliveries_in(&site, "a", "sending"));
    let sending = || deliveries_in(&site, "a", "sending").first()?["id"].as_u64();
    until(sending, state);
    publish(&site, 900..901, 1);
    backfill(&site, "all");
    let newer = deliveries(&site, &json!({ "item": "product-900" }))[0]["id"].as_u64().unwrap();
    let is_there = |id: u64| {
        deliveries_in(&site, "a", "accepted").iter().any(|one| one["id"] == id).then_some(())
    };
    until(|| is_there(newer), state);
    assert!(!deliveries_in(&site, "a", "waiting").is_empty(), "it went before the backlog");
    let again = until(sending, state);
    let order = ["deliveries", "again", &again.to_string(), "--config", "centre.toml"];
    printed(&order, site.folder());
    until(|| is_there(again), state);
}

/// Regression: the record of a product that was sent again had the name of the former one, which
/// consumers pass over.
#[test]
fn a_product_that_is_ordered_anew_has_a_record_of_another_name() {
    let answer = "record = \"sips\"\n[subscription.answer]\nwithin = \"1 d\"\n";
    let site = Site::with(&[destination("a", ""), subscription("all", answer)].concat());
    let out = site.folder().join("out/a");
    publish(&site, 0..1, 1);
    backfill(&site, "all");
    let of = |suffix: &str| -> Vec<String> {
        files(&out).into_keys().filter(|name| name.ends_with(suffix)).collect()
    };
    let state = || format!("{:?} {:?}", deliveries(&site, &json!({})), files(&out));
    let recorded = |sequence: u64| {
        let all = deliveries_in(&site, "a", "recorded");
        all.first().filter(|one| one["sequence"] == sequence).map(|one| one["id"].to_string())
    };
    let id = until(|| recorded(1), state);
    let first = of(".PDR");
    assert_eq!(first.len(), 1);
    printed(&["deliveries", "again", &id, "--config", "centre.toml"], site.folder());
    until(|| recorded(2), state);
    let stem = first[0].strip_suffix(".PDR").unwrap();
    let second = format!("{stem}.2.PDR");
    assert_eq!(of(".PDR"), [second.clone(), first[0].clone()]);
    assert!(out.join(format!("{second}.XFR")).exists());
    // A consumer's answer to the second is found by its name.
    let said = "MESSAGE_TYPE = SHORTPAN;\nDISPOSITION = \"SUCCESSFUL\";\n\
                TIME_STAMP = 2026-01-01T00:00:00Z;\n";
    fs::create_dir_all(out.join("notices")).unwrap();
    fs::write(out.join(format!("notices/{stem}.2.PAN")), said).unwrap();
    until(|| (deliveries_in(&site, "a", "accepted").len() == 1).then_some(()), state);
}

#[test]
fn of_versions_that_wait_only_the_latest_goes_where_that_is_wanted() {
    let tables = [
        destination("a", ""),
        subscription("latest", "into = \"latest\"\n"),
        subscription("all", "into = \"all\"\nversions = \"all\"\norder = \"oldest\"\n"),
        subscription("first", "into = \"first\"\nversions = \"first\"\n"),
    ];
    let site = Site::with(&tables.concat());
    let out = site.folder().join("out/a");
    let away = site.folder().join("out/away");
    fs::rename(&out, &away).unwrap();
    for version in 1..=2 {
        publish(&site, 0..2, version);
        ["latest", "all", "first"].into_iter().for_each(|name| drop(backfill(&site, name)));
    }
    fs::rename(&away, &out).unwrap();
    let names = |folder: &str| files(&out.join(folder)).into_keys().collect::<Vec<_>>();
    let versions = |versions: &[u32]| {
        let mut names: Vec<String> = versions
            .iter()
            .flat_map(|version| (0..2).map(move |number| (number, version)))
            .flat_map(|(number, version)| {
                ["PDS", "CR"].map(|suffix| format!("P{number:07}V{version}.{suffix}"))
            })
            .collect();
        names.sort();
        names
    };
    let wanted = || {
        names("all") == versions(&[1, 2])
            && names("latest") == versions(&[2])
            && names("first") == versions(&[1])
    };
    until(|| wanted().then_some(()), || format!("{:?}", deliveries(&site, &json!({}))));
    let replaced = deliveries(&site, &json!({ "state": "replaced" }));
    assert_eq!(replaced.len(), 2);
    assert!(replaced.iter().all(|one| one["subscription"] == "latest" && one["version"] == 1));
}
