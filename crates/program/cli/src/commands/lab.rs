//! `skyhaul lab`: experiments in virtual time with acceptance limits (bars); emulated links for any
//! program.

mod emulated;
mod list;
mod progress;
mod run;
mod source;

use crate::commands::signals::stop_flag;
use skyhaul_compare::Compare;
use skyhaul_exit::Failure;
use skyhaul_lab::scenario::CellSelection;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Runs experiments over emulated lines in virtual time, and emulates links for any program.
#[derive(clap::Subcommand)]
pub enum Lab {
    /// Lists the built-in scenarios: name, title, number of cells, approximate duration.
    #[command(after_help = "Example:\n  skyhaul lab list")]
    List,
    /// Lists the kinds of experiment that a scenario can have, and their figures.
    #[command(after_help = "Example:\n  skyhaul lab kinds")]
    Kinds,
    /// Runs scenarios, and checks their figures against their bars.
    #[command(after_help = "\
            A scenario is one of `skyhaul lab list`, or a TOML file of your own \
            (docs/how-to/lab.md). The exit code is 0 if every bar is reached, and 1 if one is \
            missed.

Example:
  skyhaul lab run line --report out
  skyhaul lab run line --cells loss=1%,lossy=data --json
  skyhaul lab run --all")]
    Run(RunCommand),
    /// Compares transfer tools on one emulated line with published results. Needs root.
    #[command(after_help = "\
            Without an experiment, lists them. The exit code is 1 if a bar is missed.

Example:
  skyhaul lab compare
  skyhaul lab compare dsn-93 --report out
  skyhaul lab compare trollsat --tools adaptive,tcp-bbr --runs 3 --json")]
    Compare(Compare),
    /// Makes two network namespaces, a and b, joined by emulated links. Needs root.
    #[command(after_help = "\
        The process of the links runs in the background until `skyhaul lab down`.

Example:
  skyhaul lab up line.toml
  skyhaul lab exec b -- iperf3 -s -1 -D
  skyhaul lab exec a -- iperf3 -c 198.18.0.2")]
    Up(emulated::Up),
    /// Runs a program in one namespace of a lab, and returns its exit code.
    #[command(after_help = "Example:\n  skyhaul lab exec a -- ping -c 3 198.18.0.2")]
    Exec(emulated::Exec),
    /// Changes running links.
    #[command(after_help = "Example:\n  skyhaul lab set rate=50mbit loss=5% --direction up")]
    Set(emulated::Set),
    /// Shows the links of a lab, and the counts of their packets.
    #[command(after_help = "Example:\n  skyhaul lab status --json")]
    Status(emulated::Status),
    /// Removes a lab, even if its process has ended.
    #[command(after_help = "Example:\n  skyhaul lab down --kill")]
    Down(emulated::Down),
}

/// The arguments of `skyhaul lab run`.
#[derive(clap::Args)]
pub struct RunCommand {
    /// Names of scenarios, or paths of their files.
    #[arg(value_name = "NAME|FILE", required_unless_present = "all")]
    scenarios: Vec<String>,
    /// Runs every built-in scenario.
    #[arg(long, conflicts_with = "scenarios")]
    all: bool,
    /// Prints one line of JSON for each scenario, instead of tables.
    #[arg(long)]
    json: bool,
    /// Writes lab.html, a self-contained page, into this folder.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// The number of cells that run at the same time. Default: one for each processor.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Runs only cells with these labels: AXIS=LABEL; separate several by commas.
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
        Lab::Compare(command) => skyhaul_compare::run(command, &*stop_flag()?, out),
        Lab::Up(command) => emulated::up(command, out),
        Lab::Exec(command) => emulated::exec(command),
        Lab::Set(command) => emulated::set(command, out),
        Lab::Status(command) => emulated::status(command, out),
        Lab::Down(command) => emulated::down(command, out),
    }
}
