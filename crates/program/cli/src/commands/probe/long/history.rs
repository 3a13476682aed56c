//! The intervals that earlier runs wrote to the files, for the page.

use super::{Minute, is_of_a_day};
use serde_json::Value;
use skyhaul_units::{Duration, Utc};
use std::collections::VecDeque;
use std::path::Path;

/// The intervals in the files of a folder, the earliest first. Damaged lines, such as a crash
/// leaves, and files that cannot be read are skipped: the page then has less.
pub fn read(folder: &Path) -> VecDeque<Minute> {
    let mut minutes = VecDeque::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return minutes };
    let mut files: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(is_of_a_day))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    for file in files {
        let Ok(text) = std::fs::read_to_string(file) else { continue };
        for minute in text.lines().filter_map(minute) {
            keep(&mut minutes, minute);
        }
    }
    minutes
}

/// Adds an interval, and forgets the earliest where there are too many.
pub fn keep(minutes: &mut VecDeque<Minute>, minute: Minute) {
    if minutes.len() == MINUTES_MAX {
        minutes.pop_front();
    }
    minutes.push_back(minute);
}

fn minute(line: &str) -> Option<Minute> {
    let value: Value = serde_json::from_str(line).ok()?;
    let of = |group: &str, name: &str| value.get(group)?.get(name)?.as_f64();
    let trip = |name: &str| of("round_trip_ms", name);
    let has_answers = value.get("clocks").is_some_and(|clocks| !clocks.is_null());
    let alarms = value.get("alarms")?.as_array()?.iter();
    Some(Minute {
        began: time(value.get("began")?.as_str()?)?,
        pings: [value.get("sent")?.as_u64()?, value.get("lost")?.as_u64()?],
        round_trip_ms: if has_answers {
            Some([trip("min")?, trip("p50")?, trip("p99")?])
        } else {
            None
        },
        one_way_ms: if has_answers {
            Some([of("up_ms", "p50")?, of("down_ms", "p50")?])
        } else {
            None
        },
        alarms: alarms.filter_map(|alarm| alarm.as_str().map(str::to_owned)).collect(),
    })
}

/// A time as these files have it: `2024-11-01T00:00:01.684519Z`.
fn time(text: &str) -> Option<Utc> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days from 1970 in a calendar whose years begin in March (Hinnant, chrono-compatible low-level
    // date algorithms).
    let (year, month) = (if month > 2 { year } else { year.checked_sub(1)? }, (month + 9) % 12);
    let of_era = year % 400;
    let of_year = (153 * month + 2) / 5 + day - 1;
    let days = year / 400 * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    let days = i64::try_from(days).ok()? - 719_468;
    let seconds = number(11, 13)? * 3_600 + number(14, 16)? * 60 + number(17, 19)?;
    Some(Utc::from_day(days, Duration::from_secs(seconds) + Duration::from_micros(number(20, 26)?)))
}

/// Eighty-six days of minutes.
const MINUTES_MAX: usize = 125_000;

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_probe::watch::Interval;

    #[test]
    fn times_are_parsed_as_they_are_printed() {
        for day in [0, 10_957, 11_016, 11_017, 19_783, 20_719, 47_541] {
            let at = Utc::from_day(day, Duration::from_micros(86_399_000_001));
            assert_eq!(time(&at.to_string()), Some(at), "{at}");
        }
        for wrong in [
            "",
            "2024-13-01T00:00:00.000000Z",
            "2024-11-01",
            "-024-11-01T00:00:01.684519Z",
            "\u{e9}\u{e9}\u{e9}\u{e9}-11",
        ] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn valid_lines_of_the_files_are_read_and_others_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let interval = Interval::of(&Default::default(), Some("no answer".to_owned()));
        let alarms = ["gap: no answer".to_owned()];
        let began = Utc::from_day(20_719, Duration::from_secs(7));
        let line = super::super::Line { began, seconds: 1.0, interval: &interval, alarms: &alarms };
        super::super::append(folder.path(), &line).unwrap();
        let file = folder.path().join("2026-09-23.jsonl");
        let cut = std::fs::read_to_string(&file).unwrap() + "{\"began\":\"2026-09";
        std::fs::write(&file, cut).unwrap();
        std::fs::write(folder.path().join("2026-09-24.jsonl"), [0xff, 0xfe]).unwrap();
        std::fs::write(folder.path().join("notes.jsonl"), "{}\n").unwrap();
        assert_eq!(read(folder.path()), [interval.minute(began, &alarms)]);
        assert_eq!(read(Path::new("/nonexistent")).len(), 0);
    }

    #[test]
    fn the_earliest_are_forgotten() {
        let mut minutes = VecDeque::new();
        let interval = Interval::of(&Default::default(), None);
        let at = |n: usize| interval.minute(Utc::from_nanos(i64::try_from(n).unwrap()), &[]);
        (0..MINUTES_MAX + 2).for_each(|n| keep(&mut minutes, at(n)));
        assert_eq!((minutes.len(), minutes[0].began), (MINUTES_MAX, Utc::from_nanos(2)));
    }
}
