//! The ledger of gaps of a centre.

use crate::errors::of_data;
use pyo3::prelude::*;
use std::path::PathBuf;

/// The gaps in the state folder of a centre, as `skyhaul gaps --json` prints them, and the records
/// that cannot be read.
#[pyfunction]
pub fn ledger(py: Python<'_>, path: PathBuf) -> PyResult<(String, Vec<String>)> {
    let kept = py.detach(|| skyhaul_node::centre::kept_gaps(&path));
    let (report, damaged) =
        kept.map_err(|fault| of_data(&fault.place, &fault.what, &fault.help))?;
    Ok((serde_json::to_string(&report).expect("a report has text keys only"), damaged))
}
