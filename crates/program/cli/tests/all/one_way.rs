//! `skyhaul one-way` as its users run it: files over loopback and a lossy proxy, and what is
//! refused.

use crate::support::process::{Running, printed, run, text};
use crate::support::recordings::noise;
use crate::support::refusal::assert_refused;
use std::path::Path;

/// A folder with a key and a file of this many bytes.
fn folder(len: usize) -> (tempfile::TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    assert!(printed(&["keygen", "pass.key", "--one-way"], folder.path()).starts_with("one-way:"));
    let content = noise(len);
    std::fs::write(folder.path().join("pass.bin"), &content).expect("the folder can be written");
    (folder, content)
}

/// A listening command, and its address.
fn listening(arguments: &[&str], folder: &Path) -> (Running, String) {
    let mut running = Running::start(arguments, folder);
    let address = running.address();
    (running, address)
}

/// A receiver of one session, which stores files in the folder `out`.
fn receiving(out: &str, folder: &Path) -> (Running, String) {
    let receive = ["one-way", "receive", "--bind", "127.0.0.1:0", "--key", "pass.key", "--once"];
    listening(&[&receive[..], &["--out", out]].concat(), folder)
}

#[test]
fn files_arrive_complete_and_each_end_reports_what_it_knows() {
    let (folder, content) = folder(3_000_000);
    std::fs::write(folder.path().join("empty.txt"), "").unwrap();
    let (far, address) = receiving("in", folder.path());
    let output = run(
        &[
            "one-way",
            "send",
            "pass.bin",
            "empty.txt",
            "--to",
            &address,
            "--key",
            "pass.key",
            "--rate",
            "80mbit",
            "--loss",
            "5%",
            "--burst",
            "8",
            "--json",
        ],
        folder.path(),
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("leaves:"), "{}", text(&output.stderr));
    let sent: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(sent["bytes"], 3_000_000);
    assert!(sent["expected"]["residual"].as_f64().unwrap() <= 1e-6);
    assert!(sent["blocks"]["residual"].as_f64().unwrap() <= 1e-6);
    let ended = far.end();
    let printed = ended.output;
    assert_eq!(ended.code, Some(0), "{printed}");
    assert!(
        printed.contains("pass.bin: whole, 3000000 bytes") && printed.contains(" 0 lost"),
        "{printed}"
    );
    assert_eq!(std::fs::read(folder.path().join("in/pass.bin")).unwrap(), content);
    assert_eq!(std::fs::read(folder.path().join("in/empty.txt")).unwrap(), b"");
    assert_eq!(std::fs::read_dir(folder.path().join("in")).unwrap().count(), 2);
}

#[test]
fn files_beyond_repair_are_named_and_kept_and_completed_by_a_repetition() {
    let (folder, content) = folder(2_000_000);
    // The proxy loses far more than the sender assumes.
    let proxied = |repeat: &str, out: &str| {
        let (far, address) = receiving(out, folder.path());
        let proxy = ["emulate", "--listen", "127.0.0.1:0", "--to", &address, "--loss", "4%"];
        let (_proxy, by_proxy) = listening(&proxy, folder.path());
        let sent = run(
            &[
                "one-way",
                "send",
                "pass.bin",
                "--to",
                &by_proxy,
                "--key",
                "pass.key",
                "--rate",
                "80mbit",
                "--loss",
                "1%",
                "--residual",
                "1%",
                "--block",
                "8 KiB",
                "--repeat",
                repeat,
                "--every",
                "10ms",
            ],
            folder.path(),
        );
        assert!(sent.status.success(), "{}", text(&sent.stderr));
        let ended = far.end();
        (ended.code, ended.output)
    };
    let (code, printed) = proxied("1", "once");
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("pass.bin: incomplete") && printed.contains("missing: "), "{printed}");
    let partial = std::fs::read(folder.path().join("once/pass.bin.partial")).unwrap();
    let gaps = std::fs::read_to_string(folder.path().join("once/pass.bin.gaps")).unwrap();
    let mut at = 0;
    for line in gaps.lines() {
        let (start, end) = line.split_once(' ').unwrap();
        let (start, end): (usize, usize) = (start.parse().unwrap(), end.parse().unwrap());
        assert_eq!(partial[at..start], content[at..start]);
        at = end;
    }
    assert!(at > 0 && partial[at.min(partial.len())..] == content[at..partial.len().max(at)]);
    let (code, printed) = proxied("12", "often");
    assert_eq!(code, Some(0), "{printed}");
    assert_eq!(std::fs::read(folder.path().join("often/pass.bin")).unwrap(), content);
}

#[test]
fn perf_reports_at_the_receiving_end_what_arrived() {
    let (folder, _) = folder(10);
    let serve = ["perf", "serve", "--bind", "127.0.0.1:0", "--one-way", "pass.key", "--once"];
    let (far, address) = listening(&serve, folder.path());
    let output = run(
        &[
            "perf",
            "send",
            "--to",
            &address,
            "--one-way",
            "pass.key",
            "--rate",
            "50mbit",
            "--bytes",
            "1000000 B",
            "--block",
            "10 KiB",
            "--json",
        ],
        folder.path(),
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let sent: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let ended = far.end();
    assert_eq!(ended.code, Some(0));
    let came: serde_json::Value = serde_json::from_str(ended.output.trim()).unwrap();
    assert_eq!(came["bytes"], sent["bytes"]);
    assert_eq!((&came["blocks"]["lost"], &came["runs_missing"]), (&0.into(), &0.into()));
    assert_eq!(came["blocks"]["delivered"].as_u64(), sent["blocks"]["sent"].as_u64());
    assert!(came["latency_by_both_clocks_s"]["p50"].as_f64().unwrap() > 0.0);
}

#[test]
fn impossible_values_are_refused_with_what_to_do() {
    let (folder, _) = folder(10);
    let cases: [(&[&str], i32, &[&str]); 5] = [
        (
            &["one-way", "plan", "--rate", "20mbit", "--loss", "95%"],
            2,
            &["no repair within", "give more time"],
        ),
        (
            &["one-way", "plan", "--rate", "20mbit", "--burst", "8", "--budget", "1ms"],
            2,
            &["shorter than the assumed bursts"],
        ),
        (
            &[
                "one-way",
                "send",
                "nothing.bin",
                "--to",
                "127.0.0.1:9",
                "--key",
                "pass.key",
                "--rate",
                "1mbit",
            ],
            3,
            &["the file cannot be read", "nothing.bin"],
        ),
        (
            &[
                "one-way",
                "send",
                "pass.bin",
                "--to",
                "127.0.0.1:9",
                "--key",
                "pass.bin",
                "--rate",
                "1mbit",
            ],
            3,
            &["the key cannot be read", "pass.bin"],
        ),
        (&["perf", "send", "--to", "127.0.0.1:9", "--one-way", "pass.key"], 2, &["give --rate"]),
    ];
    for (arguments, exit, parts) in cases {
        assert_refused(&run(arguments, folder.path()), exit, parts);
    }
}
