//! The gap that an upgrade leaves in a live input: between two reads of its recording. `make
//! test-all` measures the released program at 500 Mbit/s; other runs only try the measurement.

mod pauses;

use crate::support::node;
use crate::support::patience::{now, until};
use crate::support::process::{Running, text};
use crate::support::recordings::{WHOLE_CADUS, recording};
use crate::support::rung::is_all;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use skyhaul_store::raw::{RawKind, RawReader, RawSpan};
use skyhaul_store::{Disk, RealDisk};
use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes of a CADU of the recording.
const CADU: u64 = 1_024;

/// What is measured.
struct Trial {
    program: PathBuf,
    bits_per_second: f64,
    upgrades: usize,
    /// The longest gap that is accepted.
    bar: Option<Duration>,
}

impl Trial {
    /// None where the program is not built.
    fn of_this_run() -> Option<Self> {
        let own = PathBuf::from(env!("CARGO_BIN_EXE_skyhaul"));
        if !is_all() {
            return Some(Self { program: own, bits_per_second: 4e6, upgrades: 2, bar: None });
        }
        let release = own.parent()?.parent()?.join("release/skyhaul");
        if !release.exists() {
            eprintln!("SKIPPED: there is no {}; run `make`", release.display());
            return None;
        }
        let bar = Some(Duration::from_millis(70));
        Some(Self { program: release, bits_per_second: 5e8, upgrades: 20, bar })
    }

    fn command(&self, arguments: &[&str], folder: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(folder).stdin(Stdio::null());
        command
    }
}

/// The process that runs the node now; it does not outlive the test.
struct Station(Pid);

impl Drop for Station {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// Sends the recording again and again at a rate, in pieces, until it is told to stop. Returns the
/// bytes sent.
fn send(trial: &Trial, to: SocketAddr, is_tcp: bool, stop: &AtomicBool) -> u64 {
    let bytes = std::fs::read(recording(WHOLE_CADUS)).unwrap();
    let mut tcp = is_tcp.then(|| TcpStream::connect(to).unwrap());
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (begun, mut sent) = (now(), 0);
    for piece in bytes.chunks(1_024).cycle() {
        if stop.load(Ordering::Relaxed) && sent % bytes.len() as u64 == 0 {
            break;
        }
        match &mut tcp {
            Some(stream) => stream.write_all(piece).unwrap(),
            None => drop(udp.send_to(piece, to).unwrap()),
        }
        sent += piece.len() as u64;
        let due = Duration::from_secs_f64(sent as f64 * 8.0 / trial.bits_per_second);
        let early = due.saturating_sub(begun.elapsed());
        if early > Duration::from_millis(2) {
            std::thread::park_timeout(early);
        }
    }
    sent
}

/// The longest time between two reads, in a recording of this many bytes, each read of this kind.
fn longest_gap(state: &Path, bytes: u64, kind: RawKind) -> Duration {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::look(state));
    let mut pieces = RawReader::open(disk, "raw/x").read(RawSpan::default()).unwrap();
    let (mut longest, mut before, mut all) = (0, None, 0);
    while let Some(piece) = pieces.next_piece().unwrap() {
        let at = piece.stamp.received.as_nanos();
        assert_eq!(piece.stamp.input, all, "the recording has a gap");
        // As the input brought it, whoever read it; the end of the transmission has no bytes.
        assert!(piece.stamp.kind == kind || piece.bytes.is_empty(), "{:?}", piece.stamp);
        all += piece.bytes.len() as u64;
        longest = longest.max(at - before.replace(at).unwrap_or(at));
    }
    assert_eq!(all, bytes, "bytes in the recording, of those that were sent");
    Duration::from_nanos(longest.unsigned_abs())
}

fn measure(trial: &Trial, input: &str) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let [_, centre] = node::make_keys(at);
    let config = format!(
        "{}[[destination]]\nto = \"node:c\"\n[[peer]]\nname = \"c\"\naddresses = \
         [\"127.0.0.1:9\"]\nfingerprints = [\"{centre}\"]\n[[channel]]\nname = \"x\"\ninput = \
         \"{input}:127.0.0.1:0\"\nrecord_raw = true\nraw_size = \"20 GB\"\n\
         silence = \"60 s\"\n[spool]\nmax_size = \"20 GB\"\n",
        node::table("station", Path::new("state")),
    );
    std::fs::write(at.join("station.toml"), config).unwrap();
    let log = std::fs::File::create(at.join("log")).unwrap();
    let mut command = trial.command(&["run", "station.toml"], at);
    let first = Running::of(command.stdout(Stdio::null()).stderr(log));
    let status = || -> Option<Value> {
        let asked = trial.command(&["status", "--config", "station.toml", "--json"], at).output();
        serde_json::from_slice::<Value>(&asked.ok()?.stdout).ok()?.get("station").cloned()
    };
    let shown = || std::fs::read_to_string(at.join("log")).unwrap_or_default();
    let address = || status()?["channels"][0]["address"].as_str()?.parse::<SocketAddr>().ok();
    let address = until(address, shown);
    let stop = AtomicBool::new(false);
    let (sent, stations) = std::thread::scope(|scope| {
        let sender = scope.spawn(|| send(trial, address, input != "udp", &stop));
        let mut stations = Vec::new();
        for round in 0..trial.upgrades {
            let done = trial.command(&["upgrade", "--config", "station.toml", "--json"], at);
            let done = { done }.output().unwrap();
            if !done.status.success() {
                stop.store(true, Ordering::Relaxed);
                panic!("round {round}: {}{}", text(&done.stderr), shown());
            }
            let said: Value = serde_json::from_slice(&done.stdout).unwrap();
            let pid = said["now"]["pid"].as_i64().unwrap() as i32;
            stations.push(Station(Pid::from_raw(pid).unwrap()));
        }
        stop.store(true, Ordering::Relaxed);
        (sender.join().unwrap(), stations)
    });
    // The last frame is known to be whole when another one follows.
    let is_read = || {
        let status = status()?;
        let frames = status["contacts"][0]["frames"].as_u64()?;
        let is_whole = frames + 1 >= sent / CADU;
        (is_whole && status["channels"][0]["bytes"].as_u64()? == sent).then_some(())
    };
    until(is_read, || format!("{sent} bytes were sent: {:#}", status().unwrap_or_default()));
    let status = status().unwrap();
    let contacts = status["contacts"].as_array().unwrap();
    assert_eq!(contacts.len(), 1, "{contacts:#?}");
    assert_eq!(contacts[0]["set_aside"], 0, "{contacts:#?}");
    kill_process(stations.last().unwrap().0, Signal::TERM).unwrap();
    until(|| (!at.join("state/status.sock").exists()).then_some(()), shown);
    let kind = if input == "udp" { RawKind::Datagram } else { RawKind::Stream };
    let gap = longest_gap(&at.join("state"), sent, kind);
    eprintln!(
        "{input}: {} upgrades at {:.0} Mbit/s, the longest gap between two reads is {gap:?}",
        trial.upgrades,
        trial.bits_per_second / 1e6
    );
    if let Some(bar) = trial.bar {
        assert!(gap < bar, "{gap:?}");
    }
    drop(first);
}

#[test]
fn an_upgrade_leaves_no_gap_in_an_input_over_udp() {
    Trial::of_this_run().iter().for_each(|trial| measure(trial, "udp"));
}

#[test]
fn an_upgrade_leaves_no_gap_in_an_input_over_tcp() {
    Trial::of_this_run().iter().for_each(|trial| measure(trial, "tcp-listen"));
}
