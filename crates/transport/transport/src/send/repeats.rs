//! How often the missing symbols of a block were sent, and how many of these are under way.

use std::collections::BTreeMap;

/// Symbols sent more than once, by where they start in the block. Bounded by the symbols that were
/// lost and have not arrived.
#[derive(Debug, Default)]
pub struct Repeats(BTreeMap<u32, Attempts>);

#[derive(Debug)]
struct Attempts {
    sent: u8,
    /// Of these, sent or to be sent and not known to be lost.
    open: u8,
    /// Where the shortest of these ended: paths with small datagrams take only the start of a
    /// symbol.
    end: u32,
}

impl Repeats {
    /// How often the symbol at `start` was sent so far.
    pub fn so_far(&self, start: u32) -> u8 {
        self.0.get(&start).map_or(1, |attempts| attempts.sent)
    }

    /// What lies between is sent again, so many times at once.
    pub fn sent(&mut self, start: u32, end: u32, copies: u8) {
        let attempts = self.0.entry(start).or_insert(Attempts { sent: 1, open: 0, end });
        attempts.sent = attempts.sent.saturating_add(copies);
        attempts.open = attempts.open.saturating_add(copies);
        attempts.end = attempts.end.min(end);
    }

    /// One transmission of what lies between was lost; the part of it of which none is under way.
    pub fn lost(&mut self, start: u32, end: u32) -> Option<(u32, u32)> {
        let Some(attempts) = self.0.get_mut(&start) else { return Some((start, end)) };
        attempts.open = attempts.open.saturating_sub(1);
        let from = if attempts.open == 0 { start } else { attempts.end };
        (from < end).then_some((from, end))
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
        assert_eq!(repeats.lost(0, 1_400), Some((0, 1_400)));
        repeats.sent(0, 1_400, 3);
        assert_eq!((repeats.so_far(0), repeats.so_far(1_400)), (4, 1));
        let lost = [(); 3].map(|()| repeats.lost(0, 1_400));
        assert_eq!(lost, [None, None, Some((0, 1_400))]);
        repeats.sent(0, 1_400, 1);
        assert_eq!(repeats.so_far(0), 5);
        repeats.arrived(0, 1_400);
        assert_eq!(repeats.so_far(0), 1);
    }

    #[test]
    fn a_shorter_copy_under_way_stands_for_its_own_length_alone() {
        let mut repeats = Repeats::default();
        repeats.sent(0, 1_400, 1);
        repeats.sent(0, 560, 1);
        assert_eq!(repeats.lost(0, 1_400), Some((560, 1_400)));
        assert_eq!(repeats.lost(0, 560), Some((0, 560)));
    }

    #[test]
    fn a_loss_that_was_not_counted_never_keeps_a_symbol_back() {
        let mut repeats = Repeats::default();
        repeats.sent(7, 9, 1);
        assert_eq!([repeats.lost(7, 9), repeats.lost(7, 9)], [Some((7, 9)); 2]);
    }
}
