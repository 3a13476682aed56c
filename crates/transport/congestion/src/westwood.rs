//! Westwood+: grows like Reno, but a loss reduces the window to the estimated bandwidth times the
//! smallest round trip (Grieco and Mascolo, 2004; tcp_westwood.c).
//!
//! The estimate is the bytes acknowledged within at least 50 ms and a round trip, low-pass filtered
//! twice with 7/8 of the old value.

use crate::segments::Segments;
use crate::window::{Law, Seen, Windowed, full_packet};
use serde::{Deserialize, Serialize};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// Parameters of `westwood`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WestwoodConfig {
    /// What the window is counted in. Default 1500 bytes.
    pub segment: ByteCount,
}

impl Default for WestwoodConfig {
    fn default() -> Self {
        Self { segment: full_packet() }
    }
}

/// The law of Westwood+.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Westwood {
    segment: ByteCount,
    least_rtt: Duration,
    /// The filter's first and second stage.
    estimate: Option<(Rate, Rate)>,
    began: Option<Instant>,
    acked: ByteCount,
}

impl Westwood {
    /// A controller by this law.
    pub(crate) const fn controller(config: WestwoodConfig) -> Windowed<Self> {
        Windowed::with(Self::new(config), config.segment)
    }

    const fn new(config: WestwoodConfig) -> Self {
        let segment = config.segment;
        Self {
            segment,
            least_rtt: Duration::MAX,
            estimate: None,
            began: None,
            acked: ByteCount::ZERO,
        }
    }
}

impl Law for Westwood {
    fn observe(&mut self, seen: &Seen<'_>) {
        self.least_rtt = seen.ack.rtt.map_or(self.least_rtt, |rtt| rtt.min(self.least_rtt));
        let began = *self.began.get_or_insert(seen.now);
        self.acked += seen.ack.bytes;
        let span = seen.now.since(began);
        if span <= seen.ack.rtt.unwrap_or(seen.ack.smoothed).max(SHORTEST) {
            return;
        }
        let rate = Rate::over(self.acked, span);
        self.estimate = Some(match self.estimate {
            None => (rate, rate),
            Some((first, second)) => {
                let first = filtered(first, rate);
                (first, filtered(second, first))
            }
        });
        self.began = Some(seen.now);
        self.acked = ByteCount::ZERO;
    }

    fn avoidance(&mut self, seen: &Seen<'_>) -> Segments {
        seen.share(Segments::ONE)
    }

    fn decreased(&mut self, window: Segments) -> Segments {
        match self.estimate {
            Some((_, rate)) if self.least_rtt < Duration::MAX => {
                Segments::of(rate * self.least_rtt, self.segment).max(Segments::MIN)
            }
            _ => window.scaled(1, 2),
        }
    }

    fn timed_out(&mut self) {
        // The route may have become longer.
        self.least_rtt = Duration::MAX;
        self.estimate = None;
    }
}

fn filtered(old: Rate, new: Rate) -> Rate {
    Rate::from_bps(old.as_bps() / 8 * 7 + new.as_bps() / 8)
}

/// A shorter window would measure how acknowledgements are spaced.
const SHORTEST: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::drive::{Drive, RTT, close};

    #[test]
    fn a_loss_reduces_to_what_the_path_carries_in_the_smallest_round_trip() {
        let mut drive = Drive::avoiding(Westwood::new(WestwoodConfig::default()), 100);
        drive.round(Duration::from_millis(50));
        // A queue of 50 ms: a window of 100 segments each 100 ms is 50 in the smallest round trip.
        (0..200).for_each(|_| {
            drive.windowed.reset_to(100);
            drive.round(RTT);
        });
        drive.windowed.reset_to(100);
        drive.lose();
        assert!(close(drive.segments(), 50.0, 0.02), "{}", drive.segments());
    }

    #[test]
    fn without_a_queue_a_loss_changes_little() {
        let mut drive = Drive::avoiding(Westwood::new(WestwoodConfig::default()), 100);
        (0..100).for_each(|_| {
            drive.windowed.reset_to(100);
            drive.round(RTT);
        });
        drive.lose();
        assert!(close(drive.segments(), 100.0, 0.03), "{}", drive.segments());
    }

    #[test]
    fn the_filter_takes_an_eighth_of_the_new_value() {
        assert_eq!(filtered(Rate::from_mbps(80), Rate::from_mbps(160)), Rate::from_mbps(90));
    }
}
