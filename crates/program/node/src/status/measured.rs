//! What the session measures of a path, for status output.

use super::{LinePath, seconds};
use skyhaul_net::Clock;
use skyhaul_transport::{Estimate, PathState, PathStatus};

impl LinePath {
    /// Shows what the session measures of the path.
    pub(crate) fn measure(&mut self, status: &PathStatus, clock: Clock) {
        (self.state, self.reason) = match status.state {
            PathState::Stalled => (
                "failed".to_owned(),
                Some("it does not answer; its data goes over the other paths".to_owned()),
            ),
            PathState::Silent => (
                PathState::Silent.name().to_owned(),
                Some("nothing is received from it; data without urgency waits".to_owned()),
            ),
            PathState::BlackHole => {
                let reason = "only short packets arrive".to_owned();
                (PathState::BlackHole.name().to_owned(), Some(reason))
            }
            PathState::Absent => {
                let until = status.out_until.map(|until| seconds(clock.utc_of(until)));
                let reason = until.map_or("outage forecast, about to begin".to_owned(), |until| {
                    format!("outage forecast until {until}")
                });
                (PathState::Absent.name().to_owned(), Some(reason))
            }
            state => (state.name().to_owned(), None),
        };
        self.rtt_s = status.estimate.rtt.as_secs_f64();
        self.min_rtt_s = smallest_rtt_s(&status.estimate);
        self.rate_bps = status.estimate.rate.as_bps();
        self.loss = status.loss.as_f64();
        self.bytes_sent = status.stats.bytes_sent;
        self.repair.sent = status.stats.repair_sent;
        self.repair.used = status.stats.recovered_there;
        self.repair.wasted = status.stats.repair_sent.saturating_sub(status.stats.recovered_there);
        self.stalls = status.stats.stalls;
    }
}

/// The smallest round trip lately, in seconds. On an idle path that is one of two or three
/// measurements, of which all may be above the smoothed one, which is older.
pub(crate) fn smallest_rtt_s(estimate: &Estimate) -> f64 {
    estimate.min_rtt.min(estimate.rtt).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::Duration;

    #[test]
    fn the_smallest_round_trip_is_never_above_the_smoothed_one() {
        for (rtt, min_rtt, shown) in [(100, 80, 0.08), (80, 100, 0.08)] {
            let [rtt, min_rtt] = [rtt, min_rtt].map(Duration::from_millis);
            assert_eq!(smallest_rtt_s(&Estimate { rtt, min_rtt, ..Estimate::default() }), shown);
        }
    }
}
