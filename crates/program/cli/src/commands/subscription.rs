//! `skyhaul subscription`: what a subscription to products takes of those that were published
//! before.

use super::node_socket::NodeArguments;
use skyhaul_config::ConfigTime;
use skyhaul_exit::Failure;
use skyhaul_node::status::{BackfillAction, BackfillPage, BackfillRequest, ask_backfill};
use skyhaul_units::ByteCount;
use std::io::Write;

/// Subscriptions to products of a running node.
#[derive(clap::Subcommand)]
pub enum SubscriptionCommand {
    /// Says what a subscription takes of the products in the catalogue, and what is missing where.
    #[command(after_help = "\
Example:
  skyhaul subscription test modis --config centre.toml
  skyhaul subscription test modis --from 2026-11-01T00:00:00Z --config centre.toml --json")]
    Test(Test),
    /// Delivers products that were published before, as far as they have no delivery yet.
    #[command(after_help = "\
Example:
  skyhaul subscription backfill modis --from 2026-11-01T00:00:00Z --dry-run --config centre.toml
  skyhaul subscription backfill modis --from 2026-11-01T00:00:00Z --config centre.toml")]
    Backfill(BackfillArguments),
}

/// The arguments of `skyhaul subscription test`.
#[derive(clap::Args)]
pub struct Test {
    /// Its name.
    name: String,
    #[command(flatten)]
    node: NodeArguments,
    /// Only products that were published from then on. Default: all.
    #[arg(long, value_name = "TIME")]
    from: Option<ConfigTime>,
    /// Only products that were published before then.
    #[arg(long, value_name = "TIME")]
    to: Option<ConfigTime>,
    /// Prints it as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The arguments of `skyhaul subscription backfill`.
#[derive(clap::Args)]
pub struct BackfillArguments {
    /// Its name.
    name: String,
    #[command(flatten)]
    node: NodeArguments,
    /// Products that were published from then on.
    #[arg(long, value_name = "TIME")]
    from: ConfigTime,
    /// Only products that were published before then. Default: up to now.
    #[arg(long, value_name = "TIME")]
    to: Option<ConfigTime>,
    /// Counts, and delivers nothing.
    #[arg(long)]
    dry_run: bool,
    /// Prints it as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// How the outcome is printed.
#[derive(Clone, Copy)]
enum PrintedForm {
    Json,
    Test,
    DryRun,
    Begun,
}

/// Carries out one `subscription` command.
///
/// # Errors
/// No node answers, or it has no such subscription.
pub fn run(command: &SubscriptionCommand, out: &mut dyn Write) -> Result<(), Failure> {
    let (node, request, form) = match command {
        SubscriptionCommand::Test(Test { name, node, from, to, json }) => {
            let form = if *json { PrintedForm::Json } else { PrintedForm::Test };
            (node, request(name, *from, *to, BackfillAction::Count), form)
        }
        SubscriptionCommand::Backfill(arguments) => {
            let BackfillArguments { name, node, from, to, dry_run, json } = arguments;
            let (action, form) = match dry_run {
                true => (BackfillAction::Count, PrintedForm::DryRun),
                false => (BackfillAction::Begin, PrintedForm::Begun),
            };
            let form = if *json { PrintedForm::Json } else { form };
            (node, request(name, Some(*from), *to, action), form)
        }
    };
    let (socket, mut request) = (node.socket()?, request);
    let mut all = ask_backfill(&socket, request.clone())?;
    while let Some(next) = all.next.take() {
        request.after = Some(next);
        all.extend(ask_backfill(&socket, request.clone())?);
    }
    write_page(&request.subscription, &all, form, out)
}

fn request(
    name: &str,
    from: Option<ConfigTime>,
    to: Option<ConfigTime>,
    action: BackfillAction,
) -> BackfillRequest {
    let bound = |text: &str| text.parse().expect("it is a time");
    BackfillRequest {
        subscription: name.to_owned(),
        from: from.unwrap_or_else(|| bound(EARLIEST)),
        to: to.unwrap_or_else(|| bound(LATEST)),
        after: None,
        action,
    }
}

fn write_page(
    name: &str,
    page: &BackfillPage,
    form: PrintedForm,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if matches!(form, PrintedForm::Json) {
        let line = serde_json::to_string(page).expect("it has text keys only");
        return Ok(writeln!(out, "{line}")?);
    }
    let bytes = |bytes: u64| ByteCount::new(bytes).to_string();
    writeln!(out, "{name} takes {} products, {}", page.items, bytes(page.bytes))?;
    for name in &page.names {
        writeln!(out, "  {name}")?;
    }
    if page.items > page.names.len() as u64 {
        writeln!(out, "  and {} earlier ones", page.items - page.names.len() as u64)?;
    }
    let what = match form {
        PrintedForm::Begun => "begin now",
        PrintedForm::DryRun => "would begin",
        PrintedForm::Json | PrintedForm::Test => "have no delivery",
    };
    for share in &page.destinations {
        writeln!(
            out,
            "{}: {} are there, {} have a delivery, {} {what}, {}",
            share.destination,
            share.there,
            share.begun,
            share.missing,
            bytes(share.missing_bytes)
        )?;
    }
    Ok(())
}

/// Before the first product.
const EARLIEST: &str = "1970-01-01T00:00:00Z";
/// After the last one.
const LATEST: &str = "2200-01-01T00:00:00Z";
