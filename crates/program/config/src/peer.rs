//! `[[peer]]`: other nodes, their keys, and what they may do here.

use crate::error::{ConfigError, ConfigText};
use crate::forwards::ForwardRules;
use crate::mirrors::FilesEntry;
use crate::name::Name;
use crate::peer_address::PeerAddresses;
use crate::peer_key::PeerKeys;
use crate::section::section;
use crate::streams::StreamsEntry;
use skyhaul_forward_io::FarRules;
use skyhaul_units::Duration;
use std::collections::BTreeSet;
use std::path::Path;

section! {
    /// Another node: one that may connect, and one that a `[[destination]]` names. Nodes without a
    /// table are refused and logged. Up to 256. What a `[[destination]]` needs of its peer applies
    /// at the next start.
    "[[peer]]" PeerEntry
        applies at_once(name, addresses, fingerprints, allow, allow_listen, silent_after) {
        /// The node's name, as in its own configuration.
        name: Name => required,
        /// Its hosts and ports, such as `["centre.example.org:4700"]`. A node that is called needs
        /// one; if an address does not answer, the next one is tried.
        addresses: PeerAddresses => "[]",
        /// The fingerprints of its public key, as `skyhaul keygen` prints them there. Several,
        /// while its key is exchanged: each is accepted.
        fingerprints: PeerKeys => required,
        /// Targets to which this node connects for forwards of the peer: addresses, networks or a
        /// name, with ports, such as `["10.0.0.0/8:6000-6010"]`; with the prefix `udp:` for
        /// datagrams; or `unix:/path`.
        allow: ForwardRules => "[]",
        /// Addresses on which this node listens for forwards of the peer: addresses or networks
        /// with ports, or a socket file.
        allow_listen: ForwardRules => "[]",
        /// It is an alarm when there has been no session with the node for so long: with one that a
        /// `[[destination]]` names, and with one that has sent contacts here. `0 s`: never.
        silent_after: Duration => "60 s",
        /// Its rights to files of this node: a table `[peer.files]`. Default: none.
        files: FilesEntry => optional,
        /// The sinks of its streams at this node: a table `[peer.streams]`. Default: none.
        streams: StreamsEntry => optional,
    }
}

/// Names of peers.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct PeerNames(pub Vec<Name>);

impl PeerEntry {
    /// Without a session for so long it is silent; none where that is no alarm.
    pub fn patience(&self) -> Option<Duration> {
        (self.silent_after > Duration::ZERO).then_some(self.silent_after)
    }

    /// What the peer may have this node do.
    pub fn rules(&self) -> FarRules {
        crate::forwards::rules(&self.allow, &self.allow_listen)
    }

    pub(super) fn resolve(&mut self, base: &Path) {
        let files = self.files.as_mut().map(|files| &mut files.root);
        let streams = self.streams.as_mut().and_then(|streams| streams.root.as_mut());
        files.into_iter().chain(streams).for_each(|folder| crate::from_base(base, folder));
    }
}

/// Checks that each peer, and each key, is there once.
pub(super) fn check(config: ConfigText<'_>, peers: &[PeerEntry]) -> Result<(), ConfigError> {
    if peers.len() > MAX_PEERS {
        return Err(ConfigError::many(config, HEADING, peers.len(), MAX_PEERS));
    }
    let (mut names, mut keys) = (BTreeSet::new(), BTreeSet::new());
    for peer in peers {
        if !names.insert(&peer.name) {
            return Err(ConfigError::twice(config.text, config.file, "peer", peer.name.as_str()));
        }
        for key in peer.fingerprints.iter() {
            if !keys.insert(key) {
                let key = key.to_string();
                return Err(ConfigError::twice(config.text, config.file, "fingerprint", &key));
            }
        }
    }
    Ok(())
}

/// A node serves a network of nodes; each costs a session's memory while it is connected.
const MAX_PEERS: usize = 256;
const HEADING: &str = "[[peer]]";
