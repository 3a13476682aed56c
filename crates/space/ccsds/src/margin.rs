//! The trend of a link's margin: the number of symbols corrected in each codeword, for each minute
//! of a contact.
//!
//! A codeword of E = 16 is lost at 17 wrong symbols. The distance to that limit shows the margin of
//! the link long before a frame is lost.

use crate::mission::Mission;
use crate::quality::{CapturedFrame, FrameVerdict};
use serde::{Deserialize, Serialize};
use skyhaul_units::Utc;

/// One minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MinuteMargin {
    /// When it began, in seconds since 1970 UTC, by the reception of the frames.
    pub unix_s: i64,
    /// Codewords by the number of symbols corrected: none, 1, 2, 3 and 4, 5 to 8, 9 to 12, 13 to
    /// 16; the last are those that could not be corrected.
    pub codewords: [u32; BINS],
}

/// The minutes of a contact.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkMargin {
    /// Codewords of a frame; zero where frames are not coded.
    codewords_per_frame: u32,
    minutes: Vec<MinuteMargin>,
}

/// Groups of codewords by symbols corrected.
pub const BINS: usize = 8;
/// The most symbols corrected in each group but the last.
pub const BIN_ENDS: [u8; BINS - 1] = [0, 1, 2, 4, 8, 12, 16];
/// Minutes kept: the longest passes are 20 minutes, contacts of the deep space networks 12 hours.
/// Later frames count towards the last minute. 720 minutes take 29 kB.
pub const MAX_MINUTES: usize = 720;

impl LinkMargin {
    /// Of a contact of this mission.
    pub fn new(mission: &Mission) -> Self {
        let interleave = mission.coding().reed_solomon.map_or(0, |code| code.interleave);
        // A block has at most eight codewords.
        Self { codewords_per_frame: interleave as u32, minutes: Vec::new() }
    }

    /// Counts a frame, good or set aside.
    pub fn count(&mut self, frame: &CapturedFrame) {
        if self.codewords_per_frame == 0 || frame.quality.verdict == FrameVerdict::NotChecked {
            return;
        }
        let codewords = self.codewords_per_frame;
        let Some(minute) = self.minute(frame.received) else { return };
        let by_codeword = frame.quality.corrected.by_codeword();
        for symbols in by_codeword {
            // The group after the last limit has those that could not be corrected.
            let bin = BIN_ENDS.partition_point(|end| end < symbols);
            minute.codewords[bin] = minute.codewords[bin].saturating_add(1);
        }
        // A frame in which all codewords were clean does not list them.
        let clean = codewords.saturating_sub(by_codeword.len() as u32);
        minute.codewords[0] = minute.codewords[0].saturating_add(clean);
    }

    /// The minutes that had frames, in their order.
    pub fn minutes(&self) -> &[MinuteMargin] {
        &self.minutes
    }

    /// The minute of a frame: the newest, a new one, or an earlier one if the clock was set back.
    fn minute(&mut self, received: Utc) -> Option<&mut MinuteMargin> {
        let unix_s = received.as_micros().div_euclid(60_000_000) * 60;
        let place = match self.minutes.binary_search_by_key(&unix_s, |known| known.unix_s) {
            Ok(place) => place,
            Err(_) if self.minutes.len() >= MAX_MINUTES => MAX_MINUTES - 1,
            Err(place) => {
                self.minutes.insert(place, MinuteMargin { unix_s, ..MinuteMargin::default() });
                place
            }
        };
        self.minutes.get_mut(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mission::MissionSet;
    use crate::quality::{BitPosition, CorrectedSymbols, Quality};
    use bytes::Bytes;

    fn frame(second: i64, verdict: FrameVerdict, corrected: &[u8]) -> CapturedFrame {
        CapturedFrame {
            received: Utc::from_micros(second * 1_000_000),
            position: BitPosition::START,
            quality: Quality {
                verdict,
                corrected: CorrectedSymbols::new(corrected),
                ..Quality::NOT_CHECKED
            },
            set_aside: None,
            bytes: Bytes::new(),
            check_symbols: Bytes::new(),
        }
    }

    fn margin() -> LinkMargin {
        let missions = MissionSet::built_in();
        LinkMargin::new(
            missions.by_name("suomi-npp").expect("a mission with four codewords a frame"),
        )
    }

    #[test]
    fn codewords_are_counted_by_minute_and_by_symbols_corrected() {
        let mut margin = margin();
        margin.count(&frame(59, FrameVerdict::Clean, &[]));
        margin.count(&frame(61, FrameVerdict::Corrected, &[0, 3, 16, 1]));
        margin.count(&frame(62, FrameVerdict::Uncorrectable, &[255, 8, 9, 0]));
        margin.count(&frame(63, FrameVerdict::NotChecked, &[]));
        margin.count(&frame(58, FrameVerdict::Clean, &[]));
        let expected = [
            MinuteMargin { unix_s: 0, codewords: [8, 0, 0, 0, 0, 0, 0, 0] },
            MinuteMargin { unix_s: 60, codewords: [2, 1, 0, 1, 1, 1, 1, 1] },
        ];
        assert_eq!(margin.minutes(), expected);
    }

    #[test]
    fn a_contact_without_end_takes_no_more_memory() {
        let mut margin = margin();
        for minute in 0..MAX_MINUTES as i64 + 100 {
            margin.count(&frame(60 * minute, FrameVerdict::Clean, &[]));
        }
        assert_eq!(margin.minutes().len(), MAX_MINUTES);
        assert_eq!(margin.minutes().last().map(|last| last.codewords[0]), Some(404));
    }
}
