//! The identity of a frame across inputs, and the ranking of its copies.

use crate::count::{CountStep, Modulus};
use crate::frame::{VcCount, glimpse_as};
use crate::id::{Channel, Vcid};
use crate::mission::{FrameFormat, FrameKind};
use crate::quality::{CapturedFrame, FrameVerdict, Reason};
use std::cmp::Reverse;
use std::hash::{DefaultHasher, Hasher};
use std::ops::RangeInclusive;

/// Frames that are counted together: those of a virtual channel; in USLP, those in sequence and
/// expedited ones apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Series {
    channel: Channel,
    is_expedited: bool,
}

/// The identity of a good frame: its series and count, and a digest of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub series: Series,
    pub count: u64,
    digest: u64,
}

impl Key {
    /// Whether both have the same spacecraft, channel and count.
    pub fn has_header_of(&self, other: &Self) -> bool {
        (self.series, self.count) == (other.series, other.count)
    }

    /// From the least to the greatest of the frames with this header.
    pub const fn alike(&self) -> RangeInclusive<Self> {
        Self { digest: u64::MIN, ..*self }..=Self { digest: u64::MAX, ..*self }
    }
}

/// A frame of an input with the fields of its header.
#[derive(Debug)]
pub(super) struct Arrived {
    pub frame: CapturedFrame,
    pub identity: Option<Identity>,
}

/// The identity of a good frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub key: Key,
    /// Where its count wraps.
    pub modulus: Modulus,
    /// It has idle data only, and may be repeated without change.
    pub is_idle: bool,
}

impl Identity {
    /// Reads a frame of this format; `None` for one set aside, or of another kind.
    pub fn of(frame: &CapturedFrame, format: &FrameFormat) -> Option<Self> {
        if !frame.is_good() {
            return None;
        }
        let (kind, channel, VcCount { value: count, modulus }) = glimpse_as(&frame.bytes, format)?;
        let mut hasher = DefaultHasher::new();
        hasher.write(&frame.bytes);
        let is_idle = match kind {
            FrameKind::Tm => is_idle_tm(&frame.bytes),
            FrameKind::Aos | FrameKind::Uslp => channel.vcid == Vcid::MAX,
        };
        // CCSDS 732.1-B-3 4.1.2.8.1: the bypass flag.
        let is_expedited =
            kind == FrameKind::Uslp && frame.bytes.get(6).is_some_and(|flags| flags & 0x80 != 0);
        let key = Key { series: Series { channel, is_expedited }, count, digest: hasher.finish() };
        Some(Self { key, modulus, is_idle })
    }

    /// Whether it may precede the other one: it is of another series, or its count is before the
    /// other's.
    pub fn precedes(&self, other: &Self) -> bool {
        self.key.series != other.key.series
            || matches!(
                self.modulus.step(self.key.count, other.key.count),
                CountStep::Next | CountStep::Gap { .. }
            )
    }

    /// The number of frames after which the same bytes may be another frame, because the count has
    /// wrapped.
    pub fn comes_round(&self) -> u64 {
        (self.modulus.values() / 2).max(LEAST_ROUND)
    }
}

/// Half of the shortest count, that of TM frames; also for frames without a count.
const LEAST_ROUND: u64 = 128;

/// CCSDS 132.0-B-3 4.1.2.7.6: a first header pointer of `0x7FE`, in a frame whose data field holds
/// packets.
fn is_idle_tm(bytes: &[u8]) -> bool {
    let header = bytes.first_chunk::<6>();
    header.is_some_and(|header| u16::from_be_bytes([header[4], header[5]]) & 0x47FF == 0x07FE)
}

/// The quality of a copy: the greater, the better. In ascending order: set aside by Reed-Solomon or
/// for the header, by the frame error control; found without a marker; with symbols corrected, the
/// fewer the better; clean. Among equals, the one with fewer wrong bits in the marker is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(u8, Reverse<u32>, Reverse<u8>);

impl Rank {
    pub fn of(frame: &CapturedFrame) -> Self {
        let quality = &frame.quality;
        let class = match (frame.set_aside, quality.verdict) {
            (Some(Reason::ReedSolomon | Reason::Ldpc | Reason::Header), _) => 0,
            (Some(Reason::FrameErrorControl), _) => 1,
            (None, _) if quality.flywheel => 2,
            (None, FrameVerdict::NotChecked | FrameVerdict::Uncorrectable) => 3,
            (None, FrameVerdict::Corrected) => 4,
            (None, FrameVerdict::Clean) => 5,
        };
        // For a frame set aside, the codewords that could not be corrected count.
        let (_, lost) = quality.corrected.codewords();
        let wrong = if frame.is_good() { quality.corrected_symbols() } else { lost };
        Self(class, Reverse(wrong), Reverse(quality.marker_errors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::{BitPosition, CorrectedSymbols, Quality};
    use bytes::Bytes;
    use skyhaul_units::Utc;

    fn copy(set_aside: Option<Reason>, verdict: FrameVerdict, corrected: &[u8]) -> CapturedFrame {
        let corrected = CorrectedSymbols::new(corrected);
        CapturedFrame {
            received: Utc::from_micros(0),
            position: BitPosition::START,
            quality: Quality { verdict, corrected, ..Quality::NOT_CHECKED },
            set_aside,
            bytes: Bytes::new(),
            check_symbols: Bytes::new(),
        }
    }

    #[test]
    fn copies_are_ranked_from_uncorrectable_to_clean() {
        let lost = CorrectedSymbols::UNCORRECTABLE;
        let mut flywheel = copy(None, FrameVerdict::Clean, &[]);
        flywheel.quality.flywheel = true;
        let mut marker = copy(None, FrameVerdict::Clean, &[]);
        marker.quality.marker_errors = 1;
        let ranked = [
            copy(Some(Reason::ReedSolomon), FrameVerdict::Uncorrectable, &[lost, lost, 0, 0]),
            copy(Some(Reason::ReedSolomon), FrameVerdict::Uncorrectable, &[lost, 3, 9, 0]),
            copy(Some(Reason::FrameErrorControl), FrameVerdict::Uncorrectable, &[]),
            flywheel,
            copy(None, FrameVerdict::Corrected, &[9, 0, 0, 1]),
            copy(None, FrameVerdict::Corrected, &[1, 0, 0, 0]),
            marker,
            copy(None, FrameVerdict::Clean, &[]),
        ];
        assert!(ranked.windows(2).all(|pair| Rank::of(&pair[0]) < Rank::of(&pair[1])));
    }
}
