//! The bytes of a file by kind, and those that a station does not send.

use super::plots::{FigureWidth, figure};
use super::{ContactPage, grouped, percent, size};
use core::fmt::Write;
use skyhaul_ccsds::mission::Content;
use skyhaul_lab::page::{Chart, escape};

/// Bytes of a kind.
struct Part {
    key: &'static str,
    name: &'static str,
    class: &'static str,
    bytes: u64,
}

/// A drawing and a table of what the bytes are.
pub fn figure_of(contact: &ContactPage<'_>) -> String {
    let parts = parts(contact);
    let whole: u64 = parts.iter().map(|part| part.bytes).sum();
    let mut chart = Chart::new("What the bytes of the file are", HEIGHT).with_width(WIDTH);
    let mut from = 0;
    for part in &parts {
        let to = from + part.bytes;
        let at = |bytes: u64| (WIDTH - 2.0).mul_add(bytes as f64 / whole.max(1) as f64, 1.0);
        let words = format!("{}: {}", part.name, size(part.bytes));
        chart.block([(at(from), 4.0), (at(to), HEIGHT - 4.0)], (part.class, 0.85), &words);
        from = to;
    }
    let mut table = String::from("<table id=\"bytes\">\n");
    for part in &parts {
        let _ = writeln!(
            table,
            "<tr><td class=\"word\"><svg class=\"key\" viewBox=\"0 0 12 12\"><rect class=\"{}\" \
            x=\"0\" y=\"0\" width=\"12\" \
             height=\"12\" fill-opacity=\"0.85\"/></svg>{}</td><td \
             id=\"bytes-{}\">{}</td><td>{}</td></tr>",
            part.class,
            escape(part.name),
            part.key,
            grouped(part.bytes),
            percent(part.bytes, whole)
        );
    }
    table.push_str("</table>\n");
    let off_the_line: u64 =
        parts.iter().filter(|part| OFF_THE_LINE.contains(&part.key)).map(|part| part.bytes).sum();
    let words = match off_the_line {
        0 => String::new(),
        bytes => format!(
            "<p id=\"off-the-line\" class=\"quiet\">A station does not send the markers and check \
            symbols, {} of the bytes. Its status shows what compression saves in addition.</p>",
            percent(bytes, whole)
        ),
    };
    figure(
        "bytes",
        FigureWidth::Column,
        "What the bytes of the file are",
        &format!("{}{table}{words}", chart.finish()),
        &[],
    )
}

fn parts(contact: &ContactPage<'_>) -> Vec<Part> {
    let (report, mission, sync) = (contact.report, contact.mission, contact.stats.sync);
    let frames = (report.good_frames + report.uncorrectable_frames).max(1);
    let frame_len = match mission.frame().is_variable() {
        true => sync.bits.saturating_sub(sync.skipped_bits + sync.dropped_bits) / 8 / frames,
        false => mission.frame().length as u64,
    };
    let (marker_len, check_len) = match contact.is_bare() {
        true => (0, 0),
        false => (
            mission.coding().marker.len() as u64,
            (mission.block_len() as u64).saturating_sub(frame_len),
        ),
    };
    let others = report.other_spacecraft.iter().flat_map(|other| &other.vcids);
    let channels = || report.vcids.iter().chain(others.clone());
    let fill_frames: u64 = channels()
        .filter(|(vcid, _)| is_fill(contact, **vcid))
        .map(|(_, channel)| channel.good_frames)
        .sum();
    let packets: u64 = channels().map(|(_, channel)| channel.bytes).sum();
    let idle = contact.course.applications.idle_bytes;
    let fill = fill_frames * frame_len;
    let rest = (report.good_frames * frame_len).saturating_sub(fill + packets);
    let part = |key, name, class, bytes| Part { key, name, class, bytes };
    vec![
        part("packets", "packets", "good", packets.saturating_sub(idle)),
        part("idle", "idle packets", "idle", idle),
        part("fill", "fill frames", "fill", fill),
        part("headers", "frame headers, parts of packets", "rest", rest),
        part("check", "check symbols", "check", report.good_frames * check_len),
        part("markers", "markers", "marker", report.cadus * marker_len),
        part(
            "set-aside",
            "frames set aside",
            "lost",
            report.uncorrectable_frames * (frame_len + check_len),
        ),
        part("outside", "in no frame", "warned", (sync.skipped_bits + sync.dropped_bits) / 8),
    ]
}

/// Whether a channel carries nothing but fill.
pub fn is_fill(contact: &ContactPage<'_>, vcid: u8) -> bool {
    skyhaul_ccsds::id::Vcid::new(vcid)
        .is_some_and(|vcid| contact.mission.content(vcid) == Content::Idle)
}

/// Keys of what a station leaves off its line whatever it packs.
const OFF_THE_LINE: [&str; 2] = ["check", "markers"];
const WIDTH: f64 = 505.0;
const HEIGHT: f64 = 34.0;
