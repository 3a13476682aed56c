//! Which controller a path uses, by name.

use crate::{Controller, Line, LineConfig, Memory};
use serde::{Deserialize, Serialize};
use skyhaul_units::Rate;

/// A controller and its parameters, as a configuration or a scenario states them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ControllerConfig {
    /// The line's rate is declared.
    Line(LineConfig),
}

impl ControllerConfig {
    /// A line of declared rate.
    pub const fn declared(rate: Rate) -> Self {
        Self::Line(LineConfig::declared(rate))
    }

    /// The rate that is declared, where one is.
    pub const fn declared_rate(&self) -> Option<Rate> {
        match self {
            Self::Line(line) => Some(line.rate),
        }
    }

    /// A new controller; `memory` is what was learned when the path was used before.
    pub fn build(&self, _memory: Option<Memory>) -> Box<dyn Controller> {
        match self {
            Self::Line(line) => Box::new(Line::new(*line)),
        }
    }
}
