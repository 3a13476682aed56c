//! Where a marker was met, or should have been.

use super::*;

impl<T> Synchroniser<T> {
    /// The marker that is due, in the polarity of the one before or, with fewer wrong bits, in the
    /// other, unless error control then says that only the marker is inverted.
    pub(super) fn hit_when_due<J: Judge<Opinion = T>>(&mut self, judge: &mut J) -> Option<Hit> {
        let hit = self.hit_at(self.due);
        // Position and polarity are both as predicted: most wrong bits are allowed.
        if hit.inverted == self.inverted {
            return (hit.errors <= self.config.lock_errors).then_some(hit);
        }
        // A change of polarity is rare, so that the marker has to be as clear as one that proves a
        // candidate.
        if hit.errors > self.config.check_errors {
            return None;
        }
        // Only error control tells an inverted marker from inverted bits.
        let same = self.coasting(self.due);
        let only_marker = self.judgement(hit, judge) == Judgement::Bad
            && self.judgement(same, judge) == Judgement::Good;
        Some(if only_marker { same } else { hit })
    }

    /// The marker that is due, within the slip window, nearest first; never inside a frame that is
    /// surely good.
    pub(super) fn hit_after_slip(&self) -> Option<Hit> {
        let slips = (1..=i64::from(self.config.slip_bits)).flat_map(|slip| [slip, -slip]);
        slips.filter_map(|slip| Some((slip, self.due.checked_add_signed(slip)?))).find_map(
            |(slip, position)| {
                if position < self.unclaimed || !self.holds_block(position) {
                    return None;
                }
                let hit = self.hit_at(position);
                let slip = i8::try_from(slip).ok()?;
                (hit.errors <= self.config.check_errors).then_some(Hit { slip, ..hit })
            },
        )
    }

    /// The marker at `position` in the polarity that fits better.
    pub(super) fn hit_at(&self, position: u64) -> Hit {
        self.hit_of(self.marker_at(self.bits.view(), position), position)
    }

    /// The bits where a marker may be, as many as it has.
    pub(super) fn marker_at(&self, bits: BitView<'_>, position: u64) -> u64 {
        match self.marker {
            Marker::Bits32(_) => u64::from(bits.word(position)),
            Marker::Bits64(_) => {
                u64::from(bits.word(position)) << 32 | u64::from(bits.word(position + 32))
            }
        }
    }

    pub(super) const fn wrong_bits(&self, word: u64) -> u8 {
        let marker = match self.marker {
            Marker::Bits32(marker) => marker as u64,
            Marker::Bits64(marker) => marker,
        };
        (word ^ marker).count_ones() as u8
    }

    pub(super) const fn hit_of(&self, word: u64, position: u64) -> Hit {
        let (wrong, bits) = (self.wrong_bits(word), self.marker_bits() as u8);
        let inverted = wrong > bits / 2;
        Hit {
            position,
            errors: if inverted { bits - wrong } else { wrong },
            inverted,
            slip: 0,
            flywheel: false,
        }
    }

    /// A frame at `position` without regard to its marker, in the polarity of the one before.
    pub(super) fn coasting(&self, position: u64) -> Hit {
        let wrong = self.wrong_bits(self.marker_at(self.bits.view(), position));
        let errors = if self.inverted { self.marker_bits() as u8 - wrong } else { wrong };
        Hit { position, errors, inverted: self.inverted, slip: 0, flywheel: true }
    }
}
