//! The status as data.

use super::delivery::DeliveryStatus;
use super::folders::FolderStatus;
use super::gaps::GapCounts;
use super::guests::{FilesStatus, ForwardsStatus, MirrorStatus, StreamStatus, StreamsStatus};
use super::inputs::{InputFrames, InputStatus};
use super::knowledge::PathOutlook;
use super::process::ProcessStatus;
use super::products::AssembledProduct;
use super::reception::{ChannelState, RecordingStatus, Vita49Status};
use super::session::{SessionStatus, ShortageStatus, ThreadStatus};
use super::standby::StandbyStatus;
use super::states::{ContactState, LineState, StoreState};
use super::way::ContactWay;
use crate::latency::LatencySummary;
use serde::{Deserialize, Serialize};
use skyhaul_ccsds::margin::LinkMargin;
use skyhaul_events::AlarmStatus;
use std::collections::BTreeMap;

/// The latency of frames in each stage, in seconds.
pub type StageLatency = BTreeMap<String, LatencySummary>;

/// The status of a station.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StationStatus {
    /// The node's name.
    pub name: String,
    /// Its process.
    #[serde(flatten)]
    pub process: ProcessStatus,
    /// Its inputs.
    pub channels: Vec<ChannelStatus>,
    /// Contacts since it started, oldest first; the last 1,000.
    pub contacts: Vec<ContactCaptured>,
    /// Its spool.
    pub spool: SpoolStatus,
    /// Its destinations, in the order of the configuration.
    pub destinations: Vec<DestinationStatus>,
    /// Applications that share the session; none where nothing is forwarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwards: Option<ForwardsStatus>,
    /// Folders whose files are handed over, in the order of the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<FolderStatus>,
    /// Folders that the centre gets, in the order of the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirrors: Vec<MirrorStatus>,
    /// Streams that the centre gets, in the order of the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamStatus>,
    /// Files of each destination that wrote some here, or read some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FilesStatus>,
    /// Its threads, and the processor time of each.
    #[serde(default)]
    pub threads: Vec<ThreadStatus>,
    /// Shortages of processor time.
    #[serde(default)]
    pub shortage: ShortageStatus,
    /// What an operator must act on.
    pub alarms: Vec<AlarmStatus>,
}

/// A destination of a node's contacts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DestinationStatus {
    /// The name of its node.
    pub name: String,
    /// Whether it gets everything and its receipts do not count.
    #[serde(default)]
    pub shadow: bool,
    /// What waits for it.
    pub backlog: BacklogStatus,
    /// What is done for it where this node stands by for another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standby: Option<StandbyStatus>,
    /// The line to it.
    pub line: LineStatus,
    /// When the waiting data of each contact will be there, ordered by flow.
    #[serde(default)]
    pub forecasts: Vec<ContactForecast>,
}

/// What waits for a destination.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BacklogStatus {
    /// Blocks that it does not have in custody.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks that left the spool before it had them, because the disk was full.
    pub gave_way_blocks: u64,
}

impl StationStatus {
    /// The line to the first destination.
    pub fn line(&self) -> &LineStatus {
        static NONE: std::sync::LazyLock<LineStatus> =
            std::sync::LazyLock::new(LineStatus::default);
        self.destinations.first().map_or(&NONE, |destination| &destination.line)
    }
}

/// An input.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChannelStatus {
    /// Its name.
    pub name: String,
    /// Its source, as configured; of several inputs, all of them.
    pub input: String,
    /// Its inputs, where it has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputStatus>,
    /// The address that it listens on, once bound; of several inputs, see there.
    pub address: Option<String>,
    /// Whether it has lock.
    pub state: ChannelState,
    /// The mission found.
    pub mission: Option<String>,
    /// The spacecraft found.
    pub scid: Option<u16>,
    /// Bytes read.
    pub bytes: u64,
    /// Good frames.
    pub frames: u64,
    /// Symbols corrected in them.
    pub corrected_symbols: u64,
    /// Frames set aside.
    pub set_aside: u64,
    /// UDP datagrams that the system dropped before they were read, where it counts them.
    pub dropped_datagrams: u64,
    /// Its recording, where it is recorded as received.
    #[serde(default)]
    pub recording: Option<RecordingStatus>,
    /// Its VITA 49 packets, where such come.
    #[serde(default)]
    pub vita49: Option<Vita49Status>,
}

/// A contact as captured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ContactCaptured {
    /// Its flow.
    pub flow: u32,
    /// The input.
    pub channel: String,
    /// The file that it was read from, where a folder brought it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The mission.
    pub mission: String,
    /// The names of the destinations that it goes to.
    #[serde(default)]
    pub to: Vec<String>,
    /// The spacecraft.
    pub scid: Option<u16>,
    /// Its state.
    pub state: ContactState,
    /// Good frames captured.
    pub frames: u64,
    /// Frames set aside.
    pub set_aside: u64,
    /// Symbols corrected in good frames.
    pub corrected_symbols: u64,
    /// Bytes of the downlink that good frames took, with markers and check symbols.
    pub bytes_captured: u64,
    /// Bytes of those that are not sent: markers and check symbols, and since the station started,
    /// what compression saved.
    pub bytes_saved: u64,
    /// When its first frame came (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<String>,
    /// When it was closed (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
}

/// The forecast of a contact: when it will be at the centre, at the present rates and with the
/// forecasts for the paths.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ContactForecast {
    /// Its flow.
    pub flow: u32,
    /// The input; empty where it is not known yet.
    pub channel: String,
    /// Bytes of blocks that are to be sent, or sent again.
    pub unsent_bytes: u64,
    /// Seconds until the last of them is at the centre; none while nothing is known to carry them.
    pub done_s: Option<f64>,
    /// Seconds of margin to the tightest deadline; negative where it is missed; none without a
    /// deadline, or while nothing is known.
    pub spare_s: Option<f64>,
}

/// A station's spool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SpoolStatus {
    /// Whether it takes data.
    pub state: StoreState,
    /// Blocks that a destination lacks which counts.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// Seconds for which the oldest of those blocks has waited; about, within a segment.
    #[serde(default)]
    pub oldest_s: f64,
}

/// A station's line to its centre.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LineStatus {
    /// Whether it is in use.
    pub state: LineState,
    /// Why it is not.
    pub reason: Option<String>,
    /// The centre's address.
    pub peer: String,
    /// Times it was set up.
    pub connects: u64,
    /// Smoothed round trip in seconds.
    pub rtt_s: f64,
    /// Smallest round trip lately, in seconds.
    pub min_rtt_s: f64,
    /// Share of packets lost.
    pub loss: f64,
    /// The rate that is allowed now, in bit/s, counted in IP packets.
    pub rate_bps: u64,
    /// Bytes of blocks that the centre reported whole.
    pub bytes_reported: u64,
    /// Symbols sent for the first time.
    pub symbols_sent: u64,
    /// Symbols retransmitted.
    pub symbols_repeated: u64,
    /// Symbols declared lost.
    pub symbols_lost: u64,
    /// Whether blocks wait because the centre's receive window is full.
    pub held_back: bool,
    /// What the session waited for since it was set up; none while there is none.
    #[serde(default)]
    pub session: Option<SessionStatus>,
    /// The paths, in the order of the configuration.
    #[serde(default)]
    pub paths: Vec<LinePath>,
}

/// One path of a station's line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinePath {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// The local address or interface, as configured.
    pub local: String,
    /// The centre's address on this path.
    pub remote: String,
    /// `udp` or `tcp`.
    #[serde(default)]
    pub over: String,
    /// `probing`, `active`, `standby`, `absent` (in a forecast outage), `silent` (nothing is
    /// received from it, and it is the only one), `black-hole` (only short packets arrive) or
    /// `failed`.
    pub state: String,
    /// Its rate and the size of its datagrams.
    #[serde(flatten)]
    pub control: PathControl,
    /// Why it is absent or has failed; why TCP is used in place of UDP.
    pub reason: Option<String>,
    /// Smoothed round trip in seconds.
    pub rtt_s: f64,
    /// Smallest round trip lately, in seconds.
    #[serde(default)]
    pub min_rtt_s: f64,
    /// The rate that is allowed now, in bit/s, counted in IP packets.
    pub rate_bps: u64,
    /// Share of datagrams lost.
    pub loss: f64,
    /// Bytes of blocks sent, retransmissions included.
    pub bytes_sent: u64,
    /// Its FEC repair.
    #[serde(flatten)]
    pub repair: PathFec,
    /// Stalls: how often it stopped answering.
    pub stalls: u64,
    /// What is known of it from outside.
    #[serde(flatten)]
    pub outlook: PathOutlook,
}

/// What decides how fast a path goes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PathControl {
    /// The congestion controller's name; empty over TCP, where the system has its own.
    #[serde(default)]
    pub controller: String,
    /// The rate that was declared for it, in bit/s, counted in IP packets.
    #[serde(default)]
    pub declared_bps: Option<u64>,
    /// UDP payload of a full datagram now; zero over TCP.
    #[serde(default)]
    pub payload: u64,
    /// The same as configured, where larger datagrams than now are lost; zero where they are not.
    #[serde(default)]
    pub payload_configured: u64,
}

/// The FEC repair of a path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PathFec {
    /// Repair symbols sent.
    #[serde(rename = "repair_sent")]
    pub sent: u64,
    /// Lost datagrams that repair replaced at the centre.
    #[serde(rename = "repair_used")]
    pub used: u64,
    /// Repair symbols that replaced nothing: not needed there, or lost themselves.
    #[serde(rename = "repair_wasted", default)]
    pub wasted: u64,
}

/// A name as a segment of an address.
pub(crate) fn segment(text: &str) -> String {
    text.replace(['/', '\\'], ".")
}

impl LinePath {
    /// What names it among the paths of all sessions.
    pub(crate) fn id(&self, node: &str) -> String {
        segment(&format!("{node}.{}.{}", self.name, self.over))
    }
}

impl PathControl {
    /// UDP payload of a full datagram, as configured.
    pub fn full_payload(&self) -> u64 {
        self.payload.max(self.payload_configured)
    }
}

/// The status of a centre.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CentreStatus {
    /// The node's name.
    pub name: String,
    /// Its process.
    #[serde(flatten)]
    pub process: ProcessStatus,
    /// The address that it listens on.
    pub address: String,
    /// Stations connected now.
    pub stations: Vec<StationPeer>,
    /// Contacts since it started, and unfinished ones from before; the last 1,000.
    pub contacts: Vec<ContactReceived>,
    /// Its products beside those of single contacts, and what is missing.
    #[serde(flatten)]
    pub products: CentreProducts,
    /// Its store.
    pub store: StoreStatus,
    /// For each frame, the stages `capture`, `spool`, `queue`, `line`, `repair`, `store` and
    /// `level0`, and `total`: its last bit at the station to durable here. The stages of the line
    /// are as good as the two nodes' clocks agree.
    pub latency_s: StageLatency,
    /// The receivers of live packets.
    #[serde(default)]
    pub live: Vec<LiveStatus>,
    /// Unknown callers that were refused.
    pub refused: u64,
    /// What shares the sessions with contacts.
    #[serde(flatten)]
    pub guests: CentreGuests,
    /// Its threads, and the processor time of each.
    #[serde(default)]
    pub threads: Vec<ThreadStatus>,
    /// Shortages of processor time.
    #[serde(default)]
    pub shortage: ShortageStatus,
    /// Datagrams that the system dropped because the line's socket was full; none where it does not
    /// count them.
    #[serde(default)]
    pub socket_drops: Option<u64>,
    /// What an operator must act on.
    pub alarms: Vec<AlarmStatus>,
}

/// A centre's products beside those of single contacts, and what is missing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CentreProducts {
    /// Products of several contacts made since it started, oldest first, the last 1,000; before
    /// them those that wait for data.
    #[serde(default)]
    pub assembled: Vec<AssembledProduct>,
    /// Deliveries of products to other systems; the newest 1,000, oldest first.
    #[serde(default)]
    pub deliveries: Vec<DeliveryStatus>,
    /// The gaps of all contacts.
    #[serde(default)]
    pub gaps: GapCounts,
}

/// What shares a centre's sessions with contacts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CentreGuests {
    /// Applications that share the sessions; none where nothing is forwarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwards: Option<ForwardsStatus>,
    /// File transfers of each station that had some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FilesStatus>,
    /// Streams of each station that had some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamsStatus>,
}

/// A receiver of live packets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveStatus {
    /// Its address, as configured.
    pub to: String,
    /// Packets sent.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets dropped: the rate, the queue or the network had no room, or the packet is too large
    /// for a datagram.
    pub dropped: u64,
}

/// A connected station.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StationPeer {
    /// Its name.
    pub name: String,
    /// Bytes of blocks delivered in this connection.
    pub bytes_delivered: u64,
    /// Blocks delivered that needed no repair.
    pub blocks_delivered: u64,
    /// Blocks delivered after repair.
    pub blocks_repaired: u64,
    /// Blocks that have arrived in part.
    pub blocks_in_flight: u64,
    /// Symbols that arrived.
    #[serde(default)]
    pub symbols_received: u64,
    /// Bytes of its blocks that are incomplete or not written yet, counted against the window.
    #[serde(default)]
    pub held_bytes: u64,
    /// The receive window.
    #[serde(default)]
    pub window_bytes: u64,
    /// The paths of its session, by which this node sends to it; their names are `NAME/NUMBER`.
    #[serde(default)]
    pub paths: Vec<LinePath>,
}

/// A contact as received.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ContactReceived {
    /// The station that captured it.
    pub station: String,
    /// Its flow there.
    pub flow: u32,
    /// The nodes that it comes from and goes to, where nodes pass it on.
    #[serde(flatten)]
    pub way: ContactWay,
    /// The input there.
    pub channel: String,
    /// The mission.
    pub mission: String,
    /// The spacecraft.
    pub scid: Option<u16>,
    /// Its state.
    pub state: ContactState,
    /// When its first frame came to the station (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<String>,
    /// When the station closed it (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
    /// Its frames, and how well they were received.
    #[serde(flatten)]
    pub reception: FrameReception,
    /// Whether everything arrived that the station captured.
    #[serde(flatten)]
    pub integrity: ContactIntegrity,
    /// Seconds from the last bit at the station to the products.
    pub last_bit_to_product_s: Option<f64>,
    /// The outcome of the frames of each of several inputs of the station, by the input's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, InputFrames>,
    /// Expedited data sets published while the contact was open.
    #[serde(default)]
    pub expedited: u64,
    /// Its products.
    pub products: Vec<ProductStatus>,
}

impl ContactReceived {
    /// Its name in accounts: the station, and its flow there.
    pub fn name(&self) -> String {
        format!("{}-{}", self.station, self.flow)
    }

    /// The name space and the flow under which the store has it.
    pub fn stored(&self) -> (&str, u32) {
        let sender = self.way.via.last();
        sender.map_or((&self.station, self.flow), |hop| (&hop.node, hop.flow))
    }
}

/// The frames of a contact, and how well they were received.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FrameReception {
    /// Good frames in the store.
    pub frames: u64,
    /// Frames set aside, in the store.
    pub set_aside: u64,
    /// Frames missing by the virtual channels' counters.
    pub missing: u64,
    /// Symbols corrected in good frames.
    pub corrected_symbols: u64,
    /// Codewords corrected, in good frames and in those set aside.
    pub corrected_codewords: u64,
    /// Codewords with more wrong symbols than can be corrected.
    pub uncorrectable_codewords: u64,
    /// Codewords by symbols corrected, minute by minute.
    #[serde(default)]
    pub margin: LinkMargin,
}

/// Whether everything of a contact arrived that the station captured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ContactIntegrity {
    /// SHA-256 over the good frames in the order captured, once the contact is closed.
    pub frames_sha256: Option<String>,
    /// Blocks that could not be read back from a disk.
    pub damaged_blocks: u64,
    /// Blocks that a standby kept back: the centre has their frames from the station that it stands
    /// by for.
    #[serde(default)]
    pub kept_back_blocks: u64,
    /// Frames in them.
    #[serde(default)]
    pub kept_back_frames: u64,
    /// Frames that the station's closing record counts more (or, negative, less) than arrived or
    /// were kept back; zero where nothing is missing.
    pub unaccounted: i64,
}

/// A product.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProductStatus {
    /// The packet file.
    pub path: String,
    /// SHA-256 of the packet file.
    pub sha256: String,
    /// Packets in it.
    pub packets: u64,
    /// Gaps in its packets' counters.
    pub gaps: u64,
}

/// A centre's store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StoreStatus {
    /// Whether it takes data.
    pub state: StoreState,
    /// Blocks stored since the start.
    pub blocks: u64,
    /// Blocks that had been stored before.
    pub duplicates: u64,
    /// Seconds that the thread that writes blocks spent in calls to the disk.
    #[serde(default)]
    pub disk_busy_s: f64,
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// Contacts whose data was removed since the start, because their time was over.
    #[serde(default)]
    pub removed: u64,
    /// And before their time, because space was needed.
    #[serde(default)]
    pub removed_early: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::NodeStatus;

    #[test]
    fn groups_of_fields_are_members_of_one_json_object_and_come_back_from_it() {
        let centre = CentreStatus {
            name: "centre".to_owned(),
            process: ProcessStatus { uptime_s: 1.5, ..ProcessStatus::default() },
            contacts: vec![ContactReceived {
                reception: FrameReception { frames: 7, ..FrameReception::default() },
                integrity: ContactIntegrity { unaccounted: -1, ..ContactIntegrity::default() },
                ..ContactReceived::default()
            }],
            ..CentreStatus::default()
        };
        let status = NodeStatus { centre: Some(centre), ..NodeStatus::default() };
        let json = serde_json::to_value(&status).unwrap();
        assert!(json.get("station").is_none(), "{json}");
        let centre = &json["centre"];
        assert_eq!((&centre["name"], &centre["uptime_s"]), (&"centre".into(), &1.5.into()));
        let contact = &centre["contacts"][0];
        assert_eq!((&contact["frames"], &contact["unaccounted"]), (&7.into(), &(-1).into()));
        assert!(centre["assembled"].is_array() && centre["gaps"].is_object());
        assert_eq!(serde_json::from_value::<NodeStatus>(json).unwrap(), status);
        let path = LinePath {
            control: PathControl { payload: 1_472, ..PathControl::default() },
            repair: PathFec { sent: 3, ..PathFec::default() },
            ..LinePath::default()
        };
        let json = serde_json::to_value(&path).unwrap();
        assert_eq!((&json["payload"], &json["repair_sent"]), (&1_472.into(), &3.into()));
        assert_eq!(serde_json::from_value::<LinePath>(json).unwrap(), path);
    }
}
