//! `paths`: bulk data over a random set of two or three paths, each run's set being its seed's.

use super::{Broken, Experiment, Kind, Parameters, Refused};
use crate::scenario::metric::{GOODPUT, LIMIT, Measured, Metric, RATIO, Unit};
use crate::world::PathSet;
use serde::Deserialize;
use skyhaul_units::Duration;

/// The kind.
pub(super) struct Paths;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameter {
    /// What the paths are.
    #[serde(default)]
    over: Over,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Over {
    /// Plain ones.
    #[default]
    Plain,
    /// QUIC connections, beside the same set of plain ones.
    Quic,
}

impl Kind for Paths {
    fn name(&self) -> &'static str {
        "paths"
    }

    fn about(&self) -> &'static str {
        "bulk data over a random set of two or three paths, beside what the best and all of them could carry"
    }

    fn metrics(&self) -> &'static [&'static Metric] {
        METRICS
    }

    fn cell(&self, parameters: Parameters<'_>) -> Result<Box<dyn Experiment>, Refused> {
        let Parameter { over } = parameters.read()?;
        Ok(Box::new(over))
    }
}

impl Experiment for Over {
    fn virtual_time(&self) -> Duration {
        MEAN_TIME
    }

    fn cost(&self) -> Duration {
        match self {
            Self::Plain => PER_SET,
            Self::Quic => PER_SET * 6,
        }
    }

    fn run(&self, seed: u64) -> Result<Measured, Broken> {
        let set = match self {
            Self::Plain => PathSet::random(seed),
            Self::Quic => PathSet::random(seed).in_standard_packets(),
        };
        let broken = |fault| Broken(format!("{set}: {fault}"));
        let plain = set.run().map_err(broken)?;
        let used = match self {
            Self::Plain => plain,
            Self::Quic => set.run_over_quic().map_err(broken)?,
        };
        let mut measured = Measured::default();
        measured.add_rate(&GOODPUT, used.goodput);
        measured.add_rate(&LIMIT, used.sum);
        measured.add(&RATIO, used.over_sum());
        measured.add(&OVER_BEST, used.over_best());
        measured.add(&PATHS, set.paths.len() as f64);
        if *self == Self::Quic {
            measured.add(&OFF_PLAIN, (used.over_sum() / plain.over_sum() - 1.0).abs());
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
const OFF_PLAIN: Metric = Metric {
    key: "off_plain",
    heading: "off plain",
    unit: Unit::Share,
    meaning: "how far goodput over QUIC is from that over plain paths, as a share of it",
};

const METRICS: &[&Metric] = &[&GOODPUT, &LIMIT, &RATIO, &OVER_BEST, &PATHS, &OFF_PLAIN];

/// What a set takes in virtual time, on average.
const MEAN_TIME: Duration = Duration::from_secs(8);
/// What a set costs a processor core, on average, measured.
const PER_SET: Duration = Duration::from_millis(250);
