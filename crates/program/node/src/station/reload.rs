//! Reload of what a node sends: paths, their forecasts and classes change; other changes need a
//! restart.

use super::order::{StationOrder, UplinkChange};
use super::routing::check_missions;
use super::shared::StationShared;
use crate::adopted::Adopted;
use crate::services;
use skyhaul_config::{Destination, DestinationEntry, Refill, StationConfig};

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

    /// Adopts what may change.
    ///
    /// # Errors
    /// What is wrong with it; nothing has changed.
    pub(super) fn adopt(
        &mut self,
        new: StationConfig,
        shared: &StationShared,
    ) -> Result<Adopted, String> {
        let missions = services::missions(&self.before.missions);
        missions
            .and_then(|missions| check_missions(&new, &missions))
            .map_err(|fault| fault.to_string())?;
        let waits = unchangeable(&self.before, &new);
        let adopted = adoptable(&self.before, &new);
        let has_other_routes = self.before.subscription != adopted.subscription;
        let change = |(place, destination): (usize, &Destination)| UplinkChange {
            paths: adopted.paths_to(destination.name()),
            sharing: adopted.sharing(place),
        };
        let changes = adopted.destinations.iter().enumerate().map(change).collect();
        let order = StationOrder::Adopt(changes);
        let said = shared.orders.give(order, || shared.shutdown.wake_line());
        let said = said.map_err(|fault| fault.to_string())?;
        shared.routing.adopt(&adopted);
        self.before.destinations = adopted.destinations;
        self.before.subscription = adopted.subscription;
        self.before.path = new.path;
        self.before.class = new.class;
        self.before.line.policy = new.line.policy;
        (self.before.refill.class, self.before.refill.priority) =
            (new.refill.class, new.refill.priority);
        let mut changes = if said.is_empty() { Vec::new() } else { vec![said] };
        if has_other_routes {
            changes.push("the subscriptions changed; they hold for the next contacts".to_owned());
        }
        Ok(Adopted { changes, waits })
    }
}

/// The new configuration as far as the node can have it without a restart: its destinations stay,
/// but for the keys of their backlog. Where others are declared, the subscriptions stay too: they
/// may name destinations that are not there yet, and such contacts would go nowhere.
fn adoptable(before: &StationConfig, new: &StationConfig) -> StationConfig {
    let mut adopted = new.clone();
    adopted.destinations.clone_from(&before.destinations);
    for kept in &mut adopted.destinations {
        if let Some(new) = new.destinations.iter().find(|new| new.name() == kept.name()) {
            kept.entry.catch_up_class.clone_from(&new.entry.catch_up_class);
            kept.entry.catch_up_after = new.entry.catch_up_after;
        }
    }
    if fixed(before) != fixed(new) {
        adopted.subscription.clone_from(&before.subscription);
    }
    adopted
}

/// The keys that differ and need a restart.
fn unchangeable(before: &StationConfig, new: &StationConfig) -> Vec<String> {
    let line = |config: &StationConfig| {
        let skyhaul_config::Line { rate, mtu, controller, policy: _ } = config.line.clone();
        (rate, mtu, controller)
    };
    let refill =
        |config: &StationConfig| Refill { class: None, priority: 0, ..config.refill.clone() };
    let mut found: Vec<String> = [
        (before.missions != new.missions, "`missions`"),
        (before.node != new.node, "[node]"),
        (
            fixed(before) != fixed(new),
            "[[destination]] or its [[peer]], and [[subscription]] with it",
        ),
        (line(before) != line(new), "`rate`, `mtu` or `controller` in [line]"),
        (before.spool != new.spool, "[spool]"),
        (before.sync != new.sync, "[sync]"),
        (refill(before) != refill(new), "[refill] (beyond `class` and `priority`)"),
        (before.forward != new.forward, "[[forward]]"),
        (before.folders.dropped != new.folders.dropped, "[[folder]]"),
        (before.folders.mirrored != new.folders.mirrored, "[[mirror]]"),
        (before.stream != new.stream, "[[stream]]"),
    ]
    .into_iter()
    .filter(|(differs, _)| *differs)
    .map(|(_, what)| what.to_owned())
    .collect();
    for channel in &new.channel {
        match before.channel.iter().find(|before| before.name == channel.name) {
            None => found.push(format!("channel {} (new)", channel.name)),
            Some(before) if before != channel => found.push(format!("channel {}", channel.name)),
            Some(_) => {}
        }
    }
    let gone =
        before.channel.iter().filter(|old| !new.channel.iter().any(|new| new.name == old.name));
    found.extend(gone.map(|channel| format!("channel {} (removed)", channel.name)));
    found
}

/// The destinations without those keys that need no restart.
fn fixed(config: &StationConfig) -> Vec<Destination> {
    let fixed = |one: &Destination| {
        let entry = DestinationEntry {
            catch_up_class: None,
            catch_up_after: skyhaul_units::Duration::ZERO,
            ..one.entry.clone()
        };
        Destination { peer: one.peer.clone(), entry }
    };
    config.destinations.iter().map(fixed).collect()
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
        assert_eq!(adoptable(&before, &new).route(&label).to, [0], "as before");
        assert!(unchangeable(&before, &new)[0].contains("[[subscription]]"));
        let own = station(&format!("{STATION}[[subscription]]\nof = \"contacts\"\nto = []\n"));
        assert!(adoptable(&before, &own).route(&label).to.is_empty(), "at once");
    }

    #[test]
    fn what_can_change_is_not_named_and_what_cannot_is() {
        let before = station(STATION);
        let with = |change: &str| station(&format!("{STATION}{change}"));
        let fine = with(
            "[[subscription]]\nof = \"contacts\"\ndeadline = \"30 s\"\nclass = \
            \"a\"\n[[class]]\nname = \"a\"\n[[path]]\ninterface = \"lo\"\n",
        );
        assert_eq!(unchangeable(&before, &fine), Vec::<String>::new());
        let other = with("silence = \"5 s\"\n[spool]\nmax_size = \"1 GB\"\n");
        let named = unchangeable(&before, &other);
        assert_eq!(named.len(), 2, "{named:?}");
        assert!(named[0].contains("[spool]") && named[1].contains("channel x"), "{named:?}");
        let renamed = station(&STATION.replace("\"x\"", "\"y\"").replace("93 Mbit", "20 Mbit"));
        let named = unchangeable(&before, &renamed);
        assert!(
            named[0].contains("`rate`") && named[1].contains("new") && named[2].contains("removed"),
            "{named:?}"
        );
    }
}
