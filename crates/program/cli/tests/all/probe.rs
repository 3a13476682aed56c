//! `skyhaul probe` as its users run it: both ends over loopback, and what it refuses. Speed is not
//! judged here.
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

use crate::support::page::Page;
use crate::support::patience::until;
use crate::support::ports::{ClosedUdp, free_port};
use crate::support::process::{Running, printed, run, text};
use crate::support::refusal::{assert_refused, assert_told};
use crate::support::schema::assert_valid;
use rustix::process::Signal;
use serde_json::Value;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn serve(arguments: &[&str], folder: &Path) -> Running {
    Running::start(&[&["probe", "serve", "--bind", "127.0.0.1:0"], arguments].concat(), folder)
}

fn probe(arguments: &[&str], folder: &Path) -> Output {
    run(&[&["probe"], arguments].concat(), folder)
}

#[test]
fn a_survey_finds_the_loopback_interface_and_its_counts_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut far = serve(&[], folder.path());
    let address = far.address();
    let quick =
        [&address, "--seconds", "2", "--max-rate", "10 Mbit/s", "--json", "--series", "all.csv"];
    let quick = [&quick[..], &["--pings", "pings.jsonl", "--report", "pages"]].concat();
    let output = probe(&quick, folder.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_valid(&found, "probe-survey.json");
    for way in [&found["up"], &found["down"]] {
        let count = |name: &str| way["account"][name].as_i64().unwrap();
        let host = &way["account"]["receiving_host"];
        let dropped: i64 =
            ["card", "softnet", "socket"].iter().map(|place| host[*place].as_i64().unwrap()).sum();
        let explained =
            count("dropped_by_sender") + count("lost_on_path") + dropped + count("received");
        assert_eq!(count("offered"), explained + count("unexplained"), "{way}");
        assert!(count("received") > 0 && way["path_mtu"].as_u64() >= Some(1_260), "{way}");
    }
    let series = std::fs::read_to_string(folder.path().join("all.csv")).unwrap();
    let packets = |way: &str| found[way]["sum"]["packets"].as_u64().unwrap();
    assert_eq!(series.lines().count() as u64, 1 + packets("up") + packets("down"));
    assert!(
        series.starts_with("stream,direction,payload,seq,planned_s,one_way_ms,arrival\n0,up,"),
        "{series}"
    );
    let pings = std::fs::read_to_string(folder.path().join("pings.jsonl")).unwrap();
    let trips = |line: &str| {
        serde_json::from_str::<Value>(line).unwrap()["round_trip_ms"].as_f64().unwrap()
    };
    assert!(
        pings.lines().map(trips).all(|trip| trip > 0.0) && pings.lines().count() > 5,
        "{pings}"
    );
    let page = Page::read(&folder.path().join("pages/survey.html"));
    assert!(
        page.source()
            .contains(&format!("<td class=\"word\">sum: sent</td><td>{}</td>", packets("up")))
    );
    far.signal(Signal::INT);
    let ended = far.end();
    assert_eq!(ended.code, Some(0));
    assert!(ended.output.starts_with("1 measurements, 0 refused"), "{}", ended.output);
}

#[test]
fn a_far_end_that_is_absent_foreign_or_of_another_version_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let closed = ClosedUdp::new();
    let free = closed.address().to_string();
    assert_refused(
        &probe(&[&free], folder.path()),
        4,
        &["nobody listens there", &free, "skyhaul probe serve"],
    );
    assert_told(
        &probe(&[&answering(b"who is there?")], folder.path()),
        4,
        &["what answers there is no probe"],
    );
    let later = answering(b"SkhP\x09\x05\0\0\0\0\0\0\0\0\0");
    let parts =
        ["the far end speaks version 9 of the probe's protocol", "install the same release"];
    assert_told(&probe(&[&later], folder.path()), 4, &parts);
}

#[test]
fn the_results_of_sweep_loss_and_paths_fit_their_schemas() {
    let folder = tempfile::tempdir().unwrap();
    let mut far = serve(&[], folder.path());
    let address = far.address();
    let measured = |arguments: &[&str], schema: &str| -> Value {
        let output = probe(&[arguments, &["--json"]].concat(), folder.path());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let found = serde_json::from_str(&text(&output.stdout)).unwrap();
        assert_valid(&found, schema);
        found
    };
    let sizes = [
        "--report",
        "pages",
        "--payload",
        "200,1000",
        "--spacing",
        "200us,1ms",
        "--count",
        "200",
        "--direction",
        "down",
    ];
    let swept = measured(&[&["sweep", &address][..], &sizes].concat(), "probe-sweep.json");
    assert_eq!(swept["points"].as_array().map(Vec::len), Some(4), "{swept}");
    let lost = measured(
        &["loss", &address, "--seconds", "1", "--rate", "2 Mbit/s", "--report", "pages/loss.html"],
        "probe-loss.json",
    );
    assert_eq!(lost["sum"]["packets"], 178, "{lost}");
    // As in a script that reads the results of iperf3.
    assert_eq!(lost["end"]["sum"]["packets"], 178);
    let seconds = lost["intervals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|second| second["sum"]["packets"].as_u64().unwrap());
    assert_eq!(seconds.sum::<u64>(), 178);
    assert_eq!(
        lost["start"]["connected"][0]["remote_port"].to_string(),
        address.rsplit_once(':').unwrap().1
    );
    let pings = ["--report", "pages", "--flows", "4", "--pings", "20", "--spacing", "5 ms"];
    let found = measured(&[&["paths", &address][..], &pings].concat(), "probe-paths.json");
    assert_eq!(found["flows"].as_array().map(Vec::len), Some(4), "{found}");
    for kind in ["sweep", "loss", "paths"] {
        Page::read(&folder.path().join(format!("pages/{kind}.html")));
    }
    let spoken = probe(
        &["paths", &address, "--flows", "2", "--pings", "20", "--spacing", "5 ms"],
        folder.path(),
    );
    assert!(text(&spoken.stdout).starts_with("2 flows to 127.0.0.1:"), "{}", text(&spoken.stdout));
}

#[test]
fn a_probe_watches_a_line_through_an_outage() {
    let folder = tempfile::tempdir().unwrap();
    let mut far = serve(&[], folder.path());
    let address = far.address();
    let watch = |more: &[&str]| {
        let flags =
            ["--dir", "watch", "--every", "20 ms", "--interval", "300 ms", "--intervals", "2"];
        let output = probe(&[&["long", &address][..], &flags, more].concat(), folder.path());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert_eq!(watch(&["--alarm-loss", "99 %"]), "");
    let told = watch(&["--alarm-round-trip", "1 ns"]);
    assert!(told.lines().count() == 2 && told.contains(" ms in the median, above 1 ns"), "{told}");
    far.kill();
    let more = ["--report", "pages", "--series", "all.csv"];
    assert!(watch(&more).contains(" gap: nobody listens there"));
    let page = Page::read(&folder.path().join("pages/long.html"));
    // The earlier watches are on the page too, because they are in the folder.
    assert!(page.source().contains("<li><b>6</b><span>intervals</span></li>"), "{}", page.source());
    assert!(page.source().contains("gap: nobody listens there"));
    let series = std::fs::read_to_string(folder.path().join("all.csv")).unwrap();
    assert!(series.starts_with("began,pings,lost,") && series.lines().count() == 3, "{series}");
    let files = std::fs::read_dir(folder.path().join("watch")).unwrap();
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(entry.unwrap().path()).unwrap()
    };
    let lines: String = files.map(read).collect();
    assert_eq!(lines.lines().count(), 6);
    for line in lines.lines() {
        assert_valid(&serde_json::from_str(line).unwrap(), "probe-long.json");
    }
}

#[test]
fn a_measurement_of_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], part: &str| {
        assert_refused(&probe(arguments, folder.path()), 2, &[part]);
    };
    refused(&["loss", "127.0.0.1:9", "--rate", "0 bit/s"], "a rate of zero measures nothing");
    refused(&["sweep", "127.0.0.1:9", "--spacing", "0 ns"], "a spacing of zero is not possible");
    refused(
        &["long", "127.0.0.1:9", "--dir", "watch", "--every", "1 ms"],
        "pings every 1 ms over 60 s are not possible",
    );
    refused(&["paths", "127.0.0.1:9", "--spacing", "2 s"], "a spacing of 2 s is not possible");
}

/// The address of a program that answers everything with these bytes until the test ends.
fn answering(answer: &'static [u8]) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("the loopback interface has a free port");
    let address = socket.local_addr().expect("a bound socket has an address").to_string();
    std::thread::Builder::new()
        .spawn(move || {
            let mut buffer = [0; 2_048];
            while let Ok((_, from)) = socket.recv_from(&mut buffer) {
                let _ = socket.send_to(answer, from);
            }
        })
        .expect("the system has a thread");
    address
}

#[test]
fn what_cannot_be_measured_is_refused_before_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    assert_refused(&probe(&["no-such-host.invalid"], folder.path()), 2, &["has no address"]);
    let series = probe(&["127.0.0.1:9", "--series", "all.txt"], folder.path());
    assert_refused(&series, 2, &["the format of `all.txt` is unknown", ".csv or .jsonl"]);
    let mut far = serve(&["--max-time", "1 s"], folder.path());
    let address = far.address();
    let parts = ["the far end has ended the measurement", "--max-time"];
    assert_told(&probe(&[&address, "--seconds", "60"], folder.path()), 4, &parts);
}

#[test]
fn a_probe_reports_missing_abilities_of_the_machine_before_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    let closed = ClosedUdp::new();
    let free = closed.address().to_string();
    let output = probe(&[&free, "--max-rate", "900 Gbit/s"], folder.path());
    assert_told(&output, 4, &["nobody listens there"]);
    let said = text(&output.stderr);
    assert!(
        said.starts_with("note: this machine can do about ")
            && said.contains("900 Gbit/s asked for"),
        "{said}"
    );
}

#[test]
fn the_messages_page_lists_the_messages_of_the_probe() {
    let page = include_str!("../../../../../docs/reference/messages.md");
    for sentence in [
        "nobody listens there",
        "what answers there is no probe",
        "the far end has ended the measurement",
    ] {
        assert!(page.contains(&format!("| {sentence} | 4 |")), "{sentence}");
    }
    assert!(printed(&["probe", "--help"], Path::new(".")).contains("skyhaul probe serve"));
}

/// What a script reads from the result of iperf3 for a UDP stream.
#[derive(Debug)]
struct UdpResult {
    protocol: String,
    datagram: u64,
    far_port: u64,
    packets: u64,
    seconds: Vec<f64>,
}

impl UdpResult {
    /// `None` if a value is missing.
    fn of(json: &Value) -> Option<Self> {
        let (start, end) = (&json["start"], &json["end"]);
        for name in ["jitter_ms", "lost_packets", "lost_percent", "bits_per_second", "bytes"] {
            end["sum"][name].as_f64()?;
            end["streams"][0]["udp"][name].as_f64()?;
        }
        let rate = |interval: &Value| {
            let sum = &interval["sum"];
            sum["end"].as_f64().zip(sum["start"].as_f64()).filter(|(end, start)| end > start)?;
            sum["bits_per_second"].as_f64()
        };
        Some(Self {
            protocol: start["test_start"]["protocol"].as_str()?.to_owned(),
            datagram: start["test_start"]["blksize"].as_u64()?,
            far_port: start["connected"][0]["remote_port"].as_u64()?,
            packets: end["sum"]["packets"].as_u64()?,
            seconds: json["intervals"].as_array()?.iter().map(rate).collect::<Option<_>>()?,
        })
    }
}

#[test]
fn a_reader_of_iperf3_results_reads_ours() {
    let folder = tempfile::tempdir().unwrap();
    let mut far = serve(&[], folder.path());
    let output = probe(
        &["loss", &far.address(), "--seconds", "2", "--rate", "1 Mbit/s", "--json"],
        folder.path(),
    );
    let ours = UdpResult::of(&serde_json::from_slice(&output.stdout).unwrap()).unwrap();
    assert_eq!(
        (&*ours.protocol, ours.datagram, ours.packets, ours.seconds.len()),
        ("UDP", 1_400, 178, 2),
        "{ours:?}"
    );
    let port = free_port().to_string();
    let mut server = Command::new("iperf3");
    server
        .args(["-s", "-1", "-p", &port])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if Command::new("iperf3").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no iperf3 to compare with");
        return;
    }
    let _server = Running::of(&mut server);
    let client = ["-u", "-J", "-c", "127.0.0.1", "-p", &port, "-t", "2", "-b", "1M", "-l", "1400"];
    let theirs = until(
        || {
            let said = Command::new("iperf3").args(client).output().unwrap().stdout;
            let json: Value = serde_json::from_slice(&said).ok()?;
            json.get("error").is_none().then(|| UdpResult::of(&json))
        },
        || "iperf3 has no result".to_owned(),
    );
    let theirs = theirs.expect("iperf3's result has what is read of ours");
    assert_eq!(
        (&*theirs.protocol, theirs.datagram, theirs.far_port.to_string()),
        ("UDP", 1_400, port)
    );
    assert!(theirs.packets > 0 && !theirs.seconds.is_empty(), "{theirs:?}");
}
