//! `skyhaul archive`: what stays and what leaves the archive of a node, and why.

mod copies;
mod shelf;
mod verify;
mod volumes;

use super::node_socket::NodeArguments;
use skyhaul_exit::Failure;
use skyhaul_node::status::{
    ArchiveEviction, ArchiveItem, ArchivePage, ArchiveRequest, StatusRequest, ask_archive, order,
};
use skyhaul_units::ByteCount;
use std::io::{self, Write};
use std::path::PathBuf;

/// The archive of a running node.
#[derive(clap::Subcommand)]
pub enum ArchiveCommand {
    /// Removes the products and contacts that are due, as [[retention]] says.
    ///
    /// The node does so by itself, within a day's share; this command removes all that is due,
    /// and says that the clock is right.
    #[command(after_help = "\
Why something is due: age, size. Why it stays all the same: held (by an
operator), pending (a delivery needs it), last-copy, absent (its file is not
in the folder), needed (products of several contacts need the contact), share
(more than a day's share would leave).

Example:
  skyhaul archive evict --dry-run --config centre.toml
  skyhaul archive evict --config centre.toml")]
    Evict {
        #[command(flatten)]
        node: NodeArguments,
        /// Lists what is due with the reasons, and removes nothing.
        #[arg(long)]
        dry_run: bool,
        /// Prints it as one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Lists products with what holds them and how many copies are known.
    #[command(after_help = "\
Example:
  skyhaul archive list --config centre.toml
  skyhaul archive list --config centre.toml --filter \"state = 'removed'\" --json
  skyhaul archive list --config centre.toml --held")]
    List(List),
    /// Holds products: they stay, whatever [[retention]] says.
    #[command(after_help = "\
Example:
  skyhaul archive hold aqua-imager-polar-7 --why \"fire study\" --config centre.toml")]
    Hold {
        /// Their names: all versions, or with a version, such as NAME-v2.
        #[arg(required = true)]
        names: Vec<String>,
        /// Why, for those who find them later.
        #[arg(long, value_name = "TEXT")]
        why: String,
        #[command(flatten)]
        node: NodeArguments,
    },
    /// Reads products, and compares them with the digests in the catalogue.
    #[command(after_help = "\
Example:
  skyhaul archive verify --config centre.toml
  skyhaul archive verify --config centre.toml --copies --rate \"100 Mbit/s\"
  skyhaul archive verify --volume /media/a/centre-20261126T180000Z-001")]
    Verify(VerifyArguments),
    /// Brings files back that are damaged or lacking, from a copy.
    #[command(after_help = "\
A product that was removed is held after that, so that it does not leave again
at once.

Example:
  skyhaul archive restore aqua-imager-polar-7 --config centre.toml
  skyhaul archive restore NAME --from /media/a/VOLUME/data --config centre.toml")]
    Restore(verify::Restore),
    /// Writes products to media, in volumes of a bounded size (BagIt).
    ///
    /// Each volume is read back, and recorded in the catalogue.
    #[command(after_help = "\
Example:
  skyhaul archive write --to /media/a --volume-size \"100 GB\" --config centre.toml")]
    Write(volumes::WriteVolumes),
    /// Releases products that are held.
    #[command(after_help = "\
Example:
  skyhaul archive release aqua-imager-polar-7 --config centre.toml")]
    Release {
        /// Their names: all versions, or with a version, such as NAME-v2.
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        node: NodeArguments,
    },
}

/// The arguments of `skyhaul archive verify`.
#[derive(clap::Args)]
pub struct VerifyArguments {
    /// The folder of a volume: it is verified instead of the node's products.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["config", "filter", "copies", "json"])]
    volume: Option<PathBuf>,
    #[command(flatten)]
    products: verify::Verify,
}

/// The arguments of `skyhaul archive list`.
#[derive(clap::Args)]
pub struct List {
    #[command(flatten)]
    node: NodeArguments,
    /// Only products that this CQL2 text takes.
    #[arg(long, value_name = "CQL2")]
    filter: Option<String>,
    /// Only those that an operator holds.
    #[arg(long)]
    held: bool,
    /// Behind this place: the next page.
    #[arg(long, value_name = "PLACE")]
    after: Option<String>,
    /// At most so many, up to 10,000.
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
    /// Prints them as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Asks or orders, and prints the answer.
///
/// # Errors
/// No node answers, or it has no such product.
pub fn run(command: &ArchiveCommand, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        ArchiveCommand::Evict { node, dry_run: true, json } => {
            let found: ArchiveEviction = ask_archive(&node.socket()?, ArchiveRequest::Due)?;
            if *json {
                return write_json(&found, out);
            }
            Ok(write_due(&found, out)?)
        }
        ArchiveCommand::Evict { node, dry_run: false, json } => {
            let found = evict(node)?;
            if *json {
                return write_json(&found, out);
            }
            let bytes = ByteCount::new(found.bytes);
            writeln!(out, "{} left, {bytes}", found.leaves)?;
            Ok(write_kept(&found, out)?)
        }
        ArchiveCommand::List(list) => write_list(list, out),
        ArchiveCommand::Hold { names, why, node } => hold(node, names, Some(why), out),
        ArchiveCommand::Verify(VerifyArguments { volume: Some(folder), .. }) => {
            volumes::verify(folder, out)
        }
        ArchiveCommand::Verify(arguments) => verify::verify(&arguments.products, out),
        ArchiveCommand::Restore(arguments) => verify::restore(arguments, out),
        ArchiveCommand::Write(arguments) => volumes::write(arguments, out),
        ArchiveCommand::Release { names, node } => hold(node, names, None, out),
    }
}

/// Has all leave that is due, a part at a time.
fn evict(node: &NodeArguments) -> Result<ArchiveEviction, Failure> {
    let socket = node.socket()?;
    let mut all = ArchiveEviction::default();
    loop {
        let found: ArchiveEviction = ask_archive(&socket, ArchiveRequest::Evict)?;
        all.leaves += found.leaves;
        all.bytes += found.bytes;
        // Each part meets what stays anew.
        all.kept = found.kept;
        // Where nothing leaves, asking again changes nothing.
        if !found.has_more || found.leaves == 0 {
            return Ok(all);
        }
    }
}

fn hold(
    node: &NodeArguments,
    names: &[String],
    why: Option<&String>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let socket = node.socket()?;
    for name in names {
        let request = ArchiveRequest::Hold { name: name.clone(), why: why.cloned() };
        writeln!(out, "{}", order(&socket, &StatusRequest::Archive { order: request })?)?;
    }
    Ok(())
}

fn write_json(value: &impl serde::Serialize, out: &mut dyn Write) -> Result<(), Failure> {
    let line = serde_json::to_string(value).expect("it has text keys only");
    Ok(writeln!(out, "{line}")?)
}

fn write_due(found: &ArchiveEviction, out: &mut dyn Write) -> io::Result<()> {
    if let Some(stopped) = &found.stopped {
        writeln!(out, "nothing leaves by itself: {stopped}")?;
    }
    if found.due.is_empty() {
        return writeln!(out, "nothing is due");
    }
    writeln!(out, "{:<9} {:>14}  {:<10} name: reason", "what", "bytes", "kind")?;
    for item in &found.due {
        let what = item.stays.as_ref().map_or("leaves", |stays| stays.name.as_str());
        let table = match item.rule {
            0 => "[store]".to_owned(),
            rule => format!("[[retention]] {rule}"),
        };
        write!(out, "{what:<9} {:>14}  {:<10} ", item.bytes, item.kind)?;
        write!(out, "{}: {table}, {}", item.name, item.reason)?;
        match &item.stays {
            Some(stays) => writeln!(out, "; it stays: {}", stays.reason)?,
            None => writeln!(out)?,
        }
    }
    let bytes = ByteCount::new(found.bytes);
    let more = if found.has_more { ", and more behind these" } else { "" };
    writeln!(out, "{} would leave, {bytes}{more}", found.leaves)?;
    write_kept(found, out)
}

fn write_kept(found: &ArchiveEviction, out: &mut dyn Write) -> io::Result<()> {
    for (name, count) in &found.kept {
        writeln!(out, "{count} stay although they are due: {name}")?;
    }
    Ok(())
}

fn write_list(list: &List, out: &mut dyn Write) -> Result<(), Failure> {
    let request = ArchiveRequest::List {
        filter: list.filter.clone(),
        held: list.held,
        after: list.after.clone(),
        limit: list.limit,
    };
    let page: ArchivePage = ask_archive(&list.node.socket()?, request)?;
    if list.json {
        return write_json(&page, out);
    }
    if page.items.is_empty() {
        return Ok(writeln!(out, "no products")?);
    }
    writeln!(
        out,
        "{:<27}  {:<10} {:<9} {:>14} {:>6}  name and version: what holds it",
        "published", "kind", "state", "bytes", "copies"
    )?;
    for item in &page.items {
        writeln!(
            out,
            "{:<27}  {:<10} {:<9} {:>14} {:>6}  {}: {}",
            item.published,
            item.kind,
            item.state,
            item.bytes,
            item.copies,
            item.name,
            holds(item)
        )?;
    }
    if let Some(next) = page.next {
        writeln!(out, "more with --after {next}")?;
    }
    Ok(())
}

/// What holds a product.
fn holds(item: &ArchiveItem) -> String {
    let held = item.held.as_ref().map(|why| format!("held, {why}"));
    let volumes = item.volumes.iter().map(|name| format!("on volume {name}"));
    let parts: Vec<String> = held.into_iter().chain(item.pending.clone()).chain(volumes).collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join("; ") }
}
