//! What a scenario's cells are: one file a kind of experiment.
//!
//! A further kind is a file beside this one and a line in [`KINDS`].

use super::metric::{Measured, Metric};
use super::parameters::CellParameters;
pub use super::parameters::ParametersRefused;
use core::marker::PhantomData;
use serde::de::DeserializeOwned;
use skyhaul_units::Duration;

/// A kind of experiment: it reads a cell's parameters.
pub trait Kind: Sync {
    /// Its name in scenario files.
    fn name(&self) -> &'static str;

    /// What it does, in one line.
    fn about(&self) -> &'static str;

    /// All that its cells may yield, in the order of the output.
    fn metrics(&self) -> &'static [&'static Metric];

    /// A cell from its parameters, the sweep's included.
    ///
    /// # Errors
    /// A parameter is unknown, missing or impossible.
    fn cell(
        &self,
        parameters: CellParameters<'_>,
    ) -> Result<Box<dyn Experiment>, ParametersRefused>;
}

/// A kind whose cells are their parameters.
struct Plain<C> {
    name: &'static str,
    about: &'static str,
    metrics: &'static [&'static Metric],
    cells: PhantomData<fn() -> C>,
}

/// Parameters that make a cell.
trait Cell: Experiment + DeserializeOwned + 'static {
    /// # Errors
    /// They do not go together.
    fn check(&self) -> Result<(), ParametersRefused>;
}

impl<C: Cell> Plain<C> {
    const fn new(
        name: &'static str,
        about: &'static str,
        metrics: &'static [&'static Metric],
    ) -> Self {
        Self { name, about, metrics, cells: PhantomData }
    }
}

impl<C: Cell> Kind for Plain<C> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn metrics(&self) -> &'static [&'static Metric] {
        self.metrics
    }

    fn cell(
        &self,
        parameters: CellParameters<'_>,
    ) -> Result<Box<dyn Experiment>, ParametersRefused> {
        let cell: C = parameters.read()?;
        cell.check()?;
        Ok(Box::new(cell))
    }
}

/// A cell that can be run.
pub trait Experiment: Send + Sync {
    /// How much virtual time a run takes.
    fn virtual_time(&self) -> Duration;

    /// About how long a run keeps one processor busy: for the order of work and what `list` says.
    fn cost(&self) -> Duration;

    /// Runs it. The same seed gives the same result.
    ///
    /// # Errors
    /// The run did not get to its end.
    fn run(&self, seed: u64) -> Result<Measured, Broken>;
}

/// Why a run did not get to its end. It is the program's fault, not the scenario's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub String);

impl core::fmt::Debug for dyn Kind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

impl core::fmt::Debug for dyn Experiment {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} of virtual time", self.virtual_time())
    }
}

mod bisect;
mod blocks;
mod controller;
mod destinations;
mod dtp;
mod fade;
mod flow;
mod goodput;
mod line;
mod medium;
mod one_way;
mod path_dies;
mod paths;
mod repair;
mod shared;
mod stream;
mod watched;

/// All kinds.
pub static KINDS: &[&dyn Kind] = &[
    &flow::Flow,
    &goodput::Goodput,
    &blocks::KIND,
    &bisect::KIND,
    &repair::KIND,
    &dtp::Dtp,
    &paths::KIND,
    &path_dies::PathDies,
    &one_way::OneWay,
    &shared::KIND,
    &destinations::KIND,
    &fade::KIND,
];
