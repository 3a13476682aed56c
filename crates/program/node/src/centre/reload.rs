//! Reload of what a node receives: peers, their permissions, where products go, classes and the
//! store's limits change; other changes need a restart.

use super::admission::CentreAdmission;
use super::retention::ArchiveRules;
use super::shared::CentreShared;
use crate::adopted::{Adopted, ReloadPlan, differing};
use skyhaul_config::{CentreConfig, PeerEntry, ProductOutlets, RetentionEntry, Store};
use skyhaul_congestion::ControllerConfig;
use std::collections::BTreeSet;

/// The configuration in force.
#[derive(Debug)]
pub struct Reload {
    begun: Begun,
    before: CentreConfig,
}

/// What the node began with, and keeps.
#[derive(Debug)]
pub struct Begun {
    /// The peers, in their order.
    peers: Vec<PeerEntry>,
    /// How the rate towards peers is kept.
    controller: ControllerConfig,
    /// Whether the sessions have room for more than contacts.
    has_guests: bool,
}

impl Begun {
    /// What a node that begins with this configuration keeps.
    pub fn of(config: &CentreConfig) -> Self {
        let (controller, has_guests) = (config.controller(), config.has_guests());
        Self { peers: config.peer.clone(), controller, has_guests }
    }
}

impl Reload {
    /// `before` is the configuration in force.
    pub fn new(before: CentreConfig) -> Self {
        Self { begun: Begun::of(&before), before }
    }

    /// The configuration in force.
    pub const fn config(&self) -> &CentreConfig {
        &self.before
    }

    /// What becomes of a configuration.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn plan(&self, new: &CentreConfig) -> Result<ReloadPlan<CentreConfig>, String> {
        let plan = plan(&self.begun, &self.before, new);
        admission(&self.begun, &self.before, &plan.in_force)?;
        Ok(plan)
    }

    /// Carries out a plan.
    ///
    /// # Errors
    /// What is wrong with it; nothing has changed.
    pub(super) fn adopt(
        &mut self,
        plan: ReloadPlan<CentreConfig>,
        shared: &CentreShared,
    ) -> Result<Adopted, String> {
        let ReloadPlan { in_force, waits } = plan;
        let admission = admission(&self.begun, &self.before, &in_force)?;
        let changes = changes(&self.before, &in_force);
        shared.store().set_max_size(in_force.store.max_size);
        shared.deliveries().archive().adopt(archive_rules(&in_force));
        shared.gaps().ledger().stations(&stations(&in_force));
        shared.deliveries().adopt(in_force.outlets.clone());
        shared.desk.admission.put(admission);
        shared.shutdown.wake_line();
        self.before = in_force;
        Ok(Adopted { changes, waits })
    }
}

/// How long products and contacts stay.
pub fn archive_rules(config: &CentreConfig) -> ArchiveRules {
    let rules = config.retention.iter().map(RetentionEntry::rule).collect();
    ArchiveRules { rules, contacts: config.store.retention }
}

/// What the thread of the lines gets of a configuration.
fn admission(
    begun: &Begun,
    before: &CentreConfig,
    in_force: &CentreConfig,
) -> Result<CentreAdmission, String> {
    let peers = super::peers(in_force, &begun.peers).map_err(|fault| fault.to_string())?;
    let classes = (before.class != in_force.class).then(|| in_force.classes());
    Ok(CentreAdmission { peers, trusted: in_force.trusted(), classes })
}

/// The names of the nodes that may be asked for frames.
fn stations(config: &CentreConfig) -> BTreeSet<String> {
    config.peer.iter().map(|peer| peer.name.to_string()).collect()
}

/// What a node does that runs with `before`, and whose file says `new` now.
pub fn plan(begun: &Begun, before: &CentreConfig, new: &CentreConfig) -> ReloadPlan<CentreConfig> {
    let in_force = in_force(before, new);
    let waits = waiting(begun, before, &in_force, new);
    ReloadPlan { in_force, waits }
}

/// The new configuration as far as the node can have it without a restart.
fn in_force(before: &CentreConfig, new: &CentreConfig) -> CentreConfig {
    let mut next = before.clone();
    next.peer = new.peer.iter().map(|peer| kept(&before.peer, peer)).collect();
    next.class.clone_from(&new.class);
    next.retention.clone_from(&new.retention);
    // The first products, and the last ones, wait for a restart with all that is made of them.
    if before.products.is_some() && new.products.is_some() {
        next.outlets.clone_from(&new.outlets);
    }
    (next.store.max_size, next.store.retention) = (new.store.max_size, new.store.retention);
    // Who may connect where follows the address, and another one waits for a restart.
    if binds(before) == binds(new) {
        for (listen, new) in next.listen.iter_mut().zip(&new.listen) {
            listen.peers.clone_from(&new.peers);
        }
    }
    next
}

fn binds(config: &CentreConfig) -> Vec<std::net::SocketAddr> {
    config.listen.iter().map(|listen| listen.bind).collect()
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
            Some(old) if old.addresses != peer.addresses => {
                said.push(format!("peer {}: addresses changed", peer.name));
            }
            Some(_) => {}
        }
    }
    let gone = before.peer.iter().filter(|old| !new.peer.iter().any(|new| new.name == old.name));
    said.extend(gone.map(|peer| format!("peer {} removed", peer.name)));
    said.extend(changes_of_outlets(&before.outlets, &new.outlets));
    let (old, store) = (&before.store, &new.store);
    if (old.max_size, old.retention) != (store.max_size, store.retention) {
        said.push("limits of the store changed".to_owned());
    }
    if before.retention != new.retention {
        said.push("how long products and contacts stay changed".to_owned());
    }
    if before.class != new.class {
        said.push("the classes of the lines are changed".to_owned());
    }
    for (old, listen) in before.listen.iter().zip(&new.listen) {
        if old.peers != listen.peers {
            said.push(format!("the peers of {} changed", old.bind));
        }
    }
    said
}

/// The changes of where products go, for the log.
fn changes_of_outlets(before: &ProductOutlets, new: &ProductOutlets) -> Vec<String> {
    let mut said = Vec::new();
    let old = |name| before.destinations.iter().find(|one| one.name == name);
    for destination in &new.destinations {
        match old(destination.name.clone()) {
            None => said.push(format!("destination {} added", destination.name)),
            Some(old) if old != destination => {
                said.push(format!("destination {} changed", destination.name));
            }
            Some(_) => {}
        }
    }
    let stays = |name| new.destinations.iter().any(|one| one.name == name);
    let gone = before.destinations.iter().filter(|old| !stays(old.name.clone()));
    said.extend(gone.map(|old| format!("destination {} removed", old.name)));
    if before.subscriptions != new.subscriptions {
        said.push("the subscriptions to products changed".to_owned());
    }
    said
}

/// Where the file differs from what is in force: what needs a restart.
fn waiting(
    begun: &Begun,
    before: &CentreConfig,
    in_force: &CentreConfig,
    new: &CentreConfig,
) -> Vec<String> {
    // A key that is added to one of these tables is compared here, or does not compile.
    let CentreConfig {
        missions,
        node,
        listen,
        peer: peers,
        store: Store { max_size: _, sync_interval, retention: _ },
        products,
        product,
        expedited,
        outlets: _,
        budget,
        retention: _,
        live,
        session,
        class: _,
        forward,
    } = in_force;
    let mut found = differing([
        (*missions != new.missions, "`missions`"),
        (*node != new.node, "[node]"),
        (*listen != new.listen, "[[listen]] (beyond `peers`)"),
        (*sync_interval != new.store.sync_interval, "`sync_interval` in [store]"),
        (*products != new.products, "[products]"),
        (*product != new.product, "[[product]]"),
        (*expedited != new.expedited, "[[expedited]]"),
        (*budget != new.budget, "[[budget]]"),
        (*live != new.live, "[[live]]"),
        (*session != new.session, "[session]"),
        (*forward != new.forward, "[[forward]]"),
        (
            *session == new.session && begun.controller != new.controller(),
            "the rate to peers (set by [[peer]] tables if [session] sets none)",
        ),
        (
            !begun.has_guests && new.has_guests(),
            "the send buffer to peers (larger as soon as a [[peer]] has rights)",
        ),
    ]);
    for peer in &new.peer {
        let is_kept = peers.contains(peer);
        let is_other_key = before
            .peer
            .iter()
            .any(|old| old.name == peer.name && old.fingerprints != peer.fingerprints);
        let has_guests = peer.files.is_some() || peer.streams.is_some();
        if !is_kept || (is_other_key && has_guests) {
            found.push(format!("[peer.files] or [peer.streams] of peer {}", peer.name));
        }
    }
    found
}

/// A plan for a node that began with `before`.
#[cfg(test)]
pub fn plan_from(before: &CentreConfig, new: &CentreConfig) -> ReloadPlan<CentreConfig> {
    plan(&Begun::of(before), before, new)
}

/// All that threads get of a configuration that was read again.
#[cfg(test)]
pub fn handed_over(before: &CentreConfig, in_force: &CentreConfig) -> String {
    let (max_size, archive) = (in_force.store.max_size, archive_rules(in_force));
    let admission = admission(&Begun::of(before), before, in_force);
    let outlets = &in_force.outlets;
    format!("{admission:?} {:?} {outlets:?} {max_size} {archive:?}", stations(in_force))
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

    fn waits(before: &CentreConfig, new: &CentreConfig) -> Vec<String> {
        plan(&Begun::of(before), before, new).waits
    }

    /// Regression: the peers of the first address were those of the second then.
    #[test]
    fn peers_of_an_address_do_not_move_to_another_one() {
        let listen = |bind: &str, peer: &str| {
            format!("[[listen]]\nbind = \"{bind}\"\npeers = [\"{peer}\"]\n")
        };
        let node = "[node]\nname = \"centre\"\nkey = \"k\"\nstate = \"state\"\n";
        let peers = format!("{}{}", peer("a", '1', ""), peer("b", '2', ""));
        let (first, second) = (listen("127.0.0.1:1", "a"), listen("127.0.0.1:2", "b"));
        let before = centre(&format!("{node}{first}{second}{peers}"));
        let new = centre(&format!("{node}{second}{first}{peers}"));
        let plan = plan(&Begun::of(&before), &before, &new);
        assert_eq!(plan.in_force.trusted(), before.trusted());
        assert_eq!(plan.waits, ["[[listen]] (beyond `peers`)"]);
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
        assert_eq!(waits(&before, &new), Vec::<String>::new());
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
        let named = waits(&before, &other).join(", ");
        assert_eq!(
            named,
            "[[listen]] (beyond `peers`), [session], the send buffer to peers (larger as soon as a \
            [[peer]] has rights), [peer.files] or [peer.streams] of peer c"
        );
        let rights = centre(&format!("{CENTRE}{}", peer("a", '1', "allow = [\"10.0.0.5:80\"]\n")));
        assert_eq!(changes(&before, &rights), ["peer a: permissions changed", "peer b removed"]);
        assert!(waits(&before, &rights)[0].starts_with("the rate to peers"));
    }
}
