//! What may be asked: the list of series, and the values of one over time.

use crate::book::{HistoryBook, SECONDS_KEPT};
use crate::cell::{CellSalt, HistoryCell};
use crate::form::{HistoryFile, MINUTES_KEPT, ROW_BYTES};
use crate::table::{HistorySeries, HistoryUnit, SeriesPlace, SeriesTable};
use serde::{Deserialize, Serialize};
use skyhaul_units::{Duration, Utc};
use std::collections::BTreeMap;

/// Rows of a page.
pub const ROWS_MAX: usize = 1_000;

/// What is asked of one series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryQuery {
    /// The series.
    pub series: String,
    /// From this time on. Default: `last` before `to`.
    pub from: Option<String>,
    /// Until before this time. Default: now.
    pub to: Option<String>,
    /// In place of `from`: so long before `to`. Default: 48 h.
    pub last: Option<Duration>,
    /// The span of a row. Default: the least with which all fits a page.
    pub step: Option<Duration>,
}

/// The series of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryList {
    /// By name.
    pub series: Vec<HistorySeries>,
    /// Series for which there was no room since the node started.
    pub left_out: u64,
    /// How long hours are kept, in seconds.
    pub kept_s: u64,
}

/// The values of a series over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryPage {
    /// The series.
    pub series: String,
    /// What its values are.
    pub unit: HistoryUnit,
    /// The span of a row, in seconds.
    pub step_s: u64,
    /// From this time on.
    pub from: String,
    /// Until before this time.
    pub to: String,
    /// Oldest first. A span without a value has no row.
    pub rows: Vec<HistoryRow>,
    /// The `from` of the next page; none behind the last one.
    pub next: Option<String>,
}

/// What a series was in a span of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryRow {
    /// When the span begins.
    pub at: String,
    /// Values in it.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// Half of them are no greater; of spreads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// 95 of 100 are no greater; of spreads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95: Option<f64>,
    /// The share that kept its budget; of multiples of a budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_time: Option<f64>,
    /// The contact of the greatest; of spreads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<String>,
}

/// Why nothing can be said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistoryRefusal {
    /// There is no such series.
    #[error("there is no series `{0}`; ask for the list of series")]
    Unknown(String),
    /// A time or span is none.
    #[error("`{name}` is {wanted}; `{text}` is not")]
    Text {
        /// The parameter.
        name: &'static str,
        /// What it must be.
        wanted: &'static str,
        /// What it is.
        text: String,
    },
    /// The range is empty.
    #[error("`from` has to be before `to`")]
    Empty,
    /// There is no such parameter.
    #[error("`{0}` is no parameter of the history; it has `series`, `from`, `to`, `last`, `step`")]
    Parameter(String),
    /// Both were given.
    #[error("give `from` or `last`, not both")]
    Both,
    /// Spreads have no seconds.
    #[error("seconds are not kept of this series; the least step is 1 min")]
    Seconds,
}

/// What is read to answer a query.
#[derive(Debug)]
pub struct HistoryPlan {
    page: HistoryPage,
    step: i64,
    until: i64,
    /// Where the cells are.
    place: SeriesPlace,
    id: u32,
    file: HistoryFile,
    reads: Vec<CellRead>,
    /// By the begin of the row.
    cells: BTreeMap<i64, HistoryCell>,
    table: SeriesTable,
}

#[derive(Debug)]
struct CellRead {
    offset: u64,
    number: u64,
    row: i64,
}

/// The range of a query, in seconds since 1970.
struct HistoryRange {
    from: i64,
    to: i64,
    step: i64,
}

const RANGE: Duration = Duration::from_secs(MINUTES_KEPT as u64 * 60);
const STEPS: [i64; 6] = [60, 300, 900, 3_600, 21_600, 86_400];
const TIME: &str = "a time such as 2026-11-27T12:30:00Z";
const SPAN: &str = "a span such as 10 min";
/// Rows that are read at once: 330 kB.
const ROWS_READ: usize = 64;
const ROW_SPAN: u64 = ROW_BYTES as u64;
/// A step of 1,000 days; a range of 100 years.
const STEP_MAX: i64 = 86_400_000;

impl HistoryQuery {
    /// The newest 48 h of a series.
    pub fn of(series: &str) -> Self {
        Self { series: series.to_owned(), from: None, to: None, last: None, step: None }
    }

    /// From names and values; none where no series is named.
    ///
    /// # Errors
    /// A name is not known, or a value is none.
    pub fn read<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Option<Self>, HistoryRefusal> {
        let (mut query, mut is_named) = (Self::of(""), false);
        let span = |name, text: &str| {
            let refused = || HistoryRefusal::Text { name, wanted: SPAN, text: short(text) };
            text.parse::<Duration>().map_err(|_| refused())
        };
        for (name, value) in pairs {
            match name {
                "series" => {
                    value.clone_into(&mut query.series);
                    is_named = true;
                }
                "from" => query.from = Some(value.to_owned()),
                "to" => query.to = Some(value.to_owned()),
                "last" => query.last = Some(span("last", value)?),
                "step" => query.step = Some(span("step", value)?),
                other => return Err(HistoryRefusal::Parameter(short(other))),
            }
        }
        Ok(is_named.then_some(query))
    }

    fn range(&self, now: Utc) -> Result<HistoryRange, HistoryRefusal> {
        let time = |name, text: &Option<String>| {
            let read = |text: &String| {
                let refused = || HistoryRefusal::Text { name, wanted: TIME, text: short(text) };
                Utc::from_rfc3339(text).ok_or_else(refused)
            };
            text.as_ref().map(read).transpose()
        };
        if self.from.is_some() && self.last.is_some() {
            return Err(HistoryRefusal::Both);
        }
        // The second that goes on is in it.
        let to = time("to", &self.to)?.unwrap_or(now + Duration::from_secs(1));
        let from = time("from", &self.from)?.unwrap_or(to - self.last.unwrap_or(RANGE));
        let (from, to) = (seconds(from), seconds(to));
        if from >= to {
            return Err(HistoryRefusal::Empty);
        }
        let step = match self.step {
            Some(step) => {
                let step = i64::try_from(step.as_millis() / 1_000).unwrap_or(STEP_MAX);
                step.clamp(1, STEP_MAX)
            }
            None => usual_step(from, to, seconds(now)),
        };
        Ok(HistoryRange { from, to, step })
    }
}

/// The least step with which a range fits a page, and whose rows are kept for so long.
fn usual_step(from: i64, to: i64, now: i64) -> i64 {
    let rows = i64::try_from(ROWS_MAX).unwrap_or(i64::MAX);
    let least = if now - from > i64::from(MINUTES_KEPT + 60) * 60 { 3_600 } else { 60 };
    let fits = |step: &i64| *step >= least && (to - from) / step < rows;
    STEPS.into_iter().find(fits).unwrap_or_else(|| ((to - from) / rows + 1).max(86_400))
}

fn seconds(time: Utc) -> i64 {
    time.as_micros().div_euclid(1_000_000)
}

fn rfc3339(seconds: i64) -> String {
    Utc::from_micros(seconds.saturating_mul(1_000_000)).to_string()
}

fn short(text: &str) -> String {
    skyhaul_units::printable(text, 64)
}

impl HistoryBook {
    /// The series.
    pub fn list(&self) -> HistoryList {
        HistoryList {
            series: self.table.series(),
            left_out: self.table.left_out() as u64,
            kept_s: u64::from(self.hours.head.rows) * 3_600,
        }
    }

    /// How a query is answered.
    ///
    /// # Errors
    /// See [`HistoryRefusal`].
    pub fn plan(&self, query: &HistoryQuery, now: Utc) -> Result<HistoryPlan, HistoryRefusal> {
        let HistoryRange { from, to, step } = query.range(now)?;
        let unknown = || HistoryRefusal::Unknown(short(&query.series));
        let place = self.table.find(&query.series).ok_or_else(unknown)?;
        let entry = self.table.entry(place).ok_or_else(unknown)?;
        // A row is whole: it begins at a multiple of the step.
        let from = from - from.rem_euclid(step);
        let most = i64::try_from(ROWS_MAX).unwrap_or(i64::MAX).saturating_mul(step);
        let until = to.min(from.saturating_add(most));
        let page = HistoryPage {
            series: entry.name.clone(),
            unit: entry.unit,
            step_s: step.unsigned_abs(),
            from: rfc3339(from),
            to: rfc3339(to),
            rows: Vec::new(),
            next: (until < to).then(|| rfc3339(until)),
        };
        let file = match step {
            3_600.. => HistoryFile::Hours,
            _ => HistoryFile::Minutes,
        };
        let mut plan = HistoryPlan {
            page,
            step,
            until,
            place,
            id: entry.id,
            file,
            reads: Vec::new(),
            cells: BTreeMap::new(),
            table: self.table.clone(),
        };
        if step < HistoryFile::Minutes.span() {
            self.plan_seconds(&mut plan, from)?;
        } else {
            self.plan_rows(&mut plan, from);
        }
        Ok(plan)
    }

    fn plan_seconds(&self, plan: &mut HistoryPlan, from: i64) -> Result<(), HistoryRefusal> {
        let none = || HistoryRefusal::Seconds;
        let seconds = self.seconds.get(&plan.place).ok_or_else(none)?;
        for one in seconds.iter().take(SECONDS_KEPT) {
            if (from..plan.until).contains(&one.second) {
                let mut cell = HistoryCell::default();
                cell.sketch.add(one.value, 1);
                plan.add(one.second, &cell);
            }
        }
        Ok(())
    }

    fn plan_rows(&self, plan: &mut HistoryPlan, from: i64) {
        let book = match plan.file {
            HistoryFile::Minutes => &self.minutes,
            HistoryFile::Hours => &self.hours,
        };
        let is_asked = |begin: i64| (from..plan.until).contains(&begin);
        for head in book.rows.iter().flatten().filter(|head| is_asked(head.begin)) {
            let offset = book.head.offset(head.number) + plan.place.offset() as u64;
            plan.reads.push(CellRead { offset, number: head.number, row: head.begin });
        }
        // The disk reads them in the order in which they lie there.
        plan.reads.sort_unstable_by_key(|read| read.offset);
        // What is not written yet: of an hour also the minute that goes on.
        let hours = self.hours.open.as_ref().filter(|_| plan.file == HistoryFile::Hours);
        for open in hours.into_iter().chain(&self.minutes.open) {
            let cell = open.cells.get(&plan.place);
            if let Some(cell) = cell.filter(|_| (from..plan.until).contains(&open.begin)) {
                plan.add(open.begin, cell);
            }
        }
    }
}

impl HistoryPlan {
    fn add(&mut self, second: i64, cell: &HistoryCell) {
        let begin = second - second.rem_euclid(self.step);
        self.cells.entry(begin).or_default().merge(cell);
    }

    /// Answers with what `read` reads of a file at an offset; it says whether it could. Cells that
    /// cannot be read, or are torn, are left out.
    pub fn finish(
        mut self,
        mut read: impl FnMut(HistoryFile, u64, &mut [u8]) -> bool,
    ) -> HistoryPage {
        let (reads, length) = (std::mem::take(&mut self.reads), self.place.bytes());
        // Rows that lie one behind the other are read at once: a call costs more than their bytes.
        let is_next = |one: &CellRead, other: &CellRead| one.offset + ROW_SPAN == other.offset;
        let runs = reads.chunk_by(is_next).flat_map(|run| run.chunks(ROWS_READ));
        let mut bytes = Vec::new();
        for run in runs {
            bytes.resize((run.len() - 1) * ROW_BYTES + length, 0);
            if !run.first().is_some_and(|first| read(self.file, first.offset, &mut bytes)) {
                continue;
            }
            for (CellRead { number, row, .. }, part) in run.iter().zip(bytes.chunks(ROW_BYTES)) {
                let salt = CellSalt { row: *number, series: self.id };
                if let Some(cell) = self.place.read(&part[..length], salt) {
                    self.add(*row, &cell);
                }
            }
        }
        let rows = self.cells.iter().map(|(begin, cell)| self.row(*begin, cell)).collect();
        HistoryPage { rows, ..self.page }
    }

    fn row(&self, begin: i64, cell: &HistoryCell) -> HistoryRow {
        let sketch = &cell.sketch;
        let is_spread = self.place.kind == crate::table::SeriesKind::Spread;
        let quantile = |share| sketch.quantile(share).filter(|_| is_spread);
        let is_of_budget = self.page.unit == HistoryUnit::OfBudget && is_spread;
        HistoryRow {
            at: rfc3339(begin),
            count: sketch.count(),
            mean: sketch.mean(),
            min: sketch.min(),
            max: sketch.max(),
            p50: quantile(0.5),
            p95: quantile(0.95),
            on_time: sketch.share_within_one().filter(|_| is_of_budget),
            worst: cell.worst.and_then(|worst| self.table.contact(worst)),
        }
    }
}
