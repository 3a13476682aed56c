//! `skyhaul relay` as its users run it.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// A relay process; ended when the test is.
struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(arguments: &[&str], folder: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_skyhaul"))
            .arg("relay")
            .args(arguments)
            .current_dir(folder)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let output = BufReader::new(child.stdout.take().expect("it was piped"));
        Self { child, output }
    }

    /// The address that the relay says it listens on.
    fn address(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the relay says where it listens");
        line.split_whitespace().nth(1).unwrap_or_else(|| panic!("no address in `{line}`")).to_owned()
    }

    /// Interrupts the relay; its exit code and the rest of its output.
    fn stop(mut self) -> (Option<i32>, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
        let status = self.child.wait().expect("the relay ends");
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).expect("the relay writes UTF-8");
        (status.code(), rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already where the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn datagrams_cross_both_ways_and_are_counted_at_the_end() {
    let far = socket();
    let to = far.local_addr().unwrap().to_string();
    let mut relay =
        Running::start(&["--listen", "127.0.0.1:0", "--to", &to, "--delay", "1ms"], Path::new("."));
    let near = socket();
    near.connect(relay.address()).unwrap();
    let mut buffer = [0; 64];
    near.send(b"there").unwrap();
    let (len, from) = far.recv_from(&mut buffer).unwrap();
    assert_eq!(&buffer[..len], b"there");
    far.send_to(b"and back", from).unwrap();
    let len = near.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..len], b"and back");
    let (code, totals) = relay.stop();
    assert_eq!(code, Some(0));
    for direction in ["up    1 offered, 0 lost", "down  1 offered, 0 lost"] {
        assert!(totals.contains(direction), "{totals}");
    }
}

#[test]
fn a_port_in_use_is_told_in_one_sentence() {
    let taken = socket();
    let address = taken.local_addr().unwrap().to_string();
    let (code, error) = refused(&["--listen", &address, "--to", "127.0.0.1:9"]);
    assert_eq!(code, Some(3), "{error}");
    assert!(error.contains(&address) && error.contains("in use; help: "), "{error}");
}

#[test]
fn an_impossible_line_is_refused_with_what_to_write() {
    let addresses = ["--listen", "127.0.0.1:0", "--to", "127.0.0.1:9"];
    for (flags, part) in [
        (&["--rate", "93"][..], "the unit is missing"),
        (&["--loss", "1"], "write it like"),
        (&["--loss", "99 %", "--loss-burst", "2"], "help: lower the loss"),
        (&["--reorder", "1 %"], "--reorder-delay"),
        (&["--config", "relay.toml"], "cannot be used with"),
    ] {
        let (code, error) = refused(&[&addresses[..], flags].concat());
        assert_eq!(code, Some(2), "{flags:?}: {error}");
        assert!(error.contains(part), "{flags:?}: {error}");
    }
}

#[test]
fn the_file_of_the_documentation_is_taken_and_a_wrong_key_refused_with_its_line() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/relay.md")).unwrap();
    let (_, rest) = page.split_once("```toml file=relay.toml\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("relay.toml"), text).unwrap();
    let mut relay = Running::start(&["--config", "relay.toml"], folder.path());
    assert!(relay.address().starts_with("127.0.0.1:"));
    assert_eq!(relay.stop().0, Some(0));

    let wrong = folder.path().join("wrong.toml");
    std::fs::write(&wrong, text.replace("jitter", "jiter")).unwrap();
    let (code, error) = refused(&["--config", wrong.to_str().unwrap()]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("`jiter`") && error.contains("wrong.toml:9"), "{error}");
}

/// Runs a relay that must not start: its exit code and sentence.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let ran = Command::new(env!("CARGO_BIN_EXE_skyhaul")).arg("relay").args(arguments).output();
    let ran = ran.expect("the program starts");
    (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out can be set");
    socket
}
