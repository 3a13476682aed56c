//! The history of 200 series on this disk: what a second costs, what a query of 48 h and one of
//! 400 d cost, and the size of the files.
#![allow(clippy::disallowed_methods, reason = "wall-clock figures, to be read")]

use skyhaul_history::{
    HistoryBook, HistoryFile, HistoryQuery, HistorySample, HistorySketch, HistoryUnit,
    HistoryWrite, LEVELS_MAX, ROW_HEAD, SPREADS_MAX,
};
use skyhaul_units::{Duration, Utc};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

/// The fastest of so many turns counts.
const TURNS: usize = 9;

/// The files of a history, open.
struct Files([File; 2]);

impl Files {
    fn write(&self, write: &HistoryWrite) {
        let HistoryWrite::Row { file, offset, bytes } = write else { return };
        let file = &self.0[*file as usize];
        let (head, cells) = bytes.split_at(ROW_HEAD);
        file.write_all_at(cells, *offset + ROW_HEAD as u64).expect("the disk has room");
        file.write_all_at(head, *offset).expect("the disk has room");
    }

    fn read(&self, file: HistoryFile, offset: u64, into: &mut [u8]) -> bool {
        self.0[file as usize].read_exact_at(into, offset).is_ok()
    }
}

fn samples(second: u64) -> Vec<HistorySample> {
    let value = |nth: usize| (second % 97) as f64 + nth as f64;
    let level = |nth| {
        let name = format!("path/centre.{nth}.udp/rtt_s");
        HistorySample::level(name, HistoryUnit::Seconds, value(nth))
    };
    let spread = |nth| {
        let mut sketch = HistorySketch::default();
        (0..10).for_each(|more| sketch.add(value(nth + more), 1));
        let name = format!("delivery/mission-{nth}/total_s");
        HistorySample::spread(name, HistoryUnit::Seconds, sketch).worst("polar", 7)
    };
    (0..LEVELS_MAX).map(level).chain((0..SPREADS_MAX).map(spread)).collect()
}

fn main() {
    let folder = tempfile::tempdir().expect("there is a folder for files");
    let mut book = HistoryBook::new(400 * 24);
    let files = Files(HistoryFile::ALL.map(|file| {
        let path = folder.path().join(file.name());
        let made = File::options().read(true).write(true).create_new(true).open(path);
        let made = made.expect("a file can be made");
        made.set_len(book.head(file).file_bytes()).expect("the disk has room");
        made
    }));
    let sizes = HistoryFile::ALL.map(|file| book.head(file).file_bytes());
    println!("{} series: {} bytes", LEVELS_MAX + SPREADS_MAX, sizes.iter().sum::<u64>());
    let begin = Utc::from_micros(1_795_000_000_000_000);
    let at = |second: u64| begin + Duration::from_secs(second);
    let mut drain = |book: &mut HistoryBook| {
        while let Some(write) = book.poll() {
            files.write(&write);
            book.wrote(&write);
        }
    };
    // All hours of 400 days, a sample each, then all minutes of 48 h.
    let hours = 400 * 24;
    for hour in 0..hours {
        book.add(at(hour * 3_600), &samples(hour));
        drain(&mut book);
    }
    let start = hours * 3_600;
    for minute in 0..48 * 60 {
        book.add(at(start + minute * 60), &samples(minute));
        drain(&mut book);
    }
    let now = start + 48 * 3_600;
    let (seconds, begun) = (600, Instant::now());
    for second in 0..seconds {
        book.add(at(now + second), &samples(second));
        drain(&mut book);
    }
    let each = begun.elapsed().as_secs_f64() / seconds as f64;
    println!("a second of 200 series: {:.3} ms, {:.3} % of a processor", each * 1e3, each * 1e2);
    for (last, step) in [("48 h", "1 min"), ("48 h", "5 min"), ("400 d", "1 d")] {
        for series in ["path/centre.7.udp/rtt_s", "delivery/mission-7/total_s"] {
            let span = |text: &str| text.parse::<Duration>().ok();
            let query =
                HistoryQuery { last: span(last), step: span(step), ..HistoryQuery::of(series) };
            let (mut rows, mut least) = (0, f64::INFINITY);
            for _ in 0..TURNS {
                let begun = Instant::now();
                let plan = book.plan(&query, at(now + seconds)).expect("the series is there");
                let page = plan.finish(|file, offset, into| files.read(file, offset, into));
                rows = page.rows.len();
                least = least.min(begun.elapsed().as_secs_f64() * 1e3);
            }
            println!("{series}, {last} by {step}: {rows} rows in {least:.2} ms");
        }
    }
}
