//! The one program: capture, centre, relay and the tools around them.
//!
//! Results go to standard output, everything else to standard error; the exit code says who must act
//! ([`failure::Exit`]).

mod commands;
mod failure;

use clap::Parser;
use failure::{Exit, Failure};
use std::io::Write;
use std::process::ExitCode;

/// Moves science data from where it is captured to where it is used, on time, and proves it.
#[derive(Parser)]
#[command(name = "skyhaul", version, after_help = Exit::TABLE, max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut out = std::io::stdout().lock();
    let outcome = commands::run(arguments.command, &mut out).and_then(|()| Ok(out.flush()?));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure),
    }
}

/// Prints the one sentence about a failure; a reader that closed the pipe has what it wanted.
fn report(failure: &Failure) -> ExitCode {
    if failure.is_closed_pipe() {
        return ExitCode::SUCCESS;
    }
    // Standard error may be closed too; the exit code still tells.
    let _ = writeln!(std::io::stderr(), "{failure}");
    ExitCode::from(failure.exit() as u8)
}
