//! The largest value of the last few rounds or cycles.

use std::collections::VecDeque;

/// A windowed maximum over values numbered by round. At most one entry for each round of the
/// window.
#[derive(Debug, Clone)]
pub(crate) struct MaxFilter<T> {
    /// Length of the window in rounds, the present one included.
    length: u64,
    /// Falling values of rising rounds.
    entries: VecDeque<(u64, T)>,
}

impl<T: Copy + Ord> MaxFilter<T> {
    pub(crate) const fn over(length: u64) -> Self {
        Self { length, entries: VecDeque::new() }
    }

    /// Takes a value of `round`, which never falls.
    pub(crate) fn push(&mut self, round: u64, value: T) {
        while self.entries.back().is_some_and(|(_, last)| *last <= value) {
            self.entries.pop_back();
        }
        if self.entries.back().is_none_or(|(last, _)| *last < round) {
            self.entries.push_back((round, value));
        }
        while self.entries.front().is_some_and(|(first, _)| first + self.length <= round) {
            self.entries.pop_front();
        }
    }

    /// The largest value.
    pub(crate) fn max(&self) -> Option<T> {
        self.entries.front().map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_maximum_of_the_window(
            length in 1u64..12,
            values in proptest::collection::vec((0u64..3, 0u32..100), 1..100),
        ) {
            let mut filter = MaxFilter::over(length);
            let mut seen: Vec<(u64, u32)> = Vec::new();
            let mut round = 0;
            for (step, value) in values {
                round += step;
                filter.push(round, value);
                seen.push((round, value));
                let expected = seen.iter().filter(|(at, _)| at
                    + length > round).map(|(_, value)| *value).max();
                prop_assert_eq!(filter.max(), expected);
                prop_assert!(filter.entries.len() as u64 <= length);
            }
        }
    }
}
