//! The book over 400 days, over kills at every instant, and over clocks that jump.

use crate::{
    FileHead, HistoryBook, HistoryFile, HistoryPage, HistoryQuery, HistoryRefusal, HistorySample,
    HistorySketch, HistoryUnit, HistoryWrite, LEVELS_MAX, ROW_BYTES, ROW_HEAD, RowHead,
    SPREADS_MAX, SeriesTable,
};
use skyhaul_units::{Duration, Utc};

/// The files of a history, as a disk has them.
#[derive(Clone)]
struct Files {
    table: Vec<u8>,
    rows: [Vec<u8>; 2],
    heads: [FileHead; 2],
}

const BEGIN: &str = "2026-11-27T12:00:00Z";

fn at(seconds: i64) -> Utc {
    let begin = Utc::from_rfc3339(BEGIN).unwrap();
    Utc::from_micros(begin.as_micros() + seconds * 1_000_000)
}

impl Files {
    fn of(book: &HistoryBook) -> Self {
        let heads = HistoryFile::ALL.map(|file| book.head(file));
        let rows = heads.map(|head| vec![0; usize::try_from(head.file_bytes()).unwrap()]);
        Self { table: SeriesTable::default().write(), rows, heads }
    }

    /// What a kill leaves of a write after so many bytes.
    fn write(&mut self, write: &HistoryWrite, bytes_written: usize) {
        match write {
            // The file is replaced as a whole, or not.
            HistoryWrite::Table(bytes) if bytes_written >= bytes.len() => {
                self.table.clone_from(bytes);
            }
            HistoryWrite::Table(_) => {}
            HistoryWrite::Row { file, offset, bytes } => {
                let (place, offset) = (*file as usize, usize::try_from(*offset).unwrap());
                let cells = bytes.len() - ROW_HEAD;
                let (first, then) = (bytes_written.min(cells), bytes_written.saturating_sub(cells));
                let row = &mut self.rows[place][offset..offset + ROW_BYTES];
                row[ROW_HEAD..ROW_HEAD + first].copy_from_slice(&bytes[ROW_HEAD..ROW_HEAD + first]);
                let then = then.min(ROW_HEAD);
                row[..then].copy_from_slice(&bytes[..then]);
            }
        }
    }

    fn read(&self, file: HistoryFile, offset: u64, into: &mut [u8]) -> bool {
        let offset = usize::try_from(offset).unwrap();
        into.copy_from_slice(&self.rows[file as usize][offset..offset + into.len()]);
        true
    }

    fn drain(&mut self, book: &mut HistoryBook) {
        while let Some(write) = book.poll() {
            self.write(&write, usize::MAX);
            book.wrote(&write);
        }
    }

    /// A book that begins with these files.
    fn restarted(&self) -> HistoryBook {
        let heads = self.heads.map(|head| {
            let place = |nth| usize::try_from(head.offset(u64::from(nth))).unwrap();
            let bytes = &self.rows[head.file as usize];
            (0..head.rows).map(|nth| RowHead::read(&bytes[place(nth)..])).collect::<Vec<_>>()
        });
        let mut book = HistoryBook::new(self.heads[1].rows);
        let table = SeriesTable::read(&self.table).unwrap();
        book.take_up(table, [&heads[0], &heads[1]], |file, offset, into| {
            self.read(file, offset, into)
        });
        book
    }

    fn ask(&self, book: &HistoryBook, query: &HistoryQuery, now: Utc) -> HistoryPage {
        book.plan(query, now).unwrap().finish(|file, offset, into| self.read(file, offset, into))
    }
}

fn level(name: &str, value: f64) -> HistorySample {
    HistorySample::level(name, HistoryUnit::Bytes, value)
}

fn late(value: f64, flow: u32) -> HistorySample {
    let mut sketch = HistorySketch::default();
    sketch.add(value, 1);
    HistorySample::spread("delivery/aqua/of_budget", HistoryUnit::OfBudget, sketch)
        .worst("polar", flow)
}

fn query(series: &str, last: u64, step: u64) -> HistoryQuery {
    HistoryQuery {
        last: Some(Duration::from_secs(last)),
        step: Some(Duration::from_secs(step)),
        ..HistoryQuery::of(series)
    }
}

/// All pages of a query.
fn all(files: &Files, book: &HistoryBook, query: &HistoryQuery, now: Utc) -> Vec<HistoryPage> {
    let mut pages = vec![files.ask(book, query, now)];
    while let Some(from) = pages.last().unwrap().next.clone() {
        let to = Some(pages[0].to.clone());
        let next = HistoryQuery { from: Some(from), to, last: None, ..query.clone() };
        pages.push(files.ask(book, &next, now));
        assert!(pages.len() < 100, "pages end");
    }
    pages
}

#[test]
fn four_hundred_days_keep_each_hour_and_the_worst_contact_of_each() {
    let mut book = HistoryBook::new(400 * 24);
    let mut files = Files::of(&book);
    let hours = 400 * 24 + 50;
    for hour in 0..hours {
        // Five products in each hour, one of which is late at noon.
        for part in 0..5 {
            let time = at(hour * 3_600 + part * 700);
            let of_budget = if hour % 24 == 0 && part == 3 { 2.5 } else { 0.5 };
            let flow = u32::try_from(hour * 10 + part).unwrap();
            book.add(time, &[level("spool/bytes", hour as f64), late(of_budget, flow)]);
            files.drain(&mut book);
        }
    }
    let now = at(hours * 3_600);
    let book = files.restarted();
    let found = all(&files, &book, &query("spool/bytes", 400 * 86_400, 3_600), now);
    let rows: Vec<_> = found.iter().flat_map(|page| &page.rows).collect();
    // The last hour goes on: it is counted from its minutes.
    assert!((9_599..=9_601).contains(&rows.len()), "{}", rows.len());
    assert!(rows.windows(2).all(|pair| pair[0].at < pair[1].at && pair[0].max < pair[1].max));
    // The minute that was open at the end is not written.
    let (last, before) = rows.split_last().unwrap();
    assert!(before.iter().all(|row| row.count == 5 && row.p50.is_none()), "{last:?}");
    let late = all(&files, &book, &query("delivery/aqua/of_budget", 300 * 86_400, 86_400), now);
    let days: Vec<_> = late.iter().flat_map(|page| &page.rows).collect();
    assert!(days.len() >= 300, "{}", days.len());
    for day in &days[1..days.len() - 1] {
        // One of 120 values lies beyond the budget.
        assert_eq!((day.count, day.on_time), (120, Some(119.0 / 120.0)), "{day:?}");
        let worst = day.worst.as_deref().unwrap();
        assert!(worst.starts_with("polar-") && worst.ends_with('3'), "{worst}");
    }
}

#[test]
fn a_kill_at_any_byte_of_any_write_costs_that_row_alone() {
    let mut cuts = Vec::new();
    for bytes in (0..ROW_BYTES).step_by(97).chain(ROW_BYTES - ROW_HEAD..=ROW_BYTES) {
        cuts.push(bytes);
    }
    // Three hours of minutes; the kill is within minute 130, whose row takes an older one's place.
    let mut book = HistoryBook::new(48);
    let mut files = Files::of(&book);
    for minute in 0..2_880 + 130 {
        book.add(at(minute * 60), &[level("spool/bytes", minute as f64), late(0.5, 1)]);
        files.drain(&mut book);
    }
    book.add(at(3_010 * 60), &[level("spool/bytes", 3_010.0)]);
    let write = book.poll().unwrap();
    assert!(matches!(write, HistoryWrite::Row { file: HistoryFile::Minutes, .. }));
    for cut in cuts {
        let mut killed = files.clone();
        killed.write(&write, cut);
        let mut again = killed.restarted();
        let now = at(3_012 * 60);
        let page = killed.ask(&again, &query("spool/bytes", 100 * 60, 60), now);
        let values: Vec<f64> = page.rows.iter().map(|row| row.max).collect();
        let wanted: Vec<f64> = (2_912..3_010).map(f64::from).collect();
        let is_whole = cut >= ROW_BYTES;
        let kept = if is_whole { &wanted[..] } else { &wanted[..wanted.len() - 1] };
        assert_eq!(values, kept, "{cut}");
        // It goes on behind it.
        again.add(at(3_011 * 60), &[level("spool/bytes", 3_011.0)]);
        again.add(at(3_012 * 60), &[level("spool/bytes", 3_012.0)]);
        killed.drain(&mut again);
        let page = killed.ask(&again, &query("spool/bytes", 100 * 60, 60), now);
        assert_eq!(page.rows.iter().filter(|row| row.max > 3_010.5).count(), 2, "{cut}");
        // The hours have each minute once.
        let hours = killed.ask(&again, &query("spool/bytes", 40 * 3_600, 3_600), now);
        assert!(hours.rows[1..39].iter().all(|row| row.count == 60), "{cut}: {hours:?}");
    }
}

#[test]
fn a_kill_before_an_hour_is_written_makes_it_of_its_minutes() {
    let mut book = HistoryBook::new(48);
    let mut files = Files::of(&book);
    for minute in 0..=60 {
        book.add(at(minute * 60), &[level("spool/bytes", minute as f64)]);
        files.drain(&mut book);
    }
    // Killed while the first hour is not written; back hours later.
    let mut book = files.restarted();
    book.add(at(5 * 3_600), &[level("spool/bytes", 7.0)]);
    book.add(at(5 * 3_600 + 60), &[level("spool/bytes", 9.0)]);
    files.drain(&mut book);
    let book = files.restarted();
    let page = files.ask(&book, &query("spool/bytes", 86_400, 3_600), at(5 * 3_600 + 90));
    let rows: Vec<_> = page.rows.iter().map(|row| (row.count, row.max)).collect();
    assert_eq!(rows, [(60, 59.0), (1, 7.0)]);
}

#[test]
fn a_clock_that_jumps_a_year_and_back_takes_nothing_away() {
    let year = 365 * 86_400;
    let mut book = HistoryBook::new(400 * 24);
    let mut files = Files::of(&book);
    for (from, jump) in [(0, 0), (120, year), (240, -year), (360, 0)] {
        for minute in from..from + 120 {
            book.add(at(minute * 60 + jump), &[level("spool/bytes", minute as f64)]);
            files.drain(&mut book);
        }
        book = files.restarted();
    }
    let around = |jump: i64, from: i64| {
        let query = HistoryQuery {
            from: Some(at(jump + from * 60).to_string()),
            to: Some(at(jump + (from + 120) * 60).to_string()),
            step: Some(Duration::from_secs(60)),
            ..HistoryQuery::of("spool/bytes")
        };
        let page = files.ask(&book, &query, at(480 * 60));
        page.rows.iter().map(|row| row.max).collect::<Vec<_>>()
    };
    for (from, jump) in [(0, 0), (120, year), (240, -year), (360, 0)] {
        // The minute that was open at a restart is not written.
        let wanted: Vec<f64> = (from..from + 119).map(|minute| minute as f64).collect();
        assert_eq!(around(jump, from), wanted, "{jump}");
    }
}

#[test]
fn what_finds_no_room_is_counted_and_gets_the_place_of_what_is_gone() {
    let mut book = HistoryBook::new(24);
    let mut files = Files::of(&book);
    let samples = |from: usize, count: usize| -> Vec<HistorySample> {
        (from..from + count).map(|nth| level(&format!("path/{nth}/rtt_s"), 1.0)).collect()
    };
    book.add(at(0), &samples(0, LEVELS_MAX + 3));
    let list = book.list();
    assert_eq!((list.series.len(), list.left_out, list.kept_s), (LEVELS_MAX, 3, 86_400));
    // Half of them go on for longer than the hours are kept.
    for hour in 0..30 {
        book.add(at(hour * 3_600), &samples(0, LEVELS_MAX / 2));
        files.drain(&mut book);
    }
    book.add(at(30 * 3_600), &samples(1_000, 2));
    files.drain(&mut book);
    let mut book = files.restarted();
    book.add(at(30 * 3_600 + 120), &samples(1_000, 2));
    let found = files.ask(&book, &query("path/1000/rtt_s", 86_400, 3_600), at(31 * 3_600));
    assert_eq!(found.rows.len(), 1, "nothing of the series before: {found:?}");
    let first_gone = format!("path/{}/rtt_s", LEVELS_MAX / 2);
    let gone = book.plan(&query(&first_gone, 3_600, 60), at(0)).unwrap_err();
    assert_eq!(gone, HistoryRefusal::Unknown(first_gone));
}

#[test]
fn wrong_queries_are_told_what_is_wrong() {
    let mut book = HistoryBook::new(24);
    book.add(at(0), &[level("spool/bytes", 1.0), late(0.5, 1)]);
    let refused = |pairs: &[(&str, &str)]| {
        let read = HistoryQuery::read(pairs.iter().copied());
        let plan = read.and_then(|query| book.plan(&query.unwrap(), at(1)).map(drop));
        plan.unwrap_err().to_string()
    };
    let of = ("series", "spool/bytes");
    for (pairs, said) in [
        (&[("series", "x")][..], "there is no series `x`"),
        (&[of, ("from", "noon")], "`from` is a time such as"),
        (&[of, ("step", "soon")], "`step` is a span such as 10 min"),
        (&[of, ("since", "1")], "`since` is no parameter"),
        (&[of, ("from", BEGIN), ("last", "1 h")], "not both"),
        (&[of, ("from", BEGIN), ("to", BEGIN)], "before `to`"),
        (&[("series", "delivery/aqua/of_budget"), ("step", "1 s")], "the least step is 1 min"),
    ] {
        let told = refused(pairs);
        assert!(told.contains(said), "{told}");
    }
    assert_eq!(HistoryQuery::read([]), Ok(None));
    let second = book.plan(&query("spool/bytes", 600, 1), at(1)).unwrap();
    assert_eq!(second.finish(|_, _, _| false).rows.len(), 1);
}

#[test]
fn every_series_has_its_own_bytes_of_a_row() {
    let mut book = HistoryBook::new(24);
    let mut files = Files::of(&book);
    let samples: Vec<HistorySample> = (0..LEVELS_MAX + SPREADS_MAX)
        .map(|nth| {
            let value = nth as f64;
            let mut sketch = HistorySketch::default();
            sketch.add(value, 1);
            match nth < LEVELS_MAX {
                true => level(&format!("a/{nth}"), value),
                false => HistorySample::spread(format!("a/{nth}"), HistoryUnit::Seconds, sketch),
            }
        })
        .collect();
    book.add(at(0), &samples);
    book.add(at(60), &samples[..1]);
    files.drain(&mut book);
    let book = files.restarted();
    for nth in 0..LEVELS_MAX + SPREADS_MAX {
        let page = files.ask(&book, &query(&format!("a/{nth}"), 3_600, 60), at(61));
        let rows: Vec<_> = page.rows.iter().map(|row| (row.count, row.mean)).collect();
        assert_eq!(rows, [(1, nth as f64)], "{nth}");
    }
}
