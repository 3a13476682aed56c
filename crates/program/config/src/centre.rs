//! What a node receives: where it listens, its store, and the products that it makes.

use crate::budget::BudgetEntry;
use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::expedited::ExpeditedEntry;
use crate::forwards::ForwardEntry;
use crate::name::Mtu;
use crate::node::Node;
use crate::outlets::{ProductDestination, ProductOutlets};
use crate::packets::Live;
use crate::peer::{PeerEntry, PeerNames};
use crate::products::{ProductEntry, ProductRules, Products};
use crate::retention::RetentionEntry;
use crate::section::section;
use crate::sending::Class;
use skyhaul_congestion::ControllerConfig;
use skyhaul_forward_io::{FarRules, Forwarding};
use skyhaul_quic::Fingerprint;
use skyhaul_transport::ClassTree;
use skyhaul_units::{ByteCount, Duration, Rate};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What a node receives and makes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CentreConfig {
    /// Mission files, or folders of them, beside those that the program holds.
    pub missions: Vec<PathBuf>,
    /// Who this node is.
    pub node: Node,
    /// Where it waits for its peers, at least once.
    pub listen: Vec<Listen>,
    /// The nodes that it takes data from; anyone else is refused.
    pub peer: Vec<PeerEntry>,
    /// The durable store of what arrived.
    pub store: Store,
    /// Where Level-0 products are written, and which are made. None: contacts are only kept.
    pub products: Option<Products>,
    /// What is different for one product.
    pub product: Vec<ProductEntry>,
    /// What is published while a contact goes on.
    pub expedited: Vec<ExpeditedEntry>,
    /// Where products go.
    pub outlets: ProductOutlets,
    /// By when.
    pub budget: Vec<BudgetEntry>,
    /// How long products and contacts stay.
    pub retention: Vec<RetentionEntry>,
    /// Who gets packets as they arrive.
    pub live: Vec<Live>,
    /// What one peer may have under way.
    pub session: SessionLimits,
    /// How what the node sends is shared, to each peer.
    pub class: Vec<Class>,
    /// Applications that share the sessions with the peers.
    pub forward: Vec<ForwardEntry>,
}

section! {
    /// An address on which the node listens for its peers. Several tables keep networks apart:
    /// each may have peers of its own. Up to 8.
    "[[listen]]" Listen applies at_once(peers) {
        /// Address and port; `0.0.0.0` or `[::]` for every local address.
        bind: SocketAddr => required,
        /// The largest IP packet that the lines carry without fragmentation.
        mtu: Mtu => "1500 B",
        /// Accepts connections over TCP too, at the same address and port, for peers whose networks
        /// block UDP.
        tcp: bool => "true",
        /// The names of the peers that may connect here. Default: every `[[peer]]`.
        peers: PeerNames => optional,
    }
}

section! {
    /// The contact store. It keeps received data until products are made and for the retention time
    /// after that.
    "[store]" Store applies at_once(max_size, retention) {
        /// The largest size of the store on disk. When it is full, senders keep their data in
        /// their spools. The contacts that are open at a time must fit: nothing of a contact goes
        /// before it is finished, at a relay also passed on.
        max_size: ByteCount => "256 GB",
        /// The longest time that received data waits for the disk. The receipt that frees the
        /// sender's spool waits as long.
        sync_interval: Duration => "10 ms",
        /// How long a contact's data stays after its products were written, so that Level-0
        /// processing can run again, where no `[[retention]]` is for it. It goes earlier if space
        /// is needed, with an alarm.
        retention: Duration => "7 d",
    }
}

section! {
    /// Limits for the session of each peer that connects.
    "[session]" SessionLimits checked by SessionLimits::check {
        /// The most bytes that a peer may send ahead of the store. 64 MiB: eight round trips of
        /// 660 ms at 93 Mbit/s, so that repeated retransmissions do not stop the line.
        receive_window: ByteCount => "64 MiB",
        /// The rate that the node may use towards each of them, counted in IP packets with their
        /// headers. Default: 5 Mbit/s if the node sends only reports and receipts. If a
        /// `[[forward]]`, a peer's `allow` or `allow_listen`, or files that it may read let the
        /// node send more, congestion control finds the rate.
        rate: Rate => optional,
    }
}

/// Receivers of live packets: each has a thread, and up to 8 MiB that wait for it.
const MAX_LIVE: usize = 16;

impl CentreConfig {
    /// Which products are made.
    pub fn product_rules(&self) -> ProductRules {
        let Some(products) = self.products.clone() else { return ProductRules::none() };
        ProductRules {
            enabled: true,
            products,
            entries: self.product.clone(),
            expedited: self.expedited.clone(),
        }
    }

    /// The keys of the peers that may connect to each `[[listen]]`, in their order.
    pub fn trusted(&self) -> Vec<BTreeSet<Fingerprint>> {
        let may = |listen: &Listen, peer: &PeerEntry| {
            listen.peers.as_ref().is_none_or(|names| names.0.contains(&peer.name))
        };
        let keys = |listen: &Listen| {
            let peers = self.peer.iter().filter(|peer| may(listen, peer));
            peers.flat_map(|peer| peer.fingerprints.iter()).collect()
        };
        self.listen.iter().map(keys).collect()
    }

    pub(super) fn check(&self, config: ConfigText<'_>) -> Result<(), ConfigError> {
        let ConfigText { text, file } = config;
        if self.live.len() > MAX_LIVE {
            return Err(ConfigError::many(config, "[[live]]", self.live.len(), MAX_LIVE));
        }
        self.check_listens(config)?;
        if self.expedited.len() > MAX_EXPEDITED {
            let count = self.expedited.len();
            return Err(ConfigError::many(config, "[[expedited]]", count, MAX_EXPEDITED));
        }
        if self.budget.len() > MAX_BUDGETS {
            return Err(ConfigError::many(config, "[[budget]]", self.budget.len(), MAX_BUDGETS));
        }
        if self.retention.len() > MAX_RETENTIONS {
            let count = self.retention.len();
            return Err(ConfigError::many(config, "[[retention]]", count, MAX_RETENTIONS));
        }
        let mut products = BTreeSet::new();
        for entry in &self.product {
            if !products.insert((&entry.mission, &entry.name)) {
                return Err(ConfigError::twice(text, file, "product", entry.name.as_str()));
            }
        }
        Ok(())
    }

    fn check_listens(&self, config: ConfigText<'_>) -> Result<(), ConfigError> {
        const HEADING: &str = "[[listen]]";
        if self.listen.len() > MAX_LISTENS {
            return Err(ConfigError::many(config, HEADING, self.listen.len(), MAX_LISTENS));
        }
        let mut addresses = BTreeSet::new();
        for (nth, listen) in self.listen.iter().enumerate() {
            let place = |key| KeyPlace { heading: HEADING, nth, key };
            if listen.bind.port() != 0 && !addresses.insert(listen.bind) {
                let what = format!("the address {} is listened on twice", listen.bind);
                let help = "give each [[listen]] an address of its own";
                return Err(ConfigError::at(config, place("bind"), what, help));
            }
            let named = listen.peers.iter().flat_map(|names| &names.0);
            if let Some(name) = { named }.find(|name| self.peer_of(name.as_str()).is_none()) {
                let what = format!("there is no peer `{name}` for a [[listen]]");
                let help = format!("add a [[peer]] with this name, or remove it from `{PEERS}`");
                return Err(ConfigError::at(config, place(PEERS), what, &help));
            }
        }
        Ok(())
    }

    /// The peer of a name.
    fn peer_of(&self, name: &str) -> Option<&PeerEntry> {
        self.peer.iter().find(|peer| peer.name.as_str() == name)
    }

    fn names(&self) -> Vec<String> {
        self.peer.iter().map(|peer| peer.name.to_string()).collect()
    }

    /// How what the node sends is shared.
    pub fn classes(&self) -> ClassTree {
        ClassTree::new(&crate::sending::classes(&self.class))
            .expect("it was checked when it was read")
    }

    /// What is forwarded to and from the peers, in their order.
    pub fn forwarding(&self) -> Forwarding {
        crate::forwards::forwarding(&self.forward, self.names())
    }

    /// Whether anything but contacts may go through a peer's session.
    pub fn has_guests(&self) -> bool {
        let comes = |peer: &PeerEntry| peer.files.is_some() || peer.streams.is_some();
        self.sends_more() || self.peer.iter().any(comes)
    }

    /// Whether it may send more than reports, receipts and answers.
    fn sends_more(&self) -> bool {
        let is_read = |peer: &PeerEntry| peer.files.as_ref().is_some_and(|files| files.read);
        let may = |peer: &PeerEntry| peer.rules() != FarRules::default() || is_read(peer);
        let to_node = |one: &ProductDestination| one.node().is_some();
        let delivers = self.outlets.destinations.iter().any(to_node);
        delivers || !self.forward.is_empty() || self.peer.iter().any(may)
    }

    /// How the rate towards peers is kept.
    pub fn controller(&self) -> ControllerConfig {
        match self.session.rate {
            Some(rate) => ControllerConfig::declared(rate),
            None if self.sends_more() => ControllerConfig::Adaptive,
            None => ControllerConfig::declared(RETURN_RATE),
        }
    }

    pub(super) fn resolve(&mut self, base: &Path) {
        for peer in &mut self.peer {
            peer.resolve(base);
        }
        if let Some(products) = &mut self.products {
            crate::from_base(base, &mut products.dir);
            products.hdf5_library.iter_mut().for_each(|file| crate::from_base(base, file));
        }
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
/// Budgets: 32 missions with each form of products.
const MAX_BUDGETS: usize = 96;
/// Retentions: SQLite joins their filters in one condition.
const MAX_RETENTIONS: usize = 64;
/// Networks that a node stands in; each costs two sockets.
const MAX_LISTENS: usize = 8;
/// The key of a `[[listen]]` that names who may connect there.
const PEERS: &str = "peers";
/// Four blocks of 256 KiB: less cannot keep one flow moving.
const MIN_WINDOW: ByteCount = ByteCount::mib(1);
/// 1 GiB: 10 Gbit/s at 800 ms.
const MAX_WINDOW: ByteCount = ByteCount::mib(1024);
