//! `[[destination]]`: where contacts go, and where products go.

use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::name::{Name, from_text};
use crate::peer::PeerEntry;
use crate::product_terms::OutletFolder;
use crate::section::section;
use skyhaul_remote::RemotePlace;
use skyhaul_units::{Duration, Rate};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;

section! {
    /// Where contacts go, to a node; or where products go, to a folder of a node or to any other
    /// place. A `[[subscription]]` says what goes there. Each destination has its own backlog: one
    /// that is away holds up no other. In the spool each node has its own receipts; data for
    /// several nodes crosses the line once for each. Mirrors, streams, files of folders, and
    /// forwards that name none go to the first node. A node that is added or removed applies at
    /// once too, unless a folder, forward, mirror or stream uses it. Up to 16 nodes, and 64 places
    /// of products.
    "[[destination]]" DestinationEntry applies at_once(
        name, to, key, password, host_keys, ca, endpoint, region, profile_file, profile, rate,
        connections, publish, directory, notices, class, catch_up_class, catch_up_after
    ) checked by DestinationEntry::check {
        /// The name by which subscriptions, commands and status name it, and the consumer's name in
        /// delivery records. A node has the name of its `[[peer]]`; so has a folder of a node,
        /// unless it is given another one. Any other place needs one.
        name: Name => optional,
        /// `node:NAME`, the `[[peer]]` of this name, which needs an address, for contacts.
        /// `node:NAME/DIR`, a folder of that peer, for products: below the `[peer.files]` that it
        /// has for this node, and created if it does not exist; `node:NAME/` is that folder itself.
        /// A peer with an address is called; one without has to connect. Its report that a file is
        /// on its disk is the proof of a delivery. `folder:PATH`, a folder of this machine or
        /// mounted here, which the node creates if it does not exist;
        /// `sftp://USER@HOST[:PORT]/DIR`; `ftps://USER@HOST[:PORT]/DIR`;
        /// `https://[USER@]HOST[:PORT]/DIR` (PUT, and WebDAV where the server has it); or
        /// `s3://BUCKET[/PREFIX]`.
        to: DestinationPlace => required,
        /// The private key for `sftp://`, as OpenSSH writes it, without a passphrase.
        key: PathBuf => optional,
        /// A file with the password of the user in its first line; of `https://` without a user it
        /// is a bearer token.
        password: PathBuf => optional,
        /// The keys that the `sftp://` server may have, `SHA256:…`, as `ssh-keygen -l` prints them.
        host_keys: Vec<String> => optional,
        /// Certificates (PEM) that vouch for an `ftps://`, `https://` or `s3://` server. Default:
        /// those of this machine.
        ca: PathBuf => optional,
        /// The object store, `https://HOST[:PORT]`, or `http://` in a closed network. Default:
        /// Amazon's.
        endpoint: String => optional,
        /// The region of the object store. Default: `us-east-1`.
        region: Name => optional,
        /// The file with the keys of the object store, in the form of Amazon's `credentials`.
        profile_file: PathBuf => optional,
        /// The profile in that file. Default: `default`.
        profile: Name => optional,
        /// The most that goes there, of products. Default: no limit.
        rate: Rate => optional,
        /// How many products go there at a time, each over a connection of its own, 1 to 16. They
        /// share the `rate`.
        connections: u32 => "1",
        /// How a file gets its final name at an `sftp://`, `ftps://` or `https://` server: `auto`,
        /// as the server can; `rename`, written under another name and renamed; `direct`, written
        /// under its final name, for servers that forbid renaming.
        publish: PublishName => "auto",
        /// The folder by which delivery records name the place; of `cnm` records an address such as
        /// `s3://BUCKET/PREFIX`. Default: its path, and in `cnm` records its address.
        directory: String => optional,
        /// The folder below the place where the consumer writes its notices. The node moves them to
        /// `read` there. At another node this needs `read = true` in its `[peer.files]`.
        notices: String => "notices",
        /// Of a folder of a node: the class of what goes there, among contacts, mirrors and streams
        /// in the session with that node. Within the class products have priority 7, behind live
        /// data. Default: the first leaf class.
        class: Name => optional,
        /// Of a node: it gets every contact, and its receipts do not count: the spool frees data
        /// without them. For a new release that is tried on live data.
        shadow: bool => "false",
        /// Of a node: where it begins when it is new to the spool: `now`, with the next contact; or
        /// `kept`, with all that the spool still holds.
        since: SinceName => "now",
        /// Of a node: the class of its backlog after an absence: contacts that ended longer ago
        /// than `catch_up_after`. Default: the class of the contact. The backlog has the last
        /// priority in its class and no deadline, so that it goes behind live data.
        catch_up_class: Name => optional,
        /// Of a node: how long before it returned a contact must have ended to count as backlog.
        catch_up_after: Duration => "60 s",
    }
}

/// What a destination is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DestinationPlace {
    /// Another node, by the name of its `[[peer]]`: it takes contacts.
    Node(Name),
    /// A place of products.
    Products(OutletPlace),
}

/// Where products go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutletPlace {
    /// A folder of another node.
    Node(NodeFolder),
    /// A place that is no node.
    Remote(RemotePlace),
}

/// A folder of another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFolder {
    /// The name of its `[[peer]]`.
    pub node: Name,
    /// The folder, below the one that it has for this node.
    pub folder: OutletFolder,
}

/// What goes to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DestinationUse {
    /// Contacts.
    Contacts,
    /// Products.
    Products,
    /// Both.
    Both,
}

/// How a file gets its final name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishName {
    /// As the server can.
    Auto,
    /// Written under another name, and renamed.
    Rename,
    /// Written under its final name.
    Direct,
}

/// With which contacts a new destination begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinceName {
    /// The next ones.
    Now,
    /// All that the spool holds.
    Kept,
}

/// A destination with its peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The node.
    pub peer: PeerEntry,
    /// What its table says; where only products go there, the first of their tables.
    pub entry: DestinationEntry,
    /// What goes there.
    pub usage: DestinationUse,
}

impl Destination {
    /// Whether contacts go there.
    pub fn takes_contacts(&self) -> bool {
        self.usage != DestinationUse::Products
    }

    /// The name of its node.
    pub fn name(&self) -> &str {
        self.peer.name.as_str()
    }
}

impl FromStr for DestinationPlace {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix("node:") {
            let named = |name: &str| {
                name.parse::<Name>().map_err(|error: crate::NameError| error.to_string())
            };
            let Some((name, folder)) = name.split_once('/') else {
                return named(name).map(Self::Node);
            };
            let place = NodeFolder { node: named(name)?, folder: folder.parse()? };
            return Ok(Self::Products(OutletPlace::Node(place)));
        }
        let remote = |place| Self::Products(OutletPlace::Remote(place));
        // Paths begin at the file's own folder.
        if let Some(path) = text.strip_prefix("folder:").filter(|path| !path.is_empty()) {
            return Ok(remote(RemotePlace::Folder(PathBuf::from(path))));
        }
        text.parse().map(remote).map_err(|error: skyhaul_remote::PlaceError| {
            error.to_string().replace(
                "; write \"folder:/path\"",
                "; write \"node:NAME\", \
                                                                  \"folder:/path\"",
            )
        })
    }
}
impl std::fmt::Display for DestinationPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Node(name) => write!(f, "node:{name}"),
            Self::Products(place) => place.fmt(f),
        }
    }
}
impl std::fmt::Display for OutletPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Node(NodeFolder { node, folder }) => write!(f, "node:{node}/{}", folder.as_str()),
            Self::Remote(place) => place.fmt(f),
        }
    }
}
impl FromStr for PublishName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "rename" => Ok(Self::Rename),
            "direct" => Ok(Self::Direct),
            _ => Err(format!("`{text}` is not a way to publish; write auto, rename or direct")),
        }
    }
}
impl FromStr for SinceName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "now" => Ok(Self::Now),
            "kept" => Ok(Self::Kept),
            _ => {
                Err(format!("`{text}` does not say where a destination begins; write now or kept"))
            }
        }
    }
}
from_text!(DestinationPlace, PublishName, SinceName);

impl DestinationEntry {
    fn check(&self) -> Result<(), String> {
        if (1..=MAX_CONNECTIONS).contains(&self.connections) {
            return Ok(());
        }
        Err(format!(
            "a destination has {} connections; write 1 to {MAX_CONNECTIONS}",
            self.connections
        ))
    }

    /// The name of the peer that contacts go to, if they do.
    const fn node(&self) -> Option<&Name> {
        match &self.to {
            DestinationPlace::Node(name) => Some(name),
            DestinationPlace::Products(_) => None,
        }
    }

    /// The folder of a peer that products go to, if they do.
    const fn node_folder(&self) -> Option<&NodeFolder> {
        match &self.to {
            DestinationPlace::Products(OutletPlace::Node(folder)) => Some(folder),
            _ => None,
        }
    }

    /// Its name.
    pub(super) fn title(&self) -> Option<&Name> {
        let of_node = self.node_folder().map(|folder| &folder.node);
        self.node().or(self.name.as_ref()).or(of_node)
    }

    /// The first key that it has although it is for other places.
    fn foreign_key(&self) -> Option<&'static str> {
        let of_node = [
            ("shadow", self.shadow),
            ("since", self.since != SinceName::Now),
            ("catch_up_class", self.catch_up_class.is_some()),
        ];
        let of_server = [
            ("key", self.key.is_some()),
            ("password", self.password.is_some()),
            ("host_keys", self.host_keys.is_some()),
            ("ca", self.ca.is_some()),
            ("endpoint", self.endpoint.is_some()),
            ("region", self.region.is_some()),
            ("profile_file", self.profile_file.is_some()),
            ("profile", self.profile.is_some()),
            ("publish", self.publish != PublishName::Auto),
        ];
        let of_place = [
            ("name", self.name.is_some()),
            ("rate", self.rate.is_some()),
            ("connections", self.connections != 1),
            ("directory", self.directory.is_some()),
        ];
        let of_folder = [("class", self.class.is_some())];
        let foreign: [&[_]; 3] = match &self.to {
            DestinationPlace::Node(_) => [&of_place, &of_server, &of_folder],
            DestinationPlace::Products(OutletPlace::Node(_)) => [&of_node, &of_server, &[]],
            DestinationPlace::Products(OutletPlace::Remote(_)) => [&of_node, &of_folder, &[]],
        };
        foreign.into_iter().flatten().find(|(_, is_given)| *is_given).map(|(key, _)| *key)
    }
}

/// The destinations of a file by kind, each place of products with its place among the tables.
pub(super) struct Destinations {
    /// The nodes that this one calls: those that contacts go to, in the order of the file, then
    /// those that only products go to.
    pub nodes: Vec<Destination>,
    /// The places of products.
    pub places: Vec<(usize, DestinationEntry)>,
}

/// The destinations; nodes with their peers. `own` is this node's name.
pub(super) fn resolve(
    config: ConfigText<'_>,
    entries: Vec<DestinationEntry>,
    peers: &[PeerEntry],
    own: &Name,
) -> Result<Destinations, ConfigError> {
    let count = entries.iter().filter(|entry| entry.node().is_some()).count();
    if count > MAX_DESTINATIONS {
        let place = KeyPlace { heading: HEADING, nth: MAX_DESTINATIONS, key: "to" };
        let what = format!("there are {count} destinations that are nodes");
        let help = format!("write at most {MAX_DESTINATIONS}");
        return Err(ConfigError::at(config, place, what, &help));
    }
    let all_shadows = |entry: &DestinationEntry| entry.node().is_none() || entry.shadow;
    if count > 0 && entries.iter().all(all_shadows) {
        let place = KeyPlace { heading: HEADING, nth: 0, key: "shadow" };
        let what = "every destination is a shadow".to_owned();
        let help = "let at least one count: without one the spool would keep nothing";
        return Err(ConfigError::at(config, place, what, help));
    }
    let mut names = BTreeSet::new();
    let mut found = Destinations { nodes: Vec::new(), places: Vec::new() };
    for (nth, entry) in entries.into_iter().enumerate() {
        let at = |key| KeyPlace { heading: HEADING, nth, key };
        let refuse = |what: String, help: &str| ConfigError::at(config, at("to"), what, help);
        if let Some(key) = entry.foreign_key() {
            let kind = match &entry.to {
                DestinationPlace::Node(_) => "a node",
                DestinationPlace::Products(OutletPlace::Node(_)) => "a folder of a node",
                DestinationPlace::Products(OutletPlace::Remote(_)) => "no node",
            };
            let what = format!("the destination `{}` is {kind}, and has no `{key}`", entry.to);
            return Err(ConfigError::at(config, at(key), what, "remove the key"));
        }
        let Some(name) = entry.title().cloned() else {
            let what = format!("the destination `{}` has no name", entry.to);
            return Err(refuse(what, "add `name`, by which subscriptions and commands name it"));
        };
        if !names.insert(name.clone()) {
            let what = format!("the destination `{name}` is defined twice");
            return Err(refuse(what, "give each destination once, under a name of its own"));
        }
        if entry.node().is_none() {
            if let Some(NodeFolder { node, .. }) = entry.node_folder() {
                peer_of(node, peers, own).map_err(|(what, help)| refuse(what, &help))?;
            }
            found.places.push((nth, entry));
            continue;
        }
        let peer = peer_of(&name, peers, own).and_then(with_address);
        let peer = peer.map_err(|(what, help)| refuse(what, &help))?;
        let usage = DestinationUse::Contacts;
        found.nodes.push(Destination { peer: peer.clone(), entry, usage });
    }
    found.call_for_products(peers);
    if found.nodes.len() > MAX_DESTINATIONS {
        let place = KeyPlace { heading: HEADING, nth: 0, key: "to" };
        let what = format!("{} nodes are called", found.nodes.len());
        let help = format!("write destinations at no more than {MAX_DESTINATIONS} nodes");
        return Err(ConfigError::at(config, place, what, &help));
    }
    Ok(found)
}

impl Destinations {
    /// Adds the nodes that are called because products go there.
    fn call_for_products(&mut self, peers: &[PeerEntry]) {
        for (_, entry) in &self.places {
            let Some(NodeFolder { node, .. }) = entry.node_folder() else { continue };
            let called = self.nodes.iter_mut().find(|one| one.peer.name == *node);
            if let Some(called) = called {
                if called.usage == DestinationUse::Contacts {
                    called.usage = DestinationUse::Both;
                }
                continue;
            }
            let Some(peer) = peers.iter().find(|peer| peer.name == *node) else { continue };
            if peer.addresses.iter().next().is_some() {
                let (peer, entry) = (peer.clone(), entry.clone());
                self.nodes.push(Destination { peer, entry, usage: DestinationUse::Products });
            }
        }
    }
}

/// The peer that a destination is; or what is wrong, and what to do.
fn peer_of<'a>(
    name: &Name,
    peers: &'a [PeerEntry],
    own: &Name,
) -> Result<&'a PeerEntry, (String, String)> {
    if name == own {
        let what = format!("the destination `{name}` is this node");
        return Err((what, "name the [[peer]] that gets the data".to_owned()));
    }
    let Some(peer) = peers.iter().find(|peer| peer.name == *name) else {
        let what = format!("there is no peer `{name}` for the destination");
        let help = "add a [[peer]] with this name, its addresses and fingerprints";
        return Err((what, help.to_owned()));
    };
    Ok(peer)
}

/// The peer, which contacts go to.
fn with_address(peer: &PeerEntry) -> Result<&PeerEntry, (String, String)> {
    if peer.addresses.iter().next().is_none() {
        let name = &peer.name;
        let what = format!("the peer `{name}` of the destination has no address");
        let help = format!("add `addresses = [\"HOST:PORT\"]` to the [[peer]] `{name}`");
        return Err((what, help));
    }
    Ok(peer)
}

/// Each is a thread; servers refuse more of one user.
const MAX_CONNECTIONS: u32 = 16;
/// As many as a spool has.
const MAX_DESTINATIONS: usize = 16;
pub(super) const HEADING: &str = "[[destination]]";
