//! The probe on known lines: its results agree with the settings of the lines, and missing
//! datagrams are counted at the place that dropped them. Needs root and network namespaces; skipped
//! without. Nothing is judged that a slow machine makes worse.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::places::{Cable, Lab, can, printed_by};
use crate::support::process::{Running, printed};
use crate::support::schema::found;
use serde_json::Value;
use std::process::Stdio;

const LINE: &str = r#"[[link]]
name = "line"
mtu = 1400
up = { rate = "20 Mbit/s", one_way_delay = "30 ms", queue = "100 kB", loss = { kind = "independent", probability = "2 %" } }
down = { rate = "10 Mbit/s", one_way_delay = "20 ms", queue = "100 kB", reordering = { probability = "5 %", extra_delay = "5 ms" } }
"#;

#[test]
fn a_probe_measures_what_an_emulated_line_was_set_to() {
    if !can("emulated links", "/dev/net/tun") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("line.toml"), LINE).unwrap();
    let lab = Lab::up("t-report", "line.toml", folder);
    let mut serving = lab.probe("b", &["serve", "--bind", "198.18.0.2:4720"]);
    let mut far = Running::of(serving.stdout(Stdio::piped()).stderr(Stdio::null()));
    let address = far.address();
    let words =
        [&address, "--seconds", "10", "--max-rate", "60 Mbit/s", "--json", "--report", "line.html"];
    let line = found(&lab.probe("a", &words).output().unwrap(), "probe-survey.json");
    let number = |pointer: &str| line.pointer(pointer).and_then(Value::as_f64).unwrap();

    // No datagram is faster than the line allows, by the clocks of the kernel and of the emulator.
    let trip = number("/round_trip_ms/min");
    assert!(trip >= 49.9, "{trip}");
    assert_eq!((number("/up/path_mtu"), number("/down/path_mtu")), (1_400.0, 1_400.0));
    for (way, most, one_way) in [("up", 20e6, 30.0), ("down", 10e6, 20.0)] {
        let rate = number(&format!("/{way}/available/ip_bits_per_second"));
        assert!(rate <= most * 1.05 && rate > 0.0, "{way}: {rate}");
        let (delay, uncertainty) =
            (number(&format!("/{way}/one_way_ms/min")), number("/clocks/uncertainty_ms"));
        assert!(delay >= one_way - uncertainty, "{way}: {delay} ± {uncertainty}");
        let count = |name: &str| number(&format!("/{way}/account/{name}"));
        let host: f64 = ["card", "softnet", "socket"]
            .iter()
            .map(|at| count(&format!("receiving_host/{at}")))
            .sum();
        let sender = count("dropped_by_sender") + count("dropped_in_sending_queue");
        let sum = sender + count("lost_on_path") + host + count("received") + count("unexplained");
        assert!(
            (count("offered") - sum).abs() < 0.5 && count("unexplained") <= 0.0,
            "{}",
            line[way]["account"]
        );
    }
    // At least six deviations of the binomial distribution below the mean. Drops in the queue of a
    // slow emulator come on top, and the emulator has counted them.
    let sent = number("/up/account/offered");
    let lost = number("/up/account/lost_on_path");
    let least = 6.0f64.mul_add(-(sent * 0.02 * 0.98).sqrt(), sent * 0.02);
    let status: Value =
        serde_json::from_str(&printed(&["lab", "status", "--json", "--lab", "t-report"], folder))
            .unwrap();
    let dropped: u64 = ["lost", "queue_dropped", "device_dropped", "refused"]
        .iter()
        .filter_map(|name| status["status"]["links"][0]["up"][*name].as_u64())
        .sum();
    assert!(
        lost >= least && lost <= dropped as f64,
        "{least} {lost} of {sent}, the line dropped {dropped}"
    );
    assert!(number("/down/reordering/reordered") > 0.0, "{}", line["down"]);
    assert!(std::fs::read_to_string(folder.join("line.html")).unwrap().contains("1400, 1400"));
}

#[test]
fn a_probe_does_not_blame_the_path_for_drops_of_a_queue_in_the_sending_host() {
    if !can("network namespaces", "/proc/self/ns/net") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cable = Cable::new("t-report-cable", 1_500);
    // Half of what is sent is more than this queue carries.
    let queue = "tc qdisc add dev cable root tbf rate 2mbit burst 3000 limit 6000";
    printed_by(&mut cable.at(0, &queue.split(' ').collect::<Vec<_>>()));
    let program = env!("CARGO_BIN_EXE_skyhaul");
    let mut serving = cable.at(1, &[program, "probe", "serve", "--bind", "198.18.9.2:0"]);
    let mut far = Running::of(serving.stdout(Stdio::piped()).stderr(Stdio::null()));
    let address = far.address();
    let words =
        [program, "probe", "loss", &address, "--rate", "4 Mbit/s", "--seconds", "2", "--json"];
    let up =
        found(&cable.at(0, &words).current_dir(folder.path()).output().unwrap(), "probe-loss.json");
    let count = |found: &Value, name: &str| found["account"][name].as_i64().unwrap();
    let missing = count(&up, "offered") - count(&up, "received");
    // All of them, except what the receiving host may have dropped as well.
    assert!(
        missing > 100 && count(&up, "dropped_in_sending_queue") > missing * 9 / 10,
        "{}",
        up["account"]
    );
    assert!(count(&up, "unexplained") <= 0, "{}", up["account"]);
    assert!(
        up["account"]["notes"][0].as_str().unwrap().contains("sending host"),
        "{}",
        up["account"]
    );
    // The other direction has no such queue.
    let down = [&words[..], &["--direction", "down"]].concat();
    let down = found(&cable.at(0, &down).output().unwrap(), "probe-loss.json");
    assert_eq!(count(&down, "dropped_in_sending_queue"), 0, "{}", down["account"]);
}
