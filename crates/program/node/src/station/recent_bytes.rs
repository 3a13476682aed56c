//! The newest bytes of a live input that the capture may still need: those behind the last frame of
//! the contact. Another process decodes them again.

use skyhaul_units::Utc;
use std::collections::VecDeque;

/// Prepared bytes, with the times at which they came.
#[derive(Debug)]
pub struct RecentBytes {
    bytes: VecDeque<u8>,
    /// The time of each read, and how many of its bytes are left.
    reads: VecDeque<(Utc, usize)>,
    /// The byte of the capture that the first one is.
    from: u64,
}

/// The most bytes: 60 ms at 1 Gbit/s, and a hundred of the largest frames as soft symbols. What is
/// before that, the capture has decoded, or given up.
const MOST: usize = 8 << 20;

impl RecentBytes {
    /// None yet, of a capture that begins with byte `from`.
    pub const fn new(from: u64) -> Self {
        Self { bytes: VecDeque::new(), reads: VecDeque::new(), from }
    }

    /// Takes what the capture takes.
    pub fn push(&mut self, received: Utc, bytes: &[u8]) {
        self.bytes.extend(bytes);
        self.reads.push_back((received, bytes.len()));
        if self.bytes.len() > MOST {
            self.forget_before(self.end() - MOST as u64);
        }
    }

    /// The byte behind the last one.
    fn end(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }

    /// Forgets what is before byte `from` of the capture.
    pub fn forget_before(&mut self, from: u64) {
        let gone = usize::try_from(from.saturating_sub(self.from)).unwrap_or(usize::MAX);
        let mut gone = gone.min(self.bytes.len());
        self.from += gone as u64;
        self.bytes.drain(..gone);
        while let Some((_, left)) = self.reads.front_mut() {
            if *left > gone {
                *left -= gone;
                break;
            }
            gone -= *left;
            self.reads.pop_front();
        }
    }

    /// Another capture begins with byte `from`: with some of these bytes, or behind them all.
    pub fn begin(&mut self, from: u64) {
        if from > self.end() {
            // Packets have more bytes than symbols: their places differ.
            *self = Self::new(from);
        } else {
            self.forget_before(from);
        }
    }

    /// The byte of the capture that the first one is.
    pub const fn from(&self) -> u64 {
        self.from
    }

    /// The bytes of each read.
    pub fn reads(&mut self) -> impl Iterator<Item = (Utc, &[u8])> {
        let (mut rest, reads) = (&*self.bytes.make_contiguous(), &self.reads);
        reads.iter().map(move |(received, length)| {
            let (bytes, after) = rest.split_at((*length).min(rest.len()));
            rest = after;
            (*received, bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(recent: &mut RecentBytes) -> Vec<(i64, String)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        recent.reads().map(|(at, bytes)| (at.as_nanos(), text(bytes))).collect()
    }

    #[test]
    fn bytes_are_kept_from_a_place_on_with_the_time_of_their_read() {
        let mut recent = RecentBytes::new(100);
        recent.push(Utc::from_nanos(1), b"abc");
        recent.push(Utc::from_nanos(2), b"");
        recent.push(Utc::from_nanos(3), b"defg");
        recent.forget_before(90);
        assert_eq!(kept(&mut recent).len(), 3);
        recent.forget_before(104);
        assert_eq!((recent.from(), kept(&mut recent)), (104, vec![(3, "efg".to_owned())]));
        recent.forget_before(200);
        assert_eq!((recent.from(), kept(&mut recent)), (107, Vec::new()));
    }

    #[test]
    fn a_capture_begins_with_bytes_of_the_one_before_or_behind_them() {
        let mut recent = RecentBytes::new(0);
        recent.push(Utc::from_nanos(1), b"abc");
        recent.begin(2);
        assert_eq!((recent.from(), kept(&mut recent)), (2, vec![(1, "c".to_owned())]));
        recent.begin(9);
        recent.push(Utc::from_nanos(2), b"x");
        assert_eq!((recent.from(), kept(&mut recent)), (9, vec![(2, "x".to_owned())]));
    }

    #[test]
    fn memory_is_bounded_and_the_newest_bytes_stay() {
        let mut recent = RecentBytes::new(0);
        for round in 0..=MOST / 1_000 {
            recent.push(Utc::from_nanos(round as i64), &[round as u8; 1_000]);
        }
        let total: usize = recent.reads().map(|(_, bytes)| bytes.len()).sum();
        assert_eq!(total, MOST);
        let last = recent.reads().last().map(|(at, _)| at.as_nanos());
        assert_eq!(last, Some((MOST / 1_000) as i64));
    }
}
