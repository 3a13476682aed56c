//! Pings on a line that has gone silent.

use crate::sender::Sender;
use skyhaul_units::{Duration, Instant};

/// Sends pings while an answer is overdue: the state machine's own probes become ever rarer, down
/// to one every two seconds, and each may be lost.
#[derive(Debug)]
pub(crate) struct SilenceProbe {
    /// When the far end was heard last.
    heard: Instant,
    pinged: Instant,
}

impl SilenceProbe {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { heard: now, pinged: now }
    }

    pub(crate) const fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// When the next ping is due; `None` while no answer to anything of `sender` is expected.
    pub(crate) fn due(&self, sender: &Sender) -> Option<Instant> {
        let silence = sender.answer_within().max(INTERVAL);
        sender.expects_answer().then(|| (self.heard + silence).max(self.pinged + INTERVAL))
    }

    /// Whether a ping is to be sent now.
    pub(crate) fn poll(&mut self, now: Instant, sender: &Sender) -> bool {
        let is_due = self.due(sender).is_some_and(|at| at <= now);
        if is_due {
            self.pinged = now;
        }
        is_due
    }
}

/// From ping to ping: data flows again half a second and a round trip after the line is back.
const INTERVAL: Duration = Duration::from_millis(500);
