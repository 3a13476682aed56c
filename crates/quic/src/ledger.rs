//! Which packet carries which token, until its fate is known.

use skyhaul_transport::Token;
use skyhaul_units::{Duration, Instant};
use std::collections::VecDeque;

/// Tokens under way in the order of their packets' numbers.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: VecDeque<Entry>,
    unresolved: usize,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    sent: Instant,
    token: Option<Token>,
}

impl Ledger {
    /// Notes that packet `number`, higher than any before, carries `token`. Returns the oldest token if there
    /// are too many under way: its fate will not be known any more.
    pub(crate) fn insert(&mut self, now: Instant, number: u64, token: Token) -> Option<Token> {
        debug_assert!(self.entries.back().is_none_or(|entry| entry.number < number));
        self.entries.push_back(Entry { number, sent: now, token: Some(token) });
        self.unresolved += 1;
        if self.entries.len() <= MAX_ENTRIES {
            return None;
        }
        let given_up = self.entries.front_mut().and_then(|entry| entry.token.take());
        self.unresolved -= usize::from(given_up.is_some());
        self.tidy();
        given_up
    }

    /// The token that packet `number` carries, once.
    pub(crate) fn resolve(&mut self, number: u64) -> Option<Token> {
        let at = self.entries.binary_search_by_key(&number, |entry| entry.number).ok()?;
        let token = self.entries[at].token.take()?;
        self.unresolved -= 1;
        self.tidy();
        Some(token)
    }

    /// The oldest token, if it has been under way for longer than [`PATIENCE`].
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Token> {
        let front = self.entries.front_mut()?;
        if now.since(front.sent) <= PATIENCE {
            return None;
        }
        let token = front.token.take()?;
        self.unresolved -= 1;
        self.tidy();
        Some(token)
    }

    /// All tokens under way, oldest first; the ledger is empty afterwards.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Token> + '_ {
        self.unresolved = 0;
        self.entries.drain(..).filter_map(|entry| entry.token)
    }

    /// How many tokens are under way.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.unresolved
    }

    /// Keeps an unresolved entry in front.
    fn tidy(&mut self) {
        while self.entries.front().is_some_and(|entry| entry.token.is_none()) {
            self.entries.pop_front();
        }
    }
}

/// 262,144 datagrams: three times 1 Gbit/s × 660 ms. Beyond, the oldest counts as lost.
const MAX_ENTRIES: usize = 1 << 18;

/// No fate after this long (the connection moved to another address, or the line is out): counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_is_resolved_once_in_any_order() {
        let mut ledger = Ledger::default();
        for number in 0..10 {
            assert_eq!(ledger.insert(Instant::ZERO, number * 3, Token(number)), None);
        }
        for number in [5, 0, 9, 1, 4, 2, 3, 8, 7, 6] {
            assert_eq!(ledger.resolve(number * 3), Some(Token(number)));
            assert_eq!(ledger.resolve(number * 3), None);
            assert_eq!(ledger.resolve(number * 3 + 1), None);
        }
        assert_eq!((ledger.len(), ledger.entries.len()), (0, 0));
    }

    #[test]
    fn the_oldest_is_given_up_at_the_bound_and_after_the_time_limit() {
        let mut ledger = Ledger::default();
        let count = MAX_ENTRIES as u64;
        for number in 0..count {
            assert_eq!(ledger.insert(Instant::ZERO, number, Token(number)), None);
        }
        assert_eq!(ledger.insert(Instant::ZERO, count, Token(count)), Some(Token(0)));
        assert_eq!(ledger.expire(Instant::ZERO + PATIENCE), None);
        let late = Instant::ZERO + PATIENCE + Duration::from_nanos(1);
        assert_eq!(ledger.expire(late), Some(Token(1)));
        assert_eq!(ledger.take_all().count(), MAX_ENTRIES - 1);
        assert_eq!(ledger.expire(late), None);
    }
}
