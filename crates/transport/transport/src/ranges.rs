//! Sets of byte ranges within a block.

/// Ascending, disjoint, non-adjacent half-open ranges. A block sees a handful at a time; the worst
/// case is one for every second symbol, 6,000 for the largest block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeSet(Vec<(u32, u32)>);

impl RangeSet {
    /// Adds `start..end`; returns how many bytes of it are new.
    pub fn insert(&mut self, start: u32, end: u32) -> u32 {
        if start >= end {
            return 0;
        }
        let first = self.0.partition_point(|range| range.1 < start);
        let mut last = first;
        let (mut low, mut high, mut known) = (start, end, 0);
        while let Some(&(a, b)) = self.0.get(last)
            && a <= end
        {
            known += b.min(end).saturating_sub(a.max(start));
            low = low.min(a);
            high = high.max(b);
            last += 1;
        }
        self.0.splice(first..last, [(low, high)]);
        (end - start) - known
    }

    /// Takes `start..end` out.
    pub fn remove(&mut self, start: u32, end: u32) {
        if start >= end {
            return;
        }
        let mut kept = Vec::with_capacity(self.0.len() + 1);
        for &(a, b) in &self.0 {
            if a < start {
                kept.push((a, b.min(start)));
            }
            if b > end {
                kept.push((a.max(end), b));
            }
        }
        kept.retain(|range| range.0 < range.1);
        self.0 = kept;
    }

    /// Whether all of `start..end` is in.
    pub fn contains(&self, start: u32, end: u32) -> bool {
        let at = self.0.partition_point(|range| range.1 <= start);
        start >= end || self.0.get(at).is_some_and(|range| range.0 <= start && end <= range.1)
    }

    /// What lacks from `0..len`, ascending.
    pub fn missing(&self, len: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let starts = core::iter::once(0).chain(self.0.iter().map(|range| range.1));
        let ends = self.0.iter().map(|range| range.0).chain(core::iter::once(len));
        starts.zip(ends).map(move |(a, b)| (a, b.min(len))).filter(|(a, b)| a < b)
    }

    /// The first range.
    pub fn first(&self) -> Option<(u32, u32)> {
        self.0.first().copied()
    }

    /// How much is in.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|range| u64::from(range.1 - range.0)).sum()
    }

    /// The end of the last range.
    pub fn end(&self) -> u32 {
        self.0.last().map_or(0, |range| range.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_set_of_bytes(
            steps in proptest::collection::vec((any::<bool>(), 0u32..60, 0u32..20), 0..40)
        ) {
            let mut set = RangeSet::default();
            let mut model = std::collections::BTreeSet::new();
            for (add, start, len) in steps {
                let span = start..start + len;
                if add {
                    let new = span.clone().filter(|byte| model.insert(*byte)).count();
                    prop_assert_eq!(set.insert(span.start, span.end) as usize, new);
                } else {
                    span.clone().for_each(|byte| { model.remove(&byte); });
                    set.remove(span.start, span.end);
                }
                prop_assert!(set.0.windows(2).all(|pair| pair[0].1 < pair[1].0));
                let missing: Vec<u32> = set.missing(80).flat_map(|(a, b)| a..b).collect();
                let expected: Vec<u32> = (0..80).filter(|byte| !model.contains(byte)).collect();
                prop_assert_eq!(missing, expected);
                prop_assert_eq!(set.contains(10, 20), (10..20).all(|byte| model.contains(&byte)));
                prop_assert_eq!(set.end(), model.last().map_or(0, |byte| byte + 1));
            }
        }
    }
}
