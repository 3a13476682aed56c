//! A station and its centres as processes, each centre behind a proxy, in a folder of their own.

use crate::support::node;
use crate::support::patience::now;
use crate::support::ports::free_address;
use crate::support::process::Running;
use crate::support::recordings::{CLEAN, recording};
use skyhaul_emulator::proxy::{LinkProxy, ProxyConfig};
use skyhaul_link::{LinkConfig, Loss};
use skyhaul_node::status::{AssemblyState, ContactState, KeyOrder, StatusRequest, ask, order};
use skyhaul_quic::Fingerprint;
use skyhaul_units::{Duration as Span, Probability, Rate};
use std::fs;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The place of the station; the centres are behind it.
const STATION: usize = 0;

/// A recording of 1 MiB then lasts eight seconds.
const PLAYED_AT: &str = "1 Mbit/s";
/// Longer than a pass of eight seconds takes that is killed every second.
const PATIENCE: Duration = Duration::from_secs(180);
/// The time between two looks.
const LOOK: Duration = Duration::from_millis(20);

pub struct Field {
    folder: tempfile::TempDir,
    names: Vec<&'static str>,
    keys: Vec<Fingerprint>,
    /// The near end of the line to each centre.
    lines: Vec<SocketAddr>,
    stop: Arc<AtomicBool>,
    proxies: Vec<JoinHandle<()>>,
    /// `None` if it has ended by itself without a fault.
    nodes: Vec<Option<Running>>,
    begun: Instant,
}

impl Field {
    /// A station that sends to these centres.
    pub fn prepare(seed: u64, centres: &[&'static str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<&'static str> = [&["station"], centres].concat();
        let keys: Vec<Fingerprint> =
            names.iter().map(|name| node::make_key(name, folder.path())).collect();
        let mut field = Self {
            nodes: names.iter().map(|_| None).collect(),
            folder,
            names,
            keys,
            lines: Vec::new(),
            stop: Arc::default(),
            proxies: Vec::new(),
            begun: now(),
        };
        for (number, name) in centres.iter().enumerate() {
            field.add_centre(name, seed + number as u64);
        }
        field
    }

    fn add_centre(&mut self, name: &str, seed: u64) {
        let centre = free_address();
        let link = LinkConfig {
            loss: Loss::Independent(Probability::of(1, 100)),
            ..LinkConfig::line(Rate::from_mbps(50), Span::from_millis(40))
        };
        let config = ProxyConfig {
            seed,
            // Each station gets a port of its own when it starts.
            max_clients: NonZeroU16::MAX,
            idle: Span::from_secs(30),
            ..ProxyConfig::new("127.0.0.1:0".parse().unwrap(), centre, link)
        };
        let mut proxy = LinkProxy::bind(config).unwrap();
        self.lines.push(proxy.local_addr());
        let stopped = self.stop.clone();
        let thread = std::thread::Builder::new().spawn(move || proxy.run(&stopped).unwrap());
        self.proxies.push(thread.unwrap());
        let text = format!(
            "{}\n[[listen]]\nbind = \"{centre}\"\n\n[[peer]]\nname = \"station\"\nfingerprints = \
            [\"{}\"]\n
[products]\ndir = \"{name}-products\"\ncadu_files = true\n",
            node::table(name, Path::new(name)),
            self.keys[STATION]
        );
        fs::write(self.path(&format!("{name}.toml")), text).unwrap();
    }

    /// The nodes, the station first.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Three new channels; what earlier ones captured may still be under way.
    pub fn begin_pass(&mut self, pass: u64) {
        let mut text = format!(
            "{}\n[line]\nrate = \"50 Mbit/s\"\n",
            node::table("station", Path::new("station"))
        );
        for (number, name) in self.names[1..].iter().enumerate() {
            text += &format!(
                "[[destination]]\nto = \"node:{name}\"\n[[peer]]\nname = \"{name}\"\naddresses = \
                [\"{}\"]\nfingerprints = [\"{}\"]\n",
                self.lines[number],
                self.keys[number + 1]
            );
        }
        for (number, name) in CLEAN.iter().enumerate() {
            let path = recording(name).display().to_string();
            text += &format!(
                "\n[[channel]]\nname = \"pass-{pass}-{number}\"\ninput = \"file:{path}\"\nrate = \
                \"{PLAYED_AT}\"\n"
            );
        }
        fs::write(self.path("station.toml"), text).unwrap();
        self.begun = now();
        for number in 0..self.count() {
            if self.nodes[number].is_none() {
                self.start(number);
            }
        }
    }

    /// Whether this pass and all earlier ones have become products.
    pub fn is_pass_over(&mut self, pass: u64) -> bool {
        self.look();
        let wanted = pass as usize * CLEAN.len();
        self.nodes[STATION].is_none()
            && self.names[1..]
                .iter()
                .all(|name| self.archives(name) == wanted && self.is_idle(name))
    }

    /// Lets the nodes work for a while.
    pub fn wait(&mut self, span: Duration) {
        let until = now() + span;
        while now() < until {
            self.look();
            std::thread::park_timeout(LOOK);
        }
    }

    /// Kills a node and starts it again. `false` if it has ended by itself.
    pub fn kill(&mut self, number: usize) -> bool {
        let Some(node) = self.nodes[number].take() else { return false };
        drop(node);
        self.start(number);
        true
    }

    /// Begins to change the key of a node. `false` if it does not answer, or is changing it.
    pub fn rotate_key(&self, number: usize) -> bool {
        let socket = self.path(&format!("{}/status.sock", self.names[number]));
        order(&socket, &StatusRequest::OrderKey { order: KeyOrder::Rotate }).is_ok()
    }

    /// The keys of the nodes, as their files are now.
    pub fn key_files(&self) -> Vec<Vec<u8>> {
        self.names.iter().map(|name| fs::read(self.path(&format!("{name}.key"))).unwrap()).collect()
    }

    /// Ends the centres; the last station has ended by itself.
    pub fn end(&mut self) {
        self.nodes.fill_with(|| None);
    }

    fn start(&mut self, number: usize) {
        let flags: &[&str] = if number == STATION { &["--until-sent"] } else { &[] };
        self.nodes[number] = Some(node::start(self.names[number], self.folder.path(), flags));
    }

    /// Asserts that no node has ended except a station that has sent everything, and that there is
    /// time left.
    fn look(&mut self) {
        for (number, name) in self.names.iter().enumerate() {
            let Some(child) = &mut self.nodes[number] else { continue };
            if let Some(status) = child.status() {
                self.nodes[number] = None;
                assert!(
                    number == STATION && status.success(),
                    "{name}: {status}\n{}",
                    node::logs(self.folder.path())
                );
            }
        }
        if self.begun.elapsed() > PATIENCE {
            let state = |name: &&str| ask(&self.path(&format!("{name}/status.sock")));
            let states: Vec<_> = self.names.iter().map(state).collect();
            panic!("no end after {PATIENCE:?}: {states:#?}\n{}", node::logs(self.folder.path()));
        }
    }

    /// The contacts whose products a centre has.
    fn archives(&self, centre: &str) -> usize {
        let products = self.path(&format!("{centre}-products"));
        let Ok(entries) = fs::read_dir(products) else { return 0 };
        entries
            .filter(|entry| {
                entry.as_ref().unwrap().path().extension().is_some_and(|kind| kind == "cadu")
            })
            .count()
    }

    /// Whether a centre has nothing to do: neither contacts, nor products of several of them.
    fn is_idle(&self, name: &str) -> bool {
        let answer = ask(&self.path(&format!("{name}/status.sock")));
        let Some(centre) = answer.ok().and_then(|status| status.centre) else { return false };
        let assembled = &centre.products.assembled;
        centre.contacts.iter().all(|contact| contact.state == ContactState::Done)
            && assembled.iter().all(|product| product.state != AssemblyState::Waiting)
            && !self.path(&format!("{name}-products/.assembly.work")).exists()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for proxy in self.proxies.drain(..) {
            let _ = proxy.join();
        }
    }
}
