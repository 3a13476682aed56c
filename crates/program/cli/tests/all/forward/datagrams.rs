//! `udp:`: datagrams, among them late ones.

use super::ends::{Ends, pattern};
use super::remote::far_listens;
use crate::support::process::Running;
use serde_json::Value;
use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

/// Answers each datagram with its bytes reversed, for as long as the test runs.
fn reversing() -> String {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = server.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok((len, from)) = server.recv_from(&mut buffer) {
            buffer[..len].reverse();
            server.send_to(&buffer[..len], from).unwrap();
        }
    });
    target
}

#[test]
fn each_client_gets_its_own_answers_from_either_side() {
    let target = reversing();
    let rule = format!("udp:{target}");
    let spec = format!("udp:0=far:{target}");
    let mut ends = Ends::start(
        &["--allow", &rule, "--allow-listen", "udp:127.0.0.1:*"],
        &["-L", &spec, "-R", &spec],
        1,
    );
    let there = far_listens(&mut ends);
    for place in [ends.local[0].clone(), there] {
        let place = place.strip_prefix("udp:").unwrap();
        let clients: Vec<UdpSocket> = (0..5).map(|_| socket()).collect();
        for len in [0, 1, 1_400, 30_000] {
            let of = |number: u8| {
                pattern(len).into_iter().map(|byte| byte ^ number << 3).collect::<Vec<u8>>()
            };
            for (number, client) in (0u8..5).zip(&clients) {
                client.send_to(&of(number), place).unwrap();
            }
            for (number, client) in (0u8..5).zip(&clients) {
                let mut buffer = vec![0; 1 << 16];
                let got = client.recv(&mut buffer).unwrap();
                buffer[..got].reverse();
                assert!(buffer[..got] == of(number), "{len} bytes of client {number}");
            }
        }
    }
}

#[test]
fn datagrams_that_are_not_allowed_are_reported_once_and_dropped() {
    let mut ends = Ends::start(&["--allow", "127.0.0.1:*"], &["-L", "udp:0=far:127.0.0.1:9"], 1);
    let client = socket();
    let place = ends.local[0].strip_prefix("udp:").unwrap().to_owned();
    client.send_to(b"first", &place).unwrap();
    assert!(
        ends.near
            .log_until("cannot connect to")
            .contains("the connecting node's rules do not allow it")
    );
    client.send_to(b"second", &place).unwrap();
    // What was sent has been read before the signal, or stays unread and is never sent on.
    ends.near.signal(rustix::process::Signal::INT);
    assert!(ends.near.log_until("datagrams: ").contains("1 sent, 0 received, 0 late"));
}

/// The statistics that an end prints every 100 ms.
fn stats(end: &mut Running) -> Value {
    loop {
        let line: Value = serde_json::from_str(&end.line()).unwrap();
        if line["event"] == "stats" {
            return line["counters"]["datagrams"].clone();
        }
    }
}

#[test]
fn datagrams_that_a_slow_line_would_bring_too_late_are_dropped_and_counted() {
    let here = Path::new(".");
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = server.local_addr().unwrap().to_string();
    let rule = format!("udp:{target}");
    let free = crate::support::ports::free_address().to_string();
    let serve = [
        "forward",
        "serve",
        "--bind",
        &free,
        "--insecure-test",
        "--json",
        "--stats",
        "100ms",
        "--allow",
        &rule,
    ];
    let mut far = Running::start(&serve, here);
    let line =
        ["emulate", "--listen", "127.0.0.1:0", "--to", &free, "--rate", "1mbit", "--delay", "20ms"];
    let mut proxy = Running::start(&line, here);
    let node = format!("far={}", proxy.address());
    let spec = format!("udp:0=far:{target}");
    let call = [
        "forward",
        "--node",
        &node,
        "--insecure-test",
        "--json",
        "--stats",
        "100ms",
        "--deadline",
        "300ms",
    ];
    let mut near = Running::start(&[&call[..], &["-L", &spec]].concat(), here);
    let listening: Value = serde_json::from_str(&near.line()).unwrap();
    let place = listening["at"].as_str().unwrap().strip_prefix("udp:").unwrap().to_owned();
    while serde_json::from_str::<Value>(&near.line()).unwrap()["event"] != "node-up" {}
    let client = socket();
    let count = |counters: &Value, name: &str| counters[name].as_u64().unwrap();
    // Each round waits for the statistics of both ends, which come every 100 ms.
    let mut told = String::new();
    for _ in 0..ROUNDS_MAX {
        let (here, there) = (stats(&mut near), stats(&mut far));
        told = format!("near end {here}, far end {there}");
        if count(&here, "late") == 0 {
            // Far more than 300 ms of the line, in as many bursts as it takes: how much of a burst
            // the system keeps until the near end reads it depends on how busy the host is.
            for _ in 0..400 {
                client.send_to(&[7; 1_000], &place).unwrap();
            }
            continue;
        }
        // What the near end has sent ends in one of these; a datagram may be late at both ends.
        let ended =
            ["received", "late", "dropped"].map(|name| count(&there, name)).iter().sum::<u64>();
        if ended + count(&here, "late") >= count(&here, "sent") {
            assert!(count(&there, "received") < count(&here, "sent"), "{told}");
            return;
        }
    }
    panic!("after {ROUNDS_MAX} rounds, datagrams are sent that neither end has counted: {told}");
}

/// Far longer than it takes: a minute on an idle host.
const ROUNDS_MAX: usize = 600;
