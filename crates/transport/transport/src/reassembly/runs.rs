//! Blocks of a flow that are done beyond its first open one, as runs of sequence numbers, and which
//! of the runs are still to be reported.
//!
//! A report has room for some of the runs. Changed ones go first, each in a few reports; the rest
//! of the room rotates through all of them, so that the content of a lost report is repeated.

use std::collections::BTreeMap;

/// Disjoint, ascending runs.
#[derive(Debug, Default)]
pub struct Runs {
    /// End by start, half-open.
    runs: BTreeMap<u64, u64>,
    /// The starts of those that changed, and how many more reports will carry them.
    fresh: BTreeMap<u64, u8>,
    /// Where the rotation through all runs continues.
    turn: u64,
}

/// Unchanged runs in a report, at most.
const ROUND: usize = 16;

impl Runs {
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    pub fn contains(&self, place: u64) -> bool {
        self.end_of(place).is_some()
    }

    /// The end of the run that holds `place`, a sequence number.
    pub fn end_of(&self, place: u64) -> Option<u64> {
        self.runs.range(..=place).next_back().map(|(_, end)| *end).filter(|end| place < *end)
    }

    /// Adds a sequence number, which the next `tell` reports will carry.
    pub fn insert(&mut self, place: u64, tell: u8) {
        if self.contains(place) {
            return;
        }
        let mut run = (place, place + 1);
        let before = self.runs.range(..place).next_back().map(|(start, end)| (*start, *end));
        if let Some((start, _)) = before.filter(|(_, end)| *end == place) {
            run.0 = start;
        }
        if let Some(end) = self.runs.remove(&run.1) {
            self.fresh.remove(&run.1);
            run.1 = end;
        }
        self.runs.insert(run.0, run.1);
        self.fresh.insert(run.0, tell);
    }

    /// Drops the sequence numbers below `next`.
    pub fn pass(&mut self, next: u64) {
        while let Some((start, end)) =
            self.runs.first_key_value().map(|(start, end)| (*start, *end))
            && start < next
        {
            self.runs.remove(&start);
            let fresh = self.fresh.remove(&start);
            if end > next {
                self.runs.insert(next, end);
                self.fresh.extend(fresh.map(|tell| (next, tell)));
                return;
            }
        }
    }

    /// At most `most` runs for a report, ascending.
    pub fn list(&self, most: usize) -> Vec<(u64, u64)> {
        let fresh = self.fresh.keys().take(most).filter_map(|start| self.runs.get_key_value(start));
        let mut list: Vec<(u64, u64)> = fresh.map(|(start, end)| (*start, *end)).collect();
        let told = |(start, _): &(&u64, &u64)| !self.fresh.contains_key(start);
        let round = self
            .runs
            .range(self.turn..)
            .chain(self.runs.range(..self.turn))
            .take(ROUND)
            .filter(told);
        let room = most.min(ROUND).saturating_sub(list.len());
        list.extend(round.take(room).map(|(start, end)| (*start, *end)));
        list.sort_unstable();
        list
    }

    /// A report lists these.
    pub fn told(&mut self, list: &[(u64, u64)]) {
        for (start, _) in list {
            match self.fresh.get_mut(start) {
                Some(left) if *left > 1 => *left -= 1,
                _ => drop(self.fresh.remove(start)),
            }
        }
        let last =
            self.runs.range(self.turn..).chain(self.runs.range(..self.turn)).take(ROUND).last();
        self.turn = last.map_or(0, |(start, _)| start + 1);
    }

    /// Whether something has still to be told.
    pub fn has_news(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Reports in which all runs have had their turn.
    pub fn rounds(&self) -> u8 {
        u8::try_from(self.runs.len().div_ceil(ROUND).max(1)).unwrap_or(u8::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn places(list: &[(u64, u64)]) -> BTreeSet<u64> {
        list.iter().flat_map(|(start, end)| *start..*end).collect()
    }

    proptest! {
        #[test]
        fn runs_are_as_the_set_of_their_places_and_each_is_told_as_often_as_wanted(
            steps in proptest::collection::vec((0u64..400, any::<bool>()), 1..200),
                most in 1usize..20, tell in 1u8..4
        ) {
            let (mut runs, mut model, mut next) = (Runs::default(), BTreeSet::new(), 0);
            for (place, passes) in steps {
                if passes {
                    next = next.max(place / 4);
                    model.retain(|place| *place >= next);
                    runs.pass(next);
                } else if place >= next {
                    model.insert(place);
                    runs.insert(place, tell);
                }
                prop_assert!((0..400).all(|place| runs.contains(place) == model.contains(&place)));
            }
            let all: Vec<(u64, u64)> = runs.runs.iter().map(|(start, end)| (*start,
                *end)).collect();
            prop_assert_eq!(places(&all), model.clone());
            prop_assert!(all.is_sorted_by(|one, other| one.1 < other.0));
            let mut said = BTreeMap::new();
            let mut reports = 0;
            while runs.has_news() {
                let list = runs.list(most);
                prop_assert!(list.len() <= most && list.is_sorted_by(|one, other| one.1 < other.0));
                places(&list).into_iter().for_each(|place| *said.entry(place).or_insert(0) += 1);
                runs.told(&list);
                reports += 1;
            }
            prop_assert!(reports <= usize::from(tell) * all.len().div_ceil(most).max(1));
            prop_assert!(model.iter().all(|place| said.get(place).is_some_and(|times| *times >=
                tell)));
        }
    }

    #[test]
    fn what_was_told_has_its_turn_again() {
        let mut runs = Runs::default();
        (0..100).for_each(|run| runs.insert(1 + run * 2, 1));
        while runs.has_news() {
            let list = runs.list(128);
            runs.told(&list);
        }
        let mut said = BTreeSet::new();
        for _ in 0..runs.rounds() {
            let list = runs.list(128);
            assert!(list.len() <= ROUND);
            said.extend(places(&list));
            runs.told(&list);
        }
        assert_eq!(said.len(), 100);
    }
}
