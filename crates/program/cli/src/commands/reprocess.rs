//! `skyhaul reprocess`: Level-0 again from the contacts that a node keeps.

use super::node_socket::NodeArguments;
use skyhaul_config::ConfigTime;
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::status::{
    ReprocessAction, ReprocessOutcome, ReprocessReport, ReprocessRequest, ReprocessedProduct,
    ask_reprocess,
};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Makes products again from the contacts that a running node keeps.
///
/// Products that come out the same stay as they are. Those that differ become a new version, and
/// go to subscribers as their `versions` says. It runs beside live contacts, at low priority.
#[derive(clap::Args)]
#[command(after_help = "\
The rules are those of the node, or the tables [products] (without `dir`) and
[[product]] of another file. A product is made of all contacts that its newest
version is made of; if one of them is no longer in the store, it stays as it
is. Expedited data sets are not made again.

Example:
  skyhaul reprocess --mission aqua --from 2026-11-01T00:00:00Z \\
    --to 2026-11-02T00:00:00Z --dry-run --config centre.toml
  skyhaul reprocess --mission aqua --from 2026-11-01T00:00:00Z \\
    --to 2026-11-02T00:00:00Z --rules padded.toml --config centre.toml")]
pub struct ReprocessArguments {
    #[command(flatten)]
    node: NodeArguments,
    /// Products of contacts of this mission.
    #[arg(long, value_name = "NAME")]
    mission: String,
    /// With packets from this time on.
    #[arg(long, value_name = "TIME")]
    from: ConfigTime,
    /// And before this one.
    #[arg(long, value_name = "TIME")]
    to: ConfigTime,
    /// Only those of this contact, such as svalbard-17.
    #[arg(long, value_name = "CONTACT")]
    contact: Option<String>,
    /// By the rules of this file.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Lists what would be made, and makes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Orders it, and does not wait for the end.
    #[arg(long)]
    no_wait: bool,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Between two questions.
const LOOK: Duration = Duration::from_millis(300);
/// A node reads no longer request.
const RULES_MAX: usize = 12 << 10;

/// Orders it, and prints what becomes of it.
///
/// # Errors
/// No node answers, it has no such contacts, or the rules are none.
#[allow(clippy::disallowed_methods, reason = "a command waits for the node")]
pub fn run(command: &ReprocessArguments, out: &mut dyn Write) -> Result<(), Failure> {
    let socket = command.node.socket()?;
    let rules = command.rules.as_ref().map(rules).transpose()?;
    let action = ReprocessAction {
        mission: command.mission.clone(),
        from: command.from,
        to: command.to,
        contact: command.contact.clone(),
        rules,
        dry_run: command.dry_run,
    };
    let ordered = ask_reprocess(&socket, ReprocessRequest::Order(action))?;
    if command.dry_run || command.no_wait {
        return write_jobs(command, &ordered, out);
    }
    let order = ordered.order;
    let mut shown = 0;
    loop {
        let report = ask_reprocess(&socket, ReprocessRequest::Look { order })?;
        if !command.json {
            for product in report.products.iter().skip(shown) {
                write_product(product, out)?;
            }
            shown = report.products.len();
        }
        if report.waiting == 0 {
            let jobs = ordered.jobs;
            return write_end(command, &ReprocessReport { jobs, ..report }, out);
        }
        std::thread::sleep(LOOK);
    }
}

fn rules(file: &PathBuf) -> Result<String, Failure> {
    let failed = |what: String, help: &str| {
        Failure::new(Exit::Usage, &what, help).at(&file.display().to_string())
    };
    let text = std::fs::read_to_string(file).map_err(|error| {
        failed(format!("the rules cannot be read ({error})"), "name a file that can be read")
    })?;
    if text.len() > RULES_MAX {
        let what = format!("the rules have {} bytes, more than {RULES_MAX}", text.len());
        return Err(failed(what, "remove comments, and tables that change nothing"));
    }
    Ok(text)
}

fn write_json(report: &ReprocessReport, out: &mut dyn Write) -> Result<(), Failure> {
    let line = serde_json::to_string(report).expect("it has text keys only");
    Ok(writeln!(out, "{line}")?)
}

fn write_jobs(
    command: &ReprocessArguments,
    report: &ReprocessReport,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if command.json {
        return write_json(report, out);
    }
    for job in &report.jobs {
        write!(out, "{}: {}", job.what, job.products.join(", "))?;
        match &job.gone[..] {
            [] => writeln!(out)?,
            gone => writeln!(out, "; cannot be made, {} not in the store", gone.join(", "))?,
        }
    }
    match command.dry_run {
        true => writeln!(out, "nothing was ordered")?,
        false => writeln!(out, "ordered")?,
    }
    Ok(())
}

fn write_product(product: &ReprocessedProduct, out: &mut dyn Write) -> Result<(), Failure> {
    let ReprocessedProduct { target, name, version, outcome, packets, reason, .. } = product;
    match outcome {
        ReprocessOutcome::Same => writeln!(out, "{name}: as version {version}, no new version")?,
        ReprocessOutcome::Changed => {
            writeln!(out, "{name}: version {version}, {packets} packets")?;
        }
        ReprocessOutcome::Gone => {
            writeln!(out, "{target}: not made, {}", reason.as_deref().unwrap_or("-"))?;
        }
    }
    Ok(())
}

fn write_end(
    command: &ReprocessArguments,
    report: &ReprocessReport,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if command.json {
        return write_json(report, out);
    }
    let count = |outcome| report.products.iter().filter(|one| one.outcome == outcome).count();
    let (same, changed) = (count(ReprocessOutcome::Same), count(ReprocessOutcome::Changed));
    let gone = count(ReprocessOutcome::Gone);
    writeln!(out, "{same} as they were, {changed} new versions, {gone} not made")?;
    Ok(())
}
