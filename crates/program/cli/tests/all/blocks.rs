//! Programs at both ends hand over blocks to their nodes, and a program that misbehaves costs
//! itself alone: real nodes, real sockets, programs of the page docs/how-to/blocks.md.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]
#![allow(clippy::disallowed_methods, reason = "the two ends of a session wait for each other")]

use crate::support::node::{self, NODES};
use crate::support::patience::until;
use crate::support::ports::free_address;
use crate::support::process::{Running, run, text};
use rustix::process::Signal;
use serde_json::Value;
use skyhaul::{
    Block, Duration, FlowId, LocalNode, Outcome, PathId, Probability, Rate, Session, Wait,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A station and a centre, each with a block service.
struct Nodes {
    folder: tempfile::TempDir,
    running: Vec<Running>,
}

impl Nodes {
    fn start(tables: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = node::make_keys(folder.path());
        let address = free_address();
        let centre = format!(
            "{}[[listen]]\nbind = \"{address}\"\ntcp = false\n[[peer]]\nname = \"station\"\n\
             fingerprints = [\"{}\"]\n[blocks]\nsocket = \"centre.sock\"\n",
            node::table("centre", Path::new("centre")),
            keys[0]
        );
        fs::write(folder.path().join("centre.toml"), centre).unwrap();
        let station = format!(
            "{}[[destination]]\nto = \"node:centre\"\n[[peer]]\nname = \"centre\"\n\
             addresses = [\"{address}\"]\nfingerprints = [\"{}\"]\n[line]\nrate = \
             \"100 Mbit/s\"\n[[path]]\ntransport = \"udp\"\n[blocks]\nsocket = \
             \"station.sock\"\n{tables}",
            node::table("station", Path::new("station")),
            keys[1]
        );
        fs::write(folder.path().join("station.toml"), station).unwrap();
        let running = NODES.map(|name| node::start(name, folder.path(), &[])).into();
        let nodes = Self { folder, running };
        for name in NODES {
            until(|| LocalNode::at(&nodes.socket(name), "probe").ok(), || nodes.state());
        }
        nodes
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.sock"))
    }

    fn program(&self, node: &str, name: &str) -> LocalNode {
        LocalNode::at(&self.socket(node), name).unwrap()
    }

    fn status(&self, name: &str) -> Value {
        node::status(&format!("{name}.toml"), self.folder.path()).unwrap_or_default()
    }

    /// The programs of a node, as its status names them.
    fn programs(&self, name: &str) -> Vec<Value> {
        let status = self.status(name);
        status["blocks"]["programs"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until the status of the station's node says so of a program.
    fn until_program(&self, name: &str, is: impl Fn(&Value) -> bool) {
        let look = || {
            let programs = self.programs("station");
            programs.iter().any(|one| one["name"] == name && is(one)).then_some(())
        };
        until(look, || self.state());
    }

    fn log(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(format!("{name}.log"))).unwrap_or_default()
    }

    fn state(&self) -> String {
        let shown = run(&["status", "--config", "station.toml"], self.folder.path());
        format!("{}{}", text(&shown.stdout), node::logs(self.folder.path()))
    }

    /// The program of the page, which needs nothing but Python. `None` where there is none.
    fn page_program(&self, arguments: &[&str]) -> Option<Child> {
        let script = self.folder.path().join("plain.py");
        fs::write(&script, page_script()).unwrap();
        let started = Command::new("python3")
            .arg(script)
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        if started.is_err() {
            eprintln!("SKIPPED: there is no python3");
        }
        started.ok()
    }
}

/// The fence `python file=plain.py` of the page.
fn page_script() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/how-to/blocks.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("```python file=plain.py\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// A program at the centre's node that sends back what it gets.
fn echo(nodes: &Nodes) -> std::thread::JoinHandle<()> {
    let far = nodes.program("centre", "echo");
    far.listen().unwrap();
    std::thread::spawn(move || {
        let session = far.accept().wait().unwrap();
        while let Some(block) = session.recv().wait() {
            let back = Block::reliable(block.id.flow, block.bytes.clone());
            drop(session.send(back).wait().unwrap());
        }
    })
}

fn echoed(session: &Session, len: usize) {
    let mut bytes = vec![7; len];
    bytes[len - 1] = 9;
    let sent = session.send(Block::reliable(FlowId(3), bytes.clone().into())).wait().unwrap();
    let back = session.recv().wait().unwrap();
    assert_eq!((back.id.flow, &back.bytes[..]), (FlowId(3), &bytes[..]));
    assert_eq!(sent.wait(), Some(Outcome::Delivered));
}

#[test]
fn programs_at_both_ends_use_the_sessions_of_their_nodes() {
    let nodes =
        Nodes::start("[[class]]\nname = \"voice\"\npriority = 0\n[[class]]\nname = \"bulk\"\n");
    let echo = echo(&nodes);
    let near = nodes.program("station", "camera");
    let session = near.connect("centre", "echo").wait().unwrap();
    assert_eq!(session.peer_name(), "centre");
    let classes = session.classes().unwrap();
    assert_eq!(classes.leaves().map(|(_, name)| name).collect::<Vec<_>>(), ["voice", "bulk"]);
    for len in [1, 1_000, 100_000, 3_000_000] {
        echoed(&session, len);
    }
    // A block that is too late has its fate too, and so has one that depends on it.
    let late = Block::expendable(FlowId(4), Duration::from_nanos(1), vec![1; 1_000].into());
    let late = session.send(late).wait().unwrap();
    let next = Block { depends_on: late.name().wait(), ..Block::reliable(FlowId(4), "x".into()) };
    let next = session.send(next).wait().unwrap();
    assert_eq!(late.wait(), Some(Outcome::Expired));
    assert_eq!(next.wait(), Some(Outcome::Expired));
    nodes.until_program("camera", |program| {
        program["state"] == "open"
            && program["peer"] == "centre"
            && program["delivered"] == 4
            && program["expired"] == 2
    });
    drop(session);
    echo.join().unwrap();
    // The other way round: the node that was called calls the program.
    near.listen().unwrap();
    let far = nodes.program("centre", "screen");
    let calling =
        std::thread::spawn(move || far.connect("station", "camera").wait().map(|it| (far, it)));
    let here = near.accept().wait().unwrap();
    let (_far, there) = calling.join().unwrap().unwrap();
    drop(there.send(Block::reliable(FlowId(0), "down".into())).wait().unwrap());
    assert_eq!(here.recv().wait().unwrap().bytes, "down");
    let error = near.connect("centre", "nobody").wait().unwrap_err().to_string();
    assert!(error.contains("no program listens there as `nobody`"), "{error}");
    let error = near.connect("elsewhere", "echo").wait().unwrap_err().to_string();
    assert!(error.contains("its peers are centre"), "{error}");
}

#[test]
fn who_is_allowed_changes_with_a_reload_and_the_socket_waits_for_a_restart() {
    let nodes = Nodes::start("");
    let _echo = echo(&nodes);
    let near = nodes.program("station", "camera");
    let session = near.connect("centre", "echo").wait().unwrap();
    echoed(&session, 10);
    let file = nodes.folder.path().join("station.toml");
    let text = fs::read_to_string(&file).unwrap().replace("station.sock", "other.sock");
    let text = format!("{text}[[blocks.allow]]\nuser = \"54321\"\nrate = \"1 Mbit/s\"\n");
    fs::write(&file, text).unwrap();
    nodes.running[0].signal(Signal::HUP);
    assert!(session.recv().wait().is_none());
    let closed = session.closed().unwrap();
    assert!(closed.contains("its user may not use the block service any more"), "{closed}");
    let logged = || {
        let log = nodes.log("station");
        let waits = log.contains("`socket` in [blocks] cannot change while the node runs");
        (waits && log.contains("the users of the block service changed")).then_some(())
    };
    until(logged, || nodes.state());
    let error = near.connect("centre", "echo").wait().unwrap_err().to_string();
    assert!(error.contains("add a [[blocks.allow]]"), "{error}");
}

#[test]
fn a_program_that_may_gives_hints_for_the_paths_of_its_node_behind_those_of_the_operator() {
    let own = rustix::process::geteuid().as_raw();
    let nodes = Nodes::start("");
    let echo = echo(&nodes);
    let near = nodes.program("station", "camera");
    let session = near.connect("centre", "echo").wait().unwrap();
    echoed(&session, 10);
    let (rate, minute) = (Rate::from_mbps(50), Duration::from_secs(60));
    session.hint_rate(PathId(0), rate, Some(minute)).wait().unwrap();
    session.hint_loss(PathId(0), Probability::of(1, 20), minute).wait().unwrap();
    // By whom each hint in force is, and the program that it names.
    let hints = |name: &str, pointer: &str| -> Vec<(String, Value)> {
        let hints = nodes.status(name).pointer(pointer).cloned().unwrap_or_default();
        let text = |hint: &Value, key: &str| hint[key].as_str().unwrap_or_default().to_owned();
        let shown = |hint: &Value| {
            (format!("{} by {}", text(hint, "hint"), text(hint, "by")), hint["program"].clone())
        };
        hints.as_array().into_iter().flatten().map(shown).collect()
    };
    let here = "/station/destinations/0/line/paths/0/hints";
    let by = |what: &str, name: &str| {
        (format!("{what} by program"), Value::from(format!("{name} (user {own})")))
    };
    let expect = |name: &str, pointer: &str, wanted: &[(String, Value)]| {
        until(|| (hints(name, pointer) == wanted).then_some(()), || nodes.state());
    };
    expect("station", here, &[by("rate", "camera"), by("loss", "camera")]);
    let no_path = session.hint_rate(PathId(3), rate, None).wait().unwrap_err().to_string();
    let words = "there is no path 3 to centre; its paths are 0 (path-1)";
    assert!(no_path.contains(words), "{no_path}");
    let beyond = session.hint_rate(PathId(0), Rate::from_bps(1), None).wait().unwrap_err();
    assert!(beyond.to_string().contains("a rate of 1 bit/s is out of range"), "{beyond}");
    // The operator's counts first.
    let words = ["path", "hint", "path-1", "--rate", "9 Mbit/s", "--until", "2100-01-01T00:00:00Z"];
    let said = run(&[&words[..], &["--config", "station.toml"]].concat(), nodes.folder.path());
    assert!(said.status.success(), "{said:?}");
    expect("station", here, &[("rate by operator".to_owned(), Value::Null), by("loss", "camera")]);
    session.withdraw_hints(PathId(0)).wait().unwrap();
    expect("station", here, &[("rate by operator".to_owned(), Value::Null)]);
    // At the node that was called, the other way round.
    near.listen().unwrap();
    let there = nodes.program("centre", "screen").connect("station", "camera").wait().unwrap();
    there.hint_rate(PathId(0), rate, Some(minute)).wait().unwrap();
    expect("centre", "/centre/stations/0/paths/0/hints", &[by("rate", "screen")]);
    let other = there.hint_rate(PathId(9), rate, None).wait().unwrap_err().to_string();
    assert!(other.contains("there is no path 9 to station; its paths are station/0"), "{other}");
    // Who has a table needs the key.
    let file = nodes.folder.path().join("station.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}[[blocks.allow]]\nuser = \"{own}\"\n")).unwrap();
    nodes.running[0].signal(Signal::HUP);
    let refused = || session.hint_rate(PathId(0), rate, None).wait().err();
    let refused = until(refused, || nodes.state()).to_string();
    assert!(refused.contains("set `hints = true` in its [[blocks.allow]]"), "{refused}");
    echoed(&session, 10);
    drop((session, there));
    echo.join().unwrap();
}

#[test]
fn programs_that_send_garbage_die_or_stop_reading_cost_themselves_alone() {
    let nodes = Nodes::start("");
    let _echo = echo(&nodes);
    let sink = nodes.program("centre", "sink");
    sink.listen().unwrap();
    // It counts what each session brings, until all of them are over.
    let counting = std::thread::spawn(move || {
        while let Some(session) = sink.accept().wait() {
            std::thread::spawn(move || while session.recv().wait().is_some() {});
        }
    });
    let near = nodes.program("station", "camera");
    let session = near.connect("centre", "echo").wait().unwrap();
    let send = ["send", "station.sock", "centre", "sink", "1000000"];
    let Some(mut stopped) = nodes.page_program(&send) else { return };
    let mut killed = nodes.page_program(&send).unwrap();
    for _ in 0..2 {
        nodes.until_program("plain", |program| program["delivered"].as_u64() > Some(10));
        echoed(&session, 50_000);
    }
    // One is stopped in the middle of its work, one is killed, one sends no message of the service.
    let pid = rustix::process::Pid::from_child(&stopped);
    rustix::process::kill_process(pid, Signal::STOP).unwrap();
    killed.kill().unwrap();
    killed.wait().unwrap();
    let garbage = nodes.page_program(&["garbage", "station.sock"]).unwrap();
    assert!(garbage.wait_with_output().unwrap().status.success());
    let logged = || {
        let log = nodes.log("station");
        let named = log.contains("a program (process") && log.contains("sent away: a message of");
        named.then_some(())
    };
    until(logged, || nodes.state());
    for _ in 0..20 {
        echoed(&session, 50_000);
    }
    let only_one = || {
        let programs = nodes.programs("station");
        let plain = programs.iter().filter(|program| program["name"] == "plain").count();
        (plain == 1).then_some(())
    };
    until(only_one, || nodes.state());
    stopped.kill().unwrap();
    stopped.wait().unwrap();
    drop(nodes);
    counting.join().unwrap();
}
