//! `skyhaul tune` as its users run it: another host's settings from a folder, this host's, and
//! changes in a network of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use crate::support::ports::ClosedTcp;
use crate::support::process::{printed, run, text};
use crate::support::refusal::{assert_misused, assert_told};
use crate::support::schema::assert_valid;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A copy of the bundled host's `/proc` and `/sys`, whose send buffers are long enough.
fn host(root: &Path) {
    let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata/host"));
    copy(source, root);
    fs::write(root.join("proc/sys/net/ipv4/tcp_wmem"), "4096\t16384\t67108864\n").unwrap();
    fs::remove_file(root.join("proc/sys/net/ipv4/tcp_timestamps")).unwrap();
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn finding<'a>(result: &'a Value, setting: &str) -> &'a Value {
    let findings = result["findings"].as_array().unwrap();
    findings
        .iter()
        .find(|one| one["setting"] == setting)
        .unwrap_or_else(|| panic!("{setting} in {result}"))
}

#[test]
fn tune_shows_what_the_settings_allow_what_the_line_needs_and_how_to_change_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    host(at);
    let asked = ["tune", "--root", ".", "--rtt", "148ms", "--rate", "1gbit"];
    let result: Value = serde_json::from_str(&printed(
        &[&asked[..], &["--json", "--write", "new.conf"]].concat(),
        at,
    ))
    .unwrap();
    assert_valid(&result, "tune.json");
    // 6 MiB, of which half is window, in 148 ms.
    assert_eq!(result["today"]["bps"], (3_145_728u64 * 8 * 1_000).div_euclid(148));
    assert_eq!(result["today"]["limit"], "receive_buffer");
    assert_eq!(
        (&result["after"]["bps"], &result["after"]["limit"]),
        (&1_000_000_000.into(), &"line".into())
    );
    assert_eq!(finding(&result, "net.ipv4.tcp_rmem")["change"]["to"], "4096 131072 37748736");
    assert_eq!(finding(&result, "net.ipv4.tcp_wmem")["state"], "good");
    assert_eq!(finding(&result, "net.ipv4.tcp_timestamps")["state"], "unknown");
    assert_eq!(finding(&result, "clock source")["state"], "short");
    assert_eq!(finding(&result, "net.ipv4.tcp_congestion_control")["change"]["to"], "bbr");
    // The file changes the settings as the result says, and its undo reverts them.
    let settings = |file: &str| -> Vec<String> {
        let text = fs::read_to_string(at.join(file)).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    };
    let changes: Vec<(String, String)> = result["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["change"].as_object())
        .map(|change| {
            let text = |key: &str| change[key].as_str().unwrap();
            (
                format!("{} = {}", text("key"), text("to")),
                format!("{} = {}", text("key"), text("from")),
            )
        })
        .collect();
    assert!(changes.len() >= 4, "{changes:?}");
    let (new, old): (Vec<_>, Vec<_>) = changes.into_iter().unzip();
    assert_eq!((settings("new.conf"), settings("new.conf.undo")), (new, old));
    // An existing file is not overwritten: it may be the only way back.
    let again = run(&[&asked[..], &["--write", "new.conf"]].concat(), at);
    assert_told(&again, 3, &["the file cannot be written", "new.conf"]);
    let shown = printed(&asked, at);
    assert!(
        shown.contains("one TCP connection reaches 170.") && shown.contains("after the changes"),
        "{shown}"
    );
}

#[test]
fn the_interface_of_the_default_route_gives_the_rate_of_the_line() {
    let folder = tempfile::tempdir().unwrap();
    host(folder.path());
    let printed = printed(&["tune", "--root", ".", "--rtt", "100ms", "--json"], folder.path());
    let result: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(
        (&result["rate_bps"], &result["interface"]),
        (&10_000_000_000u64.into(), &"wan0".into())
    );
    assert_eq!(finding(&result, "wan0 packet size")["state"], "short");
    assert_eq!(finding(&result, "processor frequency")["is"], "powersave");
    assert_eq!(finding(&result, "net.core.netdev_max_backlog")["state"], "unknown");
}

#[test]
fn the_round_trip_to_a_port_is_measured_whether_it_is_open_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let open = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = ClosedTcp::new();
    for address in [open.local_addr().unwrap(), closed.address()] {
        let to = address.to_string();
        let printed = printed(&["tune", "--to", &to, "--rate", "1gbit", "--json"], folder.path());
        let result: Value = serde_json::from_str(&printed).unwrap();
        assert_valid(&result, "tune.json");
        assert_eq!((&result["to"], &result["round_trip_measured"]), (&to.into(), &true.into()));
        assert!(result["round_trip_s"].as_f64().unwrap() > 0.0, "{result}");
    }
}

#[test]
fn changes_are_made_on_request_and_reverted_by_undo() {
    let folder = tempfile::tempdir().unwrap();
    let script = "set -e; cat /proc/sys/net/ipv4/tcp_rmem; \
                  \"$0\" tune --rate 1gbit --rtt 600ms --write new.conf --apply --json > /dev/null \
                  || true; \
                  cat /proc/sys/net/ipv4/tcp_rmem; grep tcp_rmem new.conf.undo | cut -d= -f2";
    let mut apart = Command::new("unshare");
    apart
        .args(["--net", "sh", "-c", script, env!("CARGO_BIN_EXE_skyhaul")])
        .current_dir(folder.path());
    let Ok(output) = apart.stdin(Stdio::null()).output() else {
        println!("SKIPPED: unshare (util-linux) is not installed");
        return;
    };
    if text(&output.stderr).contains("Operation not permitted") {
        println!("SKIPPED: a network namespace needs root");
        return;
    }
    let printed = text(&output.stdout);
    let lines: Vec<Vec<&str>> =
        printed.lines().map(|line| line.split_whitespace().collect()).collect();
    let [before, after, undo] = &lines[..] else { panic!("{printed}{}", text(&output.stderr)) };
    assert_eq!(before, undo, "the way back");
    // 75 MB are under way, in a buffer of twice that.
    assert_eq!(after[2], "150994944", "{printed}");
    assert_eq!((after[0], after[1]), (before[0], before[1]));
}

#[test]
fn impossible_values_are_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let told = |arguments: &[&str], code: i32, what: &str, place: &str| {
        assert_told(&run(&[&["tune"], arguments].concat(), at), code, &[what, place]);
    };
    told(&["--root", ".", "--rtt", "1ms"], 2, "there are no kernel settings to read", "proc/sys");
    told(&["--to", "nobody.invalid"], 3, "the host has no address", "nobody.invalid");
    told(
        &["--rtt", "1ms", "--rate", "1gbit", "--interface", "none7"],
        2,
        "there is no such interface",
        "none7",
    );
    host(at);
    fs::remove_file(at.join("sys/class/net/wan0/speed")).unwrap();
    told(&["--root", ".", "--rtt", "1ms"], 2, "wan0 does not report its speed", "--rate");
    assert_misused(&run(&["tune", "--rate", "1gbit"], at), &["--rtt"]);
    assert_misused(&run(&["tune", "--rate", "1gbit", "--rtt", "1ms", "--apply"], at), &["--write"]);
}
