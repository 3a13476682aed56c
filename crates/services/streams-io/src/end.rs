//! The progress of a stream, and how it ends.

use serde::Serialize;
use skyhaul::Session;
use skyhaul_net::Clock;
use skyhaul_streams::wire::{StreamRefusal, WireError};
use skyhaul_streams::{Counters, Missing, StreamFormat};
use skyhaul_units::Duration;
use std::sync::atomic::AtomicBool;

/// The environment of a stream.
pub struct StreamContext<'a> {
    /// The clock.
    pub clock: Clock,
    /// Set to stop the stream. The source's end then sends the frames that it has read, and waits
    /// for the account.
    pub stop: &'a AtomicBool,
    /// Gets the progress each second.
    pub tell: &'a (dyn Fn(&Look) + Sync),
}

/// The progress of a stream.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// The format of its units.
    pub format: StreamFormat,
    /// Since it began.
    pub elapsed: Duration,
    /// At the source's end: totals of the source.
    pub near: Option<SourceTotals>,
    /// The counters of the sink's end, as far as they are known here.
    pub counters: Counters,
    /// At the sink's end: the largest delay of a group beyond that of the fastest one, since the
    /// previous report.
    pub slowest: Duration,
}

/// Totals of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SourceTotals {
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames among them that were dropped here, because the line had no room for them in time.
    pub unsent: u64,
    /// Units that were missing in the source already, by its sequence numbers: packets of RTP.
    pub source_missing: u64,
    /// Units that the source gave out of order: packets of RTP that came too late or twice.
    pub source_reordered: u64,
    /// How often the source began anew: an RTP stream under another source, or far from where it
    /// was.
    pub source_restarts: u64,
    /// Bytes of the source that belong to no frame: of packets that are not of the RTP stream.
    pub skipped: u64,
    /// How much later than its time a frame was handed over, in the mean and at most, in
    /// microseconds: of a source that has a pace.
    pub pacing_mean_us: u64,
    /// At most.
    pub pacing_max_us: u64,
}

/// The account of a stream.
#[derive(Debug, Clone)]
pub struct StreamSummary {
    /// The format of its units.
    pub format: StreamFormat,
    /// How long it lasted.
    pub elapsed: Duration,
    /// At the source's end.
    pub near: Option<SourceTotals>,
    /// Of the sink's end.
    pub counters: Counters,
    /// Which frames the sink does not have.
    pub map: Vec<Missing>,
    /// Frames that it does not have either, beyond the places of the map.
    pub further: u64,
}

/// Why a stream failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamFailure {
    /// The far end refuses it, or stopped it.
    Refused(StreamRefusal),
    /// This end cannot go on.
    Here(StreamRefusal),
    /// The session has ended.
    Lost(String),
    /// Protocol error of the far end.
    Malformed(String),
}

impl StreamFailure {
    pub(crate) fn lost(link: &Session) -> Self {
        Self::Lost(link.closed().unwrap_or_else(|| "the session has ended".to_owned()))
    }
}

impl From<WireError> for StreamFailure {
    fn from(error: WireError) -> Self {
        Self::Malformed(error.to_string())
    }
}
