//! A picture of a line in about a minute: round trip, rate, loss, order and path MTU, each way.

mod rate;
mod way;

pub use rate::{Available, Train};
pub use way::{StreamShape, Sum, WayEstimate};
pub(crate) use way::{jitter, one_way};

use crate::clock::PingComparison;
use crate::near::{NearError, ProbeClient, ProbeIo};
use crate::stats::{Bin, Spread, histogram};
use crate::stream::{Spec, StreamDirection};
pub(crate) use rate::{TrainPlan, find_rate};
use serde::Serialize;
use skyhaul_units::{ByteCount, Duration, Rate};

/// What is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurveyPlan {
    /// How long it takes, about; the line's own waits come on top.
    pub time: Duration,
    /// No stream is faster, in UDP payload.
    pub rate_max: Rate,
    /// The longest UDP payload that is tried.
    pub payload_max: ByteCount,
    /// IP and UDP headers of a datagram: 28 bytes for IPv4, 48 for IPv6.
    pub headers: ByteCount,
}

/// What a survey found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Survey {
    /// How long it took.
    pub seconds: f64,
    /// Round trip of the idle line in milliseconds.
    pub round_trip_ms: Spread,
    /// The same by how often.
    pub round_trip_histogram_ms: Vec<Bin>,
    /// Questions that were not answered while the line was idle, and all of them.
    pub pings_lost: [u64; 2],
    /// What is known of the two clocks.
    pub clocks: ClockOffset,
    /// From here to there.
    pub up: WayEstimate,
    /// From there to here.
    pub down: WayEstimate,
    /// Rate × shortest round trip, of the faster way.
    pub bandwidth_delay_bytes: u64,
    /// What is to be known about this.
    pub notes: Vec<String>,
}

/// The far end's clock against ours.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClockOffset {
    /// By how much theirs is ahead.
    pub ahead_ms: f64,
    /// How far that may be wrong either way, and with it each one-way delay: half of the shortest
    /// round trip.
    pub uncertainty_ms: f64,
    /// How much faster theirs runs, in parts per million, where the survey was long enough to tell.
    pub skew_ppm: Option<f64>,
}

/// Surveys the line; `tell` receives each step as it begins.
///
/// # Errors
/// The line cannot be used, or the far end does not allow it or stopped answering.
pub fn survey<L: ProbeIo>(
    near: &mut ProbeClient<L>,
    plan: &SurveyPlan,
    tell: &mut dyn FnMut(&str),
) -> Result<Survey, NearError> {
    let begin = near.now();
    tell("round trip of the idle line");
    near.ping_for(plan.time.scaled(15, 100), PING_SPACING)?;
    let idle: Vec<i64> = near.comparison().pings().map(|ping| signed(ping.round_trip())).collect();
    let (asked, answered) = near.comparison().counts();
    if answered == 0 {
        return Err(NearError::Silent(near.now().since(begin)));
    }
    tell("longest datagrams");
    let payloads = near.payloads(plan.payload_max)?;
    let payload = payloads.up.min(payloads.down).min(PAYLOAD_USUAL);
    let mut notes = Vec::new();
    let rate_max = plan.rate_max.min(near.limits().rate);
    let train = plan.time.scaled(2, 100).max(TRAIN_MIN);
    tell("rate up");
    let trains = TrainPlan { payload, headers: plan.headers, rate_max };
    let rate_up = find_rate(near, StreamDirection::Up, trains, train)?;
    tell("rate down");
    let rate_down = find_rate(near, StreamDirection::Down, trains, train)?;
    let mut ways = Vec::new();
    for (direction, rate, longest) in [
        (StreamDirection::Up, rate_up, payloads.up),
        (StreamDirection::Down, rate_down, payloads.down),
    ] {
        tell(if direction == StreamDirection::Up {
            "loss and delay up"
        } else {
            "loss and delay down"
        });
        let stream_rate = rate.rate().scaled(STREAM_PERCENT, 100).max(RATE_FIRST);
        let most = near.limits().datagrams.min(STREAM_DATAGRAMS_MAX);
        let time =
            stream_time(plan.time, near.now().since(begin), if ways.is_empty() { 2 } else { 1 });
        // Slower rather than shorter, where there would be too many.
        let spacing = stream_rate.time_for(payload).max(time / u64::from(most.max(1)));
        let count = u32::try_from(time.as_nanos() / spacing.as_nanos().max(1))
            .unwrap_or(most)
            .clamp(1, most);
        let trace = near.stream(direction, Spec { payload, spacing, count })?;
        ways.push(WayEstimate::new(trace, rate, longest, plan.headers, near.comparison()));
    }
    let (down, up) = (ways.pop(), ways.pop());
    let (Some(up), Some(down)) = (up, down) else { return Err(NearError::Silent(Duration::ZERO)) };
    let clocks = ClockOffset::of(near.comparison());
    notes.extend(clocks.note());
    for (way, name) in [(&up, "up"), (&down, "down")] {
        notes.extend(way.notes(name, rate_max, near.limits().rate));
    }
    let round_trip_ms = Spread::of(&idle, MILLIS);
    let fastest = Rate::from_bps(up.available.bits_per_second.max(down.available.bits_per_second));
    let shortest =
        idle.iter().min().copied().and_then(|nanos| u64::try_from(nanos).ok()).unwrap_or(0);
    Ok(Survey {
        seconds: near.now().since(begin).as_secs_f64(),
        round_trip_histogram_ms: histogram(&idle, MILLIS, HISTOGRAM_BINS),
        round_trip_ms,
        pings_lost: [asked.saturating_sub(answered), asked],
        bandwidth_delay_bytes: (fastest * Duration::from_nanos(shortest)).as_u64(),
        clocks,
        up,
        down,
        notes,
    })
}

/// What waits before a line that is full.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueEstimate {
    /// How long, in milliseconds.
    pub ms: f64,
    /// How much, at the rate that is available, with IP headers.
    pub bytes: u64,
}

impl QueueEstimate {
    /// For people.
    pub fn words(&self) -> String {
        format!("up to {:.0} ms, {}", self.ms, crate::report::bytes(self.bytes))
    }
}

impl Survey {
    /// By how much the longest round trip beside the fastest train exceeds the shortest of the idle
    /// line; `None` where no train filled the way.
    pub fn queue(&self, way: &WayEstimate) -> Option<QueueEstimate> {
        let loaded = &way.available.loaded_round_trip_ms;
        let ms = loaded.max - self.round_trip_ms.min;
        (!way.available.is_at_least && loaded.count > 0 && ms > 0.0).then(|| QueueEstimate {
            ms,
            bytes: (way.available.ip_bits_per_second as f64 * ms / 8e3) as u64,
        })
    }
}

impl ClockOffset {
    /// From pings.
    pub fn of(comparison: &PingComparison) -> Self {
        let (ahead, error) = comparison.ahead().unwrap_or_default();
        Self {
            ahead_ms: ahead as f64 * MILLIS,
            uncertainty_ms: error.as_secs_f64() * 1e3,
            skew_ppm: comparison.skew_ppm(),
        }
    }

    /// What to say of clocks that differ by more than a measurement should bear.
    pub fn note(&self) -> Option<String> {
        let seconds = self.ahead_ms.abs() / 1e3;
        (seconds >= 1.0).then(|| {
            let side = if self.ahead_ms > 0.0 { "ahead of" } else { "behind" };
            let amount = if seconds >= 3_600.0 {
                format!("{:.1} hours", seconds / 3_600.0)
            } else {
                format!("{seconds:.1} s")
            };
            format!(
                "the far end's clock is {amount} {side} this one; one-way delays are corrected for \
                it, but set the clocks (NTP, PTP)"
            )
        })
    }
}

pub(crate) fn signed(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

/// How long a stream may be when `spent` of the whole is over and so many streams are still to
/// come: a quarter, and what the waits of the line have left where that is less.
fn stream_time(whole: Duration, spent: Duration, to_come: u64) -> Duration {
    let quarter = whole.scaled(STREAM_SHARE_PERCENT, 100);
    let left = whole.saturating_sub(spent).scaled(STREAM_LEFT_PERCENT, 100) / to_come;
    left.clamp(STREAM_MIN.min(quarter), quarter)
}

/// From nanoseconds to milliseconds.
pub(crate) const MILLIS: f64 = 1e-6;

/// Fields of a histogram of delays.
pub(crate) const HISTOGRAM_BINS: usize = 40;

/// While the line is idle.
const PING_SPACING: Duration = Duration::from_millis(50);

/// The slowest stream.
const RATE_FIRST: Rate = Rate::from_bps(200_000);

/// Streams for loss and delay take so much of what is available: enough to be seen, too little to
/// queue.
const STREAM_PERCENT: u64 = 50;

/// The part of the time that a stream for loss and delay takes.
const STREAM_SHARE_PERCENT: u64 = 25;

/// The part of what is left that streams take; the rest is for waiting and for fetching their
/// arrivals.
const STREAM_LEFT_PERCENT: u64 = 80;

/// A shorter stream says too little of the loss, even where the time is over.
const STREAM_MIN: Duration = Duration::from_secs(1);

/// Datagrams of such a stream: a few seconds to fetch their arrivals.
const STREAM_DATAGRAMS_MAX: u32 = 60_000;

/// A shorter train would be over before a receiver of a long line has settled.
const TRAIN_MIN: Duration = Duration::from_millis(300);

/// Datagrams of streams are no longer even where longer ones would fit: what programs send.
const PAYLOAD_USUAL: ByteCount = ByteCount::new(1_400);
