//! What a centre publishes and delivers: expedited data sets while a contact goes on, deliveries
//! and their notices, folders that vanish and come back.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use crate::support;
use crate::support::patience::until;
use crate::support::recordings::{CLEAN, DAMAGED, recording, sha256};
use crate::support::refusal::assert_refused;
use crate::support::site::Site;
use serde_json::Value;
use skyhaul_ccsds::packet::Packets;
use skyhaul_level0::construction::{ConstructionRecord, ProductKind};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

fn channel(name: &str, file: &Path, keys: &str) -> String {
    format!("[[channel]]\nname = \"{name}\"\ninput = \"file:{}\"\n{keys}", file.display())
}

/// The finished files of a folder, by name.
fn names(folder: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeSet::new() };
    let files = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let names = files.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    names.filter(|name| !name.starts_with('.')).collect()
}

/// The construction records of expedited data sets.
fn slices(folder: &Path) -> Vec<PathBuf> {
    let is_record = |name: &String| name.starts_with('E') && name.ends_with("00.EDS");
    names(folder).into_iter().filter(is_record).map(|name| folder.join(name)).collect()
}

/// The packets of a file, in any order.
fn packets(bytes: &[u8]) -> Vec<&[u8]> {
    let mut packets: Vec<_> = Packets::new(bytes).map(|(_, packet)| packet).collect();
    packets.sort_unstable();
    packets
}

fn alarms(status: &Value) -> Vec<String> {
    let alarms = status["alarms"].as_array().into_iter().flatten();
    alarms.map(|alarm| alarm["sentence"].as_str().unwrap().to_owned()).collect()
}

/// Waits until this many contacts are done and no alarm is left, and returns the contacts.
#[track_caller]
fn done(site: &Site, count: usize) -> Vec<Value> {
    site.centre_until(|status| {
        let contacts = status["contacts"].as_array()?;
        let done = contacts.iter().filter(|contact| contact["state"] == "done").count();
        (done == count && alarms(status).is_empty()).then(|| contacts.clone())
    })
}

#[test]
fn slices_of_a_contact_arrive_while_it_goes_on_and_hold_all_that_it_brings() {
    let site = Site::with(
        "[[expedited]]\nproduct = \"viirs-science\"\nslice = \"1 s\"\nquick_look = true\n",
    );
    let products = site.folder().join("products");
    // The test holds the end back until there is a slice, however long that takes. The end is
    // short: packets wait until enough of them give the time of the contact.
    site.write("[[channel]]\nname = \"imager\"\ninput = \"stdin\"\nsilence = \"600 s\"\n");
    let (input, mut downlink) = std::io::pipe().unwrap();
    let station = site.start_from(input);
    let bytes = fs::read(recording(CLEAN[0])).unwrap();
    let (first, last) = bytes.split_at(bytes.len() / 16 * 15);
    let mut frames = 0;
    for piece in first.chunks(first.len().div_ceil(4)) {
        downlink.write_all(piece).unwrap();
        let more =
            |status: &Value| status["channels"][0]["frames"].as_u64().filter(|now| *now > frames);
        frames = site.until(more);
        // Slices are of reception time: what comes now is in the next slice.
        std::thread::park_timeout(Duration::from_millis(1_100));
    }
    until(|| slices(&products).first().cloned(), || "no slice".to_owned());
    // A product of the contact is there only when it has ended.
    let whole = |name: &String| name.starts_with('P');
    assert!(!names(&products).iter().any(whole), "the contact still goes on");
    downlink.write_all(last).unwrap();
    drop(downlink);
    assert_eq!(station.end().code, Some(0));
    let contacts = done(&site, 1);
    let slices = slices(&products);
    assert!(slices.len() >= 3, "four pieces, a second and more apart: {slices:?}");
    assert_eq!(contacts[0]["expedited"], slices.len());
    let mut sliced = Vec::new();
    for path in &slices {
        let record = ConstructionRecord::parse(&fs::read(path).unwrap()).unwrap();
        assert_eq!(record.kind, ProductKind::QuickLookEds);
        sliced.extend(fs::read(path.display().to_string().replace("00.EDS", "01.EDS")).unwrap());
    }
    let path = contacts[0]["products"][0]["path"].as_str().unwrap();
    assert!(path.contains("VIIRS"), "{path}");
    let whole = fs::read(site.folder().join(path)).unwrap();
    assert!(packets(&sliced) == packets(&whole), "{} and {} bytes", sliced.len(), whole.len());
}

#[test]
fn cut_packets_are_padded_if_the_product_says_so_in_slices_and_windows_too() {
    let site = Site::with(
        "time = true\nwait = \"0 s\"\n[[product]]\nname = \"viirs-science\"\nfill = \
        \"pad\"\n[[expedited]]\nslice = \"1 h\"\n",
    );
    site.write(&channel("damaged", &recording(DAMAGED), ""));
    assert_eq!(site.start().end().code, Some(0));
    site.centre_until(|status| {
        status["assembled"].as_array()?.iter().any(|one| one["state"] == "made").then_some(())
    });
    let products = site.folder().join("products");
    let mut filled = Vec::new();
    for name in names(&products).into_iter().filter(|name| name.ends_with(".json")) {
        let account: Value =
            serde_json::from_slice(&fs::read(products.join(&name)).unwrap()).unwrap();
        let (product, accounting) = (&account["product"], &account["accounting"]);
        assert_eq!(accounting["balanced"], true, "{name}");
        if product["name"] != "viirs-science" {
            assert_eq!(accounting["filled_packets"], 0, "{name}");
            continue;
        }
        let bytes =
            fs::read(products.join(product["packet_file"]["name"].as_str().unwrap())).unwrap();
        let list = account["apids"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|apid| apid["fill_list"].as_array().unwrap());
        let mut octets = 0;
        for entry in list {
            let number = |key: &str| entry[key].as_u64().unwrap() as usize;
            let from = number("offset") + number("first_fill");
            assert!(
                bytes[from..from + number("octets")].iter().all(|octet| *octet == 0xC9),
                "{entry}"
            );
            octets += number("octets");
        }
        assert!(octets > 0);
        assert_eq!(accounting["fill_octets"], octets);
        filled.push((product["kind"].clone(), product["basis"].clone()));
    }
    // The products of the contact, of the window and of the slice.
    assert_eq!(filled.len(), 3, "{filled:?}");
}

/// Waits until each delivery is as `state` says, and returns the deliveries.
#[track_caller]
fn deliveries(site: &Site, count: usize, state: impl Fn(&Value) -> bool) -> Vec<Value> {
    site.centre_until(|status| {
        let deliveries = status["deliveries"].as_array()?;
        (deliveries.len() == count && deliveries.iter().all(&state)).then(|| deliveries.clone())
    })
}

fn text(of: &Value, what: &str) -> String {
    of[what].as_str().unwrap().to_owned()
}

/// Name of the record of a delivery.
fn record(delivery: &Value) -> String {
    format!("X{}.PDR", &text(delivery, "name")[1..])
}

/// Writes a notice as a consumer does: in one step.
fn answer(site: &Site, delivery: &Value, notice: &str) {
    let folder = site.folder().join("out/notices");
    fs::create_dir_all(&folder).unwrap();
    let name = record(delivery).replace(".PDR", ".PAN");
    fs::write(folder.join(".part"), notice).unwrap();
    fs::rename(folder.join(".part"), folder.join(name)).unwrap();
}

const ACCEPTED: &str =
    "MESSAGE_TYPE = SHORTPAN;\nDISPOSITION = \"SUCCESSFUL\";\nTIME_STAMP = 2026-01-01T00:00:00Z;\n";

/// As another program sees it.
fn md5(path: &Path) -> String {
    let output = Command::new("md5sum").arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned()
}

/// A site that delivers to `archive`, and has delivered two products or more of a first contact.
fn delivered() -> (Site, Vec<Value>) {
    delivered_to(
        "[[destination]]\nname = \"archive\"\nto = \"folder:out\"\n[[subscription]]\nof = \
         \"products\"\nname = \"all\"\nrecord = \"sips\"\n[subscription.answer]\nwithin = \"7 \
         d\"\n[subscription.retry]\nfirst = \"1 s\"\nmost = \"2 s\"\n",
    )
}

/// The same for any tables.
fn delivered_to(tables: &str) -> (Site, Vec<Value>) {
    let site = Site::with(tables);
    let file = site.folder().join("first.dat");
    let made = ["generate", "--mission", "noaa-21", "--frames", "1500", "--output", "first.dat"];
    support::process::printed(&made, site.folder());
    site.write(&channel("first", &file, ""));
    assert_eq!(site.start().end().code, Some(0));
    let count = done(&site, 1)[0]["products"].as_array().unwrap().len();
    assert!(count >= 2, "{count} products");
    let all = deliveries(&site, count, |delivery| delivery["state"] == "recorded");
    (site, all)
}

#[test]
fn only_what_a_consumer_refuses_is_delivered_again() {
    let (site, all) = delivered();
    let out = site.folder().join("out");
    for delivery in &all {
        let (name, stem) = (record(delivery), text(delivery, "name"));
        let said = fs::read_to_string(out.join(&name)).unwrap();
        assert!(out.join(format!("{name}.XFR")).exists(), "{name} has no signal file");
        for suffix in ["00.PDS", "01.PDS"] {
            let file = format!("{}{suffix}", &stem[..34]);
            let digest = md5(&out.join(&file));
            assert!(said.contains(&file) && said.contains(&digest), "{said}");
        }
    }
    // The consumer takes all files away, and finds one broken packet file.
    let taken = names(&out);
    taken.iter().for_each(|name| fs::remove_file(out.join(name)).unwrap());
    let refused = &all[0];
    let stem = text(refused, "name")[..34].to_owned();
    let notice = format!(
        "MESSAGE_TYPE = LONGPAN;\nNO_OF_FILES = 2;\nFILE_DIRECTORY = out;\nFILE_NAME = \
        {stem}01.PDS;\n\
         DISPOSITION = \"CHECKSUM ERROR\";\nTIME_STAMP = 2026-01-01T00:00:00Z;\nFILE_DIRECTORY = \
         out;\n\
         FILE_NAME = {stem}00.PDS;\nDISPOSITION = \"SUCCESSFUL\";\nTIME_STAMP = \
         2026-01-01T00:00:00Z;\n"
    );
    answer(&site, refused, &notice);
    all[1..].iter().for_each(|delivery| answer(&site, delivery, ACCEPTED));
    let is_refused = |delivery: &Value| delivery["name"] == refused["name"];
    deliveries(&site, all.len(), |delivery| match is_refused(delivery) {
        true => delivery["state"] == "recorded" && delivery["attempts"] == 2,
        false => delivery["state"] == "accepted" && delivery["attempts"] == 1,
    });
    let record = record(refused);
    let again = BTreeSet::from([format!("{stem}01.PDS"), record.clone(), format!("{record}.XFR")]);
    assert_eq!(names(&out), again, "only what was refused is there again");
    answer(&site, refused, ACCEPTED);
    deliveries(&site, all.len(), |delivery| delivery["state"] == "accepted");
}

#[test]
fn a_cloud_message_announces_each_product_and_the_answer_settles_it() {
    let (site, all) = delivered_to(
        "[[destination]]\nname = \"podaac\"\nto = \"folder:out\"\n[[subscription]]\nof = \
         \"products\"\nname = \"all\"\nrecord = \"cnm\"\nchecksum = \
         \"sha256\"\n[subscription.answer]\nwithin = \"7 d\"\n",
    );
    let out = fs::canonicalize(site.folder().join("out")).unwrap();
    assert!(!names(&out).iter().any(|name| name.ends_with(".XFR")), "signal files are of records");
    let mut identifiers = Vec::new();
    for delivery in &all {
        let name = format!("{}.cnm.json", text(delivery, "name"));
        let said = support::process::printed(&["pdr", "check", &name], &out);
        assert!(said.starts_with(&format!("{name}: SUCCESSFUL\n")), "{said}");
        let message: Value = serde_json::from_slice(&fs::read(out.join(&name)).unwrap()).unwrap();
        for file in message["product"]["files"].as_array().unwrap() {
            let path = out.join(text(file, "name"));
            assert_eq!(text(file, "uri"), format!("file://{}", path.display()));
            let bytes = fs::read(&path).unwrap();
            assert_eq!(file["size"], bytes.len());
            let taken = (text(file, "checksumType"), text(file, "checksum"));
            assert_eq!(taken, ("SHA256".to_owned(), sha256(&bytes)));
        }
        identifiers.push(text(&message, "identifier"));
    }
    let notices = out.join("notices");
    fs::create_dir_all(&notices).unwrap();
    for (number, identifier) in identifiers.iter().enumerate() {
        let response = match number {
            0 => "{\"status\": \"FAILURE\", \"errorCode\": \"VALIDATION_ERROR\"}",
            _ => "{\"status\": \"SUCCESS\"}",
        };
        let text = format!("{{\"identifier\": \"{identifier}\", \"response\": {response}}}");
        fs::write(notices.join(".part"), text).unwrap();
        fs::rename(notices.join(".part"), notices.join(format!("{number}.cnmr.json"))).unwrap();
    }
    deliveries(&site, all.len(), |delivery| match delivery["name"] == all[0]["name"] {
        true => delivery["state"] == "refused",
        false => delivery["state"] == "accepted",
    });
}

#[test]
fn deliveries_and_items_are_listed_searched_and_ordered_by_command() {
    let (site, all) = delivered();
    let out = site.folder().join("out");
    let ask = |arguments: &[&str]| {
        let with = [arguments, &["--config", "centre.toml"]].concat();
        support::process::printed(&with, site.folder())
    };
    let json = |arguments: &[&str]| -> Value { serde_json::from_str(&ask(arguments)).unwrap() };
    let listed = json(&["deliveries", "list", "--state", "recorded", "--json"]);
    assert_eq!(listed["deliveries"].as_array().unwrap().len(), all.len());
    assert_eq!(listed["deliveries"][0]["proof"], "written");
    let table = ask(&["deliveries", "list", "--destination", "archive", "--limit", "1"]);
    assert!(table.contains("more with --before"), "{table}");
    // The consumer loses a file, and the operator sends the product again.
    let number = all[0]["id"].clone();
    let id = number.to_string();
    let lost = out.join(format!("{}01.PDS", &text(&all[0], "name")[..34]));
    fs::remove_file(&lost).unwrap();
    let said = ask(&["deliveries", "again", &id]);
    assert_eq!(said, format!("delivery {id} to archive is waiting now\n"));
    let sequence = all.len() + 1;
    let is_again = |delivery: &Value| {
        delivery["id"] == number
            && delivery["sequence"] == sequence
            && delivery["state"] == "recorded"
    };
    site.centre_until(|status| {
        let list = status["deliveries"].as_array()?;
        list.iter().any(is_again).then_some(())
    });
    assert!(lost.exists(), "the file is there again");
    let shown = ask(&["deliveries", "show", &id]);
    for word in ["again", "sending", "placed", "recorded", "01.PDS"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    assert!(ask(&["deliveries", "cancel", &id]).contains("is cancelled now"));
    let refused = |arguments: &[&str], wanted: &str| {
        let with = [arguments, &["--config", "centre.toml"]].concat();
        assert_refused(&support::process::run(&with, site.folder()), 2, &[wanted]);
    };
    let is_cancelled = format!("delivery {id} to archive is cancelled");
    refused(&["deliveries", "hold", &id], &is_cancelled);
    refused(&["deliveries", "show", "999"], "there is no delivery 999");
    refused(
        &["catalogue", "search", "--filter", "mision = 'x'"],
        "at 1: there is no property `mision`",
    );
    // The catalogue has the products, and takes filters.
    let filter = "mission = 'noaa-21' AND kind = 'session' AND station = 's'";
    let found = json(&["catalogue", "search", "--filter", filter, "--json"]);
    assert_eq!(found["items"].as_array().unwrap().len(), all.len());
    let none = ask(&["catalogue", "search", "--filter", "missing > 100000"]);
    assert_eq!(none, "no items\n");
    let exported = ask(&["catalogue", "export"]);
    let items: Vec<Value> =
        exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(items.len(), all.len());
    for item in &items {
        for asset in item["assets"].as_object().unwrap().values() {
            let path = asset["href"].as_str().unwrap().strip_prefix("file://").unwrap();
            let checksum = format!("1220{}", sha256(&fs::read(path).unwrap()));
            assert_eq!(asset["file:checksum"], checksum, "{path}");
        }
    }
}

#[test]
fn a_consumers_folder_that_vanishes_gets_everything_when_it_is_back() {
    let (site, all) = delivered();
    let (out, away) = (site.folder().join("out"), site.folder().join("away"));
    fs::rename(&out, &away).unwrap();
    site.write(&channel("second", &recording(CLEAN[0]), ""));
    assert_eq!(site.start().end().code, Some(0));
    let said = site
        .centre_until(|status| alarms(status).into_iter().find(|alarm| alarm.contains("archive")));
    assert!(
        said.contains("products for archive cannot be delivered, retrying")
            && said.contains("missing"),
        "{said}"
    );
    fs::rename(&away, &out).unwrap();
    let count = all.len() + done(&site, 2)[1]["products"].as_array().unwrap().len();
    let all = deliveries(&site, count, |delivery| delivery["state"] == "recorded");
    for delivery in &all {
        assert!(out.join(format!("{}.XFR", record(delivery))).exists(), "{delivery}");
        assert_eq!(delivery["attempts"], 1);
    }
}

#[test]
fn a_folder_of_products_that_vanishes_costs_nothing_but_time() {
    let site = Site::with("");
    let (products, away) = (site.folder().join("products"), site.folder().join("away"));
    let whole: Value = {
        site.write(&channel("first", &recording(CLEAN[0]), ""));
        assert_eq!(site.start().end().code, Some(0));
        done(&site, 1)[0]["products"][0]["sha256"].clone()
    };
    // Before the contact begins, and while it goes on.
    for (count, name, keys) in [(2, "before", ""), (3, "during", "rate = \"4 Mbit/s\"\n")] {
        if name == "before" {
            fs::rename(&products, &away).unwrap();
        }
        site.write(&channel(name, &recording(CLEAN[0]), keys));
        let station = site.start();
        if name == "during" {
            let work =
                || fs::read_dir(&products).unwrap().any(|entry| entry.unwrap().path().is_dir());
            until(|| work().then_some(()), || "no contact is worked on".to_owned());
            fs::rename(&products, &away).unwrap();
        }
        assert_eq!(station.end().code, Some(0), "the centre takes what comes all the same");
        let said = site.centre_until(|status| alarms(status).into_iter().next());
        assert!(
            said.starts_with("products cannot be written, retrying: ") && said.contains("missing"),
            "{said}"
        );
        fs::rename(&away, &products).unwrap();
        let contacts = done(&site, count);
        let contact = contacts.iter().find(|contact| contact["channel"] == name).unwrap();
        let product = &contact["products"][0];
        assert_eq!(product["sha256"], whole);
        let path = site.folder().join(product["path"].as_str().unwrap());
        assert_eq!(sha256(&fs::read(path).unwrap()), whole.as_str().unwrap());
    }
}
