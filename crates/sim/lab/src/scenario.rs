//! Scenarios: what is run in virtual time, over what it is swept, and what must come out.
//!
//! A scenario is a TOML file (`docs/how-to/lab.md` has every key): a [kind](kind::Kind) of
//! experiment with its parameters, axes whose product makes the cells, seeds, and bars. [`run()`]
//! runs cells in parallel. A [`ScenarioResult`] is plain data, with JSON, [text](OutcomeText) and
//! an HTML [report]. The same scenario and program give the same outcome, except for the time that
//! it took.
//!
//! ```
//! use skyhaul_lab::scenario::{Scenario, CellSelection, Silent, run};
//! let text = r#"
//!     name = "example"
//!     title = "a declared line is used to the full"
//!     source = "an example"
//!     kind = "flow"
//!     [parameters]
//!     rate = "10 Mbit/s"
//!     rtt = "40 ms"
//!     duration = "5 s"
//!     controller = "line"
//!     [[axis]]
//!     name = "loss"
//!     values = ["0 %", "5 %"]
//!     [[bar]]
//!     text = "≥ 0.97 of limit"
//!     metric = "ratio"
//!     at_least = 0.97
//! "#;
//! let scenarios = [Scenario::parse(text, "example.toml")?];
//! let (every_cell, one) = (CellSelection::default(), core::num::NonZeroUsize::MIN);
//! let outcomes = run(&scenarios, &every_cell, one, &Silent);
//! assert_eq!(outcomes[0].runs.len(), 2);
//! assert_eq!(outcomes[0].score(), (1, 1));
//! # Ok::<(), skyhaul_lab::scenario::ScenarioError>(())
//! ```

mod axis;
mod bar;
mod builtin;
mod document;
mod error;
pub mod kind;
mod known;
mod metric;
mod outcome;
mod parameters;
pub mod report;
mod run;
mod selection;
mod table;
mod view;

pub use axis::Axis;
pub use bar::{Bar, BarRange, BarResult, JudgedBar, Over};
pub use builtin::BUILTIN;
pub use document::{Cell, MAX_FILE, MAX_RUNS, Published, Scenario};
pub use error::ScenarioError;
pub use metric::{Measured, Metric, PointSeries, Unit};
pub use outcome::{CellOutcome, ScenarioResult};
pub use parameters::CellParameters;
pub use run::{Observer, Silent, run};
pub use selection::{CellSelection, CellSelectionError};
pub use table::OutcomeText;
pub use view::{Pivot, Plot, Shape};

#[cfg(test)]
mod tests;
