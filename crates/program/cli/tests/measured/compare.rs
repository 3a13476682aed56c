//! Transfer tools compared on an emulated line, as a user does it. Needs root, network namespaces
//! and TUN devices.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "what tests share; what is skipped is said"
)]

use crate::support::patience::until;
use crate::support::process::{printed, run, text};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

const MINE: &str =
    "name = \"mine\"\ntitle = \"a thin line\"\nsource = \"this test\"\nduration = \"2 s\"
tools = [\"adaptive\", \"tcp-nosuchcontrol\"]\n[line]\nseed = 1\n[[line.link]]\nname = \"thin\"
both = { rate = \"5 Mbit/s\", one_way_delay = \"5 ms\" }\n[[cell]]\nlabel = \"clean\"
published = { \"adaptive\" = \"4 Mbit/s\" }\n";

const SPACINGS: &str = "name = \"mine\"\ntitle = \"a thin line\"\nsource = \"this \
                       test\"\n[line]\nseed = 1
[[line.link]]\nname = \"thin\"\nboth = { rate = \"5 Mbit/s\", one_way_delay = \"2 ms\", queue = \
\"16 kB\" }
[spacing]\npayload = \"1400 B\"\nspacings = [\"1 ms\", \"4 ms\"]\ndatagrams = 300
[[spacing.process]]\nlabel = \"clean\"\nloss = { kind = \"none\" }\nrate = \"1 Mbit/s\"\nduration \
= \"1 s\"\n";

const SHARERS: &str = "name = \"mine\"\ntitle = \"a thin line\"\nsource = \"this \
                      test\"\n[line]\nseed = 1
[[line.link]]\nname = \"thin\"\nboth = { rate = \"5 Mbit/s\", one_way_delay = \"2 ms\", queue = \
\"64 kB\" }
[sharing]\nphase = \"1 s\"\n[[sharing.tree]]\nlabel = \"half\"
first = { guarantee = \"2 Mbit/s\" }\nsecond = { guarantee = \"3 Mbit/s\" }\n";

fn can_emulate() -> bool {
    let can = rustix::process::geteuid().is_root() && Path::new("/dev/net/tun").exists();
    if !can {
        eprintln!("SKIPPED: emulated links need root and /dev/net/tun");
    }
    can
}

/// Stand-ins are shell scripts, which cannot listen by themselves.
fn can_listen() -> bool {
    let can = Command::new("socat").arg("-V").output().is_ok();
    if !can {
        eprintln!("SKIPPED: stand-ins for tools need socat");
    }
    can
}

#[test]
fn a_comparison_measures_and_names_missing_tools_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(printed(&["lab", "compare"], folder).contains("dsn-93"));
    let unknown = run(&["lab", "compare", "dsn-94"], folder);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        text(&unknown.stderr).contains("no experiment is called `dsn-94`"),
        "{}",
        text(&unknown.stderr)
    );
    if !can_emulate() {
        return;
    }
    std::fs::write(folder.join("mine.toml"), MINE).unwrap();
    let flags = [
        "--lab",
        "t-compare",
        "--json",
        "--report",
        "out",
        "--markdown",
        "out.md",
        "--even-if-busy",
    ];
    let said = printed(&[&["lab", "compare", "mine.toml"], &flags[..]].concat(), folder);
    let found: serde_json::Value = serde_json::from_str(&said).unwrap();
    let tool = &found["cells"][0]["tools"][0];
    let reached = tool["median_bps"].as_f64().unwrap_or_else(|| panic!("{said}"));
    assert!((1e6..5e6).contains(&reached), "{said}");
    assert_eq!(tool["published_bps"], 4_000_000);
    assert!(found["cells"][0]["seeds"][0].is_u64(), "{said}");
    assert!(found["calibration"].is_null(), "a thin line needs none: {said}");
    assert!(
        found["skipped"]["tcp-nosuchcontrol"].as_str().unwrap().contains("no congestion control"),
        "{said}"
    );
    let page = std::fs::read_to_string(folder.join("out/compare.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("adaptive at clean"));
    let written = std::fs::read_to_string(folder.join("out.md")).unwrap();
    assert!(written.contains("](out/mine.svg)"), "{written}");
    assert!(
        std::fs::read_to_string(folder.join("out/mine.svg"))
            .unwrap()
            .contains("adaptive, published")
    );
    assert!(!Path::new("/run/netns/skyhaul-t-compare-a").exists());

    let mut interrupted = Command::new(env!("CARGO_BIN_EXE_skyhaul"))
        .args(["lab", "compare", "mine.toml", "--lab", "t-compare", "--duration", "60 s"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(interrupted.stderr.take().unwrap()).lines().map_while(Result::ok);
    let said: Vec<String> =
        lines.take_while(|line| !line.contains("mine: clean, adaptive")).collect();
    assert!(said.iter().any(|line| line == "mine: takes about 61 s"), "{said:?}");
    kill_process(Pid::from_child(&interrupted), Signal::INT).unwrap();
    assert_eq!(interrupted.wait().unwrap().code(), Some(130));
    assert!(
        !Path::new("/run/netns/skyhaul-t-compare-a").exists()
            && !Path::new("/run/skyhaul/lab/t-compare").exists()
    );
}

/// Runs the experiment with programs of these names and texts first in the search path. Returns the
/// failure of `tcp-reno`, after it has checked that nothing is left.
fn failure_with(stand_ins: &[(&str, &str)], lab: &str, flags: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("mine.toml"), MINE.replace("tcp-nosuchcontrol", "tcp-reno"))
        .unwrap();
    for (name, program) in stand_ins {
        std::fs::write(folder.join(name), format!("#!/bin/sh\n{program}\n")).unwrap();
        std::fs::set_permissions(folder.join(name), std::fs::Permissions::from_mode(0o755))
            .unwrap();
    }
    let output = Command::new("sh")
        .args(["-c", "PATH=\"$PWD:$PATH\" exec \"$@\"", "sh", env!("CARGO_BIN_EXE_skyhaul")])
        .args([
            "lab",
            "compare",
            "mine.toml",
            "--lab",
            lab,
            "--tools",
            "tcp-reno",
            "--json",
            "--even-if-busy",
        ])
        .args(flags)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(!Path::new(&format!("/run/netns/skyhaul-{lab}-a")).exists());
    assert!(!Path::new(&format!("/run/skyhaul/lab/{lab}")).exists());
    let said = text(&output.stdout);
    let found: serde_json::Value =
        serde_json::from_str(&said).unwrap_or_else(|_| panic!("{output:?}"));
    if let Some(why) = found["skipped"]["tcp-reno"].as_str() {
        return why.to_owned();
    }
    found["cells"][0]["tools"][0]["failures"][0]
        .as_str()
        .unwrap_or_else(|| panic!("{said}"))
        .to_owned()
}

/// A command that sleeps for a time that no other process on this machine uses.
fn sleeper(number: u32) -> String {
    format!("sleep {}.{number}", 10_000_000 + std::process::id())
}

/// Waits until `command` does not run any more: a killed process may take a moment to end.
fn gone(command: &str) {
    let words = command.replace(' ', "\0");
    until(|| (!runs(&words)).then_some(()), || format!("`{command}` is still there"));
}

/// Whether a process runs whose command line holds `word`.
fn runs(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| String::from_utf8_lossy(&line).contains(word))
}

#[test]
fn a_tool_that_hangs_and_ignores_signals_is_killed_and_reported() {
    if !can_emulate() || !can_listen() {
        return;
    }
    // It listens, never ends, ignores signals, and leaves a process in a session of its own.
    let (apart, within) = (sleeper(1), sleeper(2));
    let hangs = format!(
        "case $1 in --version) echo 'iperf 9 (stand-in)'; exit;; esac
trap '' TERM INT HUP
setsid {apart} &
case $1 in -s) exec socat TCP-LISTEN:5201,fork,reuseaddr PIPE;; esac
while :; do {within}; done"
    );
    let why =
        failure_with(&[("iperf3", &hangs)], "t-hangs", &["--patience", "1 s", "--duration", "1 s"]);
    assert!(
        why.contains("iperf3 (process ") && why.contains("hung, and was ended after 2 s"),
        "{why}"
    );
    gone(&apart);
    gone(&within);
}

#[test]
fn a_tool_that_is_missing_or_prints_no_version_is_skipped() {
    if !can_emulate() {
        return;
    }
    let sleeps = sleeper(3);
    let mute = format!("trap '' TERM\nwhile :; do {sleeps}; done");
    let why = failure_with(&[("iperf3", &mute)], "t-mute", &[]);
    assert!(why.contains("there is no iperf3"), "{why}");
    gone(&sleeps);
    let why = failure_with(&[("iperf3", "exit 127")], "t-absent", &[]);
    assert!(why.contains("bench/peers/install.sh installs it"), "{why}");
}

#[test]
fn a_receiver_that_dies_ends_the_run_and_is_named() {
    if !can_emulate() || !can_listen() {
        return;
    }
    let sleeps = sleeper(4);
    let dies = format!(
        "case $1 in --version) echo 'iperf 9 (stand-in)'; exit;; esac
case $1 in -s) socat TCP-LISTEN:5201,fork,reuseaddr PIPE & sleep 1; kill $!; exit 3;; esac
while :; do {sleeps}; done"
    );
    let why = failure_with(&[("iperf3", &dies)], "t-dies", &["--duration", "60 s"]);
    assert!(why.contains("the other end was gone: iperf3 ended with exit status: 3"), "{why}");
    gone(&sleeps);
}

#[test]
fn datagram_spacings_are_measured_below_and_above_the_rate_of_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let refused = run(&["lab", "compare", "evlbi", "--tools", "line"], folder);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("omit --tools"), "{}", text(&refused.stderr));
    if !can_emulate() {
        return;
    }
    std::fs::write(folder.join("mine.toml"), SPACINGS).unwrap();
    let flags = ["--lab", "t-spacing", "--json", "--markdown", "mine.md", "--even-if-busy"];
    let said = run(&[&["lab", "compare", "mine.toml"], &flags[..]].concat(), folder);
    // Without losses there is no distribution, so that bar is missed.
    assert_eq!(said.status.code(), Some(1), "{}", text(&said.stderr));
    let found: serde_json::Value = serde_json::from_str(&text(&said.stdout)).unwrap();
    let points = found["points"].as_array().unwrap();
    assert_eq!(points.len(), 2, "{found}");
    assert!(points[0]["lost"].as_u64().unwrap() > 100, "{found}");
    assert_eq!(found["processes"][0]["found"]["lost"], 0, "{found}");
    let bars = found["bars"].as_array().unwrap();
    assert!(bars[bars.len() - 1]["bar"].as_str().unwrap().contains("too few"), "{found}");
    let written = std::fs::read_to_string(folder.join("mine.md")).unwrap();
    assert!(written.contains("(mine/mine-rate.svg)"), "{written}");
    assert!(
        std::fs::read_to_string(folder.join("mine/mine-rate.svg")).unwrap().contains("<style>")
    );
    assert!(!Path::new("/run/netns/skyhaul-t-spacing-a").exists());
}

#[test]
fn two_missions_share_a_line_under_our_classes_and_under_the_kernels() {
    if !can_emulate() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("mine.toml"), SHARERS).unwrap();
    let flags = ["--lab", "t-sharing", "--json", "--report", "out", "--even-if-busy"];
    let said = run(&[&["lab", "compare", "mine.toml"], &flags[..]].concat(), folder);
    // Shares on a busy machine are not judged here.
    let found: serde_json::Value = serde_json::from_str(&text(&said.stdout)).unwrap();
    assert_eq!(found["failures"].as_array().unwrap().len(), 0, "{found}");
    let sharers = found["trees"][0]["sharers"].as_array().unwrap();
    let is_skipped = !found["skipped"].as_array().unwrap().is_empty();
    if is_skipped {
        eprintln!("SKIPPED: {}", found["skipped"]);
    }
    assert_eq!(sharers.len(), if is_skipped { 1 } else { 2 }, "{found}");
    for sharer in sharers {
        let tenths = &sharer["tenths_bps"];
        let sum = |name: &str| {
            tenths[name].as_array().unwrap().iter().filter_map(|rate| rate.as_f64()).sum::<f64>()
        };
        assert_eq!(tenths["first"].as_array().unwrap().len(), 30, "{found}");
        assert!(sum("first") > 0.0 && sum("second") > 0.0, "{found}");
    }
    let page = std::fs::read_to_string(folder.join("out/compare.html")).unwrap();
    assert!(page.contains("half: one session of ours"));
    assert!(!Path::new("/run/netns/skyhaul-t-sharing-a").exists());
}
