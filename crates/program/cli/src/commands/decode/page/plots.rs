//! The drawings of a contact, over the position in the file.

use super::super::course::{ChangeKind, LOST, TimelineBin};
use super::{ContactPage, grouped, unit};
use core::fmt::Write;
use core::ops::Range;
use skyhaul_ccsds::id::Channel;
use skyhaul_lab::page::{Chart, HEIGHT, Scale, escape, stroke};
use std::collections::BTreeMap;

/// The level axis of a drawing: places in the file.
struct Places {
    scale: Scale,
    /// Bits in the axis's unit.
    unit_bits: f64,
    name: String,
}

impl Places {
    fn of(contact: &ContactPage<'_>) -> Self {
        let (factor, unit) = unit(contact.bits() / 8);
        let unit_bits = 8.0 * factor as f64;
        let scale = Scale::up_to(contact.bits() as f64 / unit_bits);
        let place =
            if contact.is_joined() { "frames taken, in sequence" } else { "place in the file" };
        Self { scale, unit_bits, name: format!("{place}, {unit}") }
    }

    /// From zero to one.
    fn at(&self, bits: u64) -> f64 {
        self.scale.place(bits as f64 / self.unit_bits)
    }

    fn draw(&self, chart: &mut Chart) {
        chart.level(&self.scale, &self.name);
    }
}

/// A place as words.
pub fn place(bits: u64) -> String {
    format!("byte {}", grouped(bits / 8))
}

/// A dashed line at each bit slip.
fn mark_slips(rows: &mut Rows, contact: &ContactPage<'_>) {
    let slips = contact.course.changes.first.iter().filter_map(|change| match change.kind {
        ChangeKind::Slip(bits) => Some((change.position.as_bits(), bits)),
        _ => None,
    });
    let slips: Vec<(u64, i8)> = slips.collect();
    for (position, bits) in &slips {
        let words = format!("{}: slip of {bits:+} bits", place(*position));
        let label = if slips.len() > MOST_LABELS { String::new() } else { format!("{bits:+}") };
        rows.slip(*position, &words, &label);
    }
}

/// Lock, markers, polarity and frames set aside.
pub fn lock(contact: &ContactPage<'_>) -> String {
    let labels = ["lock", "marker", "polarity", "frames"].map(str::to_owned);
    let mut rows = Rows::new("Lock over the file", &labels, contact);
    if contact.is_bare() {
        rows.span(
            0,
            0..contact.bits(),
            NO_LOCK,
            "bare frames: the program that wrote them had \
                                                 lock",
        );
    }
    if contact.is_joined() && !contact.is_bare() {
        rows.span(0, 0..contact.bits(), NO_LOCK, "several recordings, each with its own lock");
    }
    for (from, to) in locked(contact) {
        rows.span(0, from..to, GOOD, &format!("in lock from {} to {}", place(from), place(to)));
    }
    let (bins, width) = contact.course.timeline.bins(WIDE_BINS);
    for (index, bin) in bins.iter().enumerate().filter(|(_, bin)| bin.frames > 0) {
        let from = index as u64 * width;
        let stretch = from..(from + width).min(contact.bits());
        let of = |count: u64, what: &str| {
            format!("{}: {} of {} frames {what}", place(from), grouped(count), grouped(bin.frames))
        };
        let mut mark = |row: usize, count: u64, class: &str, what: &str| {
            if count > 0 && class == "good" {
                rows.span(row, stretch.clone(), GOOD, &of(count, what));
            } else if count > 0 {
                let share = Share { class, below: 0, part: count, whole: bin.frames };
                rows.share(row, stretch.clone(), share, &of(count, what));
            }
        };
        if !contact.is_bare() {
            mark(1, bin.frames - bin.flywheel.min(bin.frames), "good", "with their marker");
            mark(1, bin.flywheel, "lost", "without a marker");
            mark(2, bin.frames - bin.inverted.min(bin.frames), "good", "upright");
            mark(2, bin.inverted, "warned", "inverted");
        }
        mark(3, bin.frames - bin.set_aside.min(bin.frames), "good", "good");
        mark(3, bin.set_aside, "lost", "set aside");
        if !contact.is_bare() && bin.marker_errors > 0 {
            let share = Share {
                class: "warned",
                below: bin.flywheel,
                part: bin.marker_errors,
                whole: bin.frames,
            };
            let words = of(bin.marker_errors, "with wrong bits in the marker");
            rows.share(1, stretch.clone(), share, &words);
        }
    }
    mark_slips(&mut rows, contact);
    let legend = [
        ("good", "correct"),
        ("warned", "wrong bits in the marker; inverted"),
        ("lost", "no marker found; set aside"),
    ];
    figure(
        "lock",
        FigureWidth::Page,
        "Lock, markers, polarity and frames; the height of a colour is its share; dashed lines: \
        bit slips",
        &rows.finish(),
        &legend,
    )
}

/// Frames missing, by virtual channel.
pub fn gaps(contact: &ContactPage<'_>) -> String {
    let total = contact.course.timeline.total();
    let mut order: Vec<Channel> = total.channels.keys().copied().collect();
    if order.len() > MOST_ROWS {
        order.sort_by_key(|channel| {
            let part = total.channels[channel];
            core::cmp::Reverse((part.missing, part.frames))
        });
        order.truncate(MOST_ROWS);
        order.sort();
    }
    let labels: Vec<String> = order.iter().map(|channel| name(*channel, contact)).collect();
    let mut rows = Rows::new("Missing frames by virtual channel", &labels, contact);
    let (bins, width) = contact.course.timeline.bins(WIDE_BINS);
    for (index, bin) in bins.iter().enumerate() {
        let from = index as u64 * width;
        let stretch = from..(from + width).min(contact.bits());
        for (row, channel) in order.iter().enumerate() {
            let Some(part) = bin.channels.get(channel) else { continue };
            let words = |count: u64, what: &str| {
                format!("{}, {}: {} frames {what}", labels[row], place(from), grouped(count))
            };
            if part.frames > 0 {
                rows.span(row, stretch.clone(), GOOD, &words(part.frames, "came"));
            }
            if part.missing > 0 {
                let share = Share {
                    class: "lost",
                    below: 0,
                    part: part.missing,
                    whole: part.missing + part.frames,
                };
                rows.share(row, stretch.clone(), share, &words(part.missing, "missing"));
            }
        }
    }
    let left = total.channels.len() - order.len();
    let caption = match left {
        0 => "Gaps: share of frames missing, by virtual channel".to_owned(),
        _ => format!(
            "Gaps: share of frames missing, by virtual channel ({left} more are in the table only)"
        ),
    };
    let legend = [("good", "frames came"), ("lost", "frames missing before these")];
    figure("gaps", FigureWidth::Page, &caption, &rows.finish(), &legend)
}

/// How many symbols were corrected in codewords, over the file.
pub fn corrected(contact: &ContactPage<'_>) -> String {
    let most = most_corrected(contact);
    let rows = most + 2;
    let title = "Symbols corrected in each codeword, over the file";
    let mut chart = Chart::new(title, HEIGHT).with_width(HALF);
    let places = Places::of(contact);
    places.draw(&mut chart);
    let height = 1.0 / rows as f64;
    let (bins, width) = contact.course.timeline.bins(HALF_BINS);
    for row in (0..rows).filter(|row| row % 4 == 0 || *row == most + 1) {
        let (left, y) = chart.at(0.0, (row as f64 + 0.5) * height);
        let label = if row > most { "lost".to_owned() } else { row.to_string() };
        chart.text((left - 8.0, y + 5.0), "end", &label);
    }
    chart.text((8.0, 15.0), "start", "symbols corrected in a codeword");
    for (index, bin) in bins.iter().enumerate() {
        let codewords: u64 = bin.symbols.iter().sum();
        let from = index as u64 * width;
        let (left, right) = (places.at(from), places.at(from + width));
        for (symbols, count) in
            rows_of(bin, most).into_iter().enumerate().filter(|(_, count)| *count > 0)
        {
            let bottom = symbols as f64 * height;
            let corners = [chart.at(left, bottom + height), chart.at(right, bottom)];
            let what = if symbols > most {
                "not corrected".to_owned()
            } else {
                format!("{symbols} symbols")
            };
            let words =
                format!("{}: {what} in {} of {codewords} codewords", place(from), grouped(count));
            chart.block(corners, (class_of(symbols, most), strength(count, codewords)), &words);
        }
    }
    chart.frame();
    figure("corrected", FigureWidth::Column, title, &chart.finish(), &[])
}

/// How many codewords had how many symbols corrected.
pub fn histogram(contact: &ContactPage<'_>) -> String {
    let most = most_corrected(contact);
    let counts = rows_of(&contact.course.timeline.total(), most);
    let title = "Codewords by symbols corrected in them";
    let labels: Vec<String> =
        (0..=most).map(|symbols| symbols.to_string()).chain(["lost".to_owned()]).collect();
    let mut chart = Chart::new(title, HEIGHT).with_width(HALF).with_words_left(&[]);
    chart.words(&labels, "symbols corrected in a codeword (heights logarithmic)");
    // A single codeword must be visible beside millions.
    let level = |count: u64| (1.0 + count as f64).ln();
    let full = counts.iter().copied().map(level).fold(1.0, f64::max) * HEADROOM;
    let slot = 1.0 / counts.len() as f64;
    for (symbols, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let left = symbols as f64 * slot;
        let top = level(*count) / full;
        let corners = [chart.at(left + 0.1 * slot, top), chart.at(left + 0.9 * slot, 0.0)];
        let what =
            if symbols > most { "not corrected".to_owned() } else { format!("{symbols} symbols") };
        let words = format!("{what}: {} codewords", grouped(*count));
        chart.block(corners, (class_of(symbols, most), 0.8), &words);
        let (x, y) = chart.at(left + 0.5 * slot, top);
        chart.text((x, y - 4.0), "middle", &short(*count));
    }
    chart.frame();
    figure("histogram", FigureWidth::Column, title, &chart.finish(), &[])
}

/// Packets that became whole, over the file.
pub fn packets(contact: &ContactPage<'_>) -> String {
    let (bins, width) = contact.course.timeline.bins(HALF_BINS);
    let mut totals: BTreeMap<Channel, u64> = BTreeMap::new();
    for (channel, part) in bins.iter().flat_map(|bin| &bin.channels) {
        *totals.entry(*channel).or_default() += part.packets;
    }
    let mut order: Vec<(Channel, u64)> =
        totals.into_iter().filter(|(_, packets)| *packets > 0).collect();
    order.sort_by_key(|(_, packets)| core::cmp::Reverse(*packets));
    order.truncate(MOST_LINES);
    let (per, name_of_unit) = unit(contact.bits() / 8);
    let rate = |packets: u64| packets as f64 * 8.0 * per as f64 / width.max(1) as f64;
    let packets_in = |bin: &TimelineBin, channel: &Channel| {
        bin.channels.get(channel).map_or(0, |part| part.packets)
    };
    let rates =
        bins.iter().flat_map(|bin| order.iter().map(|(channel, _)| rate(packets_in(bin, channel))));
    let upright = Scale::even([0.0].into_iter().chain(rates));
    let title = "Packets over the file";
    let mut chart = Chart::new(title, HEIGHT).with_width(HALF);
    let places = Places::of(contact);
    chart.upright(&upright, &format!("packets in each {name_of_unit} of the file"));
    places.draw(&mut chart);
    chart.frame();
    let mut legend = String::new();
    for (number, (channel, _)) in order.iter().enumerate() {
        let middles = bins.iter().enumerate().map(|(index, bin)| {
            let from = index as u64 * width;
            let middle = from + (width / 2).min(contact.bits().saturating_sub(from) / 2);
            chart.at(places.at(middle), upright.place(rate(packets_in(bin, channel))))
        });
        let points: Vec<_> = middles.collect();
        chart.course(&points, number);
        let line = format!(
            "<line class=\"course\" {} x1=\"0\" y1=\"4\" x2=\"22\" y2=\"4\"/>",
            stroke(number)
        );
        let name = escape(&name(*channel, contact));
        let _ = write!(legend, "<li><svg viewBox=\"0 0 22 8\">{line}</svg>{name}</li>");
    }
    let legend =
        if legend.is_empty() { legend } else { format!("<ul class=\"legend\">{legend}</ul>") };
    let svg = chart.finish();
    format!("<figure id=\"packets-plot\"><figcaption>{title}</figcaption>{svg}{legend}</figure>\n")
}

/// A virtual channel's name on the page: without the spacecraft where it is the only one.
pub fn name(channel: Channel, contact: &ContactPage<'_>) -> String {
    match Some(channel.scid) == contact.report.scid {
        true => format!("VC {}", channel.vcid.value()),
        false => format!("{} / VC {}", channel.scid.value(), channel.vcid.value()),
    }
}

/// The width of a drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureWidth {
    /// All of the page.
    Page,
    /// One of two columns.
    Column,
}

/// A drawing with its caption and legend.
pub fn figure(
    id: &str,
    width: FigureWidth,
    caption: &str,
    svg: &str,
    legend: &[(&str, &str)],
) -> String {
    let class = match width {
        FigureWidth::Page => " class=\"wide\"",
        FigureWidth::Column => "",
    };
    let mut html = format!(
        "<figure id=\"{id}-plot\"{class}><figcaption>{}</figcaption>{svg}",
        escape(caption)
    );
    if !legend.is_empty() {
        html.push_str("<ul class=\"legend\">");
        for (class, meaning) in legend {
            let _ = write!(
                html,
                "<li><svg viewBox=\"0 0 22 8\"><rect class=\"{class}\" x=\"0\" y=\"0\" \
                width=\"22\" height=\"8\"/></svg>{}</li>",
                escape(meaning)
            );
        }
        html.push_str("</ul>");
    }
    html.push_str("</figure>\n");
    html
}

/// How a block of a row is filled.
#[derive(Clone, Copy)]
struct Fill<'a> {
    class: &'a str,
    opacity: f64,
}

/// A part of what a stretch has, above another part.
#[derive(Clone, Copy)]
struct Share<'a> {
    class: &'a str,
    below: u64,
    part: u64,
    whole: u64,
}

/// A drawing of rows over the file.
struct Rows {
    chart: Chart,
    places: Places,
    count: usize,
}

impl Rows {
    fn new(title: &str, labels: &[String], contact: &ContactPage<'_>) -> Self {
        let count = labels.len().max(1);
        let height = ROW_HEIGHT.mul_add(count as f64, ABOVE_AND_BELOW);
        let mut chart = Chart::new(title, height).with_width(WIDE).with_words_left(labels);
        let places = Places::of(contact);
        places.draw(&mut chart);
        for (row, label) in labels.iter().enumerate() {
            let (left, y) = chart.at(0.0, 1.0 - (row as f64 + 0.5) / count as f64);
            chart.text((left - 8.0, y + 5.0), "end", label);
        }
        chart.frame();
        Self { chart, places, count }
    }

    fn span(&mut self, row: usize, bits: Range<u64>, fill: Fill<'_>, words: &str) {
        let height = 1.0 / self.count as f64;
        let top = 1.0 - row as f64 * height;
        let (left, right) = (self.places.at(bits.start), self.places.at(bits.end));
        let corners =
            [self.chart.at(left, top - 0.12 * height), self.chart.at(right, top - 0.88 * height)];
        let [(x, y), (end, below)] = corners;
        // A short stretch of a long file must be visible.
        let seen = [(x, y), (end.max(x + THINNEST), below)];
        self.chart.block(seen, (fill.class, fill.opacity), words);
    }

    /// Draws what should not be, from the row's foot up, as high as its share.
    fn share(&mut self, row: usize, bits: Range<u64>, share: Share<'_>, words: &str) {
        let height = 1.0 / self.count as f64;
        let foot = 1.0 - (row as f64 + 0.88) * height;
        let of =
            |part: u64| foot + 0.76 * height * (part as f64 / share.whole.max(1) as f64).min(1.0);
        let (left, right) = (self.places.at(bits.start), self.places.at(bits.end));
        let corners = [
            self.chart.at(left, of(share.below.saturating_add(share.part))),
            self.chart.at(right, of(share.below)),
        ];
        let [(x, y), (end, below)] = corners;
        // One frame of thousands, and a short stretch of a long file, must be visible.
        let seen = [(x, y.min(below - LOWEST)), (end.max(x + THINNEST), below)];
        self.chart.block(seen, (share.class, LOUD), words);
    }

    fn slip(&mut self, position: u64, words: &str, label: &str) {
        let x = self.places.at(position);
        let (top, bottom) = (self.chart.at(x, 1.0), self.chart.at(x, 0.0));
        self.chart.line(top, bottom, "bar-line");
        self.chart.block([(top.0 - 2.0, top.1), (top.0 + 2.0, bottom.1)], ("none", 0.0), words);
        self.chart.text((top.0, top.1 - 5.0), "middle", label);
    }

    fn finish(self) -> String {
        self.chart.finish()
    }
}

/// Stretches in lock.
fn locked(contact: &ContactPage<'_>) -> Vec<(u64, u64)> {
    let mut stretches = Vec::new();
    let mut since = None;
    for change in &contact.lock.first {
        match (change.kind, since) {
            (ChangeKind::Locked, None) => since = Some(change.position.as_bits()),
            (ChangeKind::LockLost, Some(from)) => {
                stretches.push((from, change.position.as_bits()));
                since = None;
            }
            _ => {}
        }
    }
    if let Some(from) = since {
        stretches.push((from, contact.bits()));
    }
    stretches
}

/// Symbols of a codeword that the code corrects.
fn most_corrected(contact: &ContactPage<'_>) -> usize {
    let parameters = contact.mission.coding().reed_solomon;
    parameters.map_or(LOST - 1, |parameters| parameters.correction.symbols()).min(LOST - 1)
}

/// Codewords by symbols corrected, up to `most`, and those lost.
fn rows_of(bin: &TimelineBin, most: usize) -> Vec<u64> {
    bin.symbols[..=most].iter().copied().chain([bin.symbols[LOST]]).collect()
}

/// In the last quarter of what a code corrects, the margin of the link is thin.
const fn class_of(symbols: usize, most: usize) -> &'static str {
    if symbols > most {
        "lost"
    } else if symbols * 4 > most * 3 {
        "warned"
    } else {
        "good"
    }
}

/// How strong a share is shown: a small one is to be seen beside nothing.
fn strength(part: u64, whole: u64) -> f64 {
    (part as f64 / whole.max(1) as f64).sqrt().mul_add(0.75, 0.25)
}

/// A count in four characters.
fn short(count: u64) -> String {
    let (factor, unit) = unit(count);
    match (factor, unit) {
        (1, _) => count.to_string(),
        (_, unit) => format!("{:.0}{}", count as f64 / factor as f64, unit.get(..1).unwrap_or("")),
    }
}

/// Width of a drawing across the page.
const WIDE: f64 = 1_050.0;
/// Width of one of two beside each other.
const HALF: f64 = 505.0;
/// Most bins in them.
const WIDE_BINS: usize = 240;
/// See [`WIDE_BINS`].
const HALF_BINS: usize = 80;
/// Height of a row.
const ROW_HEIGHT: f64 = 22.0;
/// What a drawing has above and below its rows.
const ABOVE_AND_BELOW: f64 = 78.0;
/// Most rows: what fits on the first of two pages.
const MOST_ROWS: usize = 16;
/// The most lines that a reader can distinguish.
const MOST_LINES: usize = 8;
/// More slips are not labelled: the labels would cover each other.
const MOST_LABELS: usize = 12;
/// The narrowest mark.
const THINNEST: f64 = 2.0;
/// The lowest share that is drawn.
const LOWEST: f64 = 1.5;
/// How strong that is shown which is as it should be.
const QUIET: f64 = 0.35;
/// How strong that is shown which should not be.
const LOUD: f64 = 0.9;
/// A stretch that is as it should be.
const GOOD: Fill<'static> = Fill { class: "good", opacity: QUIET };
/// A stretch whose lock is not known.
const NO_LOCK: Fill<'static> = Fill { class: "none", opacity: 0.5 };
/// Room for figures above columns.
const HEADROOM: f64 = 1.1;
