//! `[[forward]]`: applications whose connections share the session with another node, and what that
//! node may ask for.

use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::section::section;
use skyhaul_forward::{Allow, Carriage, Entrance, Forward, What};
use skyhaul_forward_io::{FarRules, Forwarding};
use skyhaul_transport::ClassTree;
use skyhaul_units::{ByteCount, Duration};
use std::str::FromStr;

section! {
    /// A forward: it accepts connections of applications at one end of the session and connects
    /// them at the other. Give exactly one of `local`, `remote`, `socks` and `transparent`, as for
    /// `skyhaul forward`. NODE is the name of the node at the other end. Up to 256.
    "[[forward]]" ForwardEntry {
        /// `[BIND:]PORT=NODE:HOST:PORT`: connections arrive here, and NODE connects them to HOST.
        /// The prefix `udp:` is for datagrams; `unix:/path` is a socket file, on either side.
        local: AsFlag<Forward> => optional,
        /// The opposite direction: connections arrive at NODE, whose `allow_listen` must name the
        /// address, and this node connects them to HOST.
        remote: AsFlag<Forward> => optional,
        /// `[BIND:]PORT[=NODE]`: connections arrive here and name their target by SOCKS version 5;
        /// NODE connects them.
        socks: AsFlag<Entrance> => optional,
        /// `[BIND:]PORT[=NODE]`: connections that this router's rules divert (TPROXY) arrive here;
        /// NODE connects them.
        transparent: AsFlag<Entrance> => optional,
        /// The class of its data, at both ends. Default: the first leaf class.
        class: String => optional,
        /// Its priority within the class, 0 (the most important) to 255. Default: 1.
        priority: u8 => optional,
        /// The time after reading here by which data should be at the other end. Earlier deadlines
        /// are sent first, and later datagrams are dropped. Default: 2 s for datagrams, none for
        /// connections.
        deadline: Duration => optional,
        /// A connection without traffic for this time is reset, and a datagram client is forgotten.
        /// Default: 60 s for datagrams, no limit for connections.
        idle: Duration => optional,
    }
}

/// What has the same form as on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsFlag<T>(pub T);

impl<'de, T: FromStr<Err: core::fmt::Display>> serde::Deserialize<'de> for AsFlag<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <String as serde::Deserialize>::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

/// Rules of where the other end may have this one connect, or listen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForwardRules(pub Vec<Allow>);

impl<'de> serde::Deserialize<'de> for ForwardRules {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let rules = <Vec<AsFlag<Allow>> as serde::Deserialize>::deserialize(deserializer)?;
        Ok(Self(rules.into_iter().map(|rule| rule.0).collect()))
    }
}

impl FromStr for ForwardRules {
    type Err = &'static str;

    /// The default of a key alone: a file writes an array.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "[]" { Ok(Self::default()) } else { Err("an array of rules") }
    }
}

impl ForwardEntry {
    /// Whether it has exactly one kind of forward.
    fn is_one(&self) -> bool {
        let given = [
            self.local.is_some(),
            self.remote.is_some(),
            self.socks.is_some(),
            self.transparent.is_some(),
        ];
        given.into_iter().filter(|given| *given).count() == 1
    }

    /// What is forwarded.
    pub fn what(&self) -> What {
        let local = self.local.as_ref().map(|written| What::Local(written.0.clone()));
        let remote = self.remote.as_ref().map(|written| What::Remote(written.0.clone()));
        let socks = self.socks.as_ref().map(|written| What::Socks(written.0.clone()));
        let transparent =
            self.transparent.as_ref().map(|written| What::Transparent(written.0.clone()));
        local
            .or(remote)
            .or(socks)
            .or(transparent)
            .expect("it was checked when the configuration was read")
    }

    /// The node that it names.
    pub fn node(&self) -> Option<&str> {
        let forward = self.local.as_ref().or(self.remote.as_ref());
        let entrance = self.socks.as_ref().or(self.transparent.as_ref());
        match (forward, entrance) {
            (Some(forward), _) => Some(&forward.0.node),
            (None, Some(entrance)) => entrance.0.node.as_deref(),
            (None, None) => None,
        }
    }

    /// The key of its kind of forward.
    const fn key(&self) -> &'static str {
        match (&self.local, &self.remote, &self.socks) {
            (Some(_), ..) => "local",
            (None, Some(_), _) => "remote",
            (None, None, Some(_)) => "socks",
            (None, None, None) => "transparent",
        }
    }
}

/// What `entries` forward, to and from nodes of these names.
pub(super) fn forwarding(entries: &[ForwardEntry], nodes: Vec<String>) -> Forwarding {
    let mut forwarding = Forwarding { nodes, budget: BUDGET, ..Forwarding::default() };
    for entry in entries {
        let what = entry.what();
        let node = place(&forwarding.nodes, what.node());
        let node = node.expect("its name was checked when the configuration was read");
        let carriage = Carriage {
            class: entry.class.clone().unwrap_or_default(),
            priority: entry.priority.unwrap_or(Carriage::default().priority),
            deadline: entry.deadline,
        };
        forwarding.add(what, node, carriage, entry.idle);
    }
    forwarding
}

/// The nodes at the other ends of a node's sessions.
#[derive(Debug)]
pub(super) struct FarNodes {
    /// All of them.
    pub names: Vec<String>,
    /// The one that a forward without a node has.
    pub usual: Option<String>,
}

/// The rules of one far node.
pub(super) fn rules(allow: &ForwardRules, allow_listen: &ForwardRules) -> FarRules {
    FarRules { allow: allow.0.clone(), allow_listen: allow_listen.0.clone() }
}

/// Checks that each `[[forward]]` table of a file has exactly one kind of forward.
///
/// # Errors
/// The first that has not, with its line.
pub fn each_is_one(config: ConfigText<'_>, entries: &[ForwardEntry]) -> Result<(), ConfigError> {
    let Some(nth) = entries.iter().position(|entry| !entry.is_one()) else {
        return Ok(());
    };
    let what = "a [[forward]] table needs exactly one kind of forward".to_owned();
    let help = "give it one of `local`, `remote`, `socks` and `transparent`";
    let place = KeyPlace { heading: HEADING, nth, key: HEADING };
    Err(ConfigError::at(config, place, what, help))
}

/// Checks that each entry has exactly one kind of forward, and names a node and a class that exist.
pub(super) fn check(
    config: ConfigText<'_>,
    entries: &[ForwardEntry],
    nodes: &FarNodes,
    tree: &ClassTree,
) -> Result<(), ConfigError> {
    if entries.len() > MAX_FORWARDS {
        return Err(ConfigError::many(config, HEADING, entries.len(), MAX_FORWARDS));
    }
    each_is_one(config, entries)?;
    for (nth, entry) in entries.iter().enumerate() {
        let place_of = |key| KeyPlace { heading: HEADING, nth, key };
        let is_known = match entry.node() {
            Some(node) => nodes.names.iter().any(|name| name == node),
            None => nodes.usual.is_some(),
        };
        if !is_known {
            let (what, help) = unknown_node(entry.node(), &nodes.names);
            return Err(ConfigError::at(config, place_of(entry.key()), what, &help));
        }
        if let Some(class) = &entry.class
            && tree.find(class).is_none()
        {
            let place = place_of("class");
            return Err(ConfigError::no_class(config, place, class, "a forward", tree));
        }
    }
    Ok(())
}

/// The place of a node; of none that is named, that of the first one.
fn place(nodes: &[String], name: Option<&str>) -> Option<usize> {
    match name {
        Some(name) => nodes.iter().position(|node| node == name),
        None => (!nodes.is_empty()).then_some(0),
    }
}

fn unknown_node(name: Option<&str>, nodes: &[String]) -> (String, String) {
    let known = nodes.join(", ");
    let add = || "add a [[peer]] for it".to_owned();
    match (name, nodes) {
        (Some(name), []) => (format!("the far node `{name}` is not known"), add()),
        (Some(name), _) => {
            (format!("the far node `{name}` is not known"), format!("the nodes are {known}"))
        }
        (None, []) => ("a forward needs a far node".to_owned(), add()),
        (None, _) => (
            "there are several far nodes, and a forward does not name one".to_owned(),
            format!("write `=NODE` after the port, with one of {known}"),
        ),
    }
}

const HEADING: &str = "[[forward]]";
/// A node listens at a handful of places; as many as it lets another one ask for.
const MAX_FORWARDS: usize = 256;
/// Bytes that came for applications and wait for them, of each session: two streams with the widest
/// window.
const BUDGET: ByteCount = ByteCount::mib(64);
