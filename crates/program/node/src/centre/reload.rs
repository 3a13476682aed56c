//! Reload of what a node receives: peers, their permissions, classes and the store's limits change;
//! other changes need a restart.

use super::admission::CentreAdmission;
use super::shared::CentreShared;
use crate::adopted::Adopted;
use skyhaul_config::{CentreConfig, Listen, PeerEntry};
use std::collections::BTreeSet;

/// The configuration in force.
#[derive(Debug)]
pub struct Reload {
    /// The peers that the node began with, in their order.
    begun: Vec<PeerEntry>,
    before: CentreConfig,
}

impl Reload {
    /// `before` is the configuration in force.
    pub fn new(before: CentreConfig) -> Self {
        Self { begun: before.peer.clone(), before }
    }

    /// The configuration in force.
    pub const fn config(&self) -> &CentreConfig {
        &self.before
    }

    /// Adopts what may change.
    ///
    /// # Errors
    /// What is wrong with it; nothing has changed.
    pub(super) fn adopt(
        &mut self,
        new: CentreConfig,
        shared: &CentreShared,
    ) -> Result<Adopted, String> {
        let peers = super::peers(&new, &self.begun).map_err(|fault| fault.to_string())?;
        let waits = unchangeable(&self.before, &new);
        let changes = changes(&self.before, &new);
        shared.store().set_limits(new.store.max_size, new.store.retention);
        let stations: BTreeSet<String> =
            new.peer.iter().map(|peer| peer.name.to_string()).collect();
        shared.gaps().ledger().stations(&stations);
        let classes = (self.before.class != new.class).then(|| new.classes());
        // Another number of addresses, or another one, waits for a restart, and so do its peers.
        let same = self.before.listen.len() == new.listen.len();
        let trusted = if same { new.trusted() } else { self.before.trusted() };
        shared.admission.put(CentreAdmission { peers, trusted, classes });
        shared.shutdown.wake_line();
        self.before.peer = new.peer.iter().map(|peer| kept(&self.before.peer, peer)).collect();
        if same {
            for (before, new) in self.before.listen.iter_mut().zip(new.listen) {
                before.peers = new.peers;
            }
        }
        self.before.class = new.class;
        (self.before.store.max_size, self.before.store.retention) =
            (new.store.max_size, new.store.retention);
        Ok(Adopted { changes, waits })
    }
}

/// The new entry of a station, with the files and streams of the old one: they need a restart.
fn kept(before: &[PeerEntry], new: &PeerEntry) -> PeerEntry {
    let old = before.iter().find(|before| before.name == new.name);
    let (files, streams) = old.map_or((None, None), |old| (old.files.clone(), old.streams.clone()));
    PeerEntry { files, streams, ..new.clone() }
}

/// The changes, for the log.
fn changes(before: &CentreConfig, new: &CentreConfig) -> Vec<String> {
    let mut said = Vec::new();
    for peer in &new.peer {
        match before.peer.iter().find(|before| before.name == peer.name) {
            None => said.push(format!("peer {} added", peer.name)),
            Some(old) if old.fingerprints != peer.fingerprints => {
                said.push(format!("peer {}: keys changed", peer.name));
            }
            Some(old) if old.rules() != peer.rules() => {
                said.push(format!("peer {}: permissions changed", peer.name));
            }
            Some(_) => {}
        }
    }
    let gone = before.peer.iter().filter(|old| !new.peer.iter().any(|new| new.name == old.name));
    said.extend(gone.map(|peer| format!("peer {} removed", peer.name)));
    let (old, store) = (&before.store, &new.store);
    if (old.max_size, old.retention) != (store.max_size, store.retention) {
        said.push("limits of the store changed".to_owned());
    }
    if before.class != new.class {
        said.push("the classes of the lines are changed".to_owned());
    }
    let listens = before.listen.iter().zip(&new.listen);
    for (old, listen) in listens.filter(|_| before.listen.len() == new.listen.len()) {
        if old.peers != listen.peers {
            said.push(format!("the peers of {} changed", old.bind));
        }
    }
    said
}

/// The addresses that are listened on, without who may connect there.
fn bound(config: &CentreConfig) -> Vec<Listen> {
    config.listen.iter().map(|listen| Listen { peers: None, ..listen.clone() }).collect()
}

/// The keys that differ and need a restart.
fn unchangeable(before: &CentreConfig, new: &CentreConfig) -> Vec<String> {
    let mut found: Vec<String> = [
        (before.missions != new.missions, "`missions`"),
        (before.node != new.node, "[node]"),
        (bound(before) != bound(new), "[[listen]] (beyond `peers`)"),
        (before.store.sync_interval != new.store.sync_interval, "`sync_interval` in [store]"),
        (before.products != new.products, "[products]"),
        (before.product != new.product, "[[product]]"),
        (before.expedited != new.expedited, "[[expedited]]"),
        (before.delivery != new.delivery, "[[delivery]]"),
        (before.live != new.live, "[[live]]"),
        (before.session != new.session, "[session]"),
        (before.forward != new.forward, "[[forward]]"),
        (
            before.session == new.session && before.controller() != new.controller(),
            "the rate to peers (set by [[peer]] tables if [session] sets none)",
        ),
    ]
    .into_iter()
    .filter(|(differs, _)| *differs)
    .map(|(_, what)| what.to_owned())
    .collect();
    for peer in &new.peer {
        let kept = kept(&before.peer, peer);
        let is_other_key = before
            .peer
            .iter()
            .any(|old| old.name == peer.name && old.fingerprints != peer.fingerprints);
        let has_guests = peer.files.is_some() || peer.streams.is_some();
        if kept != *peer || (is_other_key && has_guests) {
            found.push(format!("[peer.files] or [peer.streams] of peer {}", peer.name));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CENTRE: &str = "[node]\nname = \"centre\"\nkey = \"k\"\nstate = \"state\"\n[[listen]]\n\
    bind = \
                         \"127.0.0.1:4700\"\n\
        [products]\ndir = \"products\"\n";

    fn centre(text: &str) -> CentreConfig {
        *skyhaul_config::parse(text, "/etc/node.toml".as_ref()).unwrap().centre.unwrap()
    }

    fn peer(name: &str, digit: char, keys: &str) -> String {
        let fingerprint: String = core::iter::repeat_n(digit, 64).collect();
        format!("[[peer]]\nname = \"{name}\"\nfingerprints = [\"SHA256:{fingerprint}\"]\n{keys}")
    }

    #[test]
    fn stations_rights_classes_and_limits_can_change_and_the_rest_is_named() {
        let before = centre(&format!("{CENTRE}{}{}", peer("a", '1', ""), peer("b", '2', "")));
        let fine = format!(
            "{CENTRE}[session]\nrate = \"5 Mbit/s\"\n[store]\nmax_size = \"1 GB\"\n[[class]]\nname \
            = \"x\"\n{}{}",
            peer("a", '3', ""),
            peer("c", '4', "")
        );
        let new = centre(&fine.replace("[session]\nrate = \"5 Mbit/s\"\n", ""));
        assert_eq!(unchangeable(&before, &new), Vec::<String>::new());
        assert_eq!(
            changes(&before, &new),
            [
                "peer a: keys changed",
                "peer c added",
                "peer b removed",
                "limits of the store changed",
                "the classes of the lines are changed"
            ]
        );
        assert_eq!(changes(&before, &before), Vec::<String>::new());
        let other =
            centre(&format!("{fine}[peer.files]\nroot = \"files\"\n").replace(":4700", ":4701"));
        let named = unchangeable(&before, &other).join(", ");
        assert_eq!(
            named,
            "[[listen]] (beyond `peers`), [session], [peer.files] or [peer.streams] of peer c"
        );
        let rights = centre(&format!("{CENTRE}{}", peer("a", '1', "allow = [\"10.0.0.5:80\"]\n")));
        assert_eq!(changes(&before, &rights), ["peer a: permissions changed", "peer b removed"]);
        assert!(unchangeable(&before, &rights)[0].starts_with("the rate to peers"));
    }
}
