//! Orders by each means are written down, and a record that was changed is found.

use super::{Shown, is};
use crate::support::patience::until;
use crate::support::process::{printed, run, text};
use crate::support::refusal::assert_told;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

#[test]
fn orders_by_page_socket_and_signal_are_in_the_audit_log_and_a_change_of_it_is_named() {
    let mut shown = Shown::start();
    let folder = shown.folder().to_owned();
    let ack = shown.ack_path();
    let kim = shown.logged_in("kim");
    let answer = shown.post(&ack, &kim, "{\"note\":\"fibre cut\"}");
    assert!(is(&answer, 200) && answer.contains("acknowledged by kim"), "{answer}");
    let gone = shown.post("/api/v1/alarms/no-such/ack", &kim, "{}");
    assert!(is(&gone, 404), "{gone}");
    let delivery = shown.post("/api/v1/deliveries/7/again", &kim, "{}");
    assert!(is(&delivery, 409), "{delivery}");
    let refused = ["path", "remove", "x", "--config", "n.toml"];
    assert!(!run(&refused, &folder).status.success());
    shown.node.signal(Signal::HUP);
    let list = || {
        let lines = printed(&["audit", "list", "--config", "n.toml", "--json"], &folder);
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.collect::<Vec<Value>>()
    };
    let all = || Some(list()).filter(|lines| lines.len() == 8);
    let lines = until(all, || format!("{:#?}", list()));
    let orders: Vec<&Value> = lines.iter().filter(|line| line["entry"] == "order").collect();
    let by: Vec<&Value> = orders.iter().map(|line| &line["who"]["by"]).collect();
    assert_eq!(by, ["web", "web", "socket", "signal"]);
    assert_eq!(orders[0]["who"]["name"], "kim");
    assert_eq!(orders[0]["who"]["address"], "127.0.0.1");
    assert_eq!(orders[0]["subject"], "alarm peer-silent node s");
    assert_eq!(orders[0]["order"]["note"], "fibre cut");
    assert_eq!((&lines[1]["of"], &lines[1]["outcome"]), (&1.into(), &"done".into()));
    assert_eq!((&lines[5]["of"], &lines[5]["outcome"]), (&5.into(), &"refused".into()));
    assert!(lines[7]["said"].as_str().unwrap().starts_with("configuration reloaded"));
    let uid = format!("uid {}", rustix::process::geteuid().as_raw());
    assert!(orders[2]["who"]["name"].as_str().unwrap().contains(&uid), "{:#}", orders[2]);

    // An admin sees them at the page, an operator does not.
    assert!(is(&shown.get("/api/v1/audit", &kim), 403));
    let answer = shown.get("/api/v1/audit", &shown.logged_in("ada"));
    let rows: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!((&rows["rows"][3]["id"], &rows["rows"][3]["name"]), (&"1".into(), &"kim".into()));
    assert_eq!(rows["rows"][1]["outcome"], "refused", "{rows:#}");

    let events = printed(&["events", "--config", "n.toml", "--json"], &folder);
    assert!(events.contains("\"access.granted\"") && events.contains("\"order.done\""));
    let verify = || run(&["audit", "verify", "--config", "n.toml"], &folder);
    // Events are written a moment later.
    let heads = || Some(()).filter(|()| text(&verify().stdout).contains("8 lines, 8 of them"));
    until(heads, || text(&verify().stdout));
    let whole = text(&verify().stdout);
    assert!(whole.contains("\nhead 8:"), "{whole}");
    shown.node.kill();
    let file = folder.join("state/audit.jsonl");
    let good = fs::read_to_string(&file).unwrap();
    let all: Vec<&str> = good.lines().collect();
    let head = whole.lines().find_map(|line| line.strip_prefix("head ")).unwrap();
    for (changed, said) in [
        (good.replacen("fibre cut", "fibre out", 1), "line 1 was changed"),
        ([&all[..2], &all[3..]].concat().join("\n") + "\n", "line 3 is missing"),
        (all[..6].join("\n") + "\n", "lines 7 to 8 are cut off the end"),
        (String::new(), "lines 1 to 8 are cut off the end"),
    ] {
        fs::write(&file, changed).unwrap();
        let found = verify();
        assert_told(&found, 1, &["the audit log has a fault", "audit.jsonl"]);
        assert!(text(&found.stdout).contains(said), "{}", text(&found.stdout));
    }
    files_of_one_chain(&folder, &all);
    // A chain and an event log that were both removed differ from what somebody else kept.
    fs::remove_file(&file).unwrap();
    fs::remove_dir_all(folder.join("state/events")).unwrap();
    assert!(verify().status.success());
    let kept = run(&["audit", "verify", "--config", "n.toml", "--head", head], &folder);
    assert_told(&kept, 1, &["the audit log has a fault"]);
}

/// The lines of the log in three files, of which the oldest may be archived.
fn files_of_one_chain(folder: &std::path::Path, all: &[&str]) {
    let state = folder.join("state");
    let write = |name: &str, lines: &[&str]| {
        fs::write(state.join(name), lines.join("\n") + "\n").unwrap();
    };
    let verify = || run(&["audit", "verify", "--config", "n.toml"], folder);
    let said = || text(&verify().stdout);
    let (oldest, middle) = ("audit-000000000001.jsonl", "audit-000000000003.jsonl");
    write(oldest, &all[..2]);
    write(middle, &all[2..4]);
    write("audit.jsonl", &all[4..]);
    assert!(said().contains("8 lines, 8 of them"), "{}", said());
    let list = printed(&["audit", "list", "--config", "n.toml", "--json"], folder);
    assert_eq!(list.lines().collect::<Vec<_>>(), all);
    fs::remove_file(state.join(oldest)).unwrap();
    assert!(verify().status.success(), "{}", said());
    assert!(said().contains("lines 1 to 2 are in files that were archived"), "{}", said());
    assert!(said().contains("6 lines, 6 of them"), "{}", said());
    write(oldest, &all[..2]);
    fs::remove_file(state.join(middle)).unwrap();
    assert_told(&verify(), 1, &["the audit log has a fault"]);
    assert!(said().contains("lines 3 to 4 are missing"), "{}", said());
    write("audit-000000000005.jsonl", &all[4..6]);
    write("audit.jsonl", &all[6..]);
    let named = "the file audit-000000000003.jsonl is missing: lines 3 to 4";
    assert!(said().contains(named), "{}", said());
    [oldest, "audit-000000000005.jsonl"]
        .iter()
        .for_each(|file| fs::remove_file(state.join(file)).unwrap());
}
