//! `repair`: what repair costs a bulk transfer, which gains nothing from it but at its end.

use super::{Broken, Experiment, Kind, Parameters, Refused};
use crate::scenario::metric::{GOODPUT, Measured, Metric, Unit};
use crate::world::{Bulk, Sink, World, WorldConfig, WorldPath};
use crate::{Acknowledging, PlainLine};
use bytes::Bytes as Buffer;
use serde::Deserialize;
use skyhaul_transport::repair::Goal;
use skyhaul_transport::{Block, SessionConfig};
use skyhaul_units::{Bytes, Duration, FlowId, Probability, Rate};

/// The kind.
pub(super) struct Repair;

impl Kind for Repair {
    fn name(&self) -> &'static str {
        "repair"
    }

    fn about(&self) -> &'static str {
        "a bulk transfer with repair and without: its goodput, and how long its last blocks take"
    }

    fn metrics(&self) -> &'static [&'static Metric] {
        METRICS
    }

    fn cell(&self, parameters: Parameters<'_>) -> Result<Box<dyn Experiment>, Refused> {
        let cell: Cell = parameters.read()?;
        if cell.warm_up >= cell.duration {
            return Err(Refused::new("the start-up takes the whole run; lengthen `duration`"));
        }
        Ok(Box::new(cell))
    }
}

/// A bulk transfer over a line.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cell {
    /// The line's rate, counted in IP packets.
    rate: Rate,
    /// Round trip of the empty line.
    rtt: Duration,
    /// Share of packets lost, each alone, in both directions.
    loss: Probability,
    /// What is left out of the goodput at the start.
    warm_up: Duration,
    /// How long the transfer without end runs.
    duration: Duration,
}

impl Experiment for Cell {
    fn virtual_time(&self) -> Duration {
        self.duration * 2
    }

    fn cost(&self) -> Duration {
        PER_PACKET * ((self.rate * self.duration).as_u64() / 1_500 * 2)
    }

    fn run(&self, seed: u64) -> Result<Measured, Broken> {
        let [with, without] = [Some(Goal::default()), None];
        let (repaired, plain) = (self.goodput(with, seed)?, self.goodput(without, seed)?);
        let (end_repaired, end_plain) = (self.end(with, seed)?, self.end(without, seed)?);
        let mut measured = Measured::default();
        measured.add_rate(&GOODPUT, repaired);
        measured.add(&OF_PLAIN, repaired.as_bps() as f64 / plain.as_bps() as f64);
        measured.add_time(&END, end_repaired);
        measured.add_time(&END_PLAIN, end_plain);
        Ok(measured)
    }
}

impl Cell {
    fn world(&self, repair: Option<Goal>, seed: u64, bulk: Bulk) -> Result<World<Bulk, Sink>, Broken> {
        let config = WorldConfig::alike(SessionConfig { repair, ..SessionConfig::default() });
        let line = PlainLine {
            rate: self.rate,
            one_way_delay: self.rtt / 2,
            acknowledging: Acknowledging::Batches,
            loss: self.loss,
            ..PlainLine::default()
        };
        let mut world = World::new(config, &[WorldPath::new(line)], seed, bulk, Sink::default());
        if world.open() { Ok(world) } else { Err(Broken("the sessions did not open".to_owned())) }
    }

    fn goodput(&self, repair: Option<Goal>, seed: u64) -> Result<Rate, Broken> {
        let mut world = self.world(repair, seed, Bulk::new(FLOW))?;
        world.run_for(self.warm_up, |_| false);
        let before = world.far.user.delivered();
        let span = self.duration.saturating_sub(self.warm_up);
        world.run_for(span, |_| false);
        Ok(Rate::over(world.far.user.delivered() - before, span))
    }

    /// How long a transfer of a few round trips takes.
    fn end(&self, repair: Option<Goal>, seed: u64) -> Result<Duration, Broken> {
        let block = Block::reliable(FLOW, Buffer::from(vec![0x5a; BLOCK]));
        let count = (self.rate * (self.rtt * 4)).as_u64() / BLOCK as u64;
        let mut world = self.world(repair, seed, Bulk::of(block, count))?;
        let (begin, whole) = (world.now(), Bytes::new(count * BLOCK as u64));
        world.run_for(self.duration, |world| world.far.user.delivered() >= whole);
        Ok(world.now().since(begin))
    }
}

const OF_PLAIN: Metric = Metric {
    key: "of_unrepaired",
    heading: "÷ without repair",
    unit: Unit::Share,
    meaning: "goodput with repair ÷ goodput without",
};
const END: Metric = Metric {
    key: "transfer_s",
    heading: "transfer",
    unit: Unit::Seconds,
    meaning: "what a transfer of four round trips' bytes takes until the last of them is given out",
};
const END_PLAIN: Metric = Metric {
    key: "transfer_unrepaired_s",
    heading: "without repair",
    unit: Unit::Seconds,
    meaning: "the same without repair",
};

const METRICS: &[&Metric] = &[&GOODPUT, &OF_PLAIN, &END, &END_PLAIN];

const FLOW: FlowId = FlowId(0);
const BLOCK: usize = 64 << 10;
/// What a packet costs a processor core with both sessions.
const PER_PACKET: Duration = Duration::from_nanos(4_000);
