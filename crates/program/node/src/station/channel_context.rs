//! What all channels of a station work with.

use super::shared::StationShared;
use super::spooler::ToSpool;
use crate::upgrade::HandedInputs;
use skyhaul_ccsds::mission::MissionSet;
use skyhaul_ccsds::sync::SyncConfig;
use skyhaul_net::Clock;
use skyhaul_store::Disk;
use skyhaul_units::Duration;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// What all channels of a station work with.
#[derive(Debug, Clone)]
pub struct ChannelContext {
    /// The station's state.
    pub shared: Arc<StationShared>,
    /// Its state folder.
    pub disk: Arc<dyn Disk>,
    /// The queue to the spool.
    pub blocks: SyncSender<ToSpool>,
    /// The process's clock.
    pub clock: Clock,
    /// The missions known.
    pub missions: MissionSet,
    /// The longest that a record waits in a block.
    pub gather: Duration,
    /// Live inputs that were read elsewhere before.
    pub handed: Arc<HandedInputs>,
    /// The thresholds of the synchroniser.
    pub sync: SyncConfig,
}
