//! The page about one contact: a summary for the operator, then plots and tables; two pages on
//! paper.

mod bytes;
mod plots;
mod products;
mod tables;
mod verdict;

use super::course::{Bounded, CaptureTimeline, InputChange};
use super::select::InputResult;
use core::fmt::Write;
use skyhaul_ccsds::account::FileReport;
use skyhaul_ccsds::capture::CaptureStats;
use skyhaul_ccsds::identify::InputLayout;
use skyhaul_ccsds::mission::Mission;
use skyhaul_lab::page::{REPORT_STYLE, document, escape};
use skyhaul_units::Utc;

/// The data of a contact.
#[derive(Debug)]
pub struct ContactPage<'a> {
    /// Its account.
    pub report: &'a FileReport,
    /// Notes about it.
    pub notes: &'a [String],
    /// What it was read by.
    pub mission: &'a Mission,
    /// What the file holds.
    pub format: InputLayout,
    /// The events by their position.
    pub course: &'a CaptureTimeline,
    /// Where lock was found and lost.
    pub lock: &'a Bounded<InputChange>,
    /// Counts of synchroniser and error control.
    pub stats: CaptureStats,
    /// What each of several recordings gave; none for a single file.
    pub inputs: &'a [InputResult],
}

impl ContactPage<'_> {
    /// Whether several recordings were joined.
    const fn is_joined(&self) -> bool {
        !self.inputs.is_empty()
    }

    /// Bits of the file, or of the frames taken from several.
    fn bits(&self) -> u64 {
        self.stats.sync.bits
    }

    /// Whether the file holds bare frames, found and corrected by something before.
    fn is_bare(&self) -> bool {
        self.format == InputLayout::Frames
    }

    /// Whether Reed-Solomon checked the frames.
    fn is_checked(&self) -> bool {
        self.mission.coding().reed_solomon.is_some() && !self.is_bare()
    }
}

/// The page.
pub fn page(contact: &ContactPage<'_>) -> String {
    let title = format!("Contact: {}", shown(contact.mission.title()));
    let mut body = String::new();
    head(contact, &title, &mut body);
    body.push_str("<div class=\"plots\">\n");
    body.push_str(&plots::lock(contact));
    body.push_str(&plots::gaps(contact));
    if contact.is_checked() {
        body.push_str(&plots::corrected(contact));
        body.push_str(&plots::histogram(contact));
    }
    body.push_str(&plots::packets(contact));
    body.push_str(&bytes::figure_of(contact));
    body.push_str("</div>\n");
    products::products(contact, &mut body);
    tables::channels(contact, &mut body);
    body.push_str("<div class=\"columns\">\n");
    tables::changes(contact, &mut body);
    tables::gaps(contact, &mut body);
    tables::codewords(contact, &mut body);
    body.push_str("</div>\n");
    tables::applications(contact, &mut body);
    foot(&mut body);
    document(&title, REPORT_STYLE, &body)
}

fn head(contact: &ContactPage<'_>, title: &str, html: &mut String) {
    let report = contact.report;
    let spacecraft =
        report.scid.map_or(String::new(), |scid| format!(", spacecraft {}", scid.value()));
    let (class, sentence) = verdict::verdict(contact);
    let span = match contact.course.applications.span() {
        Some((first, last)) => format!("packet times {}", span(first, last)),
        None => "no packet has a time".to_owned(),
    };
    let _ = write!(
        html,
        "<h1>{}</h1>\n<p class=\"quiet\">{}, mission {}{spacecraft}, {}; {span}</p>\n\
         <p id=\"verdict\" class=\"verdict {class}\">{}</p>\n",
        escape(title),
        escape(&shown(&report.file)),
        escape(&report.mission),
        size(contact.bits() / 8),
        escape(&sentence),
    );
    let missing = verdict::missing(report).0;
    let (slips, packets) = (contact.stats.sync.slips, packets(report));
    html.push_str("<ul class=\"tiles\">\n");
    for (key, name, value, class) in [
        ("frames", "frames", report.cadus, ""),
        ("clean", "clean", report.clean_frames, ""),
        ("corrected", "corrected", report.corrected_frames, ""),
        ("symbols", "symbols corrected", report.corrected_symbols, ""),
        ("set-aside", "set aside", report.uncorrectable_frames, "fail"),
        ("missing", "missing", missing, "fail"),
        ("slips", "bit slips", slips, "warn"),
        ("packets", "packets", packets, ""),
    ] {
        let class = if value > 0 && !class.is_empty() {
            format!(" class=\"{class}\"")
        } else {
            String::new()
        };
        let _ = writeln!(
            html,
            "<li><b id=\"{key}\"{class}>{}</b><span>{name}</span></li>",
            grouped(value)
        );
    }
    html.push_str("</ul>\n");
    if !contact.notes.is_empty() {
        html.push_str("<ul id=\"notes\" class=\"notes\">\n");
        for note in contact.notes {
            let _ = writeln!(html, "<li>{}</li>", escape(note));
        }
        html.push_str("</ul>\n");
    }
    tables::inputs(contact, html);
    html.push_str(if contact.is_joined() {
        "<p class=\"quiet\">The recordings have no reception times: the horizontal axis is the \
        sequence of the frames taken from them. Losses of lock and bit slips are those of all \
        recordings.</p>\n"
    } else {
        "<p class=\"quiet\">The file has no reception times: the horizontal axis is the position \
        in the file, from the first to the last byte.</p>\n"
    });
}

fn foot(html: &mut String) {
    let _ = writeln!(
        html,
        "<p class=\"quiet foot\">skyhaul {}. The frame counts of the virtual channels show the \
        missing frames. In a channel that counts its frames, frames set aside are among them.</p>",
        env!("CARGO_PKG_VERSION")
    );
}

/// Packets of all spacecraft, idle ones included.
fn packets(report: &FileReport) -> u64 {
    let others = report.other_spacecraft.iter().flat_map(|other| other.vcids.values());
    report.vcids.values().chain(others).map(|channel| channel.packets).sum()
}

fn span(first: Utc, last: Utc) -> String {
    let (first_text, last_text) = (clock(first), clock(last));
    let length = last.since(first);
    match first.day() == last.day() {
        _ if first_text == last_text => format!("{first_text} UTC"),
        true => {
            format!("{first_text} to {} UTC ({length})", last_text.get(11..).unwrap_or(&last_text))
        }
        false => format!("{first_text} to {last_text} UTC ({length})"),
    }
}

/// Date and time to the millisecond.
fn clock(time: Utc) -> String {
    let text = time.to_string().replace('T', " ");
    let end = text.len().saturating_sub(MICROS_AND_ZONE);
    text.get(..end).unwrap_or(&text).to_owned()
}

/// A text from outside, with what cannot be printed made visible.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// A count with its thousands apart.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(THIN);
        }
        text.push(digit);
    }
    text
}

/// A size with a prefix, in decimal.
fn size(bytes: u64) -> String {
    let (factor, unit) = unit(bytes);
    match factor {
        1 => format!("{bytes} {unit}"),
        _ => format!("{:.2} {unit}", bytes as f64 / factor as f64),
    }
}

/// The unit that a size of so many bytes is shown in.
fn unit(bytes: u64) -> (u64, &'static str) {
    let units =
        [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    units.into_iter().find(|(factor, _)| bytes >= *factor).unwrap_or((1, "B"))
}

fn percent(part: u64, whole: u64) -> String {
    let share = 100.0 * part as f64 / whole.max(1) as f64;
    match share {
        0.0 => "0 %".to_owned(),
        share if share < 0.01 => "< 0.01 %".to_owned(),
        share if share < 1.0 => format!("{share:.2} %"),
        share => format!("{share:.1} %"),
    }
}

/// Between thousands: a narrow space that does not break.
const THIN: char = '\u{202f}';
/// What a time has beyond its milliseconds.
const MICROS_AND_ZONE: usize = "000Z".len();
