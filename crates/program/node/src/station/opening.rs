//! Opens the sockets of paths: those of the destinations at the start, and those of one that is
//! added while the node runs.

use super::WINDOW;
use super::paths::{SpareSocket, StationPaths};
use super::sockets::{PathSocket, PathSocketOpener};
use crate::fault::Fault;
use crate::guests::{self, ProgramBlocks};
use crate::services;
use skyhaul_config::{Destination, Line, StationConfig};
use skyhaul_net::{Clock, Driver};
use skyhaul_quic::OwnKey;
use skyhaul_sessions::SocketId;

/// What opens sockets of a station, with the key of the node.
#[derive(Debug, Clone)]
pub struct LineOpening {
    identity: OwnKey,
    line: Line,
    clock: Clock,
    blocks: ProgramBlocks,
}

impl LineOpening {
    /// Of this station, with its key.
    pub fn of(
        config: &StationConfig,
        identity: OwnKey,
        clock: Clock,
        blocks: ProgramBlocks,
    ) -> Self {
        Self { identity, line: config.line.clone(), clock, blocks }
    }

    fn opener(&self, destination: &Destination) -> PathSocketOpener {
        PathSocketOpener {
            identity: self.identity.clone(),
            line: self.line.clone(),
            centre: destination.peer.addresses.iter().map(ToString::to_string).collect(),
            clock: self.clock,
        }
    }

    /// Whether the sessions have memory for anything but contacts.
    fn has_guests(&self, config: &StationConfig) -> bool {
        config.has_guests() || self.blocks == ProgramBlocks::Served
    }

    /// Opens the sockets of the paths to these destinations. Returns the paths to each.
    ///
    /// # Errors
    /// A socket cannot be opened.
    pub fn open(
        &self,
        config: &StationConfig,
        destinations: &[Destination],
    ) -> Result<(Driver, Vec<StationPaths>), Fault> {
        let window = if self.has_guests(config) { guests::window(WINDOW) } else { WINDOW };
        let mut driver: Option<Driver> = None;
        let mut all = Vec::new();
        for destination in destinations {
            let opener = self.opener(destination);
            let mut opened = Vec::new();
            for path in config.paths_to(destination.name()) {
                let PathSocket { endpoint, family } = opener.open(&path)?;
                let socket = match &mut driver {
                    None => {
                        let place = path.place();
                        driver = Some(services::driver(endpoint, &place, window, self.clock)?);
                        SocketId(0)
                    }
                    Some(driver) => driver.add_endpoint(endpoint),
                };
                opened.push(SpareSocket { config: path, family, socket });
            }
            all.push(StationPaths::new(opener, &opened));
        }
        let driver =
            driver.ok_or_else(|| Fault::configuration("no path", "[[path]]", "write one"))?;
        Ok((driver, all))
    }

    /// Opens the sockets of the paths to a destination that is added; the line serves them later.
    ///
    /// # Errors
    /// A socket cannot be opened.
    pub fn open_added(
        &self,
        config: &StationConfig,
        destination: &Destination,
    ) -> Result<StationPaths, Fault> {
        let mut paths = StationPaths::new(self.opener(destination), &[]);
        for path in config.paths_to(destination.name()) {
            paths.add(path)?;
        }
        Ok(paths)
    }
}
