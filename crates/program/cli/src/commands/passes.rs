//! `skyhaul passes`: planned passes of a running node, and what has become of them.

use super::node_socket::NodeArguments;
use skyhaul_exit::Failure;
use skyhaul_node::status::{PassStatus, ask};
use skyhaul_passes::PassState;
use std::io::{self, Write};

/// The arguments of `skyhaul passes`.
#[derive(clap::Args)]
#[command(after_help = "\
    Passes of a day behind and ahead. The plans are the [[plan]] tables of the node.

Example:
  skyhaul passes --config station.toml
  skyhaul passes --config station.toml --json")]
pub struct Passes {
    #[command(flatten)]
    node: NodeArguments,
    /// Prints each pass as a line of JSON.
    #[arg(long)]
    json: bool,
}

/// Shows the passes.
///
/// # Errors
/// No node answers.
pub fn run(command: &Passes, out: &mut dyn Write) -> Result<(), Failure> {
    let passes = ask(&command.node.socket()?)?.passes;
    if command.json {
        for pass in &passes {
            let line = serde_json::to_string(pass).expect("a pass has text keys only");
            writeln!(out, "{line}")?;
        }
        return Ok(());
    }
    if passes.is_empty() {
        writeln!(out, "no passes are planned within a day")?;
    }
    passes.iter().try_for_each(|pass| writeln!(out, "{}", line(pass)))?;
    Ok(())
}

fn line(pass: &PassStatus) -> String {
    let PassStatus { name, mission, station, channel, .. } = pass;
    let PassStatus { start, end, peak, state, locked, contacts, .. } = pass;
    let what = [name, mission, station, channel].into_iter().flatten();
    let what = what.map(String::as_str).collect::<Vec<_>>().join(", ");
    let peak = peak.map_or_else(String::new, |degrees| format!(", up to {degrees}°"));
    let came = match contacts.len() {
        0 => String::new(),
        1 => format!(": {}", contacts[0]),
        count => format!(": {} and {} more", contacts[0], count - 1),
    };
    let since = locked.as_ref().map_or_else(String::new, |at| format!(", first frame {at}"));
    format!("{start} to {end}  {:<9}  {what}{peak}{came}{since}", word(*state))
}

/// Passes that go on, and the next one, as part of a status.
pub fn write_next(passes: &[PassStatus], out: &mut dyn Write) -> io::Result<()> {
    let goes_on = [PassState::Due, PassState::NoLock, PassState::UnderWay];
    for pass in passes.iter().filter(|pass| goes_on.contains(&pass.state)) {
        writeln!(out, "\n  pass now    {}", line(pass))?;
    }
    match passes.iter().find(|pass| pass.state == PassState::Ahead) {
        Some(pass) => writeln!(out, "\n  next pass   {}", line(pass)),
        None => Ok(()),
    }
}

const fn word(state: PassState) -> &'static str {
    match state {
        PassState::Ahead => "ahead",
        PassState::Due => "due",
        PassState::NoLock => "no lock",
        PassState::UnderWay => "under way",
        PassState::Came => "came",
        PassState::Missed => "missed",
        PassState::Unknown => "unknown",
    }
}
