//! Planned passes: files that list them, orbits they are computed from, and which contacts came of
//! them.
//!
//! A pass is planned by the mission or the antenna's schedule: [`PlannedPasses`] reads such lists.
//! Where there is none, [`PredictedPasses`] computes the passes of satellites from their
//! [`OrbitElements`] over an [`AntennaSite`]. [`PassBook`] compares passes with the contacts that
//! came, once a second, and says of each whether it is due, has no lock, is under way, came, or was
//! missed.

mod book;
mod elements;
mod plan;
mod predicted;
mod site;

pub use book::{PassBook, PassNews, PassState, SeenContact, ShownPass};
pub use elements::{ORBIT_FILE_BYTES_MAX, OrbitElements};
pub use plan::{PASS_PLAN_BYTES_MAX, PassPlanError, PlannedPass, PlannedPasses};
pub use predicted::{PredictedPasses, PredictionRequest};
pub use site::AntennaSite;
