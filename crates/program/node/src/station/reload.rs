//! Reload of what a node sends: destinations, paths, their forecasts and classes change; other
//! changes need a restart.

use super::opening::LineOpening;
use super::order::{AddedDestination, LineChange, StationOrder};
use super::routing::check_missions;
use super::shared::StationShared;
use crate::adopted::{Adopted, ReloadPlan, differing};
use crate::services;
use skyhaul_config::{Destination, FolderUse, Line, LocalFolders, Refill, Spool, StationConfig};
use skyhaul_forward_io::FarRules;
use std::collections::BTreeSet;

/// The configuration in force.
#[derive(Debug)]
pub struct Reload {
    before: StationConfig,
    opening: LineOpening,
    /// Destinations that were added since the start.
    added: usize,
}

/// Destinations that may be added while a node runs: the sockets of one that is removed stay open,
/// up to sixteen each.
const ADDED_MAX: usize = 64;

impl Reload {
    /// `before` is the configuration in force, whose sockets `opening` opened.
    pub const fn new(before: StationConfig, opening: LineOpening) -> Self {
        Self { before, opening, added: 0 }
    }

    /// The configuration in force.
    pub const fn config(&self) -> &StationConfig {
        &self.before
    }

    /// What becomes of a configuration.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn plan(&self, new: &StationConfig) -> Result<ReloadPlan<StationConfig>, String> {
        let missions = services::missions(&new.missions);
        missions
            .and_then(|missions| check_missions(new, &missions))
            .map_err(|fault| fault.to_string())?;
        Ok(plan(&self.before, new))
    }

    /// Carries out a plan.
    ///
    /// # Errors
    /// The line's thread does not answer; nothing has changed.
    pub(super) fn adopt(
        &mut self,
        plan: ReloadPlan<StationConfig>,
        shared: &StationShared,
    ) -> Result<Adopted, String> {
        let ReloadPlan { in_force, waits } = plan;
        let known = names(&self.before);
        let mut added = Vec::new();
        for new in in_force.destinations.iter().filter(|one| !known.contains(one.name())) {
            let paths = self.opening.open_added(&in_force, new);
            let paths = paths.map_err(|fault| fault.to_string())?;
            added.push(AddedDestination { name: new.name().to_owned(), paths });
        }
        if self.added + added.len() > ADDED_MAX {
            return Err(format!(
                "{ADDED_MAX} destinations were added since the node started, the limit; restart \
                 the node"
            ));
        }
        let count = added.len();
        let order = StationOrder::Adopt(Box::new(LineChange { config: in_force.clone(), added }));
        let said = shared.orders.give(order, || shared.shutdown.wake_line());
        let said = said.map_err(|fault| fault.to_string())?;
        self.added += count;
        shared.spool().set_limits(in_force.spool.max_size, in_force.spool.retention);
        let mut changes = if said.is_empty() { Vec::new() } else { vec![said] };
        changes.extend(changes_beside_the_line(&self.before, &in_force));
        self.before = in_force;
        Ok(Adopted { changes, waits })
    }
}

/// The changes that the thread of the line does not report, for the log.
fn changes_beside_the_line(before: &StationConfig, new: &StationConfig) -> Vec<String> {
    differing([
        (
            before.subscription != new.subscription,
            "the subscriptions changed; they hold for the next contacts",
        ),
        (before.spool != new.spool, "limits of the spool changed"),
    ])
}

/// What a node does that runs with `before`, and whose file says `new` now.
pub fn plan(before: &StationConfig, new: &StationConfig) -> ReloadPlan<StationConfig> {
    let in_force = in_force(before, new);
    let waits = waiting(&in_force, new);
    ReloadPlan { in_force, waits }
}

/// The new configuration as far as the node can have it without a restart.
fn in_force(before: &StationConfig, new: &StationConfig) -> StationConfig {
    let mut next = before.clone();
    next.class.clone_from(&new.class);
    next.line.policy = new.line.policy;
    next.stations.clone_from(&new.stations);
    next.refill.class.clone_from(&new.refill.class);
    next.refill.priority = new.refill.priority;
    // The segments keep their size until a restart, and the spool has room for four.
    if new.spool.max_size.as_u64() / 4 >= before.spool.segment_size.as_u64() {
        next.spool.max_size = new.spool.max_size;
    }
    next.spool.retention = new.spool.retention;
    next.destinations = if holds_destinations(before, new).is_none() {
        new.destinations.clone()
    } else {
        before.destinations.clone()
    };
    for one in &mut next.destinations {
        let of = |config: &StationConfig| {
            config.destinations.iter().find(|other| other.name() == one.name()).cloned()
        };
        let Some(mut kept) = of(before) else { continue };
        if let Some(new) = of(new) {
            kept.entry.catch_up_class = new.entry.catch_up_class;
            kept.entry.catch_up_after = new.entry.catch_up_after;
        }
        *one = kept;
    }
    // Subscriptions and paths may name destinations that are not there yet: such contacts would go
    // nowhere, and a destination that is still there would have no path.
    if names(&next) == names(new) {
        next.subscription.clone_from(&new.subscription);
        next.path.clone_from(&new.path);
    }
    next
}

/// Why destinations that appear or go have to wait for a restart; none where they need not.
fn holds_destinations(before: &StationConfig, new: &StationConfig) -> Option<&'static str> {
    let name = |config: &StationConfig, place: usize| {
        config.destinations.get(place).map(|one| one.name().to_owned())
    };
    // These tables wait for a restart: what they use has to stay, and the first to be the first.
    let mut used: BTreeSet<Option<String>> = BTreeSet::new();
    let mut is_first_used = false;
    let all = &before.destinations;
    for mirror in &before.folders.mirrored {
        is_first_used |= mirror.to.is_none();
        used.extend(mirror.destinations(all).into_iter().map(|place| name(before, place)));
    }
    for folder in before.folders.dropped.iter().filter(|one| one.r#as == FolderUse::Files) {
        is_first_used |= folder.to.is_none();
        used.extend(folder.destinations(all).into_iter().map(|place| name(before, place)));
    }
    for stream in &before.stream {
        is_first_used |= stream.destination.is_none();
        used.insert(name(before, stream.place(all)));
    }
    for forward in &before.forward {
        is_first_used |= forward.node().is_none();
        used.insert(forward.node().map_or_else(|| name(before, 0), |node| Some(node.to_owned())));
    }
    let stay = names(new);
    if used.iter().flatten().any(|name| !stay.contains(&name[..]))
        || (is_first_used && name(before, 0) != name(new, 0))
    {
        return Some(
            "[[destination]] (a [[folder]], [[forward]], [[mirror]] or [[stream]] uses it)",
        );
    }
    let known = names(before);
    let is_new = |one: &&Destination| !known.contains(one.name());
    let mut added = new.destinations.iter().filter(is_new);
    if !before.has_guests() && added.any(|one| one.peer.rules() != FarRules::default()) {
        return Some("[[destination]] (the first one with `allow` or `allow_listen`)");
    }
    None
}

/// Where the file differs from what is in force: what needs a restart.
fn waiting(in_force: &StationConfig, new: &StationConfig) -> Vec<String> {
    // A key that is added to one of these tables is compared here, or does not compile.
    let StationConfig {
        missions,
        node,
        destinations,
        subscription,
        stations: _,
        line: Line { rate, mtu, controller, policy: _ },
        spool: Spool { max_size, segment_size, sync_interval, retention: _ },
        sync,
        refill,
        path,
        class: _,
        channel,
        forward,
        folders: LocalFolders { dropped, mirrored },
        stream,
    } = in_force;
    let held = holds_destinations(in_force, new).filter(|_| names(in_force) != names(new));
    let is_other = held.is_none() && *destinations != new.destinations;
    let rest = |of: &Refill| Refill { class: None, priority: 0, ..of.clone() };
    let mut found = differing([
        (*missions != new.missions, "`missions`"),
        (*node != new.node, "[node]"),
        (held.is_some(), held.unwrap_or_default()),
        (is_other, "[[destination]] or its [[peer]]"),
        (*subscription != new.subscription, "[[subscription]] (with the new [[destination]])"),
        (*path != new.path, "[[path]] (with the new [[destination]])"),
        (
            (rate, mtu, controller) != (&new.line.rate, &new.line.mtu, &new.line.controller),
            "`rate`, `mtu` or `controller` in [line]",
        ),
        (
            (max_size, segment_size) != (&new.spool.max_size, &new.spool.segment_size),
            "`segment_size` in [spool]",
        ),
        (*sync_interval != new.spool.sync_interval, "`sync_interval` in [spool]"),
        (*sync != new.sync, "[sync]"),
        (rest(refill) != rest(&new.refill), "[refill] (beyond `class` and `priority`)"),
        (*forward != new.forward, "[[forward]]"),
        (*dropped != new.folders.dropped, "[[folder]]"),
        (*mirrored != new.folders.mirrored, "[[mirror]]"),
        (*stream != new.stream, "[[stream]]"),
    ]);
    for new in &new.channel {
        match channel.iter().find(|before| before.name == new.name) {
            None => found.push(format!("channel {} (new)", new.name)),
            Some(before) if before != new => found.push(format!("channel {}", new.name)),
            Some(_) => {}
        }
    }
    let gone = channel.iter().filter(|old| !new.channel.iter().any(|new| new.name == old.name));
    found.extend(gone.map(|channel| format!("channel {} (removed)", channel.name)));
    found
}

fn names(config: &StationConfig) -> BTreeSet<&str> {
    config.destinations.iter().map(Destination::name).collect()
}

/// All that threads get of a configuration that was read again.
#[cfg(test)]
pub fn handed_over(config: &StationConfig) -> String {
    let Spool { max_size, retention, .. } = config.spool;
    let limits = (max_size, retention);
    let uplinks = LineChange::uplinks(config);
    format!("{uplinks:?} {:?} {:?} {limits:?}", config.subscription, config.destinations)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATION: &str = "[node]\nname = \"s\"\nkey = \"k\"\nstate = \"state\"\n[[peer]]\nname = \
                          \"c\"\n\
        addresses = [\"192.0.2.1:4700\"]\n\
        fingerprints = [\
        \"SHA256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"]\n\
        [[destination]]\nto = \"node:c\"\n\
        [line]\nrate = \"93 Mbit/s\"\n[[channel]]\nname = \"x\"\ninput = \"stdin\"\n";

    fn station(text: &str) -> StationConfig {
        *skyhaul_config::parse(text, "/etc/node.toml".as_ref()).unwrap().station.unwrap()
    }

    /// The file with another destination `d`, and these tables.
    fn with_another(tables: &str) -> StationConfig {
        let key = "f".repeat(64);
        station(&format!(
            "{STATION}[[peer]]\nname = \"d\"\naddresses = [\"192.0.2.2:4700\"]\nfingerprints = \
            [\"SHA256:{key}\"]\n[[destination]]\nto = \"node:d\"\n{tables}"
        ))
    }

    fn label() -> skyhaul_config::ContactLabel {
        skyhaul_config::ContactLabel {
            station: "s".to_owned(),
            channel: "x".to_owned(),
            mission: "aqua".to_owned(),
        }
    }

    #[test]
    fn destinations_come_and_go_at_once_with_their_subscriptions_and_paths() {
        let before = station(STATION);
        let new = with_another(
            "[[subscription]]\nof = \"contacts\"\nto = [\"d\"]\n[[path]]\nname = \
             \"p\"\ndestination = \"d\"\n[[path]]\nname = \"q\"\ndestination = \"c\"\n",
        );
        for (before, new) in [(&before, &new), (&new, &before)] {
            let plan = plan(before, new);
            assert_eq!((&plan.in_force, plan.waits.len()), (new, 0), "{:?}", plan.waits);
        }
        assert_eq!(in_force(&before, &new).route(&label()).to, [1]);
    }

    /// Regression: contacts of a subscription to a destination that waits for a restart went
    /// nowhere until then; the old destination stayed, and its path was gone.
    #[test]
    fn what_a_running_table_uses_stays_and_subscriptions_and_paths_wait_with_it() {
        let mirror = "[[mirror]]\nsource = \"a\"\ninto = \".\"\n";
        for uses in [
            format!("{mirror}to = \"d\"\n"),
            "[[stream]]\nfrom = \"udp://127.0.0.1:1\"\nto = \"null\"\ndestination = \"d\"\n"
                .to_owned(),
            "[[folder]]\nname = \"f\"\npath = \"f\"\nas = \"files\"\nto = [\"c\", \"d\"]\n"
                .to_owned(),
            "[[forward]]\nlocal = \"8080=d:127.0.0.1:80\"\n".to_owned(),
        ] {
            let before = with_another(&uses);
            let subscription = "[[subscription]]\nof = \"contacts\"\nto = []\n";
            let new = station(&format!("{STATION}{subscription}[[path]]\ninterface = \"lo\"\n"));
            let plan = plan(&before, &new);
            assert_eq!(names(&plan.in_force), names(&before), "{uses}");
            assert_eq!(plan.in_force.route(&label()).to, [0, 1], "{uses}: as before");
            assert_eq!(plan.in_force.paths_to("d").len(), 1, "{uses}");
            let waits = plan.waits.join(", ");
            for part in ["[[destination]] (a [[folder]]", "[[subscription]]", "[[path]]"] {
                assert!(waits.contains(part), "{uses}: {waits}");
            }
        }
        let other_first = STATION.replace("\"c\"", "\"e\"").replace("node:c", "node:e");
        let waits = plan(&station(&format!("{STATION}{mirror}")), &station(&other_first)).waits;
        assert!(waits.join(", ").contains("[[destination]] (a [[folder]]"), "{waits:?}");
    }

    #[test]
    fn the_first_destination_with_rights_waits_where_sessions_have_no_memory_for_them() {
        let with_rights = with_another("").destinations;
        let mut new = station(STATION);
        new.destinations = with_rights;
        new.destinations[1].peer.allow = toml::from_str::<
            std::collections::BTreeMap<String, skyhaul_config::ForwardRules>,
        >("allow = [\"10.0.0.5:80\"]")
        .unwrap()
        .remove("allow")
        .unwrap();
        let plan = plan(&station(STATION), &new);
        assert_eq!(plan.in_force.destinations.len(), 1);
        assert!(plan.waits[0].contains("the first one with `allow`"), "{:?}", plan.waits);
    }

    fn waits(before: &StationConfig, new: &StationConfig) -> Vec<String> {
        plan(before, new).waits
    }

    #[test]
    fn a_spool_that_is_too_small_for_its_segments_keeps_its_size_until_a_restart() {
        let before = station(&format!("{STATION}[spool]\nsegment_size = \"64 MiB\"\n"));
        let small =
            "[spool]\nsegment_size = \"1 MiB\"\nmax_size = \"8 MiB\"\nretention = \"1 s\"\n";
        let plan = plan(&before, &station(&format!("{STATION}{small}")));
        assert_eq!(plan.in_force.spool.max_size, before.spool.max_size);
        assert_eq!(plan.in_force.spool.retention, skyhaul_units::Duration::from_secs(1));
        assert_eq!(plan.waits, ["`segment_size` in [spool]"]);
    }

    #[test]
    fn what_can_change_is_not_named_and_what_cannot_is() {
        let before = station(STATION);
        let with = |change: &str| station(&format!("{STATION}{change}"));
        let fine = with(
            "[[subscription]]\nof = \"contacts\"\ndeadline = \"30 s\"\nclass = \
            \"a\"\n[[class]]\nname = \"a\"\n[[path]]\ninterface = \"lo\"\n",
        );
        assert_eq!(waits(&before, &fine), Vec::<String>::new());
        let other = with("silence = \"5 s\"\n[spool]\nsync_interval = \"1 s\"\n");
        let named = waits(&before, &other);
        assert_eq!(named.len(), 2, "{named:?}");
        assert!(named[0].contains("[spool]") && named[1].contains("channel x"), "{named:?}");
        let renamed = station(&STATION.replace("\"x\"", "\"y\"").replace("93 Mbit", "20 Mbit"));
        let named = waits(&before, &renamed);
        assert!(
            named[0].contains("`rate`") && named[1].contains("new") && named[2].contains("removed"),
            "{named:?}"
        );
    }
}
