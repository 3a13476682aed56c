//! What carries a cell's blocks, and how far two endpoints agree.

use super::Broken;
use crate::scenario::metric::{Metric, Unit};
use crate::world::{Over, RunFault};
use serde::Deserialize;

/// What the paths of a cell are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Medium {
    /// Plain ones.
    #[default]
    Plain,
    /// QUIC connections, each told its line's rate, beside the same cell over plain paths.
    Quic,
}

impl Medium {
    /// For a world.
    pub const fn over(self) -> Over {
        match self {
            Self::Plain => Over::Plain,
            Self::Quic => Over::Quic(None),
        }
    }

    /// How many times the processor time of a cell over plain paths it takes, measured.
    pub const fn effort(self) -> u64 {
        match self {
            Self::Plain => 1,
            Self::Quic => 4,
        }
    }
}

impl From<RunFault> for Broken {
    fn from(fault: RunFault) -> Self {
        Self(fault.to_string())
    }
}

/// How far one figure is from another, as a share of it.
pub(super) fn off(figure: f64, from: f64) -> f64 {
    if figure == from { 0.0 } else { (figure / from - 1.0).abs() }
}

/// For kinds whose cells are run over QUIC and over plain paths.
pub(super) const OFF_PLAIN: Metric = Metric {
    key: "off_plain",
    heading: "off plain",
    unit: Unit::Share,
    meaning: "how far the run over QUIC is from the same over plain paths, as a share: in goodput, \
             or in blocks on time or \
              in bytes sent for a byte, whichever is farther",
};
