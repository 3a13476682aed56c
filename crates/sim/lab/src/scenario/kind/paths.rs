//! `paths`: bulk data over a random set of two or three paths, each run's set being its seed's.

use super::controller::Choice;
use super::medium::{Medium, OFF_PLAIN, off};
use super::{Broken, Experiment, ParametersRefused, Plain};
use crate::scenario::metric::{GOODPUT, LIMIT, Measured, Metric, RATIO, Unit};
use crate::world::{Over, PathSet, RunFault};
use serde::Deserialize;
use skyhaul_units::Duration;

/// The kind.
pub(super) static KIND: Plain<Settings> = Plain::new(
    "paths",
    "bulk data over a random set of two or three paths, beside what the best and all of them could \
    carry",
    METRICS,
);

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    /// What the paths are.
    #[serde(default)]
    over: Medium,
    /// Who decides over QUIC how fast each path sends; `line`, as if left out, declares each its
    /// rate.
    controller: Option<Choice>,
}

impl super::Cell for Settings {
    fn check(&self) -> Result<(), ParametersRefused> {
        match self {
            Self { over: Medium::Plain, controller: Some(_) } => Err(ParametersRefused::new(
                "plain paths have no controller; leave it out, or add over = \"quic\"",
            )),
            _ => Ok(()),
        }
    }
}

impl Experiment for Settings {
    fn virtual_time(&self) -> Duration {
        MEAN_TIME
    }

    fn cost(&self) -> Duration {
        PER_SET * self.over.effort()
    }

    fn run(&self, seed: u64) -> Result<Measured, Broken> {
        let set = match self.over {
            Medium::Plain => PathSet::random(seed),
            Medium::Quic => PathSet::random(seed).in_standard_packets(),
        };
        let broken = |fault: RunFault| Broken(format!("{set}: {fault}"));
        let over = match (self.over, self.controller) {
            (Medium::Quic, Some(Choice::Config(controller))) => Over::Quic(Some(controller)),
            (medium, _) => medium.over(),
        };
        let used = set.run(over).map_err(broken)?;
        let mut measured = Measured::default();
        measured.add_rate(&GOODPUT, used.goodput);
        measured.add_rate(&LIMIT, used.sum);
        measured.add(&RATIO, used.over_sum());
        measured.add(&OVER_BEST, used.over_best());
        measured.add(&PATHS, set.paths.len() as f64);
        // Plain paths are told their rate: there is nothing to agree with for a controller that is
        // told nothing.
        if over == Over::Quic(None) {
            measured.add(
                &OFF_PLAIN,
                off(used.over_sum(), set.run(Over::Plain).map_err(broken)?.over_sum()),
            );
        }
        Ok(measured)
    }
}

const OVER_BEST: Metric = Metric {
    key: "over_best",
    heading: "÷ best path",
    unit: Unit::Share,
    meaning: "goodput ÷ what the best of the paths alone could carry",
};
const PATHS: Metric =
    Metric { key: "paths", heading: "paths", unit: Unit::Count, meaning: "paths of the set" };
const METRICS: &[&Metric] = &[&GOODPUT, &LIMIT, &RATIO, &OVER_BEST, &PATHS, &OFF_PLAIN];

/// What a set takes in virtual time, on average.
const MEAN_TIME: Duration = Duration::from_secs(8);
/// What a set costs a processor core, on average, measured.
const PER_SET: Duration = Duration::from_millis(250);
