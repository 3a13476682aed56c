//! The files on a real disk: what is damaged, what is kept over another `keep`, what is written.

use super::files::HistoryFiles;
use skyhaul_history::{HistoryBook, HistoryFile, HistoryQuery, HistorySample, HistoryUnit};
use skyhaul_units::{Duration, Utc};
use std::fs;
use std::path::Path;

fn at(seconds: u64) -> Utc {
    Utc::from_rfc3339("2026-11-27T12:00:00Z").unwrap() + Duration::from_secs(seconds)
}

/// Opens the files with so many hours, and keeps a value of each of these minutes.
fn keep(folder: &Path, hours: u32, minutes: std::ops::Range<u64>) -> (HistoryBook, HistoryFiles) {
    let mut book = HistoryBook::new(hours);
    let files = HistoryFiles::open(folder, &mut book, at(0)).unwrap();
    for minute in minutes {
        let sample = HistorySample::level("spool/all/bytes", HistoryUnit::Bytes, minute as f64);
        book.add(at(minute * 60), &[sample]);
        write(&files, &mut book);
    }
    book.end();
    write(&files, &mut book);
    (book, files)
}

fn write(files: &HistoryFiles, book: &mut HistoryBook) {
    while let Some(write) = book.poll() {
        files.write(&write).unwrap();
        book.wrote(&write);
    }
}

/// The values in rows of this step.
fn values(kept: &(HistoryBook, HistoryFiles), step: u64) -> Vec<f64> {
    let query = HistoryQuery {
        from: Some(at(0).to_string()),
        to: Some(at(100 * 3_600).to_string()),
        step: Some(Duration::from_secs(step)),
        ..HistoryQuery::of("spool/all/bytes")
    };
    let Ok(plan) = kept.0.plan(&query, at(0)) else { return Vec::new() };
    let page = plan.finish(|file, offset, into| kept.1.read(file, offset, into).is_ok());
    page.rows.iter().map(|row| row.max).collect()
}

fn sizes(folder: &Path) -> Vec<u64> {
    let size = |file: HistoryFile| fs::metadata(folder.join(file.name())).unwrap().len();
    HistoryFile::ALL.map(size).to_vec()
}

#[test]
fn files_have_their_size_from_the_start_and_go_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("history");
    drop(keep(&folder, 48, 0..3));
    let before = sizes(&folder);
    let kept = keep(&folder, 48, 3..6);
    assert_eq!(values(&kept, 60), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(values(&kept, 3_600), [5.0]);
    assert_eq!(sizes(&folder), before);
    assert_eq!(before[1], kept.0.head(HistoryFile::Hours).file_bytes());
    let mode = fs::metadata(folder.join("hours")).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
}

#[test]
fn another_keep_keeps_the_newest_hours() {
    let folder = tempfile::tempdir().unwrap();
    drop(keep(folder.path(), 72, 0..70 * 60));
    let long = values(&keep(folder.path(), 96, 0..0), 3_600);
    assert_eq!(long.len(), 70);
    let short = values(&keep(folder.path(), 48, 0..0), 3_600);
    // The last hour goes on, and is made of its minutes.
    assert_eq!(short, long[21..], "{}", short.len());
    assert_eq!(values(&keep(folder.path(), 96, 0..0), 3_600), short);
}

#[test]
fn what_is_damaged_is_set_aside_and_a_later_version_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    drop(keep(folder.path(), 48, 0..130));
    fs::write(path("minutes"), b"nonsense").unwrap();
    let kept = keep(folder.path(), 48, 0..0);
    assert_eq!(fs::read(path("minutes.set-aside")).unwrap(), b"nonsense");
    // The hours that are written stay.
    assert_eq!((values(&kept, 60), values(&kept, 3_600)), (vec![], vec![59.0, 119.0]));
    drop(kept);
    // Minutes that begin anew are added to hours after the next start too.
    drop(keep(folder.path(), 48, 180..190));
    assert_eq!(values(&keep(folder.path(), 48, 0..0), 3_600), [59.0, 119.0, 189.0]);

    fs::write(path("series.json"), b"{").unwrap();
    let kept = keep(folder.path(), 48, 0..2);
    assert_eq!(values(&kept, 60), [0.0, 1.0]);
    assert!(path("hours.set-aside").exists() && path("series.set-aside").exists());
    drop(kept);

    let mut bytes = fs::read(path("hours")).unwrap();
    bytes[7] = 9;
    fs::write(path("hours"), &bytes).unwrap();
    let refused = HistoryFiles::open(folder.path(), &mut HistoryBook::new(48), at(0)).unwrap_err();
    assert!(refused.contains("version 9") && refused.contains("hours"), "{refused}");
    assert_eq!(fs::read(path("hours")).unwrap(), bytes);
}
