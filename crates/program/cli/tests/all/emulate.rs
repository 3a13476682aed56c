//! `skyhaul emulate` as its users run it.

use crate::support::process::{Ended, Running, run};
use crate::support::refusal::{assert_misused, assert_refused};
use rustix::process::Signal;
use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

/// A proxy, and the address at which it says that it listens.
fn proxy(arguments: &[&str], folder: &Path) -> (Running, String) {
    let mut running = Running::start(&[&["emulate"], arguments].concat(), folder);
    let address = running.address();
    (running, address)
}

fn interrupted(proxy: Running) -> Ended {
    proxy.signal(Signal::INT);
    proxy.end()
}

#[test]
fn datagrams_cross_both_ways_and_are_counted_at_the_end() {
    let far = socket();
    let to = far.local_addr().unwrap().to_string();
    let (proxy, address) =
        proxy(&["--listen", "127.0.0.1:0", "--to", &to, "--delay", "1ms"], Path::new("."));
    let near = socket();
    near.connect(address).unwrap();
    let mut buffer = [0; 64];
    near.send(b"there").unwrap();
    let (len, from) = far.recv_from(&mut buffer).unwrap();
    assert_eq!(&buffer[..len], b"there");
    far.send_to(b"and back", from).unwrap();
    let len = near.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..len], b"and back");
    let Ended { code, output: totals, .. } = interrupted(proxy);
    assert_eq!(code, Some(0));
    for direction in ["up    1 offered, 0 lost", "down  1 offered, 0 lost"] {
        assert!(totals.contains(direction), "{totals}");
    }
}

#[test]
fn a_port_in_use_is_reported_in_one_sentence() {
    let taken = socket();
    let address = taken.local_addr().unwrap().to_string();
    refused(&["--listen", &address, "--to", "127.0.0.1:9"], 3, &[&address, "in use; help: "]);
}

#[test]
fn an_impossible_line_is_refused_with_what_to_write() {
    let addresses = ["--listen", "127.0.0.1:0", "--to", "127.0.0.1:9"];
    for (flags, part) in [
        (&["--rate", "93"][..], "the unit is missing"),
        (&["--loss", "1"], "write it like"),
        (&["--loss", "99 %", "--loss-burst", "2"], "help: lower the loss"),
        (&["--reorder", "1 %"], "--reorder-delay"),
        (&["--config", "line.toml"], "cannot be used with"),
    ] {
        let arguments = [&["emulate"], &addresses[..], flags].concat();
        assert_misused(&run(&arguments, Path::new(".")), &[part]);
    }
}

#[test]
fn the_file_of_the_documentation_is_accepted_and_a_wrong_key_is_refused_with_its_line() {
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/how-to/emulate.md"
    ))
    .unwrap();
    let (_, rest) = page.split_once("```toml file=line.toml\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("line.toml"), text).unwrap();
    let (proxy, address) = proxy(&["--config", "line.toml"], folder.path());
    assert!(address.starts_with("127.0.0.1:"));
    assert_eq!(interrupted(proxy).code, Some(0));

    let wrong = folder.path().join("wrong.toml");
    std::fs::write(&wrong, text.replace("jitter", "jiter")).unwrap();
    refused(&["--config", wrong.to_str().unwrap()], 2, &["`jiter`", "wrong.toml:9"]);
}

/// Runs a proxy that must not start.
#[track_caller]
fn refused(arguments: &[&str], exit: i32, parts: &[&str]) {
    assert_refused(&run(&[&["emulate"], arguments].concat(), Path::new(".")), exit, parts);
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out can be set");
    socket
}
