//! `centre.toml`: the receiving end.

use super::delivery::{DeliveryEntry, ExpeditedEntry};
use super::error::ConfigError;
use super::name::{Mtu, Name};
use super::node::Node;
use super::packets::Live;
use super::peer::PeerKey;
use super::products::{ProductEntry, ProductRules, Products};
use super::section::{Table, left_out, section};
use skyhaul_units::{Bytes, Duration};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What a centre is told to do.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CentreConfig {
    /// Mission files, or folders of them, beside those that the program holds.
    #[serde(default)]
    pub missions: Vec<PathBuf>,
    /// Who this centre is.
    pub node: Node,
    /// Where it waits for stations.
    pub listen: Listen,
    /// The stations that it takes data from; anyone else is refused.
    #[serde(default)]
    pub peer: Vec<PeerEntry>,
    /// The durable store of what arrived.
    #[serde(default = "left_out")]
    pub store: Store,
    /// Where Level-0 products are written, and which are made.
    pub products: Products,
    /// What is different for one product.
    #[serde(default)]
    pub product: Vec<ProductEntry>,
    /// What is published while a contact goes on.
    #[serde(default)]
    pub expedited: Vec<ExpeditedEntry>,
    /// Who products are handed over to.
    #[serde(default)]
    pub delivery: Vec<DeliveryEntry>,
    /// Who gets packets as they arrive.
    #[serde(default)]
    pub live: Vec<Live>,
    /// What one station may have under way.
    #[serde(default = "left_out")]
    pub session: SessionLimits,
}

section! {
    /// Where the centre waits for stations.
    "[listen]" Listen {
        /// The address and port; `0.0.0.0` or `[::]` for every local address.
        bind: SocketAddr => required,
        /// The largest IP packet that the lines carry whole.
        mtu: Mtu => "1500 B",
        /// Takes calls over TCP too, at the same address and port: for stations whose networks block UDP.
        tcp: bool => "true",
    }
}

section! {
    /// One station that may send; anyone else is refused and logged.
    "[[peer]]" PeerEntry {
        /// The station's name, as its own configuration says it.
        name: Name => required,
        /// The fingerprint of its public key, printed by `skyhaul keygen` there.
        fingerprint: PeerKey => required,
    }
}

section! {
    /// The store of what arrived: it is kept until products are made and for the retention time.
    "[store]" Store {
        /// The most that it takes of the disk. When it is full, stations keep their data in their spools.
        max_size: Bytes => "256 GB",
        /// The longest that arrived data waits for the disk, and with it the receipt that frees the station's spool.
        sync_interval: Duration => "10 ms",
        /// How long a contact's data stays after its products were written: level-0 can be run again from it.
        retention: Duration => "7 d",
    }
}

section! {
    /// What one station may have under way.
    "[session]" SessionLimits checked by SessionLimits::check {
        /// The most bytes that a station may send ahead of the store. 64 MiB: eight round trips of 660 ms at
        /// 93 Mbit/s, so that repairs of repairs do not stop the line.
        receive_window: Bytes => "64 MiB",
    }
}

pub(super) const TABLES: &[Table] = &[
    Node::TABLE,
    Listen::TABLE,
    PeerEntry::TABLE,
    Store::TABLE,
    Products::TABLE,
    ProductEntry::TABLE,
    ExpeditedEntry::TABLE,
    DeliveryEntry::TABLE,
    Live::TABLE,
    SessionLimits::TABLE,
];

/// Receivers of live packets: each has a thread, and up to 8 MiB that wait for it.
const MAX_LIVE: usize = 16;

impl CentreConfig {
    /// Which products are made.
    pub fn product_rules(&self) -> ProductRules {
        ProductRules {
            products: self.products.clone(),
            entries: self.product.clone(),
            expedited: self.expedited.clone(),
        }
    }

    pub(super) fn check(&self, text: &str, file: &Path) -> Result<(), ConfigError> {
        if self.peer.len() > MAX_PEERS {
            return Err(ConfigError::peer_count(file, self.peer.len(), MAX_PEERS));
        }
        if self.live.len() > MAX_LIVE {
            return Err(ConfigError::count(file, "[[live]]", self.live.len(), MAX_LIVE));
        }
        let mut names = BTreeSet::new();
        let mut keys = BTreeSet::new();
        for peer in &self.peer {
            if !names.insert(&peer.name) {
                return Err(ConfigError::twice(text, file, "peer", peer.name.as_str()));
            }
            if !keys.insert(&peer.fingerprint) {
                return Err(ConfigError::twice(text, file, "fingerprint", &peer.fingerprint.to_string()));
            }
        }
        if self.expedited.len() > MAX_EXPEDITED {
            return Err(ConfigError::count(file, "[[expedited]]", self.expedited.len(), MAX_EXPEDITED));
        }
        if self.delivery.len() > MAX_CONSUMERS {
            return Err(ConfigError::count(file, "[[delivery]]", self.delivery.len(), MAX_CONSUMERS));
        }
        let mut consumers = BTreeSet::new();
        for consumer in &self.delivery {
            if !consumers.insert(&consumer.name) {
                return Err(ConfigError::twice(text, file, "delivery", consumer.name.as_str()));
            }
        }
        let mut products = BTreeSet::new();
        for entry in &self.product {
            if !products.insert((&entry.mission, &entry.name)) {
                return Err(ConfigError::twice(text, file, "product", entry.name.as_str()));
            }
        }
        Ok(())
    }

    pub(super) fn resolve(&mut self, base: &Path) {
        self.node.resolve(base);
        self.missions.iter_mut().for_each(|path| super::from_base(base, path));
        super::from_base(base, &mut self.products.dir);
        self.delivery.iter_mut().for_each(|consumer| consumer.resolve(base));
        self.products.hdf5_library.iter_mut().for_each(|file| super::from_base(base, file));
    }
}

impl SessionLimits {
    fn check(&self) -> Result<(), String> {
        if (MIN_WINDOW..=MAX_WINDOW).contains(&self.receive_window) {
            return Ok(());
        }
        let given = self.receive_window;
        Err(format!(
            "a receive_window of {given} is out of range; write one from {MIN_WINDOW} to {MAX_WINDOW}"
        ))
    }
}

/// Expedited data sets: each takes 8 MiB of every contact that goes on.
const MAX_EXPEDITED: usize = 8;
/// Consumers: each product is copied for each.
const MAX_CONSUMERS: usize = 64;
/// A centre serves a network of stations; each costs a session's memory while it is connected.
const MAX_PEERS: usize = 256;
/// Four blocks of 256 KiB: less cannot keep one flow moving.
const MIN_WINDOW: Bytes = Bytes::mib(1);
/// 1 GiB: 10 Gbit/s at 800 ms.
const MAX_WINDOW: Bytes = Bytes::mib(1024);
