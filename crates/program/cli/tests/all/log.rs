//! Readers of the output of long-running commands that stop reading or end, and strangers that
//! could fill the output.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::patience::until;
use crate::support::ports::free_address;
use crate::support::process::{Running, printed, skyhaul};
use crate::support::site::{Site, channel};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::Signal;
use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, PipeReader, PipeWriter, Write, pipe};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Stdio;

/// A full pipe that nobody reads.
fn full() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = pipe().unwrap();
    let flags = fcntl_getfl(writer.as_fd()).unwrap();
    fcntl_setfl(writer.as_fd(), flags | OFlags::NONBLOCK).unwrap();
    let filler = [b'-'; 4096];
    while !matches!(writer.write(&filler), Err(error) if error.kind() == ErrorKind::WouldBlock) {}
    fcntl_setfl(writer.as_fd(), flags).unwrap();
    (reader, writer)
}

/// A pipe whose reader has ended.
fn broken() -> PipeWriter {
    pipe().unwrap().1
}

/// A site whose centre logs to `log`.
fn site(log: impl Into<Stdio>, level: &str) -> Site {
    let mut site = Site::new();
    site.kill_centre();
    let arguments = ["run", "centre.toml", "--log", level];
    site.centre = Running::of(skyhaul(&arguments, site.folder()).stdout(Stdio::null()).stderr(log));
    site.address = site.centre_until(|status| status["address"].as_str().map(str::to_owned));
    site
}

/// Asserts that the contact of a station arrives complete, and that the centre ends on request.
fn assert_serves(site: &mut Site) {
    site.write(&format!("[line]\nrate = \"93 Mbit/s\"\n{}", channel("")));
    assert_eq!(site.start().end().code, Some(0));
    site.assert_whole();
}

fn assert_ends(site: Site) {
    site.centre.signal(Signal::TERM);
    assert_eq!(site.centre.end().code, Some(0), "told to end, it ends well");
}

#[test]
fn a_log_that_nobody_reads_stops_no_session_and_later_says_what_it_dropped() {
    let (reader, writer) = full();
    let mut site = site(writer, "trace");
    assert_serves(&mut site);
    let stranger = Stranger::new();
    let dropped = site.centre_until(|status| {
        // Each of these is logged at this level.
        stranger.call(&site.address, 500);
        status["log_dropped"].as_u64().filter(|lines| *lines > 0)
    });
    assert!(site.shown("centre.toml").contains("lines dropped: standard error was not read"));
    let told = BufReader::new(&reader).lines().map_while(Result::ok).find_map(|line| {
        let (_, rest) = line.split_once("WARN skyhaul: ")?;
        rest.split_once(" log lines dropped")?.0.parse::<u64>().ok()
    });
    assert!(told.unwrap() >= dropped, "{told:?} of {dropped}");
    // Nobody reads the log again; the centre ends nevertheless.
    assert_ends(site);
}

#[test]
fn a_service_goes_on_when_the_reader_of_its_log_is_gone() {
    let mut site = site(broken(), "info");
    assert_serves(&mut site);
    assert_ends(site);
}

#[test]
fn strangers_do_not_fill_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let site = site(File::create(&log).unwrap(), "info");
    let stranger = Stranger::new();
    site.centre_until(|status| {
        stranger.call(&site.address, 500);
        status["refused"].as_u64().filter(|refused| *refused >= 3_000)
    });
    assert_ends(site);
    let log = std::fs::read_to_string(log).unwrap();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("refused")).collect();
    assert!(told.len() <= 4 && log.len() < 4_000, "{log}");
    assert!(told[0].contains(&stranger.address()), "{log}");
    let last = told.last().unwrap();
    assert!(
        last.contains("more connection attempts from") && last.contains("the last from 127.0.0.1"),
        "{log}"
    );
}

/// Sends datagrams that look like first packets of QUIC 1, and are not valid.
struct Stranger {
    socket: UdpSocket,
    sent: Cell<u64>,
}

impl Stranger {
    fn new() -> Self {
        Self { socket: UdpSocket::bind("127.0.0.1:0").unwrap(), sent: Cell::new(0) }
    }

    fn address(&self) -> String {
        self.socket.local_addr().unwrap().to_string()
    }

    fn call(&self, to: &str, times: u64) {
        for _ in 0..times {
            self.sent.set(self.sent.get() + 1);
            let mut packet = vec![0xc3, 0, 0, 0, 1, 8];
            packet.extend(self.sent.get().to_be_bytes());
            // No source connection ID, no token, 1,182 bytes.
            packet.extend([0, 0, 0x44, 0x9e]);
            packet.resize(1_200, 0x5a);
            self.socket.send_to(&packet, to).unwrap();
        }
    }
}

/// Runs the end that serves files with these readers of its output. What is sent there must arrive,
/// and the end must stop on request.
fn assert_files_served(output: impl Into<Stdio>, log: impl Into<Stdio>) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::create_dir(at.join("there")).unwrap();
    let address = free_address().to_string();
    let arguments = [
        "files",
        "serve",
        "--bind",
        &address,
        "--insecure-test",
        "--root",
        "there",
        "--write",
        "--json",
    ];
    let server = Running::of(skyhaul(&arguments, at).stdout(output).stderr(log));
    for number in 0..200 {
        std::fs::write(at.join(format!("file-{number}")), [7; 100]).unwrap();
    }
    let copy = |name: &str| copied(at, &address, name);
    until(|| copy("file-0").then_some(()), || "nothing was copied".to_owned());
    (1..4).for_each(|number| assert!(copy(&format!("file-{number}")), "file {number}"));
    server.signal(Signal::TERM);
    assert_eq!(server.end().code, Some(0), "told to end, it ends well");
}

/// Whether a file came to its end.
fn copied(folder: &Path, address: &str, name: &str) -> bool {
    let node = format!("far={address}");
    let arguments = ["cp", name, "far:.", "--node", &node, "--insecure-test", "--json"];
    let output = skyhaul(&arguments, folder).output().unwrap();
    output.status.success() && folder.join("there").join(name).exists()
}

#[test]
fn files_are_served_although_nobody_reads_the_output() {
    let (output, log) = (full(), full());
    assert_files_served(output.1, log.1);
    assert_files_served(broken(), broken());
}

#[test]
fn a_proxy_goes_on_when_nobody_reads_what_it_prints() {
    let folder = tempfile::tempdir().unwrap();
    let there = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (at, to) = (free_address().to_string(), there.local_addr().unwrap().to_string());
    let arguments = ["emulate", "--listen", &at, "--to", &to];
    let proxy = Running::of(skyhaul(&arguments, folder.path()).stdout(broken()).stderr(broken()));
    let here = UdpSocket::bind("127.0.0.1:0").unwrap();
    there.set_nonblocking(true).unwrap();
    let arrived = || {
        // The end may not listen there yet.
        let _ = here.send_to(b"datagram", &at);
        there.recv(&mut [0; 100]).ok()
    };
    assert_eq!(until(arrived, || "nothing came through".to_owned()), 8);
    proxy.signal(Signal::TERM);
    assert_eq!(proxy.end().code, Some(0), "told to end, it ends well");
}

#[test]
fn the_reason_why_a_service_ends_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    let arguments = ["files", "serve", "--bind", &at, "--insecure-test", "--root", "."];
    let output = skyhaul(&arguments, folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("error: "), "{output:?}");
    // The reader of a short command can delay it, as with any other program: no part of a result is
    // lost.
    assert!(printed(&["keygen", "--help"], folder.path()).contains("private key"));
}
