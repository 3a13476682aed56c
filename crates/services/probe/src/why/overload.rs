//! Properties of the bottleneck, from one stream: how long its queue is, and whether it spaces
//! datagrams at its own rate.

use super::evidence::{DelayShape, DropPlaces, LossShape, OtherTraffic, StreamResult};
use super::waver::{floors, follows, quantile, wavers};
use crate::account::StreamAccount;
use crate::stats::{Character, LossProcess, ReorderingStats};
use crate::stream::{ProbeArrival, Trace};
use skyhaul_units::Duration;

impl StreamResult {
    /// Of a stream.
    pub(super) fn of(trace: &Trace) -> Self {
        let account = StreamAccount::of(trace);
        let host = account.receiving_host;
        // Drops of a host that does not count them look like loss on the path.
        let untold = u64::try_from(account.unexplained).unwrap_or(0);
        let offered = trace.spec.rate().as_bps();
        let sent = trace.sent_rate().as_bps();
        let missing = trace.missing();
        let losses = LossProcess::of(&missing);
        let delays = Delays::of(trace);
        let order = ReorderingStats::of(trace.arrivals.iter().map(|arrival| arrival.seq));
        Self {
            offered_bps: offered,
            left: if offered == 0 || sent == 0 {
                0.0
            } else {
                (sent as f64 / offered as f64).min(1.0)
            },
            received_bps: trace.received_rate().as_bps(),
            datagrams: account.offered,
            drops: DropPlaces {
                lost_on_path: account.lost_on_path + untold,
                dropped_by_host: host.card + host.softnet,
                dropped_by_socket: host.socket,
            },
            delay: DelayShape {
                queue_ms: delays.queue() as f64 / 1e6,
                late_queue_ms: delays.late_queue() as f64 / 1e6,
                jitter_ms: delays.jitter() as f64 / 1e6,
                wavers_ms: wavers(&delays.floors) as f64 / 1e6,
                follows: delays.follows(trace.spec.spacing),
            },
            stretch: stretch(trace),
            losses: LossShape {
                in_bursts: losses.character == Character::Bursts,
                burst_mean: losses.run_mean,
                burst_longest: losses.runs.iter().map(|(length, _)| *length).max().unwrap_or(0),
                lost_in_queue: delays.lost_in_queue(&missing),
            },
            reordered: order.ppm as f64 / 1e6,
            reordered_by: order.extent_max,
        }
    }

    /// What really left of it.
    fn left_bps(&self) -> f64 {
        self.offered_bps as f64 * self.left
    }
}

impl OtherTraffic {
    /// Of two streams above a line's rate, the second so much faster that it takes a greater part
    /// of what others use as well. A queue serves whoever comes: of `o` offered beside `x` of
    /// others, a line of `c` carries `c·o / (o + x)`.
    pub(super) fn of(slow: &StreamResult, fast: &StreamResult) -> Option<Self> {
        let (offered, received) = (
            [slow, fast].map(StreamResult::left_bps),
            [slow, fast].map(|load| load.received_bps as f64),
        );
        let is_apart = offered[1] > offered[0] * FASTER_LEAST;
        // What a host drops is no word about the line.
        let is_host =
            |load: &StreamResult| load.host_drops() + load.socket_drops() > HOST_DROPS_MOST;
        if !is_apart
            || is_host(slow)
            || is_host(fast)
            || received.iter().chain(&offered).any(|rate| *rate <= 0.0)
        {
            return None;
        }
        let grows = (1.0 / received[0] - 1.0 / received[1]) / (1.0 / offered[0] - 1.0 / offered[1]);
        let line = 1.0 / (1.0 / received[0] - grows / offered[0]);
        let others = grows * line;
        let is_sound =
            line.is_finite() && line > 0.0 && line < received[1] * LINE_MOST && others < line;
        is_sound.then(|| Self { line_bps: line as u64, others_bps: others.max(0.0) as u64 })
    }
}

/// The longest time in which nothing of a stream came through.
pub(super) fn gap(trace: &Trace) -> Duration {
    let missing = trace.missing();
    let run = missing.split(|is_missing| !is_missing).map(<[bool]>::len).max().unwrap_or(0);
    trace.spec.spacing * run as u64
}

/// One-way delays of a stream in the order of sending, wrong by what the clocks differ, which falls
/// out.
struct Delays {
    /// Numbers of those that arrived, and their delays in nanoseconds.
    arrived: Vec<(u32, i64)>,
    nanos: Vec<i64>,
    /// The shortest of each part.
    floors: Vec<i64>,
}

impl Delays {
    fn of(trace: &Trace) -> Self {
        let seqs = trace.arrivals.iter().map(|arrival| arrival.seq);
        let mut arrived: Vec<(u32, i64)> = seqs.zip(trace.apparent_delays()).collect();
        arrived.sort_unstable();
        let nanos: Vec<i64> = arrived.iter().map(|(_, delay)| *delay).collect();
        let floors = floors(&nanos, PARTS);
        Self { arrived, nanos, floors }
    }

    fn queue(&self) -> i64 {
        quantile(&self.floors, 90) - quantile(&self.floors, 0)
    }

    fn late_queue(&self) -> i64 {
        let late = &self.floors[self.floors.len() / 2..];
        if late.is_empty() { 0 } else { quantile(late, 50) - quantile(&self.floors, 0) }
    }

    fn jitter(&self) -> i64 {
        let size = self.nanos.len().div_ceil(PARTS).max(1);
        let parts = self.nanos.chunks(size).flat_map(|part| {
            let least = part.iter().min().copied().unwrap_or(0);
            part.iter().map(move |delay| delay - least)
        });
        quantile(&parts.collect::<Vec<_>>(), 90)
    }

    fn follows(&self, spacing: Duration) -> f64 {
        let lag = MEMORY.as_nanos() / spacing.as_nanos().max(1);
        follows(&self.nanos, usize::try_from(lag).unwrap_or(usize::MAX))
    }

    /// The part of the losses that follow a datagram whose delay is near the longest.
    fn lost_in_queue(&self, missing: &[bool]) -> f64 {
        let (least, most) = (quantile(&self.nanos, 0), quantile(&self.nanos, 98));
        let high = least + (most - least) / 100 * HIGH_PERCENT;
        let (mut lost, mut high_lost) = (0u64, 0u64);
        for (place, (seq, delay)) in self.arrived.iter().enumerate() {
            let next =
                self.arrived.get(place + 1).map_or(missing.len(), |(next, _)| *next as usize);
            let run = next.saturating_sub(*seq as usize + 1) as u64;
            lost += run;
            high_lost += if *delay >= high { run } else { 0 };
        }
        if lost == 0 { 0.0 } else { high_lost as f64 / lost as f64 }
    }
}

/// Parts of a stream: a fifth of a second each in a stream of five seconds, long enough for each to
/// have a shortest delay, short enough for a queue to show.
const PARTS: usize = 24;
/// Longer than what jitter of 50 ms gathers of a stream, shorter than most queues take to come and
/// go.
const MEMORY: Duration = Duration::from_millis(60);
/// Per cent of the way from the shortest delay to the longest. A queue overflows only near its top;
/// random losses lie above this in four of ten cases.
const HIGH_PERCENT: i64 = 60;
/// Factor. What two rates bring differs by chance; only where one is 1.6 times the other does the
/// difference say something of others.
const FASTER_LEAST: f64 = 1.6;
/// Part of the datagrams of a stream. A host that drops more falsifies what the line carried.
const HOST_DROPS_MOST: f64 = 0.01;
/// Factor on what came of the faster stream. A line rate computed beyond it comes from chance, not
/// from the line.
const LINE_MOST: f64 = 1.6;

/// Mean time between arrivals over that between departures, of datagrams that follow each other and
/// both arrived. The longest gaps at arrival, one in fifty, are left out: those are pauses.
fn stretch(trace: &Trace) -> f64 {
    let follows = |pair: &&[ProbeArrival]| pair[0].seq + 1 == pair[1].seq;
    let gap = |pair: &[ProbeArrival]| {
        let arrived = pair[1].arrived.as_nanos().saturating_sub(pair[0].arrived.as_nanos());
        (arrived, pair[1].sent.as_nanos().saturating_sub(pair[0].sent.as_nanos()))
    };
    let mut gaps: Vec<(i64, i64)> = trace.arrivals.windows(2).filter(follows).map(gap).collect();
    gaps.sort_unstable();
    gaps.truncate(gaps.len() - gaps.len() / 50);
    let sums =
        gaps.iter().fold((0.0, 0.0), |sum, gap| (sum.0 + gap.0 as f64, sum.1 + gap.1 as f64));
    if sums.1 > 0.0 { sums.0 / sums.1 } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostCounters;
    use crate::stream::{Spec, StreamDirection};
    use skyhaul_units::{ByteCount, Duration, Utc};

    fn trace(arrivals: impl Iterator<Item = (u32, i64)>, offered: u32) -> Trace {
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
                .map(|(seq, arrived)| ProbeArrival {
                    seq,
                    sent: at(i64::from(seq) * 1_000),
                    arrived: at(arrived),
                })
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
        let policed =
            StreamResult::of(&trace(passing.clone().map(|seq| (seq, i64::from(seq) * 1_000)), 900));
        let queued = StreamResult::of(&trace(
            passing.zip(0..).map(|(seq, place)| (seq, place * 1_500)),
            900,
        ));
        assert!((policed.stretch - 1.0).abs() < 1e-9 && (queued.stretch - 1.5).abs() < 1e-9);
        assert!(policed.delay.queue_ms < 0.01 && (policed.loss() - 1.0 / 3.0).abs() < 0.01);
    }

    #[test]
    fn nothing_that_arrived_says_nothing() {
        let load = StreamResult::of(&trace(core::iter::empty(), 10));
        assert_eq!((load.drops.lost_on_path, load.delay.queue_ms, load.stretch), (10, 0.0, 1.0));
    }

    #[test]
    fn a_queue_delays_all_of_a_part_and_jitter_and_reordering_only_some() {
        let at = |delay: fn(i64) -> i64| {
            let mut arrivals: Vec<(u32, i64)> = (0..2_400u32)
                .map(|seq| (seq, i64::from(seq) * 1_000 + delay(seq.into())))
                .collect();
            arrivals.sort_unstable_by_key(|(_, arrived)| *arrived);
            StreamResult::of(&trace(arrivals.into_iter(), 2_400))
        };
        // One in five is 60 ms late.
        let late = at(|seq| if seq % 5 == 0 { 60_000 } else { 0 });
        assert!(
            late.delay.queue_ms < 1.0 && late.delay.jitter_ms > 50.0 && late.reordered > 0.1,
            "{late:?}"
        );
        assert!((40..=60).contains(&late.reordered_by), "{late:?}");
        let jitter = at(|seq| (seq * seq * 7_919 + seq * 31) % 1_009 * 40);
        assert!(
            jitter.delay.queue_ms < 3.0
                && jitter.delay.jitter_ms > 30.0
                && jitter.delay.follows < 0.3,
            "{jitter:?}"
        );
        let queue = at(|seq| (seq % 800 - 400).abs() * 200);
        assert!(
            queue.delay.queue_ms > 50.0
                && queue.delay.wavers_ms > 40.0
                && queue.delay.follows > 0.5,
            "{queue:?}"
        );
        assert!(queue.reordered < 0.05, "{queue:?}");
    }

    #[test]
    fn losses_of_a_full_queue_come_where_the_delay_is_longest_and_bursts_have_a_length() {
        let full = (0..2_000u32)
            .filter(|seq| seq % 200 < 190)
            .map(|seq| (seq, i64::from(seq) * 1_000 + i64::from(seq % 200) * 500));
        let load = StreamResult::of(&trace(full, 2_000));
        assert!(load.losses.lost_in_queue > 0.9 && load.losses.burst_longest == 10, "{load:?}");
        assert!(
            (load.losses.burst_mean - 10.0).abs() < 1e-9
                && gap(&trace((0..4).map(|seq| (seq, 0)), 10)) == Duration::from_millis(6)
        );
    }

    #[test]
    fn what_comes_through_grows_with_what_is_offered_where_others_use_the_line() {
        let load = |offered: f64, others: f64| {
            let received =
                if offered + others > 10.0 { 10.0 * offered / (offered + others) } else { offered };
            StreamResult {
                offered_bps: (offered * 1e6) as u64,
                left: 1.0,
                received_bps: (received * 1e6) as u64,
                ..StreamResult::default()
            }
        };
        let near = |found: u64, wanted: f64| (found as f64 / 1e6 - wanted).abs() < 0.1;
        let shared = OtherTraffic::of(&load(12.0, 6.0), &load(36.0, 6.0)).unwrap();
        assert!(near(shared.line_bps, 10.0) && near(shared.others_bps, 6.0), "{shared:?}");
        let alone = OtherTraffic::of(&load(15.0, 0.0), &load(40.0, 0.0)).unwrap();
        assert!(near(alone.line_bps, 10.0) && alone.others_bps < 10, "{alone:?}");
        assert_eq!(OtherTraffic::of(&load(15.0, 0.0), &load(16.0, 0.0)), None);
        assert_eq!(OtherTraffic::of(&StreamResult::default(), &StreamResult::default()), None);
    }
}
