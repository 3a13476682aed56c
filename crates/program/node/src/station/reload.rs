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
        let has_other_routes = self.before.subscription != new.subscription;
        // The destinations stay as they are, with what is new of the rest.
        let mut adopted = new.clone();
        adopted.destinations.clone_from(&self.before.destinations);
        for before in &mut adopted.destinations {
            if let Some(new) = new.destinations.iter().find(|new| new.name() == before.name()) {
                before.entry.catch_up_class.clone_from(&new.entry.catch_up_class);
                before.entry.catch_up_after = new.entry.catch_up_after;
            }
        }
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
        self.before.subscription = new.subscription;
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
        (fixed(before) != fixed(new), "[[destination]] or its [[peer]]"),
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
