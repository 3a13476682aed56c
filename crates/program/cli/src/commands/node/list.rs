//! `skyhaul node list` and `skyhaul node show`.

use crate::commands::book::{KnownNode, KnownNodes};
use serde::Serialize;
use skyhaul_exit::Failure;
use std::io::Write;

/// The arguments of `skyhaul node list`.
#[derive(clap::Args)]
pub struct ListArguments {
    /// Prints the nodes as an array of JSON objects.
    #[arg(long)]
    json: bool,
}

/// The arguments of `skyhaul node show`.
#[derive(clap::Args)]
pub struct ShowArguments {
    /// The node's name.
    name: String,
    /// Prints the node as a JSON object.
    #[arg(long)]
    json: bool,
}

/// A node, for programs.
#[derive(Serialize)]
struct NodeRow<'a> {
    name: &'a str,
    addresses: Vec<String>,
    fingerprints: Vec<String>,
    file: String,
}

impl<'a> NodeRow<'a> {
    fn of(known: &'a KnownNode) -> Self {
        Self {
            name: known.peer.name.as_str(),
            addresses: known.peer.addresses.iter().map(ToString::to_string).collect(),
            fingerprints: known.peer.fingerprints.iter().map(|key| key.to_string()).collect(),
            file: known.file.display().to_string(),
        }
    }
}

/// Lists all nodes.
///
/// # Errors
/// The address book has an error.
pub fn list(arguments: &ListArguments, out: &mut dyn Write) -> Result<(), Failure> {
    let nodes = KnownNodes::load()?;
    let rows: Vec<NodeRow<'_>> = nodes.iter().map(NodeRow::of).collect();
    if arguments.json {
        return json(&rows, out);
    }
    if rows.is_empty() {
        let help = "`skyhaul pair` and `skyhaul node add` add a node";
        return Ok(writeln!(out, "the address book is empty; {help}")?);
    }
    let width = |of: fn(&NodeRow<'_>) -> usize| rows.iter().map(of).max().unwrap_or(0);
    let names = width(|row| row.name.len());
    let places = width(|row| row.addresses.join(" ").len()).max(1);
    for row in &rows {
        let addresses = match row.addresses.join(" ") {
            none if none.is_empty() => "-".to_owned(),
            some => some,
        };
        let keys = row.fingerprints.join(" ");
        writeln!(out, "{:names$}  {addresses:places$}  {keys}", row.name)?;
    }
    Ok(())
}

/// Shows one node.
///
/// # Errors
/// The address book has an error, or does not have the node.
pub fn show(arguments: &ShowArguments, out: &mut dyn Write) -> Result<(), Failure> {
    let nodes = KnownNodes::load()?;
    let known = nodes.named(&arguments.name)?;
    if arguments.json {
        return json(&NodeRow::of(known), out);
    }
    write_one(known, out)
}

/// Shows a node in words.
///
/// # Errors
/// The output is gone.
pub fn write_one(known: &KnownNode, out: &mut dyn Write) -> Result<(), Failure> {
    let row = NodeRow::of(known);
    writeln!(out, "{}", row.name)?;
    for address in &row.addresses {
        writeln!(out, "  address      {address}")?;
    }
    for key in &row.fingerprints {
        writeln!(out, "  fingerprint  {key}")?;
    }
    Ok(writeln!(out, "  file         {}", row.file)?)
}

fn json(rows: &impl Serialize, out: &mut dyn Write) -> Result<(), Failure> {
    let line = serde_json::to_string(rows).expect("a node is plain data");
    Ok(writeln!(out, "{line}")?)
}
