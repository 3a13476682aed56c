//! The round trip of the empty line, and how much round trips scatter by themselves.
//!
//! A batch that a full count of packets completed is acknowledged at once; one that a timer
//! completed holds a wait of up to that timer. Each kind has its own floor, so that the wait is
//! never taken for a queue.

use skyhaul_units::Duration;

/// Smallest round trips seen, by kind of acknowledgement.
#[derive(Debug, Clone, Default)]
pub(super) struct Floor {
    prompt: Option<Duration>,
    timed: Option<Duration>,
    /// The last round trip of each kind, prompt first.
    last: [Option<Duration>; 2],
    jitter: Duration,
}

impl Floor {
    /// Takes in a round trip, and gives the part of it that is above the floor.
    pub(super) fn sample(&mut self, rtt: Duration, prompt: bool) -> Duration {
        let floor = if prompt { &mut self.prompt } else { &mut self.timed };
        let base = floor.map_or(rtt, |floor| floor.min(rtt));
        *floor = Some(base);
        if let Some(last) = self.last[usize::from(!prompt)].replace(rtt) {
            let step = rtt.saturating_sub(last) + last.saturating_sub(rtt);
            self.jitter = (self.jitter * (SMOOTHING - 1) + step) / SMOOTHING;
        }
        rtt - base
    }

    /// Less sending did not shorten the round trip: what was above the floor belongs to the route.
    pub(super) fn raise(&mut self, by: Duration) {
        for floor in [&mut self.prompt, &mut self.timed].into_iter().flatten() {
            *floor += by;
        }
    }

    /// The round trip of the empty line, where one was seen.
    pub(super) fn base(&self) -> Option<Duration> {
        [self.prompt, self.timed].into_iter().flatten().min()
    }

    /// Mean step from one round trip to the next of its kind. A queue changes slowly; what changes
    /// at once is the line's own jitter, or bursts.
    pub(super) const fn jitter(&self) -> Duration {
        self.jitter
    }
}

/// The scatter is that of the last 32 acknowledgements or so.
const SMOOTHING: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(160);

    #[test]
    fn a_wait_for_the_timer_is_no_queue() {
        let mut floor = Floor::default();
        let timer = Duration::from_millis(25);
        assert_eq!(floor.sample(RTT, true), Duration::ZERO);
        assert_eq!(floor.sample(RTT + timer, false), Duration::ZERO);
        assert_eq!(floor.sample(RTT + timer * 2, false), timer);
        assert_eq!(floor.sample(RTT + timer, true), timer);
        assert_eq!(floor.base(), Some(RTT));
    }

    #[test]
    fn a_raised_floor_is_raised_for_both_kinds() {
        let mut floor = Floor::default();
        floor.sample(RTT, true);
        floor.sample(RTT * 2, false);
        floor.raise(RTT);
        assert_eq!(floor.sample(RTT * 2, true), Duration::ZERO);
        assert_eq!(floor.sample(RTT * 4, false), RTT);
    }

    #[test]
    fn jitter_is_the_mean_step() {
        let mut floor = Floor::default();
        for n in 0..400 {
            floor.sample(RTT + Duration::from_millis(20 * (n % 2)), true);
        }
        assert!(
            floor.jitter() > Duration::from_millis(19)
                && floor.jitter() <= Duration::from_millis(20)
        );
    }
}
