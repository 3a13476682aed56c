//! `skyhaul one-way plan`: what repair a line needs, before anything is sent.

use super::line::{Expected, LineArguments};
use crate::failure::{Exit, Failure};
use skyhaul_transport::oneway::Design;
use std::io::Write;

/// The arguments of `skyhaul one-way plan`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  skyhaul one-way plan --rate 20mbit --loss 5% --burst 8 --residual 1ppm")]
pub struct PlanCommand {
    #[command(flatten)]
    line: LineArguments,
    /// The line carries IPv6.
    #[arg(long)]
    ipv6: bool,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Prints the design.
///
/// # Errors
/// There is none that reaches what is asked for.
pub fn run(command: &PlanCommand, out: &mut dyn Write) -> Result<(), Failure> {
    command.line.block()?;
    let design = Design::new(&command.line.assumptions(command.ipv6))
        .map_err(|error| Failure::from_sentence(Exit::Usage, &error.to_string()))?;
    let expected = Expected::of(&design);
    if command.json {
        let line = serde_json::to_string(&expected).expect("figures are plain data");
        return Ok(writeln!(out, "{line}")?);
    }
    Ok(writeln!(out, "{}", expected.text())?)
}
