//! The rate that a line has to spare: trains of datagrams, each four times as fast, until no more
//! comes through.

use crate::near::{NearError, ProbeClient, ProbeIo};
use crate::stats::Spread;
use crate::stream::{Spec, StreamDirection, Trace};
use crate::survey::{MILLIS, signed};
use serde::Serialize;
use skyhaul_units::{ByteCount, Duration, Rate};

/// What a line has to spare one way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Available {
    /// UDP payload that came through.
    pub bits_per_second: u64,
    /// The same with IP and UDP headers, as a line's rate is mostly meant.
    pub ip_bits_per_second: u64,
    /// The line may have more: nothing faster was tried.
    pub is_at_least: bool,
    /// The trains, the slowest first.
    pub trains: Vec<Train>,
    /// Round trip in milliseconds while more was sent than came through: with the queue that the
    /// line has.
    pub loaded_round_trip_ms: Spread,
}

/// A train of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Train {
    /// Payload sent.
    pub sent_bps: u64,
    /// Payload received, in the second half.
    pub received_bps: u64,
    /// The part lost.
    pub loss: f64,
    /// By how much the one-way delay grew from the first tenth to the last.
    pub growth_ms: f64,
}

impl Available {
    /// UDP payload that came through.
    pub const fn rate(&self) -> Rate {
        Rate::from_bps(self.bits_per_second)
    }
}

/// The trains that look for a rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrainPlan {
    /// UDP payload of each datagram.
    pub payload: ByteCount,
    /// IP and UDP headers of a datagram.
    pub headers: ByteCount,
    /// No train is faster, in UDP payload.
    pub rate_max: Rate,
}

/// Finds what comes through, with trains of `time` each.
pub(crate) fn find_rate<L: ProbeIo>(
    near: &mut ProbeClient<L>,
    direction: StreamDirection,
    plan: TrainPlan,
    time: Duration,
) -> Result<Available, NearError> {
    let TrainPlan { payload, headers, rate_max: most } = plan;
    let mut trains: Vec<Train> = Vec::new();
    let mut rate = FIRST.min(most);
    let mut is_at_least = true;
    let loaded = loop {
        let spec = Spec::at(rate, payload, time, near.limits().datagrams.min(TRAIN_DATAGRAMS_MAX));
        let from = near.comparison().pings().count();
        let trace = near.stream(direction, spec)?;
        let loaded: Vec<i64> =
            near.comparison().pings().skip(from).map(|ping| signed(ping.round_trip())).collect();
        let received = second_half(&trace);
        let before = trains.iter().map(|train| train.received_bps).max().unwrap_or(0);
        trains.push(Train {
            sent_bps: trace.sent_rate().as_bps(),
            received_bps: received.as_bps(),
            loss: trace.loss(),
            growth_ms: trace.growth().as_secs_f64() * 1e3,
        });
        // Four times as much was sent; where not even 1.6 times as much came, the line is full.
        let is_full = received.as_bps() < before + before * 6 / 10;
        // A train that was mostly lost does not show what the next would bring.
        let is_swamped = received < spec.rate().scaled(1, 2) && trace.loss() > 0.3;
        if is_full || is_swamped {
            is_at_least = false;
            break loaded;
        }
        if rate >= most {
            break loaded;
        }
        rate = rate.scaled(GROWTH, 1).min(most);
    };
    let bits_per_second = trains.iter().map(|train| train.received_bps).max().unwrap_or(0);
    let ip = bits_per_second.saturating_mul((payload + headers).as_u64()) / payload.as_u64().max(1);
    Ok(Available {
        bits_per_second,
        ip_bits_per_second: ip,
        is_at_least,
        trains,
        loaded_round_trip_ms: Spread::of(&loaded, MILLIS),
    })
}

/// Payload received over the later half of the arrivals: a policer's or shaper's first burst is
/// left out.
fn second_half(trace: &Trace) -> Rate {
    let half = trace.arrivals.len() / 2;
    if half < 8 {
        return trace.received_rate();
    }
    let later = Trace { arrivals: trace.arrivals[half..].to_vec(), ..trace.clone() };
    later.received_rate()
}

/// The first train: every line of today carries it.
const FIRST: Rate = Rate::from_mbps(1);
/// Each train is so many times as fast as the one before.
const GROWTH: u64 = 4;
/// Datagrams of a train: at a gigabit and more, trains get shorter.
const TRAIN_DATAGRAMS_MAX: u32 = 40_000;
