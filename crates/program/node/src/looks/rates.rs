//! Rates and depths of a node as a whole.

use crate::status::NodeStatus;
use serde::Serialize;
use skyhaul_units::{Duration, Instant};

/// Rates and depths of one second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct NodeRates {
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

/// What the next rates are counted from.
#[derive(Debug, Default)]
pub(super) struct RateCounter(Option<(Instant, Totals)>);

/// Bytes since the node started.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    captured: u64,
    sent: u64,
    received: u64,
}

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

impl RateCounter {
    /// The rates since the last call.
    pub(super) fn rates(&mut self, now: Instant, status: &NodeStatus) -> NodeRates {
        let totals = Totals::of(status);
        let (at, before) = self.0.replace((now, totals)).unwrap_or((now, totals));
        let span = now.since(at);
        // A session that was set up again counts from zero.
        let rate = |new: u64, old: u64| per_second(new.saturating_sub(old), span);
        NodeRates {
            captured_bps: rate(totals.captured, before.captured),
            sent_bps: rate(totals.sent, before.sent),
            received_bps: rate(totals.received, before.received),
            waiting_bytes: status.station.as_ref().map_or(0, |station| station.spool.bytes),
            missing_frames: status
                .centre
                .as_ref()
                .map_or(0, |centre| centre.products.gaps.missing_frames),
        }
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
    fn rates_are_those_of_their_second_also_where_an_input_starts_anew() {
        let mut counter = RateCounter::default();
        let rates = [0, 1_000, 2_000, 5, 1_005].into_iter().enumerate().map(|(second, bytes)| {
            let channel = ChannelStatus { bytes, ..ChannelStatus::default() };
            let station = StationStatus { channels: vec![channel], ..StationStatus::default() };
            let status = NodeStatus { station: Some(station), ..NodeStatus::default() };
            let now = Instant::ZERO + Duration::from_secs(second as u64);
            counter.rates(now, &status).captured_bps
        });
        assert_eq!(rates.collect::<Vec<_>>(), [0, 8_000, 8_000, 0, 8_000]);
    }
}
