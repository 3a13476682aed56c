//! The queues between the line and the refill thread: questions one way, answers the other.

use skyhaul_level0::ledger::talk::{Ask, GapAnswer};
use skyhaul_units::Duration;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Questions that wait for the refill thread, and answers that wait for the line.
#[derive(Debug, Default)]
pub struct Questions {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct State {
    asks: VecDeque<DestinationAsk>,
    /// With the index of the destination that asked.
    answers: VecDeque<(usize, GapAnswer)>,
}

/// A question of a destination.
#[derive(Debug, Clone)]
pub struct DestinationAsk {
    /// The index of the destination.
    pub of: usize,
    /// The question.
    pub ask: Ask,
}

/// The most questions and answers of a destination that wait: it has at most four open questions,
/// and repeats a question that finds no room.
const WAITING_MAX: usize = 16;

impl Questions {
    /// Adds a question of destination number `of`.
    pub fn ask(&self, of: usize, ask: Ask) {
        let mut state = self.state();
        if state.asks.iter().filter(|waiting| waiting.of == of).count() < WAITING_MAX {
            state.asks.push_back(DestinationAsk { of, ask });
            self.news.notify_all();
        }
    }

    /// The line to destination number `of` is down: it asks again.
    pub fn forget(&self, of: usize) {
        let mut state = self.state();
        state.asks.retain(|waiting| waiting.of != of);
        state.answers.retain(|(other, _)| *other != of);
    }

    /// The next question; waits for one for up to `patience`.
    pub fn next(&self, patience: Duration) -> Option<DestinationAsk> {
        let waited = self
            .news
            .wait_timeout_while(self.state(), patience.to_std(), |state| state.asks.is_empty());
        waited.unwrap_or_else(PoisonError::into_inner).0.asks.pop_front()
    }

    /// Adds the answer to a question of destination number `of`.
    pub fn answer(&self, of: usize, answer: GapAnswer) {
        let mut state = self.state();
        if state.answers.iter().filter(|(other, _)| *other == of).count() < WAITING_MAX {
            state.answers.push_back((of, answer));
        }
    }

    /// Passes the answers for destination number `of` to `take` until it refuses one.
    pub fn give(&self, of: usize, mut take: impl FnMut(&GapAnswer) -> bool) {
        let mut is_refused = false;
        self.state().answers.retain(|(other, answer)| {
            if is_refused || *other != of {
                return true;
            }
            is_refused = !take(answer);
            is_refused
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
