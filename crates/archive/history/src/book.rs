//! The book: samples come in, rows go out.

use crate::cell::{CellSalt, HistoryCell, WorstContact};
use crate::form::{FileHead, HistoryFile, MINUTES_KEPT, ROW_BYTES, ROW_HEAD, RowHead};
use crate::sketch::HistorySketch;
use crate::table::{HistorySeries, HistoryUnit, SeriesPlace, SeriesTable};
use skyhaul_units::Utc;
use std::collections::{BTreeMap, VecDeque};

/// Seconds that are kept in memory: ten minutes.
pub(crate) const SECONDS_KEPT: usize = 600;
/// The table is written again after so many hours, so that it knows which series are gone.
const TABLE_EVERY: u64 = 24;

/// Values of a series, at one instant.
#[derive(Debug, Clone, PartialEq)]
pub struct HistorySample {
    /// The series: `KIND/SUBJECT/FIGURE`.
    pub series: HistorySeries,
    /// The values.
    pub sketch: HistorySketch,
    /// The contact of the greatest: its station, and its flow there.
    pub worst: Option<(String, u32)>,
}

/// What is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryWrite {
    /// The table of series, as a whole.
    Table(Vec<u8>),
    /// A row: first its cells, then its head.
    Row {
        /// In this file.
        file: HistoryFile,
        /// There.
        offset: u64,
        /// Its bytes.
        bytes: Vec<u8>,
    },
}

/// All series of a node.
#[derive(Debug, Clone)]
pub struct HistoryBook {
    pub(crate) table: SeriesTable,
    is_table_new: bool,
    pub(crate) seconds: BTreeMap<SeriesPlace, VecDeque<SecondValue>>,
    pub(crate) minutes: RowBook,
    pub(crate) hours: RowBook,
    waiting: VecDeque<WaitingRow>,
}

/// The mean of a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SecondValue {
    pub(crate) second: i64,
    pub(crate) value: f64,
}

/// One of the files: the heads of its rows, and the row that is not written yet.
#[derive(Debug, Clone)]
pub(crate) struct RowBook {
    pub(crate) head: FileHead,
    /// By place.
    pub(crate) rows: Vec<Option<RowHead>>,
    /// The number of the next row.
    pub(crate) next: u64,
    pub(crate) open: Option<OpenRow>,
}

/// A row to which values are added.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenRow {
    pub(crate) begin: i64,
    pub(crate) cells: BTreeMap<SeriesPlace, HistoryCell>,
}

#[derive(Debug, Clone)]
struct WaitingRow {
    file: HistoryFile,
    row: OpenRow,
    minutes: u64,
}

impl HistorySample {
    /// A value of which mean, least and greatest are kept.
    pub fn level(name: impl Into<String>, unit: HistoryUnit, value: f64) -> Self {
        let mut sketch = HistorySketch::default();
        sketch.add(value, 1);
        let series = HistorySeries { name: name.into(), unit, spread: false };
        Self { series, sketch, worst: None }
    }

    /// Values of which also the buckets are kept.
    pub fn spread(name: impl Into<String>, unit: HistoryUnit, sketch: HistorySketch) -> Self {
        let series = HistorySeries { name: name.into(), unit, spread: true };
        Self { series, sketch, worst: None }
    }

    /// The greatest value is of this contact: its station, and its flow there.
    #[must_use]
    pub fn worst(mut self, station: &str, flow: u32) -> Self {
        self.worst = Some((station.to_owned(), flow));
        self
    }
}

impl RowBook {
    fn new(file: HistoryFile, rows: u32) -> Self {
        let head = FileHead { file, rows };
        let rows = vec![None; usize::try_from(rows).unwrap_or(0)];
        Self { head, rows, next: 1, open: None }
    }

    /// Takes up the heads that are in the file, by place.
    fn take_up(&mut self, heads: &[Option<RowHead>]) {
        for (place, (own, found)) in self.rows.iter_mut().zip(heads).enumerate() {
            let is_here = |head: &&RowHead| head.number % u64::from(self.head.rows) == place as u64;
            *own = found.as_ref().filter(is_here).copied();
        }
        self.next = self.rows.iter().flatten().map(|head| head.number).max().unwrap_or(0) + 1;
    }

    /// The rows from a number on, in the order of their numbers.
    fn since(&self, number: u64) -> Vec<RowHead> {
        let mut found: Vec<RowHead> =
            self.rows.iter().flatten().filter(|head| head.number >= number).copied().collect();
        found.sort_unstable_by_key(|head| head.number);
        found
    }
}

impl HistoryBook {
    /// An empty one; so many hours are kept.
    pub fn new(hours: u32) -> Self {
        Self {
            table: SeriesTable::default(),
            is_table_new: true,
            seconds: BTreeMap::new(),
            minutes: RowBook::new(HistoryFile::Minutes, MINUTES_KEPT),
            hours: RowBook::new(HistoryFile::Hours, hours.max(1)),
            waiting: VecDeque::new(),
        }
    }

    /// The head of a file.
    pub const fn head(&self, file: HistoryFile) -> FileHead {
        match file {
            HistoryFile::Minutes => self.minutes.head,
            HistoryFile::Hours => self.hours.head,
        }
    }

    /// Takes up what is on the disk: the table, the heads of the rows of each file by their place,
    /// and what `read` reads of a file at an offset. Minutes that are in no row of hours yet are
    /// added to one.
    pub fn take_up(
        &mut self,
        table: SeriesTable,
        heads: [&[Option<RowHead>]; 2],
        mut read: impl FnMut(HistoryFile, u64, &mut [u8]) -> bool,
    ) {
        self.table = table;
        self.is_table_new = false;
        self.minutes.take_up(heads[0]);
        self.hours.take_up(heads[1]);
        let last = self.hours.rows.iter().flatten().max_by_key(|head| head.number);
        let from = last.map_or(0, |head| head.minutes);
        // Where the minutes begin anew, what comes now is in no hour yet.
        self.minutes.next = self.minutes.next.max(from);
        let places: Vec<SeriesPlace> =
            self.table.series().iter().filter_map(|one| self.table.find(&one.name)).collect();
        for head in self.minutes.since(from) {
            let mut row = vec![0; ROW_BYTES];
            if !read(HistoryFile::Minutes, self.minutes.head.offset(head.number), &mut row) {
                continue;
            }
            let mut open = OpenRow { begin: head.begin, cells: BTreeMap::new() };
            for place in &places {
                let Some(entry) = self.table.entry(*place) else { continue };
                let salt = CellSalt { row: head.number, series: entry.id };
                let bytes = &row[place.offset()..place.offset() + place.bytes()];
                if let Some(cell) = place.read(bytes, salt) {
                    open.cells.insert(*place, cell);
                }
            }
            self.add_to_hour(&open, head.number);
        }
    }

    /// Adds samples of this time.
    pub fn add(&mut self, at: Utc, samples: &[HistorySample]) {
        let second = at.as_micros().div_euclid(1_000_000);
        self.turn(second);
        for sample in samples.iter().filter(|sample| !sample.sketch.is_empty()) {
            let Some(place) = self.place(&sample.series) else { continue };
            self.table.see(place, self.hours.next);
            let before = self.table.stations();
            let worst = sample.worst.as_ref().and_then(|(station, flow)| {
                let station = self.table.station(station)?;
                Some(WorstContact { station, flow: *flow })
            });
            self.is_table_new |= self.table.stations() > before;
            let cell = HistoryCell { sketch: sample.sketch, worst };
            if let Some(open) = &mut self.minutes.open {
                open.cells.entry(place).or_default().merge(&cell);
            }
            if !sample.series.spread {
                let seconds = self.seconds.entry(place).or_default();
                if seconds.len() == SECONDS_KEPT {
                    seconds.pop_front();
                }
                seconds.push_back(SecondValue { second, value: sample.sketch.mean() });
            }
        }
    }

    /// The next thing to write, in this order. What is not written is lost; nothing else is.
    pub fn poll(&mut self) -> Option<HistoryWrite> {
        // A cell is of a series that the table on the disk has.
        if std::mem::take(&mut self.is_table_new) {
            return Some(HistoryWrite::Table(self.table.write()));
        }
        let WaitingRow { file, row, minutes } = self.waiting.pop_front()?;
        let book = match file {
            HistoryFile::Minutes => &self.minutes,
            HistoryFile::Hours => &self.hours,
        };
        let head = RowHead { number: book.next, begin: row.begin, minutes };
        let mut bytes = vec![0; ROW_BYTES];
        bytes[..ROW_HEAD].copy_from_slice(&head.encode());
        for (place, cell) in &row.cells {
            let Some(entry) = self.table.entry(*place) else { continue };
            place.write(&mut bytes, cell, CellSalt { row: head.number, series: entry.id });
        }
        Some(HistoryWrite::Row { file, offset: book.head.offset(head.number), bytes })
    }

    /// This was written. Only then it can be asked for.
    pub fn wrote(&mut self, write: &HistoryWrite) {
        let HistoryWrite::Row { file, bytes, .. } = write else { return };
        let Some(head) = RowHead::read(bytes) else { return };
        let book = match file {
            HistoryFile::Minutes => &mut self.minutes,
            HistoryFile::Hours => &mut self.hours,
        };
        let place = head.number % u64::from(book.head.rows);
        if let Some(row) = book.rows.get_mut(usize::try_from(place).unwrap_or(usize::MAX)) {
            *row = Some(head);
        }
        book.next = head.number + 1;
        self.is_table_new |= *file == HistoryFile::Hours && head.number.is_multiple_of(TABLE_EVERY);
    }

    /// This could not be written.
    pub fn failed(&mut self, write: &HistoryWrite) {
        self.is_table_new |= matches!(write, HistoryWrite::Table(_));
    }

    /// The minute that is open is closed: the node ends.
    pub fn end(&mut self) {
        self.close_minute();
    }

    fn place(&mut self, series: &HistorySeries) -> Option<SeriesPlace> {
        if let Some(place) = self.table.find(&series.name) {
            return Some(place);
        }
        let gone = self.hours.next.checked_sub(u64::from(self.hours.head.rows));
        let place = self.table.take_up(series.clone(), gone)?;
        self.is_table_new = true;
        // What the place had before is of another series.
        self.seconds.remove(&place);
        for book in [&mut self.minutes, &mut self.hours] {
            if let Some(open) = &mut book.open {
                open.cells.remove(&place);
            }
        }
        Some(place)
    }

    /// Closes the open minute where the time is in another one. A clock that is set back by
    /// seconds stays in the open minute.
    fn turn(&mut self, second: i64) {
        let begin = HistoryFile::Minutes.begin(second);
        if let Some(open) = &self.minutes.open {
            let is_just_before = open.begin - begin == HistoryFile::Minutes.span();
            if open.begin == begin || is_just_before {
                return;
            }
        }
        self.close_minute();
        self.minutes.open = Some(OpenRow { begin, cells: BTreeMap::new() });
    }

    fn close_minute(&mut self) {
        let Some(row) = self.minutes.open.take() else { return };
        if row.cells.is_empty() {
            return;
        }
        self.add_to_hour(&row, self.minutes.next);
        self.waiting.push_back(WaitingRow { file: HistoryFile::Minutes, row, minutes: 0 });
    }

    /// Adds a minute, whose row has this number, to its hour. The hour before is closed by the
    /// first minute of another one.
    fn add_to_hour(&mut self, minute: &OpenRow, number: u64) {
        let begin = HistoryFile::Hours.begin(minute.begin);
        if self.hours.open.as_ref().is_some_and(|open| open.begin != begin)
            && let Some(row) = self.hours.open.take()
        {
            let hours = WaitingRow { file: HistoryFile::Hours, row, minutes: number };
            self.waiting.push_back(hours);
        }
        let new = || OpenRow { begin, cells: BTreeMap::new() };
        let open = self.hours.open.get_or_insert_with(new);
        for (place, cell) in &minute.cells {
            open.cells.entry(*place).or_default().merge(cell);
        }
    }
}
