//! `blocks`: blocks with deadlines over one path: what arrives in time, and what repair costs.
//!
//! How many blocks stay unrepaired is counted, and for residuals too small to be counted computed:
//! every group of the code that was formed, with the repairs that were in time, has an exact chance
//! of failing under independent loss. Over QUIC there is the count alone.

mod groups;

use super::medium::{Medium, OFF_PLAIN, off};
use super::stream::{FLOW, Ran, Stream};
use super::{Broken, Experiment, ParametersRefused, Plain, watched};
use crate::scenario::metric::{Measured, Metric, Unit};
use crate::workload::{BlockRecord, Lifetime, Pattern};
use crate::world::{Over, Tap};
use groups::{Groups, LossyWay};
use serde::Deserialize;
use skyhaul_units::{ByteCount, Duration, Probability, Rate};
use std::cell::RefCell;
use std::rc::Rc;

/// The kind.
pub(super) static KIND: Plain<Settings> = Plain::new(
    "blocks",
    "blocks with deadlines over one path: what arrives in time, and what repair costs",
    METRICS,
);

impl super::Cell for Settings {
    fn check(&self) -> Result<(), ParametersRefused> {
        if self.smallest > self.largest || self.largest > ByteCount::mib(1) {
            return Err(ParametersRefused::new(
                "the blocks' sizes do not fit; give `smallest` ≤ `largest` ≤ 1 MiB",
            ));
        }
        watched::check(self.warm_up, self.duration)
    }
}

/// One stream of blocks over a line.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    /// The line's rate, counted in IP packets.
    rate: Rate,
    /// Round trip of the empty line.
    rtt: Duration,
    /// Share of packets lost, each alone, in both directions.
    loss: Probability,
    /// The application's rate.
    flow: Rate,
    /// Its smallest block.
    smallest: ByteCount,
    /// Its largest block.
    largest: ByteCount,
    /// From hand-over until a block is worthless, beyond the time that its bytes take at `flow`.
    lifetime: Duration,
    /// Share of groups that may stay unrepaired. Left out: the session's default.
    target: Option<Probability>,
    /// What is left out of the figures at the start.
    warm_up: Duration,
    /// How long blocks are handed over.
    duration: Duration,
    /// What the path is.
    #[serde(default)]
    over: Medium,
}

impl Experiment for Settings {
    fn virtual_time(&self) -> Duration {
        self.duration
    }

    fn cost(&self) -> Duration {
        let sources = (self.flow * self.duration).as_u64().div_ceil(1_200);
        let kept = u64::from(self.loss.complement().as_ppb()).max(1);
        PER_PACKET * (sources * u64::from(Probability::ONE.as_ppb()) / kept) * self.over.effort()
    }

    fn run(&self, seed: u64) -> Result<Measured, Broken> {
        let stream = self.stream();
        let groups = Rc::new(RefCell::new(Groups::default()));
        let seen = Rc::clone(&groups);
        let tap = Tap::new(move |at, datagram| seen.borrow_mut().sent(at, datagram));
        let plain = stream.run(Over::Plain, seed, Some(tap))?;
        let from = stream.counted_from();
        let figures = Figures::of(&stream, &plain);
        let mut measured = Measured::default();
        if self.over == Medium::Plain {
            figures.add_to(&mut measured);
            let way = LossyWay { one_way_delay: self.rtt / 2, loss: self.loss.as_f64() };
            let expected = groups.borrow().expected_failures(&plain.ledger, FLOW, way, from);
            measured.add(&COMPUTED, expected / figures.offered as f64 * 1e6);
            return Ok(measured);
        }
        let over_quic = Figures::of(&stream, &stream.run(self.over.over(), seed, None)?);
        over_quic.add_to(&mut measured);
        measured.add(&OFF_PLAIN, over_quic.off(&figures));
        Ok(measured)
    }
}

impl Settings {
    fn stream(&self) -> Stream {
        Stream {
            rate: self.rate,
            rtt: self.rtt,
            loss: self.loss,
            pattern: Pattern::Steady { rate: self.flow, least: self.smallest, most: self.largest },
            lifetime: Lifetime { fixed: self.lifetime, filled_at: Some(self.flow) },
            target: self.target,
            watched: (self.warm_up, self.duration),
        }
    }
}

/// How a stream did after start-up.
struct Figures {
    offered: usize,
    late: usize,
    refused: u64,
    /// Whole at first, after repair, and not in time, from the first block on.
    ended: [u64; 3],
    overhead: f64,
    recovered: u64,
    repeated: u64,
    /// From hand-over to arrival, the shortest first.
    latencies: Vec<Duration>,
}

impl Figures {
    fn of(stream: &Stream, ran: &Ran) -> Self {
        let from = stream.counted_from();
        let watched: Vec<&BlockRecord> =
            ran.ledger.of(FLOW).iter().filter(|record| record.at >= from).collect();
        let mut latencies: Vec<Duration> =
            watched.iter().filter_map(|record| record.latency()).collect();
        latencies.sort_unstable();
        Self {
            offered: watched.len(),
            late: watched.iter().filter(|record| !record.is_on_time()).count(),
            refused: ran.ledger.refused_count(),
            ended: [
                ran.received.received.blocks_delivered,
                ran.received.received.blocks_repaired,
                ran.received.received.blocks_expired,
            ],
            overhead: ran.sent.overhead(),
            recovered: ran.received.received.symbols_recovered,
            repeated: ran.sent.repeated,
            latencies,
        }
    }

    fn in_time(&self) -> f64 {
        1.0 - self.late as f64 / self.offered as f64
    }

    /// How far these are from others: in blocks on time, or in bytes sent for a byte.
    fn off(&self, others: &Self) -> f64 {
        off(self.in_time(), others.in_time()).max(off(1.0 + self.overhead, 1.0 + others.overhead))
    }

    fn add_to(&self, measured: &mut Measured) {
        measured.add(&OFFERED, self.offered as f64);
        measured.add(&LATE, self.late as f64);
        measured.add(&REFUSED, self.refused as f64);
        for (metric, count) in [&DELIVERED, &REPAIRED, &EXPIRED].into_iter().zip(self.ended) {
            measured.add(metric, count as f64);
        }
        measured.add(&RESIDUAL, self.late as f64 / self.offered as f64);
        measured.add(&OVERHEAD, self.overhead);
        measured.add(&RECOVERED, self.recovered as f64);
        measured.add(&REPEATED, self.repeated as f64);
        let at = |share: usize| {
            self.latencies.get((self.latencies.len().saturating_sub(1)) * share / 1_000)
        };
        for (metric, share) in
            [(&LATENCY_P50, 500), (&LATENCY_P99, 990), (&LATENCY_P999, 999), (&LATENCY_MAX, 1_000)]
        {
            measured.add_time(metric, at(share).copied());
        }
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
const DELIVERED: Metric = Metric {
    key: "blocks.delivered",
    heading: "delivered",
    unit: Unit::Count,
    meaning: "blocks of the whole run that the receiver gave out and of which nothing was sent \
             again",
};
const REPAIRED: Metric = Metric {
    key: "blocks.repaired",
    heading: "repaired",
    unit: Unit::Count,
    meaning: "blocks of the whole run that it gave out after something of them was sent again",
};
const EXPIRED: Metric = Metric {
    key: "blocks.expired",
    heading: "expired",
    unit: Unit::Count,
    meaning: "blocks of the whole run that it had begun and gave up",
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
    meaning: "blocks of a million that stay unrepaired in the mean over all losses: the sum over \
             the groups formed of \
              their exact chance of failing, with the repairs that were in time, over all blocks",
};
const OVERHEAD: Metric = Metric {
    key: "overhead",
    heading: "overhead",
    unit: Unit::Share,
    meaning: "bytes of repair symbols and repetitions ÷ bytes of symbols sent first, after \
             start-up",
};
const RECOVERED: Metric = Metric {
    key: "symbols.recovered",
    heading: "recovered",
    unit: Unit::Count,
    meaning: "symbols that repair brought back",
};
const REPEATED: Metric = Metric {
    key: "symbols.repeated",
    heading: "repeated",
    unit: Unit::Count,
    meaning: "symbols sent again",
};
const LATENCY_P50: Metric =
    latency("latency_s.p50", "latency p50", "median time from hand-over to arrival");
const LATENCY_P99: Metric = latency("latency_s.p99", "p99", "99th percentile of it");
const LATENCY_P999: Metric = latency("latency_s.p999", "p99.9", "99.9th percentile of it");
const LATENCY_MAX: Metric = latency("latency_s.max", "max", "the longest");

const fn latency(key: &'static str, heading: &'static str, meaning: &'static str) -> Metric {
    Metric { key, heading, unit: Unit::Seconds, meaning }
}

const METRICS: &[&Metric] = &[
    &OFFERED,
    &LATE,
    &REFUSED,
    &DELIVERED,
    &REPAIRED,
    &EXPIRED,
    &RESIDUAL,
    &COMPUTED,
    &OVERHEAD,
    &RECOVERED,
    &REPEATED,
    &LATENCY_P50,
    &LATENCY_P99,
    &LATENCY_P999,
    &LATENCY_MAX,
    &OFF_PLAIN,
];

/// What a packet costs a processor core with both sessions.
const PER_PACKET: Duration = Duration::from_nanos(8_000);
