//! `skyhaul events`: what happened at a running node.

use super::node_socket::NodeArguments;
use skyhaul_events::{EventCause, EventFilter, NodeEvent};
use skyhaul_exit::Failure;
use skyhaul_node::status::{EventHole, EventPage, ask_events};
use skyhaul_units::printable;
use std::io::Write;
use std::time::Duration;

/// The arguments of `skyhaul events`.
#[derive(clap::Args)]
#[command(after_help = "\
        Events are numbered and kept on the disk: the last 100,000, up to 30 days. What lacks is \
        named as a hole. An event that another one explains names it. docs/reference/events.md \
        lists the kinds.

Example:
  skyhaul events --config centre.toml
  skyhaul events --config centre.toml --since 1200 --events 'contact.*,major+' --json
  skyhaul events --config centre.toml --follow")]
pub struct EventsCommand {
    #[command(flatten)]
    node: NodeArguments,
    /// Only events behind this number. Default: the last 20; with --json all.
    #[arg(long, value_name = "N")]
    since: Option<u64>,
    /// Only these: kinds, groups such as `contact.*`, severities such as `major+`.
    #[arg(long, value_name = "LIST", default_value = "*")]
    events: EventFilter,
    /// Goes on with what happens, until interrupted.
    #[arg(long)]
    follow: bool,
    /// Prints each event as a line of JSON.
    #[arg(long)]
    json: bool,
}

/// Without a number a person sees so many.
const LATEST: u64 = 20;
/// Events of one answer of the node.
const PAGE: usize = 500;
/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);

/// Shows events.
///
/// # Errors
/// No node answers, or the reader is gone.
#[allow(clippy::disallowed_methods, reason = "it follows a node that has no more to say yet")]
pub fn run(command: &EventsCommand, out: &mut dyn Write) -> Result<(), Failure> {
    let socket = command.node.socket()?;
    let mut since = match command.since {
        Some(since) => since,
        None if command.json => 0,
        None => ask_events(&socket, u64::MAX, 1)?.last.saturating_sub(LATEST),
    };
    // What went before the first that is kept lacks only for one who asks for it.
    let mut from = since + u64::from(command.since.is_none());
    loop {
        let page = ask_events(&socket, since, PAGE)?;
        command.write(&page, from, out)?;
        out.flush()?;
        (since, from) = (page.next, page.next.max(from));
        match (page.events.is_empty(), command.follow) {
            (false, _) => {}
            (true, false) => return Ok(()),
            (true, true) => std::thread::sleep(LOOK),
        }
    }
}

impl EventsCommand {
    /// Writes the events of a page, and what lacks behind number `from`.
    fn write(&self, page: &EventPage, from: u64, out: &mut dyn Write) -> Result<(), Failure> {
        let mut holes = page.holes.iter().filter(|hole| hole.from > from).peekable();
        for event in &page.events {
            while let Some(hole) = holes.next_if(|hole| hole.to < event.number) {
                self.write_hole(hole, out)?;
            }
            if self.events.wants(event) {
                self.write_event(event, out)?;
            }
        }
        Ok(())
    }

    fn write_hole(&self, hole: &EventHole, out: &mut dyn Write) -> Result<(), Failure> {
        if self.json {
            let line = serde_json::json!({ "hole": hole });
            return Ok(writeln!(out, "{line}")?);
        }
        let EventHole { from, to } = hole;
        Ok(writeln!(out, "events {from} to {to} are not kept")?)
    }

    fn write_event(&self, event: &NodeEvent, out: &mut dyn Write) -> Result<(), Failure> {
        if self.json {
            return Ok(out.write_all(&event.to_line())?);
        }
        let NodeEvent { number, time, kind, severity, sentence, cause, .. } = event;
        let because = cause.as_ref().map_or(String::new(), |cause| {
            let EventCause { number, kind, subject } = cause;
            format!(" (because of {number} {kind}, {})", printable(subject, 200))
        });
        let sentence = printable(sentence, 1_000);
        Ok(writeln!(out, "{number} {time} {severity:8} {kind}: {sentence}{because}")?)
    }
}
