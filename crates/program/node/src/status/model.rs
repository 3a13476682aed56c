//! The status as data.

use super::delivery::DeliveryStatus;
use super::gaps::GapCounts;
use super::guests::{FilesStatus, ForwardsStatus, MirrorStatus, StreamStatus, StreamsStatus};
use super::inputs::{InputFrames, InputStatus};
use super::products::AssembledProduct;
use super::reception::{ChannelState, RecordingStatus, Vita49Status};
use super::session::{SessionStatus, ShortageStatus, ThreadStatus};
use crate::latency::LatencySummary;
use serde::{Deserialize, Serialize};
use skyhaul_ccsds::margin::LinkMargin;
use std::collections::BTreeMap;

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum NodeStatus {
    /// A capturing end.
    Station(StationStatus),
    /// A receiving end.
    Centre(CentreStatus),
}

/// The distribution of frames' times in each stage, seconds.
pub type StageLatency = BTreeMap<String, LatencySummary>;

/// A station's state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StationStatus {
    /// The node's name.
    pub name: String,
    /// Seconds since it started.
    pub uptime_s: f64,
    /// Memory resident now, in bytes.
    pub rss_bytes: u64,
    /// The most memory that was resident, in bytes.
    pub rss_peak_bytes: u64,
    /// Lines of its log that were dropped because nobody read them.
    #[serde(default)]
    pub log_dropped: u64,
    /// Its inputs.
    pub channels: Vec<ChannelStatus>,
    /// Contacts since it started, oldest first; the last 1,000.
    pub contacts: Vec<ContactCaptured>,
    /// Its spool.
    pub spool: SpoolStatus,
    /// When what waits of each contact will be at the centre, in the order of their flows.
    #[serde(default)]
    pub forecasts: Vec<ContactForecast>,
    /// Its line to the centre.
    pub line: LineStatus,
    /// Applications that share the session; none where nothing is forwarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwards: Option<ForwardsStatus>,
    /// Folders that the centre gets, in the order of the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirrors: Vec<MirrorStatus>,
    /// Streams that the centre gets, in the order of the configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamStatus>,
    /// Its threads, and what processor time each took.
    #[serde(default)]
    pub threads: Vec<ThreadStatus>,
    /// What has kept its process from running.
    #[serde(default)]
    pub shortage: ShortageStatus,
    /// What needs somebody's attention now.
    pub alarms: Vec<String>,
}

/// An input.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChannelStatus {
    /// Its name.
    pub name: String,
    /// What it reads, as configured; of several inputs, all of them.
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
    /// Bytes taken in.
    pub bytes: u64,
    /// Good frames.
    pub frames: u64,
    /// Symbols corrected in them.
    pub corrected_symbols: u64,
    /// Frames set aside.
    pub set_aside: u64,
    /// UDP datagrams that the system dropped before they were read, where it tells.
    pub dropped_datagrams: u64,
    /// Its recording, where it is recorded as received.
    #[serde(default)]
    pub recording: Option<RecordingStatus>,
    /// Its VITA 49 packets, where such come.
    #[serde(default)]
    pub vita49: Option<Vita49Status>,
}

/// Whether a contact goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContactState {
    /// Data comes in.
    #[default]
    Open,
    /// The last frame is there.
    Closed,
    /// Its products are written.
    Done,
    /// Its products could not be made; the reason is among the alarms.
    Failed,
}

/// A contact as captured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ContactCaptured {
    /// Its flow.
    pub flow: u32,
    /// The input.
    pub channel: String,
    /// The mission.
    pub mission: String,
    /// The spacecraft.
    pub scid: Option<u16>,
    /// Whether it goes on.
    pub state: ContactState,
    /// Good frames captured.
    pub frames: u64,
    /// Frames set aside.
    pub set_aside: u64,
    /// Symbols corrected in good frames.
    pub corrected_symbols: u64,
    /// Bytes of the downlink that good frames came in.
    pub bytes_captured: u64,
    /// Bytes of those that stay off the line: markers and check symbols, and since the station
    /// began, what packing saved.
    pub bytes_saved: u64,
    /// When its first frame came (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<String>,
    /// When it was closed (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
}

/// When a contact will be at the centre, at the present rates and with what is foretold of the
/// paths.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ContactForecast {
    /// Its flow.
    pub flow: u32,
    /// The input; empty where it is not known yet.
    pub channel: String,
    /// Bytes of blocks that were never sent, or have to be sent again.
    pub unsent_bytes: u64,
    /// Seconds until the last of them is at the centre; none while nothing is known to carry them.
    pub done_s: Option<f64>,
    /// Seconds to spare before the deadline that is kept with the least, or (negative) by which the
    /// worst is missed; none without a deadline, or while nothing is known.
    pub spare_s: Option<f64>,
}

/// A station's spool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SpoolStatus {
    /// Whether it takes data.
    pub state: StoreState,
    /// Blocks that the centre does not have in custody.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
}

/// Whether a durable store takes data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreState {
    /// It does.
    #[default]
    Ok,
    /// There is no space; what comes in is held back until there is.
    Full,
    /// The disk failed; what comes in is held back, and it is tried again.
    Failed,
}

/// Whether the line is in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LineState {
    /// Being set up.
    #[default]
    Connecting,
    /// In use.
    Open,
    /// Tried in vain; tried again soon.
    Down,
    /// The centre refuses this station, or is not the one configured.
    Refused,
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
    /// Symbols sent first.
    pub symbols_sent: u64,
    /// Symbols sent again.
    pub symbols_repeated: u64,
    /// Symbols called lost.
    pub symbols_lost: u64,
    /// Blocks wait because the centre takes no more now.
    pub held_back: bool,
    /// What it waited for since it was set up; none while it is not.
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
    /// `probing`, `active`, `standby`, `absent` (foretold to be out), `silent` (nothing is heard
    /// from it, and it is the only one), `black-hole` (only short packets arrive) or `failed`.
    pub state: String,
    /// Who decides how fast it goes: the rate control's name; empty over TCP, where the system
    /// does.
    #[serde(default)]
    pub controller: String,
    /// The rate that was declared for it, in bit/s, counted in IP packets.
    #[serde(default)]
    pub declared_bps: Option<u64>,
    /// UDP payload of a full datagram now; zero over TCP.
    #[serde(default)]
    pub payload: u64,
    /// The same as configured, where longer ones than now vanish; zero where they do not.
    #[serde(default)]
    pub payload_configured: u64,
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
    /// Bytes of blocks sent, repetitions included.
    pub bytes_sent: u64,
    /// Repair symbols sent.
    pub repair_sent: u64,
    /// Datagrams that repair stood for at the centre.
    pub repair_used: u64,
    /// Repair symbols that stood for nothing: not needed there, or lost themselves.
    #[serde(default)]
    pub repair_wasted: u64,
    /// How often it stopped answering.
    pub stalls: u64,
}

impl LinePath {
    /// UDP payload of a full datagram, as configured.
    pub fn full_payload(&self) -> u64 {
        self.payload.max(self.payload_configured)
    }
}

/// A centre's state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CentreStatus {
    /// The node's name.
    pub name: String,
    /// Seconds since it started.
    pub uptime_s: f64,
    /// Memory resident now, in bytes.
    pub rss_bytes: u64,
    /// The most memory that was resident, in bytes.
    pub rss_peak_bytes: u64,
    /// Lines of its log that were dropped because nobody read them.
    #[serde(default)]
    pub log_dropped: u64,
    /// The address that it listens on.
    pub address: String,
    /// Stations connected now.
    pub stations: Vec<StationPeer>,
    /// Contacts since it started, and unfinished ones from before; the last 1,000.
    pub contacts: Vec<ContactReceived>,
    /// Products of several contacts made since it started, oldest first, the last 1,000; and before
    /// them those that data waits for.
    #[serde(default)]
    pub assembled: Vec<AssembledProduct>,
    /// Products handed over to other systems, or to be; the newest 1,000, oldest first.
    #[serde(default)]
    pub deliveries: Vec<DeliveryStatus>,
    /// What is missing of all contacts.
    #[serde(default)]
    pub gaps: GapCounts,
    /// Its store.
    pub store: StoreStatus,
    /// For each frame, the stages `capture`, `spool`, `queue`, `line`, `repair`, `store` and
    /// `level0`, and `total`: its last bit at the station to durable here. The stages of the line
    /// are as good as the two nodes' clocks agree.
    pub latency_s: StageLatency,
    /// Who gets packets as they arrive.
    #[serde(default)]
    pub live: Vec<LiveStatus>,
    /// Strangers refused.
    pub refused: u64,
    /// Applications that share the sessions; none where nothing is forwarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwards: Option<ForwardsStatus>,
    /// What stations did with files, of each station that did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FilesStatus>,
    /// Streams of each station that had some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamsStatus>,
    /// Its threads, and what processor time each took.
    #[serde(default)]
    pub threads: Vec<ThreadStatus>,
    /// What has kept its process from running.
    #[serde(default)]
    pub shortage: ShortageStatus,
    /// Datagrams that the system dropped because the line's socket was full; none where it does not
    /// tell.
    #[serde(default)]
    pub socket_drops: Option<u64>,
    /// What needs somebody's attention now.
    pub alarms: Vec<String>,
}

/// A receiver of packets as they arrive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveStatus {
    /// Where they go, as configured.
    pub to: String,
    /// Packets sent.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets left out: the rate, the queue or the network had no room, or a datagram cannot hold
    /// them.
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
    /// Blocks under way.
    pub blocks_in_flight: u64,
    /// Symbols that arrived.
    #[serde(default)]
    pub symbols_received: u64,
    /// Bytes of its blocks that are under way or not written yet, counted against the window.
    #[serde(default)]
    pub held_bytes: u64,
    /// Bytes that may be.
    #[serde(default)]
    pub window_bytes: u64,
}

/// A contact as received.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ContactReceived {
    /// The station.
    pub station: String,
    /// Its flow there.
    pub flow: u32,
    /// The input there.
    pub channel: String,
    /// The mission.
    pub mission: String,
    /// The spacecraft.
    pub scid: Option<u16>,
    /// How far it is.
    pub state: ContactState,
    /// When its first frame came to the station (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<String>,
    /// When the station closed it (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
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
    /// SHA-256 over the good frames in the order captured, once the contact is closed.
    pub frames_sha256: Option<String>,
    /// Blocks that a disk did not give back.
    pub damaged_blocks: u64,
    /// Frames that the station's closing record counts more (or, negative, less) than arrived; zero
    /// when all is well.
    pub unaccounted: i64,
    /// Seconds from the last bit at the station to the products.
    pub last_bit_to_product_s: Option<f64>,
    /// What each of several inputs of the station gave, by its name there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, InputFrames>,
    /// Expedited data sets published while it went on.
    #[serde(default)]
    pub expedited: u64,
    /// Its products.
    pub products: Vec<ProductStatus>,
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
    /// Blocks kept since the start.
    pub blocks: u64,
    /// Blocks that had been kept before.
    pub duplicates: u64,
    /// Seconds that the thread which writes blocks spent in calls to the disk.
    #[serde(default)]
    pub disk_busy_s: f64,
    /// Bytes on disk.
    pub disk_bytes: u64,
}
