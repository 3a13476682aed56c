//! `skyhaul report`: its figures are those of the frames' own stamps in the centre's store, and the
//! elements of each product add up to its total.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::page::Page;
use crate::support::process::{printed, run};
use crate::support::refusal::assert_refused;
use crate::support::schema;
use crate::support::site::Site;
use serde_json::Value;
use skyhaul_node::custody::{PREFACE, Stamps};
use skyhaul_records::payload::{BlockHead, split_taken};
use skyhaul_records::{Record, RecordReader};
use skyhaul_store::{ContactConfig, ContactStore, LogEntry, RealDisk};
use skyhaul_units::Utc;
use std::collections::BTreeMap;
use std::sync::Arc;

const ALL: [&str; 4] = ["--from", "2000-01-01", "--to", "2100-01-01"];
const TABLES: &str = "[[expedited]]\nslice = \"1 s\"\n[[destination]]\nname = \"archive\"\nto = \
     \"folder:out\"\n[[subscription]]\nof = \"products\"\nname = \"all\"\nrecord = \
     \"sips\"\nanswer = { within = \"7 d\" }\n[[budget]]\nwithin = \"40000 d\"\n";

/// A site that has delivered the products of a contact, and how many.
fn delivered() -> (Site, u64) {
    let site = Site::with(TABLES);
    let made = ["generate", "--mission", "noaa-21", "--frames", "1500", "--output", "a.dat"];
    printed(&made, site.folder());
    let file = site.folder().join("a.dat");
    site.write(&format!("[[channel]]\nname = \"x\"\ninput = \"file:{}\"\n", file.display()));
    assert_eq!(site.start().end().code, Some(0));
    let count = site.centre_until(|status| {
        let contacts = status["contacts"].as_array()?;
        let contact = contacts.iter().find(|contact| contact["state"] == "done")?;
        let products = contact["products"].as_array()?.len() as u64;
        let count = products + contact["expedited"].as_u64()?;
        let deliveries = status["deliveries"].as_array()?;
        let is_there = |delivery: &Value| delivery["state"] == "recorded";
        let all = deliveries.len() as u64 == count && deliveries.iter().all(is_there);
        all.then_some(count)
    });
    (site, count)
}

/// A report of all times.
fn report(site: &Site, arguments: &[&str]) -> Value {
    let arguments =
        [&["report", "--config", "centre.toml", "--json"], &ALL[..], arguments].concat();
    schema::found(&run(&arguments, site.folder()), "report.json")
}

/// Lines of comma-separated values by the names of their columns.
fn lines(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = text.split("\r\n").filter(|line| !line.is_empty());
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let cells = |line: &str| -> BTreeMap<String, String> {
        let cells = line.split(',').map(str::to_owned);
        names.iter().map(ToString::to_string).zip(cells).collect()
    };
    lines.map(cells).collect()
}

/// The stamps of one block in the store, and when its frames were received.
struct Stamped {
    received: Vec<Utc>,
    closed: Utc,
    taken: Utc,
    stamps: Stamps,
}

fn stamped(site: &Site) -> Vec<Stamped> {
    let disk = Arc::new(RealDisk::open(&site.folder().join("state")).unwrap());
    let config = ContactConfig { preface: PREFACE, ..ContactConfig::default() };
    let store = ContactStore::open(disk, config).unwrap();
    let mut found = Vec::new();
    for (station, flow, _) in store.kept().iter() {
        let mut reader = store.kept().reader(station, flow).unwrap();
        while let Some(entry) = reader.read().unwrap() {
            let LogEntry::Block(block) = entry else { continue };
            let (stamps, wire) = Stamps::split(&block.payload).unwrap();
            let (taken, payload) = split_taken(wire).unwrap();
            let (head, content) = BlockHead::decode(payload).unwrap();
            let (records, mut reader) = (content.records().unwrap(), RecordReader::new());
            let (mut rest, mut received) = (&records[..], Vec::new());
            while let Some(record) = reader.read(&mut rest).unwrap() {
                if let Record::Frame(frame) = record {
                    received.push(frame.received);
                }
            }
            found.push(Stamped { received, closed: head.closed, taken, stamps });
        }
    }
    found
}

#[test]
fn figures_are_those_of_the_frames_own_stamps_and_elements_add_up_to_totals() {
    let (mut site, count) = delivered();
    let told = report(&site, &["--csv", "all.csv"]);
    let whole = &told["whole"];
    assert_eq!((&whole["handed"], &whole["on_time"]), (&count.into(), &count.into()));
    assert_eq!((&whole["share_on_time"], &whole["late"]), (&1.0.into(), &0.into()));
    let rows = lines(&std::fs::read_to_string(site.folder().join("all.csv")).unwrap());
    assert_eq!(rows.len() as u64, count);
    site.kill_centre();
    let blocks = stamped(&site);
    assert!(blocks.len() > 1, "one block shows little");
    let mut totals = Vec::new();
    for row in &rows {
        let seconds = |name: &str| row[name].parse::<f64>().unwrap();
        let micros = |name: &str| (seconds(name) * 1e6).round() as i64;
        let last_bit = Utc::from_rfc3339(&row["last_bit"]).unwrap().as_micros();
        let is_in = |block: &&Stamped| block.received.iter().any(|at| at.as_micros() == last_bit);
        let block = blocks.iter().find(is_in).unwrap_or_else(|| panic!("no frame of {row:?}"));
        let Stamps { sent, last_original, delivered, .. } = block.stamps;
        let times = [block.closed, block.taken, sent, last_original, delivered];
        let mut before = last_bit;
        for (name, time) in
            ["capture_s", "spool_s", "queue_s", "line_s", "repair_s"].iter().zip(times)
        {
            assert_eq!(micros(name), time.as_micros() - before, "{name} of {row:?}");
            before = time.as_micros();
        }
        let elements = row.iter().filter(|(name, value)| {
            let is_beside = ["total_s", "acceptance_s", "budget_s"].contains(&name.as_str());
            name.ends_with("_s") && !is_beside && !value.is_empty()
        });
        let sum: f64 = elements.map(|(_, value)| value.parse::<f64>().unwrap()).sum();
        assert!((sum - seconds("total_s")).abs() < 0.001, "{row:?}");
        let [from, to] = ["observed", "handed"].map(|name| Utc::from_rfc3339(&row[name]).unwrap());
        let total = (to.as_micros() - from.as_micros()) as f64 / 1e6;
        assert!((total - seconds("total_s")).abs() < 0.001, "{row:?}");
        totals.push(micros("total_s"));
    }
    totals.sort_unstable();
    let p50 = totals[totals.len().div_ceil(2) - 1] as f64 / 1e6;
    assert!((whole["p50_s"].as_f64().unwrap() - p50).abs() < 1e-6, "{whole}");
    let worst = whole["worst"]["took_s"].as_f64().unwrap();
    assert!((worst - *totals.last().unwrap() as f64 / 1e6).abs() < 1e-6, "{whole}");
    let frames: usize = blocks.iter().map(|block| block.received.len()).sum();
    assert_eq!(told["frames"][0]["frames"], frames);
    let means = told["missions"][0]["elements"].as_array().unwrap().iter();
    let sum: f64 = means.map(|element| element["mean_s"].as_f64().unwrap()).sum();
    let mean = totals.iter().sum::<i64>() as f64 / totals.len() as f64 / 1e6;
    assert!((sum - mean).abs() < 0.001, "{sum} {mean}");
}

#[test]
fn what_is_late_is_named_with_its_contact_consumer_and_cause_in_words_and_on_the_page() {
    let (mut site, count) = delivered();
    // The report needs no node, and judges by the file as it is.
    site.kill_centre();
    let file = site.folder().join("centre.toml");
    let text = std::fs::read_to_string(&file).unwrap().replace("40000 d", "1 s");
    std::fs::write(&file, text).unwrap();
    let arguments = ["report", "--config", "centre.toml", "--html", "week.html"];
    let said = printed(&[&arguments[..], &ALL].concat(), site.folder());
    let head = format!("2000-01-01 to 2100-01-01: {count} products handed over, 0.00 % of them in");
    assert!(said.starts_with(&head), "{said}");
    for word in ["noaa-21", "to archive", "cause: downlink", "usually", "of s: "] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let page = Page::read(&site.folder().join("week.html"));
    assert!(page.text("verdict").starts_with(&format!("{count} products handed over")));
    assert_eq!(page.rows("missions")[1][1], count.to_string());
    assert!(page.rows("cells").len() > 2 && page.rows("frames").len() == 8);
    // A week in which nothing was.
    let arguments = ["report", "--config", "centre.toml", "--week", "2001-W01"];
    let said = printed(&arguments, site.folder());
    assert_eq!(said, "2001-W01 (2001-01-01 to 2001-01-08): 0 products handed over\n");
}

#[test]
fn a_report_that_cannot_be_made_is_refused_with_what_to_do() {
    let site = Site::new();
    let refused = |arguments: &[&str], exit: i32, parts: &[&str]| {
        let all = [&["report", "--config", "centre.toml"], arguments].concat();
        assert_refused(&run(&all, site.folder()), exit, parts);
    };
    refused(&["--week", "2026-W54"], 2, &["`2026-W54` is not a week", "2026-W47"]);
    refused(&["--from", "x", "--to", "2026-11-01"], 2, &["`x` is not a time"]);
    refused(&["--from", "2026-11-02", "--to", "2026-11-01"], 2, &["ends before it begins"]);
    refused(&["--csv", "no/such.csv"], 3, &["the report cannot be written", "no/such.csv"]);
    site.write("[[channel]]\nname = \"x\"\ninput = \"stdin\"\n");
    let station = run(&["report", "--config", "station.toml"], site.folder());
    assert_refused(&station, 2, &["this node makes no products", "station.toml"]);
    let file = site.folder().join("centre.toml");
    let text = std::fs::read_to_string(&file).unwrap().replace("\"state\"", "\"other\"");
    std::fs::write(file, text).unwrap();
    refused(&[], 3, &["there is no catalogue", "other/catalogue.db"]);
}
