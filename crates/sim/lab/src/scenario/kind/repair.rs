//! `repair`: what repair costs a bulk transfer, which gains nothing from it but at its end.

use super::medium::{Medium, OFF_PLAIN, off};
use super::{Broken, Experiment, ParametersRefused, Plain, watched};
use crate::scenario::metric::{GOODPUT, Measured, Metric, Unit};
use crate::world::{Bulk, Over, Sessions, Sink, Users, WorldConfig};
use bytes::Bytes;
use serde::Deserialize;
use skyhaul_transport::repair::Goal;
use skyhaul_transport::{Block, SessionConfig};
use skyhaul_units::{ByteCount, Duration, FlowId, Probability, Rate};

/// The kind.
pub(super) static KIND: Plain<Settings> = Plain::new(
    "repair",
    "a bulk transfer with repair and without: its goodput, and how long its last blocks take",
    METRICS,
);

impl super::Cell for Settings {
    fn check(&self) -> Result<(), ParametersRefused> {
        watched::check(self.warm_up, self.duration)
    }
}

/// A bulk transfer over a line.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
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
    /// What the path is.
    #[serde(default)]
    over: Medium,
}

impl Experiment for Settings {
    fn virtual_time(&self) -> Duration {
        self.duration * 2
    }

    fn cost(&self) -> Duration {
        PER_PACKET * ((self.rate * self.duration).as_u64() / 1_500 * 2) * self.over.effort()
    }

    fn run(&self, seed: u64) -> Result<Measured, Broken> {
        let [with, without] = [Some(Goal::default()), None];
        let over = self.over.over();
        let (repaired, unrepaired) =
            (self.goodput(with, seed, over)?, self.goodput(without, seed, over)?);
        let (end_repaired, end_plain) =
            (self.end(with, seed, over)?, self.end(without, seed, over)?);
        let mut measured = Measured::default();
        measured.add_rate(&GOODPUT, repaired);
        measured.add(&OF_PLAIN, repaired.as_bps() as f64 / unrepaired.as_bps() as f64);
        measured.add_time(&END, end_repaired);
        measured.add_time(&END_PLAIN, end_plain);
        if self.over == Medium::Quic {
            let plain = self.goodput(with, seed, Over::Plain)?;
            measured.add(&OFF_PLAIN, off(repaired.as_bps() as f64, plain.as_bps() as f64));
        }
        Ok(measured)
    }
}

impl Settings {
    fn sessions(
        &self,
        repair: Option<Goal>,
        seed: u64,
        over: Over,
        bulk: Bulk,
    ) -> Result<Sessions<Bulk, Sink>, Broken> {
        let config = WorldConfig::alike(SessionConfig { repair, ..SessionConfig::default() });
        let path = watched::path(self.rate, self.rtt, self.loss);
        let users = Users { near: bulk, far: Sink::default() };
        Ok(Sessions::open(over, config, &[path], seed, users)?)
    }

    fn goodput(&self, repair: Option<Goal>, seed: u64, over: Over) -> Result<Rate, Broken> {
        let mut sessions = self.sessions(repair, seed, over, Bulk::new(FLOW))?;
        let begin = sessions.now();
        sessions.run_until(begin + self.warm_up)?;
        let before = sessions.far_user()?.delivered();
        sessions.run_until(begin + self.duration)?;
        let span = self.duration.saturating_sub(self.warm_up);
        Ok(Rate::over(sessions.far_user()?.delivered() - before, span))
    }

    /// How long a transfer of a few round trips takes.
    fn end(&self, repair: Option<Goal>, seed: u64, over: Over) -> Result<Duration, Broken> {
        let block = Block::reliable(FLOW, Bytes::from(vec![0x5a; BLOCK]));
        let count = (self.rate * (self.rtt * 4)).as_u64() / BLOCK as u64;
        let mut sessions = self.sessions(repair, seed, over, Bulk::of(block, count))?;
        let (begin, whole) = (sessions.now(), ByteCount::new(count * BLOCK as u64));
        sessions.run_until_done(begin + self.duration, |sink| sink.delivered() >= whole)?;
        Ok(sessions.now().since(begin))
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

const METRICS: &[&Metric] = &[&GOODPUT, &OF_PLAIN, &END, &END_PLAIN, &OFF_PLAIN];

const FLOW: FlowId = FlowId(0);
const BLOCK: usize = 64 << 10;
/// What a packet costs a processor core with both sessions.
const PER_PACKET: Duration = Duration::from_nanos(4_000);
