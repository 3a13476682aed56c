//! `skyhaul nodes`: what other nodes report of themselves to a running node.

use super::node_socket::NodeArguments;
use skyhaul_events::{NodeReport, ReportedAlarms, ReportedState};
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::status::{NodeSeen, NodeSeenState, ask};
use std::io::{self, Write};

/// The arguments of `skyhaul nodes`.
#[derive(clap::Args)]
#[command(after_help = "\
    Nodes report themselves every 10 s over the sessions that they have with this one, and sooner \
    when their alarms change. The worst come first. `skyhaul node` is the address book.

Example:
  skyhaul nodes --config centre.toml
  skyhaul nodes --config centre.toml polar
  skyhaul nodes --config centre.toml --json")]
pub struct Nodes {
    #[command(flatten)]
    node: NodeArguments,
    /// Only this node.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Prints each node as a line of JSON.
    #[arg(long)]
    json: bool,
}

/// Shows the nodes.
///
/// # Errors
/// No node answers, or it does not know the one that is asked for.
pub fn run(command: &Nodes, out: &mut dyn Write) -> Result<(), Failure> {
    let mut nodes = ask(&command.node.socket()?)?.nodes;
    if let Some(name) = &command.name {
        nodes.retain(|one| one.name == *name);
        if nodes.is_empty() {
            let what = format!("no node `{}` reports here", skyhaul_units::printable(name, 64));
            let help = "see `skyhaul nodes` without a name";
            return Err(Failure::new(Exit::Usage, &what, help));
        }
    }
    if command.json {
        for one in &nodes {
            let line = serde_json::to_string(one).expect("a report has text keys only");
            writeln!(out, "{line}")?;
        }
        return Ok(());
    }
    if nodes.is_empty() {
        writeln!(out, "no other node: this one has no destination, and nobody has sent contacts")?;
    }
    nodes.iter().try_for_each(|one| write_node(one, out))?;
    Ok(())
}

/// A line, and what is to be said of it below.
fn write_node(seen: &NodeSeen, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{:<16} {:<8} {}", seen.name, word(seen.state), line(seen))?;
    let wrong = seen.wrong_reports;
    if wrong > 0 {
        writeln!(out, "  {wrong} of its reports were not taken: see the log")?;
    }
    let Some(report) = &seen.report else { return Ok(()) };
    for alarm in &report.worst {
        writeln!(out, "  {} {}: {}", alarm.severity, alarm.kind, alarm.sentence)?;
    }
    let contacts = report.under_way.join(", ");
    match report.contacts {
        0 => {}
        1 => writeln!(out, "  1 contact under way: {contacts}")?,
        count => writeln!(out, "  {count} contacts under way: {contacts}")?,
    }
    match has(report) {
        text if text.is_empty() => Ok(()),
        text => writeln!(out, "  {text}"),
    }
}

/// Characters of a time up to its second.
const TO_SECOND: usize = "2026-11-28T06:00:04".len();

fn line(seen: &NodeSeen) -> String {
    let (Some(report), Some(heard), Some(age)) = (&seen.report, &seen.heard, seen.age_s) else {
        return "it has not reported since this node started".to_owned();
    };
    let started = seen.started.as_deref().and_then(|at| at.get(..TO_SECOND)).unwrap_or("-");
    let of = format!(
        "{} {}, up since {started}Z, alarms: {}",
        role(report),
        report.version,
        counts(report.alarms)
    );
    match (seen.state, seen.is_connected) {
        (NodeSeenState::Stale, false) => format!("since {heard}: no session; {of}"),
        (NodeSeenState::Stale, true) => format!("since {heard}: no report came; {of}"),
        _ => format!("{of}, {age:.0} s ago"),
    }
}

/// What it has.
fn has(report: &NodeReport) -> String {
    let mut parts = Vec::new();
    if let Some(spool) = &report.spool {
        let oldest = match spool.blocks {
            0 => String::new(),
            _ => format!(", the oldest for {} s", spool.oldest_s),
        };
        parts.push(format!(
            "spool {}: {} blocks ({}) wait{oldest}, {} on disk",
            disk(spool.state),
            spool.blocks,
            super::status::megabytes(spool.bytes),
            super::status::megabytes(spool.disk_bytes)
        ));
    }
    if let Some(store) = &report.store {
        let on_disk = super::status::megabytes(store.disk_bytes);
        parts.push(format!("store {}: {on_disk} on disk", disk(store.state)));
    }
    if let Some(of) = report.deliveries.filter(|of| of.waiting + of.late + of.failed > 0) {
        parts.push(format!(
            "deliveries: {} waiting, {} late, {} failed",
            of.waiting, of.late, of.failed
        ));
    }
    parts.join("; ")
}

fn counts(of: ReportedAlarms) -> String {
    let all = [(of.critical, "critical"), (of.major, "major"), (of.minor, "minor")];
    let some = all.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = some.map(|(count, severity)| format!("{count} {severity}")).collect();
    match parts.is_empty() {
        true => "none".to_owned(),
        false => parts.join(", "),
    }
}

const fn role(report: &NodeReport) -> &'static str {
    match (report.sends, report.receives) {
        (true, true) => "relay",
        (_, true) => "centre",
        (_, false) => "station",
    }
}

const fn disk(state: ReportedState) -> &'static str {
    match state {
        ReportedState::Ok => "ok",
        ReportedState::Full => "FULL",
        ReportedState::Failed => "FAILED",
        ReportedState::Unknown => "unknown",
    }
}

const fn word(state: NodeSeenState) -> &'static str {
    match state {
        NodeSeenState::Ok => "ok",
        NodeSeenState::Alarm => "ALARM",
        NodeSeenState::Stale => "STALE",
        NodeSeenState::Unheard => "unheard",
    }
}
