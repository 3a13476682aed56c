//! History: figures of a node over 400 days, in two files whose size never changes. No IO.
//!
//! A [`HistoryBook`] takes samples of series as they come, and says what is to be written: a row of
//! all series each minute, and one each hour. In a file the newest row takes the place of the
//! oldest. Each cell of a row has a checksum that is also over the number of its row and of its
//! series, so that a cell that a kill tore, or that is of another row, is left out and never
//! believed. Rows are in the order in which they were written, whatever the clock said: a clock
//! that jumps costs nothing.
//!
//! ```
//! use skyhaul_history::{HistoryBook, HistoryQuery, HistorySample, HistoryUnit};
//! use skyhaul_units::{Duration, Utc};
//!
//! let mut book = HistoryBook::new(9_600);
//! let begin = Utc::from_rfc3339("2026-11-27T12:00:00Z").unwrap();
//! for second in 0_u32..50 {
//!     let sample = HistorySample::level("spool/bytes", HistoryUnit::Bytes, f64::from(second));
//!     book.add(begin + Duration::from_secs(second.into()), &[sample]);
//! }
//! let query = HistoryQuery::of("spool/bytes");
//! let plan = book.plan(&query, begin + Duration::from_secs(50)).unwrap();
//! let page = plan.finish(|_, _, _| false);
//! assert_eq!((page.rows[0].count, page.rows[0].max), (50, 49.0));
//! ```

mod book;
mod cell;
mod checksum;
mod form;
mod query;
mod sketch;
mod table;

pub use book::{HistoryBook, HistorySample, HistoryWrite};
pub use cell::{CellSalt, HistoryCell, WorstContact};
pub use form::{
    FILE_HEAD, FileHead, HistoryFile, HistoryFormError, LEVELS_MAX, MINUTES_KEPT, ROW_BYTES,
    ROW_HEAD, RowHead, SPREADS_MAX,
};
pub use query::{
    HistoryList, HistoryPage, HistoryPlan, HistoryQuery, HistoryRefusal, HistoryRow, ROWS_MAX,
};
pub use sketch::{BUCKETS, HistorySketch};
pub use table::{HistorySeries, HistoryUnit, SeriesTable, TABLE_BYTES_MAX};

#[cfg(test)]
mod tests;
