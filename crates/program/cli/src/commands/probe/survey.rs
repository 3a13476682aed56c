//! `skyhaul probe HOST`: a picture of a line in about a minute.

use super::far::{FarEnd, FarFlags};
use super::series::DelaySeries;
use super::stream::OutputFlags;
use super::{tell, words};
use serde::Serialize;
use skyhaul_exit::Failure;
use skyhaul_probe::report;
use skyhaul_probe::survey::{Survey as Found, SurveyPlan, WayEstimate, survey};
use skyhaul_units::{ByteCount, Duration, Rate};
use std::io::{self, Write};

/// The arguments of `skyhaul probe HOST`.
#[derive(clap::Args)]
pub struct SurveyCommand {
    #[command(flatten)]
    far: FarFlags,
    /// The approximate duration of the measurement in seconds.
    #[arg(long, value_name = "N", default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// The highest rate to send, in UDP payload. Default: the highest that both ends reach and the
    /// far end permits.
    #[arg(long, value_name = "RATE")]
    max_rate: Option<Rate>,
    #[command(flatten)]
    output: OutputFlags,
}

/// The JSON form of a survey.
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
pub fn run(command: &SurveyCommand, out: &mut dyn Write) -> Result<(), Failure> {
    let mut begun = command.output.begin(&command.far, "survey", PAYLOAD, command.max_rate)?;
    let plan = SurveyPlan {
        time: Duration::from_secs(command.seconds),
        rate_max: begun.rate_max,
        payload_max: PAYLOAD_MAX,
        headers: begun.far.headers(),
    };
    let mut progress = |doing: &str| {
        if !command.output.json {
            tell(&format!("measuring: {doing}"));
        }
    };
    let found =
        survey(&mut begun.near, &plan, &mut progress).map_err(|error| begun.far.failure(&error))?;
    let ability_bps = begun.ability.rate.as_bps();
    let courses = [course(0, &found.up), course(1, &found.down)];
    let measured = begun.end(&courses, |subject| report::survey(subject, &found))?;
    if command.output.json {
        return measured.write_json(&Report { ability_bps, survey: &found }, out);
    }
    Ok(write_text(&measured.far, &found, out)?)
}

fn course(stream: usize, way: &WayEstimate) -> DelaySeries<'_> {
    DelaySeries { stream, trace: &way.trace, one_way: &way.one_way }
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
        write_way(found, way, name, out)?;
    }
    for note in &found.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

fn write_way(found: &Found, way: &WayEstimate, name: &str, out: &mut dyn Write) -> io::Result<()> {
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
        writeln!(
            out,
            "     when full  round trip {}",
            words::spread(&available.loaded_round_trip_ms, "ms")
        )?;
    }
    if let Some(queue) = found.queue(way) {
        writeln!(out, "     queue      {}", queue.words())?;
    }
    writeln!(out, "     path MTU   {} bytes (UDP payload {})", way.path_mtu, way.payload_max)?;
    writeln!(
        out,
        "     at {}, {} of what is available: {} datagrams of {} bytes",
        words::rate(way.sum.bits_per_second as u64),
        words::percent_of(way.sum.bits_per_second, available.bits_per_second),
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
const PAYLOAD: ByteCount = ByteCount::new(1_400);

/// The longest datagrams that are tried: those of jumbo frames.
const PAYLOAD_MAX: ByteCount = ByteCount::new(8_972);
