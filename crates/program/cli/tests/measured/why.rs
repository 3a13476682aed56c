//! `skyhaul why` as its users run it: over loopback, from files, of a TCP connection; and in
//! emulated lines, where there is root.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "what tests share; what is skipped is said"
)]

use crate::causes::{FAR, Fault, PLAIN, Site, has_lab};
use crate::support::process::{Running, printed, run, text};
use crate::support::quota::Quota;
use crate::support::refusal::assert_refused;
use crate::support::schema::assert_valid;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn why(arguments: &[&str], folder: &Path) -> Output {
    run(&[&["why"], arguments].concat(), folder)
}

/// The verdict in JSON, checked against its schema.
#[track_caller]
fn judged(arguments: &[&str], folder: &Path) -> Value {
    let output = why(&[arguments, &["--json"]].concat(), folder);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid(&verdict, "why.json");
    verdict
}

/// What `skyhaul perf send --json` prints of a run of ten seconds at 5 Mbit/s.
fn run_with(waited: &Value, busiest: &Value) -> String {
    let run = json!({
        "goodput_bps": 5_000_000, "steady_bps": 5_000_000, "seconds": 10.0, "waited_s": waited,
            "busiest_thread": busiest,
        "control": { "name": "adaptive", "declared_bps": null, "payload": 1472 },
        "paths": [{ "loaded_rtt_s": 0.1, "min_rtt_s": 0.1 }],
        "losses": { "sent": 4500, "path": 0, "receive_socket": 0 },
    });
    run.to_string()
}

fn waited(application: f64, window: f64, path: f64) -> Value {
    json!({ "application": application, "window": window, "buffer": 0.0, "classes": 0.0,
        "path": path })
}

#[test]
fn a_transfer_in_a_file_is_judged_by_what_it_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let idle = json!({ "send": 0.1, "receive": 0.1 });
    let cases = [
        ("application", waited(7.0, 0.0, 3.0), idle.clone()),
        ("flow-window", waited(0.1, 9.0, 0.9), idle.clone()),
        ("controller", waited(0.0, 0.0, 10.0), idle),
        ("receiver-processor", waited(0.0, 0.0, 10.0), json!({ "send": 0.4, "receive": 0.98 })),
    ];
    for (cause, waited, busiest) in cases {
        std::fs::write(folder.path().join("run.json"), run_with(&waited, &busiest)).unwrap();
        let verdict = judged(&["run.json"], folder.path());
        assert_eq!(
            (&verdict["cause"], &verdict["far"]),
            (&cause.into(), &Value::Null),
            "{verdict:#}"
        );
        let told = printed(&["why", "run.json"], folder.path());
        for part in [
            "judged     the transfer run.json\n",
            &format!("cause      {cause}, confidence"),
            "\nto do      ",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
}

#[test]
fn a_line_and_a_transfer_over_it_are_measured_and_judged_together() {
    let folder = tempfile::tempdir().unwrap();
    let mut probe = Running::start(&["probe", "serve", "--bind", "127.0.0.1:0"], folder.path());
    let mut perf = Running::start(
        &["perf", "serve", "--bind", "127.0.0.1:0", "--insecure-test"],
        folder.path(),
    );
    let (host, to) = (probe.address(), perf.address());
    let short = ["--seconds", "4", "--max-rate", "4 Mbit/s", "--watch", "2 s"];
    let send = ["--send", &to, "--insecure-test", "--cc", "line", "--rate", "1 Mbit/s"];
    let verdict = judged(&[&[&*host], &short[..], &send].concat(), folder.path());
    let found = &verdict["found"];
    assert_eq!(
        (&verdict["far"], &found["transfer"]["declared_bps"]),
        (&host.into(), &1_000_000.into())
    );
    assert!(found["line"]["available_bps"].as_u64() > Some(0), "{found}");
    let waited = found["transfer"]["waited"].as_object().unwrap();
    let all: f64 = waited.values().filter_map(Value::as_f64).sum();
    assert!((all - 1.0).abs() < 1e-6, "{waited:?}");
}

#[test]
fn an_idle_tcp_connection_waits_for_its_application() {
    if Command::new("ss").arg("-V").output().is_err() {
        eprintln!("SKIPPED: TCP connections are read with ss, of iproute2");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let near = std::net::TcpStream::connect(&at).unwrap();
    let far = listener.accept().unwrap();
    let verdict = judged(&["--tcp", &at, "--watch", "300 ms"], folder.path());
    assert_eq!(
        (&verdict["cause"], &verdict["transfer"]),
        (&"application".into(), &format!("TCP {at}").into())
    );
    let own = std::process::id().to_string();
    assert_eq!(
        judged(&["--tcp", &own, "--watch", "100 ms"], folder.path())["cause"],
        "application"
    );
    drop((near, far));
    let nobody = why(&["--tcp", "192.0.2.1:9"], folder.path());
    assert_eq!(nobody.status.code(), Some(2));
    assert!(
        text(&nobody.stderr).contains("there is no such TCP connection, 192.0.2.1:9"),
        "{}",
        text(&nobody.stderr)
    );
}

#[test]
fn why_refuses_what_it_cannot_judge() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("old.json"), r#"{"goodput_bps":1,"bytes":2}"#).unwrap();
    std::fs::write(folder.join("other.json"), "[]").unwrap();
    assert_refused(&why(&[], folder), 2, &["there is nothing to judge", "give a host"]);
    assert_refused(&why(&["a.example", "b.example"], folder), 2, &["two hosts are given"]);
    assert_refused(&why(&["old.json", "other.json"], folder), 2, &["two transfers are given"]);
    let old = [
        "this is not what `skyhaul perf send --json` prints",
        "old.json",
        "run it again with this release",
    ];
    assert_refused(&why(&["old.json"], folder), 2, &old);
    assert_refused(&why(&["other.json"], folder), 2, &["this is not what", "other.json"]);
    let named = why(&["--tcp", "centre"], folder);
    assert!(
        text(&named.stderr).contains("`centre` does not name a TCP connection"),
        "{}",
        text(&named.stderr)
    );
}

#[test]
fn a_transfer_into_a_black_hole_for_large_packets_ends_and_why_names_the_black_hole() {
    if !has_lab() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let fault =
        Fault::of("mtu-hole", "one_way_delay = \"25 ms\", queue = \"60 kB\", largest = \"1400 B\"");
    let site = Site::new(&fault, folder.path());
    let _probe = site.serving(&["probe", "serve", "--bind", &format!("{FAR}:4720")]);
    let at = format!("{FAR}:4710");
    let _perf = site.serving(&[
        "perf",
        "serve",
        "--bind",
        &at,
        "--insecure-test",
        "--insecure-beyond-loopback",
    ]);
    let send = [
        "--send",
        &at,
        "--insecure-test",
        "--insecure-beyond-loopback",
        "--watch",
        "2 s",
        "--json",
    ];
    let both = ["why", FAR, "--seconds", "4", "--max-rate", "20 Mbit/s"];
    for asked in [&both[..], &["why"]] {
        let output = site.lab.inside("a", &[asked, &send].concat()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_valid(&verdict, "why.json");
        assert_eq!(verdict["cause"], "mtu-black-hole", "{verdict:#}");
    }
}

#[test]
fn why_distinguishes_cross_traffic_from_a_queue_and_from_a_cautious_controller() {
    if !has_lab() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let fault = Fault::of("other-traffic", PLAIN);
    let site = Site::new(&fault, folder.path());
    let _probe = site.serving(&["probe", "serve", "--bind", &format!("{FAR}:4720")]);
    let (at, theirs) = (format!("{FAR}:4710"), format!("{FAR}:4711"));
    let _perf = site.serving(&[
        "perf",
        "serve",
        "--bind",
        &at,
        "--insecure-test",
        "--insecure-beyond-loopback",
    ]);
    let _others = site.serving(&[
        "perf",
        "serve",
        "--bind",
        &theirs,
        "--insecure-test",
        "--insecure-beyond-loopback",
    ]);
    let fill = [
        "perf",
        "send",
        "--to",
        &theirs,
        "--insecure-test",
        "--insecure-beyond-loopback",
        "--cc",
        "cubic",
        "--duration",
        "300 s",
    ];
    let mut filling =
        Running::of(site.lab.inside("a", &fill).stdout(Stdio::null()).stderr(Stdio::null()));
    let ask = ["why", FAR, "--seconds", "12", "--max-rate", "30 Mbit/s", "--json"];
    let send = ["--send", &at, "--insecure-test", "--insecure-beyond-loopback", "--watch", "6 s"];
    let output = site.lab.inside("a", &[&ask[..], &send].concat()).output().unwrap();
    filling.kill();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(verdict["cause"], "other-traffic", "{verdict:#}");
}

#[test]
fn why_names_a_receiver_with_an_exhausted_processor_quota_though_it_is_mostly_idle() {
    let quota = match Quota::of(4) {
        Ok(quota) => quota,
        Err(reason) => return eprintln!("SKIPPED: no processor quota can be had: {reason}"),
    };
    let folder = tempfile::tempdir().unwrap();
    let serve = ["perf", "serve", "--bind", "127.0.0.1:0", "--insecure-test"];
    let mut serving =
        Running::of(quota.command(env!("CARGO_BIN_EXE_skyhaul"), &serve).stdout(Stdio::piped()));
    let to = serving.address();
    let verdict = judged(&["--send", &to, "--insecure-test", "--watch", "4 s"], folder.path());
    assert_eq!(verdict["cause"], "receiver-processor", "{verdict:#}");
    let lack = &verdict["found"]["transfer"]["receiver_lack"];
    assert!(lack["throttled"].as_f64() > Some(0.3), "{verdict:#}");
    assert!(verdict["found"]["transfer"]["receiver_share"].as_f64() < Some(0.3), "{verdict:#}");
    assert!(
        verdict["what_to_do"].as_str().unwrap().starts_with("raise the processor quota"),
        "{verdict:#}"
    );
    serving.kill();
}
