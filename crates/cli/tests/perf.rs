//! `skyhaul perf` as its users run it: both ends over loopback, and what it refuses. Speed is not judged here.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// A serving end; ended when the test is.
struct Serving {
    child: Child,
    output: BufReader<ChildStdout>,
    /// The first address.
    address: String,
    addresses: Vec<String>,
}

impl Serving {
    fn start(arguments: &[&str], folder: &Path) -> Self {
        let mut child = program(folder)
            .args(["perf", "serve", "--bind", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut output = BufReader::new(child.stdout.take().expect("it was piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("it says where it listens");
        let addresses: Vec<String> = line.split_whitespace().skip(2).map(str::to_owned).collect();
        let address = addresses.first().expect("it says where it listens").clone();
        Self { child, output, address, addresses }
    }

    /// Waits for its end: exit code and the rest of what it printed.
    fn end(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().expect("it ends");
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("it writes UTF-8");
        (status.code(), rest)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It has ended already where the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skyhaul"));
    command.current_dir(folder);
    command
}

fn send(arguments: &[&str], folder: &Path) -> Output {
    program(folder).args(["perf", "send"]).args(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn assert_refused(output: &Output, exit: i32, parts: &[&str]) {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "{error}");
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

#[test]
fn what_is_sent_is_delivered_counted_and_timed_at_both_ends() {
    let here = Path::new(".");
    let serving = Serving::start(&["--insecure-test", "--once"], here);
    let output = send(
        &["--to", &serving.address, "--insecure-test", "--bytes", "5000000 B", "--block", "64 KiB", "--json"],
        here,
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    let result: serde_json::Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
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
            assert!(part[name].as_f64().is_some_and(|value| value > 0.0), "{name}: {printed}");
        }
    }
    let (seconds, rate) = (result["seconds"].as_f64().unwrap(), result["goodput_bps"].as_f64().unwrap());
    assert!((rate * seconds / 8.0 - 5e6).abs() < 5e3, "{printed}");
    assert_eq!(result["paths"][0]["remote"], serving.address.as_str());
    for name in ["local", "loss", "repair_sent", "repair_used"] {
        assert!(!result["paths"][0][name].is_null(), "{name}: {printed}");
    }
    let (code, rest) = serving.end();
    assert_eq!(code, Some(0));
    assert!(rest.contains("5.0 MB in"), "{rest}");
}

#[test]
fn the_same_in_words_over_a_declared_path_with_large_packets() {
    let here = Path::new(".");
    let serving = Serving::start(&["--insecure-test", "--once", "--mtu", "9000 B"], here);
    let path = format!("127.0.0.1:0={}", serving.address);
    let line = ["--cc", "line", "--rate", "1 Gbit/s", "--mtu", "9000 B"];
    let run = ["--path", &path, "--insecure-test", "--duration", "200 ms", "--loss-report"];
    let output = send(&[&run[..], &line].concat(), here);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for part in ["goodput", "blocks", "latency", "processor", "path      127.0.0.1:", "losses"] {
        assert!(text(&output.stdout).contains(part), "{}", text(&output.stdout));
    }
    assert_eq!(serving.end().0, Some(0));
}

#[test]
fn two_paths_carry_one_stream_with_a_deadline() {
    let here = Path::new(".");
    let serving = Serving::start(&["127.0.0.1:0", "--insecure-test", "--once"], here);
    let paths: Vec<String> = serving.addresses.iter().map(|remote| format!("127.0.0.1:0={remote}")).collect();
    let [first, second] = &paths[..] else { panic!("{paths:?}") };
    let stream = ["--block", "10 kB", "--offer", "40 Mbit/s", "--deadline", "10 s", "--duration", "500 ms"];
    let way = ["--path", first, "--path", second, "--insecure-test", "--json"];
    let output = send(&[&way[..], &stream].concat(), here);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    let result: serde_json::Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    let blocks = ["delivered", "repaired", "expired"].map(|name| result["blocks"][name].as_u64().unwrap());
    // 40 Mbit/s for half a second, in blocks of 10 kB; one more may begin at its end.
    assert!((250..=251).contains(&blocks.iter().sum::<u64>()), "{printed}");
    assert_eq!(blocks[2], 0, "{printed}");
    let remotes: Vec<&str> =
        result["paths"].as_array().unwrap().iter().map(|path| path["remote"].as_str().unwrap()).collect();
    assert_eq!(remotes, serving.addresses);
    assert_eq!(serving.end().0, Some(0));
}

#[test]
fn lanes_carry_one_stream_between_two_ends() {
    let here = Path::new(".");
    let serving = Serving::start(&["--lanes", "2", "--insecure-test", "--once"], here);
    assert_eq!(serving.addresses.len(), 1, "all lanes have one address");
    let run = ["--to", &serving.address, "--lanes", "3", "--bytes", "20 MB", "--insecure-test", "--json"];
    let output = send(&run, here);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    let result: serde_json::Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    assert_eq!(result["bytes"], 20_000_000);
    let paths = result["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 3);
    let carried: u64 = paths.iter().map(|path| path["goodput_bps"].as_u64().unwrap()).sum();
    assert!(carried > 0, "{printed}");
    let locals: std::collections::BTreeSet<&str> =
        paths.iter().map(|path| path["local"].as_str().unwrap()).collect();
    assert_eq!(locals.len(), 3, "each has a port of its own: {printed}");
    assert_eq!(serving.end().0, Some(0));
}

#[test]
fn a_key_is_taken_from_its_file_and_a_stranger_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let keys = ["serving.key", "sending.key", "stranger.key"].map(|file| {
        let made = program(folder.path()).args(["keygen", file]).output().unwrap();
        text(&made.stdout).trim().to_owned()
    });
    let serving = Serving::start(&["--key", "serving.key", "--peer", &keys[1], "--once"], folder.path());
    let to = ["--to", &serving.address, "--bytes", "100 kB", "--peer", &keys[0]];
    let stranger = send(&[&to[..], &["--key", "stranger.key"]].concat(), folder.path());
    assert_refused(&stranger, 4, &["does not trust our key", &keys[2]]);
    let test_key = send(&["--to", &serving.address, "--insecure-test"], folder.path());
    assert_refused(&test_key, 4, &["another key"]);
    let known = send(&[&to[..], &["--key", "sending.key"]].concat(), folder.path());
    assert_eq!(known.status.code(), Some(0), "{}", text(&known.stderr));
    assert_eq!(serving.end().0, Some(0));
}

#[test]
fn keys_are_made_up_only_where_it_is_said_to_be_insecure() {
    let here = Path::new(".");
    let help = "--insecure-test on both ends";
    assert_refused(&send(&["--to", "127.0.0.1:9"], here), 2, &["the keys are missing", help]);
    let serve = program(here).args(["perf", "serve", "--bind", "127.0.0.1:0"]).output().unwrap();
    assert_refused(&serve, 2, &["the keys are missing", help]);
    let absent = send(&["--to", "127.0.0.1:9", "--key", "absent.key", "--peer", &fingerprint('0')], here);
    assert_refused(&absent, 3, &["the key cannot be read", "absent.key"]);
}

#[test]
fn what_cannot_be_is_refused_with_what_to_write() {
    let taken = ["--path", "127.0.0.1:4711=127.0.0.1:4710", "--lanes", "2", "--insecure-test"];
    assert_refused(&send(&taken, Path::new(".")), 2, &["cannot share the local port 4711", "give port 0"]);
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
        assert_refused(&send(&[&to[..], flags].concat(), here), 2, &[part]);
    }
    let nameless = send(&["--to", "127.0.0.1", "--insecure-test"], here);
    assert_refused(&nameless, 2, &["`127.0.0.1` is not found", "a host and a port"]);
    assert_refused(&send(&["--insecure-test"], here), 2, &["--to"]);
}

fn fingerprint(digit: char) -> String {
    format!("SHA256:{}", String::from(digit).repeat(64))
}

#[test]
fn a_run_goes_over_tcp_where_that_is_asked_for_and_automatically_over_udp_where_that_answers() {
    let here = Path::new(".");
    for (transport, over) in [("tcp", "tcp"), ("auto", "udp"), ("udp", "udp")] {
        let serving = Serving::start(&["--tcp", "--insecure-test", "--once"], here);
        let run = ["--to", &serving.address, "--insecure-test", "--bytes", "3000000 B", "--json"];
        let output = send(&[&run[..], &["--transport", transport]].concat(), here);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(report["bytes"], 3_000_000, "{transport}");
        assert_eq!(report["paths"][0]["over"], over, "{transport}");
        assert_eq!(serving.end().0, Some(0));
    }
}

#[test]
fn a_port_without_a_serving_end_refuses_a_call_over_tcp_at_once() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let to = unused.to_string();
    let output = send(&["--to", &to, "--transport", "tcp", "--insecure-test"], Path::new("."));
    assert_refused(&output, 4, &["cannot be reached", "onnection refused", "TCP passes"]);
}
