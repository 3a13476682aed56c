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
    asks: VecDeque<Ask>,
    answers: VecDeque<GapAnswer>,
}

/// The most questions and answers that wait: a centre has at most four open questions. It repeats a
/// question that finds no room.
const WAITING_MAX: usize = 16;

impl Questions {
    /// Adds a question.
    pub fn ask(&self, ask: Ask) {
        let mut state = self.state();
        if state.asks.len() < WAITING_MAX {
            state.asks.push_back(ask);
            self.news.notify_all();
        }
    }

    /// The line is down: the centre asks again.
    pub fn forget(&self) {
        *self.state() = State::default();
    }

    /// The next question; waits for one for up to `patience`.
    pub fn next(&self, patience: Duration) -> Option<Ask> {
        let waited = self
            .news
            .wait_timeout_while(self.state(), patience.to_std(), |state| state.asks.is_empty());
        waited.unwrap_or_else(PoisonError::into_inner).0.asks.pop_front()
    }

    /// Adds the answer to a question.
    pub fn answer(&self, answer: GapAnswer) {
        let mut state = self.state();
        if state.answers.len() < WAITING_MAX {
            state.answers.push_back(answer);
        }
    }

    /// Passes the answers to `take` until it refuses one.
    pub fn give(&self, mut take: impl FnMut(&GapAnswer) -> bool) {
        let mut state = self.state();
        while state.answers.front().is_some_and(&mut take) {
            state.answers.pop_front();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
