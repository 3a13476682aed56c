//! `skyhaul replay`: plays a station's recording or any capture file, with its original timing or
//! another.

mod pace;
mod sink;
mod source;

use crate::commands::output::OutputFormat;
use crate::commands::signals;
use pace::{ReplayClock, Speed};
use serde::Serialize;
use sink::{ReplaySink, SinkResult};
use skyhaul_config::{ConfigTime, HostPort};
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::Clock;
use skyhaul_store::raw::RawKind;
use skyhaul_units::{ByteCount, Duration, Instant, Rate, Utc};
use source::{ReplayPiece, ReplaySource};
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// The arguments of `skyhaul replay`.
#[derive(clap::Args)]
#[command(
    group = clap::ArgGroup::new("destination").required(true),
    after_help = "\
        Where a transmission ended in the recording, the TCP connection is closed and opened \
        again, so that a receiving station finds the same contacts. Recorded datagrams are sent as \
        datagrams over UDP.

Example:
  skyhaul replay state --channel x-band --from 2026-11-22T10:02:00Z --to 2026-11-22T10:14:00Z \
  --to-tcp 127.0.0.1:5000
  skyhaul replay state --channel x-band --rate x4 --listen 0.0.0.0:5000
  skyhaul replay pass.dat --rate 15mbit --to-udp 127.0.0.1:5000
  skyhaul replay state --channel x-band --rate max --output pass.dat"
)]
pub struct Replay {
    /// The state folder of a node, the folder of one recording, or any capture file.
    #[arg(value_name = "STATE|FILE")]
    source: PathBuf,
    /// The channel whose recording is played. Not needed if there is only one.
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// Only data received at this time or later, such as 2026-11-22T10:02:00Z.
    #[arg(long, value_name = "TIME")]
    from: Option<ConfigTime>,
    /// Only data received before this time.
    #[arg(long, value_name = "TIME")]
    to: Option<ConfigTime>,
    /// The speed: original, x2 (twice as fast; x0.5 half as fast), a rate such as 15mbit, or max.
    /// Default: original for a recording, max for a file.
    #[arg(long, value_name = "SPEED")]
    rate: Option<Speed>,
    /// With the recording's own timing: shortens longer pauses to this.
    #[arg(long, value_name = "DURATION")]
    skip_silence: Option<Duration>,
    /// Connects to a TCP server.
    #[arg(long, value_name = "HOST:PORT", group = "destination")]
    to_tcp: Option<HostPort>,
    /// Sends UDP datagrams.
    #[arg(long, value_name = "HOST:PORT", group = "destination")]
    to_udp: Option<HostPort>,
    /// Waits for one TCP client at a time.
    #[arg(long, value_name = "ADDR", group = "destination")]
    listen: Option<SocketAddr>,
    /// Writes a file; `-` is standard output.
    #[arg(long, value_name = "FILE", group = "destination")]
    output: Option<PathBuf>,
    /// Prints the summary as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The account of a replay.
#[derive(Debug, Default, Serialize)]
struct Summary {
    source: String,
    /// Bytes played.
    bytes: u64,
    /// Of how many in the span.
    of_bytes: u64,
    /// When the first and last of them were received; none for a file.
    first: Option<Utc>,
    last: Option<Utc>,
    /// How long it took, and the rate that this makes.
    seconds: f64,
    rate_bps: u64,
    /// Bytes that the disk did not give back as they were written; they were played all the same.
    damaged_bytes: u64,
    /// Places at which something had come in and was not recorded.
    gaps: u64,
    /// It was interrupted before its end.
    interrupted: bool,
}

/// Plays until the end or an interrupt, then says what was played.
///
/// # Errors
/// There is no such recording or file; the destination cannot be reached or goes away; it was
/// interrupted.
pub fn run(command: &Replay, out: &mut dyn Write) -> Result<(), Failure> {
    let mut source = ReplaySource::open(command)?;
    let speed = command.speed(&source)?;
    let stop = signals::stop_flag()?;
    let to_stdout = command.output.as_deref() == Some("-".as_ref());
    let mut summary = Summary {
        source: command.source.display().to_string(),
        of_bytes: source.length().as_u64(),
        ..Summary::default()
    };
    {
        let mut sink = ReplaySink::open(command, out)?;
        let pace = ReplayClock::new(speed, command.skip_silence);
        play(&mut source, &mut sink, pace, &stop, &mut summary)?;
    }
    // The data is on standard output: the summary goes to standard error.
    let mut beside = io::stderr();
    let out: &mut dyn Write = if to_stdout { &mut beside } else { out };
    summary.write(command.json.into(), out)?;
    summary.verdict()
}

fn play(
    source: &mut ReplaySource,
    sink: &mut ReplaySink<'_>,
    mut pace: ReplayClock,
    stop: &AtomicBool,
    summary: &mut Summary,
) -> Result<(), Failure> {
    let clock = Clock::start();
    let mut progress = Progress::new();
    let mut next_input = None;
    let began = sink.wait_ready(stop)?;
    summary.interrupted = began == SinkResult::Stopped;
    let from = clock.now();
    while !summary.interrupted {
        let Some(piece) = source.next_piece(pace.step())? else { break };
        if next_input.is_some_and(|next| next != piece.input && piece.input != 0) {
            summary.gaps += 1;
        }
        next_input = Some(piece.input + piece.bytes.len() as u64);
        let due = from + pace.due(piece.received, ByteCount::of(piece.bytes.len()));
        summary.interrupted =
            wait_until(due, clock, stop) || send(sink, &piece, stop)? == SinkResult::Stopped;
        if summary.interrupted {
            break;
        }
        summary.count(&piece);
        progress.show(clock.now(), summary, piece.received);
    }
    progress.end();
    if !summary.interrupted {
        sink.finish()?;
    }
    let took = clock.now().since(from);
    summary.seconds = took.as_secs_f64();
    summary.rate_bps = Rate::over(ByteCount::new(summary.bytes), took).as_bps();
    Ok(())
}

fn send(
    sink: &mut ReplaySink<'_>,
    piece: &ReplayPiece,
    stop: &AtomicBool,
) -> Result<SinkResult, Failure> {
    match piece.kind {
        RawKind::Break => sink.end_transmission().map(|()| SinkResult::Sent),
        RawKind::Datagram => sink.datagram(&piece.bytes, stop),
        RawKind::Stream => sink.stream(&piece.bytes, stop),
    }
}

/// Waits until `due`; whether it was interrupted.
fn wait_until(due: Instant, clock: Clock, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return true;
        }
        let left = due.since(clock.now());
        if left == Duration::ZERO {
            return false;
        }
        pause(left.min(LOOK));
    }
}

#[allow(clippy::disallowed_methods, reason = "a replay keeps the time at which its bytes go out")]
fn pause(span: Duration) {
    std::thread::sleep(span.to_std());
}

/// An interrupt is noticed within this time.
const LOOK: Duration = Duration::from_millis(20);
/// Between two lines of progress.
const PROGRESS: Duration = Duration::from_millis(500);

impl Replay {
    fn speed(&self, source: &ReplaySource) -> Result<Speed, Failure> {
        let is_timed = source.is_timed();
        match self.rate {
            Some(Speed::Times(_)) if !is_timed => {
                let help = "write --rate with a rate such as 15mbit, or max";
                let what = "a file has no reception times";
                Err(Failure::new(Exit::Usage, what, help).at(&self.source.display().to_string()))
            }
            None if !is_timed && self.to_udp.is_some() => {
                let help = "write --rate with the downlink's rate, such as 15mbit";
                let what = "a file would be sent faster than any receiver accepts datagrams";
                Err(Failure::new(Exit::Usage, what, help).at(&self.source.display().to_string()))
            }
            Some(speed) => Ok(speed),
            None if is_timed => Ok(Speed::ORIGINAL),
            None => Ok(Speed::Max),
        }
    }
}

impl Summary {
    fn count(&mut self, piece: &ReplayPiece) {
        self.bytes += piece.bytes.len() as u64;
        self.first = self.first.or(piece.received);
        self.last = piece.received.or(self.last);
        if !piece.is_intact {
            self.damaged_bytes += piece.bytes.len() as u64;
        }
    }

    fn write(&self, format: OutputFormat, out: &mut dyn Write) -> Result<(), Failure> {
        if format == OutputFormat::Json {
            let line = serde_json::to_string(self).expect("figures are plain data");
            return Ok(writeln!(out, "{line}")?);
        }
        let rate = Rate::from_bps(self.rate_bps).as_bps() as f64 / 1e6;
        let (bytes, of) = (ByteCount::new(self.bytes), ByteCount::new(self.of_bytes));
        writeln!(out, "played {bytes} of {of} in {:.1} s ({rate:.3} Mbit/s)", self.seconds)?;
        if let (Some(first), Some(last)) = (self.first, self.last) {
            writeln!(out, "received {first} to {last}")?;
        }
        if self.gaps > 0 {
            writeln!(out, "note: at {} places received data was not recorded", self.gaps)?;
        }
        Ok(())
    }

    fn verdict(&self) -> Result<(), Failure> {
        if self.interrupted {
            let help = "resume with --from and the time of the last line";
            return Err(Failure::new(
                Exit::Interrupted,
                "interrupted before everything was played",
                help,
            ));
        }
        if self.damaged_bytes > 0 {
            let what = format!("{} damaged bytes of the recording were played", self.damaged_bytes);
            return Err(Failure::new(
                Exit::Result,
                &what,
                "check the disk that the recording lies on",
            ));
        }
        Ok(())
    }
}

/// A line of progress on a terminal.
struct Progress {
    is_shown: bool,
    at: Instant,
    has_line: bool,
}

impl Progress {
    fn new() -> Self {
        Self { is_shown: io::stderr().is_terminal(), at: Instant::ZERO, has_line: false }
    }

    fn show(&mut self, now: Instant, summary: &Summary, received: Option<Utc>) {
        if !self.is_shown || now < self.at {
            return;
        }
        self.at = now + PROGRESS;
        self.has_line = true;
        let percent = summary.bytes.saturating_mul(100) / summary.of_bytes.max(1);
        let time = received.map_or(String::new(), |received| format!(", received {received}"));
        // Standard error may be closed.
        let _ =
            write!(io::stderr(), "\r{} played, {percent} %{time}  ", ByteCount::new(summary.bytes));
    }

    fn end(&self) {
        if self.has_line {
            let _ = writeln!(io::stderr());
        }
    }
}
