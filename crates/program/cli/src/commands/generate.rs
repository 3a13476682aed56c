//! `skyhaul generate`: a spacecraft simulator. The truth is the account of what a receiver can
//! recover.

use super::decode;
use super::signals::stop_flag;
use skyhaul_ccsds::generate::{
    Description, ErrorPlan, Generator, GeneratorOptions, Layout, Source, SymbolOptions,
    SymbolTruth, SymbolWriter, Truth,
};
use skyhaul_ccsds::inner::Symbols;
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_config::MissionRef;
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::Clock;
use skyhaul_units::{ByteCount, Duration, Probability, Rate};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The arguments of `skyhaul generate`.
#[derive(clap::Args)]
#[command(
    after_help = "The downlink is filled with packets of the mission's products, with its time \
                 codes, or with those that a
description lists (docs/how-to/generate.md). The same seed gives the same bits.

Example:
  skyhaul generate --mission noaa-21 --frames 100000 --output x.dat
  skyhaul generate downlink.toml --duration 60s --paced --to-tcp 127.0.0.1:5000"
)]
pub struct Generate {
    /// The packets to send, as a TOML file. Without it, packets of the mission's products.
    description: Option<PathBuf>,
    /// The mission: a name (noaa-21), or a mission file ending in .toml. Without it, the
    /// description's.
    #[arg(long, value_name = "NAME|FILE.toml")]
    mission: Option<MissionRef>,
    /// The number of frames to send.
    #[arg(long, default_value_t = 10_000, conflicts_with = "duration",
        value_parser = clap::value_parser!(u64).range(1..))]
    frames: u64,
    /// How long to send, at the downlink's rate.
    #[arg(long)]
    duration: Option<Duration>,
    #[command(flatten)]
    to: OutputFlags,
    /// The downlink's rate, including markers and check symbols. Without it, the description's, or
    /// 15 Mbit/s.
    #[arg(long)]
    rate: Option<Rate>,
    /// Sends no faster than the downlink's rate.
    #[arg(long)]
    paced: bool,
    /// Writes what a receiver can recover to this file. Without it, to NAME.truth.json beside the
    /// output file.
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    #[command(flatten)]
    form: FormFlags,
    /// Selects the contents and the errors.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    errors: ErrorFlags,
    /// Prints the result as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Where the downlink goes.
#[derive(clap::Args)]
struct OutputFlags {
    /// The file to write; `-` is standard output.
    #[arg(long, value_name = "FILE", required_unless_present = "to_tcp")]
    output: Option<PathBuf>,
    /// Connects to this receiver and sends to it.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "output")]
    to_tcp: Option<String>,
}

/// The form in which the downlink is written.
#[derive(clap::Args)]
struct FormFlags {
    /// Writes coded blocks with markers (`cadus`), or transfer frames alone (`frames`).
    #[arg(long, value_name = "LAYOUT", default_value = "cadus")]
    layout: LayoutName,
    /// Writes a demodulator's symbols instead of bits, with the coding of the mission: one bit each
    /// (`hard`), or one signed byte each (`soft`).
    #[arg(long, value_name = "FORM")]
    symbols: Option<SymbolName>,
    /// Noise on the symbols as Eb/N0 in dB, by bits of the transfer frames.
    #[arg(long, value_name = "DB", requires = "symbols", allow_negative_numbers = true,
        value_parser = decibels)]
    ebn0: Option<f64>,
    /// Bits before the first marker, so that the stream is not byte aligned: 0 to 7.
    #[arg(long, value_name = "BITS", default_value_t = 0,
        value_parser = clap::value_parser!(u8).range(0..8))]
    offset_bits: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LayoutName {
    Cadus,
    Frames,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SymbolName {
    Hard,
    Soft,
}

/// A ratio that a receiver may meet with.
fn decibels(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|db: &f64| (-10.0..=40.0).contains(db));
    number.ok_or_else(|| format!("`{text}` is not a ratio in dB from -10 to 40, like 3.5"))
}

/// Errors and their probability for each frame; each flag replaces the description's value.
#[derive(clap::Args)]
struct ErrorFlags {
    /// Wrong symbols that Reed-Solomon can correct, per frame.
    #[arg(long, value_name = "PROBABILITY")]
    correctable: Option<Probability>,
    /// Errors beyond correction, per frame.
    #[arg(long, value_name = "PROBABILITY")]
    uncorrectable: Option<Probability>,
    /// A burst of wrong bytes, per frame.
    #[arg(long, value_name = "PROBABILITY")]
    bursts: Option<Probability>,
    /// The length of a burst in bytes.
    #[arg(long, value_name = "BYTES")]
    burst_bytes: Option<u32>,
    /// The frame is missing, per frame.
    #[arg(long, value_name = "PROBABILITY")]
    dropped: Option<Probability>,
    /// The signal is lost for several frames, per frame.
    #[arg(long, value_name = "PROBABILITY")]
    gaps: Option<Probability>,
    /// The length of such a loss in frames.
    #[arg(long, value_name = "FRAMES")]
    gap_frames: Option<u32>,
    /// Bits are lost or inserted (bit slip), per frame.
    #[arg(long, value_name = "PROBABILITY")]
    slipped: Option<Probability>,
    /// Wrong bits in the marker, per frame.
    #[arg(long, value_name = "PROBABILITY")]
    marker: Option<Probability>,
    /// The polarity inverts, per frame.
    #[arg(long, value_name = "PROBABILITY")]
    inverted: Option<Probability>,
}

/// What was sent, and what a receiver can recover.
#[derive(serde::Serialize)]
struct Report<'a> {
    mission: &'a str,
    bytes: u64,
    /// Where symbols were sent. The counts below do not include losses by noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    symbols: Option<SymbolTruth>,
    #[serde(flatten)]
    truth: &'a Truth,
}

/// Sends the downlink, then writes its truth.
///
/// # Errors
/// The description or a flag does not suit the mission; the output refuses; it was interrupted.
pub fn run(command: &Generate, out: &mut dyn Write) -> Result<(), Failure> {
    let description = description(command)?;
    let mission = mission(command, &description)?;
    let errors = command.errors.over(description.errors);
    errors
        .fits(&mission)
        .map_err(|error| Failure::from_sentence(Exit::Usage, &error.to_string()))?;
    let layout = match command.form.layout {
        LayoutName::Cadus => Layout::Cadus,
        LayoutName::Frames => Layout::Frames,
    };
    let frame_time = description.rate.time_for(ByteCount::of(mission.cadu_len())).as_nanos();
    let frames =
        command.duration.map_or(command.frames, |long| long.as_nanos().div_ceil(frame_time.max(1)));
    let options = GeneratorOptions {
        frames,
        errors,
        offset_bits: command.form.offset_bits,
        seed: command.seed,
        layout,
    };
    let source = Source::described(&mission, &description, command.seed).map_err(|error| {
        let place =
            command.description.as_deref().map_or("the command line".into(), Path::to_string_lossy);
        Failure::new(Exit::Usage, &error.to_string(), "docs/how-to/generate.md shows a description")
            .at(&place)
    })?;
    let mut generator = Generator::new(source, options);
    let mut writer = symbol_writer(command, &mission)?;
    let mut downlink = Downlink { generator: &mut generator, writer: writer.as_mut() };
    let stop = stop_flag()?;
    let pace = command.paced.then_some(description.rate);
    let bytes = match (&command.to.output, &command.to.to_tcp) {
        (Some(path), _) if path.as_os_str() == "-" => send(&mut downlink, out, pace, &stop)
            .map_err(|source| output_failure("standard output", source))?,
        (Some(path), _) => {
            let place = path.display().to_string();
            let file = File::create(path).map_err(|source| output_failure(&place, source))?;
            send(&mut downlink, &mut BufWriter::new(file), pace, &stop)
                .map_err(|source| output_failure(&place, source))?
        }
        (None, address) => {
            let address = address.as_deref().unwrap_or_default();
            let refused = |source| {
                Failure::io(
                    "cannot send to the receiver",
                    address,
                    "check that it listens there",
                    source,
                )
            };
            let mut stream = TcpStream::connect(address).map_err(refused)?;
            send(&mut downlink, &mut stream, pace, &stop).map_err(refused)?
        }
    };
    let symbols = writer.map(|writer| writer.truth());
    tell(
        command,
        out,
        &Report { mission: mission.name(), bytes, symbols, truth: &generator.truth() },
    )?;
    if stop.load(Ordering::Relaxed) {
        let help = "the truth file covers what was sent; start it again for the whole";
        return Err(Failure::new(
            Exit::Interrupted,
            "interrupted before everything was sent",
            help,
        ));
    }
    Ok(())
}

fn output_failure(place: &str, source: io::Error) -> Failure {
    Failure::io("the downlink cannot be written", place, "free space, or name another file", source)
}

/// The description, with the values of the flags.
fn description(command: &Generate) -> Result<Description, Failure> {
    let mut description = match &command.description {
        None => Description::default(),
        Some(path) => {
            let place = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|source| {
                let help = "give the path of a TOML file, or only a --mission";
                Failure::io("the description cannot be read", &place, help, source)
            })?;
            Description::from_toml(&text).map_err(|error| {
                Failure::new(
                    Exit::Usage,
                    &error.to_string(),
                    "docs/how-to/generate.md lists the keys",
                )
                .at(&place)
            })?
        }
    };
    description.rate = command.rate.unwrap_or(description.rate);
    Ok(description)
}

/// The mission of the flag, else of the description, whose files are beside it.
fn mission(command: &Generate, description: &Description) -> Result<Mission, Failure> {
    let known = MissionSet::built_in();
    if let Some(wanted) = &command.mission {
        return decode::mission(wanted, &known);
    }
    let Some(name) = &description.mission else {
        let help = "give a --mission, or `mission` in the description";
        return Err(Failure::new(Exit::Usage, "no mission is given", help));
    };
    let wanted: MissionRef =
        name.parse().map_err(|error| Failure::from_sentence(Exit::Usage, &format!("{error}")))?;
    match (wanted, command.description.as_deref().and_then(Path::parent)) {
        (MissionRef::File(file), Some(folder)) => {
            decode::mission(&MissionRef::File(folder.join(file)), &known)
        }
        (wanted, _) => decode::mission(&wanted, &known),
    }
}

impl ErrorFlags {
    /// The plan, with the values that the flags give.
    fn over(&self, plan: ErrorPlan) -> ErrorPlan {
        ErrorPlan {
            correctable: self.correctable.unwrap_or(plan.correctable),
            uncorrectable: self.uncorrectable.unwrap_or(plan.uncorrectable),
            bursts: self.bursts.unwrap_or(plan.bursts),
            burst_bytes: self.burst_bytes.unwrap_or(plan.burst_bytes),
            dropped: self.dropped.unwrap_or(plan.dropped),
            gaps: self.gaps.unwrap_or(plan.gaps),
            gap_frames: self.gap_frames.unwrap_or(plan.gap_frames),
            slipped: self.slipped.unwrap_or(plan.slipped),
            marker: self.marker.unwrap_or(plan.marker),
            inverted: self.inverted.unwrap_or(plan.inverted),
        }
    }
}

/// Writes the downlink until its end or an interrupt; returns the bytes written.
fn send(
    downlink: &mut Downlink<'_>,
    to: &mut dyn Write,
    pace: Option<Rate>,
    stop: &AtomicBool,
) -> io::Result<u64> {
    let clock = Clock::start();
    let begun = clock.now();
    let (mut sent, mut of_bits) = (0, 0);
    for piece in downlink.generator.by_ref() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        of_bits += piece.len() as u64;
        let piece = match &mut downlink.writer {
            Some(writer) => writer.push(&piece),
            None => piece,
        };
        to.write_all(&piece)?;
        sent += piece.len() as u64;
        if let Some(rate) = pace {
            to.flush()?;
            wait(clock.until(begun + rate.time_for(ByteCount::new(of_bits))));
        }
    }
    if let Some(writer) = &mut downlink.writer {
        let tail = writer.finish();
        to.write_all(&tail)?;
        sent += tail.len() as u64;
    }
    to.flush()?;
    Ok(sent)
}

/// The bits that are sent, and the encoder to symbols where symbols are requested.
struct Downlink<'a> {
    generator: &'a mut Generator,
    writer: Option<&'a mut SymbolWriter>,
}

fn symbol_writer(command: &Generate, mission: &Mission) -> Result<Option<SymbolWriter>, Failure> {
    let Some(form) = command.form.symbols else { return Ok(None) };
    if command.form.layout == LayoutName::Frames || mission.frame().is_variable() {
        let help = "omit --layout, or --symbols; frames with their own length field have no coding";
        return Err(Failure::new(Exit::Usage, "frames alone are not sent as symbols", help));
    }
    let form = match form {
        SymbolName::Hard => Symbols::Hard,
        SymbolName::Soft => Symbols::Soft,
    };
    let options = SymbolOptions { form, ebn0_db: command.form.ebn0, seed: command.seed };
    Ok(Some(SymbolWriter::new(mission, options)))
}

#[allow(
    clippy::disallowed_methods,
    reason = "a spacecraft keeps the time at which its bits go out"
)]
fn wait(span: Duration) {
    std::thread::sleep(span.to_std());
}

/// Writes the truth to its file and the result to `out`.
fn tell(command: &Generate, out: &mut dyn Write, report: &Report<'_>) -> Result<(), Failure> {
    let is_file = |path: &&PathBuf| path.as_os_str() != "-";
    let beside =
        || command.to.output.as_ref().filter(is_file).map(|path| path.with_extension("truth.json"));
    let truth = command.truth.clone().or_else(beside);
    if let Some(path) = &truth {
        let place = path.display().to_string();
        let text = serde_json::to_string_pretty(report).map_err(io::Error::from)?;
        std::fs::write(path, text + "\n").map_err(|source| output_failure(&place, source))?;
    }
    if command.to.output.as_ref().is_some_and(|path| !is_file(&path)) {
        return Ok(());
    }
    if command.json {
        serde_json::to_writer(&mut *out, report).map_err(io::Error::from)?;
        return Ok(writeln!(out)?);
    }
    let Truth { frames_sent, good_frames, uncorrectable_frames, dropped_frames, .. } = report.truth;
    writeln!(out, "{frames_sent} frames of mission {}, {} bytes", report.mission, report.bytes)?;
    writeln!(
        out,
        "  a receiver can get {good_frames} good frames; {uncorrectable_frames} are beyond \
        correction, {dropped_frames} missing"
    )?;
    if let Some(path) = &truth {
        writeln!(out, "  channels, packets and digests: {}", path.display())?;
    }
    Ok(())
}
