//! `skyhaul perf` as its users run it: both ends over loopback, and what it refuses. Speed is not
//! judged here.
#![allow(clippy::disallowed_methods, reason = "a line changes beside the processes")]

use crate::support::process::{Ended, Running, printed, run, text};
use crate::support::refusal::{assert_misused, assert_told};
use serde_json::Value;
use skyhaul_emulator::proxy::{LinkProxy, ProxyConfig, ProxyLine};
use skyhaul_link::{LinkConfig, Loss};
use skyhaul_units::{Duration, Probability, Rate};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};

/// A serving end, and the addresses that it says it listens on.
struct Serving {
    running: Running,
    addresses: Vec<String>,
}

impl Serving {
    fn start(arguments: &[&str], folder: &Path) -> Self {
        let serve = ["perf", "serve", "--bind", "127.0.0.1:0"];
        let mut running = Running::start(&[&serve, arguments].concat(), folder);
        let addresses = running.addresses();
        Self { running, addresses }
    }

    /// The first address.
    fn address(&self) -> &str {
        &self.addresses[0]
    }

    #[track_caller]
    fn end(self) -> Ended {
        self.running.end()
    }
}

fn send(arguments: &[&str], folder: &Path) -> Output {
    run(&[&["perf", "send"], arguments].concat(), folder)
}

/// The result of a run that succeeded: the last line that it printed.
#[track_caller]
fn result(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    serde_json::from_str(printed.lines().last().unwrap_or_default()).expect("the last line is JSON")
}

/// The share of the goodput of each path. Together the paths carried what arrived.
#[track_caller]
fn shares(result: &Value) -> Vec<f64> {
    let rate = |of: &Value| of["goodput_bps"].as_u64().unwrap_or_default();
    let paths = result["paths"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert_eq!(paths.iter().map(rate).sum::<u64>(), rate(result), "{result}");
    paths.iter().map(|path| rate(path) as f64 / rate(result) as f64).collect()
}

/// Asserts that nothing was sent, and the reason. Notes about what the system grants may come
/// before.
#[track_caller]
fn assert_no_run(output: &Output, exit: i32, parts: &[&str]) {
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    assert_told(output, exit, parts);
}

#[test]
fn perf_delivers_counts_and_times_data_at_both_ends() {
    let here = Path::new(".");
    let serving = Serving::start(&["--insecure-test", "--once"], here);
    let output = send(
        &[
            "--to",
            serving.address(),
            "--insecure-test",
            "--bytes",
            "5000000 B",
            "--block",
            "64 KiB",
            "--json",
        ],
        here,
    );
    let result = result(&output);
    let blocks = |name: &str| result["blocks"][name].as_u64().unwrap();
    assert_eq!(result["bytes"], 5_000_000);
    assert_eq!(blocks("delivered") + blocks("repaired"), 5_000_000_u64.div_ceil(64 * 1024));
    assert_eq!(blocks("expired"), 0);
    for (part, names) in [
        (&result, &["goodput_bps", "seconds"][..]),
        (&result["latency_s"], &["p50", "p99", "p999", "max"]),
        (&result["cpu_s"], &["send", "receive"]),
        (&result["paths"][0], &["goodput_bps", "rtt_s"]),
    ] {
        for name in names {
            assert!(part[name].as_f64().is_some_and(|value| value > 0.0), "{name}: {result}");
        }
    }
    let (seconds, rate) =
        (result["seconds"].as_f64().unwrap(), result["goodput_bps"].as_f64().unwrap());
    assert!((rate * seconds / 8.0 - 5e6).abs() < 5e3, "{result}");
    assert_eq!(result["paths"][0]["remote"], serving.address());
    for name in ["local", "loss", "repair_sent", "repair_used"] {
        assert!(!result["paths"][0][name].is_null(), "{name}: {result}");
    }
    let ended = serving.end();
    assert_eq!(ended.code, Some(0));
    assert!(ended.output.contains("5.0 MB in"), "{}", ended.output);
}

#[test]
fn perf_prints_a_text_report_of_a_declared_path_with_large_packets() {
    let here = Path::new(".");
    let serving = Serving::start(&["--insecure-test", "--once", "--mtu", "9000 B"], here);
    let path = format!("127.0.0.1:0={}", serving.address());
    let line = ["--cc", "line", "--rate", "1 Gbit/s", "--mtu", "9000 B"];
    let run = ["--path", &path, "--insecure-test", "--duration", "200 ms", "--loss-report"];
    let output = send(&[&run[..], &line].concat(), here);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for part in ["goodput", "blocks", "latency", "processor", "path      127.0.0.1:", "losses"] {
        assert!(text(&output.stdout).contains(part), "{}", text(&output.stdout));
    }
    assert_eq!(serving.end().code, Some(0));
}

#[test]
fn a_stream_with_a_deadline_goes_over_two_paths() {
    let here = Path::new(".");
    let serving = Serving::start(&["127.0.0.1:0", "--insecure-test", "--once"], here);
    let paths: Vec<String> =
        serving.addresses.iter().map(|remote| format!("127.0.0.1:0={remote}")).collect();
    let [first, second] = &paths[..] else { panic!("{paths:?}") };
    let stream =
        ["--block", "10 kB", "--offer", "40 Mbit/s", "--deadline", "10 s", "--bytes", "2500000 B"];
    let way = ["--path", first, "--path", second, "--insecure-test", "--json"];
    let output = send(&[&way[..], &stream].concat(), here);
    let result = result(&output);
    let blocks =
        ["delivered", "repaired", "expired"].map(|name| result["blocks"][name].as_u64().unwrap());
    assert_eq!(blocks.iter().sum::<u64>(), 250, "{result}");
    // At 40 Mbit/s a block is due each 2 ms, the first at once.
    assert!(result["seconds"].as_f64().unwrap() > 0.49, "{result}");
    assert_eq!(blocks[2], 0, "{result}");
    let remotes: Vec<&str> = result["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| path["remote"].as_str().unwrap())
        .collect();
    assert_eq!(remotes, serving.addresses);
    assert_eq!(shares(&result).len(), 2);
    assert_eq!(serving.end().code, Some(0));
}

/// The path with the longer delay gets only data that the other path would not have sent by the
/// time at which it arrives over the longer one. If less data waits, the longer path gets nothing.
/// Here both have the same rate, the delay of one is twenty times that of the other, and it has had
/// time to find its rate.
#[test]
fn a_path_with_a_long_round_trip_is_used_beside_a_path_with_a_short_one() {
    let here = Path::new(".");
    let serving = Serving::start(&["127.0.0.1:0", "--insecure-test", "--once"], here);
    let proxies =
        [("10 ms", &serving.addresses[0]), ("200 ms", &serving.addresses[1])].map(|(delay, to)| {
            let line = ["--delay", delay, "--rate", "40 Mbit/s", "--queue", "500 kB"];
            let mut proxy = Running::start(
                &[&["emulate", "--listen", "127.0.0.1:0", "--to", to], &line[..]].concat(),
                here,
            );
            let path = format!("127.0.0.1:0={}", proxy.address());
            (proxy, path)
        });
    let [(near, first), (far, second)] = proxies;
    let way = ["--path", &first, "--path", &second, "--insecure-test", "--json"];
    let output = send(&[&way[..], &["--duration", "7 s", "--block", "64 KiB"]].concat(), here);
    let result = result(&output);
    assert!(shares(&result)[1] > 0.15, "{result}");
    // The sender's goodbye comes over the proxies.
    assert_eq!(serving.end().code, Some(0));
    for proxy in [near, far] {
        proxy.signal(rustix::process::Signal::INT);
        assert_eq!(proxy.end().code, Some(0));
    }
}

#[test]
fn lanes_carry_one_stream_between_two_ends() {
    let here = Path::new(".");
    let serving = Serving::start(&["--lanes", "2", "--insecure-test", "--once"], here);
    assert_eq!(serving.addresses.len(), 1, "all lanes have one address");
    let lanes = [
        "--to",
        serving.address(),
        "--lanes",
        "3",
        "--bytes",
        "20 MB",
        "--insecure-test",
        "--json",
    ];
    let output = send(&lanes, here);
    let result = result(&output);
    assert_eq!(result["bytes"], 20_000_000);
    let paths = result["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 3);
    let shares = shares(&result);
    // Which of them is the fastest at first depends on the machine. One alone would not have room
    // for everything.
    assert!(shares.iter().filter(|share| **share > 0.001).count() >= 2, "{shares:?}: {result}");
    let locals: std::collections::BTreeSet<&str> =
        paths.iter().map(|path| path["local"].as_str().unwrap()).collect();
    assert_eq!(locals.len(), 3, "each has a port of its own: {result}");
    assert_eq!(serving.end().code, Some(0));
}

#[test]
fn perf_reads_the_key_from_its_file_and_refuses_a_stranger() {
    let folder = tempfile::tempdir().unwrap();
    let keys = ["serving.key", "sending.key", "stranger.key"]
        .map(|file| printed(&["keygen", file], folder.path()).trim().to_owned());
    let serving =
        Serving::start(&["--key", "serving.key", "--peer", &keys[1], "--once"], folder.path());
    let to = ["--to", serving.address(), "--bytes", "100 kB", "--peer", &keys[0]];
    let stranger = send(&[&to[..], &["--key", "stranger.key"]].concat(), folder.path());
    assert_no_run(&stranger, 4, &["does not trust our key", &keys[2]]);
    let test_key = send(&["--to", serving.address(), "--insecure-test"], folder.path());
    assert_no_run(&test_key, 4, &["key is not the expected"]);
    let known = send(&[&to[..], &["--key", "sending.key"]].concat(), folder.path());
    assert_eq!(known.status.code(), Some(0), "{}", text(&known.stderr));
    assert_eq!(serving.end().code, Some(0));
}

#[test]
fn perf_needs_keys_unless_the_test_is_declared_insecure() {
    let here = Path::new(".");
    let help = "--insecure-test on both ends";
    assert_no_run(&send(&["--to", "127.0.0.1:9"], here), 2, &["the keys are missing", help]);
    let serve = run(&["perf", "serve", "--bind", "127.0.0.1:0"], here);
    assert_no_run(&serve, 2, &["the keys are missing", help]);
    let absent =
        send(&["--to", "127.0.0.1:9", "--key", "absent.key", "--peer", &fingerprint('0')], here);
    assert_no_run(&absent, 3, &["the key cannot be read", "absent.key"]);
}

#[test]
fn perf_warns_of_the_public_test_key_and_does_not_use_it_beyond_loopback_unasked() {
    let here = Path::new(".");
    let serving = Serving::start(&["--insecure-test", "--once"], here);
    let sent = send(&["--to", serving.address(), "--insecure-test", "--bytes", "100 kB"], here);
    assert_eq!(sent.status.code(), Some(0), "{}", text(&sent.stderr));
    assert!(text(&sent.stderr).starts_with("warning: --insecure-test: this key is public"));
    assert_eq!(serving.end().code, Some(0));
    for node in ["192.0.2.1:4710", "[2001:db8::1]:4710", "[::ffff:192.0.2.1]:4710"] {
        let refused = send(&["--to", node, "--insecure-test"], here);
        assert_no_run(&refused, 2, &["is for loopback, and", "--insecure-beyond-loopback"]);
    }
    let further =
        [&["perf", "serve"][..], &["files", "serve", "--root", "."], &["stream", "serve"]];
    for serve in further.into_iter().chain([&["forward", "serve", "--allow", "10.0.0.5:80"][..]]) {
        let bind = ["--bind", "0.0.0.0:0", "--insecure-test"];
        assert_no_run(
            &run(&[serve, &bind].concat(), here),
            2,
            &["0.0.0.0:0 is not", "--insecure-beyond-loopback"],
        );
    }
    let alone = send(&["--to", "127.0.0.1:9", "--insecure-beyond-loopback"], here);
    assert_misused(&alone, &["--insecure-test"]);
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    printed(&["keygen", "open.key"], folder.path());
    let key = folder.path().join("open.key");
    for mode in [0o644, 0o640, 0o604] {
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        let flags = ["--to", "127.0.0.1:9", "--key", "open.key", "--peer", &fingerprint('0')];
        assert_no_run(
            &send(&flags, folder.path()),
            3,
            &["other users can read it", "open.key", "chmod 600"],
        );
    }
}

#[test]
fn impossible_flags_are_refused_with_what_to_write() {
    let taken = ["--path", "127.0.0.1:4711=127.0.0.1:4710", "--lanes", "2", "--insecure-test"];
    assert_no_run(
        &send(&taken, Path::new(".")),
        2,
        &["cannot share the local port 4711", "give port 0"],
    );
    let here = Path::new(".");
    let to = ["--to", "127.0.0.1:9", "--insecure-test"];
    for (flags, part) in [
        (&["--cc", "cubik"][..], "use one of line, adaptive, reno"),
        (&["--cc", "line"], "give --rate"),
        (&["--rate", "1 Gbit/s"], "give --cc line"),
        (&["--mtu", "900 B"], "such as 1500 B or 9000 B"),
        (&["--mtu", "70000 B"], "such as 1500 B or 9000 B"),
        (&["--block", "4 B"], "give --block 8 B to"),
        (&["--block", "16 MiB"], "give --block 8 B to"),
        (&["--duration", "1 s", "--bytes", "1 MB"], "cannot be used with"),
        (&["--path", "127.0.0.1:0"], "LOCAL=REMOTE"),
        (&["--peer", "SHA256:zz"], "keygen"),
    ] {
        assert_misused(&send(&[&to[..], flags].concat(), here), &[part]);
    }
    let nameless = send(&["--to", "127.0.0.1", "--insecure-test"], here);
    assert_no_run(&nameless, 2, &["`127.0.0.1` is not found", "a host and a port"]);
    assert_misused(&send(&["--insecure-test"], here), &["--to"]);
}

fn fingerprint(digit: char) -> String {
    format!("SHA256:{}", String::from(digit).repeat(64))
}

#[test]
fn a_run_uses_tcp_on_request_and_with_auto_udp_if_it_answers() {
    let here = Path::new(".");
    for (transport, over) in [("tcp", "tcp"), ("auto", "udp"), ("udp", "udp")] {
        let serving = Serving::start(&["--tcp", "--insecure-test", "--once"], here);
        let run = ["--to", serving.address(), "--insecure-test", "--bytes", "3000000 B", "--json"];
        let output = send(&[&run[..], &["--transport", transport]].concat(), here);
        let result = result(&output);
        assert_eq!(result["bytes"], 3_000_000, "{transport}");
        assert_eq!(result["paths"][0]["over"], over, "{transport}");
        assert_eq!(serving.end().code, Some(0));
    }
}

#[test]
fn a_port_without_a_serving_end_refuses_a_call_over_tcp_at_once() {
    let unused =
        std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let to = unused.to_string();
    let output = send(&["--to", &to, "--transport", "tcp", "--insecure-test"], Path::new("."));
    assert_no_run(
        &output,
        4,
        &["cannot be reached", "onnection refused", "no firewall blocks TCP"],
    );
}

#[test]
fn perf_counts_the_bytes_of_each_class_separately() {
    let here = Path::new(".");
    let serving = Serving::start(&["--insecure-test", "--once"], here);
    let classes = [
        "--class",
        "first:guarantee=15mbit",
        "--class",
        "second:guarantee=5mbit,from=200ms,until=700ms",
    ];
    let line = [
        "--insecure-test",
        "--json",
        "--cc",
        "line",
        "--rate",
        "20mbit",
        "--duration",
        "1s",
        "--block",
        "8 KiB",
    ];
    let output = send(&[&["--to", serving.address()][..], &line, &classes].concat(), here);
    let result = result(&output);
    serving.end();
    let of = |class: &Value| -> u64 {
        class["tenths"].as_array().expect("a course").iter().filter_map(Value::as_u64).sum()
    };
    let classes = result["classes"].as_array().expect("classes");
    assert_eq!(
        (&classes[0]["name"], &classes[1]["name"]),
        (&Value::from("first"), &Value::from("second"))
    );
    assert_eq!(classes[1]["from_s"], 0.2, "{result}");
    assert!(of(&classes[0]) > 0 && of(&classes[1]) > 0, "{result}");
    assert_eq!(
        of(&classes[0]) + of(&classes[1]),
        result["bytes"].as_u64().expect("bytes"),
        "{result}"
    );
}

#[test]
fn impossible_classes_are_refused_before_anything_is_sent() {
    let here = Path::new(".");
    for (class, part) in [
        ("a:rate=3mbit", "`rate` is not known"),
        ("a:guarantee=3mbit,ceiling=2mbit", "above its ceiling"),
    ] {
        let output = send(&["--to", "127.0.0.1:9", "--insecure-test", "--class", class], here);
        assert_misused(&output, &[part]);
    }
}

/// While a path was silent, the sender accepted all that its buffer holds, a quarter of a gigabyte.
/// A run of 12 s over 20 Mbit/s then took two minutes.
#[test]
fn no_backlog_builds_up_behind_an_outage() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(&["--insecure-test", "--once"], folder.path());
    let line = LinkConfig::line(Rate::from_mbps(20), Duration::from_millis(5));
    let way = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = ProxyConfig::new(way, serving.address().parse().unwrap(), line.clone());
    let mut proxy = LinkProxy::bind(config).unwrap();
    let (handle, address) = (proxy.handle(), way.to_string());
    let stop = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| proxy.run(&stop).unwrap());
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_secs(1));
            handle.set(
                ProxyLine::Up,
                LinkConfig { loss: Loss::Independent(Probability::ONE), ..line.clone() },
            );
            std::thread::sleep(std::time::Duration::from_secs(3));
            handle.set(ProxyLine::Up, line.clone());
        });
        let arguments = ["--to", &address, "--duration", "5 s", "--insecure-test", "--json"];
        let output = send(&arguments, folder.path());
        stop.store(true, Ordering::Relaxed);
        output
    });
    let result = result(&output);
    // The line carries 12.5 MB in 5 s.
    let sent = result["bytes"].as_u64().unwrap();
    assert!((1_000_000..30_000_000).contains(&sent), "{result}");
}
