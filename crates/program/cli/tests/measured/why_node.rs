//! `skyhaul why` for a running station and a running centre: what their session waits for, with
//! real processes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::process::{Running, printed, run, text};
use crate::support::refusal::assert_refused;
use crate::support::schema::assert_valid;
use crate::support::site::{Site, channel};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;

/// The verdict in JSON, checked against its schema.
#[track_caller]
fn judged(arguments: &[&str], folder: &Path) -> Value {
    let output = run(&[&["why", "--json", "--watch", "1500 ms"], arguments].concat(), folder);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid(&verdict, "why.json");
    verdict
}

fn figure(verdict: &Value, path: &str) -> f64 {
    verdict["found"]["transfer"]
        .pointer(path)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("{verdict:#}"))
}

/// A station that keeps running, with an open line.
fn station(site: &Site, tables: &str) -> Running {
    site.write(tables);
    let station = site.start_to_stay();
    site.until(|status| (status["destinations"][0]["line"]["state"] == "open").then_some(()));
    station
}

#[test]
fn a_station_without_a_downlink_waits_for_its_input_and_the_centre_for_the_station() {
    let site = Site::new();
    let _station =
        station(&site, "[[channel]]\nname = \"x\"\ninput = \"tcp-listen:127.0.0.1:0\"\n");
    let verdict = judged(&["--node", "spool/status.sock"], site.folder());
    assert_eq!(verdict["cause"], "application", "{verdict:#}");
    let said = verdict["sentence"].as_str().unwrap();
    assert!(
        said.starts_with("nothing waits to be sent: all that the receiver brings, 0.00 Mbit/s, "),
        "{said}"
    );
    assert_eq!(verdict["found"]["transfer"]["source"], "live");
    // Nothing can be done about the speed of an antenna.
    let to_do = verdict["what_to_do"].as_str().unwrap();
    assert!(to_do.starts_with("nothing: ") && to_do.contains("look at the antenna"), "{to_do}");
    let parts = verdict["found"]["transfer"]["waited"].as_object().unwrap();
    let all: f64 = parts.values().filter_map(Value::as_f64).sum();
    assert!((all - 1.0).abs() < 1e-6, "{parts:?}");
    assert_eq!((figure(&verdict, "/source_bps"), figure(&verdict, "/waiting_bytes")), (0.0, 0.0));
    assert!(figure(&verdict, "/window_bytes") > 0.0);
    assert_eq!(verdict["found"]["transfer"]["controller"], "adaptive");
    let told = printed(&["why", "--config", "station.toml", "--watch", "500 ms"], site.folder());
    assert!(told.starts_with("judged     the transfer of station s to 127.0.0.1:"), "{told}");
    assert!(told.contains("cause      application, confidence"), "{told}");
    let shown = site.shown("station.toml");
    assert!(shown.contains("waited for the spool ") && shown.contains("the paths "), "{shown}");

    let far = judged(&["--config", "centre.toml", "--with", "s"], site.folder());
    assert_eq!(
        (&far["cause"], &far["transfer"]),
        (&"other-end".into(), &"of station s to centre c".into())
    );
    assert_eq!(far["found"]["transfer"]["seen_from"], "receiver");
    assert!(figure(&far, "/disk_share") < 0.5 && figure(&far, "/waited/window") < 0.2, "{far:#}");
}

#[test]
fn why_reports_the_rate_of_a_slow_downlink() {
    let site = Site::new();
    // The recording takes minutes at this rate.
    let _station = station(&site, &channel("rate = \"100 kbit/s\"\n"));
    let verdict = judged(&["--config", "station.toml"], site.folder());
    assert_eq!(verdict["cause"], "application", "{verdict:#}");
    assert!(figure(&verdict, "/waited/application") > 0.2, "{verdict:#}");
    let evidence = verdict["evidence"].to_string();
    assert!(evidence.contains("came in; "), "{evidence}");
}

#[test]
fn a_station_with_a_declared_rate_waits_for_its_path_and_a_probe_reports_the_rate_of_the_line() {
    let site = Site::new();
    let mut probe = Running::start(&["probe", "serve", "--bind", "127.0.0.1:0"], site.folder());
    let host = probe.address();
    let _station = station(&site, &format!("[line]\nrate = \"500 kbit/s\"\n{}", channel("")));
    site.until(|status| {
        (status["destinations"][0]["line"]["bytes_reported"].as_u64() > Some(0)).then_some(())
    });
    let verdict = judged(&["--config", "station.toml"], site.folder());
    assert_eq!(verdict["cause"], "declared-rate", "{verdict:#}");
    assert!(figure(&verdict, "/waited/path") > 0.5, "{verdict:#}");
    assert_eq!((figure(&verdict, "/declared_bps"), figure(&verdict, "/payload")), (5e5, 1_472.0));
    assert!(figure(&verdict, "/waiting_bytes") > 0.0, "{verdict:#}");
    let line = ["--config", "station.toml", "--seconds", "4", "--max-rate", "4 Mbit/s"];
    let with_line = judged(&[&[&*host], &line[..]].concat(), site.folder());
    assert_eq!(with_line["far"], host.as_str());
    assert!(with_line["found"]["line"]["available_bps"].as_u64() > Some(0), "{with_line:#}");
    assert_eq!(with_line["found"]["transfer"]["declared_bps"], 500_000);
}

#[test]
fn why_does_not_call_a_dead_line_full() {
    let site = Site::new();
    let proxy = ["emulate", "--listen", "127.0.0.1:0", "--to", &site.address, "--delay", "5ms"];
    let mut proxy = Running::start(&proxy, site.folder());
    let by_proxy = proxy.address();
    let path = format!("[[path]]\nremote = \"{by_proxy}\"\n");
    let _station = station(&site, &format!("{path}{}", channel("rate = \"2 Mbit/s\"\n")));
    site.until(|status| {
        (status["destinations"][0]["line"]["bytes_reported"].as_u64() > Some(0)).then_some(())
    });
    // From now on, the line loses every datagram in both directions.
    proxy.signal(Signal::STOP);
    site.until(|status| {
        (status["destinations"][0]["line"]["paths"][0]["state"] != "open").then_some(())
    });
    let output = run(&["why", "--json", "--config", "station.toml"], site.folder());
    proxy.signal(Signal::CONT);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(!said.contains("line-full"), "{said}");
}

#[test]
fn why_refuses_a_node_without_a_session_and_contradictory_arguments() {
    let mut site = Site::new();
    let why = |arguments: &[&str]| {
        run(&[&["why", "--watch", "300 ms"], arguments].concat(), site.folder())
    };
    let nobody = ["no station is connected to this centre", "state/status.sock", "start one"];
    assert_refused(&why(&["--config", "centre.toml", "--json"]), 4, &nobody);
    assert_refused(
        &why(&["--node", "nowhere.sock", "--json"]),
        3,
        &["no node is running", "nowhere.sock", "start it"],
    );
    assert_refused(&why(&["--with", "s", "--json"]), 2, &["--with s applies to a node"]);
    let two = why(&["--node", "state/status.sock", "centre.toml", "--json"]);
    assert_refused(&two, 2, &["two transfers are given"]);
    let both = why(&["--node", "state/status.sock", "--tcp", "1", "--json"]);
    assert_eq!(both.status.code(), Some(2), "{}", text(&both.stderr));

    let running = station(&site, &channel("rate = \"300 kbit/s\"\n"));
    let why = |arguments: &[&str]| {
        run(&[&["why", "--watch", "300 ms"], arguments].concat(), site.folder())
    };
    let other = why(&["--config", "centre.toml", "--with", "x", "--json"]);
    assert_refused(&other, 4, &["station x is not connected to this centre", "connected are s"]);
    let named = why(&["--config", "station.toml", "--with", "x", "--json"]);
    assert_refused(&named, 2, &["this node has no destination `x`", "its destinations are"]);
    drop(running);
    site.kill_centre();
    let _alone = site.start_to_stay();
    site.until(|status| {
        status["destinations"][0]["line"]["peer"].as_str().filter(|peer| !peer.is_empty()).map(drop)
    });
    let why = |arguments: &[&str]| {
        run(&[&["why", "--watch", "300 ms"], arguments].concat(), site.folder())
    };
    let down =
        ["the station has no session with its centre at 127.0.0.1:", "config check --connect"];
    assert_refused(&why(&["--config", "station.toml", "--json"]), 4, &down);
}
