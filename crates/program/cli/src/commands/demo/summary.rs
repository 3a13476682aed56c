//! The result of a demonstration in words and tables.

use super::contact_row::ContactRow;
use super::report::Report;
use skyhaul_node::latency::LatencySummary;
use skyhaul_units::{Probability, Rate};
use std::io::{self, Write};

/// Writes the whole summary.
///
/// # Errors
/// The output takes no more.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for contact in &report.contacts {
        write_contact(contact, out)?;
    }
    write_products(report, out)?;
    write_latency(report, out)?;
    write_backup(report, out)?;
    write_deliveries(report, out)?;
    write_line(report, out)?;
    write_verdict(report, out)
}

fn write_contact(contact: &ContactRow, out: &mut dyn Write) -> io::Result<()> {
    let spacecraft = contact.scid.map_or(String::new(), |scid| format!(", spacecraft {scid}"));
    writeln!(out, "\n{}: {}{spacecraft}", contact.input, contact.mission)?;
    writeln!(
        out,
        "  frames   {} captured, {} delivered, {} missing by their counters; {} corrected, {} \
        uncorrectable",
        contact.frames.captured,
        contact.frames.delivered,
        contact.frames.missing,
        contact.frames.corrected,
        contact.frames.set_aside
    )?;
    writeln!(
        out,
        "           {} codewords corrected ({} symbols), {} uncorrectable",
        contact.frames.corrected_codewords,
        contact.frames.corrected_symbols,
        contact.frames.uncorrectable_codewords
    )?;
    writeln!(out, "  channel  {:>8} {:>9} {:>9}", "frames", "missing", "packets")?;
    for (vcid, channel) in &contact.channels {
        let fill = if *vcid == FILL { "  fill frames" } else { "" };
        writeln!(
            out,
            "  {vcid:>7}  {:>8} {:>9} {:>9}{fill}",
            channel.frames, channel.missing, channel.packets
        )?;
    }
    let apids = contact.packets.apids.iter().map(|(apid, packets)| match packets.set_aside {
        0 => format!("{apid}: {}", packets.delivered),
        aside if packets.delivered == 0 => format!("{apid}: {aside} set aside"),
        aside => format!("{apid}: {} and {aside} set aside", packets.delivered),
    });
    write_wrapped("  APIDs    ", &apids.collect::<Vec<_>>(), out)?;
    if contact.packets.aside_reasons.is_empty() {
        return Ok(());
    }
    let reasons = contact.packets.aside_reasons.iter().map(|(reason, packets)| {
        let meaning = ASIDE
            .iter()
            .find(|(known, _)| known == reason)
            .map_or(&reason[..], |(_, meaning)| meaning);
        format!("{packets} {meaning}")
    });
    write_wrapped("  aside    ", &reasons.collect::<Vec<_>>(), out)
}

/// Writes items behind a heading, wrapped at the width of a page.
fn write_wrapped(heading: &str, items: &[String], out: &mut dyn Write) -> io::Result<()> {
    let mut line = heading.to_owned();
    for (index, item) in items.iter().enumerate() {
        let comma = if index + 1 < items.len() { ", " } else { "" };
        if line.len() + item.len() + comma.len() > WIDTH {
            writeln!(out, "{}", line.trim_end())?;
            line = " ".repeat(heading.len());
        }
        line += item;
        line += comma;
    }
    writeln!(out, "{}", line.trim_end())
}

fn write_products(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nproducts")?;
    for product in &report.products {
        let gaps = if product.gaps == 1 { "gap" } else { "gaps" };
        writeln!(
            out,
            "  {} {}: {} packets, {} {gaps}",
            product.mission, product.product, product.packets, product.gaps
        )?;
        writeln!(out, "    {}", product.path)?;
        writeln!(out, "    SHA-256 {}", product.sha256)?;
    }
    Ok(())
}

fn write_latency(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nlatency of a frame, milliseconds")?;
    writeln!(out, "  {:<8} {:>8} {:>8} {:>8} {:>8}", "", "min", "median", "99 %", "max")?;
    for (stage, meaning) in STAGES {
        let Some(LatencySummary { min, p50, p99, max, .. }) = report.latency_s.get(*stage) else {
            continue;
        };
        let [min, p50, p99, max] = [min, p50, p99, max].map(|seconds| seconds * 1e3);
        writeln!(out, "  {stage:<8} {min:>8.1} {p50:>8.1} {p99:>8.1} {max:>8.1}  {meaning}")?;
    }
    if let Some(seconds) = report.last_bit_to_product_s {
        writeln!(
            out,
            "  last bit of a pass at the station to its products at the centre: {seconds:.2} s"
        )?;
    }
    Ok(())
}

fn write_backup(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let backup = &report.backup;
    writeln!(
        out,
        "\nbackup centre\n  killed {:.1} s after the first bit, started again at {:.1} s; {} \
        of its {} products are identical to those of the operational centre",
        backup.killed_s, backup.back_s, backup.identical, backup.products
    )
}

fn write_deliveries(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\ndeliveries of products")?;
    for (name, states) in &report.deliveries.destinations {
        let states = states.iter().map(|(state, count)| format!("{count} {state}"));
        writeln!(out, "  {name:<13} {}", states.collect::<Vec<_>>().join(", "))?;
    }
    report.deliveries.absent.iter().try_for_each(|what| writeln!(out, "  {what}"))?;
    match &report.deliveries.page {
        Some(page) => writeln!(out, "  what was on time, and how long each element took: {page}"),
        None => Ok(()),
    }
}

fn write_line(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let line = &report.line;
    writeln!(
        out,
        "\nline\n  {} with {:.0} ms round trip; of {} packets to the centre {} were lost ({:.2} \
        %), {} symbols sent again",
        Rate::from_bps(line.rate_bps),
        line.rtt_s * 1e3,
        line.packets,
        line.lost,
        Probability::of(line.lost, line.packets).as_f64() * 1e2,
        line.symbols_repeated
    )?;
    if line.lost_elsewhere > 0 {
        writeln!(
            out,
            "  {} datagrams more were lost by this machine or the line's queue",
            line.lost_elsewhere
        )?;
    }
    let percent = Probability::of(report.rates.goodput_bps, report.rates.limit_bps).as_f64() * 1e2;
    writeln!(
        out,
        "  goodput {} of at most {}, which is {percent:.1} %",
        mega(report.rates.goodput_bps),
        mega(report.rates.limit_bps)
    )?;
    if report.rates.offered_bps < report.rates.limit_bps {
        let share =
            Probability::of(report.rates.goodput_bps, report.rates.offered_bps).as_f64() * 1e2;
        writeln!(
            out,
            "  the passes offered {}, which does not fill the line; {share:.1} % of that rate went \
            across, delay included",
            mega(report.rates.offered_bps)
        )?;
    }
    writeln!(
        out,
        "  {:.1} MB of {:.1} MB captured were not sent: markers, check symbols, and what \
        compression saved",
        report.bytes_saved as f64 / 1e6,
        report.contacts.iter().map(|contact| contact.bytes_captured).sum::<u64>() as f64 / 1e6
    )?;
    let [station, centre, limit] =
        [report.rss_bytes.station, report.rss_bytes.centre, report.rss_limit_bytes]
            .map(|bytes| bytes / 1_000_000);
    writeln!(
        out,
        "  memory at the most: station {station} MB, centre {centre} MB, of {limit} MB allowed"
    )
}

fn write_verdict(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let frames: u64 = report.contacts.iter().map(|contact| contact.frames.delivered).sum();
    let packets: u64 = report.products.iter().map(|product| product.packets).sum();
    if report.ok {
        let contacts = report.contacts.len();
        return writeln!(
            out,
            "\nevery frame arrived at both centres as captured: {frames} frames of {contacts} \
            contacts, {packets} packets in {} products",
            report.products.len()
        );
    }
    writeln!(out, "\ndifferences from the capture:")?;
    report
        .differences
        .iter()
        .take(MOST_SENTENCES)
        .try_for_each(|sentence| writeln!(out, "  {sentence}"))?;
    match report.differences.len().saturating_sub(MOST_SENTENCES) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more; --json lists all"),
    }
}

fn mega(bps: u64) -> String {
    let tenths = Rate::from_bps(bps).scaled(10, 1_000_000).as_bps();
    format!("{}.{} Mbit/s", tenths / 10, tenths % 10)
}

/// The stages of a frame's way in their order.
const STAGES: &[(&str, &str)] = &[
    ("capture", "from its last bit until its block is closed"),
    ("spool", "until it is on the station's disk and read for sending"),
    ("queue", "until the first symbol is on the line"),
    ("line", "until the last symbol that was sent only once has arrived"),
    ("repair", "until lost symbols and all earlier blocks have arrived too"),
    ("store", "until it is on the centre's disk"),
    ("total", "from its last bit to the centre's disk"),
    ("level0", "from there until its packets are in order"),
];

/// Why packets are set aside; they are kept with their bytes beside the product.
const ASIDE: &[(&str, &str)] = &[
    ("impossible_time", "with an invalid time code"),
    ("clock_jump", "with a time that is years from the times of the others"),
    ("no_time", "without a time: the first packet of their group was before the recording"),
    ("group_set_aside", "in a group that begins with a packet set aside"),
    ("differs", "that differ from another of the same time, application and count"),
    ("not_a_space_packet", "that are not space packets"),
];

/// Fill frames have a virtual channel of their own (CCSDS 732.0-B-4 4.1.2.3).
const FILL: u8 = 63;
const WIDTH: usize = 110;
const MOST_SENTENCES: usize = 40;
