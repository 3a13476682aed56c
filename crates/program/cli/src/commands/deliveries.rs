//! `skyhaul deliveries`: which destination has which product since when, by whose proof.

use super::node_socket::NodeArguments;
use skyhaul_dispatch::DeliveryState;
use skyhaul_exit::Failure;
use skyhaul_node::status::{
    DeliveryAction, DeliveryFilter, DeliveryReport, DeliveryStatus, StatusRequest, ask_deliveries,
    ask_delivery, order,
};
use std::io::{self, Write};

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
  skyhaul deliveries list --config centre.toml --destination lance-a --state refused --json")]
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
    /// Only to this destination.
    #[arg(long, value_name = "NAME")]
    destination: Option<String>,
    /// Only for this subscription.
    #[arg(long, value_name = "NAME")]
    subscription: Option<String>,
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
        DeliveriesCommand::Again(order) => give(order, DeliveryAction::Again, out),
        DeliveriesCommand::Hold(order) => give(order, DeliveryAction::Hold, out),
        DeliveriesCommand::Release(order) => give(order, DeliveryAction::Release, out),
        DeliveriesCommand::Cancel(order) => give(order, DeliveryAction::Cancel, out),
    }
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
        destination: list.destination.clone(),
        subscription: list.subscription.clone(),
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
        "{:>8}  {:<16} {:<16} {:<18} {:>7}  {:<10} {:<27} {:<9} reason",
        "number", "destination", "subscription", "product", "version", "state", "since", "proof"
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
        "{:>8}  {:<16} {:<16} {:<18} {:>7}  {:<10} {:<27} {:<9} {}",
        delivery.id,
        delivery.destination,
        delivery.subscription,
        delivery.product,
        delivery.version,
        delivery.state.name(),
        delivery.since,
        delivery.proof.map_or("-", skyhaul_dispatch::Proof::name),
        reason(delivery),
    )
}

/// Why it is where it is, and that it is late.
fn reason(delivery: &DeliveryStatus) -> String {
    let due = delivery.deadline.as_deref().filter(|_| delivery.is_late);
    let late = due.map(|due| format!("late, it was due at {due}"));
    let parts: Vec<String> = late.into_iter().chain(delivery.reason.clone()).collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join("; ") }
}

fn write_report(report: &DeliveryReport, out: &mut dyn Write) -> io::Result<()> {
    let DeliveryReport { delivery, item, events } = report;
    writeln!(out, "delivery {} to {}", delivery.id, delivery.destination)?;
    writeln!(out, "  for      {}", delivery.subscription)?;
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
    if let Some(deadline) = &delivery.deadline {
        let late = if delivery.is_late { ", it is late" } else { "" };
        writeln!(out, "  due      {deadline}{late}")?;
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
