//! `skyhaul probe loss`: the loss process of a line, and its effect on a correlator.

use super::far::{FarFlags, StreamWay};
use super::series::DelaySeries;
use super::stream::OutputFlags;
use super::{tell, words};
use serde::Serialize;
use skyhaul_exit::{Exit, Failure};
use skyhaul_probe::iperf::Iperf;
use skyhaul_probe::losses::{LossPattern, losses};
use skyhaul_probe::stats::VlbiRule;
use skyhaul_probe::{Spec, StreamDirection, report};
use skyhaul_units::{ByteCount, Duration, Rate};
use std::io::{self, Write};

/// The arguments of `skyhaul probe loss`.
#[derive(clap::Args)]
#[command(after_help = "\
        A correlator that tolerates two consecutive damaged frames loses synchronisation at the \
        third: give --frames-in-a-row 3.

Example:
  skyhaul probe loss far.example.org --rate 100mbit --seconds 60
  skyhaul probe loss correlator.example.org --payload 8032 --rate 1gbit --frames-in-a-row 3")]
pub struct LossCommand {
    #[command(flatten)]
    far: FarFlags,
    /// The rate to send, in UDP payload without headers.
    #[arg(long, value_name = "RATE", default_value = "10 Mbit/s")]
    rate: Rate,
    /// The duration in seconds. A stream ends after 1,048,576 datagrams at the latest.
    #[arg(long, value_name = "N", default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// UDP payload of a datagram in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1_400,
        value_parser = clap::value_parser!(u16).range(40..=8_972))]
    payload: u16,
    /// The direction.
    #[arg(long, value_enum, default_value_t = StreamWay::Up)]
    direction: StreamWay,
    /// The number of datagrams in one data frame of the correlator.
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    datagrams_a_frame: u32,
    /// The number of consecutive damaged frames after which the correlator loses synchronisation.
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(1..=64))]
    frames_in_a_row: u32,
    #[command(flatten)]
    output: OutputFlags,
}

/// The JSON form: what iperf3 prints of a stream in its own words, and what it does not know.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    iperf: Iperf,
    #[serde(flatten)]
    found: &'a LossPattern,
}

/// Runs the stream and says what its losses are like.
///
/// # Errors
/// The far end is not there, is none or refuses; the run was interrupted; a file cannot be written.
pub fn run(command: &LossCommand, out: &mut dyn Write) -> Result<(), Failure> {
    if command.rate == Rate::ZERO {
        return Err(Failure::new(
            Exit::Usage,
            "a rate of zero measures nothing",
            "give --rate more than 0 bit/s",
        ));
    }
    let payload = ByteCount::new(u64::from(command.payload));
    let mut begun = command.output.begin(&command.far, "loss", payload, Some(command.rate))?;
    let rate = command.rate.min(begun.rate_max);
    let most = begun.near.limits().datagrams;
    let spec = Spec::at(rate, payload, Duration::from_secs(command.seconds), most);
    let rule = VlbiRule {
        datagrams_a_frame: command.datagrams_a_frame,
        frames_in_a_row: command.frames_in_a_row,
    };
    if !command.output.json {
        tell(&format!("measuring: {} datagrams in {:.1} s", spec.count, spec.time().as_secs_f64()));
    }
    let found = losses(&mut begun.near, command.direction.into(), spec, rule)
        .map_err(|error| begun.far.failure(&error))?;
    let local = begun.near.line().local_addr();
    let course = DelaySeries { stream: 0, trace: &found.trace, one_way: &found.one_way };
    let measured = begun.end(&[course], |subject| report::losses(subject, &found))?;
    if command.output.json {
        let iperf = Iperf::of(&found.trace, local, measured.far.address);
        return measured.write_json(&Report { iperf, found: &found }, out);
    }
    Ok(write_text(&measured.far.place(), &found, out)?)
}

fn write_text(place: &str, found: &LossPattern, out: &mut dyn Write) -> io::Result<()> {
    let (way, name) = match found.direction {
        StreamDirection::Up => ("up to", "up"),
        StreamDirection::Down => ("down from", "down"),
    };
    let process = &found.process;
    writeln!(
        out,
        "{way} {place}: {} datagrams of {} bytes each {:.1} us",
        found.sum.packets, found.stream.payload, found.stream.spacing_us
    )?;
    writeln!(out, "loss            {}", words::loss(process))?;
    for (length, number) in process.runs.iter().take(RUNS_SHOWN) {
        writeln!(out, "  runs of {length:<6} {number}")?;
    }
    match &process.intervals {
        Some(fit) => writeln!(
            out,
            "intervals       {:.1} datagrams in the mean; {} exponential (Kolmogorov-Smirnov \
            {:.4}, {:.4} is critical at 5 %)",
            fit.mean,
            if fit.fits { "may be" } else { "not" },
            fit.distance,
            fit.critical
        )?,
        None => writeln!(out, "intervals       too few to determine their distribution")?,
    }
    if let Some(fit) = process.gilbert.filter(|_| process.needs_two_states) {
        writeln!(
            out,
            "Gilbert-Elliott becomes bad {}, good again {} per datagram; loses {} when good, {} \
            when bad",
            words::percent(fit.to_bad),
            words::percent(fit.to_good),
            words::percent(fit.loss_good),
            words::percent(fit.loss_bad)
        )?;
    }
    if let Some(first) = process.autocorrelation.first() {
        writeln!(
            out,
            "autocorrelation {first:+.4} from one datagram to the next; up to ±{:.4} is chance",
            process.autocorrelation_95
        )?;
    }
    writeln!(out, "one way         {}", words::spread(&found.one_way_ms, "ms"))?;
    writeln!(out, "reordering      {}", words::reordering(&found.reordering))?;
    let vlbi = &found.vlbi;
    writeln!(
        out,
        "VLBI            {} of the frames lost: signal-to-noise × {:.4}; {} in a row, which lose \
        the correlator's synchronisation: \
         {} seen, probability {:.2e} in an hour",
        words::percent(vlbi.frames_lost),
        vlbi.snr,
        vlbi.rule.frames_in_a_row,
        vlbi.seen,
        vlbi.sync_loss_an_hour
    )?;
    words::account(name, &found.account, out)?;
    found.account.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))
}

/// Lengths of runs that are printed; all are in the JSON form.
const RUNS_SHOWN: usize = 12;
