//! The account of the frames of a stream: received, repaired, late, lost.

use crate::frame_time::FrameTime;
use serde::Serialize;
use skyhaul_units::wire::ByteReader;
use std::collections::BTreeMap;

/// Frames by their outcome, counted at the sink's end. At the end
/// `sent = received + repaired + late + lost`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counters {
    /// Frames of the source, as far as they are known here, including those that the line had no
    /// room for.
    pub sent: u64,
    /// Frames that came in time and needed no FEC repair.
    pub received: u64,
    /// Frames that came in time by FEC repair.
    pub repaired: u64,
    /// Frames that came after an invalid one had been given out in their place.
    pub late: u64,
    /// Frames that did not come.
    pub lost: u64,
    /// Frames that came some milliseconds after ones with a higher number: reordered on the line,
    /// or repaired.
    pub reordered: u64,
    /// The longest distance of such a frame, in frames.
    pub reordered_by: u64,
    /// Frames that were dropped at the sink's end, because the sink was too slow; they are among
    /// the lost.
    pub overflowed: u64,
    /// Invalid frames whose header may be wrong: no exception about them arrived.
    pub guessed: u64,
    /// Lost frames without an invalid one in their place, because no frame had come before.
    pub unmarked: u64,
    /// Bytes of frames that came in time.
    pub bytes: u64,
    /// How long runs of missing frames were.
    pub runs: LossRuns,
}

/// Runs of missing frames by their length: 1, 2, 3 and 4, 5 to 8, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct LossRuns(pub [u64; 16]);

/// Frames of one thread and second that the sink does not have, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// The first.
    pub place: FrameTime,
    /// The number of the last.
    pub last: u32,
}

/// Which frames the sink does not have.
#[derive(Debug, Clone, Default)]
pub struct LossMap {
    /// The newest of each thread, which may go on.
    open: BTreeMap<(u16, u16), Missing>,
    closed: Vec<Missing>,
    further: u64,
}

/// The share of the signal-to-noise ratio that is left where `missing` of `sent` frames are masked
/// out: the square root of the samples that are left.
pub fn signal_to_noise(missing: u64, sent: u64) -> f64 {
    if sent == 0 { 1.0 } else { (1.0 - missing.min(sent) as f64 / sent as f64).sqrt() }
}

impl Counters {
    /// Frames that the sink does not have.
    pub const fn missing(&self) -> u64 {
        self.late + self.lost
    }

    /// Whether every frame has an outcome.
    pub const fn balances(&self) -> bool {
        self.sent == self.received + self.repaired + self.late + self.lost
    }

    /// The counts since `before`. Maxima stay.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let (mut since, mut before) = (*self, *before);
        for (now, before) in since.fields().into_iter().zip(before.fields()) {
            *now = now.saturating_sub(*before);
        }
        since.reordered_by = self.reordered_by;
        since
    }

    fn fields(&mut self) -> Vec<&mut u64> {
        let Self { sent, received, repaired, late, lost, reordered, reordered_by, .. } = self;
        let Self { overflowed, guessed, unmarked, bytes, runs, .. } = self;
        let mut fields = vec![sent, received, repaired, late, lost, reordered, reordered_by];
        fields.extend([overflowed, guessed, unmarked, bytes]);
        fields.extend(&mut runs.0);
        fields
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        self.clone().fields().into_iter().for_each(|field| out.extend(field.to_be_bytes()));
    }

    pub(crate) fn take(fields: &mut ByteReader<'_>) -> Option<Self> {
        let mut counters = Self::default();
        for field in counters.fields() {
            *field = fields.u64()?;
        }
        Some(counters)
    }
}

impl LossRuns {
    /// Counts a run.
    pub fn add(&mut self, len: u64) {
        if len > 0 {
            let bin = (u64::BITS - (len - 1).leading_zeros()) as usize;
            self.0[bin.min(self.0.len() - 1)] += 1;
        }
    }

    /// The lengths that a place counts.
    pub fn lengths(place: usize) -> (u64, u64) {
        if place == 0 { (1, 1) } else { ((1 << (place - 1)) + 1, 1 << place) }
    }
}

impl core::fmt::Display for LossRuns {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut first = true;
        for (place, count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (from, to) = Self::lengths(place);
            let comma = if first { "" } else { ", " };
            first = false;
            match place {
                0 | 1 => write!(f, "{comma}{count} of {from}")?,
                15 => write!(f, "{comma}{count} of {from} and more")?,
                _ => write!(f, "{comma}{count} of {from} to {to}")?,
            }
        }
        if first { f.write_str("none") } else { Ok(()) }
    }
}

impl Missing {
    /// How many.
    pub const fn count(&self) -> u64 {
        (self.last - self.place.number) as u64 + 1
    }
}

impl LossMap {
    /// Places that are kept, at most; frames of further ones are counted.
    pub const MAX: usize = 1 << 16;
    /// Threads of which the newest place is kept open, at most.
    const OPEN_MAX: usize = 1024;

    /// The frame that belongs there is missing.
    pub fn add(&mut self, place: FrameTime) {
        let key = (place.station, place.thread);
        if let Some(open) = self.open.get_mut(&key) {
            if open.place.second == place.second && open.last.checked_add(1) == Some(place.number) {
                open.last = place.number;
                return;
            }
            let full = core::mem::replace(open, Missing { place, last: place.number });
            self.close(full);
            return;
        }
        let missing = Missing { place, last: place.number };
        if self.open.len() < Self::OPEN_MAX {
            self.open.insert(key, missing);
        } else {
            self.close(missing);
        }
    }

    /// The places in the order of time, and how many frames were missing at further ones.
    pub fn finish(mut self) -> (Vec<Missing>, u64) {
        let open = core::mem::take(&mut self.open);
        open.into_values().for_each(|missing| self.close(missing));
        self.closed
            .sort_by_key(|missing| (missing.place.second, missing.place.number, missing.place));
        (self.closed, self.further)
    }

    fn close(&mut self, missing: Missing) {
        if self.closed.len() < Self::MAX {
            self.closed.push(missing);
        } else {
            self.further += missing.count();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_by_their_length() {
        let mut runs = LossRuns::default();
        [0, 1, 1, 2, 3, 4, 5, 8, 9, u64::MAX].into_iter().for_each(|len| runs.add(len));
        assert_eq!(runs.0[..5], [2, 1, 2, 2, 1]);
        assert_eq!(runs.0[15], 1);
        let text = "2 of 1, 1 of 2, 2 of 3 to 4, 2 of 5 to 8, 1 of 9 to 16, 1 of 16385 and more";
        assert_eq!(runs.to_string(), text);
        assert_eq!(LossRuns::default().to_string(), "none");
    }

    #[test]
    fn the_map_joins_what_follows_in_a_thread() {
        let place = |thread, second, number| FrameTime { station: 0, thread, second, number };
        let mut map = LossMap::default();
        for (thread, second, number) in [(0, 1, 5), (1, 1, 5), (0, 1, 6), (1, 1, 7), (0, 2, 0)] {
            map.add(place(thread, second, number));
        }
        let (missing, further) = map.finish();
        let expected = [(0, 1, 5, 6), (1, 1, 5, 5), (1, 1, 7, 7), (0, 2, 0, 0)];
        let expected = expected.map(|(thread, second, first, last)| Missing {
            place: place(thread, second, first),
            last,
        });
        assert_eq!((missing.as_slice(), further), (&expected[..], 0));
    }

    #[test]
    fn a_twentieth_masked_out_costs_two_and_a_half_percent() {
        assert!((signal_to_noise(5, 100) - 0.974_679).abs() < 1e-6);
        assert!((signal_to_noise(0, 0) - 1.0).abs() < 1e-12);
    }
}
