//! `skyhaul catalogue`: what a running node has.

use super::node_socket::NodeArguments;
use serde_json::Value;
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::status::ask_items;
use std::io::Write;

/// The catalogue of a running node.
#[derive(clap::Subcommand)]
pub enum CatalogueCommand {
    /// Lists items, newest first.
    #[command(after_help = "\
        A filter is CQL2 text over id, collection, kind (session, time, expedited), mission, \
        station, product, apid, version, start_datetime, end_datetime, published, size, missing \
        and state.

Example:
  skyhaul catalogue search --config centre.toml
  skyhaul catalogue search --config centre.toml --filter \"mission = 'noaa-21' AND missing > 0\"
  skyhaul catalogue search --config centre.toml --filter \"published > '2026-11-23'\" --json")]
    Search(Search),
    /// Shows the items of a name, in all versions, as STAC items.
    #[command(after_help = "\
Example:
  skyhaul catalogue show noaa-21-imager-polar-7 --config centre.toml")]
    Show {
        /// The name, as `search` lists it.
        name: String,
        #[command(flatten)]
        node: NodeArguments,
    },
    /// Writes all items that a filter takes as STAC items, one a line.
    ///
    /// `pypgstac load items` takes the lines.
    #[command(after_help = "\
Example:
  skyhaul catalogue export --config centre.toml > items.ndjson
  skyhaul catalogue export --config centre.toml --filter \"kind = 'time'\" > items.ndjson")]
    Export {
        #[command(flatten)]
        node: NodeArguments,
        /// Only items that this CQL2 text takes.
        #[arg(long, value_name = "CQL2")]
        filter: Option<String>,
    },
}

/// The arguments of `skyhaul catalogue search`.
#[derive(clap::Args)]
pub struct Search {
    #[command(flatten)]
    node: NodeArguments,
    /// Only items that this CQL2 text takes.
    #[arg(long, value_name = "CQL2")]
    filter: Option<String>,
    /// Behind this place: the next page.
    #[arg(long, value_name = "PLACE")]
    after: Option<String>,
    /// At most so many, up to 10,000.
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
    /// Prints them as one line of JSON, as STAC items.
    #[arg(long)]
    json: bool,
}

/// Items of one request of an export.
const EXPORT_PAGE: usize = 1_000;

/// Asks, and prints the answer.
///
/// # Errors
/// No node answers, or the filter is none.
pub fn run(command: &CatalogueCommand, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        CatalogueCommand::Search(search) => write_search(search, out),
        CatalogueCommand::Show { name, node } => {
            let filter = format!("id = '{}'", name.replace('\'', "''"));
            let page = ask_items(&node.socket()?, Some(filter), None, EXPORT_PAGE)?;
            if page.items.is_empty() {
                let help = "take a name from `skyhaul catalogue search`";
                let what = format!("there is no item `{name}`");
                return Err(Failure::new(Exit::Usage, &what, help));
            }
            for item in &page.items {
                let text = serde_json::to_string_pretty(item).expect("it has text keys only");
                writeln!(out, "{text}")?;
            }
            Ok(())
        }
        CatalogueCommand::Export { node, filter } => {
            let (socket, mut after) = (node.socket()?, None);
            loop {
                let page = ask_items(&socket, filter.clone(), after, EXPORT_PAGE)?;
                for item in &page.items {
                    writeln!(out, "{item}")?;
                }
                if page.next.is_none() {
                    return Ok(());
                }
                after = page.next;
            }
        }
    }
}

fn write_search(search: &Search, out: &mut dyn Write) -> Result<(), Failure> {
    let socket = search.node.socket()?;
    let page = ask_items(&socket, search.filter.clone(), search.after.clone(), search.limit)?;
    if search.json {
        let line = serde_json::to_string(&page).expect("it has text keys only");
        return Ok(writeln!(out, "{line}")?);
    }
    if page.items.is_empty() {
        return Ok(writeln!(out, "no items")?);
    }
    writeln!(
        out,
        "{:<27}  {:<10} {:>12} {:>9} {:>8}  name and version",
        "published", "kind", "bytes", "packets", "missing"
    )?;
    for item in &page.items {
        let properties = &item["properties"];
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let sizes = item["assets"].as_object().into_iter().flatten();
        let bytes: u64 = sizes.filter_map(|(_, asset)| asset["file:size"].as_u64()).sum();
        writeln!(
            out,
            "{:<27}  {:<10} {bytes:>12} {:>9} {:>8}  {}",
            text(&properties["created"]),
            text(&properties["skyhaul:kind"]),
            properties["skyhaul:packets"],
            properties["skyhaul:missing"],
            text(&item["id"]),
        )?;
    }
    if let Some(next) = page.next {
        writeln!(out, "more with --after {next}")?;
    }
    Ok(())
}
