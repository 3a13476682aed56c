//! Missing frames and packets at a centre, for `skyhaul gaps`.

use serde::{Deserialize, Serialize};

/// The state of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GapProgress {
    /// The station has not been asked yet, or is to be asked again.
    Open,
    /// The station was asked, or is sending what it found.
    Requested,
    /// Everything has arrived.
    Filled,
    /// It cannot be recovered.
    Unrecoverable,
}

/// Frames of a virtual channel that are missing, or packets of an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapStatus {
    /// The station.
    pub station: String,
    /// Its contact.
    pub flow: u32,
    /// The station's name for the input.
    pub channel: String,
    /// The mission.
    pub mission: String,
    /// The spacecraft; none for packets of several virtual channels.
    pub scid: Option<u16>,
    /// The virtual channels: one for frames, those that carry the application's packets for
    /// packets.
    pub vcids: Vec<u8>,
    /// The application whose packets are missing; none for frames.
    pub apid: Option<u16>,
    /// Frame count, or sequence count, of the first one missing.
    pub first: u64,
    /// How many were missing.
    pub missed: u64,
    /// How many are missing now; none for packets, which count as recovered when a further version
    /// of the product is made.
    pub missing: Option<u64>,
    /// How often the station was asked for it; zero for packets, which come with their frames.
    pub asked: u8,
    /// The reception time of the last one before the gap.
    pub from: String,
    /// The reception time of the first one after it.
    pub to: String,
    /// Its state.
    pub state: GapProgress,
    /// Why it cannot be recovered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The gaps of a centre.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapReport {
    /// Their numbers.
    pub counts: GapCounts,
    /// The gaps, by station and contact, the newest 8,192; those of frames before those of packets.
    pub gaps: Vec<GapStatus>,
}

/// Numbers of gaps of frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapCounts {
    /// Gaps that the station is to be asked about.
    pub open: u64,
    /// Gaps that it was asked about.
    pub requested: u64,
    /// Gaps that are filled; of one contact the newest ones.
    pub filled: u64,
    /// Gaps that cannot be recovered.
    pub unrecoverable: u64,
    /// Frames missing now.
    pub missing_frames: u64,
    /// Gaps beyond the limit, which are not followed.
    pub overflow: u64,
    /// Contacts beyond the limit, which are not followed.
    pub unfollowed: u64,
    /// Questions to stations.
    pub asks: u64,
}

/// A selection of gaps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapFilter {
    /// Gaps of this station.
    pub station: Option<String>,
    /// Gaps of this contact of a station.
    pub flow: Option<u32>,
    /// Gaps of this spacecraft: its id, or the name of its mission.
    pub spacecraft: Option<String>,
}

impl GapFilter {
    /// Whether a gap of a contact is selected; `scid` is not known of packets of several virtual
    /// channels.
    pub fn takes(&self, station: &str, flow: u32, mission: &str, scid: Option<u16>) -> bool {
        let is_spacecraft = |wanted: &String| {
            wanted == mission || scid.is_some_and(|scid| scid.to_string() == *wanted)
        };
        self.station.as_ref().is_none_or(|wanted| wanted == station)
            && self.flow.is_none_or(|wanted| wanted == flow)
            && self.spacecraft.as_ref().is_none_or(is_spacecraft)
    }
}

/// The gaps that are requested again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapsAsked {
    /// Contacts with gaps of frames that the filter takes.
    pub contacts: u64,
    /// Gaps that were unrecoverable and are open again.
    pub gaps: u64,
    /// Frames missing in them.
    pub frames: u64,
    /// Gaps that stay unrecoverable: their station is not in the configuration, or more is missing
    /// than can be asked for.
    pub left: u64,
}
