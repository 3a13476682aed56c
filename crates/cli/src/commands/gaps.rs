//! `skyhaul gaps`: what is missing at a centre, and what is being done about it.

use super::status::Node;
use crate::failure::{Exit, Failure};
use skyhaul_node::status::{
    GapCounts, GapFilter, GapProgress, GapReport, GapStatus, GapsAsked, ask_again, ask_gaps,
};
use std::io::{self, Write};

/// The arguments of `skyhaul gaps`.
#[derive(clap::Args)]
#[command(
    after_help = "A gap of frames is asked for from the station by itself: its recording (record_raw) is decoded again with the
thresholds of [refill]. States: open, requested, filled, unrecoverable (and why).

Example:
  skyhaul gaps --config centre.toml
  skyhaul gaps --config centre.toml --station polar --spacecraft 157 --json
  skyhaul gaps ask --config centre.toml --station polar",
    args_conflicts_with_subcommands = true
)]
pub struct Gaps {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    node: Node,
    #[command(flatten)]
    which: Which,
    /// Only those in this state.
    #[arg(long, value_name = "STATE", value_parser = ["open", "requested", "filled", "unrecoverable"])]
    state: Option<String>,
    /// Prints them as one JSON line.
    #[arg(long)]
    json: bool,
}

/// What is done about gaps.
#[derive(clap::Subcommand)]
enum Action {
    /// Asks stations again for frames that were not to be had: a recording may be back, or the refill table tries more.
    #[command(
        after_help = "What is open or requested is asked for anyway. A station that is not connected is asked when it is.

Example:
  skyhaul gaps ask --config centre.toml
  skyhaul gaps ask --config centre.toml --contact polar-217544036 --json"
    )]
    Ask(Ask),
}

/// The arguments of `skyhaul gaps ask`.
#[derive(clap::Args)]
struct Ask {
    #[command(flatten)]
    node: Node,
    #[command(flatten)]
    which: Which,
    /// Prints what is asked for as one JSON line.
    #[arg(long)]
    json: bool,
}

/// Which gaps.
#[derive(clap::Args)]
struct Which {
    /// Only those of this station.
    #[arg(long, value_name = "NAME", conflicts_with = "contact")]
    station: Option<String>,
    /// Only those of this contact, as they list it.
    #[arg(long, value_name = "STATION-FLOW")]
    contact: Option<String>,
    /// Only those of this spacecraft: its id, or the name of its mission.
    #[arg(long, value_name = "ID|MISSION")]
    spacecraft: Option<String>,
}

/// Asks, and prints the answer.
///
/// # Errors
/// No centre answers, or the configuration is wrong.
pub fn run(command: &Gaps, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(Action::Ask(ask)) = &command.action {
        return again(ask, out);
    }
    let which = command.which.filter()?;
    let mut report = ask_gaps(&command.node.socket()?)?;
    report.gaps.retain(|gap| command.wants(gap, &which));
    if command.json {
        let line = serde_json::to_string(&report).expect("a report has text keys only");
        return Ok(writeln!(out, "{line}")?);
    }
    Ok(write_report(&report, out)?)
}

fn again(command: &Ask, out: &mut dyn Write) -> Result<(), Failure> {
    let asked = ask_again(&command.node.socket()?, command.which.filter()?)?;
    if command.json {
        let line = serde_json::to_string(&asked).expect("it has text keys only");
        return Ok(writeln!(out, "{line}")?);
    }
    let GapsAsked { gaps, frames, left, .. } = asked;
    let mut line = match gaps {
        0 => "nothing there is unrecoverable that asking again may bring".to_owned(),
        _ => format!("asked for again: {frames} frames in {gaps} gaps"),
    };
    if left > 0 {
        line += &format!("; {left} gaps stay, for the reason that `skyhaul gaps` says");
    }
    Ok(writeln!(out, "{line}")?)
}

impl Gaps {
    fn wants(&self, gap: &GapStatus, which: &GapFilter) -> bool {
        which.takes((&gap.station, gap.flow), &gap.mission, gap.scid)
            && self.state.as_ref().is_none_or(|state| *state == word(gap.state))
    }
}

impl Which {
    fn filter(&self) -> Result<GapFilter, Failure> {
        let Self { station, contact, spacecraft } = self;
        let filter = GapFilter { station: station.clone(), flow: None, spacecraft: spacecraft.clone() };
        let Some(contact) = contact else { return Ok(filter) };
        let parts = contact.rsplit_once('-');
        let parts = parts.and_then(|(station, flow)| Some((station.to_owned(), flow.parse().ok()?)));
        let Some((station, flow)) = parts else {
            let help = "write it as `skyhaul gaps` lists it, such as polar-217544036";
            let failure = Failure::new(Exit::Usage, &format!("`{contact}` is not a contact"), help);
            return Err(failure.at("--contact"));
        };
        Ok(GapFilter { station: Some(station), flow: Some(flow), ..filter })
    }
}

fn write_report(report: &GapReport, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", in_words(&report.counts))?;
    if report.gaps.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n  {:<22} {:<12} {:<16} {:>10} {:>7} {:>7}  {:<13} {:<27}",
        "contact", "mission", "channel", "first", "missed", "missing", "state", "from"
    )?;
    for gap in &report.gaps {
        let vcids: Vec<String> = gap.vcids.iter().map(u8::to_string).collect();
        let place = match gap.apid {
            Some(apid) => format!("APID {apid} (VC {})", vcids.join(" ")),
            None => format!("VC {}", vcids.join(" ")),
        };
        let missing = gap.missing.map_or_else(|| "-".to_owned(), |missing| missing.to_string());
        writeln!(
            out,
            "  {:<22} {:<12} {place:<16} {:>10} {:>7} {missing:>7}  {:<13} {}{}",
            format!("{}-{}", gap.station, gap.flow),
            gap.mission,
            gap.first,
            gap.missed,
            word(gap.state),
            gap.from,
            gap.why.as_ref().map_or_else(String::new, |why| format!("  {why}")),
        )?;
    }
    Ok(())
}

/// How many gaps there are, in a line.
pub fn in_words(counts: &GapCounts) -> String {
    let GapCounts { open, requested, filled, unrecoverable, missing_frames, overflow, unfollowed, .. } =
        counts;
    let mut line = format!(
        "gaps     {open} open, {requested} requested, {filled} filled, {unrecoverable} unrecoverable; {missing_frames} frames missing"
    );
    if overflow + unfollowed > 0 {
        line += &format!("; {overflow} gaps and {unfollowed} contacts more than are followed");
    }
    line
}

const fn word(state: GapProgress) -> &'static str {
    match state {
        GapProgress::Open => "open",
        GapProgress::Requested => "requested",
        GapProgress::Filled => "filled",
        GapProgress::Unrecoverable => "unrecoverable",
    }
}
