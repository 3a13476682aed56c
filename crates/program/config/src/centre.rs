//! `centre.toml`: the receiving end.

use crate::delivery::{DeliveryEntry, ExpeditedEntry};
use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::forwards::{ForwardEntry, ForwardRules};
use crate::mirrors::FilesEntry;
use crate::name::{Mtu, Name};
use crate::node::Node;
use crate::packets::Live;
use crate::peer::PeerKey;
use crate::products::{ProductEntry, ProductRules, Products};
use crate::section::{ConfigTable, left_out, section};
use crate::sending::Class;
use crate::streams::StreamsEntry;
use skyhaul_congestion::ControllerConfig;
use skyhaul_forward_io::{FarRules, Forwarding};
use skyhaul_transport::ClassTree;
use skyhaul_units::{ByteCount, Duration, Rate};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The configuration of a centre.
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
    /// How what the centre sends is shared, to each station.
    #[serde(default)]
    pub class: Vec<Class>,
    /// Applications that share the sessions with the stations.
    #[serde(default)]
    pub forward: Vec<ForwardEntry>,
}

section! {
    /// The address on which the centre listens for stations.
    "[listen]" Listen {
        /// Address and port; `0.0.0.0` or `[::]` for every local address.
        bind: SocketAddr => required,
        /// The largest IP packet that the lines carry without fragmentation.
        mtu: Mtu => "1500 B",
        /// Accepts connections over TCP too, at the same address and port, for stations whose
        /// networks block UDP.
        tcp: bool => "true",
    }
}

section! {
    /// One station that may connect. All others are refused and logged.
    "[[peer]]" PeerEntry {
        /// The station's name, as in its own configuration.
        name: Name => required,
        /// The fingerprint of its public key, as `skyhaul keygen` prints it there.
        fingerprint: PeerKey => required,
        /// Targets to which this centre connects for forwards of the station: addresses, networks
        /// or a name, with ports, such as `["10.0.0.0/8:6000-6010"]`; with the prefix `udp:` for
        /// datagrams; or `unix:/path`.
        allow: ForwardRules => "[]",
        /// Addresses on which this centre listens for forwards of the station: addresses or
        /// networks with ports, or a socket file.
        allow_listen: ForwardRules => "[]",
        /// Its rights to files of this centre: a table `[peer.files]`. Default: none.
        files: FilesEntry => optional,
        /// The sinks of its streams at this centre: a table `[peer.streams]`. Default: none.
        streams: StreamsEntry => optional,
    }
}

section! {
    /// The contact store. It keeps received data until products are made and for the retention time
    /// after that.
    "[store]" Store {
        /// The largest size of the store on disk. When it is full, stations keep their data in
        /// their spools.
        max_size: ByteCount => "256 GB",
        /// The longest time that received data waits for the disk. The receipt that frees the
        /// station's spool waits as long.
        sync_interval: Duration => "10 ms",
        /// How long a contact's data stays after its products were written, so that Level-0
        /// processing can run again.
        retention: Duration => "7 d",
    }
}

section! {
    /// Limits for the session of each station.
    "[session]" SessionLimits checked by SessionLimits::check {
        /// The most bytes that a station may send ahead of the store. 64 MiB: eight round trips of
        /// 660 ms at 93 Mbit/s, so that repeated retransmissions do not stop the line.
        receive_window: ByteCount => "64 MiB",
        /// The rate that the centre may use towards each station, counted in IP packets with their
        /// headers. Default: 5 Mbit/s if the centre sends only reports and receipts. If a
        /// `[[forward]]`, a station's `allow` or `allow_listen`, or files that it may read let the
        /// centre send more, congestion control finds the rate.
        rate: Rate => optional,
    }
}

pub(super) const TABLES: &[ConfigTable] = &[
    Node::TABLE,
    Listen::TABLE,
    PeerEntry::TABLE,
    FilesEntry::TABLE,
    StreamsEntry::TABLE,
    Store::TABLE,
    Products::TABLE,
    ProductEntry::TABLE,
    ExpeditedEntry::TABLE,
    DeliveryEntry::TABLE,
    Live::TABLE,
    SessionLimits::TABLE,
    Class::TABLE,
    ForwardEntry::TABLE,
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
                return Err(ConfigError::twice(
                    text,
                    file,
                    "fingerprint",
                    &peer.fingerprint.to_string(),
                ));
            }
        }
        if self.expedited.len() > MAX_EXPEDITED {
            return Err(ConfigError::count(
                file,
                "[[expedited]]",
                self.expedited.len(),
                MAX_EXPEDITED,
            ));
        }
        self.check_deliveries(text, file)?;
        let mut products = BTreeSet::new();
        for entry in &self.product {
            if !products.insert((&entry.mission, &entry.name)) {
                return Err(ConfigError::twice(text, file, "product", entry.name.as_str()));
            }
        }
        let classes = crate::sending::classes(&self.class);
        let tree =
            ClassTree::new(&classes).map_err(|error| ConfigError::class(text, file, &error))?;
        let config = ConfigText { text, file };
        crate::forwards::check(config, &self.forward, &self.names(), "a [[peer]]", &tree)
    }

    fn check_deliveries(&self, text: &str, file: &Path) -> Result<(), ConfigError> {
        if self.delivery.len() > MAX_CONSUMERS {
            return Err(ConfigError::count(
                file,
                "[[delivery]]",
                self.delivery.len(),
                MAX_CONSUMERS,
            ));
        }
        let mut consumers = BTreeSet::new();
        let base = file.parent().unwrap_or(Path::new(""));
        for (nth, consumer) in self.delivery.iter().enumerate() {
            if !consumers.insert(&consumer.name) {
                return Err(ConfigError::twice(text, file, "delivery", consumer.name.as_str()));
            }
            consumer.check_folder(base).map_err(|what| {
                let help =
                    "name another folder, or write format = \"edos\" if the consumer reads that";
                let place = KeyPlace { heading: "[[delivery]]", nth, key: "dir" };
                ConfigError::at(ConfigText { text, file }, place, what, help)
            })?;
        }
        Ok(())
    }

    fn names(&self) -> Vec<String> {
        self.peer.iter().map(|peer| peer.name.to_string()).collect()
    }

    /// How what the centre sends is shared.
    pub fn classes(&self) -> ClassTree {
        ClassTree::new(&crate::sending::classes(&self.class))
            .expect("it was checked when it was read")
    }

    /// What is forwarded to and from the stations, in their order.
    pub fn forwarding(&self) -> Forwarding {
        crate::forwards::forwarding(&self.forward, self.names())
    }

    /// Whether anything but contacts may go through a station's session.
    pub fn has_guests(&self) -> bool {
        let comes = |peer: &PeerEntry| peer.files.is_some() || peer.streams.is_some();
        self.sends_more() || self.peer.iter().any(comes)
    }

    /// Whether it may send more than reports, receipts and answers.
    fn sends_more(&self) -> bool {
        let is_read = |peer: &PeerEntry| peer.files.as_ref().is_some_and(|files| files.read);
        let may = |peer: &PeerEntry| peer.rules() != FarRules::default() || is_read(peer);
        !self.forward.is_empty() || self.peer.iter().any(may)
    }

    /// How the rate towards stations is kept.
    pub fn controller(&self) -> ControllerConfig {
        match self.session.rate {
            Some(rate) => ControllerConfig::declared(rate),
            None if self.sends_more() => ControllerConfig::Adaptive,
            None => ControllerConfig::declared(RETURN_RATE),
        }
    }

    pub(super) fn resolve(&mut self, base: &Path) {
        self.node.resolve(base);
        self.missions.iter_mut().for_each(|path| crate::from_base(base, path));
        crate::from_base(base, &mut self.products.dir);
        for peer in &mut self.peer {
            let files = peer.files.as_mut().map(|files| &mut files.root);
            let streams = peer.streams.as_mut().and_then(|streams| streams.root.as_mut());
            files.into_iter().chain(streams).for_each(|folder| crate::from_base(base, folder));
        }
        self.delivery.iter_mut().for_each(|consumer| consumer.resolve(base));
        self.products.hdf5_library.iter_mut().for_each(|file| crate::from_base(base, file));
    }
}

impl PeerEntry {
    /// What the station may have this centre do.
    pub fn rules(&self) -> FarRules {
        crate::forwards::rules(&self.allow, &self.allow_listen)
    }
}

impl SessionLimits {
    fn check(&self) -> Result<(), String> {
        if self.rate == Some(Rate::ZERO) {
            return Err(
                "a rate of 0 bit/s carries no reports; write it like \"20 Mbit/s\"".to_owned()
            );
        }
        if (MIN_WINDOW..=MAX_WINDOW).contains(&self.receive_window) {
            return Ok(());
        }
        let given = self.receive_window;
        Err(format!(
            "a receive_window of {given} is out of range; write one from {MIN_WINDOW} to \
            {MAX_WINDOW}"
        ))
    }
}

/// What a centre sends without forwards: reports, receipts and acknowledgements; paced at this rate
/// they are never in anyone's way.
const RETURN_RATE: Rate = Rate::from_mbps(5);
/// Expedited data sets: each takes 8 MiB of every contact that goes on.
const MAX_EXPEDITED: usize = 8;
/// Consumers: each product is copied for each.
const MAX_CONSUMERS: usize = 64;
/// A centre serves a network of stations; each costs a session's memory while it is connected.
const MAX_PEERS: usize = 256;
/// Four blocks of 256 KiB: less cannot keep one flow moving.
const MIN_WINDOW: ByteCount = ByteCount::mib(1);
/// 1 GiB: 10 Gbit/s at 800 ms.
const MAX_WINDOW: ByteCount = ByteCount::mib(1024);
