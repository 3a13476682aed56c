//! Measures what a verdict needs of a line: at rest, below its rate, above it, and at rest again.

use super::evidence::{LineFound, OtherTraffic, StreamResult};
use super::overload::gap;
use super::steps::steps;
use crate::clock::Ping;
use crate::near::{NearError, ProbeClient, ProbeIo};
use crate::stream::{Spec, StreamDirection};
use crate::survey::{Available, TrainPlan, find_rate};
use skyhaul_units::{ByteCount, Duration, Rate};

/// What is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExaminePlan {
    /// The way that the data takes.
    pub direction: StreamDirection,
    /// How long it takes, about; the line's own waits come on top.
    pub time: Duration,
    /// No stream is faster, in UDP payload.
    pub rate_max: Rate,
    /// The longest UDP payload that is tried.
    pub payload_max: ByteCount,
    /// IP and UDP headers of a datagram: 28 bytes for IPv4, 48 for IPv6.
    pub headers: ByteCount,
}

/// Examines one way of a line; `tell` receives each step as it begins.
///
/// # Errors
/// The line cannot be used, or the far end does not allow it or stopped answering.
pub fn examine<L: ProbeIo>(
    near: &mut ProbeClient<L>,
    plan: &ExaminePlan,
    tell: &mut dyn FnMut(&str),
) -> Result<LineFound, NearError> {
    let rest = plan.time.scaled(REST_PERCENT, 100).max(REST_MIN);
    tell("the line at rest");
    near.ping_for(rest, PING_SPACING)?;
    let rested = near.comparison().pings().count();
    tell("longest datagrams");
    let payloads = near.payloads(plan.payload_max)?;
    let payload_max = match plan.direction {
        StreamDirection::Up => payloads.up,
        StreamDirection::Down => payloads.down,
    };
    let usual = payload_max.min(PAYLOAD_USUAL);
    let mut seen = streams(near, plan, usual, None, tell)?;
    if seen.is_mistaken() {
        // An outage while the rate was looked for, traffic of others that has ended, or a policer's
        // burst: once more.
        let (longest, passed) = (seen.gap, seen.passed());
        seen = streams(near, plan, usual, passed, tell)?;
        seen.gap = seen.gap.max(longest);
    }
    tell("the line at rest again");
    let before = near.comparison().pings().count();
    near.ping_for(rest, PING_SPACING)?;
    let pings: Vec<Ping> = near.comparison().pings().copied().collect();
    let steps = steps(&pings);
    let shortest = pings.iter().map(Ping::round_trip).min().unwrap_or_default();
    let phases = [&pings[..rested.min(pings.len())], &pings[before.min(pings.len())..]];
    let outage = super::rest::gap(phases, PING_SPACING).max(seen.gap);
    Ok(LineFound {
        available_bps: seen.available.bits_per_second,
        is_at_least: seen.available.is_at_least,
        idle_round_trip_ms: shortest.as_secs_f64() * 1e3,
        payload_max: payload_max.as_u64(),
        payload_refused: payloads.refused_from.map(|size| size.as_u64()),
        gentle: seen.gentle,
        overload: seen.overload,
        route_step_ms: steps.route as f64 / 1e6,
        route_step_at_s: steps.route_at as f64 / 1e9,
        clock_step_ms: steps.clock as f64 / 1e6,
        clock_step_at_s: steps.clock_at as f64 / 1e9,
        step_noise_ms: steps.noise as f64 / 1e6,
        rest: super::rest::rest(phases, shortest),
        shared: seen.shared,
        outage_ms: outage.as_secs_f64() * 1e3,
    })
}

/// What streams below and above the line's rate showed.
struct Streams {
    available: Available,
    gentle: StreamResult,
    overload: Option<StreamResult>,
    surge: Option<StreamResult>,
    shared: Option<OtherTraffic>,
    /// The longest time in which nothing came through.
    gap: Duration,
}

impl Streams {
    /// What the streams above the rate brought is far more or far less than the rate that was
    /// found.
    fn is_mistaken(&self) -> bool {
        let found = self.available.bits_per_second as f64;
        let passed = |load: &StreamResult| load.received_bps as f64 > found * MISTAKEN_LOW;
        let is_low = !self.available.is_at_least && self.overload.as_ref().is_some_and(passed);
        is_low || self.passed().is_some()
    }

    /// What passes in the long run, where that is far less than what was found.
    fn passed(&self) -> Option<Rate> {
        let (slow, fast) = (self.overload?.received_bps, self.surge?.received_bps);
        let most = slow.max(fast);
        (most > 0 && (most as f64) < self.available.bits_per_second as f64 * MISTAKEN_HIGH)
            .then(|| Rate::from_bps(most))
    }
}

/// Looks for the rate, or takes it as `known`.
fn streams<L: ProbeIo>(
    near: &mut ProbeClient<L>,
    plan: &ExaminePlan,
    usual: ByteCount,
    known: Option<Rate>,
    tell: &mut dyn FnMut(&str),
) -> Result<Streams, NearError> {
    let rate_max = plan.rate_max.min(near.limits().rate);
    let train = plan.time.scaled(TRAIN_PERCENT, 100).max(TRAIN_MIN);
    tell("rate");
    let trains = TrainPlan { payload: usual, headers: plan.headers, rate_max };
    let mut available = find_rate(near, plan.direction, trains, train)?;
    if let Some(known) = known {
        available.bits_per_second = available.bits_per_second.min(known.as_bps());
    }
    let rate = available.rate().max(RATE_MIN);
    let most = near.limits().datagrams.min(DATAGRAMS_MAX);
    tell("loss and delay well below that rate");
    let time = plan.time.scaled(GENTLE_PERCENT, 100);
    let spec = Spec::at(rate.scaled(GENTLE_RATE, 100), usual.min(PAYLOAD_GENTLE), time, most);
    let trace = near.stream(plan.direction, spec)?;
    let (gentle, mut longest) = (StreamResult::of(&trace), gap(&trace));
    let mut above = |percent: u64, least: u64, time: Duration| {
        let faster = rate.scaled(percent, 100).min(rate_max);
        if faster <= rate.scaled(least, 100) {
            return Ok(None);
        }
        let trace = near.stream(plan.direction, Spec::at(faster, usual, time, most))?;
        longest = longest.max(gap(&trace));
        Ok::<_, NearError>(Some(StreamResult::of(&trace)))
    };
    tell("what happens above that rate");
    let time = plan.time.scaled(OVERLOAD_PERCENT, 100).max(OVERLOAD_MIN);
    let overload = above(OVERLOAD_RATE, OVERLOAD_LEAST, time)?;
    let surge = above(SURGE_RATE, SURGE_LEAST, SURGE_TIME)?;
    let shared = overload.zip(surge).and_then(|(slow, fast)| OtherTraffic::of(&slow, &fast));
    Ok(Streams { available, gentle, overload, surge, shared, gap: longest })
}

/// Per cent of the plan's time, at the beginning and again at the end.
const REST_PERCENT: u64 = 15;
/// Twice sixteen pings of 50 ms: what a step needs on either side.
const REST_MIN: Duration = Duration::from_millis(1_600);
const PING_SPACING: Duration = Duration::from_millis(50);

/// Per cent of the plan's time for each train that looks for the rate: six of them reach a gigabit,
/// and take an eighth of the time.
const TRAIN_PERCENT: u64 = 2;
/// A shorter train would be over before a receiver on a long line has settled.
const TRAIN_MIN: Duration = Duration::from_millis(300);
/// Every line of today carries 200 kbit/s.
const RATE_MIN: Rate = Rate::from_bps(200_000);

/// Per cent of the line's rate: far below the narrowest place, so that neither its queue nor a
/// policer loses anything.
const GENTLE_RATE: u64 = 30;
/// Per cent of the plan's time: the losses of this stream are counted, so that it is the longest.
const GENTLE_PERCENT: u64 = 30;
/// Short datagrams are many: loss of one in a thousand shows on a line of 5 Mbit/s in six seconds.
const PAYLOAD_GENTLE: ByteCount = ByteCount::new(400);

/// Per cent of the line's rate. At half as much again, a queue of one second is full after two, and
/// a policer drops a third.
const OVERLOAD_RATE: u64 = 150;
/// Per cent of the line's rate. Less would not tell a policer from a queue.
const OVERLOAD_LEAST: u64 = 120;
/// Per cent of the plan's time: long enough for a queue to fill, short enough not to disturb others
/// for long.
const OVERLOAD_PERCENT: u64 = 12;
/// A queue of a second is full after two at the overload's rate.
const OVERLOAD_MIN: Duration = Duration::from_secs(2);

/// Per cent of the line's rate: so far above it that the traffic of others is pushed aside.
const SURGE_RATE: u64 = 400;
/// Per cent of the line's rate. Less says nothing beside the overload before it.
const SURGE_LEAST: u64 = 250;
/// At this rate the line's queue is full after a part of a second.
const SURGE_TIME: Duration = Duration::from_millis(1_000);
/// Factor on the rate found. Chance makes a tenth of difference, a line never a quarter.
const MISTAKEN_LOW: f64 = 1.25;
/// Factor on the rate found. Traffic of others that pushes in leaves more of a stream that is
/// pushed up too, so that less than seven tenths means a rate found too high.
const MISTAKEN_HIGH: f64 = 0.7;

/// Datagrams of a stream: their arrivals take a few seconds to fetch.
const DATAGRAMS_MAX: u32 = 40_000;

/// Bytes. Programs send no longer datagrams.
const PAYLOAD_USUAL: ByteCount = ByteCount::new(1_400);
