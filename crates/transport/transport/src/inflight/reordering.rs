//! How much a path reorders: what was sent earlier than something that has arrived may yet come.

use super::log::LossReason;
use skyhaul_units::Duration;

/// The reordering that a path has shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReorderTolerance {
    /// Eighths of a round trip by which order may be off.
    pub window_eighths: u64,
    /// Eighths of a round trip by which the way there may be longer than half of one.
    pub detour_eighths: u64,
}

/// Half a round trip: what is later than that was not merely overtaken.
const WINDOW_MAX_EIGHTHS: u64 = 4;
/// Ticks of the sender and batches of acknowledgements shift packets by so much.
pub const WINDOW_MIN: Duration = Duration::from_millis(4);

impl ReorderTolerance {
    /// What is overtaken by less than this may yet come.
    pub fn window(&self, rtt: Duration) -> Duration {
        (rtt / 16 + rtt * self.window_eighths / 8).max(WINDOW_MIN)
    }

    /// How much longer than half a round trip the way there may be.
    pub fn detour(&self, rtt: Duration) -> Duration {
        rtt * self.detour_eighths / 8
    }

    /// What was called lost for this reason has arrived. A silence that ended, or a late answer,
    /// says nothing of the order.
    pub fn refuted(&mut self, reason: LossReason) {
        let eighths = match reason {
            LossReason::Overtaken => &mut self.window_eighths,
            LossReason::Missed => &mut self.detour_eighths,
            LossReason::Overdue => return,
        };
        *eighths = (*eighths + 1).min(WINDOW_MAX_EIGHTHS);
    }
}
