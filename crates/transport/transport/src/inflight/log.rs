//! The transmissions of one path whose fate is open, by their tokens.

use super::sent::SentDatagram;
use crate::path::Token;
use crate::repair::Sid;
use skyhaul_units::Instant;
use std::collections::{BTreeMap, VecDeque};

/// A transmission whose fate is open.
#[derive(Debug)]
pub struct Transmission {
    pub sent: SentDatagram,
    pub sid: Option<Sid>,
    pub at: Instant,
    /// Why it was called lost: it has been acted on.
    pub judged: Option<LossReason>,
}

/// Why something counts as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossReason {
    /// What was sent after it has arrived.
    Overtaken,
    /// No news came in time.
    Overdue,
    /// The far end lacks it, and should have it.
    Missed,
}

/// Open transmissions in the order of sending. Tokens count up, so the index of a transmission is
/// a difference of tokens.
#[derive(Debug, Default)]
pub struct SentLog {
    /// The token of the first entry.
    first: u64,
    /// None where the fate is known.
    entries: VecDeque<Option<Transmission>>,
    /// The tokens of what is coded, by the coding number.
    sids: BTreeMap<u32, Token>,
}

impl SentLog {
    /// Transmissions remembered.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub const fn first(&self) -> u64 {
        self.first
    }

    /// The token that the next transmission will have.
    pub fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Whether the token's transmission may be open.
    pub fn spans(&self, token: Token) -> bool {
        (self.first..self.end()).contains(&token.0)
    }

    pub fn push(&mut self, transmission: Transmission) -> Token {
        let token = Token(self.end());
        if let Some(sid) = transmission.sid {
            self.sids.insert(sid.to_wire(), token);
        }
        self.entries.push_back(Some(transmission));
        token
    }

    /// Forgets the oldest.
    pub fn pop_first(&mut self) -> Option<Transmission> {
        let oldest = self.entries.pop_front()?;
        self.first += 1;
        self.forget_sid(oldest.as_ref());
        oldest
    }

    /// The token of what was sent under a coding number.
    pub fn token_of(&self, sid: Sid) -> Option<Token> {
        self.sids.get(&sid.to_wire()).copied()
    }

    pub fn get(&self, token: u64) -> Option<&Transmission> {
        self.entries.get(usize::try_from(token.checked_sub(self.first)?).ok()?)?.as_ref()
    }

    pub fn get_mut(&mut self, token: u64) -> Option<&mut Transmission> {
        self.entries.get_mut(usize::try_from(token.checked_sub(self.first)?).ok()?)?.as_mut()
    }

    /// Takes out what was sent under `token`.
    pub fn take(&mut self, token: Token) -> Option<Transmission> {
        let at = usize::try_from(token.0.checked_sub(self.first)?).ok()?;
        let taken = self.entries.get_mut(at)?.take();
        while let Some(None) = self.entries.front() {
            self.entries.pop_front();
            self.first += 1;
        }
        self.forget_sid(taken.as_ref());
        taken
    }

    /// The first token from `token` on whose fate is open, or the end.
    pub fn next_open(&self, token: u64) -> u64 {
        let from = self.index(token);
        let known = self.entries.range(from..).take_while(|entry| entry.is_none()).count();
        self.first + (from + known) as u64
    }

    /// What is open from a token on, with its token.
    pub fn open_from(&self, token: u64) -> impl Iterator<Item = (u64, &Transmission)> {
        let from = self.index(token);
        let tokens = self.first + from as u64..;
        tokens.zip(self.entries.range(from..)).filter_map(|(token, at)| Some((token, at.as_ref()?)))
    }

    pub fn open_from_mut(&mut self, token: u64) -> impl Iterator<Item = &mut Transmission> {
        let from = self.index(token);
        self.entries.range_mut(from..).flatten()
    }

    /// Where a token's transmission is, or would be.
    fn index(&self, token: u64) -> usize {
        let index = usize::try_from(token.saturating_sub(self.first)).unwrap_or(usize::MAX);
        index.min(self.entries.len())
    }

    /// Transmissions with a coding number.
    #[cfg(test)]
    pub fn coded(&self) -> usize {
        self.sids.len()
    }

    fn forget_sid(&mut self, transmission: Option<&Transmission>) {
        if let Some(sid) = transmission.and_then(|transmission| transmission.sid) {
            self.sids.remove(&sid.to_wire());
        }
    }
}
