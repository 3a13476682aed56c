//! The buffer of an input that is not identified yet: bytes and their reception times.

use skyhaul_units::Utc;
use std::collections::VecDeque;

/// The newest bytes of an input.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub bytes: Vec<u8>,
    /// Position of the first byte held, in bytes.
    pub start: u64,
    /// Ends of the pushes in held bytes, and their times.
    arrivals: VecDeque<(usize, Utc)>,
    /// Bytes held that the last attempt to identify the input used.
    pub tried: usize,
}

/// Most pushes whose times are kept separately.
const MAX_ARRIVALS: usize = 4_096;

impl Held {
    /// An empty buffer; the next byte of the input is number `start`.
    pub fn starting_at(start: u64) -> Self {
        Self { start, ..Self::default() }
    }

    /// The byte of the input after the last one held.
    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    pub fn push(&mut self, received: Utc, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let end = self.bytes.len();
        let is_full = self.arrivals.len() >= MAX_ARRIVALS;
        match self.arrivals.back_mut() {
            Some(last) if last.1 == received || is_full => *last = (end, received),
            _ => self.arrivals.push_back((end, received)),
        }
    }

    /// Appends the next bytes of the input, and drops everything before byte `needed`.
    pub fn push_from(&mut self, needed: u64, received: Utc, bytes: &[u8]) {
        let end = self.end();
        if needed <= end {
            self.drop_before(needed);
            return self.push(received, bytes);
        }
        let passed = usize::try_from(needed - end).unwrap_or(usize::MAX).min(bytes.len());
        self.bytes.clear();
        self.arrivals.clear();
        self.tried = 0;
        self.start = end + passed as u64;
        self.push(received, &bytes[passed..]);
    }

    /// Drops the bytes before byte `needed` of the input.
    pub fn drop_before(&mut self, needed: u64) {
        let dropped = needed.saturating_sub(self.start).min(self.bytes.len() as u64);
        if dropped > 0 {
            self.drop_first(usize::try_from(dropped).expect("no more than is held"));
            self.tried = 0;
        }
    }

    /// Drops the first `dropped` bytes held.
    pub fn drop_first(&mut self, dropped: usize) {
        self.bytes.drain(..dropped);
        self.start += dropped as u64;
        self.tried = self.tried.saturating_sub(dropped);
        self.arrivals.retain(|(end, _)| *end > dropped);
        for (end, _) in &mut self.arrivals {
            *end -= dropped;
        }
    }

    /// The bytes held, in the pieces in which they were pushed.
    pub fn pushes(&self) -> impl Iterator<Item = (Utc, &[u8])> {
        let mut from = 0;
        self.arrivals.iter().map(move |(end, received)| {
            let bytes = &self.bytes[from..*end];
            from = *end;
            (*received, bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_passed_over_is_not_held_and_times_stay_with_their_bytes() {
        let at = Utc::from_micros;
        let mut held = Held::starting_at(100);
        held.push_from(0, at(1), &[1, 2, 3]);
        held.push_from(102, at(2), &[4, 5]);
        assert_eq!(held.pushes().collect::<Vec<_>>(), [(at(1), &[3][..]), (at(2), &[4, 5])]);
        held.push_from(107, at(3), &[6, 7, 8, 9]);
        assert_eq!(held.pushes().collect::<Vec<_>>(), [(at(3), &[8, 9][..])]);
        assert_eq!((held.start, held.end()), (107, 109));
        held.push_from(200, at(4), &[10]);
        assert_eq!((held.start, held.end(), held.bytes.len()), (110, 110, 0));
        held.push(at(5), &[11]);
        held.drop_before(111);
        assert_eq!(held.end(), 111);
    }
}
