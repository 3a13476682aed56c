//! `skyhaul lab`: experiments in virtual time, with what they must reach; emulated links for any
//! program.

mod compare;
mod emulated;
mod list;
mod progress;
mod run;
mod source;

use crate::failure::Failure;
use skyhaul_lab::scenario::CellSelection;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Runs experiments over emulated lines in virtual time, and emulates links for any program.
#[derive(clap::Subcommand)]
pub enum Lab {
    /// Lists the scenarios that the program holds: name, what it shows, cells, about how long it
    /// takes.
    #[command(after_help = "Example:\n  skyhaul lab list")]
    List,
    /// Lists the kinds of experiment that a scenario may have, with the figures that each yields.
    #[command(after_help = "Example:\n  skyhaul lab kinds")]
    Kinds,
    /// Runs scenarios and judges them by their bars.
    #[command(
        after_help = "A scenario is one that `skyhaul lab list` names, or a TOML file of your own \
                     (docs/how-to/lab.md). Ends with 0
when every bar is reached, and with 1 when one is missed.

Example:
  skyhaul lab run line --report out
  skyhaul lab run line --cells loss=1%,lossy=data --json
  skyhaul lab run --all"
    )]
    Run(RunCommand),
    /// Runs tools that people have on the same emulated line, beside what was published. Needs
    /// root.
    #[command(
        after_help = "Without an experiment it lists them. Ends with 1 where a bar is missed.

Example:
  skyhaul lab compare
  skyhaul lab compare dsn-93 --report out
  skyhaul lab compare trollsat --tools adaptive,tcp-bbr --runs 3 --json"
    )]
    Compare(compare::Compare),
    /// Makes two network namespaces, a and b, joined by the links of a file, for any program. Needs
    /// root.
    #[command(after_help = "The links' own process stays behind until `skyhaul lab down`.

Example:
  skyhaul lab up line.toml
  skyhaul lab exec b -- iperf3 -s -1 -D
  skyhaul lab exec a -- iperf3 -c 198.18.0.2")]
    Up(emulated::Up),
    /// Runs a program in one of the places of a lab, and ends as it does.
    #[command(after_help = "Example:\n  skyhaul lab exec a -- ping -c 3 198.18.0.2")]
    Exec(emulated::Exec),
    /// Makes running links other ones, from now on.
    #[command(after_help = "Example:\n  skyhaul lab set rate=50mbit loss=5% --direction up")]
    Set(emulated::Set),
    /// Shows what the links of a lab are like and what became of their packets.
    #[command(after_help = "Example:\n  skyhaul lab status --json")]
    Status(emulated::Status),
    /// Removes a lab, also one whose process has gone.
    #[command(after_help = "Example:\n  skyhaul lab down --kill")]
    Down(emulated::Down),
}

/// The arguments of `skyhaul lab run`.
#[derive(clap::Args)]
pub struct RunCommand {
    /// Names of scenarios, or paths of their files.
    #[arg(value_name = "NAME|FILE", required_unless_present = "all")]
    scenarios: Vec<String>,
    /// Runs every scenario that the program holds.
    #[arg(long, conflicts_with = "scenarios")]
    all: bool,
    /// Prints one JSON object a scenario, a line each, in place of tables.
    #[arg(long)]
    json: bool,
    /// Writes lab.html, one page that needs nothing else, into this folder.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Cells that run at the same time. Left out: one for each processor.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Runs only cells with these labels: AXIS=LABEL, several with commas.
    #[arg(long, value_name = "FILTER")]
    cells: Option<CellSelection>,
}

/// Carries out one `lab` command.
///
/// # Errors
/// A scenario is not known or wrong, a bar is missed, or a file cannot be read or written.
pub fn run(command: &Lab, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        Lab::List => list::list(out),
        Lab::Kinds => list::kinds(out),
        Lab::Run(command) => run::run(command, out),
        Lab::Compare(command) => compare::run(command, out),
        Lab::Up(command) => emulated::up(command, out),
        Lab::Exec(command) => emulated::exec(command),
        Lab::Set(command) => emulated::set(command, out),
        Lab::Status(command) => emulated::status(command, out),
        Lab::Down(command) => emulated::down(command, out),
    }
}
