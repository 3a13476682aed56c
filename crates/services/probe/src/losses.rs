//! The loss process of a line, from one long stream.

use crate::account::StreamAccount;
use crate::near::{NearError, ProbeClient, ProbeIo};
use crate::stats::{LossProcess, ReorderingStats, Spread, Vlbi, VlbiRule};
use crate::stream::{Spec, StreamDirection, Trace};
use crate::survey::{ClockOffset, MILLIS, StreamShape, Sum, one_way};
use serde::Serialize;
use skyhaul_units::Duration;

/// What one long stream says of the loss.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LossPattern {
    /// Which way.
    pub direction: StreamDirection,
    /// The stream.
    pub stream: StreamShape,
    /// Its totals.
    pub sum: Sum,
    /// The process behind its losses.
    pub process: LossProcess,
    /// Intervals between losses in datagrams, and how many of each there were.
    pub interval_counts: Vec<(u64, u64)>,
    /// What came out of order.
    pub reordering: ReorderingStats,
    /// One-way delay.
    pub one_way_ms: Spread,
    /// What the loss means for very-long-baseline interferometry.
    pub vlbi: Vlbi,
    /// What is known of the two clocks.
    pub clocks: ClockOffset,
    /// Where datagrams went.
    pub account: StreamAccount,
    /// The datagrams one by one.
    #[serde(skip)]
    pub trace: Trace,
    /// One-way delay of each arrival, in nanoseconds.
    #[serde(skip)]
    pub one_way: Vec<i64>,
}

/// Runs the stream.
///
/// # Errors
/// The line cannot be used, or the far end does not allow it or stopped answering.
pub fn losses<L: ProbeIo>(
    near: &mut ProbeClient<L>,
    direction: StreamDirection,
    spec: Spec,
    rule: VlbiRule,
) -> Result<LossPattern, NearError> {
    near.ping_for(Duration::from_secs(1), Duration::from_millis(50))?;
    let count = spec.count.min(near.limits().datagrams);
    let trace = near.stream(direction, Spec { count, ..spec })?;
    let missing = trace.missing();
    let process = LossProcess::of(&missing);
    // A model of two states only where one is not enough: chance would be read into it.
    let model = process.model();
    let vlbi = Vlbi::of(&missing, model.as_ref(), spec.spacing, rule);
    let one_way = one_way(&trace, near.comparison());
    Ok(LossPattern {
        direction,
        stream: StreamShape {
            payload: spec.payload.as_u64(),
            spacing_us: spec.spacing.as_secs_f64() * 1e6,
        },
        sum: Sum::of(&trace),
        process,
        interval_counts: crate::stats::interval_counts(&missing),
        reordering: ReorderingStats::of(trace.arrivals.iter().map(|arrival| arrival.seq)),
        one_way_ms: Spread::of(&one_way, MILLIS),
        vlbi,
        clocks: ClockOffset::of(near.comparison()),
        account: StreamAccount::of(&trace),
        one_way,
        trace,
    })
}
