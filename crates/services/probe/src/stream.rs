//! A stream of datagrams of one size at one spacing, and the outcome of each.

use crate::host::HostCounters;
use serde::Serialize;
use skyhaul_units::{ByteCount, Duration, Rate, Utc};

/// Which way a stream goes, seen from the near end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamDirection {
    /// From the near end to the far one.
    Up,
    /// From the far end to the near one.
    Down,
}

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// UDP payload of each datagram.
    pub payload: ByteCount,
    /// From the beginning of one to the beginning of the next.
    pub spacing: Duration,
    /// How many.
    pub count: u32,
}

impl Spec {
    /// Datagrams of `payload` that make `rate` for `time`, at least one and `most` at the most.
    pub fn at(rate: Rate, payload: ByteCount, time: Duration, most: u32) -> Self {
        let spacing = rate.time_for(payload).max(Duration::from_nanos(1));
        let count = (time.as_nanos() / spacing.as_nanos()).clamp(1, u64::from(most.max(1)));
        Self { payload, spacing, count: u32::try_from(count).unwrap_or(u32::MAX) }
    }

    /// Of UDP payload.
    pub const fn rate(&self) -> Rate {
        Rate::over(self.payload, self.spacing)
    }

    /// From the first datagram to the end of the last one's spacing.
    pub fn time(&self) -> Duration {
        self.spacing * u64::from(self.count)
    }
}

/// A datagram that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeArrival {
    /// Its number in the stream.
    pub seq: u32,
    /// When it left, by the sender's clock.
    pub sent: Utc,
    /// When it came, by the receiver's clock.
    pub arrived: Utc,
}

/// What became of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Which way.
    pub direction: StreamDirection,
    /// What was asked for.
    pub spec: Spec,
    /// Datagrams that the sender handed to its system, or had refused by it.
    pub offered: u32,
    /// Datagrams that the sender's system refused.
    pub refused: u32,
    /// Different datagrams, in the order of their arrival.
    pub arrivals: Vec<ProbeArrival>,
    /// Datagrams that came again.
    pub duplicates: u32,
    /// What the sending host counted in this time.
    pub sender: HostCounters,
    /// What the receiving host counted in this time.
    pub receiver: HostCounters,
}

impl Trace {
    /// Whether each datagram is missing, by sequence number.
    pub fn missing(&self) -> Vec<bool> {
        let mut missing = vec![true; self.offered as usize];
        for arrival in &self.arrivals {
            if let Some(place) = missing.get_mut(arrival.seq as usize) {
                *place = false;
            }
        }
        missing
    }

    /// The part of the datagrams offered that did not arrive, refused ones left out.
    pub fn loss(&self) -> f64 {
        let sent = u64::from(self.offered.saturating_sub(self.refused));
        let lost = sent.saturating_sub(self.arrivals.len() as u64);
        if sent == 0 { 0.0 } else { lost as f64 / sent as f64 }
    }

    /// Payload received over the time from the first arrival to the last: what passed the narrowest
    /// place (the UDPmon definition). Zero where fewer than two came.
    pub fn received_rate(&self) -> Rate {
        rate_between(self.spec.payload, self.arrivals.iter().map(|arrival| arrival.arrived))
    }

    /// Payload sent, over the time in which the sender sent it; of those that arrived.
    pub fn sent_rate(&self) -> Rate {
        let (first, last) = ends(self.arrivals.iter().map(|arrival| (arrival.sent, arrival.seq)));
        let Some((first, last)) = first.zip(last) else { return Rate::ZERO };
        let between = u64::from(last.1.saturating_sub(first.1));
        Rate::over(
            ByteCount::new(self.spec.payload.as_u64().saturating_mul(between)),
            last.0.since(first.0),
        )
    }

    /// How much later than planned each datagram left, in nanoseconds, for those that arrived, by
    /// sequence number. A sender that was kept from running plans anew: the pause is an error of
    /// the datagram behind it, and of no other.
    pub fn pacing_errors(&self) -> Vec<i64> {
        let spacing = i64::try_from(self.spec.spacing.as_nanos()).unwrap_or(i64::MAX);
        let mut sent: Vec<(u32, i64)> =
            self.arrivals.iter().map(|arrival| (arrival.seq, arrival.sent.as_nanos())).collect();
        sent.sort_unstable();
        let pause = i64::try_from(CATCH_UP_MAX.as_nanos()).unwrap_or(i64::MAX);
        let mut plan = i64::MAX;
        sent.into_iter()
            .map(|(seq, at)| {
                let begin = at.saturating_sub(spacing.saturating_mul(i64::from(seq)));
                let late = begin.saturating_sub(plan);
                if plan == i64::MAX || late < 0 || late > pause {
                    plan = begin;
                }
                late.max(0)
            })
            .collect()
    }

    /// Time each datagram was under way, in nanoseconds, as the two clocks say: wrong by what they
    /// differ.
    pub fn apparent_delays(&self) -> Vec<i64> {
        let delay = |arrival: &ProbeArrival| {
            arrival.arrived.as_nanos().saturating_sub(arrival.sent.as_nanos())
        };
        self.arrivals.iter().map(delay).collect()
    }

    /// By how much the median delay of the last tenth exceeds that of the first: a queue that grew.
    /// Zero for fewer than twenty arrivals.
    pub fn growth(&self) -> Duration {
        let delays = self.apparent_delays();
        let part = delays.len() / 10;
        if part < 2 {
            return Duration::ZERO;
        }
        let median = |part: &[i64]| {
            let mut part = part.to_vec();
            part.sort_unstable();
            part[part.len() / 2]
        };
        let grown = median(&delays[delays.len() - part..]).saturating_sub(median(&delays[..part]));
        Duration::from_nanos(u64::try_from(grown).unwrap_or(0))
    }
}

fn rate_between(payload: ByteCount, times: impl Iterator<Item = Utc>) -> Rate {
    let mut count = 0u64;
    let (first, last) = ends(times.inspect(|_| count += 1));
    let Some((first, last)) = first.zip(last) else { return Rate::ZERO };
    Rate::over(
        ByteCount::new(payload.as_u64().saturating_mul(count.saturating_sub(1))),
        last.since(first),
    )
}

/// The least and the greatest.
fn ends<T: Copy + Ord>(values: impl Iterator<Item = T>) -> (Option<T>, Option<T>) {
    values.fold((None, None), |(least, most), value| {
        (
            Some(least.map_or(value, |least: T| least.min(value))),
            Some(most.map_or(value, |most: T| most.max(value))),
        )
    })
}

/// A sender that is later than this goes on at its spacing from then; up to this it catches up,
/// because the system's scheduler makes it late all the time.
pub const CATCH_UP_MAX: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(arrivals: &[(u32, i64, i64)], offered: u32) -> Trace {
        let at = |micros| Utc::from_micros(micros);
        Trace {
            direction: StreamDirection::Up,
            spec: Spec {
                payload: ByteCount::new(1_000),
                spacing: Duration::from_millis(1),
                count: offered,
            },
            offered,
            refused: 0,
            arrivals: arrivals
                .iter()
                .map(|(seq, sent, arrived)| ProbeArrival {
                    seq: *seq,
                    sent: at(*sent),
                    arrived: at(*arrived),
                })
                .collect(),
            duplicates: 0,
            sender: HostCounters::default(),
            receiver: HostCounters::default(),
        }
    }

    #[test]
    fn rates_are_of_the_time_between_the_ends() {
        let trace = trace(&[(0, 0, 5_000), (1, 1_000, 7_000), (3, 3_000, 9_000)], 4);
        assert_eq!(trace.sent_rate(), Rate::from_mbps(8));
        assert_eq!(trace.received_rate(), Rate::from_mbps(4));
        assert_eq!(trace.missing(), [false, false, true, false]);
        assert!((trace.loss() - 0.25).abs() < 1e-12);
    }

    #[test]
    fn a_datagram_that_left_late_is_an_error_of_the_pacing() {
        let trace = trace(&[(0, 10, 0), (1, 1_010, 0), (2, 2_410, 0)], 3);
        assert_eq!(trace.pacing_errors(), [0, 0, 400_000]);
    }

    #[test]
    fn a_pause_is_one_error_and_not_one_of_all_that_follows() {
        let trace = trace(&[(2, 12_000, 0), (0, 0, 0), (1, 1_000, 0), (3, 13_010, 0)], 4);
        assert_eq!(trace.pacing_errors(), [0, 0, 10_000_000, 10_000]);
    }

    #[test]
    fn a_queue_that_grows_is_seen_in_the_delays() {
        let arrivals: Vec<_> =
            (0..100).map(|n| (n, i64::from(n) * 1_000, i64::from(n) * 2_000)).collect();
        assert_eq!(trace(&arrivals, 100).growth(), Duration::from_millis(90));
        assert_eq!(trace(&arrivals[..9], 100).growth(), Duration::ZERO);
    }
}
