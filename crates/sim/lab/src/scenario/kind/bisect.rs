//! `bisect`: the highest loss at which a stream of blocks still arrives in time, both directions
//! losing alike.

use super::stream::{FLOW, Stream};
use super::{Broken, Experiment, ParametersRefused, Plain};
use crate::scenario::metric::{Measured, Metric, Unit};
use crate::workload::{Lifetime, Pattern};
use crate::world::Over;
use serde::Deserialize;
use skyhaul_units::{ByteCount, Duration, Probability, Rate};

/// The kind.
pub(super) static KIND: Plain<Settings> = Plain::new(
    "bisect",
    "the highest loss, in both directions, at which every block of a stream still arrives in time",
    METRICS,
);

impl super::Cell for Settings {
    fn check(&self) -> Result<(), ParametersRefused> {
        if self.low >= self.high || self.high >= 100 {
            return Err(ParametersRefused::new(
                "there is nothing between `low` and `high`; give 0 ≤ `low` < `high` < 100",
            ));
        }
        if self.block > ByteCount::mib(1) || self.block == ByteCount::ZERO {
            return Err(ParametersRefused::new("`block` is out of range; give 1 B to 1 MiB"));
        }
        Ok(())
    }
}

/// A stream over a line, and between which losses to look.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    /// The line's rate, counted in IP packets.
    rate: Rate,
    /// Round trip of the empty line.
    rtt: Duration,
    /// The application's rate.
    flow: Rate,
    /// Size of its blocks.
    block: ByteCount,
    /// From hand-over until a block has to be there.
    within: Duration,
    /// Share of symbols that may stay unrepaired at their deadline.
    target: Probability,
    /// A loss that is thought to hold, in percent.
    low: u32,
    /// One that is thought not to.
    high: u32,
    /// How long each step of the search runs.
    step: Duration,
    /// By when a block has to be there in a step. Left out: `within`. Where that allows a backlog
    /// to grow for longer than a step, a shorter time shows in the step what would come of it.
    step_within: Option<Duration>,
    /// How long the loss that was found must hold.
    duration: Duration,
}

/// How a stream did.
#[derive(Debug, Clone, Copy)]
struct Run {
    blocks: u64,
    late: u64,
    longest: Option<Duration>,
    repeated: u64,
}

impl Experiment for Settings {
    fn virtual_time(&self) -> Duration {
        self.step * u64::from(self.steps()) + self.duration
    }

    fn cost(&self) -> Duration {
        let sources = (self.flow * self.virtual_time()).as_u64() / 1_430;
        PER_PACKET * (sources * 100 / u64::from(100 - self.low))
    }

    fn run(&self, seed: u64) -> Result<Measured, Broken> {
        let (mut holds, mut fails) = (self.low, self.high);
        while fails - holds > 1 {
            let middle = u32::midpoint(holds, fails);
            let run = self.stream_over(middle, self.step, seed)?;
            let is_soon = self
                .step_within
                .is_none_or(|most| run.longest.is_some_and(|longest| longest <= most));
            if run.late == 0 && is_soon { holds = middle } else { fails = middle }
        }
        // A short run that holds may hide what a long one shows.
        let mut run = self.stream_over(holds, self.duration, seed)?;
        while run.late > 0 && holds > 0 {
            holds -= 1;
            run = self.stream_over(holds, self.duration, seed)?;
        }
        let mut measured = Measured::default();
        measured.add(&HIGHEST, f64::from(holds) / 100.0);
        measured.add(&BOUND, 1.0 - self.flow.as_bps() as f64 / self.useful().as_bps() as f64);
        measured.add(&BLOCKS, run.blocks as f64);
        measured.add(&LATE, run.late as f64);
        measured.add_time(&LONGEST, run.longest);
        measured.add(&REPEATED, run.repeated as f64);
        Ok(measured)
    }
}

impl Settings {
    fn steps(&self) -> u32 {
        (self.high - self.low).next_power_of_two().trailing_zeros()
    }

    /// What a line without loss carries of blocks.
    fn useful(&self) -> Rate {
        self.rate.scaled(PAYLOAD, PACKET)
    }

    fn stream_over(&self, percent: u32, duration: Duration, seed: u64) -> Result<Run, Broken> {
        let stream = Stream {
            rate: self.rate,
            rtt: self.rtt,
            loss: Probability::of(u64::from(percent), 100),
            pattern: Pattern::Periodic { size: self.block, period: self.flow.time_for(self.block) },
            lifetime: Lifetime { fixed: self.within, filled_at: None },
            target: Some(self.target),
            watched: (Duration::ZERO, duration),
        };
        let ran = stream.run(Over::Plain, seed, None)?;
        let ledger = &ran.ledger;
        let blocks = ledger.of(FLOW);
        let late = blocks.iter().filter(|record| !record.is_on_time()).count() as u64;
        Ok(Run {
            blocks: blocks.len() as u64,
            late: late + ledger.refused_count() + u64::from(blocks.is_empty()),
            longest: ledger.latencies().last().copied(),
            repeated: ran.sent.repeated,
        })
    }
}

const HIGHEST: Metric = Metric {
    key: "highest_loss",
    heading: "highest loss",
    unit: Unit::Share,
    meaning: "the highest loss, to the percent, in both directions, at which all blocks of the \
             whole run were in time",
};
const BOUND: Metric = Metric {
    key: "bound",
    heading: "bound",
    unit: Unit::Share,
    meaning: "the loss at which the line carries just the stream: 1 − stream ÷ (rate × payload ÷ \
             IP packet)",
};
const BLOCKS: Metric = Metric {
    key: "blocks.offered",
    heading: "blocks",
    unit: Unit::Count,
    meaning: "blocks of the whole run",
};
const LATE: Metric = Metric {
    key: "blocks.late",
    heading: "late",
    unit: Unit::Count,
    meaning: "blocks of the whole run that were not in time",
};
const LONGEST: Metric = Metric {
    key: "latency_s.max",
    heading: "longest",
    unit: Unit::Seconds,
    meaning: "the longest time from hand-over to arrival in the whole run",
};
const REPEATED: Metric = Metric {
    key: "symbols.repeated",
    heading: "repeated",
    unit: Unit::Count,
    meaning: "symbols sent again in the whole run",
};

const METRICS: &[&Metric] = &[&HIGHEST, &BOUND, &BLOCKS, &LATE, &LONGEST, &REPEATED];

/// Bytes of blocks in a full datagram, and its IP packet.
const PAYLOAD: u64 = 1_430;
const PACKET: u64 = 1_500;
/// What a packet costs a processor core with both sessions.
const PER_PACKET: Duration = Duration::from_nanos(4_000);
