//! The tables of a contact.

use super::super::course::{ChangeKind, InputChange};
use super::bytes::is_fill;
use super::plots::name;
use super::{ContactPage, grouped, percent, shown};
use core::fmt::Write;
use skyhaul_ccsds::account::ChannelReport;
use skyhaul_ccsds::id::{Channel, Scid, Vcid};
use skyhaul_ccsds::mission::Content;
use skyhaul_lab::page::escape;
use std::collections::BTreeMap;

/// What each of several recordings gave.
pub fn inputs(contact: &ContactPage<'_>, html: &mut String) {
    if !contact.is_joined() {
        return;
    }
    html.push_str("<section>\n<h2>Recordings</h2>\n<div class=\"scroll\"><table id=\"inputs\">\n");
    let head = ["recording", "frames", "taken", "only here", "no better", "set aside"];
    row(html, "th", &[0], &head.map(str::to_owned));
    for input in contact.inputs {
        let counts = [input.frames, input.chosen, input.only_here, input.worse, input.set_aside]
            .map(grouped);
        let cells: Vec<String> = [shown(&input.file)].into_iter().chain(counts).collect();
        row(html, "td", &[0], &cells);
    }
    html.push_str("</table></div>\n</section>\n");
}

/// Virtual channels of all spacecraft, with their quality.
pub fn channels(contact: &ContactPage<'_>, html: &mut String) {
    html.push_str(
        "<section>\n<h2>Virtual channels</h2>\n<div class=\"scroll\"><table id=\"channels\">\n",
    );
    row(
        html,
        "th",
        WORDS_OF_CHANNELS,
        &[
            "channel",
            "carries",
            "frames",
            "share",
            "missing",
            "gaps",
            "corrected",
            "symbols",
            "packets",
            "bytes",
            "quality",
        ]
        .map(str::to_owned),
    );
    let report = contact.report;
    let whole = report.good_frames;
    if let Some(scid) = report.scid {
        rows_of(contact, scid, &report.vcids, whole, html);
    }
    for other in &report.other_spacecraft {
        rows_of(contact, other.scid, &other.vcids, whole, html);
    }
    html.push_str("</table></div>\n</section>\n");
}

fn rows_of(
    contact: &ContactPage<'_>,
    scid: Scid,
    vcids: &BTreeMap<u8, ChannelReport>,
    whole: u64,
    html: &mut String,
) {
    for (number, counts) in vcids {
        let Some(vcid) = Vcid::new(*number) else { continue };
        let channel = Channel { scid, vcid };
        let course = contact.course.channels.get(&channel).copied().unwrap_or_default();
        let carries = match (is_fill(contact, *number), counts.packets) {
            (true, _) => "fill",
            (false, 0) if contact.mission.content(vcid) == Content::Opaque => "not checked",
            (false, 0) => "no whole packet",
            (false, _) => "packets",
        };
        let (class, quality) = quality(counts);
        let cells = [
            name(channel, contact),
            carries.to_owned(),
            grouped(counts.good_frames),
            percent(counts.good_frames, whole),
            grouped(counts.missing_frames),
            grouped(course.gaps),
            grouped(course.corrected_frames),
            grouped(course.corrected_symbols),
            grouped(counts.packets),
            grouped(counts.bytes),
        ];
        html.push_str("<tr>");
        for (column, cell) in cells.iter().enumerate() {
            let class = if WORDS_OF_CHANNELS.contains(&column) { " class=\"word\"" } else { "" };
            let _ = write!(html, "<td{class}>{}</td>", escape(cell));
        }
        let _ = writeln!(html, "<td class=\"word {class}\">{}</td></tr>", escape(&quality));
    }
}

/// Style and words.
fn quality(counts: &ChannelReport) -> (&'static str, String) {
    let impossible = match counts.impossible_packets {
        0 => String::new(),
        1 => ", 1 packet header invalid".to_owned(),
        headers => format!(", {} packet headers invalid", grouped(headers)),
    };
    let resets = match counts.resets {
        0 => String::new(),
        1 => ", count reset once".to_owned(),
        resets => format!(", count reset {} times", grouped(resets)),
    };
    let odd = format!("{resets}{impossible}");
    match counts.missing_frames {
        0 if odd.is_empty() => ("pass", "complete".to_owned()),
        0 => ("warn", format!("complete{odd}")),
        missing => {
            ("fail", format!("{} missing{odd}", percent(missing, missing + counts.good_frames)))
        }
    }
}

/// Applications: their packets, the largest first where there are too many to print.
pub fn applications(contact: &ContactPage<'_>, html: &mut String) {
    let applications = &contact.course.applications;
    let mut all: Vec<_> = applications.counts().collect();
    let of_all = all.len();
    if of_all > MOST_APPLICATIONS {
        all.sort_by_key(|(_, _, counts)| core::cmp::Reverse(counts.packets));
        all.truncate(MOST_APPLICATIONS);
        all.sort_by_key(|(channel, apid, _)| (*channel, *apid));
    }
    html.push_str("<section>\n<h2>Applications</h2>\n");
    if all.is_empty() {
        html.push_str("<p class=\"quiet\">No packet is whole.</p>\n</section>\n");
        return;
    }
    if of_all > all.len() {
        let _ = writeln!(
            html,
            "<p class=\"quiet\">{} of {}, those with the most packets; skyhaul decode --json has \
            all.</p>",
            all.len(),
            grouped(of_all as u64)
        );
    }
    html.push_str("<div class=\"columns\" id=\"applications\">\n");
    for part in all.chunks(all.len().div_ceil(2).max(FEWEST_IN_COLUMN)) {
        html.push_str("<div class=\"scroll\"><table>\n");
        row(
            html,
            "th",
            &[1, 5],
            &["APID", "channel", "packets", "bytes", "missing", "product"].map(str::to_owned),
        );
        for (channel, apid, counts) in part {
            let is_idle = *apid == skyhaul_ccsds::id::Apid::IDLE;
            let product = if is_idle {
                "(idle)"
            } else {
                applications.product(*channel, *apid).unwrap_or("")
            };
            row(
                html,
                "td",
                &[1, 5],
                &[
                    apid.value().to_string(),
                    name(*channel, contact),
                    grouped(counts.packets),
                    grouped(counts.bytes),
                    if is_idle { String::new() } else { grouped(counts.missing) },
                    product.to_owned(),
                ],
            );
        }
        html.push_str("</table></div>\n");
    }
    html.push_str("</div>\n</section>\n");
}

/// What happened to the bits, in order.
pub fn changes(contact: &ContactPage<'_>, html: &mut String) {
    let course = &contact.course.changes;
    let mut all: Vec<&InputChange> = contact.lock.first.iter().chain(&course.first).collect();
    all.sort_by_key(|change| change.position);
    html.push_str("<section>\n<h2>Lock, slips, polarity</h2>\n");
    if all.is_empty() {
        html.push_str("<p class=\"quiet\">Bare frames do not show these.</p>\n</section>\n");
        return;
    }
    html.push_str("<table id=\"changes\">\n");
    row(html, "th", &[1], &["byte", "what happened"].map(str::to_owned));
    for change in all.iter().take(MOST_CHANGES) {
        row(html, "td", &[1], &[grouped(change.position.byte()), told(change.kind)]);
    }
    html.push_str("</table>\n");
    let left = all.len().saturating_sub(MOST_CHANGES) as u64 + course.more + contact.lock.more;
    if left > 0 {
        let _ = writeln!(html, "<p class=\"quiet\">and {} more</p>", grouped(left));
    }
    html.push_str("</section>\n");
}

fn told(kind: ChangeKind) -> String {
    match kind {
        ChangeKind::Locked => "in lock from here on".to_owned(),
        ChangeKind::LockLost => "lock lost".to_owned(),
        ChangeKind::Slip(bits) if bits < 0 => {
            format!("slip: marker {} bits early", bits.unsigned_abs())
        }
        ChangeKind::Slip(bits) => format!("slip: marker {bits} bits late"),
        ChangeKind::Inverted => "inverted from here on".to_owned(),
        ChangeKind::Upright => "upright again".to_owned(),
    }
}

/// The greatest gaps.
pub fn gaps(contact: &ContactPage<'_>, html: &mut String) {
    let gaps = &contact.course.gaps;
    html.push_str("<section>\n<h2>Greatest gaps</h2>\n");
    if gaps.is_empty() {
        html.push_str("<p class=\"quiet\">No frame is missing.</p>\n</section>\n");
        return;
    }
    html.push_str("<table id=\"gaps\">\n");
    row(html, "th", &[1], &["missing", "channel", "before byte"].map(str::to_owned));
    for gap in gaps {
        let cells =
            [grouped(gap.missing), name(gap.channel, contact), grouped(gap.position.byte())];
        row(html, "td", &[1], &cells);
    }
    html.push_str("</table>\n");
    let all: u64 = contact.course.channels.values().map(|channel| channel.gaps).sum();
    let left = all.saturating_sub(gaps.len() as u64);
    if left > 0 {
        let _ = writeln!(
            html,
            "<p class=\"quiet\">and {} more, none of them larger</p>",
            grouped(left)
        );
    }
    html.push_str("</section>\n");
}

/// By place of the codeword in its block: one that is worse than the others points to the receiver.
pub fn codewords(contact: &ContactPage<'_>, html: &mut String) {
    if !contact.is_checked() {
        return;
    }
    html.push_str("<section>\n<h2>Codewords</h2>\n<table id=\"codewords\">\n");
    row(html, "th", &[], &["in block", "corrected", "symbols", "lost"].map(str::to_owned));
    for (index, counts) in contact.course.codewords.iter().enumerate() {
        let cells = [index as u64 + 1, counts.corrected, counts.symbols, counts.lost].map(grouped);
        row(html, "td", &[], &cells);
    }
    html.push_str("</table>\n</section>\n");
}

/// A row of cells; those of `words` hold words, the others figures.
fn row(html: &mut String, tag: &str, words: &[usize], cells: &[String]) {
    html.push_str("<tr>");
    for (column, cell) in cells.iter().enumerate() {
        let class = if words.contains(&column) { " class=\"word\"" } else { "" };
        let _ = write!(html, "<{tag}{class}>{}</{tag}>", escape(cell));
    }
    html.push_str("</tr>\n");
}

/// Columns of the channels' table that hold words.
const WORDS_OF_CHANNELS: &[usize] = &[0, 1, 10];
/// Applications that are listed: what fits on the second page.
const MOST_APPLICATIONS: usize = 80;
/// Fewer stand in one column.
const FEWEST_IN_COLUMN: usize = 6;
/// Changes that are listed.
const MOST_CHANGES: usize = 10;
