//! Which nodes are away, and which of them are silent.

use crate::moment::Moment;
use skyhaul_units::Duration;
use std::collections::BTreeMap;

/// The nodes that are watched: those of the configuration.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    nodes: BTreeMap<String, WatchedNode>,
}

#[derive(Debug)]
struct WatchedNode {
    patience: Duration,
    /// Since when there is no session with it; none while there is one.
    away_since: Option<Moment>,
}

/// More are not watched: a node has up to 256 peers.
const NODES_MAX: usize = 512;

impl Silence {
    /// A session with the node is expected from now on.
    pub(crate) fn expect(&mut self, at: Moment, node: &str, patience: Duration) {
        if self.nodes.len() < NODES_MAX || self.nodes.contains_key(node) {
            let new = WatchedNode { patience, away_since: Some(at) };
            let watched = self.nodes.entry(node.to_owned()).or_insert(new);
            watched.patience = patience;
        }
    }

    pub(crate) fn forget(&mut self, node: &str) {
        self.nodes.remove(node);
    }

    pub(crate) fn connected(&mut self, node: &str) {
        if let Some(watched) = self.nodes.get_mut(node) {
            watched.away_since = None;
        }
    }

    pub(crate) fn lost(&mut self, at: Moment, node: &str) {
        if let Some(watched) = self.nodes.get_mut(node) {
            watched.away_since.get_or_insert(at);
        }
    }

    /// Whether it is watched, and there is no session with it.
    pub(crate) fn is_away(&self, node: &str) -> bool {
        self.nodes.get(node).is_some_and(|watched| watched.away_since.is_some())
    }

    /// The nodes that have been away for as long as they may be, each with the time since when.
    pub(crate) fn silent(&self, at: Moment) -> Vec<(String, Moment)> {
        let of = |(name, watched): (&String, &WatchedNode)| {
            let since = watched.away_since?;
            (at.now.since(since.now) >= watched.patience).then(|| (name.clone(), since))
        };
        self.nodes.iter().filter_map(of).collect()
    }
}
