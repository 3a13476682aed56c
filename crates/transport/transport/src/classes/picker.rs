//! Who decides which class goes next: the tree of a session that has the line to itself, or the
//! line that several sessions share.

use super::{ClassId, ClassTree};
use crate::path::PathId;
use skyhaul_units::{ByteCount, Instant};

/// Chooses the leaf for the next symbol of a path, and is told what it cost.
pub trait ClassPicker {
    /// The leaf to send from on `path` at `now`, among those for which `has` is true; `None` when
    /// nothing of this session goes now.
    fn pick(
        &mut self,
        now: Instant,
        path: PathId,
        has: impl FnMut(ClassId) -> bool,
    ) -> Option<ClassId>;

    /// A symbol of `bytes` was sent from `leaf` at `now`.
    fn charge(&mut self, now: Instant, leaf: ClassId, bytes: ByteCount);
}

impl ClassPicker for ClassTree {
    fn pick(
        &mut self,
        now: Instant,
        _path: PathId,
        has: impl FnMut(ClassId) -> bool,
    ) -> Option<ClassId> {
        Self::pick(self, now, has)
    }

    fn charge(&mut self, now: Instant, leaf: ClassId, bytes: ByteCount) {
        Self::charge(self, now, leaf, bytes);
    }
}
