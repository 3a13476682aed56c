//! `skyhaul gaps`: what is missing at a centre, and what is being done about it.

use super::status::Node;
use crate::failure::Failure;
use skyhaul_node::status::{GapCounts, GapProgress, GapReport, GapStatus, ask_gaps};
use std::io::{self, Write};

/// The arguments of `skyhaul gaps`.
#[derive(clap::Args)]
#[command(
    after_help = "A gap of frames is asked for from the station by itself: its recording (record_raw) is decoded again with the
thresholds of [refill]. States: open, requested, filled, unrecoverable (and why).

Example:
  skyhaul gaps --config centre.toml
  skyhaul gaps --config centre.toml --station polar --spacecraft 157 --json"
)]
pub struct Gaps {
    #[command(flatten)]
    node: Node,
    /// Only those of this station.
    #[arg(long, value_name = "NAME")]
    station: Option<String>,
    /// Only those of this spacecraft: its id, or the name of its mission.
    #[arg(long, value_name = "ID|MISSION")]
    spacecraft: Option<String>,
    /// Only those in this state.
    #[arg(long, value_name = "STATE", value_parser = ["open", "requested", "filled", "unrecoverable"])]
    state: Option<String>,
    /// Prints them as one JSON line.
    #[arg(long)]
    json: bool,
}

/// Asks, and prints the answer.
///
/// # Errors
/// No centre answers, or the configuration is wrong.
pub fn run(command: &Gaps, out: &mut dyn Write) -> Result<(), Failure> {
    let mut report = ask_gaps(&command.node.socket()?)?;
    report.gaps.retain(|gap| command.wants(gap));
    if command.json {
        let line = serde_json::to_string(&report).expect("a report has text keys only");
        return Ok(writeln!(out, "{line}")?);
    }
    Ok(write_report(&report, out)?)
}

impl Gaps {
    fn wants(&self, gap: &GapStatus) -> bool {
        let is_spacecraft = |wanted: &String| {
            *wanted == gap.mission || gap.scid.is_some_and(|scid| scid.to_string() == *wanted)
        };
        self.station.as_ref().is_none_or(|station| *station == gap.station)
            && self.spacecraft.as_ref().is_none_or(is_spacecraft)
            && self.state.as_ref().is_none_or(|state| *state == word(gap.state))
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
