//! What the session measures of a path, for status output.

use super::{LinePath, seconds};
use skyhaul_net::Clock;
use skyhaul_transport::{PathState, PathStatus};

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
        self.min_rtt_s = status.estimate.min_rtt.as_secs_f64();
        self.rate_bps = status.estimate.rate.as_bps();
        self.loss = status.loss.as_f64();
        self.bytes_sent = status.stats.bytes_sent;
        self.repair.sent = status.stats.repair_sent;
        self.repair.used = status.stats.recovered_there;
        self.repair.wasted = status.stats.repair_sent.saturating_sub(status.stats.recovered_there);
        self.stalls = status.stats.stalls;
    }
}
