//! `skyhaul why` for a receiver with a slow disk: a real disk that the kernel slows down.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "what tests share; what is skipped is said"
)]

use crate::support::process::{Running, printed, run, text};
use crate::support::refusal::assert_told;
use crate::support::schema::assert_valid;
use crate::support::site::Site;
use crate::support::slow_disk::SlowDisk;
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

const PROGRAM: &str = env!("CARGO_BIN_EXE_skyhaul");

/// What the slow disk writes in a second. Loopback carries a hundred times as much.
const RATE: u64 = 1_000_000;

#[track_caller]
fn judged(arguments: &[&str], folder: &Path) -> Value {
    let output = run(&[&["why", "--json"], arguments].concat(), folder);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid(&verdict, "why.json");
    verdict
}

#[track_caller]
fn share(verdict: &Value, path: &str) -> f64 {
    verdict["found"]["transfer"]
        .pointer(path)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("{verdict:#}"))
}

#[test]
fn perf_removes_the_kept_data_at_the_end_and_reports_the_share_of_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let serve =
        ["perf", "serve", "--bind", "127.0.0.1:0", "--insecure-test", "--once", "--keep", "."];
    let mut serving = Running::start(&serve, folder);
    let to = serving.address();
    let kept =
        || std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>();
    let file = kept().swap_remove(0);
    assert!(file.display().to_string().ends_with(".keep"), "{}", file.display());
    let send = ["perf", "send", "--to", &to, "--insecure-test", "--bytes", "20000000 B", "--json"];
    let report: Value =
        serde_json::from_str(printed(&send, folder).lines().last().unwrap()).unwrap();
    let disk = report["disk_share"].as_f64().unwrap();
    assert!(disk > 0.0 && disk <= 1.0, "{report}");
    assert_eq!(report["bytes"], 20_000_000);
    assert_eq!(serving.end().code, Some(0));
    assert!(kept().is_empty(), "{:?}", kept());
    for (flag, value, exit, parts) in [
        ("--keep", "nowhere", 3, ["received data cannot be kept", "nowhere/skyhaul-perf-"]),
        ("--window", "1 KiB", 2, ["a --window of 1 KiB is not possible", "give 64 KiB to 256 MiB"]),
    ] {
        let refused = run(
            &["perf", "serve", "--bind", "127.0.0.1:0", "--insecure-test", flag, value],
            folder,
        );
        assert_told(&refused, exit, &parts);
    }
    let small = [
        "perf",
        "serve",
        "--bind",
        "127.0.0.1:0",
        "--insecure-test",
        "--keep",
        ".",
        "--keep-size",
        "1 B",
    ];
    assert_told(&run(&small, folder), 2, &["is less than a block", "give 16 MiB or more"]);
}

#[test]
fn why_names_the_slow_disk_of_a_receiver_that_keeps_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let slow = match SlowDisk::below(folder, RATE) {
        Ok(slow) => slow,
        Err(reason) => return eprintln!("SKIPPED: no slow disk can be had: {reason}"),
    };
    let kept = folder.display().to_string();
    let serve = [
        "perf",
        "serve",
        "--bind",
        "127.0.0.1:0",
        "--insecure-test",
        "--keep",
        &kept,
        "--window",
        "2 MiB",
    ];
    let mut serving =
        Running::of(slow.command(PROGRAM, &serve).stdout(Stdio::piped()).stderr(Stdio::null()));
    let to = serving.address();
    // A pause of the machine or of its disk in one of the runs looks like an outage.
    let watch = || judged(&["--send", &to, "--insecure-test", "--watch", "5 s"], folder);
    let mut verdict = watch();
    for _ in 1..6 {
        if verdict["cause"] == "receiver-disk" {
            break;
        }
        verdict = watch();
    }
    assert_eq!(verdict["cause"], "receiver-disk", "{verdict:#}");
    assert!(
        share(&verdict, "/disk_share") > 0.5 && share(&verdict, "/waited/window") > 0.2,
        "{verdict:#}"
    );
    let told = verdict["sentence"].as_str().unwrap();
    assert!(told.starts_with("the receiver's disk takes no more"), "{told}");
    serving.kill();
}

#[test]
fn why_names_a_slow_disk_behind_a_large_window() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let slow = match SlowDisk::below(folder, RATE) {
        Ok(slow) => slow,
        Err(reason) => return eprintln!("SKIPPED: no slow disk can be had: {reason}"),
    };
    let kept = folder.display().to_string();
    // The window holds what arrives in a hundred seconds.
    let serve = ["perf", "serve", "--bind", "127.0.0.1:0", "--insecure-test", "--keep", &kept];
    let mut serving =
        Running::of(slow.command(PROGRAM, &serve).stdout(Stdio::piped()).stderr(Stdio::null()));
    let to = serving.address();
    let send =
        ["--send", &to, "--insecure-test", "--watch", "6 s", "--cc", "line", "--rate", "20 Mbit/s"];
    let verdict = judged(&send, folder);
    assert_eq!(verdict["cause"], "receiver-disk", "{verdict:#}");
    assert!(share(&verdict, "/waited/window") < 0.2, "{verdict:#}");
    let told = verdict["sentence"].as_str().unwrap();
    assert!(told.starts_with("the receiver's disk is slow: it takes "), "{told}");
    assert!(
        verdict["evidence"].to_string().contains("received and not written yet"),
        "{verdict:#}"
    );
    serving.kill();
}

#[test]
fn why_names_the_slow_disk_of_a_centre_at_both_ends() {
    let mut site = Site::with("[session]\nreceive_window = \"1 MiB\"\n");
    let slow = match SlowDisk::below(site.folder(), RATE) {
        Ok(slow) => slow,
        Err(reason) => return eprintln!("SKIPPED: no slow disk can be had: {reason}"),
    };
    site.kill_centre();
    let mut centre = slow.command(PROGRAM, &["run", "centre.toml"]);
    site.centre =
        Running::of(centre.current_dir(site.folder()).stdout(Stdio::null()).stderr(Stdio::null()));
    site.address = site.centre_until(|status| {
        Some(status["address"].as_str()?.to_owned()).filter(|address| !address.is_empty())
    });
    // Twenty times what the disk takes in a second.
    let file = site.folder().join("pass.dat");
    let made = ["generate", "--mission", "noaa-21", "--frames", "20000", "--output", "pass.dat"];
    printed(&made, site.folder());
    site.write(&format!("[[channel]]\nname = \"x\"\ninput = \"file:{}\"\n", file.display()));
    let station = site.start_to_stay();
    site.until(|status| (status["destinations"][0]["line"]["held_back"] == true).then_some(()));
    // At the same time: the file lasts for 20 s, and for less where the kernel writes some of it on
    // its own account.
    let (near, far) = std::thread::scope(|scope| {
        let watch = |config| judged(&["--config", config, "--watch", "3 s"], site.folder());
        let far = scope.spawn(move || watch("centre.toml"));
        (watch("station.toml"), far.join().unwrap())
    });
    drop(station);
    site.kill_centre();
    assert_eq!(near["cause"], "receiver-disk", "{near:#}");
    assert!(
        share(&near, "/waited/window") > 0.2 && near["found"]["transfer"]["disk_share"].is_null()
    );
    assert_eq!(far["cause"], "receiver-disk", "{far:#}");
    assert!(share(&far, "/disk_share") > 0.5, "{far:#}");
}
