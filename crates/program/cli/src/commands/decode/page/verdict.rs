//! The contact summarised in one sentence.

use super::super::course::ChangeKind;
use super::{ContactPage, grouped, percent};
use skyhaul_ccsds::account::FileReport;

/// Style and words.
pub fn verdict(contact: &ContactPage<'_>) -> (&'static str, String) {
    let report = contact.report;
    let (missing, channels) = missing(report);
    let all = grouped(report.cadus);
    if missing == 0 && report.uncorrectable_frames == 0 {
        let quality = match (report.corrected_frames, contact.is_checked() || report.ldpc.is_some())
        {
            (0, true) => "have no errors".to_owned(),
            (0, false) => "are present, without any check for errors".to_owned(),
            (corrected, _) => format!("are good, {} of them corrected", grouped(corrected)),
        };
        let class = if reception(contact).is_empty() { "pass" } else { "warn" };
        return (
            class,
            format!(
                "Complete: all {all} frames {quality}, and none is missing.{}",
                reception(contact)
            ),
        );
    }
    let good = match report.uncorrectable_frames {
        0 => format!("all {all} frames received are good"),
        aside => {
            let good = grouped(report.good_frames);
            format!(
                "{good} of {all} frames received are good, {} could not be used",
                grouped(aside)
            )
        }
    };
    let gone = match missing {
        0 => "the channels' counts show no missing frames".to_owned(),
        missing => {
            let share = percent(missing, missing + report.good_frames);
            let of = if channels == 1 { "one virtual channel" } else { "the virtual channels" };
            format!("{} are missing by the counts of {of} ({share})", grouped(missing))
        }
    };
    ("fail", format!("Incomplete: {good}; {gone}.{}", reception(contact)))
}

/// What happened to the bits, as sentences that follow the first; empty for nothing.
fn reception(contact: &ContactPage<'_>) -> String {
    let changes = &contact.course.changes.first;
    let turns = changes.iter().filter(|change| change.kind == ChangeKind::Inverted).count() as u64;
    let mut parts = Vec::new();
    for (count, what) in [
        (contact.stats.sync.losses, "lock was lost"),
        (contact.stats.sync.slips, "bits slipped"),
        (turns, "the polarity became inverted"),
    ] {
        match count {
            0 => {}
            1 => parts.push(format!("{what} once")),
            2 => parts.push(format!("{what} twice")),
            _ => parts.push(format!("{what} {} times", grouped(count))),
        }
    }
    let text = parts.join(", ");
    let mut chars = text.chars();
    chars
        .next()
        .map_or(String::new(), |first| format!(" {}{}.", first.to_uppercase(), chars.as_str()))
}

/// Frames missing of all spacecraft, and in how many virtual channels.
pub fn missing(report: &FileReport) -> (u64, usize) {
    let others = report.other_spacecraft.iter().flat_map(|other| other.vcids.values());
    let incomplete = report.vcids.values().chain(others).map(|channel| channel.missing_frames);
    incomplete
        .filter(|missing| *missing > 0)
        .fold((0, 0), |(sum, count), missing| (sum + missing, count + 1))
}
