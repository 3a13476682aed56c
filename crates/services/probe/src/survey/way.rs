//! One way of a line, from a stream of datagrams at half of what it can carry.

use super::rate::Available;
use super::{HISTOGRAM_BINS, MILLIS};
use crate::account::StreamAccount;
use crate::clock::{PingComparison, ahead_at};
use crate::stats::{Bin, LossProcess, ReorderingStats, Spread, histogram};
use crate::stream::{StreamDirection, Trace};
use serde::Serialize;
use skyhaul_units::{ByteCount, Rate};

/// What is known of one way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WayEstimate {
    /// What it has to spare.
    pub available: Available,
    /// Longest UDP payload that passes unfragmented.
    pub payload_max: u64,
    /// Path MTU: that and the headers of IP and UDP.
    pub path_mtu: u64,
    /// The stream that the rest is of.
    pub stream: StreamShape,
    /// Its totals, named as iperf3 names them.
    pub sum: Sum,
    /// One-way delay in milliseconds.
    pub one_way_ms: Spread,
    /// The same by how often.
    pub one_way_histogram_ms: Vec<Bin>,
    /// What kind of process loses datagrams.
    pub loss: LossProcess,
    /// What came out of order.
    pub reordering: ReorderingStats,
    /// Where datagrams went.
    pub account: StreamAccount,
    /// By how much each left later than planned, in microseconds.
    pub pacing_error_us: Spread,
    /// The stream's datagrams one by one.
    #[serde(skip)]
    pub trace: Trace,
    /// One-way delay of each arrival, in nanoseconds.
    #[serde(skip)]
    pub one_way: Vec<i64>,
}

/// A stream's size and spacing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StreamShape {
    /// UDP payload of a datagram.
    pub payload: u64,
    /// Microseconds between two datagrams.
    pub spacing_us: f64,
}

/// Totals of a stream, named as in iperf3's JSON.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sum {
    /// Length of the stream.
    pub seconds: f64,
    /// Payload received.
    pub bytes: u64,
    /// Payload received over the time in which it came.
    pub bits_per_second: f64,
    /// Smoothed variation of the delay (RFC 3550 6.4.1).
    pub jitter_ms: f64,
    /// Datagrams that are missing.
    pub lost_packets: u64,
    /// Datagrams sent.
    pub packets: u64,
    /// The part missing.
    pub lost_percent: f64,
    /// Datagrams that came out of order.
    pub out_of_order: u64,
    /// Datagrams that came again.
    pub duplicates: u64,
}

impl Sum {
    /// Of a stream.
    pub fn of(trace: &Trace) -> Self {
        let received = trace.arrivals.len() as u64;
        let packets = u64::from(trace.offered);
        let lost_packets = packets.saturating_sub(received);
        Self {
            seconds: trace.spec.time().as_secs_f64(),
            bytes: received * trace.spec.payload.as_u64(),
            bits_per_second: trace.received_rate().as_bps() as f64,
            jitter_ms: jitter(&trace.apparent_delays()) * MILLIS,
            lost_packets,
            packets,
            lost_percent: if packets == 0 {
                0.0
            } else {
                lost_packets as f64 * 100.0 / packets as f64
            },
            out_of_order: ReorderingStats::of(trace.arrivals.iter().map(|arrival| arrival.seq))
                .reordered,
            duplicates: u64::from(trace.duplicates),
        }
    }
}

impl WayEstimate {
    pub(super) fn new(
        trace: Trace,
        available: Available,
        payload_max: ByteCount,
        headers: ByteCount,
        comparison: &PingComparison,
    ) -> Self {
        let one_way = one_way(&trace, comparison);
        Self {
            available,
            payload_max: payload_max.as_u64(),
            path_mtu: (payload_max + headers).as_u64(),
            stream: StreamShape {
                payload: trace.spec.payload.as_u64(),
                spacing_us: trace.spec.spacing.as_secs_f64() * 1e6,
            },
            sum: Sum::of(&trace),
            one_way_ms: Spread::of(&one_way, MILLIS),
            one_way_histogram_ms: histogram(&one_way, MILLIS, HISTOGRAM_BINS),
            loss: LossProcess::of(&trace.missing()),
            reordering: ReorderingStats::of(trace.arrivals.iter().map(|arrival| arrival.seq)),
            account: StreamAccount::of(&trace),
            pacing_error_us: Spread::of(&trace.pacing_errors(), 1e-3),
            one_way,
            trace,
        }
    }

    /// What is to be known about this way.
    pub(super) fn notes(&self, name: &str, rate_max: Rate, far_max: Rate) -> Vec<String> {
        let mut notes = Vec::new();
        if self.available.is_at_least {
            let whose = if rate_max >= far_max {
                "--max-rate of the far end"
            } else {
                "--max-rate, or what this machine can do"
            };
            notes.push(format!(
                "{name}: nothing faster than {rate_max} was tried ({whose}); the line may carry \
                more"
            ));
        }
        let notes_of_account = self.account.notes.iter().map(|note| format!("{name}: {note}"));
        notes.extend(notes_of_account);
        notes
    }
}

/// One-way delays in nanoseconds, with the difference of the clocks taken out.
pub(crate) fn one_way(trace: &Trace, comparison: &PingComparison) -> Vec<i64> {
    // Worked out once: the skew is found among all pings.
    let (best, skew) = (comparison.best(), comparison.skew_ppm());
    let of = |arrival: &crate::stream::ProbeArrival| {
        let apparent = arrival.arrived.as_nanos().saturating_sub(arrival.sent.as_nanos());
        match trace.direction {
            StreamDirection::Up => apparent.saturating_sub(ahead_at(best, skew, arrival.sent)),
            StreamDirection::Down => apparent.saturating_add(ahead_at(best, skew, arrival.arrived)),
        }
    };
    trace.arrivals.iter().map(of).collect()
}

/// RFC 3550 6.4.1, in nanoseconds, at the end of the stream.
pub(crate) fn jitter(delays: &[i64]) -> f64 {
    delays.windows(2).fold(0.0, |jitter, pair| {
        let change = pair[1].saturating_sub(pair[0]).unsigned_abs() as f64;
        jitter + (change - jitter) / 16.0
    })
}

#[cfg(test)]
mod tests {
    use super::jitter;

    #[test]
    fn jitter_settles_at_the_mean_change_of_the_delay() {
        let delays: Vec<i64> = (0..1_000).map(|n| if n % 2 == 0 { 0 } else { 500 }).collect();
        assert!((jitter(&delays) - 500.0).abs() < 1e-6);
        assert!(jitter(&[3; 9]) == 0.0 && jitter(&[]) == 0.0);
    }
}
