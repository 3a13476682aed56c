//! A construction record, shown to people and to programs. It is file number 00 of a product,
//! beside the product's packet files.

use skyhaul_exit::{Exit, Failure};
use skyhaul_level0::construction::{
    ApidEntry, ConstructionRecord, FileEntry, GapEntry, ProductKind, RecordTime, Span,
};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// A construction record that was read.
pub struct ConstructionView {
    name: String,
    record: ConstructionRecord,
}

/// The first and the last time of something; none where the record has none, or one of another
/// code.
#[derive(serde::Serialize)]
struct Times {
    first: Option<String>,
    last: Option<String>,
}

#[derive(serde::Serialize)]
struct Line<'a> {
    file: &'a str,
    construction_record: ShownRecord<'a>,
}

#[derive(serde::Serialize)]
struct ShownRecord<'a> {
    id: &'a str,
    kind: ProductKind,
    software: String,
    test: bool,
    completed: Option<String>,
    sessions: Vec<Times>,
    #[serde(flatten)]
    totals: ShownTotals,
    apids: Vec<ShownApid>,
    files: Vec<ShownFile<'a>>,
}

#[derive(serde::Serialize)]
struct ShownTotals {
    packets: u32,
    bytes: u64,
    gaps: u32,
    corrected_packets: u32,
    length_discrepancies: u32,
    fill_bytes: u64,
    packet_times: Times,
    reception: Times,
}

#[derive(serde::Serialize)]
struct ShownApid {
    scid: u8,
    apid: u16,
    vcids: Vec<u8>,
    packets: u32,
    bytes: u64,
    corrected_packets: u32,
    fill_bytes: u64,
    filled_packets: usize,
    length_discrepancies: usize,
    gaps: Vec<ShownGap>,
    packet_times: Times,
    reception: Times,
}

#[derive(serde::Serialize)]
struct ShownGap {
    first_missing: u32,
    missed: u32,
    offset: u64,
}

#[derive(serde::Serialize)]
struct ShownFile<'a> {
    name: &'a str,
    apids: Vec<u16>,
}

/// The longest construction record that is read: one of 255 applications with 1,000 gaps each.
const LONGEST: u64 = 16 << 20;
/// The fewest bytes of one.
const SHORTEST: u64 = 136;

/// The construction record that the file is, if it is one.
///
/// # Errors
/// It has the name of one, and is damaged.
pub fn read(path: &Path) -> Result<Option<ConstructionView>, Failure> {
    let name = path.display().to_string();
    let Ok(file) = File::open(path) else { return Ok(None) };
    let len = file
        .metadata()
        .ok()
        .filter(std::fs::Metadata::is_file)
        .map_or(0, |metadata| metadata.len());
    if !(SHORTEST..=LONGEST).contains(&len) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    if file.take(LONGEST).read_to_end(&mut bytes).is_err() {
        return Ok(None);
    }
    match ConstructionRecord::parse(&bytes) {
        Ok(record) => Ok(Some(ConstructionView { name, record })),
        Err(error) if is_named_so(path) => {
            Err(Failure::from_sentence(Exit::Result, &error.to_string()).at(&name))
        }
        Err(_) => Ok(None),
    }
}

/// Whether a file has the name of the first of a product: 36 characters that end with 00, and the
/// kind.
fn is_named_so(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = name.strip_suffix(".PDS").or_else(|| name.strip_suffix(".EDS"));
    stem.is_some_and(|stem| stem.len() == 36 && stem.ends_with("00"))
}

impl ConstructionView {
    /// Why its packets cannot be had from it.
    pub fn without_packets(&self) -> Failure {
        let what = "a construction record has no packets";
        let help = "give the packet files that it names";
        Failure::new(Exit::Usage, what, help).at(&self.name)
    }

    /// As a line of JSON.
    ///
    /// # Errors
    /// The result cannot be written.
    pub fn write_json(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let line = Line { file: &self.name, construction_record: self.shown() };
        serde_json::to_writer(&mut *out, &line).map_err(io::Error::from)?;
        Ok(writeln!(out)?)
    }

    /// For people.
    ///
    /// # Errors
    /// The result cannot be written.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let shown = self.shown();
        let totals = &shown.totals;
        let kind = match shown.kind {
            ProductKind::Pds => "production data set",
            ProductKind::Eds => "expedited data set",
            ProductKind::QuickLookEds => "expedited data set for quick look",
        };
        let test = if shown.test { ", of test data" } else { "" };
        writeln!(
            out,
            "{}: construction record of a {kind}{test}, complete at {}",
            self.name,
            said(&shown.completed)
        )?;
        writeln!(
            out,
            "  {} packets, {} bytes; {} gaps, {} packets corrected, {} of another length, {} bytes \
            of fill",
            totals.packets,
            totals.bytes,
            totals.gaps,
            totals.corrected_packets,
            totals.length_discrepancies,
            totals.fill_bytes
        )?;
        write_times("packets", &totals.packet_times, out)?;
        write_times("received", &totals.reception, out)?;
        shown.sessions.iter().try_for_each(|session| write_times("contact", session, out))?;
        writeln!(out, "  APID    packets          bytes    gaps  missing  {:<28}last", "first")?;
        for apid in &shown.apids {
            let missing: u64 = apid.gaps.iter().map(|gap| u64::from(gap.missed)).sum();
            writeln!(
                out,
                "  {:>4} {:>10} {:>14} {:>7} {missing:>8}  {:<28}{}",
                apid.apid,
                apid.packets,
                apid.bytes,
                apid.gaps.len(),
                said(&apid.packet_times.first),
                said(&apid.packet_times.last)
            )?;
        }
        shown.files.iter().try_for_each(|file| writeln!(out, "  file {}", file.name))
    }

    fn shown(&self) -> ShownRecord<'_> {
        let ConstructionRecord {
            software,
            kind,
            id,
            test,
            sessions,
            totals,
            completed,
            apids,
            files,
        } = &self.record;
        ShownRecord {
            id: id.as_str(),
            kind: *kind,
            software: format!("{}.{}", software.major, software.minor),
            test: *test,
            completed: time(*completed),
            sessions: sessions.iter().map(times).collect(),
            totals: ShownTotals {
                packets: totals.packets,
                bytes: totals.size.as_u64(),
                gaps: totals.gaps,
                corrected_packets: totals.corrected_packets,
                length_discrepancies: totals.length_discrepancies,
                fill_bytes: totals.fill.as_u64(),
                packet_times: times(&totals.packet_times),
                reception: times(&totals.reception),
            },
            apids: apids.iter().map(apid).collect(),
            files: files.iter().map(file).collect(),
        }
    }
}

fn apid(entry: &ApidEntry) -> ShownApid {
    let gap = |gap: &GapEntry| ShownGap {
        first_missing: gap.first_missing,
        missed: gap.missed,
        offset: gap.offset.as_u64(),
    };
    ShownApid {
        scid: entry.stream.scid(),
        apid: entry.stream.apid(),
        vcids: entry.vcids.iter().map(|vcid| vcid.vcid()).collect(),
        packets: entry.packets,
        bytes: entry.size.as_u64(),
        corrected_packets: entry.corrected_packets,
        fill_bytes: entry.fill_octets.as_u64(),
        filled_packets: entry.fill.len(),
        length_discrepancies: entry.length_discrepancies.len(),
        gaps: entry.gaps.iter().map(gap).collect(),
        packet_times: times(&entry.packet_times),
        reception: times(&entry.reception),
    }
}

fn file(entry: &FileEntry) -> ShownFile<'_> {
    ShownFile {
        name: entry.name.as_str(),
        apids: entry.apids.iter().map(|span| span.stream.apid()).collect(),
    }
}

fn times(span: &Span) -> Times {
    Times { first: time(span.first), last: time(span.last) }
}

fn time(time: RecordTime) -> Option<String> {
    time.utc().map(|utc| utc.to_string())
}

fn said(time: &Option<String>) -> &str {
    time.as_deref().unwrap_or("-")
}

fn write_times(what: &str, times: &Times, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  {what:<9} {} to {}", said(&times.first), said(&times.last))
}
