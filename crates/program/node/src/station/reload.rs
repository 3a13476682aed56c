//! Reload of what a node sends: paths, their forecasts and classes change; other changes need a
//! restart.

use super::order::{StationOrder, UplinkChange};
use super::routing::check_missions;
use super::shared::StationShared;
use crate::adopted::{Adopted, ReloadPlan, differing};
use crate::services;
use skyhaul_config::{Destination, Line, LocalFolders, Refill, Spool, StationConfig};
use std::collections::BTreeSet;

/// The configuration in force.
#[derive(Debug)]
pub struct Reload {
    before: StationConfig,
}

impl Reload {
    /// `before` is the configuration in force.
    pub const fn new(before: StationConfig) -> Self {
        Self { before }
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
        let order = StationOrder::Adopt(uplink_changes(&in_force));
        let said = shared.orders.give(order, || shared.shutdown.wake_line());
        let said = said.map_err(|fault| fault.to_string())?;
        shared.routing.adopt(&in_force);
        shared.spool().set_limits(in_force.spool.max_size, in_force.spool.retention);
        let mut changes = if said.is_empty() { Vec::new() } else { vec![said] };
        changes.extend(changes_beside_the_line(&self.before, &in_force));
        self.before = in_force;
        Ok(Adopted { changes, waits })
    }
}

/// What the thread of the line gets of a configuration, for each destination.
fn uplink_changes(config: &StationConfig) -> Vec<UplinkChange> {
    let change = |(place, destination): (usize, &Destination)| UplinkChange {
        paths: config.paths_to(destination.name()),
        sharing: config.sharing(place),
    };
    config.destinations.iter().enumerate().map(change).collect()
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
    for kept in &mut next.destinations {
        if let Some(new) = new.destinations.iter().find(|new| new.name() == kept.name()) {
            kept.entry.catch_up_class.clone_from(&new.entry.catch_up_class);
            kept.entry.catch_up_after = new.entry.catch_up_after;
        }
    }
    // Subscriptions and paths may name destinations that are not there yet: such contacts would go
    // nowhere, and a destination that is still there would have no path.
    if names(before) == names(new) {
        next.subscription.clone_from(&new.subscription);
        next.path.clone_from(&new.path);
    }
    next
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
    let rest = |of: &Refill| Refill { class: None, priority: 0, ..of.clone() };
    let mut found = differing([
        (*missions != new.missions, "`missions`"),
        (*node != new.node, "[node]"),
        (*destinations != new.destinations, "[[destination]] or its [[peer]]"),
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
    format!("{:?} {:?} {limits:?}", uplink_changes(config), config.subscription)
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

    /// Regression: contacts of a subscription to a destination that waits for a restart went
    /// nowhere until then.
    #[test]
    fn subscriptions_wait_for_a_restart_together_with_destinations() {
        let key = "f".repeat(64);
        let other = format!(
            "{STATION}[[peer]]\nname = \"d\"\naddresses = [\"192.0.2.2:4700\"]\nfingerprints = \
            [\"SHA256:{key}\"]\n[[destination]]\nto = \"node:d\"\n[[subscription]]\nof = \
            \"contacts\"\nto = [\"d\"]\n"
        );
        let (before, new) = (station(STATION), station(&other));
        let label = skyhaul_config::ContactLabel {
            station: "s".to_owned(),
            channel: "x".to_owned(),
            mission: "aqua".to_owned(),
        };
        assert_eq!(new.route(&label).to, [1]);
        assert_eq!(in_force(&before, &new).route(&label).to, [0], "as before");
        let waits = plan(&before, &new).waits.join(", ");
        assert!(waits.contains("[[destination]]") && waits.contains("[[subscription]]"), "{waits}");
        let own = station(&format!("{STATION}[[subscription]]\nof = \"contacts\"\nto = []\n"));
        assert!(in_force(&before, &own).route(&label).to.is_empty(), "at once");
    }

    fn waits(before: &StationConfig, new: &StationConfig) -> Vec<String> {
        plan(before, new).waits
    }

    /// Regression: the old destination stayed, and its path was gone.
    #[test]
    fn paths_wait_for_a_restart_together_with_destinations() {
        let before = station(STATION);
        let path = "[[path]]\ndestination = \"d\"\n";
        let new =
            format!("{}{path}", STATION.replace("\"c\"", "\"d\"").replace("node:c", "node:d"));
        let plan = plan(&before, &station(&new));
        assert_eq!(plan.in_force.paths_to("c").len(), 1);
        assert!(plan.waits.join(", ").contains("[[path]]"), "{:?}", plan.waits);
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
