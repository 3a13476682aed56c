//! A standby station: what a centre has of another station's contacts, and what the standby
//! therefore sends.
//!
//! Two stations capture the same downlink. The standby asks the centre for a [`StandbyReport`]
//! about the first one ([`StandbyRequest`]), and a [`StandbyGate`] compares it with the frames in
//! its own spool: contacts that the centre has from the first are settled without being sent; where
//! the first is silent or lacks frames, the standby sends what the centre does not have.
//!
//! The times of two stations differ by their clocks and by the way of the signal. They count as
//! equal up to half a second: within that span, frames are sent rather than left out. The first and
//! the last frame of a contact are compared by their bytes.

mod cover;
mod gate;
#[cfg(test)]
mod tests;

pub use gate::{
    BlockFrames, BlockPlace, BlockVerdict, ChannelMatch, FlowSource, StandbyGate, StandbyState,
};

use crc_fast::{CrcAlgorithm, checksum};
use skyhaul_units::{Duration, Utc};

/// Tells frames of about the same time apart: CRC-64/NVME of the frame's bytes. 0 where it is not
/// known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameMark(pub u64);

/// A good frame at the beginning or at the end of a contact or a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeFrame {
    /// When it was received.
    pub received: Utc,
    /// Its bytes. Not known of one with idle data only, which may be the same at any time.
    pub mark: FrameMark,
}

/// A time in which frames are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LackingTime {
    /// The frame before was received then.
    pub from: Utc,
    /// The frame after was received then.
    pub to: Utc,
}

/// A standby wants to know what the centre has of another station's contacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandbyRequest {
    /// The other station.
    pub of: String,
    /// Contacts that ended before this do not matter.
    pub since: Utc,
}

/// What a centre has of a station's contacts: those that changed since the last report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandbyReport {
    /// The station.
    pub of: String,
    /// Whether the centre's configuration has such a station.
    pub is_known: bool,
    /// Whether everything has been told with this report.
    pub is_whole: bool,
    /// The contacts; at most [`TOLD_MAX`].
    pub contacts: Vec<DeliveredContact>,
}

/// What a centre has of a contact, durable and read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveredContact {
    /// What tells it from the station's other contacts.
    pub name: String,
    /// The name of its mission.
    pub mission: String,
    /// The station's name for its channel.
    pub channel: String,
    /// Its first good frame.
    pub first: EdgeFrame,
    /// The last good frame that is there.
    pub last: EdgeFrame,
    /// Whether it has ended.
    pub is_ended: bool,
    /// How long ago the last frame came.
    pub idle: Duration,
    /// Where frames are missing between the first and the last; at most [`LACKS_MAX`].
    pub lacks: Vec<LackingTime>,
}

/// Contacts in one report: 3 KiB each at the most.
pub const TOLD_MAX: usize = 16;
/// Times in which frames are missing, in one contact of a report.
pub const LACKS_MAX: usize = 64;

impl FrameMark {
    /// Of a frame.
    pub fn of(frame: &[u8]) -> Self {
        Self(checksum(CrcAlgorithm::Crc64Nvme, frame).max(1))
    }

    /// Whether both are known and are of the same frame.
    pub fn is_same(self, other: Self) -> bool {
        self != Self::default() && self == other
    }
}

/// The same times as at most `max` ones: those that are closest together become one. `times` are in
/// the order in which they begin.
pub fn joined(times: impl Iterator<Item = LackingTime>, max: usize) -> Vec<LackingTime> {
    let mut joined: Vec<LackingTime> = Vec::new();
    for time in times {
        match joined.last_mut() {
            Some(last) if time.from <= last.to => last.to = last.to.max(time.to),
            _ => joined.push(time),
        }
    }
    let excess = joined.len().saturating_sub(max.max(1));
    if excess == 0 {
        return joined;
    }
    let between = |pair: &[LackingTime]| pair[1].from.since(pair[0].to);
    let mut apart: Vec<(Duration, usize)> =
        joined.windows(2).map(between).zip(1..).collect::<Vec<_>>();
    apart.sort_unstable();
    let mut begins: Vec<usize> = apart.drain(excess..).map(|(_, begin)| begin).collect();
    begins.push(0);
    begins.sort_unstable();
    let ends = begins.iter().skip(1).copied().chain([joined.len()]);
    let one = |(begin, end): (&usize, usize)| LackingTime {
        from: joined[*begin].from,
        to: joined[end - 1].to,
    };
    begins.iter().zip(ends).map(one).collect()
}
