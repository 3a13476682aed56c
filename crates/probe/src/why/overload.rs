//! What a stream says of the place that held it back: how long its queue is, and whether it keeps a pace of its own.

use super::evidence::Load;
use crate::account::Account;
use crate::stats::{Character, LossProcess};
use crate::stream::{Arrival, Trace};

impl Load {
    /// Of a stream.
    pub(super) fn of(trace: &Trace) -> Self {
        let account = Account::of(trace);
        let host = account.receiving_host;
        // What a host that tells nothing dropped looks like the path's loss.
        let untold = u64::try_from(account.unexplained).unwrap_or(0);
        let offered = trace.spec.rate().as_bps();
        let sent = trace.sent_rate().as_bps();
        Self {
            offered_bps: offered,
            left: if offered == 0 || sent == 0 { 0.0 } else { (sent as f64 / offered as f64).min(1.0) },
            received_bps: trace.received_rate().as_bps(),
            datagrams: account.offered,
            lost_on_path: account.lost_on_path + untold,
            dropped_by_host: host.card + host.softnet,
            dropped_by_socket: host.socket,
            queue_ms: queue_nanos(trace) as f64 / 1e6,
            stretch: stretch(trace),
            in_bursts: LossProcess::of(&trace.missing()).character == Character::Bursts,
        }
    }
}

/// By how much nine in ten delays at most exceed the shortest. The clocks' difference falls out.
fn queue_nanos(trace: &Trace) -> i64 {
    let mut delays = trace.apparent_delays();
    delays.sort_unstable();
    let Some(first) = delays.first() else { return 0 };
    delays[delays.len() * 9 / 10].saturating_sub(*first)
}

/// Mean time between arrivals over that between departures, of datagrams that follow each other and both arrived. The longest
/// gaps at arrival, one in fifty, are left out: those are pauses.
fn stretch(trace: &Trace) -> f64 {
    let follows = |pair: &&[Arrival]| pair[0].seq + 1 == pair[1].seq;
    let gap = |pair: &[Arrival]| {
        let arrived = pair[1].arrived.as_nanos().saturating_sub(pair[0].arrived.as_nanos());
        (arrived, pair[1].sent.as_nanos().saturating_sub(pair[0].sent.as_nanos()))
    };
    let mut gaps: Vec<(i64, i64)> = trace.arrivals.windows(2).filter(follows).map(gap).collect();
    gaps.sort_unstable();
    gaps.truncate(gaps.len() - gaps.len() / 50);
    let sums = gaps.iter().fold((0.0, 0.0), |sum, gap| (sum.0 + gap.0 as f64, sum.1 + gap.1 as f64));
    if sums.1 > 0.0 { sums.0 / sums.1 } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostCounters;
    use crate::stream::{Direction, Spec};
    use skyhaul_units::{Bytes, Duration, Utc};

    fn trace(arrivals: impl Iterator<Item = (u32, i64)>, offered: u32) -> Trace {
        let at = |micros| Utc::from_micros(micros);
        Trace {
            direction: Direction::Up,
            spec: Spec { payload: Bytes::new(1_000), spacing: Duration::from_millis(1), count: offered },
            offered,
            refused: 0,
            arrivals: arrivals
                .map(|(seq, arrived)| Arrival { seq, sent: at(i64::from(seq) * 1_000), arrived: at(arrived) })
                .collect(),
            duplicates: 0,
            sender: HostCounters::default(),
            receiver: HostCounters::from_array([Some(0); HostCounters::COUNT]),
        }
    }

    #[test]
    fn a_queue_stretches_what_a_policer_leaves_as_it_was() {
        // Every third is dropped. A queue lets two through in the time of three.
        let passing = (0..900u32).filter(|seq| seq % 3 != 2);
        let policed = Load::of(&trace(passing.clone().map(|seq| (seq, i64::from(seq) * 1_000)), 900));
        let queued = Load::of(&trace(passing.zip(0..).map(|(seq, place)| (seq, place * 1_500)), 900));
        assert!((policed.stretch - 1.0).abs() < 1e-9 && (queued.stretch - 1.5).abs() < 1e-9);
        assert!(policed.queue_ms < 0.01 && (policed.loss() - 1.0 / 3.0).abs() < 0.01);
    }

    #[test]
    fn nothing_that_arrived_says_nothing() {
        let load = Load::of(&trace(core::iter::empty(), 10));
        assert_eq!((load.lost_on_path, load.queue_ms, load.stretch), (10, 0.0, 1.0));
    }
}
