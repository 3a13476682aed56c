//! The round trip of the empty line, and how much round trips scatter by themselves.
//!
//! The far end acknowledges a full count of packets at once, and fewer when a timer expires, so
//! that the round trip includes a wait. Each kind has its own floor, so that the wait never counts
//! as a queue.

use skyhaul_units::Duration;

/// What made the far end acknowledge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AckKind {
    /// A full count of packets: at once.
    Prompt,
    /// The acknowledgement timer: the round trip includes a wait for it.
    Timed,
}

/// Smallest round trips, by kind of acknowledgement.
#[derive(Debug, Clone, Default)]
pub(super) struct Floor {
    prompt: Option<Duration>,
    timed: Option<Duration>,
    /// The last round trip of each kind, prompt first.
    last: [Option<Duration>; 2],
    jitter: Duration,
}

impl Floor {
    /// Takes a round trip, and returns the part of it that is above the floor.
    pub(super) fn sample(&mut self, rtt: Duration, kind: AckKind) -> Duration {
        let (floor, last) = match kind {
            AckKind::Prompt => (&mut self.prompt, &mut self.last[0]),
            AckKind::Timed => (&mut self.timed, &mut self.last[1]),
        };
        let base = floor.map_or(rtt, |floor| floor.min(rtt));
        *floor = Some(base);
        if let Some(last) = last.replace(rtt) {
            let step = rtt.saturating_sub(last) + last.saturating_sub(rtt);
            self.jitter = (self.jitter * (SMOOTHING - 1) + step) / SMOOTHING;
        }
        rtt - base
    }

    /// Sending less did not shorten the round trip: what was above the floor belongs to the route.
    pub(super) fn raise(&mut self, by: Duration) {
        for floor in [&mut self.prompt, &mut self.timed].into_iter().flatten() {
            *floor += by;
        }
    }

    /// The round trip of the empty line, where one was seen.
    pub(super) fn base(&self) -> Option<Duration> {
        [self.prompt, self.timed].into_iter().flatten().min()
    }

    /// Mean step from one round trip to the next of its kind. A queue changes slowly; steps are the
    /// line's own jitter, or bursts.
    pub(super) const fn jitter(&self) -> Duration {
        self.jitter
    }
}

/// The jitter is the mean over about the last 32 acknowledgements.
const SMOOTHING: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(160);

    #[test]
    fn a_wait_for_the_timer_is_no_queue() {
        let mut floor = Floor::default();
        let timer = Duration::from_millis(25);
        assert_eq!(floor.sample(RTT, AckKind::Prompt), Duration::ZERO);
        assert_eq!(floor.sample(RTT + timer, AckKind::Timed), Duration::ZERO);
        assert_eq!(floor.sample(RTT + timer * 2, AckKind::Timed), timer);
        assert_eq!(floor.sample(RTT + timer, AckKind::Prompt), timer);
        assert_eq!(floor.base(), Some(RTT));
    }

    #[test]
    fn a_raised_floor_is_raised_for_both_kinds() {
        let mut floor = Floor::default();
        floor.sample(RTT, AckKind::Prompt);
        floor.sample(RTT * 2, AckKind::Timed);
        floor.raise(RTT);
        assert_eq!(floor.sample(RTT * 2, AckKind::Prompt), Duration::ZERO);
        assert_eq!(floor.sample(RTT * 4, AckKind::Timed), RTT);
    }

    #[test]
    fn jitter_is_the_mean_step() {
        let mut floor = Floor::default();
        for n in 0..400 {
            floor.sample(RTT + Duration::from_millis(20 * (n % 2)), AckKind::Prompt);
        }
        assert!(
            floor.jitter() > Duration::from_millis(19)
                && floor.jitter() <= Duration::from_millis(20)
        );
    }
}
