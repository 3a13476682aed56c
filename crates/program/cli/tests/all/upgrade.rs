//! Nodes that go on in another process in the middle of a pass, as real processes: with new
//! programs that take over, and with some that fail at each step.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on says so by failing"
)]

mod feed;
mod hellos;

use crate::support::patience::{PATIENCE, until};
use crate::support::process::{Running, printed, run, skyhaul, text};
use crate::support::recordings::{DAMAGED, expected};
use crate::support::refusal::assert_refused;
use crate::support::site::Site;
use feed::{Feed, Way};
use hellos::{Hellos, OF_ONE_CALL};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Longer than a busy machine takes for anything between two frames.
const SILENCE: &str = "silence = \"12 s\"\n";

/// A process that the test did not start itself; it does not outlive the test.
struct Successor(Pid);

impl Drop for Successor {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// Starts the station of a site with one live input.
fn start(site: &Site, way: Way) -> Running {
    site.write(&format!("[[channel]]\nname = \"x\"\ninput = \"{way}:127.0.0.1:0\"\n{SILENCE}"));
    start_again(site)
}

fn start_again(site: &Site) -> Running {
    let log = OpenOptions::new().create(true).append(true).open(site.folder().join("s.log"));
    let mut command = skyhaul(&["run", "station.toml"], site.folder());
    Running::of(command.stdout(Stdio::null()).stderr(log.unwrap()))
}

fn log(site: &Site) -> String {
    fs::read_to_string(site.folder().join("s.log")).unwrap_or_default()
}

fn pid(site: &Site) -> i32 {
    site.until(|status| Some(status["pid"].as_i64().unwrap() as i32))
}

/// Feeds a station, and waits until it has frames of the contact.
fn feed(site: &Site, way: Way) -> Feed {
    let address = site.until(|status| Some(status["channels"][0]["address"].as_str()?.to_owned()));
    let feed = Feed::start(way, address.parse().unwrap());
    site.until(|status| (status["contacts"][0]["frames"].as_u64()? > 20).then_some(()));
    feed
}

/// Upgrades the station, which must succeed.
#[track_caller]
fn upgrade(site: &Site) -> (Value, Successor) {
    let done = run(&["upgrade", "--config", "station.toml", "--json"], site.folder());
    assert!(done.status.success(), "{}\n{}", text(&done.stderr), log(site));
    let said: Value = serde_json::from_slice(&done.stdout).unwrap();
    let pid = Pid::from_raw(said["now"]["pid"].as_i64().unwrap() as i32).unwrap();
    (said, Successor(pid))
}

/// A program that does this.
fn program(folder: &Path, name: &str, script: &str) -> PathBuf {
    let file = folder.join(name);
    fs::write(&file, script).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o755)).unwrap();
    file
}

/// Several upgrades in one pass: one contact with all frames as they were sent.
fn upgrades_in_one_pass(way: Way) {
    let site = Site::new();
    let mut first = start(&site, way);
    let feed = feed(&site, way);
    let mut before = i64::from(first.id());
    let mut successors = Vec::new();
    for round in 0..3 {
        let (said, successor) = upgrade(&site);
        successors.push(successor);
        assert_eq!(said["before"]["pid"], before, "{said}");
        assert_ne!(said["now"]["pid"], before, "{said}");
        assert_eq!(said["now"]["version"], env!("CARGO_PKG_VERSION"), "{said}");
        before = said["now"]["pid"].as_i64().unwrap();
        assert!(!feed.is_over(), "round {round}: the pass was over before the upgrade");
    }
    let ended = until(|| first.status(), || log(&site));
    assert_eq!(ended.code(), Some(0), "{}", log(&site));
    feed.finish();
    site.assert_whole();
}

#[test]
fn a_pass_over_udp_stays_one_contact_without_a_gap_over_several_upgrades() {
    upgrades_in_one_pass(Way::Udp);
}

#[test]
fn a_pass_over_tcp_stays_one_contact_without_a_gap_over_several_upgrades() {
    upgrades_in_one_pass(Way::Tcp);
}

#[test]
fn a_new_program_that_cannot_take_over_leaves_the_old_one_in_charge() {
    let site = Site::new();
    let mut station = start(&site, Way::Udp);
    let feed = feed(&site, Way::Udp);
    let at = site.folder();
    let exits = program(at, "exits", "#!/bin/sh\nexit 7\n");
    let hangs = program(at, "hangs", "#!/bin/sh\nexec sleep 600\n");
    let socket = ["--socket", "spool/status.sock", "--patience", "2 s"];
    let order = |more: &[&str]| run(&[&["upgrade"], &socket[..], more].concat(), at);
    let with = |file: &Path| order(&["--binary", file.to_str().unwrap()]);
    assert_refused(&with(&exits), 3, &["exit status: 7", "before it was ready"]);
    assert_refused(&with(&hangs), 3, &["is not ready within 2 s"]);
    assert_refused(&with("/no/such/program".as_ref()), 3, &["/no/such/program cannot be run"]);
    // What the new program itself finds.
    let config = fs::read_to_string(at.join("station.toml")).unwrap();
    fs::write(at.join("station.toml"), format!("{config}\nnonsense = 1\n")).unwrap();
    assert_refused(&order(&[]), 3, &["nonsense", "station.toml"]);
    fs::write(at.join("station.toml"), config).unwrap();
    let memo = at.join("spool/channel-x.place");
    let known = fs::read(&memo).unwrap();
    let mut later = known.clone();
    later[3] += 1;
    fs::write(&memo, &later).unwrap();
    assert_refused(&order(&[]), 3, &["format version 2", "run the release that wrote it"]);
    fs::write(&memo, &known).unwrap();
    // Two at once.
    let script = format!("#!/bin/sh\n: >{}\nexec sleep 600\n", at.join("begun").display());
    let hangs = program(at, "hangs-too", &script);
    let hang = hangs.to_str().unwrap();
    let waits = ["upgrade", "--socket", "spool/status.sock", "--binary", hang, "--patience", "5 s"];
    let mut waiting = skyhaul(&waits, at);
    let waiting = Running::of(waiting.stdout(Stdio::null()).stderr(Stdio::piped()));
    until(|| at.join("begun").exists().then_some(()), || log(&site));
    assert_refused(&with(&exits), 2, &["an upgrade is under way"]);
    let first = waiting.end();
    assert_eq!(first.code, Some(3), "{}", first.log);
    assert!(first.log.contains("is not ready within 5 s"), "{}", first.log);
    assert_eq!(pid(&site), station.id() as i32);
    assert!(station.status().is_none(), "{}", log(&site));
    feed.finish();
    site.assert_whole();
}

/// Speaks the talk of an upgrade up to a step, and ends there or does what it must not.
const PRETENDER: &str = r#"#!/usr/bin/env python3
import json, os, signal, socket, sys, time
pair = socket.socket(fileno=0)
step = os.path.basename(sys.argv[0])
def say(**what): pair.send(json.dumps(what).encode())
def end(): os.kill(os.getpid(), signal.SIGKILL)
ready = dict(say="ready", protocol=1, version="9.9.9")
if step == "protocol": say(**{**ready, "protocol": 2}); time.sleep(600)
if step == "nonsense": pair.send(b"\xff{"); time.sleep(600)
if step == "impatient": say(say="running"); time.sleep(600)
say(**ready)
if step == "ready": end()
inputs, rights, _, _ = pair.recvmsg(1 << 18, 8192)
assert json.loads(inputs)["inputs"][0]["channel"] == "x" and len(rights) == 1, inputs
if step == "inputs": end()
if step == "hangs": time.sleep(600)
if step == "refuses": say(say="refused", why="the disk is full of stars"); time.sleep(600)
say(say="running")
if step == "running": end()
go, rights, _, _ = pair.recvmsg(1 << 18, 8192)
assert json.loads(go)["sources"][0]["kind"] == "udp", go
end()
"#;

fn has_python() -> bool {
    let has = Command::new("python3").arg("--version").output();
    let has = has.is_ok_and(|out| out.status.success());
    if !has {
        eprintln!("SKIPPED: there is no python3");
    }
    has
}

#[test]
fn a_new_program_that_fails_at_any_step_costs_no_frame() {
    if !has_python() {
        return;
    }
    let site = Site::new();
    let mut station = start(&site, Way::Udp);
    let feed = feed(&site, Way::Udp);
    for (step, said) in [
        ("protocol", "version 9.9.9 takes over by version 2 of the talk"),
        ("nonsense", "a message cannot be read"),
        ("impatient", "at the wrong time"),
        ("ready", "ended (signal: 9 (SIGKILL))"),
        ("inputs", "ended (signal: 9 (SIGKILL)) before it was running"),
        ("hangs", "is not running within 3 s"),
        ("refuses", "the disk is full of stars"),
        ("running", "ended (signal: 9 (SIGKILL))"),
        ("go", "ended (signal: 9 (SIGKILL))"),
    ] {
        let file = program(site.folder(), step, PRETENDER);
        let file = file.to_str().unwrap();
        let order = ["upgrade", "--config", "station.toml", "--patience", "3 s", "--binary", file];
        let refused = run(&order, site.folder());
        let told = text(&refused.stderr);
        assert!(told.contains(said), "{step}: {told}\n{}", log(&site));
        assert_eq!(refused.status.code(), Some(3), "{step}: {told}");
        assert_eq!(pid(&site), station.id() as i32, "{step}");
    }
    // And then one that can.
    let (_, _successor) = upgrade(&site);
    assert!(!feed.is_over(), "the pass was over before the last upgrade");
    assert_eq!(until(|| station.status(), || log(&site)).code(), Some(0));
    feed.finish();
    site.assert_whole();
}

#[test]
fn a_service_manager_is_told_of_the_new_process() {
    let site = Site::new();
    let path = site.folder().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    site.write("[[channel]]\nname = \"x\"\ninput = \"udp:127.0.0.1:0\"\n");
    let mut command = skyhaul(&["run", "station.toml"], site.folder());
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "60000000");
    let mut station = Running::of(command.stdout(Stdio::null()).stderr(Stdio::null()));
    let told = || loop {
        let mut message = [0; 256];
        let length = manager.recv(&mut message).unwrap();
        let message = text(&message[..length]);
        if message != "WATCHDOG=1\n" {
            return message;
        }
    };
    assert_eq!(told(), "READY=1\n");
    let (said, _successor) = upgrade(&site);
    let mut both = [told(), told()];
    both.sort();
    assert_eq!(both, [format!("MAINPID={}\n", said["now"]["pid"]), "READY=1\n".to_owned()]);
    assert_eq!(until(|| station.status(), String::new).code(), Some(0));
}

#[test]
fn a_centre_that_goes_on_in_another_process_in_mid_pass_gets_the_rest_of_the_contact() {
    // The port is one that the system chose: only the socket itself keeps it.
    let site = Site::new();
    let station = start(&site, Way::Udp);
    let feed = feed(&site, Way::Udp);
    let mut successors = Vec::new();
    for _ in 0..2 {
        let before = site.centre_until(|status| status["contacts"][0]["frames"].as_u64());
        let done = run(&["upgrade", "--config", "centre.toml", "--json"], site.folder());
        assert!(done.status.success(), "{}", text(&done.stderr));
        let said: Value = serde_json::from_slice(&done.stdout).unwrap();
        let pid = Pid::from_raw(said["now"]["pid"].as_i64().unwrap() as i32).unwrap();
        successors.push(Successor(pid));
        site.centre_until(|status| {
            (status["contacts"][0]["frames"].as_u64()? > before).then_some(())
        });
    }
    assert!(!feed.is_over(), "the pass was over before the last upgrade");
    feed.finish();
    site.assert_whole();
    drop(station);
}

#[test]
fn several_inputs_of_a_channel_lose_no_frame_though_another_contact_begins() {
    let site = Site::new();
    // The other antenna is silent: each frame waits for a copy that does not come.
    let inputs = "inputs = [\"udp:127.0.0.1:0\", \"tcp-listen:127.0.0.1:0\"]\n";
    site.write(&format!("[[channel]]\nname = \"x\"\n{inputs}{SILENCE}"));
    let _first = start_again(&site);
    let address = site
        .until(|status| Some(status["channels"][0]["inputs"][0]["address"].as_str()?.to_owned()));
    let feed = Feed::start(Way::Udp, address.parse().unwrap());
    site.until(|status| (status["contacts"][0]["frames"].as_u64()? > 20).then_some(()));
    let (_, _successor) = upgrade(&site);
    feed.finish();
    let contacts = site.centre_until(|status| {
        let contacts = status["contacts"].as_array()?;
        let done = contacts.iter().filter(|contact| contact["state"] == "done").count();
        (done == 2).then(|| contacts.clone())
    });
    let all =
        |key: &str| contacts.iter().map(|contact| contact[key].as_u64().unwrap()).sum::<u64>();
    let known = expected(DAMAGED);
    assert_eq!(known["good_frames"], all("frames"), "{contacts:?}");
    assert_eq!(known["rs_uncorrectable_frames"], all("set_aside"), "{contacts:?}");
}

/// The events of a node's sessions from number `since` on, and all that are worse than information.
fn session_events(config: &str, folder: &Path) -> Vec<Value> {
    let lines = printed(&["events", "--config", config, "--json"], folder);
    let all = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|event| {
        event["kind"].as_str().unwrap().starts_with("peer.") || event["severity"] != "info"
    })
    .collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["kind"].as_str().unwrap()).collect()
}

/// A station with a session to its centre, by a line that lets one call through at a time.
struct Called {
    site: Site,
    line: Hellos,
    _station: Running,
}

impl Called {
    fn start() -> Self {
        let site = Site::new();
        let line = Hellos::to(site.address.parse().unwrap());
        let input = "[[channel]]\nname = \"x\"\ninput = \"udp:127.0.0.1:0\"\n";
        site.write_by(&line.address.to_string(), input);
        line.let_through(OF_ONE_CALL);
        let _station = start_again(&site);
        let called = Self { site, line, _station };
        called.opens(1);
        called
    }

    /// Waits until the session with the centre is open for the time of this number.
    #[track_caller]
    fn opens(&self, count: u64) {
        self.site.until(|status| {
            let line = &status["destinations"][0]["line"];
            (line["connects"] == count && line["state"] == "open").then_some(())
        });
    }

    /// Orders an upgrade of the centre, while which one call comes through.
    fn upgrade(&self, more: &[&str]) -> Output {
        self.line.let_through(OF_ONE_CALL);
        let order = ["upgrade", "--config", "centre.toml", "--json"];
        run(&[&order, more].concat(), self.site.folder())
    }
}

/// Regression: the first datagrams of a station's next call met a closed port, and the call was
/// repeated a second later.
#[test]
fn the_first_call_of_a_station_reaches_the_process_that_its_centre_goes_on_in() {
    let called = Called::start();
    let mut successors = Vec::new();
    for round in 1..3 {
        let done = called.upgrade(&[]);
        assert!(done.status.success(), "{}", text(&done.stderr));
        let said: Value = serde_json::from_slice(&done.stdout).unwrap();
        let pid = Pid::from_raw(said["now"]["pid"].as_i64().unwrap() as i32).unwrap();
        successors.push(Successor(pid));
        called.opens(round + 1);
    }
    let events = session_events("station.toml", called.site.folder());
    let expected = ["peer.connected", "peer.disconnected"];
    let expected: Vec<&str> = expected.into_iter().cycle().take(5).collect();
    assert_eq!(kinds(&events), expected, "{events:#?}");
    assert!(events.iter().all(|event| event["severity"] == "info"), "{events:#?}");
    assert!(events[1].to_string().contains("goes on in another process"), "{}", events[1]);
}

#[test]
fn a_centre_whose_new_program_fails_goes_on_with_the_ports_that_it_had_given() {
    if !has_python() {
        return;
    }
    let called = Called::start();
    let fails = program(called.site.folder(), "inputs", PRETENDER);
    let refused = called.upgrade(&["--patience", "3 s", "--binary", fails.to_str().unwrap()]);
    assert_refused(&refused, 3, &["before it was running"]);
    called.opens(2);
}

#[test]
fn a_centre_is_told_that_a_station_goes_on_in_another_process() {
    let site = Site::new();
    let _first = start(&site, Way::Udp);
    let connected = |count: usize| {
        let events = || {
            let events = session_events("centre.toml", site.folder());
            let is_there = kinds(&events).iter().filter(|kind| **kind == "peer.connected").count();
            (is_there == count).then_some(events)
        };
        until(events, || log(&site))
    };
    connected(1);
    let (_, _successor) = upgrade(&site);
    let events = connected(2);
    let expected = ["peer.connected", "peer.disconnected", "peer.connected"];
    assert_eq!(kinds(&events), expected, "{events:#?}");
    assert!(events.iter().all(|event| event["severity"] == "info"), "{events:#?}");
}
