//! `blocks`: blocks with deadlines over one plain path: what arrives in time, and what repair costs.
//!
//! How many blocks stay unrepaired is counted, and for residuals too small to be counted computed: every group of the
//! code that was formed, with the repairs that were in time, has an exact chance of failing under independent loss.

mod groups;

use super::{Broken, Experiment, Kind, Parameters, Refused};
use crate::scenario::metric::{Measured, Metric, Unit};
use crate::workload::{Lifetime, OnePath, Pattern, Record, StreamConfig, Traffic};
use crate::{Acknowledging, PlainLine};
use groups::Groups;
use serde::Deserialize;
use skyhaul_transport::repair::Goal;
use skyhaul_transport::{ClassId, Mode, SessionConfig};
use skyhaul_units::{Bytes, Duration, FlowId, Instant, Probability, Rate};
use std::cell::RefCell;
use std::rc::Rc;

/// The kind.
pub(super) struct Blocks;

impl Kind for Blocks {
    fn name(&self) -> &'static str {
        "blocks"
    }

    fn about(&self) -> &'static str {
        "blocks with deadlines over one plain path: what arrives in time, and what repair costs"
    }

    fn metrics(&self) -> &'static [&'static Metric] {
        METRICS
    }

    fn cell(&self, parameters: Parameters<'_>) -> Result<Box<dyn Experiment>, Refused> {
        let cell: Cell = parameters.read()?;
        if cell.smallest > cell.largest || cell.largest > Bytes::mib(1) {
            return Err(Refused::new("the blocks' sizes do not fit; give `smallest` ≤ `largest` ≤ 1 MiB"));
        }
        if cell.warm_up >= cell.duration {
            return Err(Refused::new("the start-up takes the whole run; lengthen `duration`"));
        }
        Ok(Box::new(cell))
    }
}

/// One stream of blocks over a line.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cell {
    /// The line's rate, counted in IP packets.
    rate: Rate,
    /// Round trip of the empty line.
    rtt: Duration,
    /// Share of packets lost, each alone, in both directions.
    loss: Probability,
    /// The application's rate.
    flow: Rate,
    /// Its smallest block.
    smallest: Bytes,
    /// Its largest block.
    largest: Bytes,
    /// From hand-over until a block is worthless, beyond the time that its bytes take at `flow`.
    lifetime: Duration,
    /// Share of groups that may stay unrepaired. Left out: the session's default.
    target: Option<Probability>,
    /// What is left out of the figures at the start.
    warm_up: Duration,
    /// How long blocks are handed over.
    duration: Duration,
}

impl Experiment for Cell {
    fn virtual_time(&self) -> Duration {
        self.duration
    }

    fn cost(&self) -> Duration {
        PER_PACKET * (self.flow * self.duration).as_u64().div_ceil(1_200)
    }

    fn run(&self, seed: u64) -> Result<Measured, Broken> {
        let goal = self.target.map_or_else(Goal::default, |target| Goal { target, ..Goal::default() });
        let config = SessionConfig { repair: Some(goal), ..SessionConfig::default() };
        let line = PlainLine {
            rate: self.rate,
            one_way_delay: self.rtt / 2,
            acknowledging: Acknowledging::Batches,
            loss: self.loss,
            ..PlainLine::default()
        };
        let traffic = [Traffic::new([self.stream()], seed), Traffic::new([], seed)];
        let mut world = OnePath::new(line, [config.clone(), config], traffic, seed);
        let groups = Rc::new(RefCell::new(Groups::default()));
        let seen = Rc::clone(&groups);
        let from = Instant::ZERO + self.warm_up;
        world.set_tap(move |at, side, datagram| {
            if side == 0 {
                seen.borrow_mut().sent(at, datagram, from);
            }
        });
        world.run_until(Instant::ZERO + self.duration + self.rtt * 3);
        Ok(self.measure(&world, &groups.borrow()))
    }
}

impl Cell {
    fn stream(&self) -> StreamConfig {
        StreamConfig {
            flow: FLOW,
            class: ClassId::default(),
            priority: 0,
            lifetime: Some(Lifetime { fixed: self.lifetime, filled_at: Some(self.flow) }),
            mode: Mode::Expendable,
            pattern: Pattern::Steady { rate: self.flow, least: self.smallest, most: self.largest },
            start: Instant::ZERO + self.rtt * 2,
            stop: Instant::ZERO + self.duration,
        }
    }

    fn measure(&self, world: &OnePath, groups: &Groups) -> Measured {
        let from = Instant::ZERO + self.warm_up;
        let ledger = &world.traffic[0].ledger;
        let watched: Vec<&Record> = ledger.of(FLOW).iter().filter(|record| record.at >= from).collect();
        let late = watched.iter().filter(|record| !record.is_on_time()).count();
        let mut latencies: Vec<Duration> = watched.iter().filter_map(|record| record.latency()).collect();
        latencies.sort_unstable();
        let at = |share: usize| latencies.get((latencies.len().saturating_sub(1)) * share / 1_000).copied();
        let stats = world.sessions[1].stats();
        let mut measured = Measured::default();
        measured.add(&OFFERED, watched.len() as f64);
        measured.add(&LATE, late as f64);
        measured.add(&RESIDUAL, late as f64 / watched.len() as f64);
        let expected = groups.expected_failures(ledger, FLOW, (self.rtt / 2, self.loss.as_f64()), from);
        measured.add(&COMPUTED, expected / watched.len() as f64 * 1e6);
        measured.add(&OVERHEAD, groups.overhead());
        measured.add(&RECOVERED, stats.symbols_recovered as f64);
        measured.add(&REPEATED, world.sessions[0].stats().symbols_repeated as f64);
        measured.add(&REFUSED, ledger.refused_count() as f64);
        for (metric, share) in
            [(&LATENCY_P50, 500), (&LATENCY_P99, 990), (&LATENCY_P999, 999), (&LATENCY_MAX, 1_000)]
        {
            measured.add_time(metric, at(share));
        }
        measured
    }
}

const OFFERED: Metric = Metric {
    key: "blocks.offered",
    heading: "blocks",
    unit: Unit::Count,
    meaning: "blocks handed over after start-up",
};
const LATE: Metric = Metric {
    key: "blocks.late",
    heading: "late",
    unit: Unit::Count,
    meaning: "of these, blocks that did not arrive in time",
};
const REFUSED: Metric = Metric {
    key: "blocks.refused",
    heading: "refused",
    unit: Unit::Count,
    meaning: "blocks that the session had no room for",
};
const RESIDUAL: Metric = Metric {
    key: "residual",
    heading: "residual, counted",
    unit: Unit::Share,
    meaning: "share of blocks that did not arrive in time",
};
const COMPUTED: Metric = Metric {
    key: "residual_ppm",
    heading: "residual, per million",
    unit: Unit::Share,
    meaning: "blocks of a million that stay unrepaired in the mean over all losses: the sum over the groups formed of \
              their exact chance of failing, with the repairs that were in time, over all blocks",
};
const OVERHEAD: Metric = Metric {
    key: "overhead",
    heading: "overhead",
    unit: Unit::Share,
    meaning: "bytes of repair symbols and repetitions ÷ bytes of symbols sent first, after start-up",
};
const RECOVERED: Metric = Metric {
    key: "symbols.recovered",
    heading: "recovered",
    unit: Unit::Count,
    meaning: "symbols that repair brought back",
};
const REPEATED: Metric =
    Metric { key: "symbols.repeated", heading: "repeated", unit: Unit::Count, meaning: "symbols sent again" };
const LATENCY_P50: Metric = latency("latency_s.p50", "latency p50", "median time from hand-over to arrival");
const LATENCY_P99: Metric = latency("latency_s.p99", "p99", "99th percentile of it");
const LATENCY_P999: Metric = latency("latency_s.p999", "p99.9", "99.9th percentile of it");
const LATENCY_MAX: Metric = latency("latency_s.max", "max", "the longest");

const fn latency(key: &'static str, heading: &'static str, meaning: &'static str) -> Metric {
    Metric { key, heading, unit: Unit::Seconds, meaning }
}

const METRICS: &[&Metric] = &[
    &OFFERED,
    &LATE,
    &RESIDUAL,
    &COMPUTED,
    &OVERHEAD,
    &RECOVERED,
    &REPEATED,
    &REFUSED,
    &LATENCY_P50,
    &LATENCY_P99,
    &LATENCY_P999,
    &LATENCY_MAX,
];

const FLOW: FlowId = FlowId(0);

/// What a packet costs a processor core with both sessions.
const PER_PACKET: Duration = Duration::from_nanos(8_000);
