//! What uplinks are made of: the configuration in force, and the line that they share.

use super::paths::StationPaths;
use super::shared::StationShared;
use super::uplink::{CentreContact, CentreKeys, Uplink, UplinkParts};
use super::{WINDOW, shown_destination};
use crate::custody::Feeder;
use crate::keys::NodeKeys;
use skyhaul_config::{Destination, StationConfig};
use skyhaul_level0::standby::{ChannelMatch, StandbyGate};
use skyhaul_net::Clock;
use skyhaul_transport::LineShare;
use std::sync::Arc;

/// Makes the uplinks of a station.
#[derive(Debug)]
pub struct LinePlan {
    /// The configuration in force.
    pub config: StationConfig,
    /// What the threads of the station share.
    pub shared: Arc<StationShared>,
    /// The clock of the node.
    pub clock: Clock,
    /// The line that the sessions with all destinations share; none while there is one destination.
    pub line: Option<LineShare>,
    /// The keys of the node.
    pub keys: Arc<NodeKeys>,
}

impl LinePlan {
    /// For a configuration whose destinations the spool has.
    pub fn new(
        config: StationConfig,
        shared: Arc<StationShared>,
        clock: Clock,
        keys: Arc<NodeKeys>,
    ) -> Self {
        let count = config.destinations.len();
        let mut plan = Self { config: config.clone(), shared, clock, line: None, keys };
        plan.adopt(config, count);
        plan
    }

    /// Uses another configuration, of `count` destinations. A line that is shared once stays so.
    pub fn adopt(&mut self, config: StationConfig, count: usize) {
        if count > 1 && self.line.is_none() {
            self.line = Some(LineShare::new(config.sharing(0).tree));
        }
        self.config = config;
    }

    /// Shows the destinations of the configuration in the status.
    pub fn show(&self) {
        let places = self.shared.routing.destinations();
        let all = self.config.destinations.iter();
        let shown = all.filter_map(|one| {
            let place = places.iter().find(|known| known.name == one.name())?.place;
            Some((place, shown_destination(one)))
        });
        self.shared.board.destinations(shown.collect());
    }

    /// The uplink to a destination of the configuration; none where it has none of this name.
    pub fn uplink(&self, name: &str, paths: StationPaths) -> Option<Uplink> {
        let config = &self.config;
        let nth = config.destinations.iter().position(|one| one.name() == name)?;
        let known = self.shared.routing.destinations();
        let routed = known.into_iter().find(|one| one.name == name)?;
        let feeder = Feeder::new(routed.id, config.sharing(nth), WINDOW.send);
        let feeder = match &config.node.standby_of {
            Some(of) => {
                let channels = match config.channel.len() {
                    1 => ChannelMatch::Mission,
                    _ => ChannelMatch::Name,
                };
                let after = config.node.standby_after;
                feeder.standing_by(StandbyGate::new(of.to_string(), after, channels))
            }
            None => feeder,
        };
        let place = routed.place;
        let (line, keys) = (self.line.clone(), self.keys.clone());
        let parts = UplinkParts { place, paths, feeder, line, keys };
        let centre = contact_of(&config.destinations[nth]);
        let (station, shared) = (config.node.name.to_string(), self.shared.clone());
        Some(Uplink::new(station, centre, shared, self.clock, parts))
    }
}

/// Where a destination is called.
pub fn contact_of(destination: &Destination) -> CentreContact {
    let peer = &destination.peer;
    CentreContact {
        name: destination.name().to_owned(),
        address: peer.addresses.iter().next().map(ToString::to_string).unwrap_or_default(),
        keys: CentreKeys::new(peer.fingerprints.iter()),
        rules: Arc::new(peer.rules()),
        patience: destination.peer.patience(),
    }
}
