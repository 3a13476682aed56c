//! Transmissions of the missing symbols of a block: how many there were, how many are in flight.

use std::collections::BTreeMap;

/// Symbols sent more than once, by their offset in the block. Bounded by the symbols that were lost
/// and have not arrived.
#[derive(Debug, Default)]
pub struct Attempts(BTreeMap<u32, SymbolAttempts>);

#[derive(Debug)]
struct SymbolAttempts {
    sent: u8,
    /// Of these, those in flight or queued, and not known to be lost.
    open: u8,
    /// The smallest end of these: a path with small datagrams takes only the start of a symbol.
    end: u32,
}

impl Attempts {
    /// Number of transmissions of the symbol at `start` so far.
    pub fn so_far(&self, start: u32) -> u8 {
        self.0.get(&start).map_or(1, |symbol| symbol.sent)
    }

    /// The bytes from `start` to `end` are sent another `copies` times.
    pub fn sent(&mut self, start: u32, end: u32, copies: u8) {
        let symbol = self.0.entry(start).or_insert(SymbolAttempts { sent: 1, open: 0, end });
        symbol.sent = symbol.sent.saturating_add(copies);
        symbol.open = symbol.open.saturating_add(copies);
        symbol.end = symbol.end.min(end);
    }

    /// One transmission of the bytes from `start` to `end` was lost. Returns the part of them that
    /// is not in flight in another transmission.
    pub fn lost(&mut self, start: u32, end: u32) -> Option<(u32, u32)> {
        let Some(symbol) = self.0.get_mut(&start) else { return Some((start, end)) };
        symbol.open = symbol.open.saturating_sub(1);
        let from = if symbol.open == 0 { start } else { symbol.end };
        (from < end).then_some((from, end))
    }

    /// The bytes from `start` to `end` have arrived.
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
    fn only_the_loss_of_the_last_of_several_copies_needs_another() {
        let mut attempts = Attempts::default();
        assert_eq!(attempts.lost(0, 1_400), Some((0, 1_400)));
        attempts.sent(0, 1_400, 3);
        assert_eq!((attempts.so_far(0), attempts.so_far(1_400)), (4, 1));
        let lost = [(); 3].map(|()| attempts.lost(0, 1_400));
        assert_eq!(lost, [None, None, Some((0, 1_400))]);
        attempts.sent(0, 1_400, 1);
        assert_eq!(attempts.so_far(0), 5);
        attempts.arrived(0, 1_400);
        assert_eq!(attempts.so_far(0), 1);
    }

    #[test]
    fn a_shorter_copy_in_flight_covers_its_own_length_only() {
        let mut attempts = Attempts::default();
        attempts.sent(0, 1_400, 1);
        attempts.sent(0, 560, 1);
        assert_eq!(attempts.lost(0, 1_400), Some((560, 1_400)));
        assert_eq!(attempts.lost(0, 560), Some((0, 560)));
    }

    #[test]
    fn a_loss_that_was_not_counted_does_not_hold_a_symbol_back() {
        let mut attempts = Attempts::default();
        attempts.sent(7, 9, 1);
        assert_eq!([attempts.lost(7, 9), attempts.lost(7, 9)], [Some((7, 9)); 2]);
    }
}
