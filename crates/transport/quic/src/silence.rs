//! Pings on a line that has gone silent.

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

    /// When the next ping is due, where an answer is due `within` a time; `None` while none is
    /// expected.
    pub(crate) fn due(&self, within: Option<Duration>) -> Option<Instant> {
        let overdue = within?.max(SHORTEST);
        let silence = self.pinged.since(self.heard);
        let interval = (silence / PART).clamp(overdue.min(LONGEST), LONGEST);
        Some((self.heard + overdue).max(self.pinged + interval))
    }

    /// Whether a ping is to be sent now.
    pub(crate) fn poll(&mut self, now: Instant, within: Option<Duration>) -> bool {
        let is_due = self.due(within).is_some_and(|at| at <= now);
        if is_due {
            self.pinged = now;
        }
        is_due
    }
}

/// An answer is not overdue before: longer than an acknowledgement may be delayed.
const SHORTEST: Duration = Duration::from_millis(60);

/// From ping to ping at most: data flows again half a second and a round trip after the line is
/// back.
const LONGEST: Duration = Duration::from_millis(500);

/// From ping to ping in parts of the silence so far: on a short line a short outage becomes at most
/// an eighth longer.
const PART: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// Pings of each of the first ten seconds of a silence, where an answer is due within `millis`.
    fn pings(millis: u64) -> [u32; 10] {
        let mut silence = SilenceProbe::new(Instant::ZERO);
        silence.heard(Instant::ZERO + Duration::from_secs(3));
        core::array::from_fn(|second| {
            let at = |milli| Instant::ZERO + Duration::from_millis(second as u64 * 1_000 + milli);
            let within = Some(Duration::from_millis(millis));
            (0..1_000).filter(|milli| silence.poll(at(3_000 + milli), within)).count() as u32
        })
    }

    #[test]
    fn a_silence_is_probed_often_at_first_on_a_short_line_and_twice_a_second_in_the_end() {
        assert_eq!(pings(1), [14, 6, 3, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!(pings(60), pings(1));
        assert_eq!(pings(700), [1, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn nothing_is_probed_while_no_answer_is_expected() {
        let mut silence = SilenceProbe::new(Instant::ZERO);
        assert_eq!(silence.due(None), None);
        assert!(!silence.poll(Instant::ZERO + Duration::from_secs(9), None));
    }
}
