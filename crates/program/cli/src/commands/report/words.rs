//! The report as text.

use super::period::Period;
use super::spans::{maybe, share, span};
use skyhaul_catalogue::{LatencyCell, LatencyFigures, LatencyMission, LatencyReport};
use std::io::{self, Write};

/// Writes it.
pub fn write(report: &LatencyReport, period: &Period, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}: {}", period.title(), headline(&report.whole))?;
    if report.missions.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{:<16} {:>8} {:>9} {:>6} {:>6}  {:>12} {:>12} {:>12} {:>12}  worst contact",
        "mission", "handed", "in time", "late", "open", "p50", "p95", "p99", "worst"
    )?;
    for mission in &report.missions {
        line(mission, out)?;
    }
    for mission in &report.missions {
        writeln!(out, "\nelements of {}, mean of each product:", mission.mission)?;
        for element in &mission.elements {
            let Some(of) = element.element else { continue };
            writeln!(
                out,
                "  {:<11} {:>12}, p95 {:>12}, longest {:>12}  {}",
                of.name(),
                span(element.mean_s),
                span(element.p95_s),
                span(element.worst_s),
                of.title()
            )?;
        }
        if let Some(acceptance) = &mission.acceptance {
            writeln!(out, "  accepted {} after the hand-over (p50)", span(acceptance.p50_s))?;
        }
    }
    let late: Vec<&LatencyCell> =
        report.cells.iter().filter(|cell| cell.figures.late > 0).collect();
    if !late.is_empty() {
        writeln!(out, "\nlate:")?;
    }
    for cell in late {
        writeln!(out, "  {}", sentence(cell))?;
    }
    Ok(())
}

/// What the period was, in a sentence.
pub fn headline(whole: &LatencyFigures) -> String {
    let mut text = format!("{} products handed over", whole.handed);
    if let Some(on_time) = whole.share_on_time {
        text.push_str(&format!(", {} of them in time", share(Some(on_time))));
    }
    for (count, words) in [(whole.late, "late"), (whole.open, "still to come")] {
        if count > 0 {
            text.push_str(&format!(", {count} {words}"));
        }
    }
    if whole.without_budget > 0 {
        text.push_str(&format!(", {} without a [[budget]]", whole.without_budget));
    }
    text
}

fn line(mission: &LatencyMission, out: &mut dyn Write) -> io::Result<()> {
    let LatencyFigures { handed, late, open, p50_s, p95_s, p99_s, worst, .. } = &mission.figures;
    writeln!(
        out,
        "{:<16} {handed:>8} {:>9} {late:>6} {open:>6}  {:>12} {:>12} {:>12} {:>12}  {}",
        mission.mission,
        share(mission.figures.share_on_time),
        maybe(*p50_s),
        maybe(*p95_s),
        maybe(*p99_s),
        maybe(worst.as_ref().map(|worst| worst.took_s)),
        worst.as_ref().and_then(|worst| worst.contact.as_deref()).unwrap_or("-"),
    )
}

/// What was late in a cell, and why.
pub fn sentence(cell: &LatencyCell) -> String {
    let figures = &cell.figures;
    let judged = figures.late + figures.on_time;
    let mut text = format!(
        "{} {} ({}) of {}: {} of {judged} late",
        cell.mission, cell.product, cell.kind, cell.station, figures.late
    );
    if let Some(worst) = &figures.worst {
        text.push_str(&format!("; longest: {} version {}", worst.name, worst.version));
        if let Some(contact) = &worst.contact {
            text.push_str(&format!(", contact {contact}"));
        }
        if let Some(consumer) = &worst.consumer {
            text.push_str(&format!(", to {consumer}"));
        }
        text.push_str(&format!(", {}", span(worst.took_s)));
    }
    text.push_str(&cause(cell));
    text
}

/// Why the latest one was late.
fn cause(cell: &LatencyCell) -> String {
    let Some(cause) = &cell.cause else { return String::new() };
    format!(
        "; cause: {} {}, usually {}",
        cause.element.name(),
        span(cause.took_s),
        span(cause.usual_s)
    )
}
