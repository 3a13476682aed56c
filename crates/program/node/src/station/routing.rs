//! Which destinations a contact goes to: the subscriptions, in terms of the spool.

use crate::fault::Fault;
use crate::services;
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_config::{
    ContactLabel, ContactRoute, Destination, MissionRef, Name, SettleName, SinceName, StationConfig,
};
use skyhaul_store::{
    DestinationId, DestinationRole, FlowRoute, Settle, Since, Spool, SpoolDestination, SpoolError,
};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The destinations of a node, and the subscriptions in force.
#[derive(Debug)]
pub struct Routing {
    table: Mutex<Arc<RoutingTable>>,
}

/// What is in force.
#[derive(Debug)]
struct RoutingTable {
    /// In the order of the configuration.
    destinations: Vec<RoutedDestination>,
    rules: StationConfig,
}

/// A destination that contacts go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutedDestination {
    /// Its index, by which the parts of the node know it while it is configured.
    pub place: usize,
    /// The spool's number of it.
    pub id: DestinationId,
    /// Its name.
    pub name: String,
}

/// As many as a spool has: each has an index below this.
pub const PLACES: usize = 16;

impl Routing {
    /// Declares the destinations of `config` to the spool.
    ///
    /// # Errors
    /// The spool cannot write its state, or cannot have these destinations.
    pub fn declare(config: &StationConfig, spool: &mut Spool) -> Result<Self, SpoolError> {
        let destinations = redeclare(config, &[], spool)?;
        let table = RoutingTable { destinations, rules: config.clone() };
        Ok(Self { table: Mutex::new(Arc::new(table)) })
    }

    /// Uses this configuration from now on: its destinations, which keep what the spool has of
    /// them, and its subscriptions for the contacts that begin.
    ///
    /// # Errors
    /// As [`Self::declare`]; nothing has changed.
    pub fn adopt(&self, config: &StationConfig, spool: &mut Spool) -> Result<(), SpoolError> {
        let before = self.table();
        let names = before.destinations.iter().map(|one| &one.name[..]);
        let destinations = match names.eq(config.destinations.iter().map(Destination::name)) {
            true => before.destinations.clone(),
            false => redeclare(config, &before.destinations, spool)?,
        };
        let table = RoutingTable { destinations, rules: config.clone() };
        *self.table.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
        Ok(())
    }

    fn table(&self) -> Arc<RoutingTable> {
        Arc::clone(&self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many destinations there are.
    pub fn count(&self) -> usize {
        self.table().destinations.len()
    }

    /// The destinations, in the order of the configuration.
    pub fn destinations(&self) -> Vec<RoutedDestination> {
        self.table().destinations.clone()
    }

    /// The names of the destinations of a route.
    pub fn names(&self, route: &FlowRoute) -> Vec<String> {
        let table = self.table();
        let of = |id: &DestinationId| table.destinations.iter().find(|one| one.id == *id);
        route.to.iter().filter_map(of).map(|one| one.name.clone()).collect()
    }

    /// Where the contacts of a mission go that this node captures on a channel.
    pub fn route_of(&self, channel: &Name, mission: &Mission) -> FlowRoute {
        self.route(&ContactLabel {
            station: self.table().rules.node.name.to_string(),
            channel: channel.to_string(),
            mission: mission.name().to_owned(),
        })
    }

    /// Where the contacts with this label go.
    pub fn route(&self, label: &ContactLabel) -> FlowRoute {
        let table = self.table();
        let ContactRoute { settle, to } = table.rules.route(label);
        let settle = match settle {
            SettleName::All => Settle::All,
            SettleName::Any => Settle::Any,
            SettleName::First => Settle::First,
        };
        let id = |nth: usize| table.destinations.get(nth).map(|one| one.id);
        FlowRoute { settle, to: to.into_iter().filter_map(id).collect() }
    }

    /// To destination number `place` alone; to none where that was removed.
    pub fn route_to(&self, place: usize) -> FlowRoute {
        let table = self.table();
        let of = table.destinations.iter().filter(|one| one.place == place);
        FlowRoute { settle: Settle::All, to: of.map(|one| one.id).collect() }
    }
}

/// Checks that the missions that subscriptions name are known.
///
/// # Errors
/// The first that is not.
pub fn check_missions(config: &StationConfig, missions: &MissionSet) -> Result<(), Fault> {
    let mut of_files = Vec::new();
    for channel in &config.channel {
        if let Some(MissionRef::File(file)) = &channel.mission {
            of_files.push(services::mission_file(file)?.name().to_owned());
        }
    }
    let mut named = config.subscription.iter().flat_map(|entry| entry.mission.iter().flatten());
    let unknown = named.find(|name| missions.by_name(name).is_none() && !of_files.contains(name));
    let Some(name) = unknown else { return Ok(()) };
    let known: Vec<&str> = missions.iter().map(Mission::name).collect();
    let help = format!("write one of {}, or add its file to `missions`", known.join(", "));
    let what = format!("mission `{name}` is not known");
    Err(Fault::configuration(what, "[[subscription]]", help))
}

/// Declares the destinations of `config` to the spool. Those that were there before keep their
/// index.
fn redeclare(
    config: &StationConfig,
    before: &[RoutedDestination],
    spool: &mut Spool,
) -> Result<Vec<RoutedDestination>, SpoolError> {
    let all: Vec<SpoolDestination> = config.destinations.iter().map(declared).collect();
    let ids = spool.destinations_mut().set(&all)?;
    let known = |name: &str| before.iter().find(|one| one.name == *name).map(|one| one.place);
    let mut taken: BTreeSet<usize> = all.iter().filter_map(|one| known(&one.name)).collect();
    let mut found = Vec::new();
    for (one, id) in all.into_iter().zip(ids) {
        // Rather one that is new: what is still said of a destination that has gone must not be
        // taken for another one's.
        let was_used = |place: &usize| before.iter().any(|one| one.place == *place);
        let free = || (0..PLACES).filter(|place| !taken.contains(place));
        let fresh = || free().find(|place| !was_used(place)).or_else(|| free().next());
        let place = known(&one.name).or_else(fresh);
        let place = place.expect("a spool has no more destinations than there are places");
        taken.insert(place);
        found.push(RoutedDestination { place, id, name: one.name });
    }
    Ok(found)
}

fn declared(destination: &Destination) -> SpoolDestination {
    SpoolDestination {
        name: destination.name().to_owned(),
        role: match destination.entry.shadow {
            true => DestinationRole::Shadow,
            false => DestinationRole::Counted,
        },
        since: match destination.entry.since {
            SinceName::Now => Since::Now,
            SinceName::Kept => Since::Kept,
        },
    }
}

/// Everything to one centre.
#[cfg(test)]
pub fn to_one_centre(spool: &mut Spool) -> Routing {
    let text = format!(
        "[node]\nname = \"station\"\nkey = \"k\"\nstate = \"s\"\n[[peer]]\nname = \
        \"centre\"\naddresses = [\"127.0.0.1:9\"]\nfingerprints = \
        [\"SHA256:{}\"]\n[[destination]]\nto = \"node:centre\"\n",
        "a".repeat(64)
    );
    let config = skyhaul_config::parse(&text, "node.toml".as_ref()).expect("a configuration");
    let station = config.station.expect("it has a destination");
    Routing::declare(&station, spool).expect("the spool has room")
}
