//! The display of a stream: a line each second, the account, the loss map; as text or JSON.

use crate::commands::output::OutputFormat;
use crate::commands::rate::rate_text;
use crate::commands::stamped;
use serde::Serialize;
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::log;
use skyhaul_streams::{Counters, Missing, StreamFormat, VdifHeader, signal_to_noise};
use skyhaul_streams_io::{Look, SourceTotals, StreamSummary};
use skyhaul_units::{ByteCount, Duration, Probability, Rate};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;

/// Where a stream is shown.
pub struct Screen {
    format: OutputFormat,
    budget: Option<Probability>,
    before: Mutex<Before>,
}

/// At the last look.
#[derive(Default)]
struct Before {
    elapsed: Duration,
    counters: Counters,
    near: SourceTotals,
}

/// A line for programs.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line<'a> {
    Stats {
        elapsed_s: f64,
        rate_bps: u64,
        snr_factor: f64,
        counters: &'a Counters,
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<SourceTotals>,
        #[serde(skip_serializing_if = "Option::is_none")]
        slowest_us: Option<u64>,
    },
    Missing(Place),
    Lost {
        node: &'a str,
        reason: &'a str,
    },
    Summary {
        format: &'static str,
        elapsed_s: f64,
        rate_bps: u64,
        missing: f64,
        snr_factor: f64,
        counters: &'a Counters,
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<SourceTotals>,
        /// Places of the loss map, and frames that lack beyond them.
        places: usize,
        further: u64,
    },
}

/// Frames that the sink does not have, one after the other.
#[derive(Serialize)]
struct Place {
    #[serde(skip_serializing_if = "Option::is_none")]
    station: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    second: Option<String>,
    first: u64,
    last: u64,
}

impl Screen {
    /// Text marks losses above the `budget`.
    pub fn new(format: OutputFormat, budget: Option<Probability>) -> Self {
        Self { format, budget, before: Mutex::default() }
    }

    /// Shows the progress. Standard output and error may be closed; the stream goes on.
    pub fn look(&self, look: &Look) {
        let Ok(mut before) = self.before.lock() else { return };
        let span = look.elapsed.saturating_sub(before.elapsed);
        let since = look.counters.since(&before.counters);
        let bytes =
            look.near.map_or(since.bytes, |near| near.bytes.saturating_sub(before.near.bytes));
        let rate = over(bytes, span);
        if self.format == OutputFormat::Json {
            let line = Line::Stats {
                elapsed_s: look.elapsed.as_secs_f64(),
                rate_bps: rate.as_bps(),
                snr_factor: factor(&look.counters),
                counters: &look.counters,
                source: look.near,
                slowest_us: look.near.is_none().then(|| look.slowest.as_micros()),
            };
            say(&line);
        } else {
            stamped::say(&self.text(look, &since, &before, rate));
        }
        *before = Before {
            elapsed: look.elapsed,
            counters: look.counters,
            near: look.near.unwrap_or_default(),
        };
    }

    /// The session was lost; it connects again for a further stream.
    pub fn lost(&self, node: &str, reason: &str) {
        if self.format == OutputFormat::Json {
            say(&Line::Lost { node, reason });
        } else {
            let text = format!(
                "the session with {node} is lost ({reason}); reconnecting for a further stream"
            );
            stamped::say(&text);
        }
        if let Ok(mut before) = self.before.lock() {
            *before = Before::default();
        }
    }

    /// Shows the account.
    ///
    /// # Errors
    /// The result or the map cannot be written.
    pub fn finish(
        &self,
        summary: &StreamSummary,
        map: Option<File>,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let StreamSummary { counters, .. } = summary;
        if let Some(map) = map {
            let mut map = BufWriter::new(map);
            for missing in &summary.map {
                let line =
                    serde_json::to_string(&place(summary.format, missing)).unwrap_or_default();
                writeln!(map, "{line}")?;
            }
            map.flush()?;
        }
        let rate = over(counters.bytes, summary.elapsed);
        if self.format == OutputFormat::Json {
            for missing in summary.map.iter().take(SHOWN) {
                writeln!(out, "{}", json(&Line::Missing(place(summary.format, missing))))?;
            }
            let line = Line::Summary {
                format: summary.format.name(),
                elapsed_s: summary.elapsed.as_secs_f64(),
                rate_bps: rate.as_bps(),
                missing: share(counters),
                snr_factor: factor(counters),
                counters,
                source: summary.near,
                places: summary.map.len(),
                further: summary.further,
            };
            writeln!(out, "{}", json(&line))?;
            return Ok(out.flush()?);
        }
        writeln!(out, "{}", account(summary, rate))?;
        for missing in summary.map.iter().take(SHOWN) {
            writeln!(out, "  missing: {}", words(&place(summary.format, missing)))?;
        }
        let others = summary.map.len().saturating_sub(SHOWN);
        if others > 0 {
            writeln!(out, "  and at {others} more places; --loss-map FILE has all of them")?;
        }
        Ok(out.flush()?)
    }

    fn text(&self, look: &Look, since: &Counters, before: &Before, rate: Rate) -> String {
        let Counters { received, repaired, late, lost, reordered, .. } = since;
        let mut text = format!("{:6.1} s  ", look.elapsed.as_secs_f64());
        let rate = rate_text(rate.as_bps());
        match look.near {
            Some(near) => {
                let sent = near.frames - before.near.frames;
                text.push_str(&format!(
                    "{sent} sent ({rate}), {} dropped here; ",
                    near.unsent - before.near.unsent
                ));
            }
            None => text.push_str(&format!("{rate}; ")),
        }
        text.push_str(&format!(
            "{received} received, {repaired} repaired, {late} late, {lost} lost, {reordered} \
            reordered"
        ));
        if since.missing() > 0 {
            text.push_str(&format!("; runs: {}", since.runs));
        }
        if look.format != StreamFormat::Rtp {
            text.push_str(&format!("; S/N x {:.5}", factor(&look.counters)));
        }
        match look.near {
            Some(_) if look.format == StreamFormat::Rtp => {}
            Some(near) => text.push_str(&format!(
                "; pacing error {} us, at most {} us",
                near.pacing_mean_us, near.pacing_max_us
            )),
            None => text
                .push_str(&format!("; at most {} us behind the fastest", look.slowest.as_micros())),
        }
        if let Some(budget) = self.budget
            && share(since) > budget.as_f64()
        {
            text.push_str("; BEYOND THE BUDGET");
        }
        text
    }
}

/// Checks the losses against the budget.
///
/// # Errors
/// They are above it.
pub fn by_budget(summary: &StreamSummary, budget: Option<Probability>) -> Result<(), Failure> {
    match budget.filter(|budget| !summary.is_within(*budget)) {
        None => Ok(()),
        Some(budget) => {
            let (missing, sent) = (summary.counters.missing(), summary.counters.sent);
            let what = format!(
                "{missing} of {sent} frames are missing at the sink, above the budget of {budget}"
            );
            Err(Failure::new(
                Exit::Result,
                &what,
                "raise --lateness, or use a line with more capacity; the account shows the losses",
            ))
        }
    }
}

/// A new file for the loss map.
///
/// # Errors
/// It cannot be made.
pub fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|source| {
        let help = "give --loss-map a file in a writable folder";
        Failure::io("the loss map cannot be written", &path.display().to_string(), help, source)
    })
}

fn account(summary: &StreamSummary, rate: Rate) -> String {
    let Counters {
        sent,
        received,
        repaired,
        late,
        lost,
        reordered,
        reordered_by,
        guessed,
        unmarked,
        ..
    } = summary.counters;
    let what = if summary.format == StreamFormat::Datagrams { "datagrams" } else { "frames" };
    let mut text = format!(
        "{sent} {what} in {:.1} s: {received} received, {repaired} repaired, {late} late, {lost} \
        lost; {} at the sink\n",
        summary.elapsed.as_secs_f64(),
        rate_text(rate.as_bps())
    );
    let is_video = summary.format == StreamFormat::Rtp;
    text.push_str(&format!(
        "missing: {:.2e}, in runs: {}; reordered: {reordered}, by {reordered_by} at most",
        share(&summary.counters),
        summary.counters.runs,
    ));
    if !is_video {
        text.push_str(&format!("; S/N x {:.5}", factor(&summary.counters)));
    }
    if let Some(near) = summary.near {
        let SourceTotals { unsent, source_missing, source_reordered, skipped, .. } = near;
        let packets = if is_video { " packets" } else { "" };
        text.push_str(&format!(
            "\nsource: {unsent} dropped here for lack of room, {source_missing}{packets} missing \
            and {source_reordered} out of order at the input, {skipped} bytes not in frames",
        ));
        if near.source_restarts > 0 {
            text.push_str(&format!("; it began anew {} times", near.source_restarts));
        }
        if !is_video {
            text.push_str(&format!(
                "; pacing error {} us in the mean, {} us at most",
                near.pacing_mean_us, near.pacing_max_us
            ));
        }
    }
    if guessed + unmarked > 0 {
        text.push_str(&format!(
            "\n{guessed} invalid frames may have a wrong header, {unmarked} could not be made: \
            their description was lost"
        ));
    }
    text
}

fn place(format: StreamFormat, missing: &Missing) -> Place {
    let of = missing.place;
    if !format.has_headers() {
        let number = |low: u32| of.second << 24 | u64::from(low);
        let (first, last) = (number(of.number), number(missing.last));
        return Place { station: None, thread: None, second: None, first, last };
    }
    let second = match format {
        StreamFormat::Vdif => VdifHeader::utc(of.second).to_string().replace(".000000Z", "Z"),
        _ => format!("MJD ..{:03} second {}", of.second / 86_400, of.second % 86_400),
    };
    let vdif = format == StreamFormat::Vdif;
    Place {
        station: vdif.then_some(of.station),
        thread: vdif.then_some(of.thread),
        second: Some(second),
        first: of.number.into(),
        last: missing.last.into(),
    }
}

fn words(place: &Place) -> String {
    let mut text = String::new();
    if let Some(second) = &place.second {
        text.push_str(&format!("{second} "));
    }
    if let (Some(station), Some(thread)) = (place.station, place.thread) {
        text.push_str(&format!("station {station} thread {thread} "));
    }
    if place.first == place.last {
        text.push_str(&format!("number {}", place.first));
    } else {
        text.push_str(&format!("numbers {} to {}", place.first, place.last));
    }
    text
}

fn over(bytes: u64, span: Duration) -> Rate {
    if span == Duration::ZERO { Rate::ZERO } else { Rate::over(ByteCount::new(bytes), span) }
}

fn share(counters: &Counters) -> f64 {
    counters.missing() as f64 / counters.sent.max(1) as f64
}

fn factor(counters: &Counters) -> f64 {
    signal_to_noise(counters.missing(), counters.sent)
}

fn json(line: &Line<'_>) -> String {
    serde_json::to_string(line).unwrap_or_default()
}

fn say(line: &Line<'_>) {
    log::print(&format!("{}\n", json(line)));
}

/// Places of the loss map that are shown.
const SHOWN: usize = 20;
