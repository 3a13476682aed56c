//! Predicts position and polarity of the next frame from the last one, and checks its marker.

use super::cadus::CaduBuffer;
use super::config::SyncConfig;
use super::hit::{CaduLayout, Hit};
use super::judge::{Judge, Judgement};
use skyhaul_coding::align::Polarity;

/// What the last frame predicts of the next one.
#[derive(Debug)]
pub(super) struct Prediction {
    /// Where the next marker is due (lock, flywheel).
    pub due: u64,
    /// The polarity of the last frame: a receiver seldom changes it.
    pub polarity: Polarity,
    /// The first bit that belongs to no good frame.
    pub unclaimed: u64,
    /// Blocks without a marker in a row.
    pub coasted: u8,
}

impl Prediction {
    /// Before the first frame.
    pub const fn starting_at(start: u64) -> Self {
        Self { due: start, polarity: Polarity::Upright, unclaimed: start, coasted: 0 }
    }

    /// Continues after the frame at `hit`.
    pub fn advance(&mut self, hit: Hit, judgement: Judgement, layout: CaduLayout) {
        self.polarity = hit.polarity;
        self.due = hit.position + layout.cadu_bits();
        // A frame that is not certainly good may hide the start of the next one.
        self.unclaimed = match judgement {
            Judgement::Good => self.due,
            Judgement::Bad | Judgement::Unknown => hit.position + layout.marker_bits(),
        };
    }

    /// The marker that is due, in the polarity of the one before or, with fewer wrong bits, in the
    /// other, unless error control then says that only the marker is inverted.
    pub fn marker_when_due<J: Judge>(
        &self,
        cadus: &mut CaduBuffer,
        config: &SyncConfig,
        judge: &mut J,
    ) -> Option<Hit> {
        let hit = cadus.hit_at(self.due);
        // Position and polarity are both as predicted: most wrong bits are allowed.
        if hit.polarity == self.polarity {
            return (hit.errors <= config.lock_errors).then_some(hit);
        }
        // A change of polarity is rare, so that the marker has to be as clear as one that proves a
        // candidate.
        if hit.errors > config.check_errors {
            return None;
        }
        // Only error control tells an inverted marker from inverted bits.
        let same = cadus.coasting(self.due, self.polarity);
        let only_marker = cadus.is_bad(hit, judge) && cadus.is_good(same, judge);
        Some(if only_marker { same } else { hit })
    }

    /// The marker that is due, within the slip window, nearest first; never inside a frame that is
    /// certainly good.
    pub fn marker_after_slip(&self, cadus: &CaduBuffer, config: &SyncConfig) -> Option<Hit> {
        let slips = (1..=i64::from(config.slip_bits)).flat_map(|slip| [slip, -slip]);
        slips.filter_map(|slip| Some((slip, self.due.checked_add_signed(slip)?))).find_map(
            |(slip, position)| {
                if position < self.unclaimed || !cadus.holds(position) {
                    return None;
                }
                let hit = cadus.hit_at(position);
                let slip = i8::try_from(slip).ok()?;
                // The position is not as predicted: the marker has to be as clear as one that
                // proves a candidate.
                (hit.errors <= config.check_errors).then_some(Hit { slip, ..hit })
            },
        )
    }
}
