//! Which packets are open: a bit for each, and when each was sent.

use super::receiver::Span;
use skyhaul_units::Instant;
use std::collections::VecDeque;

/// Packets numbered one after another, each open until it is taken out. An acknowledgement names
/// hundreds of packets of which ten are news, so whole words of bits are looked at. Bounded by what
/// a sender has under way.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    /// Number of the first bit; a multiple of 64.
    base: u64,
    next: u64,
    words: VecDeque<u64>,
    sent: VecDeque<Instant>,
}

impl Outstanding {
    /// Number of the packet that is sent next.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Nothing below this is open.
    pub(super) const fn base(&self) -> u64 {
        self.base
    }

    /// Opens the next packet; returns its number.
    pub(super) fn open(&mut self, now: Instant) -> u64 {
        let number = self.next;
        self.next += 1;
        if number.is_multiple_of(64) {
            self.words.push_back(0);
        }
        self.sent.push_back(now);
        if let Some(word) = self.words.back_mut() {
            *word |= 1 << (number % 64);
        }
        number
    }

    /// When an open packet was sent.
    pub(super) fn sent_at(&self, number: u64) -> Option<Instant> {
        let at = usize::try_from(number.checked_sub(self.base)?).ok()?;
        let is_open = self.words.get(at / 64)? >> (number % 64) & 1 == 1;
        is_open.then(|| self.sent.get(at).copied()).flatten()
    }

    /// The oldest open packet.
    pub(super) fn oldest(&self) -> Option<(u64, Instant)> {
        let word = self.words.iter().position(|word| *word != 0)?;
        let number = self.base + word as u64 * 64 + u64::from(self.words[word].trailing_zeros());
        Some((number, *self.sent.get(usize::try_from(number - self.base).ok()?)?))
    }

    /// Takes out the open packets of `span`, in order.
    pub(super) fn take(&mut self, span: Span, mut taken: impl FnMut(u64)) {
        let (first, last) = (span.first.max(self.base), span.last.min(self.next.saturating_sub(1)));
        if first > last || self.words.is_empty() {
            return;
        }
        for index in (first - self.base) / 64..=(last - self.base) / 64 {
            let start = self.base + index * 64;
            let from = !0u64 << first.saturating_sub(start);
            let to = !0u64 >> (start + 63).saturating_sub(last);
            let Some(word) = usize::try_from(index).ok().and_then(|at| self.words.get_mut(at))
            else {
                return;
            };
            let mut open = *word & from & to;
            *word &= !(from & to);
            while open != 0 {
                taken(start + u64::from(open.trailing_zeros()));
                open &= open - 1;
            }
        }
        self.forget_closed();
    }

    /// Where nothing is open below, nothing needs to be kept.
    fn forget_closed(&mut self) {
        while self.words.front() == Some(&0) && self.base + 64 <= self.next {
            self.words.pop_front();
            self.sent.drain(..64);
            self.base += 64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set_of_numbers(
            operations in proptest::collection::vec((0u64..200, 0u64..150, 0u64..3), 1..100),
        ) {
            let mut outstanding = Outstanding::default();
            let mut model = BTreeSet::new();
            for (opened, back, length) in operations {
                for _ in 0..opened {
                    let number = outstanding.next();
                    outstanding.open(Instant::from_nanos(number));
                    model.insert(number);
                }
                let last = outstanding.next().saturating_sub(back);
                let span = Span { first: last.saturating_sub(length * 70), last };
                let mut taken = Vec::new();
                outstanding.take(span, |number| taken.push(number));
                let expected: Vec<u64> = model.range(span.first..=span.last).copied().collect();
                model.retain(|number| !(span.first..=span.last).contains(number));
                prop_assert_eq!(taken, expected);
                let oldest = model.first().map(|number| (*number, Instant::from_nanos(*number)));
                prop_assert_eq!(outstanding.oldest(), oldest);
                prop_assert_eq!(outstanding.sent_at(span.first), None);
            }
        }
    }
}
