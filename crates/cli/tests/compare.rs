//! Tools beside each other on an emulated line, as a person compares them. Needs root, network namespaces and TUN devices.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "what tests share; what is skipped is said")]

mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use support::process::{printed, run, text};

const MINE: &str = "name = \"mine\"\ntitle = \"a thin line\"\nsource = \"this test\"\nduration = \"2 s\"
tools = [\"adaptive\", \"tcp-nosuchcontrol\"]\n[line]\nseed = 1\n[[line.link]]\nname = \"thin\"
both = { rate = \"5 Mbit/s\", one_way_delay = \"5 ms\" }\n[[cell]]\nlabel = \"clean\"
published = { \"adaptive\" = \"4 Mbit/s\" }\n";

fn can_emulate() -> bool {
    let can = rustix::process::geteuid().is_root() && Path::new("/dev/net/tun").exists();
    if !can {
        eprintln!("SKIPPED: emulated links need root and /dev/net/tun");
    }
    can
}

#[test]
fn a_comparison_measures_names_what_is_not_there_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(printed(&["lab", "compare"], folder).contains("dsn-93"));
    let unknown = run(&["lab", "compare", "dsn-94"], folder);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("no experiment is called `dsn-94`"), "{}", text(&unknown.stderr));
    if !can_emulate() {
        return;
    }
    std::fs::write(folder.join("mine.toml"), MINE).unwrap();
    let said =
        printed(&["lab", "compare", "mine.toml", "--lab", "t-compare", "--json", "--report", "out"], folder);
    let found: serde_json::Value = serde_json::from_str(&said).unwrap();
    let tool = &found["cells"][0]["tools"][0];
    let reached = tool["median_bps"].as_f64().unwrap_or_else(|| panic!("{said}"));
    assert!((1e6..5e6).contains(&reached), "{said}");
    assert_eq!(tool["published_bps"], 4_000_000);
    assert!(
        found["skipped"]["tcp-nosuchcontrol"].as_str().unwrap().contains("no congestion control"),
        "{said}"
    );
    let page = std::fs::read_to_string(folder.join("out/compare.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("adaptive at clean"));
    assert!(!Path::new("/run/netns/skyhaul-t-compare-a").exists());

    let mut interrupted = Command::new(env!("CARGO_BIN_EXE_skyhaul"))
        .args(["lab", "compare", "mine.toml", "--lab", "t-compare", "--duration", "60 s"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(interrupted.stderr.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("mine: clean, adaptive"), "{first}");
    kill_process(Pid::from_child(&interrupted), Signal::INT).unwrap();
    assert_eq!(interrupted.wait().unwrap().code(), Some(130));
    assert!(
        !Path::new("/run/netns/skyhaul-t-compare-a").exists()
            && !Path::new("/run/skyhaul/lab/t-compare").exists()
    );
}
