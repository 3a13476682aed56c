//! The alarm of an input that brings what cannot be used.

use crate::alarms::Alarms;
use skyhaul_events::AlarmKind;
use skyhaul_units::{Duration, Instant};
use std::sync::Arc;

/// Raises the alarm once for many packets that are refused, and clears it after a while without.
#[derive(Debug)]
pub struct UnusableInput {
    alarms: Arc<Alarms>,
    subject: String,
    /// When the alarm is cleared; none while it is not raised.
    clear_at: Option<Instant>,
}

/// Without a refusal for so long, the input is well again.
const CALM: Duration = Duration::from_secs(10);

impl UnusableInput {
    /// Of the input that messages name `title`.
    pub fn new(alarms: Arc<Alarms>, title: &str) -> Self {
        Self { alarms, subject: title.to_owned(), clear_at: None }
    }

    /// Something was refused.
    pub fn refuse(&mut self, now: Instant, reason: &str) {
        if self.clear_at.is_none() {
            self.alarms.raise(AlarmKind::InputUnusable, &self.subject, reason);
        }
        self.clear_at = Some(now + CALM);
    }

    /// Clears the alarm once nothing has been refused for a while.
    pub fn keep_time(&mut self, now: Instant) {
        if self.clear_at.is_some_and(|at| now >= at) {
            self.clear_at = None;
            self.alarms.clear(AlarmKind::InputUnusable, &self.subject);
        }
    }
}
