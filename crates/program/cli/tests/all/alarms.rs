//! Alarms, events and who is told of them, at real nodes: a killed station, a server that fails, a
//! command, a mail.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

mod receiver;
mod tls;

use crate::support::node;
use crate::support::patience::until;
use crate::support::process::{Running, printed, run, text};
use crate::support::site::{Site, channel};
use receiver::{Answer, Receiver};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const CENTRE: &str = "centre.toml";

/// Kills the centre, and starts it with these changes of its file, at the same address.
fn change_centre(site: &mut Site, peer: &str, tables: &str) {
    site.kill_centre();
    let path = site.folder().join(CENTRE);
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace("127.0.0.1:0", &site.address);
    let text = text.replace("[[peer]]\n", &format!("[[peer]]\n{peer}")) + tables;
    std::fs::write(path, text).unwrap();
    site.start_centre();
}

/// The alarms that the centre shows, as soon as `is_enough` says so of them.
#[track_caller]
fn alarms(site: &Site, is_enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let look = || {
        let alarms = node::asked(CENTRE, site.folder(), &json!({ "ask": "alarms" }))?;
        let alarms = alarms.as_array()?.clone();
        is_enough(&alarms).then_some(alarms)
    };
    until(look, || text(&run(&["alarms", "list", "--config", CENTRE], site.folder()).stdout))
}

/// The events of the centre behind number `since`.
fn events(site: &Site, since: &str) -> Vec<Value> {
    let arguments = ["events", "--config", CENTRE, "--json", "--since", since];
    let lines = printed(&arguments, site.folder());
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["kind"].as_str()).collect()
}

/// A centre that misses its station after 2 s, and that station, which has sent all it has.
fn with_station() -> (Site, Running) {
    let mut site = Site::new();
    change_centre(&mut site, "silent_after = \"2 s\"\n", "");
    site.write(&channel(""));
    let station = site.start_to_stay();
    site.centre_until(|status| (status["contacts"][0]["state"] == "done").then_some(()));
    (site, station)
}

#[test]
fn a_killed_station_is_one_alarm_that_somebody_takes_and_its_return_ends() {
    let (mut site, mut station) = with_station();
    station.kill();
    let standing = alarms(&site, |alarms| !alarms.is_empty());
    assert_eq!(standing.len(), 1, "{standing:#?}");
    let alarm = &standing[0];
    assert_eq!((&alarm["kind"], &alarm["subject"]), (&"peer-silent".into(), &"node s".into()));
    assert_eq!((&alarm["severity"], &alarm["acknowledged"]), (&"critical".into(), &Value::Null));
    let ack = ["alarms", "ack", "--config", CENTRE, "peer-silent", "node s", "--by", "kim"];
    let said = printed(&[&ack[..], &["--note", "fibre cut", "--json"]].concat(), site.folder());
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["acknowledged"]["note"], "fibre cut", "{said:#}");
    let shown = site.shown(CENTRE);
    assert!(shown.contains("ALARM    node s is silent: no session with it since "), "{shown}");
    assert!(shown.contains("(acknowledged by kim)"), "{shown}");
    let listed = printed(&["alarms", "list", "--config", CENTRE], site.folder());
    assert!(listed.contains("critical peer-silent 'node s' since 20"), "{listed}");
    assert!(listed.contains("  acknowledged by kim at 20"), "{listed}");
    let refused = run(
        &["alarms", "ack", "--config", CENTRE, "peer-silent", "x", "--by", "kim"],
        site.folder(),
    );
    let sentence = text(&refused.stderr);
    assert!(sentence.contains("no alarm `peer-silent` about `x` stands"), "{sentence}");
    // It is back.
    let _station = site.start_to_stay();
    alarms(&site, <[Value]>::is_empty);
    let all = events(&site, "0");
    let told: Vec<&str> =
        kinds(&all).into_iter().filter(|kind| kind.starts_with("alarm.")).collect();
    assert_eq!(told, ["alarm.raised", "alarm.acknowledged", "alarm.cleared"]);
    for kind in ["node.ready", "peer.connected", "peer.disconnected", "contact.done", "order.given"]
    {
        assert!(kinds(&all).contains(&kind), "{kind}: {all:#?}");
    }
    assert!(kinds(&all).contains(&"product.published"), "{all:#?}");
    // Each event names the one that explains it, and who is told of it by the command.
    let of = |kind: &str| all.iter().find(|event| event["kind"] == kind).unwrap();
    let [gone, raised] = [of("peer.disconnected"), of("alarm.raised")];
    let cause = serde_json::json!(
        {"number": gone["number"], "kind": "peer.disconnected", "subject": "node s"}
    );
    assert_eq!(raised["cause"], cause, "{all:#?}");
    for kind in ["alarm.acknowledged", "alarm.cleared"] {
        assert_eq!(of(kind)["cause"]["number"], raised["number"], "{all:#?}");
    }
    assert_eq!(of("node.ready")["cause"], Value::Null);
    let shown = printed(&["events", "--config", CENTRE, "--since", "0"], site.folder());
    let because = format!("(because of {} peer.disconnected, node s)", gone["number"]);
    assert!(shown.contains(&because), "{shown}");
    // A kill takes no event and no number.
    let last = all.last().unwrap()["number"].as_u64().unwrap();
    assert_eq!(all.len() as u64, last, "there is no hole");
    site.kill_centre();
    site.start_centre();
    let more = until(
        || Some(events_if_up(&site, last)).filter(|more| kinds(more).contains(&"node.ready")),
        String::new,
    );
    assert_eq!(more[0]["number"].as_u64().unwrap(), last + 1);
    assert_eq!(more[0]["kind"], "node.started");
}

#[test]
fn an_acknowledgement_stands_after_a_kill_of_the_node_as_long_as_its_alarm_does() {
    let (mut site, mut station) = with_station();
    // A centre that starts without its station need not find out that it is gone.
    site.kill_centre();
    station.kill();
    site.start_centre();
    alarms(&site, |alarms| !alarms.is_empty());
    let ack = ["alarms", "ack", "--config", CENTRE, "peer-silent", "node s", "--by", "kim"];
    printed(&[&ack[..], &["--note", "fibre cut"]].concat(), site.folder());
    site.kill_centre();
    site.start_centre();
    let standing = alarms(&site, |alarms| !alarms.is_empty());
    assert_eq!(standing[0]["acknowledged"]["note"], "fibre cut", "{standing:#?}");
    let raised = until(
        || events(&site, "0").into_iter().rev().find(|event| event["kind"] == "alarm.raised"),
        String::new,
    );
    assert_eq!(raised["data"]["acknowledged"], "kim", "{raised:#}");
    // It is back, and away again: that is another alarm.
    let mut station = site.start_to_stay();
    alarms(&site, <[Value]>::is_empty);
    let record = site.folder().join("state/acknowledged-centre.json");
    let read = || std::fs::read_to_string(&record).unwrap_or_default();
    until(|| (!read().contains("kim")).then_some(()), read);
    site.kill_centre();
    station.kill();
    site.start_centre();
    let standing = alarms(&site, |alarms| !alarms.is_empty());
    assert_eq!(standing[0]["acknowledged"], Value::Null, "{standing:#?}");
    // A damaged record costs the notes alone, and is said.
    printed(&ack, site.folder());
    site.kill_centre();
    std::fs::write(&record, "x").unwrap();
    site.start_centre();
    let standing = alarms(&site, |alarms| alarms.len() == 2);
    let of = |kind: &str| standing.iter().find(|alarm| alarm["kind"] == kind).unwrap();
    assert_eq!(of("peer-silent")["acknowledged"], Value::Null, "{standing:#?}");
    let sentence = of("alarm-record-damaged")["sentence"].to_string();
    assert!(sentence.contains("acknowledge again what stands"), "{sentence}");
    printed(&ack, site.folder());
    alarms(&site, |alarms| alarms.len() == 1);
}

/// The events behind a number, where the centre answers already.
fn events_if_up(site: &Site, since: u64) -> Vec<Value> {
    let since = since.to_string();
    let arguments = ["events", "--config", CENTRE, "--json", "--since", &since];
    let answer = run(&arguments, site.folder());
    let lines = text(&answer.stdout);
    lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn events_are_followed_and_chosen_by_kind() {
    let mut site = Site::new();
    site.kill_centre();
    let text = std::fs::read_to_string(site.folder().join(CENTRE)).unwrap();
    std::fs::write(site.folder().join(CENTRE), text.replace("127.0.0.1:0", &site.address)).unwrap();
    site.start_centre();
    site.centre_until(|_| Some(()));
    let follow = [
        "events",
        "--config",
        CENTRE,
        "--follow",
        "--json",
        "--since",
        "0",
        "--events",
        "contact.*",
    ];
    let mut follower = Running::start(&follow, site.folder());
    site.write(&channel(""));
    let _station = site.start();
    let event: Value = serde_json::from_str(&follower.line()).unwrap();
    assert_eq!(event["kind"], "contact.done", "{event:#}");
    assert_eq!(event["data"]["station"], "s", "{event:#}");
    let wrong = run(&["events", "--config", CENTRE, "--events", "contacts.*"], site.folder());
    assert_eq!(wrong.status.code(), Some(2));
}

/// A file that other users cannot read.
fn secret(site: &Site) {
    let path = site.folder().join("hook.secret");
    std::fs::write(&path, "0123456789abcdef0123\n").unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_server_that_fails_hangs_and_dies_gets_every_event_in_order_and_signed() {
    let mut receiver = Receiver::start(vec![Answer::Status(503), Answer::Hang, Answer::Close]);
    let mut site = Site::new();
    secret(&site);
    let hook = format!(
        "[[webhook]]\nurl = \"http://{}/hook?token=t\"\nevents = [\"*\"]\nsecret_file = \
         \"hook.secret\"\n",
        receiver.address
    );
    change_centre(&mut site, "", &hook);
    site.centre_until(|_| Some(()));
    receiver.until(|received| received.iter().any(|event| event["type"] == "skyhaul.node.ready"));
    // The receiver is away while the centre is killed; what happens meanwhile is not left out.
    receiver.stop();
    site.write(&channel(""));
    assert_eq!(site.start().end().code, Some(0));
    site.centre_until(|status| (status["contacts"][0]["state"] == "done").then_some(()));
    site.kill_centre();
    receiver.start_again();
    site.start_centre();
    receiver.until(|received| {
        let is_ready = |event: &&Value| event["type"] == "skyhaul.node.ready";
        received.iter().filter(is_ready).count() >= 2
    });
    let received = receiver.received();
    let mut numbers: Vec<u64> =
        received.iter().map(|event| event["data"]["number"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    numbers.dedup();
    let all = events(&site, "0");
    let first = numbers[0];
    // The alarm about the server itself is not sent to it.
    let is_about_it = |event: &&Value| event["data"]["alarm"] != "notice-failed";
    let expected: Vec<u64> = all
        .iter()
        .filter(is_about_it)
        .map(|event| event["number"].as_u64().unwrap())
        .filter(|number| (first..=numbers[numbers.len() - 1]).contains(number))
        .collect();
    assert_eq!(numbers, expected, "each of them came");
    assert!(received.iter().any(|event| event["type"] == "skyhaul.contact.done"));
    for event in &received {
        assert_eq!(event["specversion"], "1.0");
        assert_eq!(event["source"], "urn:skyhaul:node:c");
    }
    receiver.assert_signed("0123456789abcdef0123");
}

#[test]
fn a_webhook_whose_secret_others_can_read_is_refused_at_the_start() {
    let mut site = Site::new();
    std::fs::write(site.folder().join("hook.secret"), "0123456789abcdef").unwrap();
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(site.folder().join("hook.secret"), open).unwrap();
    site.kill_centre();
    let path = site.folder().join(CENTRE);
    let hook = "[[webhook]]\nurl = \"https://ops.example.org/\"\nevents = [\"*\"]\nsecret_file = \
                \"hook.secret\"\n";
    let text = std::fs::read_to_string(&path).unwrap() + hook;
    std::fs::write(path, text).unwrap();
    let ended = run(&["run", CENTRE], site.folder());
    let sentence = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(2), "{sentence}");
    assert!(sentence.contains("other users can read the secret of a webhook"), "{sentence}");
}

/// A program of the test: it does what the lines say.
fn script(path: &Path, lines: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{lines}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_command_and_a_mail_tell_of_events_and_a_command_that_fails_is_an_alarm() {
    let mut site = Site::new();
    let at = |name: &str| site.folder().join(name);
    let [run, mail, bad] = ["run.sh", "sendmail.sh", "bad.sh"].map(at);
    script(&run, &format!("cat >> {}", at("run.out").display()));
    script(&mail, &format!("echo \"$@\" >> {0}; cat >> {0}", at("mail.out").display()));
    script(&bad, "echo no such pager >&2; exit 7");
    let tables = format!(
        "[[exec]]\ncommand = [\"{}\"]\nevents = [\"node.*\"]\n[[exec]]\ncommand = [\"{}\"]\nevents \
         = [\"node.ready\"]\n[[mail]]\nto = [\"noc@example.org\"]\nevents = [\"node.ready\"]\n\
         sendmail = \"{}\"\n",
        run.display(),
        bad.display(),
        mail.display()
    );
    let [out, mailed] = ["run.out", "mail.out"].map(at);
    change_centre(&mut site, "", &tables);
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let told = until(|| Some(read(&out)).filter(|told| told.contains("node.ready")), || read(&out));
    let kinds: Vec<String> = told
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].to_string())
        .collect();
    assert_eq!(kinds, ["\"node.started\"", "\"node.ready\""], "in order, once each");
    let mailed = until(
        || Some(read(&mailed)).filter(|told| told.contains("node c is ready\n\n")),
        || read(&mailed),
    );
    assert!(mailed.starts_with("-oi -t\nTo: noc@example.org\nSubject: [skyhaul c]"), "{mailed}");
    let standing = alarms(&site, |alarms| {
        let left_out = |alarm: &Value| alarm["reason"].as_str().unwrap().contains("is left out");
        alarms.iter().any(left_out)
    });
    assert_eq!(standing.len(), 1, "{standing:#?}");
    let sentence = standing[0]["sentence"].as_str().unwrap();
    assert!(sentence.contains("bad.sh cannot be reached: "), "{sentence}");
    assert!(sentence.contains("exit status: 7: no such pager"), "{sentence}");
}
