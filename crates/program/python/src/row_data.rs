//! Whether a table has the bytes of its rows.

use bytes::Bytes;
use pyo3::prelude::*;

/// The column `data` of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowData {
    /// The table has no such column.
    Omitted,
    /// Each row has its bytes.
    Kept,
}

impl RowData {
    /// An empty column, if there is one.
    pub fn column(self) -> Option<Vec<Bytes>> {
        match self {
            Self::Omitted => None,
            Self::Kept => Some(Vec::new()),
        }
    }
}

/// Reads the argument `data`, which callers give as a `bool`.
pub fn row_data(argument: &Bound<'_, PyAny>) -> PyResult<RowData> {
    Ok(if argument.extract()? { RowData::Kept } else { RowData::Omitted })
}
