//! How often the missing symbols of a block were sent, and how many of these are under way.

use std::collections::BTreeMap;

/// Symbols sent more than once, by where they start in the block. Bounded by the symbols that were lost and have not
/// arrived.
#[derive(Debug, Default)]
pub struct Repeats(BTreeMap<u32, Attempts>);

#[derive(Debug)]
struct Attempts {
    sent: u8,
    /// Of these, sent or to be sent and not known to be lost.
    open: u8,
}

impl Repeats {
    /// How often the symbol at `start` was sent so far.
    pub fn so_far(&self, start: u32) -> u8 {
        self.0.get(&start).map_or(1, |attempts| attempts.sent)
    }

    /// It is sent again, so many times at once.
    pub fn sent(&mut self, start: u32, copies: u8) {
        let attempts = self.0.entry(start).or_insert(Attempts { sent: 1, open: 0 });
        attempts.sent = attempts.sent.saturating_add(copies);
        attempts.open = attempts.open.saturating_add(copies);
    }

    /// One transmission was lost; whether it was the last that was under way.
    pub fn lost(&mut self, start: u32) -> bool {
        let Some(attempts) = self.0.get_mut(&start) else { return true };
        attempts.open = attempts.open.saturating_sub(1);
        attempts.open == 0
    }

    /// What lies between has arrived.
    pub fn arrived(&mut self, start: u32, end: u32) {
        if !self.0.is_empty() {
            let done: Vec<u32> = self.0.range(start..end).map(|(start, _)| *start).collect();
            for start in done {
                self.0.remove(&start);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_loss_of_several_copies_asks_for_another() {
        let mut repeats = Repeats::default();
        assert!(repeats.lost(0));
        repeats.sent(0, 3);
        assert_eq!((repeats.so_far(0), repeats.so_far(1_400)), (4, 1));
        assert_eq!([repeats.lost(0), repeats.lost(0), repeats.lost(0)], [false, false, true]);
        repeats.sent(0, 1);
        assert_eq!(repeats.so_far(0), 5);
        repeats.arrived(0, 1_400);
        assert_eq!(repeats.so_far(0), 1);
    }

    #[test]
    fn a_loss_that_was_not_counted_never_keeps_a_symbol_back() {
        let mut repeats = Repeats::default();
        repeats.sent(7, 1);
        assert!(repeats.lost(7) && repeats.lost(7));
    }
}
