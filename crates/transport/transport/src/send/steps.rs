//! When what was lost went out again, by its place in the flow: as it arrives, what waits behind it
//! is delivered.

use skyhaul_units::{Instant, Seq};
use std::collections::VecDeque;

/// For each place the newest time at which something before it went out again. What went later and
/// stands earlier makes the rest needless, so that places and times both rise.
#[derive(Debug, Default)]
pub struct Steps(VecDeque<(Seq, Instant)>);

/// Paths tell of losses a little out of order: so many times are kept of a flow. Of more the oldest
/// is forgotten, as if nothing had gone out again.
const STEPS_MAX: usize = 4;

impl Steps {
    /// When something before `place` last went out again.
    pub fn before(&self, place: Seq) -> Option<Instant> {
        self.0.iter().rev().find(|(step, _)| *step < place).map(|(_, at)| *at)
    }

    /// Something of the block at `place` goes out again, not before all others so far.
    pub fn add(&mut self, place: Seq, now: Instant) {
        while self.0.pop_back_if(|(step, _)| *step >= place).is_some() {}
        if self.0.len() == STEPS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((place, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use skyhaul_units::Duration;

    proptest! {
        /// Against all that went out again so far: the newest before a place, or nothing where that
        /// is long since.
        #[test]
        fn the_newest_before_a_place_is_known_or_forgotten(places in proptest::collection::vec(0u64..12, 1..60)) {
            let (mut steps, mut all) = (Steps::default(), Vec::new());
            for (time, place) in (0..).zip(places) {
                let now = Instant::ZERO + Duration::from_millis(time);
                let known = steps.before(Seq(place));
                let newest = all.iter().filter(|(step, _)| *step < place).map(|(_, at)| *at).max();
                prop_assert!(known.is_none() || known == newest);
                // Few went out again since, out of their order: nothing was forgotten.
                if all.iter().filter(|(step, at)| newest < Some(*at) && *step >=
                    place).count() < STEPS_MAX {
                    prop_assert_eq!(known, newest);
                }
                steps.add(Seq(place), now);
                all.push((place, now));
                prop_assert!(steps.0.len() <= STEPS_MAX);
            }
        }
    }
}
