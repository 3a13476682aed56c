//! The reception of an input: lock, VITA 49 packets, recording.

use serde::{Deserialize, Serialize};

/// Whether an input has lock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChannelState {
    /// No data is received.
    #[default]
    Waiting,
    /// Data is received, without lock.
    Search,
    /// Frames are received.
    Lock,
    /// The input is exhausted.
    Ended,
    /// The input cannot be used; the reason is among the alarms.
    Failed,
}

/// The VITA 49 packets of an input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Vita49Status {
    /// Data packets taken.
    pub data: u64,
    /// Data packets that are missing by their counter.
    pub lost: u64,
    /// Data packets that came late or twice, which are dropped.
    pub reordered: u64,
    /// Data packets that report a loss of samples.
    pub lossy: u64,
    /// Packets that could not be used.
    pub refused: u64,
    /// Packets of other streams and kinds.
    pub other: u64,
    /// The frequency received, in hertz, where the packets say it.
    pub rf_frequency_hz: Option<i64>,
    /// Symbols a second, where the packets say it.
    pub symbol_rate_bps: Option<u64>,
    /// The level of a full-scale signal in dBm, where the packets say it.
    pub reference_level_dbm: Option<f64>,
}

/// The recording of an input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingStatus {
    /// Bytes recorded since the station started.
    pub bytes: u64,
    /// Bytes that were received and could not be recorded.
    pub dropped_bytes: u64,
    /// The size of the recording on disk, with its index.
    pub disk_bytes: u64,
}
