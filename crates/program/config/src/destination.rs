//! `[[destination]]`: where contacts go.

use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::name::{Name, from_text};
use crate::peer::PeerEntry;
use crate::section::section;
use skyhaul_units::Duration;
use std::collections::BTreeSet;
use std::str::FromStr;

section! {
    /// Where contacts go. Each destination has its own receipts and backlog in the spool: one that
    /// is away holds up no other. Data for several destinations crosses the line once for each.
    /// Mirrors, streams, files of folders, and forwards that name none go to the first destination.
    /// One that is added or removed applies at once too, unless a folder, forward, mirror or stream
    /// uses it. Up to 16.
    "[[destination]]" DestinationEntry applies at_once(to, catch_up_class, catch_up_after) {
        /// `node:NAME`: the `[[peer]]` of this name. It needs an address.
        to: DestinationPlace => required,
        /// It gets every contact, and its receipts do not count: the spool frees data without
        /// them. For a new release that is tried on live data.
        shadow: bool => "false",
        /// Where it begins when it is new to the spool: `now`, with the next contact; or `kept`,
        /// with all that the spool still holds.
        since: SinceName => "now",
        /// The class of its backlog after an absence: contacts that ended longer ago than
        /// `catch_up_after`. Default: the class of the contact. The backlog has the last priority
        /// in its class and no deadline, so that it goes behind live data.
        catch_up_class: Name => optional,
        /// How long before the destination returned a contact must have ended to count as backlog.
        catch_up_after: Duration => "60 s",
    }
}

/// What a destination is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DestinationPlace {
    /// Another node, by the name of its `[[peer]]`.
    Node(Name),
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
    /// What its table says.
    pub entry: DestinationEntry,
}

impl Destination {
    /// The name of its node.
    pub fn name(&self) -> &str {
        self.peer.name.as_str()
    }
}

impl FromStr for DestinationPlace {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("node:").map(str::parse) {
            Some(Ok(name)) => Ok(Self::Node(name)),
            Some(Err(error)) => Err(error.to_string()),
            None => Err(format!("`{text}` is not a destination; write `node:NAME`")),
        }
    }
}
impl std::fmt::Display for DestinationPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::Node(name) = self;
        write!(f, "node:{name}")
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
from_text!(DestinationPlace, SinceName);

/// The destinations with their peers, in the order of the file. `own` is this node's name.
pub(super) fn resolve(
    config: ConfigText<'_>,
    entries: Vec<DestinationEntry>,
    peers: &[PeerEntry],
    own: &Name,
) -> Result<Vec<Destination>, ConfigError> {
    if entries.len() > MAX_DESTINATIONS {
        return Err(ConfigError::many(config, HEADING, entries.len(), MAX_DESTINATIONS));
    }
    if !entries.is_empty() && entries.iter().all(|entry| entry.shadow) {
        let place = KeyPlace { heading: HEADING, nth: 0, key: "shadow" };
        let what = "every destination is a shadow".to_owned();
        let help = "let at least one count: without one the spool would keep nothing";
        return Err(ConfigError::at(config, place, what, help));
    }
    let mut names = BTreeSet::new();
    let mut found = Vec::new();
    for (nth, entry) in entries.into_iter().enumerate() {
        let place = KeyPlace { heading: HEADING, nth, key: "to" };
        let refuse = |what: String, help: &str| Err(ConfigError::at(config, place, what, help));
        let DestinationPlace::Node(name) = &entry.to;
        if name == own {
            let what = format!("the destination `{name}` is this node");
            return refuse(what, "name the [[peer]] that gets the data");
        }
        let Some(peer) = peers.iter().find(|peer| peer.name == *name) else {
            let what = format!("there is no peer `{name}` for the destination");
            return refuse(what, "add a [[peer]] with this name, its addresses and fingerprints");
        };
        if peer.addresses.iter().next().is_none() {
            let what = format!("the peer `{name}` of the destination has no address");
            let help = format!("add `addresses = [\"HOST:PORT\"]` to the [[peer]] `{name}`");
            return refuse(what, &help);
        }
        if !names.insert(name.clone()) {
            let what = format!("the destination `{name}` is defined twice");
            return refuse(what, "give each destination once");
        }
        found.push(Destination { peer: peer.clone(), entry });
    }
    Ok(found)
}

/// As many as a spool has.
const MAX_DESTINATIONS: usize = 16;
const HEADING: &str = "[[destination]]";
