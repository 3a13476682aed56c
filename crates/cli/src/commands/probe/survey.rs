//! `skyhaul probe HOST`: a picture of a line in about a minute.

use super::far::{FarEnd, FarFlags, Heading, able};
use super::page::{PageFlag, subject};
use super::{series, tell, words};
use crate::failure::Failure;
use serde::Serialize;
use skyhaul_probe::report;
use skyhaul_probe::survey::{Survey as Found, SurveyPlan, Way, survey};
use skyhaul_units::{Bytes, Duration, Rate};
use std::io::{self, Write};
use std::path::PathBuf;

/// The arguments of `skyhaul probe HOST`.
#[derive(clap::Args)]
pub struct Survey {
    #[command(flatten)]
    far: FarFlags,
    /// How long it takes, about.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Nothing faster is sent, in UDP payload; left out: as fast as both ends can and the far end allows.
    #[arg(long, value_name = "RATE")]
    max_rate: Option<Rate>,
    /// Writes each datagram's delay to a file that ends in .csv or .jsonl.
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
    /// Writes each ping's round trip and delays to a file that ends in .csv or .jsonl.
    #[arg(long, value_name = "FILE")]
    pings: Option<PathBuf>,
    #[command(flatten)]
    page: PageFlag,
    /// Prints the result as one JSON object (docs/schema/probe-survey.json).
    #[arg(long)]
    json: bool,
}

/// What the JSON form says around a survey.
#[derive(Serialize)]
struct Report<'a> {
    ability_bps: u64,
    #[serde(flatten)]
    survey: &'a Found,
}

/// Surveys the line and prints what was found.
///
/// # Errors
/// The far end is not there, is none or refuses; the run was interrupted; a file cannot be written.
pub fn run(command: &Survey, out: &mut dyn Write) -> Result<(), Failure> {
    series::check(command.series.as_deref())?;
    series::check(command.pings.as_deref())?;
    let page = command.page.open("survey")?;
    let far = command.far.find()?;
    let (ability, rate_max) = able(PAYLOAD, command.max_rate)?;
    let mut near = far.open()?;
    let heading = Heading::of("survey", &far);
    let time = Duration::from_secs(command.seconds);
    let plan = SurveyPlan { time, rate_max, payload_max: PAYLOAD_MAX, headers: far.headers() };
    let shows = !command.json;
    let mut progress = |doing: &str| {
        if shows {
            tell(&format!("measuring: {doing}"));
        }
    };
    let found = survey(&mut near, &plan, &mut progress).map_err(|error| far.failure(&error))?;
    series::write_pings(command.pings.as_deref(), near.comparison())?;
    near.close();
    if let Some(path) = &command.series {
        let ways = [&found.up, &found.down];
        let courses: Vec<series::Course<'_>> = ways
            .iter()
            .enumerate()
            .map(|(stream, way)| series::Course { stream, trace: &way.trace, one_way: &way.one_way })
            .collect();
        series::write(path, &courses)?;
    }
    if let Some(page) = page {
        page.write(&report::survey(&subject(&far, &heading), &found))?;
    }
    if command.json {
        let report = Report { ability_bps: ability.rate.as_bps(), survey: &found };
        return heading.write_json(&report, out);
    }
    Ok(write_text(&far, &found, out)?)
}

fn write_text(far: &FarEnd, found: &Found, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "line to {}, measured for {:.0} s", far.place(), found.seconds)?;
    writeln!(out, "round trip      {}", words::spread(&found.round_trip_ms, "ms"))?;
    let clocks = found.clocks;
    let skew = clocks.skew_ppm.map_or(String::new(), |skew| format!(", {skew:+.1} ppm faster"));
    writeln!(
        out,
        "clocks          theirs {:+.3} ms against ours{skew}; one-way delays to ±{:.3} ms",
        clocks.ahead_ms, clocks.uncertainty_ms
    )?;
    writeln!(out, "bandwidth-delay {}", words::bytes(found.bandwidth_delay_bytes))?;
    for (way, name) in [(&found.up, "up"), (&found.down, "down")] {
        write_way(way, name, out)?;
    }
    for note in &found.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

fn write_way(way: &Way, name: &str, out: &mut dyn Write) -> io::Result<()> {
    let available = &way.available;
    let at_least = if available.is_at_least { "at least " } else { "" };
    writeln!(out)?;
    writeln!(
        out,
        "{name:<4} available  {at_least}{} of UDP payload, {} with IP headers",
        words::rate(available.bits_per_second),
        words::rate(available.ip_bits_per_second)
    )?;
    if available.loaded_round_trip_ms.count > 0 {
        writeln!(out, "     when full  round trip {}", words::spread(&available.loaded_round_trip_ms, "ms"))?;
    }
    writeln!(out, "     path MTU   {} bytes (UDP payload {})", way.path_mtu, way.payload_max)?;
    writeln!(
        out,
        "     at {}: {} datagrams of {} bytes",
        words::rate(way.sum.bits_per_second as u64),
        way.sum.packets,
        way.stream.payload
    )?;
    writeln!(out, "     one way    {}", words::spread(&way.one_way_ms, "ms"))?;
    writeln!(out, "     jitter     {:.3} ms (RFC 3550)", way.sum.jitter_ms)?;
    writeln!(out, "     loss       {}", words::loss(&way.loss))?;
    writeln!(out, "     reordering {}", words::reordering(&way.reordering))?;
    writeln!(
        out,
        "     pacing     {:.1} us late in the median, {:.1} us for 99 %",
        way.pacing_error_us.p50, way.pacing_error_us.p99
    )?;
    words::account(name, &way.account, out)
}

/// What the machine is tried with.
const PAYLOAD: Bytes = Bytes::new(1_400);

/// The longest datagrams that are tried: those of jumbo frames.
const PAYLOAD_MAX: Bytes = Bytes::new(8_972);
