//! Packs several small files in one block.

use super::{BLOCK_MAX, ITEMS_MAX, OfferId};
use crate::hash::Hash;
use bytes::Bytes;

/// The first byte of a [`super::Message::Small`].
pub(super) const KIND_SMALL: u8 = 6;
/// What a file takes there besides its bytes.
const HEAD: usize = 4 + 32 + 4;

/// A [`super::Message::Small`] that is being filled: never more than the far end takes, neither
/// bytes nor files.
#[derive(Debug, Default)]
pub struct Pack {
    block: Vec<u8>,
    files: usize,
}

impl Pack {
    /// Whether nothing is in it.
    pub const fn is_empty(&self) -> bool {
        self.files == 0
    }

    /// Whether a file of `size` bytes fits in beside what is there.
    pub const fn has_room(&self, size: usize) -> bool {
        let begun = if self.is_empty() { 1 } else { self.block.len() };
        self.files < ITEMS_MAX && begun + HEAD + size <= BLOCK_MAX
    }

    /// Puts in a file for which there is room.
    pub fn put(&mut self, id: OfferId, hash: &Hash, bytes: &[u8]) {
        if self.is_empty() {
            self.block.push(KIND_SMALL);
        }
        put(&mut self.block, id, hash, bytes);
        self.files += 1;
    }

    /// The block, where there is anything in it; after that it is empty.
    pub fn take(&mut self) -> Option<Bytes> {
        let Self { block, files } = core::mem::take(self);
        (files > 0).then(|| block.into())
    }
}

pub(super) fn put(out: &mut Vec<u8>, id: OfferId, hash: &Hash, bytes: &[u8]) {
    out.extend(id.to_be_bytes());
    out.extend(hash.as_bytes());
    out.extend((bytes.len() as u32).to_be_bytes());
    out.extend(bytes);
}
