//! Questions to stations that have no answer yet.

use super::ContactId;
use skyhaul_units::{Duration, Instant};
use std::collections::BTreeMap;

/// A question without an answer.
#[derive(Debug)]
pub(super) struct Asked {
    pub contact: ContactId,
    pub at: Instant,
    /// The gap of each span.
    pub gaps: Vec<u64>,
}

/// All of them, by number.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: BTreeMap<u64, Asked>,
    next: u64,
}

/// Most questions to a station without an answer: 2,048 spans.
const OUTSTANDING_MAX: usize = 4;
/// A station reads a recording at several hundred Mbit/s: a question that has no answer after this
/// is asked again.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

impl Questions {
    /// Numbers questions from `first`.
    pub fn from(first: u64) -> Self {
        Self { open: BTreeMap::new(), next: first }
    }

    /// The number of the next question.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Notes the next question.
    pub fn ask(&mut self, asked: Asked) {
        self.open.insert(self.next, asked);
        self.next += 1;
    }

    /// Whether the station has the maximum number of questions.
    pub fn is_full(&self, station: &str) -> bool {
        self.of(station).count() >= OUTSTANDING_MAX
    }

    /// The questions to a station.
    pub fn of(&self, station: &str) -> impl Iterator<Item = u64> {
        let is_its = move |asked: &Asked| asked.contact.station == station;
        self.open.iter().filter(move |(_, asked)| is_its(asked)).map(|(number, _)| *number)
    }

    /// The questions that a station has not answered in time.
    pub fn late(&self, station: &str, now: Instant) -> impl Iterator<Item = u64> {
        self.of(station).filter(move |number| self.open[number].at + ANSWER_WITHIN <= now)
    }

    /// The question is no longer open.
    pub fn take(&mut self, number: u64) -> Option<Asked> {
        self.open.remove(&number)
    }

    /// The same, if it was put to this station.
    pub fn take_of(&mut self, number: u64, station: &str) -> Option<Asked> {
        let is_its = self.open.get(&number).is_some_and(|asked| asked.contact.station == station);
        is_its.then(|| self.open.remove(&number))?
    }

    /// Forgets the questions about a contact.
    pub fn forget(&mut self, contact: &ContactId) {
        self.open.retain(|_, asked| asked.contact != *contact);
    }
}
