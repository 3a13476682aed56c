//! What the other side says of a delivery record or a notice, before it is sent: the consumer of a
//! record with the dispositions of its notices, the producer that reads a notice.
//!
//! A record in PVL is held to the rules of NASA's open consumer (Cumulus, `parse-pdr`), read as
//! that one reads. All faults are found, not only the first one; the first one is what the consumer
//! says. A remark is what no consumer refuses, and is seldom meant.

mod cnm;
mod edos;
mod notice;
mod reading;
mod sips;

use crate::{Disposition, edos as edos_form};
use serde::Serialize;

/// What a consumer knows beside the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckTerms {
    /// The hosts of its providers; none where they are not known here: then any is right.
    pub hosts: Option<Vec<String>>,
}

/// What is said of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordCheck {
    /// What it is.
    pub kind: CheckedKind,
    /// The first refusal by its name, or `SUCCESSFUL`.
    pub verdict: String,
    /// Whether it is taken.
    pub is_taken: bool,
    /// The files that it names.
    pub files: u64,
    /// And their bytes.
    pub bytes: u64,
    /// Of a notice: what the producer does.
    pub asks: Option<String>,
    /// Refusals and remarks, in the order in which the consumer comes to them.
    pub findings: Vec<CheckFinding>,
    /// Findings for which there was no room.
    pub findings_left_out: u64,
}

/// What a checked file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckedKind {
    /// A delivery record in PVL.
    SipsRecord,
    /// A delivery record of EDOS.
    EdosRecord,
    /// A notice of all files at once.
    ShortPan,
    /// A notice of each file.
    LongPan,
    /// A refusal of the record.
    ShortPdrd,
    /// A refusal of the record, by group.
    LongPdrd,
    /// A notice of EDOS.
    EdosNotice,
    /// A cloud notification message.
    Cnm,
    /// The answer to one.
    CnmResponse,
    /// None of these.
    Unknown,
}

/// One thing that is wrong, or seldom meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckFinding {
    /// The line, from 1; none in binary parts, and where something is missing in the whole.
    pub line: Option<usize>,
    /// The refusal by its name; none for a remark.
    pub verdict: Option<&'static str>,
    /// The group and the file, where it is about one.
    pub place: Option<String>,
    /// What is wrong.
    pub what: String,
    /// And what to do.
    pub help: String,
}

/// Findings on their way into a [`RecordCheck`].
#[derive(Debug, Default)]
struct Findings {
    list: Vec<CheckFinding>,
    left_out: u64,
    files: u64,
    bytes: u64,
    asks: Option<String>,
}

/// Where a finding is.
#[derive(Debug, Clone, Copy, Default)]
struct At<'a> {
    line: Option<usize>,
    place: Option<&'a str>,
}

/// Says what a strict consumer, or the producer that reads a notice, says of these bytes.
pub fn check(bytes: &[u8], terms: &CheckTerms) -> RecordCheck {
    let mut findings = Findings::default();
    if bytes.len() > LONGEST {
        let what = format!("it has {} bytes, and a record at most {LONGEST}", bytes.len());
        findings.refuse(At::default(), UNREADABLE, what, "check the name of the file");
        return findings.end(CheckedKind::Unknown);
    }
    if bytes.first() == Some(&edos_form::NOTICE) {
        edos::check_notice(bytes, &mut findings);
        return findings.end(CheckedKind::EdosNotice);
    }
    if edos_form::is_record(bytes) {
        edos::check_record(bytes, &mut findings);
        return findings.end(CheckedKind::EdosRecord);
    }
    let Ok(text) = core::str::from_utf8(bytes) else {
        let what = "it is neither UTF-8 text nor a record of EDOS".to_owned();
        findings.refuse(At::default(), UNREADABLE, what, "check the name of the file");
        return findings.end(CheckedKind::Unknown);
    };
    let kind = if text.trim_start().starts_with('{') {
        cnm::check(text, &mut findings)
    } else if text.contains("MESSAGE_TYPE") {
        notice::check(text, &mut findings)
    } else {
        sips::check(text, terms, &mut findings);
        CheckedKind::SipsRecord
    };
    findings.end(kind)
}

impl Findings {
    fn refuse(&mut self, at: At<'_>, verdict: &'static str, what: String, help: &str) {
        self.add(at, Some(verdict), what, help);
    }

    fn remark(&mut self, at: At<'_>, what: String, help: &str) {
        self.add(at, None, what, help);
    }

    fn add(&mut self, at: At<'_>, verdict: Option<&'static str>, what: String, help: &str) {
        if self.list.len() == FINDINGS_MAX {
            self.left_out += 1;
            return;
        }
        let (line, place) = (at.line, at.place.map(str::to_owned));
        self.list.push(CheckFinding { line, verdict, place, what, help: help.to_owned() });
    }

    fn end(self, kind: CheckedKind) -> RecordCheck {
        let Self { list, left_out, files, bytes, asks } = self;
        let first = list.iter().find_map(|finding| finding.verdict);
        RecordCheck {
            kind,
            verdict: first.unwrap_or("SUCCESSFUL").to_owned(),
            is_taken: first.is_none(),
            files,
            bytes,
            asks,
            findings: list,
            findings_left_out: left_out,
        }
    }
}

impl CheckedKind {
    /// What it is, in words.
    pub const fn title(self) -> &'static str {
        match self {
            Self::SipsRecord => "delivery record (PDR, PVL)",
            Self::EdosRecord => "delivery record (EDOS)",
            Self::ShortPan => "acceptance notice (short PAN)",
            Self::LongPan => "acceptance notice (long PAN)",
            Self::ShortPdrd => "refusal of a record (short PDRD)",
            Self::LongPdrd => "refusal of a record (long PDRD)",
            Self::EdosNotice => "acceptance notice (EDOS)",
            Self::Cnm => "cloud notification message (CNM)",
            Self::CnmResponse => "answer to a cloud notification message (CNM-R)",
            Self::Unknown => "neither a record nor a notice",
        }
    }
}

/// What the producer does about a disposition.
const fn asked_by(disposition: Disposition) -> &'static str {
    match disposition {
        Disposition::Taken => "nothing: it was taken",
        Disposition::SendAgain => "send again",
        Disposition::Wait => "send again after the longest pause",
        Disposition::Refused => "stop and raise an alarm",
    }
}

/// Enough of a value to recognise it in a message.
fn shown(value: &str) -> String {
    value.chars().take(60).flat_map(char::escape_debug).collect()
}

/// The names of refusals of a whole record (short PDRD).
const UNREADABLE: &str = "INVALID OR UNREADABLE FILE";
const STATEMENT: &str = "INVALID PVL STATEMENT";
const COUNT: &str = "INVALID FILE COUNT";
const GROUP: &str = "INVALID FILE GROUP";
/// Of a group (long PDRD).
const DATA_TYPE: &str = "INVALID DATA TYPE";
const NODE_NAME: &str = "INVALID NODE NAME";
const DIRECTORY: &str = "INVALID DIRECTORY";
const FILE_ID: &str = "INVALID FILE ID";
const FILE_SIZE: &str = "INVALID FILE SIZE";
const FILE_TYPE: &str = "INVALID FILE TYPE";
const NO_SUM_TYPE: &str = "MISSING FILE_CKSUM_TYPE PARAMETER";
const NO_SUM: &str = "MISSING FILE_CKSUM_VALUE PARAMETER";
const SUM_TYPE: &str = "UNSUPPORTED CHECKSUM TYPE";
const SUM: &str = "INVALID FILE_CKSUM_VALUE";
/// Of a notice, by the producer that cannot read it: on no list of dispositions.
const NOTICE: &str = "NOT A NOTICE";

/// 16 MiB: the record of 80,000 files.
const LONGEST: usize = 16 << 20;
/// More help nobody.
const FINDINGS_MAX: usize = 1_000;

#[cfg(test)]
mod tests;
