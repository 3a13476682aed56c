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
use std::sync::{Arc, Mutex, PoisonError};

/// The destinations of a node, and the subscriptions in force.
#[derive(Debug)]
pub struct Routing {
    /// In the order of the configuration.
    ids: Vec<DestinationId>,
    names: Vec<String>,
    rules: Mutex<Arc<StationConfig>>,
}

impl Routing {
    /// Declares the destinations of `config` to the spool.
    ///
    /// # Errors
    /// The spool cannot write its state, or cannot have these destinations.
    pub fn declare(config: &StationConfig, spool: &mut Spool) -> Result<Self, SpoolError> {
        let declared: Vec<SpoolDestination> = config.destinations.iter().map(declared).collect();
        Ok(Self {
            ids: spool.destinations_mut().set(&declared)?,
            names: declared.into_iter().map(|one| one.name).collect(),
            rules: Mutex::new(Arc::new(config.clone())),
        })
    }

    /// How many destinations there are.
    pub const fn count(&self) -> usize {
        self.ids.len()
    }

    /// The spool's number of destination number `place`.
    pub fn id(&self, place: usize) -> DestinationId {
        self.ids.get(place).copied().unwrap_or(DestinationId::FIRST)
    }

    /// The names of all destinations.
    pub fn all_names(&self) -> &[String] {
        &self.names
    }

    /// The names of the destinations of a route.
    pub fn names(&self, route: &FlowRoute) -> Vec<String> {
        let place = |id: &DestinationId| self.ids.iter().position(|one| one == id);
        route.to.iter().filter_map(place).map(|place| self.names[place].clone()).collect()
    }

    /// Uses these subscriptions for the contacts that begin from now on. The destinations are the
    /// same as before.
    pub fn adopt(&self, config: &StationConfig) {
        *self.rules.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(config.clone());
    }

    fn rules(&self) -> Arc<StationConfig> {
        Arc::clone(&self.rules.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where the contacts of a mission go that this node captures on a channel.
    pub fn route_of(&self, channel: &Name, mission: &Mission) -> FlowRoute {
        self.route(&ContactLabel {
            station: self.rules().node.name.to_string(),
            channel: channel.to_string(),
            mission: mission.name().to_owned(),
        })
    }

    /// Where the contacts with this label go.
    pub fn route(&self, label: &ContactLabel) -> FlowRoute {
        let ContactRoute { settle, to } = self.rules().route(label);
        let settle = match settle {
            SettleName::All => Settle::All,
            SettleName::Any => Settle::Any,
            SettleName::First => Settle::First,
        };
        FlowRoute { settle, to: to.into_iter().map(|place| self.id(place)).collect() }
    }

    /// To destination number `place` alone.
    pub fn route_to(&self, place: usize) -> FlowRoute {
        FlowRoute { settle: Settle::All, to: vec![self.id(place)] }
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
