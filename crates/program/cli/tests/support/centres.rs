//! A station with two centres, each a process of its own that can be away.

use super::node;
use super::patience::until;
use super::ports::free_address;
use super::process::{Running, printed, run, text};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The names of the centres.
pub const CENTRES: [&str; 2] = ["oper", "backup"];

/// Two centres, which the test starts, and the files of a station.
pub struct Centres {
    folder: tempfile::TempDir,
    addresses: [SocketAddr; 2],
    keys: [String; 2],
}

impl Centres {
    /// The files of both: the station may put files and streams there.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let key = |name: &str| printed(&["keygen", &format!("{name}.key")], at).trim().to_owned();
        let station = key("s");
        let (addresses, keys) = (CENTRES.map(|_| free_address()), CENTRES.map(key));
        for (name, address) in CENTRES.iter().zip(addresses) {
            let config = format!(
                "{}[[listen]]\nbind = \"{address}\"\n[[peer]]\nname = \"s\"\nfingerprints = \
                 [\"{station}\"]\n[peer.files]\nroot = \"{name}-files\"\n[peer.streams]\nroot = \
                 \"{name}-streams\"\n[products]\ndir = \"{name}-products\"\n",
                node::table(name, Path::new(&format!("{name}-state")))
            );
            fs::write(at.join(format!("{name}.toml")), config).unwrap();
        }
        Self { folder, addresses, keys }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where a centre puts a file of the station.
    pub fn file(&self, centre: &str, name: &str) -> PathBuf {
        self.folder().join(format!("{centre}-files")).join(name)
    }

    /// The tables of the station that make this centre a peer of it.
    pub fn peer(&self, centre: &str) -> String {
        let nth = CENTRES.iter().position(|name| *name == centre).unwrap();
        let (address, key) = (self.addresses[nth], &self.keys[nth]);
        format!(
            "[[peer]]\nname = \"{centre}\"\naddresses = [\"{address}\"]\nfingerprints = \
             [\"{key}\"]\n"
        )
    }

    /// Writes the configuration of the station: these destinations, and these tables.
    pub fn write(&self, to: &[&str], tables: &str) {
        let mut config = node::table("s", Path::new("state"));
        for centre in to {
            config += &self.peer(centre);
            config += &format!("[[destination]]\nto = \"node:{centre}\"\n");
        }
        fs::write(self.folder().join("s.toml"), config + tables).unwrap();
    }

    /// Starts a node: a centre, or the station `s`.
    pub fn start(&self, name: &str) -> Running {
        node::start(name, self.folder(), &[])
    }

    /// Asks the station for its status until `probe` returns a value.
    #[track_caller]
    pub fn until<T>(&self, probe: impl Fn(&Value) -> Option<T>) -> T {
        self.node_until("s", probe)
    }

    /// Asks a node for its status until `probe` returns a value.
    #[track_caller]
    pub fn node_until<T>(&self, name: &str, probe: impl Fn(&Value) -> Option<T>) -> T {
        let config = format!("{name}.toml");
        let look = || node::part(&config, self.folder()).and_then(|status| probe(&status));
        until(look, || self.state(&config))
    }

    /// Waits until `is_so`.
    #[track_caller]
    pub fn wait(&self, is_so: impl Fn() -> bool) {
        until(|| is_so().then_some(()), || self.state("s.toml"));
    }

    fn state(&self, config: &str) -> String {
        let shown = run(&["status", "--config", config], self.folder());
        let log = fs::read_to_string(self.folder().join("s.log")).unwrap_or_default();
        format!("{}{}{log}", text(&shown.stdout), text(&shown.stderr))
    }

    /// Sends SIGHUP to the station, and waits for the line of the log that says what came of it.
    #[track_caller]
    pub fn reload(&self, station: &Running) -> String {
        let log = self.folder().join("s.log");
        let lines = || -> Vec<String> {
            let log = fs::read_to_string(&log).unwrap_or_default();
            let is_it = |line: &&str| line.contains("configuration reload");
            log.lines().filter(is_it).map(str::to_owned).collect()
        };
        let before = lines().len();
        station.signal(Signal::HUP);
        until(|| lines().get(before).cloned(), || fs::read_to_string(&log).unwrap_or_default())
    }
}
