//! Planned passes: files that list them, and which contacts came of them.
//!
//! A pass is planned by the mission or the antenna's schedule. [`PlannedPasses`] reads such lists;
//! [`PassBook`] compares them with the contacts that came, once a second, and says of each pass
//! whether it is due, has no lock, is under way, came, or was missed.

mod book;
mod plan;

pub use book::{PassBook, PassNews, PassState, SeenContact, ShownPass};
pub use plan::{PASS_PLAN_BYTES_MAX, PassPlanError, PlannedPass, PlannedPasses};
