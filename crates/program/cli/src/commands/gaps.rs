//! `skyhaul gaps`: missing data at a centre, and its recovery.

use super::node_socket::NodeArguments;
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::status::{
    GapCounts, GapFilter, GapProgress, GapReport, GapStatus, GapsAsked, ask_again, ask_gaps,
};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The arguments of `skyhaul gaps`.
#[derive(clap::Args)]
#[command(
    after_help = "\
        The centre requests missing frames from the station automatically: the station decodes its \
        recording (record_raw) again with the thresholds of [refill]. States: open, requested, \
        filled, unrecoverable (with the reason).

Example:
  skyhaul gaps --config centre.toml
  skyhaul gaps --config centre.toml --station polar --spacecraft 157 --json
  skyhaul gaps ask --config centre.toml --station polar",
    args_conflicts_with_subcommands = true
)]
pub struct GapsCommand {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    node: NodeArguments,
    #[command(flatten)]
    which: Which,
    /// Only gaps in this state.
    #[arg(long, value_name = "STATE", value_parser =
        ["open", "requested", "filled", "unrecoverable"])]
    state: Option<String>,
    /// Prints the gaps as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Actions on gaps.
#[derive(clap::Subcommand)]
enum Action {
    /// Requests unrecoverable frames again, for example when a recording is available again.
    #[command(after_help = "\
        Open and requested gaps are requested anyway. A station that is not connected gets the \
        request when it connects.

Example:
  skyhaul gaps ask --config centre.toml
  skyhaul gaps ask --config centre.toml --contact polar-217544036 --json")]
    Ask(Ask),
}

/// The arguments of `skyhaul gaps ask`.
#[derive(clap::Args)]
struct Ask {
    #[command(flatten)]
    node: NodeArguments,
    #[command(flatten)]
    which: Which,
    /// Prints the request as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Which gaps.
#[derive(clap::Args)]
struct Which {
    /// Only gaps of this station.
    #[arg(long, value_name = "NAME", conflicts_with = "contact")]
    station: Option<String>,
    /// Only gaps of this contact, as `skyhaul gaps` shows it.
    #[arg(long, value_name = "STATION-FLOW")]
    contact: Option<String>,
    /// Only gaps of this spacecraft: its id, or the name of its mission.
    #[arg(long, value_name = "ID|MISSION")]
    spacecraft: Option<String>,
}

/// Asks, and prints the answer.
///
/// # Errors
/// No centre answers, or the configuration is wrong.
pub fn run(command: &GapsCommand, out: &mut dyn Write) -> Result<(), Failure> {
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
        0 => "no gap there can be filled by a second request".to_owned(),
        _ => format!("requested again: {frames} frames in {gaps} gaps"),
    };
    if left > 0 {
        line += &format!("; {left} gaps stay, `skyhaul gaps` shows the reason");
    }
    Ok(writeln!(out, "{line}")?)
}

impl GapsCommand {
    fn wants(&self, gap: &GapStatus, which: &GapFilter) -> bool {
        which.takes(&gap.station, gap.flow, &gap.mission, gap.scid)
            && self.state.as_ref().is_none_or(|state| *state == word(gap.state))
    }
}

impl Which {
    fn filter(&self) -> Result<GapFilter, Failure> {
        let Self { station, contact, spacecraft } = self;
        let filter =
            GapFilter { station: station.clone(), flow: None, spacecraft: spacecraft.clone() };
        let Some(contact) = contact else { return Ok(filter) };
        let parts = contact.rsplit_once('-');
        let parts =
            parts.and_then(|(station, flow)| Some((station.to_owned(), flow.parse().ok()?)));
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
    write_summary(&report.gaps, out)?;
    let left_out = report.gaps.len().saturating_sub(LISTED);
    if left_out > 0 {
        writeln!(
            out,
            "\n  the newest {LISTED} gaps; {left_out} more with --json, or with --contact or \
            --station"
        )?;
    }
    writeln!(
        out,
        "\n  {:<22} {:<12} {:<16} {:>10} {:>7} {:>7}  {:<13} {:<27}",
        "contact", "mission", "channel", "first", "missed", "missing", "state", "from"
    )?;
    for gap in &report.gaps[left_out..] {
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

/// The number of gaps of each contact, by state and reason.
fn write_summary(gaps: &[GapStatus], out: &mut dyn Write) -> io::Result<()> {
    let mut groups: BTreeMap<Group<'_>, Sum> = BTreeMap::new();
    for gap in gaps {
        let reason = gap.why.as_deref().unwrap_or(match gap.state {
            GapProgress::Open => "request to the station pending",
            GapProgress::Requested => "request sent to the station",
            GapProgress::Filled | GapProgress::Unrecoverable => "-",
        });
        let group = Group {
            contact: (&gap.station, gap.flow),
            of: if gap.apid.is_some() { "packets" } else { "frames" },
            state: word(gap.state),
            reason,
        };
        let sum = groups.entry(group).or_default();
        sum.gaps += 1;
        sum.missed += gap.missed;
        sum.missing += gap.missing.unwrap_or(0);
    }
    writeln!(
        out,
        "\n  {:<22} {:<8} {:<13} {:>7} {:>9} {:>9}  reason",
        "contact", "of", "state", "gaps", "missed", "missing"
    )?;
    for (group, sum) in groups {
        // For packets, this is known when the next version of the product is made.
        let missing = if group.of == "frames" { sum.missing.to_string() } else { "-".to_owned() };
        writeln!(
            out,
            "  {:<22} {:<8} {:<13} {:>7} {:>9} {missing:>9}  {}",
            format!("{}-{}", group.contact.0, group.contact.1),
            group.of,
            group.state,
            sum.gaps,
            sum.missed,
            group.reason
        )?;
    }
    Ok(())
}

/// Gaps that have so much in common that they are one line of the summary.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Group<'a> {
    contact: (&'a str, u32),
    of: &'static str,
    state: &'static str,
    reason: &'a str,
}

/// What they come to.
#[derive(Default)]
struct Sum {
    gaps: u64,
    missed: u64,
    missing: u64,
}

/// Lines of the list; the summary is over all.
const LISTED: usize = 200;

/// How many gaps there are, in a line.
pub fn in_words(counts: &GapCounts) -> String {
    let GapCounts {
        open,
        requested,
        filled,
        unrecoverable,
        missing_frames,
        overflow,
        unfollowed,
        ..
    } = counts;
    let mut line = format!(
        "gaps     {open} open, {requested} requested, {filled} filled, {unrecoverable} \
        unrecoverable; {missing_frames} frames missing"
    );
    if overflow + unfollowed > 0 {
        line += &format!(
            "; {overflow} gaps and {unfollowed} contacts beyond the limit are not tracked"
        );
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

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(flow: u32, missing: u64, state: GapProgress, why: Option<&str>) -> GapStatus {
        GapStatus {
            station: "polar".to_owned(),
            flow,
            channel: "x".to_owned(),
            mission: "noaa-21".to_owned(),
            scid: Some(177),
            vcids: vec![16],
            apid: None,
            first: 7,
            missed: 10,
            missing: Some(missing),
            asked: 1,
            from: "2026-11-24T00:00:00Z".to_owned(),
            to: "2026-11-24T00:00:01Z".to_owned(),
            state,
            why: why.map(str::to_owned),
        }
    }

    #[test]
    fn gaps_are_summed_up_by_contact_and_reason() {
        let lost =
            |flow| gap(flow, 10, GapProgress::Unrecoverable, Some("nothing was recorded then"));
        let mut gaps: Vec<_> = (0..300).map(|_| lost(1)).collect();
        gaps.extend([
            gap(1, 0, GapProgress::Filled, None),
            gap(2, 4, GapProgress::Requested, None),
            lost(2),
        ]);
        let mut out = Vec::new();
        write_report(&GapReport { counts: GapCounts::default(), gaps }, &mut out).unwrap();
        let said = String::from_utf8(out).unwrap();
        let rows: Vec<String> = said
            .lines()
            .skip(3)
            .take(4)
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            rows,
            [
                "polar-1 frames filled 1 10 0 -",
                "polar-1 frames unrecoverable 300 3000 3000 nothing was recorded then",
                "polar-2 frames requested 1 10 4 request sent to the station",
                "polar-2 frames unrecoverable 1 10 10 nothing was recorded then"
            ],
            "{said}"
        );
        assert!(said.contains("the newest 200 gaps; 103 more with --json"), "{said}");
    }
}
