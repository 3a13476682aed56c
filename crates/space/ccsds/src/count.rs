//! Counters that wrap, in one place: frame counts of a virtual channel, sequence counts of an
//! application.

/// How many values a counter has before it starts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modulus(u64);

impl Modulus {
    /// TM virtual channel frame count: 8 bits (CCSDS 132.0-B-3 4.1.2.5).
    pub const TM_FRAME: Self = Self(1 << 8);
    /// AOS virtual channel frame count: 24 bits (CCSDS 732.0-B 4.1.2.4).
    pub const AOS_FRAME: Self = Self(1 << 24);
    /// AOS frame count with its cycle: 28 bits (CCSDS 732.0-B 4.1.2.5.4).
    pub const AOS_FRAME_CYCLE: Self = Self(1 << 28);
    /// A counter with one value, so that every count is the next: USLP frames without a virtual
    /// channel frame count.
    pub const NONE: Self = Self(1);
    /// Packet sequence count: 14 bits (CCSDS 133.0-B-2 4.1.3.4.3).
    pub const PACKET: Self = Self(1 << 14);

    /// USLP virtual channel frame count of so many octets, 0 to 7: none, or 8 bits each (CCSDS
    /// 732.1-B-3 4.1.2.10).
    pub const fn of_octets(octets: u8) -> Self {
        Self(1 << (8 * (octets & 7)))
    }
    /// How many values the counter has.
    pub const fn values(self) -> u64 {
        self.0
    }
    /// A counter with this many values; `None` if no counter has them.
    pub const fn of_values(values: u64) -> Option<Self> {
        if values.is_power_of_two() && values <= 1 << 56 { Some(Self(values)) } else { None }
    }
    /// How `next` follows `last`. A step of more than half the range counts as a repeat or a reset,
    /// because such a long gap is less likely. Short counts are ambiguous, see
    /// [`crate::continuity`].
    pub const fn step(self, last: u64, next: u64) -> CountStep {
        let ahead = self.between(last, next);
        if ahead == 0 {
            CountStep::Next
        } else if ahead == self.0 - 1 {
            CountStep::Same
        } else if ahead > self.0 / 2 {
            CountStep::Back
        } else {
            CountStep::Gap { missing: ahead }
        }
    }
    /// The number of counts between `last` and `next`, both excluded, if the counter advanced.
    pub const fn between(self, last: u64, next: u64) -> u64 {
        next.wrapping_sub(last).wrapping_sub(1) & (self.0 - 1)
    }
    /// The value after `count`.
    pub const fn after(self, count: u64) -> u64 {
        count.wrapping_add(1) & (self.0 - 1)
    }
    /// `count` moved on by `steps`.
    pub const fn advance(self, count: u64, steps: u64) -> u64 {
        count.wrapping_add(steps) & (self.0 - 1)
    }
}

/// How a count follows the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountStep {
    /// In sequence.
    Next,
    /// The same count again.
    Same,
    /// Some counts were skipped.
    Gap {
        /// How many did not come.
        missing: u64,
    },
    /// A count from before: a replay or a reset.
    Back,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_counter_of_no_octets_has_no_gaps_and_no_repeats() {
        assert_eq!(Modulus::of_octets(0), Modulus::NONE);
        assert_eq!(Modulus::NONE.step(0, 0), CountStep::Next);
        assert_eq!(Modulus::of_octets(7).step((1 << 56) - 1, 0), CountStep::Next);
        assert_eq!(Modulus::of_octets(1), Modulus::TM_FRAME);
    }

    #[test]
    fn counters_wrap() {
        assert_eq!(Modulus::TM_FRAME.step(255, 0), CountStep::Next);
        assert_eq!(Modulus::AOS_FRAME.step(0xFF_FFFF, 0), CountStep::Next);
        assert_eq!(Modulus::AOS_FRAME.step(0xFF_FFFE, 0), CountStep::Gap { missing: 1 });
        assert_eq!(Modulus::AOS_FRAME_CYCLE.step(0xFF_FFFF, 0x100_0000), CountStep::Next);
        assert_eq!(Modulus::PACKET.step(7, 7), CountStep::Same);
        assert_eq!(Modulus::PACKET.step(7, 6), CountStep::Back);
        assert_eq!(Modulus::PACKET.step(0, 0x2001), CountStep::Gap { missing: 0x2000 });
        assert_eq!(Modulus::PACKET.step(0, 0x2002), CountStep::Back);
    }

    proptest! {
        #[test]
        fn a_gap_says_how_far_the_count_went(start in 0u64..1 << 14, missing in 1u64..=1 << 13) {
            let next = Modulus::PACKET.advance(start, missing + 1);
            prop_assert_eq!(Modulus::PACKET.step(start, next), CountStep::Gap { missing });
        }
    }
}
