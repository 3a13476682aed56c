//! `skyhaul config diff`: the configuration in force at a node, against its file.

use crate::commands::node_socket::NodeArguments;
use skyhaul_exit::Failure;
use skyhaul_node::status::{ConfigDifference, ConfigReport, ask_config};
use skyhaul_units::printable;
use std::io::{self, Write};

/// The arguments of `skyhaul config diff`.
#[derive(clap::Args)]
#[command(after_help = "\
        A node reads its file at the start and on SIGHUP. The keys that differ are named with the \
        value in force and that of the file; secrets are not shown. Where the file has an error, \
        name the node by its socket.

Example:
  skyhaul config diff --config /etc/skyhaul/node.toml
  skyhaul config diff --socket /var/lib/skyhaul/node/status.sock --json")]
pub struct DiffCommand {
    #[command(flatten)]
    node: NodeArguments,
    /// Prints the differences as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Asks the node, and shows what differs.
///
/// # Errors
/// No node answers, or the reader is gone.
pub fn run(command: &DiffCommand, out: &mut dyn Write) -> Result<(), Failure> {
    let report = ask_config(&command.node.socket()?)?;
    if command.json {
        let line = serde_json::to_string(&report).expect("a report has text keys only");
        return Ok(writeln!(out, "{line}")?);
    }
    Ok(write_report(&report, out)?)
}

fn write_report(report: &ConfigReport, out: &mut dyn Write) -> io::Result<()> {
    let ConfigReport { file, read, waits, error, differences, left_out } = report;
    writeln!(out, "{} was read at {read}", printable(file, 500))?;
    for what in waits {
        writeln!(out, "  {} waits for a restart", printable(what, 200))?;
    }
    if let Some(error) = error {
        writeln!(
            out,
            "  the node would refuse the file as it is now: {}",
            printable(error, 1_000)
        )?;
    }
    if differences.is_empty() && error.is_none() {
        return writeln!(out, "  the file is the same now");
    }
    for ConfigDifference { key, in_force, on_disk } in differences {
        let shown = |value: &Option<String>| match value {
            Some(value) => printable(value, 300),
            None => "not set".to_owned(),
        };
        let key = printable(key, 200);
        writeln!(out, "  {key}: in force {}, in the file {}", shown(in_force), shown(on_disk))?;
    }
    match left_out {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}
