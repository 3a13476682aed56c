//! The program `skyhaul`: station, centre, and the tools around them.
//!
//! Results go to standard output, everything else to standard error. The exit code shows who must
//! act ([`Exit`]).

mod commands;
mod help;

use clap::{CommandFactory, FromArgMatches, Parser};
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::log;
use std::io::Write;
use std::process::ExitCode;

/// Moves science data from a ground station to its users, on time and verified.
#[derive(Parser)]
#[command(name = "skyhaul", version, after_help = Exit::TABLE, max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    let program = help::grouped(Arguments::command());
    let matches = program.clone().get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // Without a thread for the output, the command writes itself.
    let _ = arguments.command.is_service().then(log::start);
    let code = match outcome(arguments.command, program) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure),
    };
    log::finish();
    code
}

fn outcome(command: commands::Command, program: clap::Command) -> Result<(), Failure> {
    let mut out: Box<dyn Write> = match command.is_service() {
        true => Box::new(log::output()),
        false => Box::new(std::io::stdout().lock()),
    };
    commands::run(command, program, &mut out)?;
    Ok(out.flush()?)
}

/// Prints the one sentence about a failure; a reader that closed the pipe has what it wanted.
fn report(failure: &Failure) -> ExitCode {
    if failure.is_closed_pipe() {
        return ExitCode::SUCCESS;
    }
    // Standard error may be closed too; the exit code remains.
    log::say(&failure.to_string());
    ExitCode::from(failure.exit() as u8)
}
