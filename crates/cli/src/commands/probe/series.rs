//! The datagrams of streams one by one, for other programs: comma-separated values, or a JSON object a line.

use super::unwritable;
use crate::failure::{Exit, Failure};
use skyhaul_probe::{Direction, Trace};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A stream with its one-way delays.
pub struct Course<'a> {
    /// Which of several it is.
    pub stream: usize,
    /// What came of it.
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
pub fn write(path: &Path, courses: &[Course<'_>]) -> Result<(), Failure> {
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
            let what = format!("the form of `{}` is not known", path.display());
            Err(Failure::new(Exit::Usage, &what, "let its name end in .csv or .jsonl"))
        }
    }
}

/// A line for each datagram that was sent, in the order of their numbers; one that is missing has no delay.
fn lines(course: &Course<'_>, form: Form, out: &mut dyn Write) -> io::Result<()> {
    let trace = course.trace;
    let mut delays = vec![None; trace.offered as usize];
    for (arrival, delay) in trace.arrivals.iter().zip(course.one_way) {
        if let Some(place) = delays.get_mut(arrival.seq as usize) {
            *place = Some(*delay as f64 / 1e6);
        }
    }
    let direction = match trace.direction {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    if matches!(form, Form::Csv) && course.stream == 0 {
        writeln!(out, "stream,direction,payload,seq,planned_s,one_way_ms")?;
    }
    let payload = trace.spec.payload.as_u64();
    for (seq, delay) in delays.iter().enumerate() {
        let planned = trace.spec.spacing.as_secs_f64() * seq as f64;
        let stream = course.stream;
        match form {
            Form::Csv => {
                let delay = delay.map_or(String::new(), |delay| format!("{delay:.6}"));
                writeln!(out, "{stream},{direction},{payload},{seq},{planned:.6},{delay}")?;
            }
            Form::JsonLines => {
                let delay = delay.map_or("null".to_owned(), |delay| format!("{delay:.6}"));
                writeln!(
                    out,
                    "{{\"stream\":{stream},\"direction\":\"{direction}\",\"payload\":{payload},\"seq\":{seq},\
                     \"planned_s\":{planned:.6},\"one_way_ms\":{delay}}}"
                )?;
            }
        }
    }
    Ok(())
}
