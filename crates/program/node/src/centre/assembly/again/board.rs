//! What became of products that were made again, for those who wait for it.

use crate::status::ReprocessedProduct;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// The outcomes of the newest orders, for those who wait for them.
#[derive(Debug, Default)]
pub struct AgainBoard(Mutex<VecDeque<(u64, ReprocessedProduct)>>);

/// Outcomes that are kept.
const OUTCOMES: usize = 10_000;

impl AgainBoard {
    /// Adds an outcome of an order, before its job is done: who sees that no job waits sees all
    /// outcomes. One of a job that is done once more replaces the former.
    pub fn add(&self, order: u64, outcome: ReprocessedProduct) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(of, former)| {
            *of != order || (&former.target, &former.name) != (&outcome.target, &outcome.name)
        });
        while kept.len() >= OUTCOMES {
            kept.pop_front();
        }
        kept.push_back((order, outcome));
    }

    /// The outcomes of an order.
    pub fn of(&self, order: u64) -> Vec<ReprocessedProduct> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let its = kept.iter().filter(|(of, _)| *of == order);
        its.map(|(_, outcome)| outcome.clone()).collect()
    }
}
