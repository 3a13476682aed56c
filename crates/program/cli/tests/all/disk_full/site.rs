//! A station and a centre as processes, with folders at any place that the test chooses.

use crate::support::node::{self, NODES};
use crate::support::patience::until;
use crate::support::ports::free_address;
use crate::support::process::Running;
use rustix::process::Signal;
use skyhaul_node::status::{CentreStatus, NodeStatus, StationStatus, ask};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// One of the two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    Station,
    Centre,
}

/// The folders of the nodes. Without one, the folder is on a disk with room.
#[derive(Debug, Default)]
pub struct Folders {
    pub station: Option<PathBuf>,
    pub centre: Option<PathBuf>,
    pub products: Option<PathBuf>,
}

pub struct Site {
    home: tempfile::TempDir,
    pub states: [PathBuf; 2],
    pub products: PathBuf,
    children: [Option<Running>; 2],
}

impl Node {
    const fn name(self) -> &'static str {
        NODES[self as usize]
    }
}

impl Site {
    /// Nodes that are configured and not started; `spool` are more keys of the station's spool,
    /// `channels` its channels, as in its configuration.
    pub fn prepare(folders: Folders, spool: &str, channels: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        let states = [
            folders.station.unwrap_or_else(|| path("station")),
            folders.centre.unwrap_or_else(|| path("centre")),
        ];
        let products = folders.products.unwrap_or_else(|| path("products"));
        let keys = node::make_keys(home.path());
        let address = free_address();
        let station = format!(
            "{}\n[[destination]]\nto = \"node:centre\"\n[[peer]]\nname = \"centre\"\n\
            addresses = [\"{address}\"]\nfingerprints = [\"{}\"]\n
[line]\nrate = \"100 Mbit/s\"\n\n[spool]\nsegment_size = \"1 MiB\"\n{spool}\n\n{channels}",
            node::table("station", &states[0]),
            keys[1]
        );
        let centre = format!(
            "{}\n[[listen]]\nbind = \"{address}\"\n\n[[peer]]\nname = \"station\"\nfingerprints = \
            [\"{}\"]\n
[products]\ndir = \"{}\"\n\n[session]\nreceive_window = \"1 MiB\"\n",
            node::table("centre", &states[1]),
            keys[0],
            products.display()
        );
        fs::write(path("station.toml"), station).unwrap();
        fs::write(path("centre.toml"), centre).unwrap();
        Self { home, states, products, children: [None, None] }
    }

    /// Starts a node.
    pub fn start(&mut self, node: Node) {
        self.children[node as usize] = Some(node::start(node.name(), self.home.path(), &[]));
    }

    /// Kills a node as a power cut does.
    pub fn kill(&mut self, node: Node) {
        drop(self.children[node as usize].take().expect("it runs"));
    }

    /// Tells a node to end, and waits until it has.
    pub fn stop(&mut self, node: Node) -> Option<i32> {
        let child = self.children[node as usize].take().expect("it runs");
        child.signal(Signal::TERM);
        child.end().code
    }

    /// A file of the nodes' folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// The sockets of a node that go over the network, by inode.
    pub fn sockets(&self, node: Node) -> BTreeSet<String> {
        let child = self.children[node as usize].as_ref().expect("it runs");
        let of_process = format!("/proc/{}", child.id());
        let links = fs::read_dir(format!("{of_process}/fd")).unwrap();
        let links = links.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        let own: BTreeSet<String> =
            links.map(|link| link.to_string_lossy().replace(['[', ']'], "")).collect();
        let tables = ["udp", "tcp"]
            .map(|table| fs::read_to_string(format!("{of_process}/net/{table}")).unwrap());
        let rows = tables.iter().flat_map(|table| table.lines().skip(1));
        let inodes = rows.filter_map(|row| row.split_whitespace().nth(9));
        inodes.map(str::to_owned).filter(|inode| own.contains(&format!("socket:{inode}"))).collect()
    }

    pub fn signal(&self, node: Node, signal: Signal) {
        self.children[node as usize].as_ref().expect("it runs").signal(signal);
    }

    /// Waits until a node has logged something.
    pub fn logged(&self, node: Node, part: &str) {
        let log = self.file(&format!("{}.log", node.name()));
        self.wait(part, || {
            fs::read_to_string(&log).is_ok_and(|log| log.contains(part)).then_some(())
        });
    }

    /// Waits until a node has ended by itself. Returns its exit code and its log.
    pub fn ended(&mut self, node: Node) -> (Option<i32>, String) {
        let child = self.children[node as usize].take().expect("it runs");
        let code = child.end().code;
        let log = fs::read_to_string(self.home.path().join(format!("{}.log", node.name())));
        (code, log.expect("the node has a log"))
    }

    /// Waits until the station's status is as `wanted`, and returns it.
    pub fn station(
        &mut self,
        what: &str,
        wanted: impl Fn(&StationStatus) -> bool,
    ) -> StationStatus {
        self.status(Node::Station, what, |status| status.station.filter(&wanted))
    }

    /// Waits until the centre's status is as `wanted`, and returns it.
    pub fn centre(&mut self, what: &str, wanted: impl Fn(&CentreStatus) -> bool) -> CentreStatus {
        self.status(Node::Centre, what, |status| status.centre.filter(&wanted))
    }

    fn status<T>(&mut self, node: Node, what: &str, wanted: impl Fn(NodeStatus) -> Option<T>) -> T {
        let socket = self.states[node as usize].join("status.sock");
        let mut children = std::mem::take(&mut self.children);
        let found = self.wait(what, || {
            for child in children.iter_mut().flatten() {
                let ended = child.status();
                assert!(
                    ended.is_none(),
                    "waiting for {what}: a node ended, {ended:?}\n{}",
                    node::logs(self.home.path())
                );
            }
            ask(&socket).ok().and_then(&wanted)
        });
        self.children = children;
        found
    }

    /// Looks again and again until there is a value.
    pub fn wait<T>(&self, what: &str, look: impl FnMut() -> Option<T>) -> T {
        until(look, || {
            let states = self.states.each_ref().map(|state| ask(&state.join("status.sock")));
            format!("no {what}: {states:#?}\n{}", node::logs(self.home.path()))
        })
    }
}
