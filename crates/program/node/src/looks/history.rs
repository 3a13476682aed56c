//! The last ten minutes: rates and depths, a row a second.

use crate::status::NodeStatus;
use serde::Serialize;
use skyhaul_units::{Duration, Instant, Utc};
use std::collections::VecDeque;
use std::sync::Arc;

/// Rates and depths of one second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct HistoryRow {
    /// The end of the second.
    pub at: String,
    /// Bits that the inputs gave in a second.
    pub captured_bps: u64,
    /// Bits of blocks that went out in a second, retransmissions included.
    pub sent_bps: u64,
    /// Bits of blocks that came in a second.
    pub received_bps: u64,
    /// Bytes that wait in the spool.
    pub waiting_bytes: u64,
    /// Frames missing now.
    pub missing_frames: u64,
}

/// The rows, and what the next one is counted from.
#[derive(Debug, Default)]
pub(super) struct History {
    rows: VecDeque<Arc<HistoryRow>>,
    before: Option<(Instant, Totals)>,
}

/// Bytes since the node started.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    captured: u64,
    sent: u64,
    received: u64,
}

/// Ten minutes.
const ROWS: usize = 600;

impl Totals {
    fn of(status: &NodeStatus) -> Self {
        let mut totals = Self::default();
        if let Some(station) = &status.station {
            totals.captured = station.channels.iter().map(|channel| channel.bytes).sum();
            let paths = station.destinations.iter().flat_map(|one| &one.line.paths);
            totals.sent = paths.map(|path| path.bytes_sent).sum();
        }
        if let Some(centre) = &status.centre {
            totals.received = centre.stations.iter().map(|one| one.bytes_delivered).sum();
        }
        totals
    }
}

impl History {
    /// Adds the row of a look.
    pub(super) fn add(&mut self, now: Instant, utc: Utc, status: &NodeStatus) {
        let totals = Totals::of(status);
        let (at, before) = self.before.replace((now, totals)).unwrap_or((now, totals));
        let span = now.since(at);
        // A session that was set up again counts from zero.
        let rate = |new: u64, old: u64| per_second(new.saturating_sub(old), span);
        let row = HistoryRow {
            at: utc.to_string(),
            captured_bps: rate(totals.captured, before.captured),
            sent_bps: rate(totals.sent, before.sent),
            received_bps: rate(totals.received, before.received),
            waiting_bytes: status.station.as_ref().map_or(0, |station| station.spool.bytes),
            missing_frames: status
                .centre
                .as_ref()
                .map_or(0, |centre| centre.products.gaps.missing_frames),
        };
        if self.rows.len() == ROWS {
            self.rows.pop_front();
        }
        self.rows.push_back(Arc::new(row));
    }

    /// All rows, oldest first.
    pub(super) fn rows(&self) -> Vec<Arc<HistoryRow>> {
        self.rows.iter().cloned().collect()
    }
}

fn per_second(bytes: u64, span: Duration) -> u64 {
    let bits = u128::from(bytes) * 8 * 1_000_000_000;
    let rate = bits.checked_div(u128::from(span.as_nanos())).unwrap_or(0);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{ChannelStatus, StationStatus};

    #[test]
    fn rows_have_the_rates_of_their_second_and_ten_minutes_are_kept() {
        let mut history = History::default();
        for second in 0..700_u64 {
            // The input starts anew at 650.
            let bytes = if second < 650 { second * 1_000 } else { 5 };
            let channel = ChannelStatus { bytes, ..ChannelStatus::default() };
            let station = StationStatus { channels: vec![channel], ..StationStatus::default() };
            let status = NodeStatus { station: Some(station), ..NodeStatus::default() };
            let now = Instant::ZERO + Duration::from_secs(second);
            history.add(now, Utc::from_micros(second as i64 * 1_000_000), &status);
        }
        let rows = history.rows();
        let rates: Vec<u64> = rows.iter().map(|row| row.captured_bps).collect();
        assert_eq!((rates.len(), rates[0], rates[549]), (600, 8_000, 8_000));
        assert_eq!(&rates[550..], [0; 50]);
    }
}
