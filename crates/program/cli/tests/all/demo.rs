//! The demonstration as a user runs it: three processes, real UDP over emulated lines, real files.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::process::{Running, run, text};
use crate::support::refusal::assert_refused;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

fn demo(arguments: &[&str], folder: &Path) -> Output {
    run(&[&["demo"], arguments].concat(), folder)
}

fn finished(arguments: &[&str]) -> (Output, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let output = demo(arguments, folder.path());
    let lines = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect();
    (output, lines)
}

/// The result of a demonstration that succeeded.
fn result(arguments: &[&str]) -> Value {
    let (output, mut lines) = finished(arguments);
    let result = lines.pop().unwrap_or_default();
    assert_eq!(output.status.code(), Some(0), "{}\n{result:#}", text(&output.stderr));
    assert_eq!((&result["event"], &result["ok"]), (&"result".into(), &true.into()), "{result:#}");
    assert!(!lines.is_empty() && lines.iter().all(|line| line["event"] == "progress"), "{lines:?}");
    for key in [
        "channels",
        "spool",
        "line",
        "latency_s",
        "elapsed_s",
        "contacts_done",
        "products",
        "backup",
    ] {
        assert!(!lines[0][key].is_null(), "progress lacks {key}: {}", lines[0]);
    }
    result
}

/// What every result holds, whatever was played.
fn assert_complete(result: &Value) {
    assert_eq!(result["differences"], Value::Array(Vec::new()));
    let missions: Vec<_> = result["contacts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (&c["mission"], &c["scid"]))
        .collect();
    let expected: [(Value, Value); 3] = [
        ("suomi-npp".into(), 157.into()),
        ("aqua".into(), 154.into()),
        ("metop-b".into(), 11.into()),
    ];
    assert_eq!(
        missions,
        expected.iter().map(|(mission, scid)| (mission, scid)).collect::<Vec<_>>()
    );
    for contact in result["contacts"].as_array().unwrap() {
        assert_eq!(contact["frames_captured"], contact["frames_delivered"]);
        assert_eq!(contact["missing"], 0);
    }
    let (backup, products) = (&result["backup"], result["products"].as_array().unwrap());
    assert_eq!(backup["identical"], backup["products"], "{backup}");
    assert!(backup["products"].as_u64().unwrap() as usize >= products.len(), "{backup}");
    let [killed, back] = ["killed_s", "back_s"].map(|key| backup[key].as_f64().unwrap());
    assert!(0.0 < killed && killed + 1.0 <= back, "{backup}");
    for product in products {
        assert_eq!(product["sha256"].as_str().unwrap().len(), 64);
        assert!(product["path"].as_str().unwrap().starts_with('/'));
        assert!(product["packets"].as_u64().unwrap() > 0 && product["gaps"].is_u64());
    }
    for stage in ["capture", "spool", "queue", "line", "repair", "store", "level0", "total"] {
        let times = &result["latency_s"][stage];
        let [p50, p99, max] = ["p50", "p99", "max"].map(|key| times[key].as_f64().expect(stage));
        assert!(p50 <= p99 && p99 <= max, "{stage}: {times}");
    }
    assert!(result["last_bit_to_product_s"].as_f64().unwrap() > 0.0);
    assert!(result["goodput_bps"].as_u64().unwrap() > 0);
    assert!(result["goodput_bps"].as_u64() <= result["limit_bps"].as_u64(), "{result:#}");
    let deliveries = &result["deliveries"];
    let destinations = deliveries["destinations"].as_object().unwrap();
    assert!(destinations.contains_key("second-node"), "{deliveries}");
    let all = &destinations["second-node"];
    assert!(all["accepted"].as_u64().unwrap() as usize >= products.len(), "{deliveries}");
    assert!(destinations.values().all(|states| states == all), "{deliveries}");
    assert!(deliveries["page"].as_str().unwrap().ends_with("/report.html"));
    for node in ["station", "centre"] {
        let peak = result["rss_bytes"][node].as_u64().unwrap();
        assert!(0 < peak && peak <= 256_000_000, "{node}: {peak}");
    }
}

#[test]
fn real_captures_arrive_as_products_over_a_long_lossy_line() {
    let result = result(&["--json", "--downlink-rate", "8mbit"]);
    assert_complete(&result);
    let contacts = result["contacts"].as_array().unwrap();
    assert!(contacts.iter().all(|contact| contact["frames_delivered"] == 1_023));
    let packets: u64 = result["products"]
        .as_array()
        .unwrap()
        .iter()
        .map(|product| product["packets"].as_u64().unwrap())
        .sum();
    let aside = contacts.iter().flat_map(|contact| contact["apids"].as_object().unwrap().values());
    let aside: u64 = aside.map(|apid| apid["set_aside"].as_u64().unwrap()).sum();
    // All packets of expected.json except its ten idle packets.
    assert_eq!(packets + aside, 273 + 1_182 + 89 - 10);
    // One way takes 80 ms, and a frame may wait 100 ms for the station's disk.
    let total = result["latency_s"]["total"]["min"].as_f64().unwrap();
    assert!(total >= 0.08, "{total}");
    assert!(result["line"]["lost"].as_u64().unwrap() > 0, "the line lost nothing");
    assert!(result["bytes_saved"].as_u64().unwrap() >= 3 * 1_023 * 128);
}

#[test]
fn every_frame_arrives_at_660_ms_and_10_percent_loss_both_ways() {
    let result = result(&[
        "--json",
        "--rtt",
        "660ms",
        "--loss",
        "10%",
        "--rate",
        "50mbit",
        "--without-servers",
    ]);
    assert_complete(&result);
    assert!(result["latency_s"]["total"]["min"].as_f64().unwrap() >= 0.33);
    let (packets, lost) = (&result["line"]["packets"], &result["line"]["lost"]);
    assert!(lost.as_u64().unwrap() * 20 > packets.as_u64().unwrap(), "less than 5 % was lost");
}

#[test]
fn a_longer_pass_made_from_real_packets_is_corrected_and_delivered() {
    let result = result(&["--json", "--long", "5s", "--without-servers"]);
    assert_complete(&result);
    for contact in result["contacts"].as_array().unwrap() {
        assert_eq!(contact["frames_delivered"], 9_155, "5 s at 15 Mbit/s");
        assert!(contact["corrected_symbols"].as_u64().unwrap() > 0);
    }
}

/// A demonstration that plays, with the process numbers of its nodes. Its first status has been
/// printed.
fn playing(folder: &Path) -> (Running, Vec<(String, u32)>) {
    let mut running = Running::start_logged(&["demo", "--json", "--without-servers"], folder);
    let first = running.line();
    assert!(first.contains("progress"), "{first}");
    let own = running.id();
    let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap();
    let named = |pid: &str| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        let file = line.split('\0').find(|argument| argument.ends_with(".toml"));
        let name = file.and_then(|file| Path::new(file).file_stem()?.to_str());
        (name.unwrap_or_default().to_owned(), pid.parse().unwrap())
    };
    (running, children.split_whitespace().map(named).collect())
}

fn assert_gone(nodes: &[(String, u32)]) {
    assert_eq!(nodes.len(), 4, "{nodes:?}");
    for (name, pid) in nodes {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the {name} still runs");
    }
}

#[test]
fn an_interrupt_and_a_lost_terminal_end_all_nodes_and_give_an_exit_code_of_their_own() {
    for signal in [Signal::INT, Signal::HUP] {
        let folder = tempfile::tempdir().unwrap();
        let (running, nodes) = playing(folder.path());
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code, Some(130));
        assert!(ended.log.contains("interrupted"), "{}", ended.log);
        assert_gone(&nodes);
    }
}

#[test]
fn a_demo_names_a_node_that_dies_and_shows_its_last_output() {
    let folder = tempfile::tempdir().unwrap();
    let (running, nodes) = playing(folder.path());
    let (_, station) = nodes.iter().find(|(name, _)| name == "station").expect("a station runs");
    let station = Pid::from_raw(i32::try_from(*station).unwrap()).unwrap();
    kill_process(station, Signal::KILL).unwrap();
    let ended = running.end();
    let error = ended.log;
    assert_eq!(ended.code, Some(3), "{error}");
    assert!(
        error.contains("the station ended by itself") && error.contains("station.log"),
        "{error}"
    );
    assert_gone(&nodes);
}

#[test]
fn impossible_lines_and_foreign_folders_are_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("thesis.txt"), "precious").unwrap();
    let cases: [(&[&str], &str); 5] = [
        (&["--rate", "0mbit"], "a line of 0 bit/s"),
        (&["--downlink-rate", "0mbit"], "a downlink of 0 bit/s"),
        (&["--loss", "60%"], "a line that loses 60 %"),
        (&["--long", "1ms"], "too few"),
        (&["--dir", "."], "the folder holds something else"),
    ];
    for (arguments, what) in cases {
        assert_refused(&demo(arguments, folder.path()), 2, &[what]);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was made");
}
