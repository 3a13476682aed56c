//! `skyhaul deliveries`: which consumer has which product since when, by whose proof.

use super::node_socket::NodeArguments;
use skyhaul_dispatch::{DeliveryFailure, DeliveryState};
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::status::{
    DeliveryAction, DeliveryFilter, DeliveryReport, DeliveryStatus, StatusRequest, ask_deliveries,
    ask_delivery, order,
};
use skyhaul_remote::PublishWay;
use std::io::{self, Write};
use std::path::PathBuf;

/// Deliveries of a running node.
#[derive(clap::Subcommand)]
pub enum DeliveriesCommand {
    /// Lists deliveries, newest first.
    #[command(after_help = "\
        States: waiting, held, sending, placed (files there), recorded (delivery record there, \
        notice awaited), accepted; refused, unanswered, failed, replaced, cancelled. Proofs: \
        written, size, digest, read-back, receipt, notice.

Example:
  skyhaul deliveries list --config centre.toml
  skyhaul deliveries list --config centre.toml --consumer lance-a --state refused --json")]
    List(List),
    /// Shows one delivery, its product and what happened to it.
    #[command(after_help = "Example:\n  skyhaul deliveries show 17 --config centre.toml")]
    Show {
        /// Its number in the list.
        id: u64,
        #[command(flatten)]
        node: NodeArguments,
        /// Prints it as one line of JSON.
        #[arg(long)]
        json: bool,
    },
    /// Connects to the place of a consumer, and finds out what it can do.
    ///
    /// It writes small files there and removes them again. No node need run.
    #[command(after_help = "Example:\n  skyhaul deliveries test lance-a --config centre.toml")]
    Test(Test),
    /// Sends deliveries again from the beginning, under new numbers.
    #[command(after_help = "Example:\n  skyhaul deliveries again 17 18 --config centre.toml")]
    Again(OrderArguments),
    /// Holds deliveries: no further attempt begins.
    #[command(after_help = "Example:\n  skyhaul deliveries hold 17 --config centre.toml")]
    Hold(OrderArguments),
    /// Lets held deliveries go on.
    #[command(after_help = "Example:\n  skyhaul deliveries release 17 --config centre.toml")]
    Release(OrderArguments),
    /// Gives deliveries up.
    #[command(after_help = "Example:\n  skyhaul deliveries cancel 17 --config centre.toml")]
    Cancel(OrderArguments),
}

/// The arguments of `skyhaul deliveries list`.
#[derive(clap::Args)]
pub struct List {
    #[command(flatten)]
    node: NodeArguments,
    /// Only to this consumer.
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,
    /// Only in this state.
    #[arg(long, value_name = "STATE")]
    state: Option<DeliveryState>,
    /// Only of the item of this name, as `skyhaul catalogue search` shows it, in any version.
    #[arg(long, value_name = "NAME")]
    item: Option<String>,
    /// Only deliveries older than this one: the next page.
    #[arg(long, value_name = "NUMBER")]
    before: Option<u64>,
    /// At most so many, up to 10,000.
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
    /// Prints them as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The arguments of `skyhaul deliveries test`.
#[derive(clap::Args)]
pub struct Test {
    /// The consumer: the name of a `[[delivery]]`.
    consumer: String,
    /// The node's configuration.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Prints it as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The arguments of an order for deliveries.
#[derive(clap::Args)]
pub struct OrderArguments {
    /// Their numbers in the list.
    #[arg(required = true)]
    ids: Vec<u64>,
    #[command(flatten)]
    node: NodeArguments,
}

/// Asks or orders, and prints the answer.
///
/// # Errors
/// No node answers, or it has no such delivery.
pub fn run(command: &DeliveriesCommand, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        DeliveriesCommand::List(list) => write_list(list, out),
        DeliveriesCommand::Show { id, node, json } => {
            let report = ask_delivery(&node.socket()?, *id)?;
            if *json {
                return write_json(&report, out);
            }
            Ok(write_report(&report, out)?)
        }
        DeliveriesCommand::Test(command) => test(command, out),
        DeliveriesCommand::Again(order) => give(order, DeliveryAction::Again, out),
        DeliveriesCommand::Hold(order) => give(order, DeliveryAction::Hold, out),
        DeliveriesCommand::Release(order) => give(order, DeliveryAction::Release, out),
        DeliveriesCommand::Cancel(order) => give(order, DeliveryAction::Cancel, out),
    }
}

/// Tries a consumer's place from this process, as the node does.
fn test(command: &Test, out: &mut dyn Write) -> Result<(), Failure> {
    let Test { consumer, config: file, json } = command;
    let config = skyhaul_config::load(file)?;
    let entries = config.centre.iter().flat_map(|centre| &centre.delivery);
    let Some(entry) = entries.into_iter().find(|entry| entry.name.as_str() == *consumer) else {
        let what = format!("there is no [[delivery]] `{consumer}`");
        let failure = Failure::new(Exit::Usage, &what, "name one that the file has");
        return Err(failure.at(&file.display().to_string()));
    };
    let failed = |failure: DeliveryFailure| {
        let help = "correct what it names, then try again; a node tries again by itself";
        Failure::new(Exit::Environment, &failure.sentence, help)
    };
    let mut sink = skyhaul_remote::open(&entry.to.0, &entry.access(), None).map_err(failed)?;
    let found = sink.abilities().map_err(failed)?;
    if *json {
        return write_json(&found, out);
    }
    let publish = match found.publish {
        PublishWay::Rename => "each file is written under another name, then renamed",
        PublishWay::Whole => "each file is visible only when it is whole",
        PublishWay::Direct => {
            "each file is visible while it grows; the delivery record says that it is whole"
        }
    };
    let yes = |is_so: bool| if is_so { "yes" } else { "no" };
    writeln!(out, "{consumer}: {}", entry.to.0)?;
    writeln!(out, "  server               {}", found.server)?;
    writeln!(out, "  publishing           {publish}")?;
    writeln!(out, "  goes on after breaks {}", yes(found.resumes))?;
    writeln!(out, "  says what is on disk {}", yes(found.says_durable))?;
    writeln!(out, "  refuses to overwrite {}", yes(found.refuses_existing))?;
    Ok(())
}

fn give(
    orders: &OrderArguments,
    action: DeliveryAction,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let socket = orders.node.socket()?;
    for id in &orders.ids {
        let said = order(&socket, &StatusRequest::OrderDelivery { id: *id, action })?;
        writeln!(out, "{said}")?;
    }
    Ok(())
}

fn write_json(value: &impl serde::Serialize, out: &mut dyn Write) -> Result<(), Failure> {
    let line = serde_json::to_string(value).expect("it has text keys only");
    Ok(writeln!(out, "{line}")?)
}

fn write_list(list: &List, out: &mut dyn Write) -> Result<(), Failure> {
    let filter = DeliveryFilter {
        consumer: list.consumer.clone(),
        state: list.state,
        item: list.item.clone(),
        before: list.before,
        limit: list.limit,
    };
    let page = ask_deliveries(&list.node.socket()?, filter)?;
    if list.json {
        return write_json(&page, out);
    }
    if page.deliveries.is_empty() {
        return Ok(writeln!(out, "no deliveries")?);
    }
    writeln!(
        out,
        "{:>8}  {:<16} {:<18} {:>7}  {:<10} {:<27} {:<9} reason",
        "number", "consumer", "product", "version", "state", "since", "proof"
    )?;
    for delivery in &page.deliveries {
        write_line(delivery, out)?;
    }
    if let Some(next) = page.next {
        writeln!(out, "more with --before {next}")?;
    }
    Ok(())
}

fn write_line(delivery: &DeliveryStatus, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:>8}  {:<16} {:<18} {:>7}  {:<10} {:<27} {:<9} {}",
        delivery.id,
        delivery.consumer,
        delivery.product,
        delivery.version,
        delivery.state.name(),
        delivery.since,
        delivery.proof.map_or("-", skyhaul_dispatch::Proof::name),
        delivery.reason.as_deref().unwrap_or("-"),
    )
}

fn write_report(report: &DeliveryReport, out: &mut dyn Write) -> io::Result<()> {
    let DeliveryReport { delivery, item, events } = report;
    writeln!(out, "delivery {} to {}", delivery.id, delivery.consumer)?;
    writeln!(
        out,
        "  product  {} version {}, {}",
        delivery.product, delivery.version, delivery.name
    )?;
    writeln!(out, "  record   number {}", delivery.sequence)?;
    writeln!(out, "  state    {} since {}", delivery.state.name(), delivery.since)?;
    if let Some(proof) = delivery.proof {
        writeln!(out, "  proof    {}", proof.name())?;
    }
    if let Some(reason) = &delivery.reason {
        writeln!(out, "  reason   {reason}")?;
    }
    if let Some(next) = &delivery.next {
        writeln!(out, "  next     not before {next}")?;
    }
    for (name, asset) in item["assets"].as_object().into_iter().flatten() {
        writeln!(out, "  file     {name}, {} bytes", asset["file:size"])?;
    }
    for event in events {
        writeln!(out, "  {}  {:<10} {}", event.at, event.what, event.text)?;
    }
    Ok(())
}
