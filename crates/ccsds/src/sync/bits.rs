//! The bits not yet dealt with, and when they came.

use skyhaul_units::Utc;
use std::collections::VecDeque;

/// A window on the input, addressed by bits since the input's start.
#[derive(Debug, Default)]
pub(super) struct BitBuffer {
    bytes: Vec<u8>,
    /// Bit address of the first byte; a multiple of 8.
    start: u64,
    /// Bit address after the last bit of a push, and when that push came.
    arrivals: VecDeque<(u64, Utc)>,
}

/// Most pushes told apart by time. Pushes of single bytes are merged beyond it.
const MAX_ARRIVALS: usize = 4_096;
/// Bytes dealt with are dropped in pieces of at least this, so that the rest is seldom moved.
const TRIM_BYTES: usize = 64 * 1024;

impl BitBuffer {
    /// Begins at the byte that holds bit `position`.
    pub fn starting_at(position: u64) -> Self {
        Self { start: position / 8 * 8, ..Self::default() }
    }
    pub fn push(&mut self, received: Utc, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let end = self.end();
        match self.arrivals.back_mut() {
            Some(last) if last.1 == received => last.0 = end,
            _ => self.arrivals.push_back((end, received)),
        }
        if self.arrivals.len() > MAX_ARRIVALS {
            self.arrivals.pop_front();
        }
    }
    /// Bit address after the last bit.
    pub fn end(&self) -> u64 {
        self.start + 8 * self.bytes.len() as u64
    }
    /// When the bit before `position` came.
    pub fn received(&self, position: u64) -> Utc {
        let index = self.arrivals.partition_point(|(end, _)| *end < position);
        self.arrivals.get(index).or(self.arrivals.back()).map_or(Utc::default(), |(_, received)| *received)
    }
    /// The 32 bits from `position` on; they are in the buffer.
    pub fn word(&self, position: u64) -> u32 {
        let (byte, shift) = self.place(position);
        let window =
            self.bytes[byte..].iter().take(5).fold(0u64, |window, byte| window << 8 | u64::from(*byte));
        let taken = self.bytes.len().saturating_sub(byte).min(5) as u32;
        (window << (8 * (5 - taken)) >> (8 - shift)) as u32
    }
    /// Copies `len` bytes from bit `position` on into `out`; they are in the buffer.
    pub fn copy(&self, position: u64, len: usize, inverted: bool, out: &mut Vec<u8>) {
        out.clear();
        self.append(position, len, inverted, out);
    }
    /// Appends `len` bytes from bit `position` on to `out`; they are in the buffer.
    pub fn append(&self, position: u64, len: usize, inverted: bool, out: &mut Vec<u8>) {
        let (byte, shift) = self.place(position);
        let flip = if inverted { 0xFF } else { 0 };
        if shift == 0 && !inverted {
            out.extend_from_slice(&self.bytes[byte..byte + len]);
        } else if shift == 0 {
            out.extend(self.bytes[byte..byte + len].iter().map(|byte| byte ^ flip));
        } else {
            let pairs = self.bytes[byte..=byte + len].windows(2);
            out.extend(pairs.map(|pair| (pair[0] << shift | pair[1] >> (8 - shift)) ^ flip));
        }
    }
    /// The first position from `from` on, before `to`, whose 32 bits differ from `marker` (or its inverse) in at most
    /// `errors` places; all bits up to `to` + 31 are in the buffer.
    pub fn find(&self, marker: u32, errors: u32, from: u64, to: u64) -> Option<u64> {
        if from >= to {
            return None;
        }
        let mut window = self.word(from);
        for position in from..to {
            let wrong = (window ^ marker).count_ones();
            if wrong <= errors || wrong >= 32 - errors {
                return Some(position);
            }
            if position + 1 < to {
                let (byte, shift) = self.place(position + 32);
                window = window << 1 | u32::from(self.bytes[byte] >> (7 - shift) & 1);
            }
        }
        None
    }
    /// Gives up the bits before `position`.
    pub fn trim(&mut self, position: u64) {
        let bytes = (position.min(self.end()).saturating_sub(self.start) / 8) as usize;
        if bytes >= TRIM_BYTES {
            self.bytes.drain(..bytes);
            self.start += 8 * bytes as u64;
            while self.arrivals.front().is_some_and(|(end, _)| *end < self.start) {
                self.arrivals.pop_front();
            }
        }
    }

    fn place(&self, position: u64) -> (usize, u32) {
        let offset = position - self.start;
        ((offset / 8) as usize, (offset % 8) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_copies_and_finds_agree_with_single_bits(bytes in proptest::collection::vec(any::<u8>(), 9..40), at in 0u64..8, inverted: bool) {
            let mut buffer = BitBuffer::starting_at(17);
            buffer.push(Utc::default(), &bytes);
            let from = 16 + at;
            let bit = |position: u64| bytes[(position - 16) as usize / 8] >> (7 - position % 8) & 1;
            let word = (0..32).fold(0u32, |word, i| word << 1 | u32::from(bit(from + i)));
            prop_assert_eq!(buffer.word(from), word);
            let mut copy = Vec::new();
            buffer.copy(from, 4, inverted, &mut copy);
            let expected = if inverted { !word } else { word };
            prop_assert_eq!(copy, expected.to_be_bytes());
            let last = buffer.end() - 32;
            let marker = buffer.word(last);
            let found = buffer.find(marker, 0, from, last + 1).unwrap();
            prop_assert!(buffer.word(found) == marker || buffer.word(found) == !marker);
        }
    }

    #[test]
    fn arrival_is_that_of_the_last_bit() {
        let mut buffer = BitBuffer::starting_at(0);
        buffer.push(Utc::from_nanos(10), &[0; 2]);
        buffer.push(Utc::from_nanos(20), &[0; 2]);
        assert_eq!(buffer.received(16), Utc::from_nanos(10));
        assert_eq!(buffer.received(17), Utc::from_nanos(20));
    }
}
