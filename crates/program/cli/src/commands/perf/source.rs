//! The source of the measured blocks: buffers that are reused after the far end has acknowledged
//! them.

use bytes::{Bytes, BytesMut};
use skyhaul_units::Utc;
use std::collections::VecDeque;

/// Makes blocks of one size. Their first bytes are the time at which they are handed over.
#[derive(Debug)]
pub struct BlockSource {
    size: usize,
    ring: VecDeque<Bytes>,
    limit: usize,
}

/// Bytes of the stamp at a block's start.
pub const STAMP: usize = 8;

impl BlockSource {
    /// Blocks of `size` bytes, at least [`STAMP`]; `limit` of them are kept for use again.
    pub fn new(size: usize, limit: usize) -> Self {
        Self { size: size.max(STAMP), ring: VecDeque::new(), limit }
    }

    /// A block of at most `most` bytes, stamped with `utc`.
    pub fn block(&mut self, utc: Utc, most: usize) -> Bytes {
        // Only whole blocks come from the ring: the last one may be shorter.
        let size = self.size.min(most).max(STAMP);
        let mut buffer =
            self.unused().filter(|buffer| buffer.len() == size).unwrap_or_else(|| filled(size));
        buffer[..STAMP].copy_from_slice(&utc.as_nanos().to_be_bytes());
        let block = buffer.freeze();
        if self.ring.len() < self.limit {
            self.ring.push_back(block.clone());
        }
        block
    }

    /// The oldest buffer, if it is not in use any more.
    fn unused(&mut self) -> Option<BytesMut> {
        match self.ring.pop_front()?.try_into_mut() {
            Ok(buffer) => Some(buffer),
            Err(held) => {
                self.ring.push_front(held);
                None
            }
        }
    }
}

/// When a block was handed over, by its sender's clock.
pub fn stamp(block: &[u8]) -> Option<Utc> {
    let bytes = block.first_chunk::<STAMP>()?;
    Some(Utc::from_nanos(i64::from_be_bytes(*bytes)))
}

/// Not all zero, so that nothing on the way can make it smaller.
fn filled(size: usize) -> BytesMut {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut buffer = BytesMut::zeroed(size);
    for word in buffer.chunks_mut(8) {
        // Xorshift, as Marsaglia gives it for 64 bits.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
    }
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_reused_only_when_they_are_free() {
        let mut source = BlockSource::new(1_000, 4);
        let at = Utc::from_nanos;
        let first = source.block(at(1), 9_999);
        let second = source.block(at(2), 9_999);
        assert_ne!(first.as_ptr(), second.as_ptr());
        assert_eq!((stamp(&first), stamp(&second)), (Some(at(1)), Some(at(2))));
        let address = first.as_ptr();
        drop(first);
        let third = source.block(at(3), 9_999);
        assert_eq!((third.as_ptr(), stamp(&third), third.len()), (address, Some(at(3)), 1_000));
    }

    #[test]
    fn the_last_block_may_be_short_but_holds_its_stamp() {
        let mut source = BlockSource::new(1_000, 4);
        assert_eq!(source.block(Utc::from_nanos(5), 300).len(), 300);
        assert_eq!(source.block(Utc::from_nanos(5), 3).len(), STAMP);
        assert_eq!(stamp(&[0; 3]), None);
    }
}
