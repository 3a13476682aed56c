//! The mission that a caller names.

use crate::errors::of_data;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use skyhaul_ccsds::mission::{GENERIC, Mission, MissionSet};
use std::path::Path;

/// The mission of a name, or of a file that ends in `.toml`.
pub fn mission_of(wanted: &str, known: &MissionSet) -> PyResult<Mission> {
    if Path::new(wanted).extension().is_some_and(|extension| extension == "toml") {
        let text = std::fs::read_to_string(wanted)?;
        return Mission::from_toml(&text).map_err(|error| {
            of_data(
                &format!("{wanted}:{}", error.line),
                &error.reason,
                "the program's missions are examples",
            )
        });
    }
    if wanted == "generic" {
        return Ok(Mission::from_toml(GENERIC).expect("the program's own mission can be read"));
    }
    known.by_name(wanted).cloned().ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(Mission::name).collect();
        let help = format!("write one of {}, generic, or a file ending in .toml", names.join(", "));
        PyValueError::new_err(format!("there is no mission `{wanted}`; {help}"))
    })
}
