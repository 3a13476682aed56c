//! What the files of the history read, and what is asked of them.

use skyhaul_history::{
    CellSalt, FileHead, HistoryBook, HistoryCell, HistoryFile, HistoryQuery, HistorySample,
    HistoryUnit, ROW_HEAD, RowHead, SeriesTable,
};
use skyhaul_units::Utc;

/// A table of series up to the first zero byte, then a row of each file. Whatever they are, a book
/// takes them up, goes on behind them, and answers.
pub fn history_files(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
    let (table, rest) = input.split_at(end);
    let rest = rest.strip_prefix(&[0]).unwrap_or(rest);
    let query = String::from_utf8_lossy(table);
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let asked = HistoryQuery::read(pairs).ok().flatten();
    let table = SeriesTable::read(table).unwrap_or_default();
    let again = SeriesTable::read(&table.write());
    assert_eq!(again.as_ref(), Ok(&table));
    for file in HistoryFile::ALL {
        if let Ok(head) = FileHead::read(file, rest, u64::MAX) {
            assert_eq!(head.encode()[..20], rest[..20]);
        }
    }
    let salt = CellSalt { row: 1, series: 1 };
    for cell in [HistoryCell::from_level(rest, salt), HistoryCell::from_spread(rest, salt)] {
        assert!(cell.is_none_or(|cell| cell.sketch.min() <= cell.sketch.max()));
    }
    let minute = RowHead::read(rest);
    let hour = rest.get(ROW_HEAD..).and_then(RowHead::read);
    let mut book = HistoryBook::new(48);
    let read = |_: HistoryFile, _: u64, into: &mut [u8]| {
        let count = into.len().min(rest.len());
        into[..count].copy_from_slice(&rest[..count]);
        true
    };
    let place = |row: &Option<RowHead>, rows: u64| {
        row.map_or(0, |head| usize::try_from(head.number % rows).unwrap_or(0))
    };
    let mut minutes = vec![None; 2_880];
    minutes[place(&minute, 2_880)] = minute;
    let mut hours = vec![None; 48];
    hours[place(&hour, 48)] = hour;
    book.take_up(table, [&minutes, &hours], read);
    let now = Utc::from_micros(1_000_000_000_000_000);
    book.add(now, &[HistorySample::level("spool/all/bytes", HistoryUnit::Bytes, 1.0)]);
    book.end();
    while let Some(write) = book.poll() {
        book.wrote(&write);
    }
    let names: Vec<String> = book.list().series.into_iter().map(|one| one.name).collect();
    let queries = names.iter().map(|name| HistoryQuery::of(name)).chain(asked);
    for plan in queries.filter_map(|query| book.plan(&query, now).ok()) {
        assert!(plan.finish(read).rows.len() <= skyhaul_history::ROWS_MAX);
    }
}
