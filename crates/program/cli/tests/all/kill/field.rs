//! A station and a centre as processes, joined by a proxy, in a folder of their own.

use crate::support::node::{self, NODES};
use crate::support::patience::now;
use crate::support::process::Running;
use crate::support::recordings::{CLEAN, recording};
use skyhaul_emulator::proxy::{LinkProxy, ProxyConfig};
use skyhaul_link::{LinkConfig, Loss};
use skyhaul_node::status::{ContactState, ask};
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

// The places of the nodes in `NODES`.
const STATION: usize = 0;
const CENTRE: usize = 1;

/// A recording of 1 MiB then lasts eight seconds.
const PLAYED_AT: &str = "1 Mbit/s";
/// Longer than a pass of eight seconds takes that is killed every second.
const PATIENCE: Duration = Duration::from_secs(180);
/// The time between two looks.
const LOOK: Duration = Duration::from_millis(20);

pub struct Field {
    folder: tempfile::TempDir,
    keys: [Fingerprint; 2],
    line: SocketAddr,
    stop: Arc<AtomicBool>,
    proxy: Option<JoinHandle<()>>,
    /// `None` if it has ended by itself without a fault.
    nodes: [Option<Running>; 2],
    begun: Instant,
}

impl Field {
    pub fn prepare(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = node::make_keys(folder.path());
        let centre = node::free_address();
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
        let line = proxy.local_addr();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread =
            std::thread::Builder::new().spawn(move || proxy.run(&stopped).unwrap()).unwrap();
        let field = Self {
            folder,
            keys,
            line,
            stop,
            proxy: Some(thread),
            nodes: [None, None],
            begun: now(),
        };
        let text = format!(
            "{}\n[[listen]]\nbind = \"{centre}\"\n\n[[peer]]\nname = \"station\"\nfingerprints = \
            [\"{}\"]\n
[products]\ndir = \"products\"\ncadu_files = true\n",
            node::table("centre", Path::new("centre")),
            field.keys[STATION]
        );
        fs::write(field.path("centre.toml"), text).unwrap();
        field
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Three new channels; what earlier ones captured may still be under way.
    pub fn begin_pass(&mut self, pass: u64) {
        let mut text = format!(
            "{}\n[[destination]]\nto = \"node:centre\"\n[[peer]]\nname = \"centre\"\n\
            addresses = [\"{}\"]\nfingerprints = \
            [\"{}\"]\n\n[line]\nrate = \"50 Mbit/s\"\n",
            node::table("station", Path::new("station")),
            self.line,
            self.keys[CENTRE]
        );
        for (number, name) in CLEAN.iter().enumerate() {
            let path = recording(name).display().to_string();
            text += &format!(
                "\n[[channel]]\nname = \"pass-{pass}-{number}\"\ninput = \"file:{path}\"\nrate = \
                \"{PLAYED_AT}\"\n"
            );
        }
        fs::write(self.path("station.toml"), text).unwrap();
        self.begun = now();
        for number in 0..NODES.len() {
            if self.nodes[number].is_none() {
                self.start(number);
            }
        }
    }

    /// Whether this pass and all earlier ones have become products.
    pub fn is_pass_over(&mut self, pass: u64) -> bool {
        self.look();
        self.nodes[STATION].is_none()
            && self.archives() == pass as usize * CLEAN.len()
            && self.is_idle()
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

    /// Ends the centre; the last station has ended by itself.
    pub fn end(&mut self) {
        self.nodes = [None, None];
    }

    fn start(&mut self, number: usize) {
        let flags: &[&str] = if number == STATION { &["--until-sent"] } else { &[] };
        self.nodes[number] = Some(node::start(NODES[number], self.folder.path(), flags));
    }

    /// Asserts that no node has ended except a station that has sent everything, and that there is
    /// time left.
    fn look(&mut self) {
        for (number, name) in NODES.iter().enumerate() {
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
            let states = NODES.map(|name| ask(&self.path(&format!("{name}/status.sock"))));
            panic!("no end after {PATIENCE:?}: {states:#?}\n{}", node::logs(self.folder.path()));
        }
    }

    /// The contacts whose products exist.
    fn archives(&self) -> usize {
        let Ok(entries) = fs::read_dir(self.path("products")) else { return 0 };
        entries
            .filter(|entry| {
                entry.as_ref().unwrap().path().extension().is_some_and(|kind| kind == "cadu")
            })
            .count()
    }

    /// Whether the centre has nothing to do.
    fn is_idle(&self) -> bool {
        let answer = ask(&self.path("centre/status.sock"));
        let Some(centre) = answer.ok().and_then(|status| status.centre) else { return false };
        centre.contacts.iter().all(|contact| contact.state == ContactState::Done)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(proxy) = self.proxy.take() {
            let _ = proxy.join();
        }
    }
}
