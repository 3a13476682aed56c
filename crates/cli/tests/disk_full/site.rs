//! A station and a centre as processes, wherever the test puts their folders.

use rustix::process::{Pid, Signal, kill_process};
use skyhaul_node::status::{CentreStatus, NodeStatus, StationStatus, ask};
use skyhaul_quic::{Fingerprint, Identity};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// One of the two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    Station,
    Centre,
}

/// Where the nodes' folders are; left out: on a disk with room.
#[derive(Debug, Default)]
pub struct Folders {
    pub station: Option<PathBuf>,
    pub centre: Option<PathBuf>,
    pub products: Option<PathBuf>,
}

pub struct Site {
    home: tempfile::TempDir,
    states: [PathBuf; 2],
    pub products: PathBuf,
    children: [Option<Running>; 2],
}

/// A process that does not outlive the test, however that ends.
struct Running(Child);

/// Everything here takes seconds; a machine that does other things at the same time is allowed for.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks.
pub const LOOK: Duration = Duration::from_millis(50);
const LOG_LINES: usize = 40;

impl Node {
    const fn name(self) -> &'static str {
        match self {
            Self::Station => "station",
            Self::Centre => "centre",
        }
    }
}

impl Site {
    /// Nodes that are configured and not started; `spool` are more keys of the station's spool, `channels` its channels,
    /// as in its configuration.
    pub fn prepare(folders: Folders, spool: &str, channels: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        let states = [
            folders.station.unwrap_or_else(|| path("station")),
            folders.centre.unwrap_or_else(|| path("centre")),
        ];
        let products = folders.products.unwrap_or_else(|| path("products"));
        let keys = ["station", "centre"].map(|name| make_key(&path(&format!("{name}.key"))));
        let address: SocketAddr = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let station = format!(
            "{}\n[centre]\nname = \"centre\"\naddress = \"{address}\"\nfingerprint = \"{}\"\n
[line]\nrate = \"100 Mbit/s\"\n\n[spool]\nsegment_size = \"1 MiB\"\n{spool}\n\n{channels}",
            node("station", &states[0]),
            keys[1]
        );
        let centre = format!(
            "{}\n[listen]\nbind = \"{address}\"\n\n[[peer]]\nname = \"station\"\nfingerprint = \"{}\"\n
[products]\ndir = \"{}\"\n\n[session]\nreceive_window = \"1 MiB\"\n",
            node("centre", &states[1]),
            keys[0],
            products.display()
        );
        fs::write(path("station.toml"), station).unwrap();
        fs::write(path("centre.toml"), centre).unwrap();
        Self { home, states, products, children: [None, None] }
    }

    /// Starts a node.
    pub fn start(&mut self, node: Node) {
        let name = node.name();
        let log =
            OpenOptions::new().create(true).append(true).open(self.path(&format!("{name}.log"))).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_skyhaul"))
            .args([name, "--end-with-parent", "--config"])
            .arg(self.path(&format!("{name}.toml")))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.children[node as usize] = Some(Running(child));
    }

    /// Kills a node as a power cut does.
    pub fn kill(&mut self, node: Node) {
        drop(self.children[node as usize].take().expect("it runs"));
    }

    /// Tells a node to end, and waits until it has.
    pub fn stop(&mut self, node: Node) -> ExitStatus {
        let mut child = self.children[node as usize].take().expect("it runs");
        kill_process(Pid::from_child(&child.0), Signal::TERM).unwrap();
        self.wait("a node told to end", || child.0.try_wait().unwrap())
    }

    /// What the station says, once it is as `wanted`.
    pub fn station(&mut self, what: &str, wanted: impl Fn(&StationStatus) -> bool) -> StationStatus {
        self.status(Node::Station, what, |status| match status {
            NodeStatus::Station(status) if wanted(&status) => Some(status),
            _ => None,
        })
    }

    /// What the centre says, once it is as `wanted`.
    pub fn centre(&mut self, what: &str, wanted: impl Fn(&CentreStatus) -> bool) -> CentreStatus {
        self.status(Node::Centre, what, |status| match status {
            NodeStatus::Centre(status) if wanted(&status) => Some(status),
            _ => None,
        })
    }

    fn status<T>(&mut self, node: Node, what: &str, wanted: impl Fn(NodeStatus) -> Option<T>) -> T {
        let socket = self.states[node as usize].join("status.sock");
        let mut children = std::mem::take(&mut self.children);
        let found = self.wait(what, || {
            for child in children.iter_mut().flatten() {
                let ended = child.0.try_wait().unwrap();
                assert!(ended.is_none(), "waiting for {what}: a node ended, {ended:?}\n{}", self.logs());
            }
            ask(&socket).ok().and_then(&wanted)
        });
        self.children = children;
        found
    }

    /// Looks until there is something.
    pub fn wait<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let begun = now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            if begun.elapsed() > PATIENCE {
                let states = self.states.each_ref().map(|state| ask(&state.join("status.sock")));
                panic!("no {what} after {PATIENCE:?}: {states:#?}\n{}", self.logs());
            }
            std::thread::park_timeout(LOOK);
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn logs(&self) -> String {
        let tail = |name: &str| {
            let text = fs::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("{name}.log:\n{}", lines[lines.len().saturating_sub(LOG_LINES)..].join("\n"))
        };
        ["station", "centre"].map(tail).join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nothing is left to do for a process that cannot be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn node(name: &str, state: &std::path::Path) -> String {
    format!("[node]\nname = \"{name}\"\nkey = \"{name}.key\"\nstate = \"{}\"\n", state.display())
}

fn make_key(path: &std::path::Path) -> Fingerprint {
    let identity = Identity::generate().unwrap();
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).unwrap();
    file.write_all(identity.to_pem().as_bytes()).unwrap();
    identity.fingerprint()
}

#[allow(clippy::disallowed_methods, reason = "real processes run in real time")]
pub fn now() -> Instant {
    Instant::now()
}
