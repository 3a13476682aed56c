//! `skyhaul probe sweep`: sends datagrams of many sizes and spacings, and reports what arrives.

use super::far::{FarFlags, StreamWay};
use super::series::DelaySeries;
use super::stream::OutputFlags;
use super::{tell, words};
use skyhaul_exit::{Exit, Failure};
use skyhaul_probe::sweep::{Sweep as Found, SweepPlan, SweepPoint, sweep};
use skyhaul_probe::{StreamDirection, report};
use skyhaul_units::{ByteCount, Duration, Rate};
use std::io::{self, Write};

/// The arguments of `skyhaul probe sweep`.
#[derive(clap::Args)]
#[command(after_help = "\
        If the spacing is shorter than the time that a datagram takes on the line, the received \
        rate is the rate of the line. If it is longer, one datagram arrives in each spacing.

Example:
  skyhaul probe sweep far.example.org --payload 400,1400 --spacing 12us,24us,50us,100us --count \
  10000")]
pub struct SweepCommand {
    #[command(flatten)]
    far: FarFlags,
    /// The UDP payloads of the datagrams in bytes.
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "200,600,1000,1400",
          value_parser = clap::value_parser!(u16).range(40..=8_972))]
    payload: Vec<u16>,
    /// The time between the beginnings of two datagrams.
    #[arg(
        long,
        value_name = "DURATION",
        value_delimiter = ',',
        default_value = "20us,50us,100us,200us,500us,1ms"
    )]
    spacing: Vec<Duration>,
    /// The number of datagrams of each stream.
    #[arg(long, value_name = "N", default_value_t = 2_000,
        value_parser = clap::value_parser!(u32).range(20..))]
    count: u32,
    /// The direction.
    #[arg(long, value_enum, default_value_t = StreamWay::Up)]
    direction: StreamWay,
    /// Omits faster streams. Default: the highest rate that both ends reach and the far end
    /// permits.
    #[arg(long, value_name = "RATE")]
    max_rate: Option<Rate>,
    #[command(flatten)]
    output: OutputFlags,
}

/// Runs the sweep and prints its table.
///
/// # Errors
/// The far end is not there, is none or refuses; the run was interrupted; a file cannot be written.
pub fn run(command: &SweepCommand, out: &mut dyn Write) -> Result<(), Failure> {
    if command.spacing.contains(&Duration::ZERO) {
        return Err(Failure::new(
            Exit::Usage,
            "a spacing of zero is not possible",
            "give each --spacing more than 0 ns",
        ));
    }
    let longest = command.payload.iter().copied().max().unwrap_or(1_400);
    let longest = ByteCount::new(u64::from(longest));
    let mut begun = command.output.begin(&command.far, "sweep", longest, command.max_rate)?;
    let plan = SweepPlan {
        direction: command.direction.into(),
        payloads: command
            .payload
            .iter()
            .map(|payload| ByteCount::new(u64::from(*payload)))
            .collect(),
        spacings: command.spacing.clone(),
        count: command.count,
        rate_max: begun.rate_max,
        headers: begun.far.headers(),
    };
    let mut progress = |doing: &str| {
        if !command.output.json {
            tell(&format!("measuring: {doing}"));
        }
    };
    let found =
        sweep(&mut begun.near, &plan, &mut progress).map_err(|error| begun.far.failure(&error))?;
    let courses: Vec<DelaySeries<'_>> = (0..)
        .zip(&found.points)
        .map(|(stream, point)| DelaySeries { stream, trace: &point.trace, one_way: &point.one_way })
        .collect();
    let measured = begun.end(&courses, |subject| report::sweep(subject, &found))?;
    if command.output.json {
        return measured.write_json(&found, out);
    }
    Ok(write_text(&measured.far.place(), &found, out)?)
}

fn write_text(place: &str, found: &Found, out: &mut dyn Write) -> io::Result<()> {
    let way = if found.direction == StreamDirection::Up { "up to" } else { "down from" };
    writeln!(out, "{way} {place}, one-way delays to ±{:.3} ms", found.clocks.uncertainty_ms)?;
    writeln!(
        out,
        "{:>7} {:>11} {:>11} {:>14} {:>14} {:>10} {:>9} {:>12} {:>12} {:>11}",
        "payload",
        "spacing us",
        "sent at us",
        "sent",
        "received",
        "lost",
        "reordered",
        "arrivals us",
        "one way ms",
        "pacing us"
    )?;
    for point in &found.points {
        writeln!(
            out,
            "{:>7} {:>11.1} {:>11.1} {:>14} {:>14} {:>10} {:>9} {:>12.1} {:>12.3} {:>11.1}",
            point.payload,
            point.spacing_us,
            point.sent_spacing_us,
            words::rate(point.sent_bps),
            words::rate(point.received_bps),
            words::percent(point.sum.lost_percent / 100.0),
            point.reordering.reordered,
            point.inter_arrival_us.p50,
            point.one_way_ms.p50,
            point.pacing_error_us.p99
        )?;
    }
    if found.left_out > 0 {
        writeln!(out, "note: {} streams above the allowed rate were skipped", found.left_out)?;
    }
    let total = |of: fn(&SweepPoint) -> i64| found.points.iter().map(of).sum::<i64>();
    writeln!(
        out,
        "of all: {} dropped in the sending host, {} on the path, {} in the receiving host, {} \
        unexplained",
        total(|point| signed(
            point.account.dropped_by_sender + point.account.dropped_in_sending_queue
        )),
        total(|point| signed(point.account.lost_on_path)),
        total(|point| {
            let host = point.account.receiving_host;
            signed(host.card + host.softnet + host.socket)
        }),
        total(|point| point.account.unexplained)
    )?;
    writeln!(out, "arrivals, one way: the median; pacing: how late 99 % left")
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
