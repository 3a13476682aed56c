//! What is known of a path from outside: the hints in force, its feed, its contact plan.

use super::mega;
use skyhaul_node::status::{FeedStatus, HintSays, HintStatus, PathOutlook, PlanStatus};
use std::io::{self, Write};

/// Writes a line for each hint in force, one for the feed and one for the plan.
pub(super) fn write(outlook: &PathOutlook, out: &mut dyn Write) -> io::Result<()> {
    let PathOutlook { hints, feed, plan } = outlook;
    for hint in hints {
        write_hint(hint, out)?;
    }
    feed.as_ref().map_or(Ok(()), |feed| write_feed(feed, out))?;
    plan.as_ref().map_or(Ok(()), |plan| write_plan(plan, out))
}

fn write_hint(hint: &HintStatus, out: &mut dyn Write) -> io::Result<()> {
    let says = match hint.says {
        HintSays::Outage => "outage".to_owned(),
        HintSays::Rate { rate_bps } => format!("rate {}", mega(rate_bps)),
        HintSays::Loss { loss } => format!("loss {:.2} %", loss * 1e2),
    };
    let until = hint.until.as_deref().map_or("it was measured", |until| until);
    let program = hint.program.as_ref().map(|program| format!(" {program}")).unwrap_or_default();
    writeln!(out, "    hint: {says}, from the {}{program}, until {until}", hint.by.name())
}

fn write_feed(feed: &FeedStatus, out: &mut dyn Write) -> io::Result<()> {
    let FeedStatus { source, stale, reason, newest, newest_at, lines, unmapped, garbage } = feed;
    let state = if *stale { "STALE" } else { "ok" };
    writeln!(
        out,
        "    feed: {state}, {lines} lines, {unmapped} of them without effect, {garbage} refused  \
        {source}"
    )?;
    if let (Some(newest), Some(at)) = (newest, newest_at) {
        writeln!(out, "      {at}  {newest}")?;
    }
    reason.as_ref().map_or(Ok(()), |reason| writeln!(out, "      {reason}"))
}

fn write_plan(plan: &PlanStatus, out: &mut dyn Write) -> io::Result<()> {
    let PlanStatus { file, windows, ahead, start, end, reason } = plan;
    let next = match (start, end) {
        (Some(start), Some(end)) => format!("the next from {start} until {end}"),
        _ => "none to come".to_owned(),
    };
    writeln!(out, "    plan: {ahead} of {windows} windows ahead, {next}  {file}")?;
    reason.as_ref().map_or(Ok(()), |reason| writeln!(out, "      {reason}"))
}
