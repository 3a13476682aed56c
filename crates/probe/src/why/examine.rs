//! Measures of a line what a verdict needs: at rest, below its rate, above it, and at rest again.

use super::evidence::{LineFound, Load};
use super::steps::steps;
use crate::clock::Ping;
use crate::near::{Line, Near, NearError};
use crate::stream::{Direction, Spec};
use crate::survey::find_rate;
use skyhaul_units::{Bytes, Duration, Rate};

/// What is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExaminePlan {
    /// The way that the data takes.
    pub direction: Direction,
    /// How long it takes, about; the line's own waits come on top.
    pub time: Duration,
    /// No stream is faster, in UDP payload.
    pub rate_max: Rate,
    /// The longest UDP payload that is tried.
    pub payload_max: Bytes,
    /// IP and UDP headers of a datagram: 28 bytes for IPv4, 48 for IPv6.
    pub headers: Bytes,
}

/// Examines one way of a line; `tell` is told what is being done.
///
/// # Errors
/// The line cannot be used, or the far end does not allow it or stopped answering.
pub fn examine<L: Line>(
    near: &mut Near<L>,
    plan: &ExaminePlan,
    tell: &mut dyn FnMut(&str),
) -> Result<LineFound, NearError> {
    let rest = plan.time.scaled(REST_PERCENT, 100).max(REST_MIN);
    tell("the line at rest");
    near.ping_for(rest, PING_SPACING)?;
    tell("longest datagrams");
    let (up, down) = near.payloads(plan.payload_max)?;
    let payload_max = if plan.direction == Direction::Up { up } else { down };
    let usual = payload_max.min(PAYLOAD_USUAL);
    let rate_max = plan.rate_max.min(near.limits().rate);
    let train = plan.time.scaled(TRAIN_PERCENT, 100).max(TRAIN_MIN);
    tell("rate");
    let available = find_rate(near, plan.direction, (usual, plan.headers, rate_max), train)?;
    let rate = available.rate().max(RATE_MIN);
    let most = near.limits().datagrams.min(DATAGRAMS_MAX);
    tell("loss and delay well below that rate");
    let time = plan.time.scaled(GENTLE_PERCENT, 100);
    let spec = Spec::at(rate.scaled(GENTLE_RATE, 100), usual.min(PAYLOAD_GENTLE), time, most);
    let gentle = Load::of(&near.stream(plan.direction, spec)?);
    let faster = rate.scaled(OVERLOAD_RATE, 100).min(rate_max);
    let overload = if faster > rate.scaled(OVERLOAD_LEAST, 100) {
        tell("what happens above that rate");
        let time = plan.time.scaled(OVERLOAD_PERCENT, 100).max(OVERLOAD_MIN);
        Some(Load::of(&near.stream(plan.direction, Spec::at(faster, usual, time, most))?))
    } else {
        None
    };
    tell("the line at rest again");
    near.ping_for(rest, PING_SPACING)?;
    let pings: Vec<Ping> = near.comparison().pings().copied().collect();
    let steps = steps(&pings);
    let shortest = pings.iter().map(Ping::round_trip).min().unwrap_or_default();
    Ok(LineFound {
        available_bps: available.bits_per_second,
        is_at_least: available.is_at_least,
        idle_round_trip_ms: shortest.as_secs_f64() * 1e3,
        payload_max: payload_max.as_u64(),
        payload_refused: near.refused_from().map(|size| size.as_u64()),
        gentle,
        overload,
        route_step_ms: steps.route as f64 / 1e6,
        route_step_at_s: steps.route_at as f64 / 1e9,
        clock_step_ms: steps.clock as f64 / 1e6,
        clock_step_at_s: steps.clock_at as f64 / 1e9,
        step_noise_ms: steps.noise as f64 / 1e6,
    })
}

/// At the beginning and at the end.
const REST_PERCENT: u64 = 15;
/// Two times sixteen pings: what a step needs on either side.
const REST_MIN: Duration = Duration::from_millis(1_600);
const PING_SPACING: Duration = Duration::from_millis(50);

/// Of each train that looks for the rate.
const TRAIN_PERCENT: u64 = 2;
/// A shorter train would be over before a receiver of a long line has settled.
const TRAIN_MIN: Duration = Duration::from_millis(300);
/// Every line of today carries it.
const RATE_MIN: Rate = Rate::from_bps(200_000);

/// Far below the narrowest place, so that what is lost is not lost in its queue nor to a policer.
const GENTLE_RATE: u64 = 30;
const GENTLE_PERCENT: u64 = 30;
/// Short datagrams are many: loss of one in a thousand shows on a line of 5 Mbit/s in six seconds.
const PAYLOAD_GENTLE: Bytes = Bytes::new(400);

/// Half as much again as comes through: a queue of a second is full after two, and of what a policer is offered a third goes.
const OVERLOAD_RATE: u64 = 150;
/// Less above the line's rate would not tell a policer from a queue.
const OVERLOAD_LEAST: u64 = 120;
const OVERLOAD_PERCENT: u64 = 12;
const OVERLOAD_MIN: Duration = Duration::from_secs(2);

/// Datagrams of a stream: a few seconds to fetch their arrivals.
const DATAGRAMS_MAX: u32 = 40_000;

/// What programs send, at most.
const PAYLOAD_USUAL: Bytes = Bytes::new(1_400);
