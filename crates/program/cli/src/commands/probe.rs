//! `skyhaul probe`: measures a line with plain datagrams to `skyhaul probe serve`.

pub mod far;
mod long;
mod loss;
mod page;
mod paths;
mod series;
mod serve;
mod stream;
mod survey;
mod sweep;
mod words;

use skyhaul_exit::Failure;
use std::io::Write;

/// The arguments of `skyhaul probe`.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Needs `skyhaul probe serve` at the far end.

Example:
  skyhaul probe centre.example.org
  skyhaul probe 192.0.2.7:4720 --seconds 20 --json"
)]
pub struct Probe {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    survey: survey::SurveyCommand,
}

/// What else it can do.
#[derive(clap::Subcommand)]
enum Command {
    /// Monitors a line for weeks with little traffic, and reports alarms.
    Long(long::Long),
    /// Characterises the loss process: random or in bursts, their length, and the effect on a
    /// correlator.
    Loss(loss::LossCommand),
    /// Finds parallel routes of different length.
    Paths(paths::PathsCommand),
    /// Answers probes until it is interrupted.
    Serve(serve::Serve),
    /// Sends datagrams of many sizes and spacings, and reports what arrives of each.
    Sweep(sweep::SweepCommand),
}

impl Probe {
    /// Whether it runs until it is stopped.
    pub const fn is_service(&self) -> bool {
        matches!(self.command, Some(Command::Long(_) | Command::Serve(_)))
    }
}

/// Carries out one end.
///
/// # Errors
/// An address cannot be used, the other end is not there, is none or refuses, or the run was
/// interrupted.
pub fn run(probe: Probe, out: &mut dyn Write) -> Result<(), Failure> {
    match probe.command {
        Some(Command::Long(command)) => long::run(&command, out),
        Some(Command::Loss(command)) => loss::run(&command, out),
        Some(Command::Paths(command)) => paths::run(&command, out),
        Some(Command::Serve(command)) => serve::run(&command, out),
        Some(Command::Sweep(command)) => sweep::run(&command, out),
        None => survey::run(&probe.survey, out),
    }
}

/// Prints a note beside the result.
pub fn tell(words: &str) {
    skyhaul_node::log::say(words);
}

/// The default port of `skyhaul probe serve`.
const PORT: u16 = 4720;

/// A file that cannot be written.
fn unwritable(path: &std::path::Path, source: std::io::Error) -> Failure {
    Failure::io(
        "the file cannot be written",
        &path.display().to_string(),
        "name another one",
        source,
    )
}
