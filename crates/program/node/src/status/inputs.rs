//! The status of each of several inputs of a downlink.

use super::reception::{ChannelState, RecordingStatus, Vita49Status};
use serde::{Deserialize, Serialize};
use skyhaul_ccsds::select::InputAccount;

/// One of several inputs of a channel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InputStatus {
    /// Its name in the channel.
    pub name: String,
    /// What it reads, as configured.
    pub input: String,
    /// The address that it listens on, once bound.
    pub address: Option<String>,
    /// Whether it has lock.
    pub state: ChannelState,
    /// Bytes read.
    pub bytes: u64,
    /// The outcome of its frames.
    #[serde(flatten)]
    pub frames: InputFrames,
    /// UDP datagrams that the system dropped before they were read, where it counts them.
    pub dropped_datagrams: u64,
    /// Its recording, where it is recorded as received.
    #[serde(default)]
    pub recording: Option<RecordingStatus>,
    /// Its VITA 49 packets, where such come.
    #[serde(default)]
    pub vita49: Option<Vita49Status>,
}

/// The outcome of the frames of one of several inputs: `frames` is the sum of `chosen`, `worse`,
/// `duplicates`, `repeated`, `late`, `foreign` and those that wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct InputFrames {
    /// Frames that it gave, good or not.
    pub frames: u64,
    /// Frames whose selected copy came from this input.
    pub chosen: u64,
    /// Of these, good frames that were good on no other input.
    pub only_here: u64,
    /// Copies that were no better than the selected one.
    pub worse: u64,
    /// Copies that came after the frame had been released.
    pub duplicates: u64,
    /// Frames that it gave twice.
    pub repeated: u64,
    /// Frames without another copy that came after the window, and are lost.
    pub late: u64,
    /// Frames of another downlink, which are excluded.
    pub foreign: u64,
    /// Its skew: seconds behind the first input that has a frame.
    pub skew_s: f64,
}

impl InputFrames {
    /// Of an account, with frames of another downlink.
    pub fn of(account: &InputAccount, foreign: u64) -> Self {
        Self {
            frames: account.given.saturating_add(foreign),
            chosen: account.chosen,
            only_here: account.only_here,
            worse: account.worse,
            duplicates: account.duplicates,
            repeated: account.repeated,
            late: account.late,
            foreign,
            skew_s: account.skew.as_secs_f64(),
        }
    }
}
