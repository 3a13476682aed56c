//! `skyhaul one-way plan`: computes the FEC repair that a line needs.

use super::line::{Expected, LineArguments};
use crate::commands::ip::IpVersion;
use skyhaul_exit::{Exit, Failure};
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
/// No design reaches the requested loss.
pub fn run(command: &PlanCommand, out: &mut dyn Write) -> Result<(), Failure> {
    command.line.block()?;
    let ip = if command.ipv6 { IpVersion::V6 } else { IpVersion::V4 };
    let design = Design::new(&command.line.assumptions(ip))
        .map_err(|error| Failure::from_sentence(Exit::Usage, &error.to_string()))?;
    let expected = Expected::of(&design);
    if command.json {
        let line = serde_json::to_string(&expected).expect("figures are plain data");
        return Ok(writeln!(out, "{line}")?);
    }
    Ok(writeln!(out, "{}", expected.text())?)
}
