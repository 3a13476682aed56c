//! The datagrams of streams, one a line, for other programs: comma-separated values or JSON.

use super::unwritable;
use skyhaul_exit::{Exit, Failure};
use skyhaul_probe::report::Minute;
use skyhaul_probe::{PingComparison, StreamDirection, Trace};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A stream with its one-way delays.
pub struct DelaySeries<'a> {
    /// Which of several it is.
    pub stream: usize,
    /// Its result.
    pub trace: &'a Trace,
    /// One-way delay of each arrival, in nanoseconds.
    pub one_way: &'a [i64],
}

/// How a series is written.
#[derive(Clone, Copy)]
enum Form {
    Csv,
    JsonLines,
}

/// Writes the series to a file, in the form that the end of its name says.
///
/// # Errors
/// The name ends otherwise, or the file cannot be written.
pub fn write(path: &Path, courses: &[DelaySeries<'_>]) -> Result<(), Failure> {
    let form = form(path)?;
    let file = File::create(path).map_err(|source| unwritable(path, source))?;
    let mut out = BufWriter::new(file);
    let written = courses.iter().try_for_each(|course| lines(course, form, &mut out));
    written.and_then(|()| out.flush()).map_err(|source| unwritable(path, source))
}

/// Whether a series can be written to a file of this name, asked before the measurement.
///
/// # Errors
/// The name ends otherwise.
pub fn check(path: Option<&Path>) -> Result<(), Failure> {
    path.map_or(Ok(()), |path| form(path).map(drop))
}

fn form(path: &Path) -> Result<Form, Failure> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => Ok(Form::Csv),
        Some("jsonl") => Ok(Form::JsonLines),
        _ => {
            let what = format!("the format of `{}` is unknown", path.display());
            Err(Failure::new(Exit::Usage, &what, "use a file name that ends in .csv or .jsonl"))
        }
    }
}

/// Writes the pings that were answered, the latest 65,536 of them: when each left, counted from the
/// first, its round trip, and the delay each way, the difference of the clocks taken out.
///
/// # Errors
/// The name ends neither in .csv nor in .jsonl, or the file cannot be written.
pub fn write_pings(path: Option<&Path>, comparison: &PingComparison) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let form = form(path)?;
    let mut text = String::new();
    if matches!(form, Form::Csv) {
        text.push_str("sent_s,round_trip_ms,up_ms,down_ms\n");
    }
    let delays = comparison.delays();
    let first = comparison.pings().map(|ping| ping.sent).min();
    for (ping, [up, down]) in comparison.pings().zip(delays) {
        let sent = first.map_or(0.0, |first| ping.sent.since(first).as_secs_f64());
        let trip = ping.round_trip().as_secs_f64() * 1e3;
        let (up, down) = (up as f64 / 1e6, down as f64 / 1e6);
        text.push_str(&match form {
            Form::Csv => format!("{sent:.6},{trip:.6},{up:.6},{down:.6}\n"),
            Form::JsonLines => format!(
                "{{\"sent_s\":{sent:.6},\"round_trip_ms\":{trip:.6},\"up_ms\":{up:.6},\
                \"down_ms\":{down:.6}}}\n"
            ),
        });
    }
    std::fs::write(path, text).map_err(|source| unwritable(path, source))
}

/// Adds an interval of a watched line; a new file of comma-separated values gets its heading first.
///
/// # Errors
/// The name ends neither in .csv nor in .jsonl, or the file cannot be written.
pub fn append_minute(path: &Path, minute: &Minute) -> Result<(), Failure> {
    let form = form(path)?;
    let none = if matches!(form, Form::Csv) { "" } else { "null" };
    let number = |value: Option<f64>| value.map_or(none.to_owned(), |value| format!("{value:.6}"));
    let trip = |index: usize| number(minute.round_trip_ms.map(|trip| trip[index]));
    let one_way = |index: usize| number(minute.one_way_ms.map(|delay| delay[index]));
    let quote = |text: &str| match form {
        // RFC 4180: a quote within quotes stands twice.
        Form::Csv => format!("\"{}\"", text.replace('"', "\"\"")),
        Form::JsonLines => serde_json::Value::from(text).to_string(),
    };
    let values = [
        quote(&minute.began.to_string()),
        minute.pings[0].to_string(),
        minute.pings[1].to_string(),
        trip(0),
        trip(1),
        trip(2),
        one_way(0),
        one_way(1),
        quote(&minute.alarms.join("; ")),
    ];
    let written = OpenOptions::new().create(true).append(true).open(path).and_then(|mut file| {
        let line = match form {
            Form::Csv if file.metadata()?.len() == 0 => {
                format!("{}\n{}\n", MINUTE_COLUMNS.join(","), values.join(","))
            }
            Form::Csv => format!("{}\n", values.join(",")),
            Form::JsonLines => {
                let pairs = MINUTE_COLUMNS
                    .iter()
                    .zip(&values)
                    .map(|(name, value)| format!("\"{name}\":{value}"));
                format!("{{{}}}\n", pairs.collect::<Vec<_>>().join(","))
            }
        };
        file.write_all(line.as_bytes())
    });
    written.map_err(|source| unwritable(path, source))
}

/// A line for each datagram that was sent, in the order of their numbers; one that is missing has
/// no delay.
fn lines(course: &DelaySeries<'_>, form: Form, out: &mut dyn Write) -> io::Result<()> {
    let trace = course.trace;
    let mut delays = vec![None; trace.offered as usize];
    for (number, (arrival, delay)) in trace.arrivals.iter().zip(course.one_way).enumerate() {
        if let Some(place) = delays.get_mut(arrival.seq as usize) {
            *place = Some((*delay as f64 / 1e6, number));
        }
    }
    let direction = match trace.direction {
        StreamDirection::Up => "up",
        StreamDirection::Down => "down",
    };
    if matches!(form, Form::Csv) && course.stream == 0 {
        writeln!(out, "stream,direction,payload,seq,planned_s,one_way_ms,arrival")?;
    }
    let payload = trace.spec.payload.as_u64();
    for (seq, delay) in delays.iter().enumerate() {
        let planned = trace.spec.spacing.as_secs_f64() * seq as f64;
        let stream = course.stream;
        match form {
            Form::Csv => {
                let came =
                    delay.map_or(",".to_owned(), |(delay, number)| format!("{delay:.6},{number}"));
                writeln!(out, "{stream},{direction},{payload},{seq},{planned:.6},{came}")?;
            }
            Form::JsonLines => {
                let (delay, number) = delay
                    .map_or(("null".to_owned(), "null".to_owned()), |(delay, number)| {
                        (format!("{delay:.6}"), number.to_string())
                    });
                writeln!(
                    out,
                    "{{\"stream\":{stream},\"direction\":\"{direction}\",\
                    \"payload\":{payload},\"seq\":{seq},\
                     \"planned_s\":{planned:.6},\"one_way_ms\":{delay},\"arrival\":{number}}}"
                )?;
            }
        }
    }
    Ok(())
}

/// What stands in the columns of a watched line's intervals.
const MINUTE_COLUMNS: [&str; 9] = [
    "began",
    "pings",
    "lost",
    "round_trip_min_ms",
    "round_trip_p50_ms",
    "round_trip_p99_ms",
    "up_p50_ms",
    "down_p50_ms",
    "alarms",
];
