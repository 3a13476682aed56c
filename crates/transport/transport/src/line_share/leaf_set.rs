//! A set of leaves of a class tree.

use crate::classes::{ClassId, MAX_LEAVES};

/// A bit for each leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LeafSet([u64; MAX_LEAVES / 64]);

impl LeafSet {
    pub(super) fn insert(&mut self, leaf: ClassId) {
        self.0[usize::from(leaf.0 / 64)] |= 1 << (leaf.0 % 64);
    }

    pub(super) fn contains(&self, leaf: ClassId) -> bool {
        self.0[usize::from(leaf.0 / 64)] & (1 << (leaf.0 % 64)) != 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Whether every leaf of `other` is in this set.
    pub(super) fn has_all_of(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).all(|(mine, other)| other & !mine == 0)
    }

    /// The leaves of both.
    #[must_use]
    pub(super) fn with(mut self, other: &Self) -> Self {
        for (mine, other) in self.0.iter_mut().zip(other.0) {
            *mine |= other;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_any_leaf() {
        let mut set = LeafSet::default();
        assert!(set.is_empty());
        for leaf in [0, 63, 64, 255] {
            let mut one = LeafSet::default();
            one.insert(ClassId(leaf));
            assert!(!set.has_all_of(&one) && !set.contains(ClassId(leaf)));
            set = set.with(&one);
            assert!(set.has_all_of(&one) && set.contains(ClassId(leaf)));
        }
        assert!(!set.contains(ClassId(1)) && !set.is_empty());
    }
}
