//! A station and a centre as processes, joined by a line that lets one socket through.

use super::tree::Tree;
use crate::support::node::{self, NODES};
use crate::support::patience::until;
use crate::support::ports::free_address;
use crate::support::process::{Running, printed, run, text};
use crate::support::recordings::{DAMAGED, recording};
use serde_json::Value;
use skyhaul_emulator::proxy::{LinkProxy, ProxyConfig, ProxyHandle};
use skyhaul_link::LinkConfig;
use skyhaul_quic::Fingerprint;
use skyhaul_units::{Duration, Rate};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

pub struct Pair {
    folder: tempfile::TempDir,
    keys: [Fingerprint; 2],
    line: SocketAddr,
    handle: ProxyHandle,
    stop: Arc<AtomicBool>,
    proxy: Option<JoinHandle<()>>,
}

impl Pair {
    /// A centre with these keys in the table of its station, and these tables behind all others.
    pub fn prepare(peer: &str, tables: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = node::make_keys(folder.path());
        let centre = free_address();
        let link = LinkConfig::line(Rate::from_mbps(50), Duration::from_millis(20));
        let config = ProxyConfig::new("127.0.0.1:0".parse().unwrap(), centre, link);
        let mut proxy = LinkProxy::bind(config).unwrap();
        let (line, handle, stop) =
            (proxy.local_addr(), proxy.handle(), Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let proxy = Some(std::thread::spawn(move || proxy.run(&stopped).unwrap()));
        let text = format!(
            "{}[[listen]]\nbind = \"{centre}\"\ntcp = false\n[products]\ndir = \
            \"products\"\n[[peer]]\nname = \"station\"\n\
             fingerprints = [\"{}\"]\n{peer}{tables}",
            node::table("centre", Path::new("centre")),
            keys[0]
        );
        fs::write(folder.path().join("centre.toml"), text).unwrap();
        Self { folder, keys, line, handle, stop, proxy }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the station's configuration with these tables.
    pub fn station(&self, tables: &str) {
        let text = format!(
            "{}[[destination]]\nto = \"node:centre\"\n[[peer]]\nname = \"centre\"\n\
            addresses = [\"{}\"]\nfingerprints = [\"{}\"]\n[line]\nrate = \
            \"40 Mbit/s\"\n\
             [[path]]\ntransport = \"udp\"\n{tables}",
            node::table("station", Path::new("station")),
            self.line,
            self.keys[1]
        );
        fs::write(self.folder().join("station.toml"), text).unwrap();
    }

    pub fn start(&self, name: &str) -> Running {
        node::start(name, self.folder(), &[])
    }

    /// The station and the centre.
    pub fn start_both(&self) -> (Running, Running) {
        let [station, centre] = NODES.map(|name| self.start(name));
        (station, centre)
    }

    /// The status of a node. `None` while it does not answer.
    pub fn status(&self, name: &str) -> Value {
        node::part(&format!("{name}.toml"), self.folder()).unwrap_or_default()
    }

    pub fn shown(&self, name: &str) -> String {
        printed(&["status", "--config", &format!("{name}.toml")], self.folder())
    }

    /// The address at which the first forward of the station accepts applications, when the line is
    /// open.
    pub fn listening(&self) -> String {
        let look = || {
            let status = self.status("station");
            let is_open = status["destinations"][0]["line"]["state"] == "open";
            let at = status["forwards"]["listens"][0]["at"].as_str().map(str::to_owned);
            at.filter(|_| is_open)
        };
        until(look, || self.state())
    }

    /// Waits for the products of the only contact. Returns the number of packets and the hash of
    /// each. The names of the products contain the time when they were made.
    pub fn products(&self) -> Vec<(u64, String)> {
        let look = || {
            let status = self.status("centre");
            let contacts = status["contacts"].as_array()?;
            let [contact] = &contacts[..] else { return None };
            let products = contact["products"].as_array().filter(|_| contact["state"] == "done")?;
            let one = |product: &Value| {
                let hash = product["sha256"].as_str().unwrap().to_owned();
                (product["packets"].as_u64().unwrap(), hash)
            };
            Some(products.iter().map(one).collect::<Vec<_>>())
        };
        let products = until(look, || self.state());
        assert!(!products.is_empty(), "{}", self.state());
        products
    }

    /// Waits until the station's files at the centre are those of `source`, and nothing else.
    #[track_caller]
    pub fn mirrored(&self, source: &Tree) {
        let there = Tree::at(&self.folder().join("files/in"));
        let look = || (there.contents() == source.contents()).then_some(());
        until(look, || format!("{:?}\n{}", there.contents().keys(), self.state()));
    }

    /// Sockets of the station that have sent anything to the centre.
    pub fn clients(&self) -> u64 {
        let clients = self.handle.counters().clients;
        clients.admitted + clients.refused_datagrams
    }

    /// The text that a failure shows.
    pub fn state(&self) -> String {
        let shown = NODES.map(|name| {
            let shown = run(&["status", "--config", &format!("{name}.toml")], self.folder());
            format!("{}{}", text(&shown.stdout), text(&shown.stderr))
        });
        format!("{}\n{}", shown.join("\n"), node::logs(self.folder()))
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.proxy.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()));
    }
}

/// A channel that plays the damaged recording, with these further keys.
pub fn channel(keys: &str) -> String {
    format!("[[channel]]\nname = \"x\"\ninput = \"file:{}\"\n{keys}", recording(DAMAGED).display())
}
