//! `skyhaul probe long`: monitors a line for weeks with little traffic.

mod history;

use super::far::{FarEnd, FarFlags, Heading, Missed};
use super::page::{PageFlag, subject};
use super::unwritable;
use crate::commands::stamped;
use serde::Serialize;
use skyhaul_exit::{Exit, Failure};
use skyhaul_probe::report::Minute;
use skyhaul_probe::watch::{AlarmRule, Interval};
use skyhaul_probe::{LineError, NearError, ProbeClient, report};
use skyhaul_probe_io::SocketLine;
use skyhaul_units::{Duration, Probability, Utc};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The arguments of `skyhaul probe long`.
#[derive(clap::Args)]
#[command(after_help = "\
        Appends a line of JSON for each interval to DIR/YYYY-MM-DD.jsonl (UTC), and prints alarms, \
        until interrupted.

Example:
  skyhaul probe long far.example.org --dir watch --alarm-loss 2% --alarm-round-trip 250ms")]
pub struct Long {
    #[command(flatten)]
    far: FarFlags,
    /// The folder of the files. It is created if it does not exist.
    #[arg(long, value_name = "DIR", required = true)]
    dir: PathBuf,
    /// The time between two pings.
    #[arg(long, value_name = "DURATION", default_value = "1 s")]
    every: Duration,
    /// The time that one line of a file covers.
    #[arg(long, value_name = "DURATION", default_value = "1 min")]
    interval: Duration,
    /// Ends after this number of intervals. Default: never.
    #[arg(long, value_name = "N")]
    intervals: Option<u64>,
    /// Deletes files that are older than this number of days.
    #[arg(long, value_name = "DAYS", default_value_t = 60,
        value_parser = clap::value_parser!(i64).range(1..=36_500))]
    keep: i64,
    /// Raises an alarm if the loss, over both directions, is above this.
    #[arg(long, value_name = "PROBABILITY", default_value = "5 %")]
    alarm_loss: Probability,
    /// Raises an alarm if the median round trip is above this. Default: no alarm.
    #[arg(long, value_name = "DURATION")]
    alarm_round_trip: Option<Duration>,
    #[command(flatten)]
    page: PageFlag,
    /// Appends a line for each interval to a file that ends in .csv or .jsonl.
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
}

/// A line of a file.
#[derive(Serialize)]
struct Line<'a> {
    began: Utc,
    seconds: f64,
    #[serde(flatten)]
    interval: &'a Interval,
    alarms: &'a [String],
}

/// How an interval ended.
enum End {
    Full,
    Interrupted,
}

/// Watches until it is interrupted.
///
/// # Errors
/// The name of the far end leads nowhere, or a file cannot be written. That the far end does not
/// answer is a gap, and no error.
pub fn run(command: &Long, out: &mut dyn Write) -> Result<(), Failure> {
    if command.every < EVERY_MIN || command.interval < command.every {
        let help = "give --every 10 ms or more, and --interval no less than that";
        let what =
            format!("pings every {} over {} are not possible", command.every, command.interval);
        return Err(Failure::new(Exit::Usage, &what, help));
    }
    super::series::check(command.series.as_deref())?;
    let page = command.page.open("long")?;
    let far = command.far.find()?;
    let heading = Heading::of("long", &far);
    std::fs::create_dir_all(&command.dir).map_err(|source| unwritable(&command.dir, source))?;
    let rule = AlarmRule { loss: command.alarm_loss, round_trip: command.alarm_round_trip };
    stamped::say(&format!("watching {}", far.place()));
    // The page continues from the files of this folder; without a page they are not read.
    let mut minutes = if page.is_some() { history::read(&command.dir) } else { VecDeque::new() };
    let mut was_alarmed = false;
    let mut due = far.utc() + command.interval;
    for number in 1u64.. {
        let began = far.utc();
        let (interval, end) = watch(&far, command, due)?;
        // What the last answers took is not added to every interval; after a long pause it begins
        // anew.
        due = (due + command.interval).max(far.utc() + command.interval / 2);
        let alarms = interval.alarms(rule);
        let seconds = far.utc().since(began).as_secs_f64();
        append(&command.dir, &Line { began, seconds, interval: &interval, alarms: &alarms })?;
        let minute = interval.minute(began, &alarms);
        if let Some(path) = &command.series {
            super::series::append_minute(path, &minute)?;
        }
        if let Some(page) = &page {
            history::keep(&mut minutes, minute);
            page.write(&report::weeks(&subject(&far, &heading), minutes.make_contiguous()))?;
        }
        for alarm in &alarms {
            writeln!(out, "{began} {alarm}")?;
        }
        if alarms.is_empty() && was_alarmed {
            writeln!(out, "{began} back to normal")?;
        }
        out.flush()?;
        was_alarmed = !alarms.is_empty();
        forget(&command.dir, began.day() - command.keep);
        if matches!(end, End::Interrupted) || command.intervals.is_some_and(|most| number >= most) {
            break;
        }
    }
    Ok(())
}

/// One interval up to `end`, with a separate session: a fault of the one before does not affect it.
fn watch(far: &FarEnd, command: &Long, end: Utc) -> Result<(Interval, End), Failure> {
    let gap = |why: &str| (Interval::of(&Default::default(), Some(why.to_owned())), End::Full);
    let mut near = match far.open_from(far.port_of(0)) {
        Ok(near) => near,
        Err(Missed::There { error: NearError::Line(LineError::Interrupted), .. }) => {
            return Ok((gap("interrupted before an answer").0, End::Interrupted));
        }
        Err(Missed::There { error, .. }) if far.failure(&error).exit() == Exit::Peer => {
            let ended = if far.rest_until(end) { End::Full } else { End::Interrupted };
            return Ok((gap(&error.to_string()).0, ended));
        }
        Err(missed) => return Err(far.missed(missed)),
    };
    let left = end.since(far.utc()).max(command.every);
    let (gap, ended) = match near.ping_for(left, command.every) {
        Ok(()) => (None, End::Full),
        Err(NearError::Line(LineError::Interrupted)) => (None, End::Interrupted),
        Err(error) => {
            let ended = if far.rest_until(end) { End::Full } else { End::Interrupted };
            (Some(error.to_string()), ended)
        }
    };
    let interval = Interval::of(near.comparison(), gap);
    drop(ProbeClient::<SocketLine>::close(near));
    Ok((interval, ended))
}

/// Adds a line to the file of its day, in one write.
fn append(dir: &Path, line: &Line<'_>) -> Result<(), Failure> {
    let (year, month, day) = line.began.date();
    let path = dir.join(format!("{year:04}-{month:02}-{day:02}.jsonl"));
    let mut text = serde_json::to_string(line).expect("a line is plain data");
    text.push('\n');
    let opened = OpenOptions::new().create(true).append(true).open(&path);
    let written = opened.and_then(|mut file: File| file.write_all(text.as_bytes()));
    written.map_err(|source| unwritable(&path, source))
}

/// Deletes the files of days before `oldest`, counted from 1970; no other file.
fn forget(dir: &Path, oldest: i64) {
    let (year, month, day) = Utc::from_day(oldest, Duration::ZERO).date();
    let first = format!("{year:04}-{month:02}-{day:02}.jsonl");
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if is_of_a_day(name) && *name < *first {
            // A file that cannot be deleted now is tried again after the next interval.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether a file's name is one that this command gives.
fn is_of_a_day(name: &str) -> bool {
    let shape = |(byte, wanted): (u8, &u8)| {
        if *wanted == b'0' { byte.is_ascii_digit() } else { byte == *wanted }
    };
    name.len() == SHAPE.len() && name.bytes().zip(SHAPE).all(shape)
}

/// The shape of a file's name; noughts stand for digits.
const SHAPE: &[u8] = b"0000-00-00.jsonl";

/// More than a hundred pings each second are too much traffic.
const EVERY_MIN: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_older_than_the_limit_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "2026-09-22.jsonl",
            "2026-09-23.jsonl",
            "2026-09-24.jsonl",
            "2020-notes.jsonl",
            "notes.txt",
        ];
        for name in names {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        // 2026-09-23 is day 20,719.
        forget(folder.path(), 20_719);
        let left = |name: &&str| folder.path().join(name).exists();
        let left: Vec<&str> = names.into_iter().filter(left).collect();
        assert_eq!(left, &names[1..]);
    }
}
