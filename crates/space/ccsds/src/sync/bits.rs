//! The buffer of bits that are not consumed yet, with their reception times.

use skyhaul_coding::align::{self, Polarity};
use skyhaul_coding::marker::Finder;
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
/// Used bytes are dropped in pieces of at least this, so that the rest is seldom moved.
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
        self.arrivals
            .get(index)
            .or(self.arrivals.back())
            .map_or(Utc::default(), |(_, received)| *received)
    }
    /// What is held.
    pub fn view(&self) -> BitView<'_> {
        BitView { bytes: &self.bytes, start: self.start }
    }
    /// Copies `len` bytes from bit `position` on into `out`; they are in the buffer.
    pub fn copy(&self, position: u64, len: usize, polarity: Polarity, out: &mut Vec<u8>) {
        self.view().copy(position, len, polarity, out);
    }
    /// Continues after bits that were processed elsewhere: holds the bits of `view`, received at
    /// `received`, from `position` on.
    pub fn go_on(&mut self, view: BitView<'_>, received: Utc, position: u64) {
        let (byte, _) = view.place(position);
        self.bytes.clear();
        self.bytes.extend_from_slice(&view.bytes[byte..]);
        self.start = position / 8 * 8;
        self.arrivals.clear();
        self.arrivals.push_back((self.end(), received));
    }
    /// The first position from `from` on, before `to`, that has the marker or its inverse; all bits
    /// up to `to` + 31 are in the buffer.
    pub fn find(&self, finder: &Finder, from: u64, to: u64) -> Option<u64> {
        if from >= to {
            return None;
        }
        let place = |position: u64| (position - self.start) as usize;
        let hit = finder.find(&self.bytes, place(from)..place(to))?;
        Some(self.start + hit.position as u64)
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
}

/// Bytes of the input, addressed by bits since its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct BitView<'a> {
    pub bytes: &'a [u8],
    /// Bit address of the first byte; a multiple of 8.
    pub start: u64,
}

impl<'a> BitView<'a> {
    /// The 32 bits from `position` on; they are in view.
    pub fn word(self, position: u64) -> u32 {
        let (byte, shift) = self.place(position);
        let window = match self.bytes[byte..].first_chunk::<8>() {
            Some(whole) => u64::from_be_bytes(*whole),
            None => {
                let mut rest = [0; 8];
                rest[..self.bytes.len() - byte].copy_from_slice(&self.bytes[byte..]);
                u64::from_be_bytes(rest)
            }
        };
        (window << shift >> 32) as u32
    }
    /// Copies `len` bytes from bit `position` on into `out`; they are in view.
    pub fn copy(self, position: u64, len: usize, polarity: Polarity, out: &mut Vec<u8>) {
        let (byte, shift) = self.place(position);
        out.resize(len, 0);
        align::copy(&self.bytes[byte..], shift as usize, polarity, out);
    }
    /// The `len` bytes from bit `position` on, in place or, if they must be shifted or inverted, in
    /// `room`; they are in view.
    pub fn stretch(
        self,
        position: u64,
        len: usize,
        polarity: Polarity,
        room: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let (byte, shift) = self.place(position);
        if shift == 0 && polarity == Polarity::Upright {
            return &self.bytes[byte..byte + len];
        }
        self.copy(position, len, polarity, room);
        room
    }

    fn place(self, position: u64) -> (usize, u32) {
        let offset = position - self.start;
        ((offset / 8) as usize, (offset % 8) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use skyhaul_coding::marker::Marker;

    proptest! {
        #[test]
        fn words_copies_and_finds_agree_with_single_bits(
            bytes in proptest::collection::vec(any::<u8>(), 9..40),
            at in 0u64..8,
            inverted: bool,
        ) {
            let polarity = if inverted { Polarity::Inverted } else { Polarity::Upright };
            let mut buffer = BitBuffer::starting_at(17);
            buffer.push(Utc::default(), &bytes);
            let from = 16 + at;
            let bit = |position: u64| bytes[(position - 16) as usize / 8] >> (7 - position % 8) & 1;
            let word = (0..32).fold(0u32, |word, i| word << 1 | u32::from(bit(from + i)));
            prop_assert_eq!(buffer.view().word(from), word);
            let mut copy = Vec::new();
            buffer.copy(from, 4, polarity, &mut copy);
            let expected = if inverted { !word } else { word };
            let mut room = Vec::new();
            prop_assert_eq!(buffer.view().stretch(from, 4, polarity, &mut room), copy.as_slice());
            prop_assert_eq!(copy, expected.to_be_bytes());
            let last = buffer.end() - 32;
            let marker = buffer.view().word(last);
            let finder = Finder::new(Marker::Bits32(marker), 0);
            let found = buffer.find(&finder, from, last + 1).unwrap();
            prop_assert!(buffer.view().word(found) == marker || buffer.view().word(found) ==
                !marker);
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
