//! `skyhaul one-way` as its users run it: files over loopback and a lossy relay, and what is refused.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// A process that says where it listens; ended when the test is.
struct Listening {
    child: Child,
    output: BufReader<ChildStdout>,
    address: String,
}

impl Listening {
    fn start(arguments: &[&str], folder: &Path) -> Self {
        let mut child = program(folder)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut output = BufReader::new(child.stdout.take().expect("it was piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("it says where it listens");
        let is_address = |word: &&str| word.parse::<std::net::SocketAddr>().is_ok();
        let address = line.split_whitespace().find(is_address).expect("it says where it listens").to_owned();
        Self { child, output, address }
    }

    fn end(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().expect("it ends");
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("it writes UTF-8");
        (status.code(), rest)
    }
}

impl Drop for Listening {
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

fn run(arguments: &[&str], folder: &Path) -> Output {
    program(folder).args(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder with a key and a file of pseudo-random bytes.
fn folder(len: usize) -> (tempfile::TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let output = run(&["keygen", "pass.key", "--one-way"], folder.path());
    assert!(output.status.success() && text(&output.stdout).starts_with("one-way:"));
    let mut state = 1u64;
    let content: Vec<u8> = (0..len)
        .map(|_| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 56) as u8
        })
        .collect();
    std::fs::write(folder.path().join("pass.bin"), &content).expect("the folder can be written");
    (folder, content)
}

#[test]
fn files_arrive_whole_and_each_end_says_what_it_knows() {
    let (folder, content) = folder(3_000_000);
    std::fs::write(folder.path().join("empty.txt"), "").unwrap();
    let far = Listening::start(
        &["one-way", "receive", "--bind", "127.0.0.1:0", "--key", "pass.key", "--out", "in", "--once"],
        folder.path(),
    );
    let output = run(
        &[
            "one-way",
            "send",
            "pass.bin",
            "empty.txt",
            "--to",
            &far.address,
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
    let (code, printed) = far.end();
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("pass.bin: whole, 3000000 bytes") && printed.contains(" 0 lost"), "{printed}");
    assert_eq!(std::fs::read(folder.path().join("in/pass.bin")).unwrap(), content);
    assert_eq!(std::fs::read(folder.path().join("in/empty.txt")).unwrap(), b"");
    assert_eq!(std::fs::read_dir(folder.path().join("in")).unwrap().count(), 2);
}

#[test]
fn what_no_repair_brings_back_is_named_kept_and_brought_by_a_repetition() {
    let (folder, content) = folder(2_000_000);
    // The relay loses far more than is assumed.
    let relayed = |repeat: &str, out: &str| {
        let far = Listening::start(
            &["one-way", "receive", "--bind", "127.0.0.1:0", "--key", "pass.key", "--out", out, "--once"],
            folder.path(),
        );
        let relay = Listening::start(
            &["relay", "--listen", "127.0.0.1:0", "--to", &far.address, "--loss", "4%"],
            folder.path(),
        );
        let sent = run(
            &[
                "one-way",
                "send",
                "pass.bin",
                "--to",
                &relay.address,
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
        far.end()
    };
    let (code, printed) = relayed("1", "once");
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
    let (code, printed) = relayed("12", "often");
    assert_eq!(code, Some(0), "{printed}");
    assert_eq!(std::fs::read(folder.path().join("often/pass.bin")).unwrap(), content);
}

#[test]
fn perf_says_at_the_receiving_end_what_came() {
    let (folder, _) = folder(10);
    let far = Listening::start(
        &["perf", "serve", "--bind", "127.0.0.1:0", "--one-way", "pass.key", "--once"],
        folder.path(),
    );
    let output = run(
        &[
            "perf",
            "send",
            "--to",
            &far.address,
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
    let (code, printed) = far.end();
    assert_eq!(code, Some(0));
    let came: serde_json::Value = serde_json::from_str(printed.trim()).unwrap();
    assert_eq!(came["bytes"], sent["bytes"]);
    assert_eq!((&came["blocks"]["lost"], &came["runs_missing"]), (&0.into(), &0.into()));
    assert_eq!(came["blocks"]["delivered"].as_u64(), sent["blocks"]["sent"].as_u64());
    assert!(came["latency_by_both_clocks_s"]["p50"].as_f64().unwrap() > 0.0);
}

#[test]
fn what_cannot_be_is_refused_with_what_to_do() {
    let (folder, _) = folder(10);
    let cases: [(&[&str], &[&str]); 5] = [
        (&["one-way", "plan", "--rate", "20mbit", "--loss", "95%"], &["no repair within", "give more time"]),
        (
            &["one-way", "plan", "--rate", "20mbit", "--burst", "8", "--budget", "1ms"],
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
            &["the file cannot be read", "nothing.bin"],
        ),
        (
            &["one-way", "send", "pass.bin", "--to", "127.0.0.1:9", "--key", "pass.bin", "--rate", "1mbit"],
            &["pass.bin"],
        ),
        (&["perf", "send", "--to", "127.0.0.1:9", "--one-way", "pass.key"], &["give --rate"]),
    ];
    for (arguments, parts) in cases {
        let output = run(arguments, folder.path());
        let error = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(2 | 3)), "{error}");
        assert!(output.stdout.is_empty() && parts.iter().all(|part| error.contains(part)), "{error}");
    }
}
