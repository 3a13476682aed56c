//! The fates of transmissions in the order of sending, for whoever measures loss.

use crate::path::Token;
use std::collections::VecDeque;

/// Whether transmissions were lost, in the order of sending.
#[derive(Debug, Default)]
pub struct LossOrder {
    /// The token of the first one.
    first: u64,
    /// Whether it was lost; `None` while that is open.
    known: VecDeque<Option<bool>>,
}

impl LossOrder {
    /// One more transmission, whose fate is open.
    pub fn add(&mut self) {
        self.known.push_back(None);
    }

    /// A transmission was lost. What was known before stays.
    pub fn lost(&mut self, token: Token) {
        if let Some(lost) = self.open(token) {
            lost.get_or_insert(true);
        }
    }

    /// A transmission has arrived. What was known before stays.
    pub fn arrived(&mut self, token: Token) {
        if let Some(lost) = self.open(token) {
            lost.get_or_insert(false);
        }
    }

    /// The next fate in the order of sending: whether it was lost.
    pub fn pop(&mut self) -> Option<bool> {
        let lost = (*self.known.front()?)?;
        self.known.pop_front();
        self.first += 1;
        Some(lost)
    }

    fn open(&mut self, token: Token) -> Option<&mut Option<bool>> {
        let at = token.0.checked_sub(self.first).and_then(|at| usize::try_from(at).ok())?;
        self.known.get_mut(at)
    }
}
