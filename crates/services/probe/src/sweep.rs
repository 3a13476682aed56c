//! Streams over sizes and spacings, one after the other: what comes through of each (the
//! measurements of UDPmon).

use crate::account::StreamAccount;
use crate::near::{NearError, ProbeClient, ProbeIo};
use crate::stats::{Bin, ReorderingStats, Spread, histogram};
use crate::stream::{Spec, StreamDirection, Trace};
use crate::survey::{ClockOffset, HISTOGRAM_BINS, MILLIS, Sum, one_way};
use serde::Serialize;
use skyhaul_units::{ByteCount, Duration, Rate};

/// Which streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepPlan {
    /// Which way.
    pub direction: StreamDirection,
    /// UDP payloads.
    pub payloads: Vec<ByteCount>,
    /// From the beginning of one datagram to that of the next.
    pub spacings: Vec<Duration>,
    /// Datagrams of each stream.
    pub count: u32,
    /// Streams that would be faster are left out.
    pub rate_max: Rate,
    /// IP and UDP headers of a datagram: 28 bytes for IPv4, 48 for IPv6.
    pub headers: ByteCount,
}

/// What a sweep found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    /// Which way.
    pub direction: StreamDirection,
    /// What is known of the two clocks.
    pub clocks: ClockOffset,
    /// The streams, as planned.
    pub points: Vec<SweepPoint>,
    /// Streams that were left out, because they would have been faster than allowed.
    pub left_out: u64,
}

/// One stream of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepPoint {
    /// UDP payload of a datagram.
    pub payload: u64,
    /// Spacing as planned.
    pub spacing_us: f64,
    /// Spacing as sent, in the mean.
    pub sent_spacing_us: f64,
    /// UDP payload sent, over the time in which it was sent.
    pub sent_bps: u64,
    /// UDP payload received, over the time in which it came.
    pub received_bps: u64,
    /// The same on an Ethernet: with IP and UDP headers, and 38 bytes of frame, preamble and gap.
    pub wire_bps: u64,
    /// Totals.
    pub sum: Sum,
    /// What came out of order.
    pub reordering: ReorderingStats,
    /// From one arrival to the next.
    pub inter_arrival_us: Spread,
    /// The same by how often.
    pub inter_arrival_histogram_us: Vec<Bin>,
    /// One-way delay.
    pub one_way_ms: Spread,
    /// By how much each left later than planned.
    pub pacing_error_us: Spread,
    /// Where datagrams went.
    pub account: StreamAccount,
    /// The datagrams one by one.
    #[serde(skip)]
    pub trace: Trace,
    /// One-way delay of each arrival, in nanoseconds.
    #[serde(skip)]
    pub one_way: Vec<i64>,
}

/// Runs the sweep; `tell` receives each step as it begins.
///
/// # Errors
/// The line cannot be used, or the far end does not allow it or stopped answering.
pub fn sweep<L: ProbeIo>(
    near: &mut ProbeClient<L>,
    plan: &SweepPlan,
    tell: &mut dyn FnMut(&str),
) -> Result<Sweep, NearError> {
    near.ping_for(CLOCK_TIME, CLOCK_SPACING)?;
    let rate_max = plan.rate_max.min(near.limits().rate);
    let count = plan.count.min(near.limits().datagrams);
    let (mut points, mut left_out) = (Vec::new(), 0);
    for payload in &plan.payloads {
        for spacing in &plan.spacings {
            let spec = Spec { payload: *payload, spacing: *spacing, count };
            if spec.rate() > rate_max {
                left_out += 1;
                continue;
            }
            tell(&format!("{} bytes each {spacing}", payload.as_u64()));
            let trace = near.stream(plan.direction, spec)?;
            points.push(SweepPoint::new(trace, near, plan.headers));
        }
    }
    Ok(Sweep {
        direction: plan.direction,
        clocks: ClockOffset::of(near.comparison()),
        points,
        left_out,
    })
}

impl SweepPoint {
    fn new<L: ProbeIo>(trace: Trace, near: &ProbeClient<L>, headers: ByteCount) -> Self {
        let one_way = one_way(&trace, near.comparison());
        let gaps = inter_arrivals(&trace);
        let received = trace.received_rate().as_bps();
        let payload = trace.spec.payload;
        let wire = (payload + headers + ETHERNET).as_u64();
        let sent = trace.sent_rate();
        Self {
            payload: payload.as_u64(),
            spacing_us: trace.spec.spacing.as_secs_f64() * 1e6,
            sent_spacing_us: if sent == Rate::ZERO {
                0.0
            } else {
                sent.time_for(payload).as_secs_f64() * 1e6
            },
            sent_bps: sent.as_bps(),
            received_bps: received,
            wire_bps: received.saturating_mul(wire) / payload.as_u64().max(1),
            sum: Sum::of(&trace),
            reordering: ReorderingStats::of(trace.arrivals.iter().map(|arrival| arrival.seq)),
            inter_arrival_us: Spread::of(&gaps, MICROS),
            inter_arrival_histogram_us: histogram(&gaps, MICROS, HISTOGRAM_BINS),
            one_way_ms: Spread::of(&one_way, MILLIS),
            pacing_error_us: Spread::of(&trace.pacing_errors(), MICROS),
            account: StreamAccount::of(&trace),
            one_way,
            trace,
        }
    }
}

/// From one arrival to the next, in nanoseconds.
fn inter_arrivals(trace: &Trace) -> Vec<i64> {
    let between = |pair: &[crate::stream::ProbeArrival]| {
        pair[1].arrived.as_nanos().saturating_sub(pair[0].arrived.as_nanos())
    };
    trace.arrivals.windows(2).map(between).collect()
}

/// For the clocks, before the first stream.
const CLOCK_TIME: Duration = Duration::from_secs(1);
const CLOCK_SPACING: Duration = Duration::from_millis(50);

/// Of an Ethernet frame: header 14, check sequence 4, preamble 8, gap 12.
const ETHERNET: ByteCount = ByteCount::new(38);

/// From nanoseconds to microseconds.
const MICROS: f64 = 1e-3;
