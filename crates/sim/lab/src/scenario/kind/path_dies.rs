//! `path-dies`: one of two paths becomes a black hole while bulk data goes over both.

use super::{Broken, CellParameters, Experiment, Kind, ParametersRefused};
use crate::scenario::metric::{Measured, Metric, Unit};
use crate::world::{Bulk, Sink, User, World, WorldConfig, WorldPath};
use crate::{Acknowledging, PlainChange, PlainLine};
use bytes::Bytes;
use serde::Deserialize;
use skyhaul_transport::{Block, Event, FlowId, Session};
use skyhaul_units::{Duration, Instant, Probability, Rate};

/// The kind.
pub(super) struct PathDies;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cell {
    /// Of the path that dies.
    rate: Rate,
    /// Of the path that dies.
    rtt: Duration,
    /// Of the other.
    surviving_rate: Rate,
    /// Of the other.
    surviving_rtt: Duration,
    /// Share of datagrams lost on both, before and after.
    #[serde(default = "nothing")]
    loss: Probability,
    /// What dies. Left out: both directions.
    #[serde(default)]
    dies: Dies,
}

const fn nothing() -> Probability {
    Probability::ZERO
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Dies {
    #[default]
    Both,
    /// The direction of the data.
    Data,
    /// The direction of acknowledgements and reports.
    Return,
}

impl Dies {
    /// Whose sending is swallowed: the near side's, the far side's.
    const fn sides(self) -> &'static [usize] {
        match self {
            Self::Both => &[0, 1],
            Self::Data => &[0],
            Self::Return => &[1],
        }
    }
}

impl Kind for PathDies {
    fn name(&self) -> &'static str {
        "path-dies"
    }

    fn about(&self) -> &'static str {
        "one of two paths becomes a black hole: how long nothing is delivered, and what is missing"
    }

    fn metrics(&self) -> &'static [&'static Metric] {
        METRICS
    }

    fn cell(
        &self,
        parameters: CellParameters<'_>,
    ) -> Result<Box<dyn Experiment>, ParametersRefused> {
        let cell: Cell = parameters.read()?;
        if cell.rate == Rate::ZERO || cell.surviving_rate == Rate::ZERO {
            return Err(ParametersRefused::new("a path has no rate; give one above zero"));
        }
        Ok(Box::new(cell))
    }
}

impl Cell {
    fn path(&self, rate: Rate, rtt: Duration) -> WorldPath {
        let acknowledging = Acknowledging::Batches;
        let line = PlainLine {
            rate,
            one_way_delay: rtt / 2,
            loss: self.loss,
            acknowledging,
            ..PlainLine::default()
        };
        WorldPath::new(line)
    }
}

impl Experiment for Cell {
    fn virtual_time(&self) -> Duration {
        BEFORE + AFTER
    }

    fn cost(&self) -> Duration {
        let rate = Rate::from_bps(self.rate.as_bps().saturating_add(self.surviving_rate.as_bps()));
        PER_DATAGRAM * ((rate * (BEFORE + AFTER)).as_u64() / 1_500)
    }

    fn run(&self, seed: u64) -> Result<Measured, Broken> {
        let undisturbed = self.pauses(seed, None)?;
        let died = self.pauses(seed, Some(self.dies))?;
        let allowed = self.allowed();
        let mut measured = Measured::default();
        measured.add_time(&GAP, died.longest);
        measured.add(&GAP_SHARE, died.longest.as_secs_f64() / allowed.as_secs_f64());
        measured.add_time(&UNDISTURBED_GAP, undisturbed.longest);
        measured.add(&LOST, died.lost_blocks as f64 * BLOCK as f64);
        measured.add(&STALLS, died.stalls as f64);
        measured.add(&COPIES, died.copies as f64);
        Ok(measured)
    }
}

impl Cell {
    /// The longest pause that there may be.
    fn allowed(&self) -> Duration {
        SHORTEST.max(self.surviving_rtt * 2)
    }

    /// A run in which the first path dies so, or does not.
    fn pauses(&self, seed: u64, dies: Option<Dies>) -> Result<Pauses, Broken> {
        let paths =
            [self.path(self.rate, self.rtt), self.path(self.surviving_rate, self.surviving_rtt)];
        let bulk = Bulk::of(Block::reliable(FlowId(0), Bytes::from(vec![0x5a; BLOCK])), u64::MAX);
        let mut world = World::new(WorldConfig::default(), &paths, seed, bulk, Watch::default());
        if !world.open() {
            return Err(Broken("the sessions did not open".to_owned()));
        }
        let at = world.now() + BEFORE;
        for side in dies.map_or(&[][..], Dies::sides) {
            world.paths[0].change_from(*side, at, PlainChange::Hole(Duration::MAX));
        }
        let until = at + AFTER;
        world.run_until(until, |_| false);
        let mut pauses = Pauses { longest: world.far.user.longest(until), ..Pauses::default() };
        let sent = world.near.session.stats().sent.blocks_taken;
        if dies.is_some() {
            world.near.user.stop();
            world.touch();
            // All that was handed over arrives, however slow the path that is left.
            world.run_for(REST, |world| world.far.user.sink.blocks() == sent);
            pauses.lost_blocks = sent.saturating_sub(world.far.user.sink.blocks());
        }
        let paths = || world.near.session.paths().iter().map(|(_, path)| path.stats);
        pauses.stalls = paths().map(|stats| stats.stalls).sum();
        pauses.copies = paths().map(|stats| stats.repair_sent).sum();
        Ok(pauses)
    }
}

/// What a run showed.
#[derive(Debug, Clone, Copy, Default)]
struct Pauses {
    longest: Duration,
    lost_blocks: u64,
    stalls: u64,
    copies: u64,
}

/// Takes blocks and looks for pauses between them, from the first on.
#[derive(Debug, Default)]
struct Watch {
    sink: Sink,
    /// When the last block came.
    last: Option<Instant>,
    longest: Duration,
}

impl Watch {
    /// The longest pause: one that is not over `now` counts for what it has lasted.
    fn longest(&self, now: Instant) -> Duration {
        self.longest.max(self.last.map_or(Duration::MAX, |last| now.since(last)))
    }
}

impl User for Watch {
    fn event(&mut self, now: Instant, session: &mut Session, event: Event) {
        if matches!(event, Event::Block(_)) {
            let pause = self.last.replace(now).map_or(Duration::ZERO, |last| now.since(last));
            self.longest = self.longest.max(pause);
        }
        self.sink.event(now, session, event);
    }

    fn work(&mut self, now: Instant, session: &mut Session) -> Option<Instant> {
        self.sink.work(now, session)
    }
}

const GAP: Metric = Metric {
    key: "gap_s",
    heading: "gap",
    unit: Unit::Seconds,
    meaning: "longest time without a delivery, from the first block until 4 s after the path's end",
};
const GAP_SHARE: Metric = Metric {
    key: "gap_share",
    heading: "gap ÷ allowed",
    unit: Unit::Share,
    meaning: "the gap over the larger of 200 ms and two round trips of the path that is left",
};
const UNDISTURBED_GAP: Metric = Metric {
    key: "undisturbed_gap_s",
    heading: "without death",
    unit: Unit::Seconds,
    meaning: "longest time without a delivery in the same 7 s of the same run where no path dies",
};
const LOST: Metric = Metric {
    key: "lost_bytes",
    heading: "bytes lost",
    unit: Unit::Count,
    meaning: "bytes handed over that never arrive",
};
const STALLS: Metric = Metric {
    key: "stalls",
    heading: "stalls",
    unit: Unit::Count,
    meaning: "how often a path was left; the dead one once",
};
const COPIES: Metric = Metric {
    key: "repair_sent",
    heading: "repair",
    unit: Unit::Count,
    meaning: "second copies and coded symbols that the sender spent, in the whole run",
};

const METRICS: &[&Metric] = &[&GAP, &GAP_SHARE, &UNDISTURBED_GAP, &LOST, &STALLS, &COPIES];

/// The shortest gap that must be allowed.
const SHORTEST: Duration = Duration::from_millis(200);
/// How long both paths work.
const BEFORE: Duration = Duration::from_secs(3);
/// How long gaps are looked for after that.
const AFTER: Duration = Duration::from_secs(4);
/// How long the rest may take: the send buffer at 5 Mbit/s takes 107 s.
const REST: Duration = Duration::from_secs(200);
/// Small, so that a block's own time counts little.
const BLOCK: usize = 8 << 10;
/// What a datagram costs a processor core, measured.
const PER_DATAGRAM: Duration = Duration::from_nanos(5_000);
