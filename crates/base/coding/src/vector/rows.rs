//! Stretches of one length in a slice, one a lane, read piece by piece.

#![allow(
    unsafe_code,
    reason = "the bounds of all pieces of a row are checked once, when the rows are named"
)]

use super::{MAX_LANES, PIECE};

/// As many stretches of a slice as a register has lanes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows<'a> {
    bytes: &'a [u8],
    starts: &'a [usize; MAX_LANES],
    len: usize,
}

impl<'a> Rows<'a> {
    /// Stretches of `len` bytes each.
    ///
    /// # Panics
    /// Where one reaches beyond the bytes.
    pub(crate) fn new(bytes: &'a [u8], starts: &'a [usize; MAX_LANES], len: usize) -> Self {
        let last = bytes.len().checked_sub(len).expect("a row is not longer than all bytes");
        assert!(starts.iter().all(|start| *start <= last), "every row lies within the bytes");
        Self { bytes, starts, len }
    }

    /// The bytes of a row.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// 16 bytes of a row.
    ///
    /// # Panics
    /// Where the row ends before them, or there is no such row.
    #[inline(always)]
    pub(crate) fn piece(&self, row: usize, at: usize) -> &'a [u8; PIECE] {
        assert!(at <= self.len && PIECE <= self.len - at, "a piece lies within its row");
        // SAFETY: the row ends within the bytes, as was asserted when it was made, and the piece
        // within the row.
        unsafe { &*self.bytes.as_ptr().add(self.starts[row] + at).cast() }
    }
}
