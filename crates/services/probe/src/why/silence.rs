//! The longest silence of a far end, from samples of counters that change whenever it is heard.

use super::evidence::Silence;
use skyhaul_units::{Duration, Instant};

/// Follows looks at a transfer. What changes with each answer of the far end, such as the measured
/// round trip, is its trace.
#[derive(Debug, Clone, Copy)]
pub struct SilenceDetector {
    began: Instant,
    /// Since when the trace is the same, and data waited for an answer.
    since: Instant,
    trace: u64,
    longest: Duration,
    longest_since: Instant,
    last: Instant,
}

impl SilenceDetector {
    /// Begins to look.
    pub const fn new(now: Instant, trace: u64) -> Self {
        Self {
            began: now,
            since: now,
            trace,
            longest: Duration::ZERO,
            longest_since: now,
            last: now,
        }
    }

    /// A further look. `owes` says whether the far end has something to answer to: with nothing to
    /// send, silence is none.
    pub fn look(&mut self, now: Instant, trace: u64, owes: Owes) {
        self.last = now;
        if trace != self.trace || owes == Owes::Nothing {
            (self.trace, self.since) = (trace, now);
            return;
        }
        let silent = now.since(self.since);
        if silent > self.longest {
            (self.longest, self.longest_since) = (silent, self.since);
        }
    }

    /// The longest silence.
    pub fn silence(&self) -> Silence {
        Silence {
            seconds: self.longest.as_secs_f64(),
            at_s: self.longest_since.since(self.began).as_secs_f64(),
            of_s: self.last.since(self.began).as_secs_f64(),
        }
    }
}

/// What a far end is expected to answer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owes {
    /// Everything sent is answered, and nothing is to be sent.
    Nothing,
    /// Something is under way or held back.
    Answer,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_time_in_which_an_answer_was_due_is_silence() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut listener = SilenceDetector::new(at(0), 0);
        (1..10).for_each(|n| listener.look(at(n * 100), n, Owes::Answer));
        // Nothing to send for 3 s, then nothing heard for 2 s.
        (10..40).for_each(|n| listener.look(at(n * 100), 9, Owes::Nothing));
        (40..60).for_each(|n| listener.look(at(n * 100), 9, Owes::Answer));
        listener.look(at(6_000), 10, Owes::Answer);
        let silence = listener.silence();
        assert!(
            (silence.seconds - 2.0).abs() < 1e-9 && (silence.at_s - 3.9).abs() < 1e-9,
            "{silence:?}"
        );
        assert!((silence.of_s - 6.0).abs() < 1e-9, "{silence:?}");
    }
}
