//! The audit log: who ordered what, one line of JSON for each order and one for its outcome. Each
//! line has the SHA-256 of the line before it, so that a line that was changed, removed or put in
//! is found.
//!
//! ```
//! use skyhaul_events::{AuditCheck, AuditEntry, AuditLine, AuditMeans, AuditWho, audit_hash};
//! let who = AuditWho::new(AuditMeans::Socket, "kim (uid 1000)", "");
//! let entry = AuditEntry::Order {
//!     sentence: "remove path b".to_owned(),
//!     subject: "path b".to_owned(),
//!     order: serde_json::Value::Null,
//! };
//! let first = AuditLine::first("2026-11-27T12:00:00Z", who, entry);
//! let line = first.to_line();
//! let mut check = AuditCheck::default();
//! check.line(line.trim_ascii_end());
//! assert_eq!(check.finish().faults, []);
//! assert_eq!(audit_hash(line.trim_ascii_end()).len(), 64);
//! ```

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditLine {
    /// Counts from 1.
    pub number: u64,
    /// When (UTC).
    pub time: String,
    /// The SHA-256 of the line before, without its end; zeros before the first.
    pub before: String,
    /// Who.
    pub who: AuditWho,
    /// What.
    #[serde(flatten)]
    pub entry: AuditEntry,
}

/// Who gave an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditWho {
    /// How.
    pub by: AuditMeans,
    /// The user or the token; empty where it is not known.
    pub name: String,
    /// The address; empty at the node's own host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
}

/// How an order was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditMeans {
    /// Over the status socket: the name is a user of the host.
    Socket,
    /// Over the page, by a user of it.
    Web,
    /// Over the page, by a token.
    Token,
    /// By a signal: the name is not known.
    Signal,
}

/// An order, or what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "lowercase")]
pub enum AuditEntry {
    /// An order that is carried out next.
    Order {
        /// In short.
        sentence: String,
        /// What it is about.
        subject: String,
        /// The order itself.
        #[serde(default)]
        order: Value,
    },
    /// What became of an order.
    Outcome {
        /// The number of the order's line.
        of: u64,
        /// What.
        outcome: AuditOutcome,
        /// The answer, or the reason.
        said: String,
    },
}

/// What became of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditOutcome {
    /// It was carried out.
    Done,
    /// It was not.
    Refused,
}

/// Why a line is none of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a line of the audit log ({0})")]
pub struct AuditLineError(String);

/// What is wrong with an audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "fault", rename_all = "lowercase")]
pub enum AuditFault {
    /// A line was changed after it was written.
    Changed {
        /// Its number.
        number: u64,
    },
    /// Lines are not there.
    Missing {
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
    },
    /// A file of the log is not there.
    MissingFile {
        /// Its first line.
        from: u64,
        /// The last line before the next file that is there.
        to: u64,
    },
    /// The end was cut off: other places know of later lines.
    Cut {
        /// The first line that is not there.
        from: u64,
        /// The last one that is known of.
        to: u64,
    },
    /// A line stands where it does not belong.
    Misplaced {
        /// Its place in the file, from 1.
        place: u64,
        /// Its number.
        number: u64,
    },
    /// A line cannot be read.
    Unreadable {
        /// Its place in the file, from 1.
        place: u64,
    },
}

/// What a check has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditReport {
    /// The first line that it proves: earlier files were archived where it is not 1.
    pub from: u64,
    /// Lines that were read.
    pub lines: u64,
    /// The number of the last one.
    pub last: u64,
    /// Its hash: whoever keeps it elsewhere can tell later whether the log still has it.
    pub head: String,
    /// Hashes from elsewhere that were compared.
    pub compared: u64,
    /// What is wrong, in the order of the file.
    pub faults: Vec<AuditFault>,
    /// Faults beyond those.
    pub more: u64,
}

/// Checks an audit log line by line.
#[derive(Debug, Default)]
pub struct AuditCheck {
    /// Hashes of lines by their number, from elsewhere.
    heads: BTreeMap<u64, String>,
    report: AuditReport,
    /// What is known of the last line.
    last_is: KnownLine,
}

/// What is known of a line beside its place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum KnownLine {
    /// That the line behind it has to say whether it was changed.
    #[default]
    Read,
    /// Another place has the same hash.
    Confirmed,
    /// It was named as a fault.
    Faulty,
}

impl Default for AuditReport {
    fn default() -> Self {
        let (head, faults) = (String::new(), Vec::new());
        Self { from: 1, lines: 0, last: 0, head, compared: 0, faults, more: 0 }
    }
}

/// The name of a file of the log that is complete and has this first line.
pub fn audit_file(first: u64) -> String {
    format!("{FILE_BEGIN}{first:012}{FILE_END}")
}

/// The first line of a file of the log that is complete, by its name.
pub fn audit_file_first(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(FILE_BEGIN)?.strip_suffix(FILE_END)?;
    let first = digits.parse().ok().filter(|first| *first > 0)?;
    (audit_file(first) == name).then_some(first)
}

const FILE_BEGIN: &str = "audit-";
const FILE_END: &str = ".jsonl";
/// Faults that are listed.
const FAULTS_MAX: usize = 100;
/// A longer text is cut.
const TEXT_MAX: usize = 4_096;
/// An order that is longer is left out: its sentence stands for it.
const ORDER_MAX: usize = 32 << 10;

impl AuditWho {
    /// Somebody.
    pub fn new(by: AuditMeans, name: impl Into<String>, address: impl Into<String>) -> Self {
        Self { by, name: name.into(), address: address.into() }
    }
}

impl core::fmt::Display for AuditWho {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.by {
            AuditMeans::Socket => write!(f, "{}", self.name),
            AuditMeans::Web => write!(f, "{} at {}", self.name, self.address),
            AuditMeans::Token => write!(f, "token {} at {}", self.name, self.address),
            AuditMeans::Signal => f.write_str("a signal"),
        }
    }
}

impl AuditLine {
    /// The longest line.
    pub const LINE_MAX: usize = 64 << 10;

    /// What stands for the hash before the first line.
    pub fn origin() -> String {
        "0".repeat(64)
    }

    /// The first line of a log.
    pub fn first(time: &str, who: AuditWho, entry: AuditEntry) -> Self {
        let (number, before) = (1, Self::origin());
        Self { number, time: time.to_owned(), before, who, entry }
    }

    /// As a line, with its end.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(&self.bounded()).expect("a line has text keys only");
        line.push(b'\n');
        line
    }

    /// Texts no longer than a line takes.
    fn bounded(&self) -> Self {
        let mut bounded = self.clone();
        for text in [&mut bounded.who.name, &mut bounded.who.address] {
            cut(text);
        }
        match &mut bounded.entry {
            AuditEntry::Order { sentence, subject, order } => {
                cut(sentence);
                cut(subject);
                if order.to_string().len() > ORDER_MAX {
                    *order = Value::Null;
                }
            }
            AuditEntry::Outcome { said, .. } => cut(said),
        }
        bounded
    }

    /// From a line.
    ///
    /// # Errors
    /// It is none.
    pub fn from_line(line: &[u8]) -> Result<Self, AuditLineError> {
        if line.len() > Self::LINE_MAX {
            return Err(AuditLineError("it is too long".to_owned()));
        }
        serde_json::from_slice(line).map_err(|error| AuditLineError(error.to_string()))
    }
}

/// Cuts a text at a character's border.
fn cut(text: &mut String) {
    if text.len() > TEXT_MAX {
        let end = (0..=TEXT_MAX).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or(0));
    }
}

/// The SHA-256 of a line without its end, as 64 hexadecimal digits.
pub fn audit_hash(line: &[u8]) -> String {
    Sha256::digest(line).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl AuditCheck {
    /// Also compares these hashes of lines, by number, which were kept elsewhere.
    pub fn with_heads(heads: BTreeMap<u64, String>) -> Self {
        Self { heads, ..Self::default() }
    }

    /// The next file, which has this first line by its name.
    pub fn file(&mut self, first: u64) {
        let due = self.report.last.saturating_add(1);
        if first <= due {
            return;
        }
        let before = first - 1;
        if self.report.lines == 0 && self.report.last == 0 {
            // The oldest file that is there: those before it were archived.
            self.report.from = first;
            (self.report.last, self.last_is) = (before, KnownLine::Faulty);
            if let Some(kept) = self.heads.get(&before) {
                (self.report.head, self.last_is) = (kept.clone(), KnownLine::Confirmed);
            }
            self.heads = self.heads.split_off(&first);
            return;
        }
        self.fault(AuditFault::MissingFile { from: due, to: before });
        (self.report.last, self.last_is) = (before, KnownLine::Faulty);
    }

    /// The next line of the file, without its end.
    pub fn line(&mut self, line: &[u8]) {
        self.report.lines += 1;
        let (place, due) = (self.report.lines, self.report.last.saturating_add(1));
        let hash = audit_hash(line);
        let Ok(read) = AuditLine::from_line(line) else {
            self.fault(AuditFault::Unreadable { place });
            self.advance(due, hash);
            self.last_is = KnownLine::Faulty;
            return;
        };
        let number = read.number;
        if number < due {
            // Taken for put in: the chain goes on behind the line before it.
            self.fault(AuditFault::Misplaced { place, number });
            return;
        }
        if number > due {
            self.fault(AuditFault::Missing { from: due, to: number - 1 });
        } else if due == 1 && read.before != AuditLine::origin() {
            self.fault(AuditFault::Changed { number });
        } else if due > 1 && read.before != self.report.head {
            match self.last_is {
                KnownLine::Read => self.fault(AuditFault::Changed { number: due - 1 }),
                KnownLine::Confirmed => self.fault(AuditFault::Changed { number }),
                KnownLine::Faulty => {}
            }
        }
        self.advance(number, hash);
    }

    fn advance(&mut self, number: u64, hash: String) {
        self.last_is = KnownLine::Read;
        if let Some(kept) = self.heads.remove(&number) {
            self.report.compared += 1;
            self.last_is = KnownLine::Confirmed;
            if kept != hash {
                self.last_is = KnownLine::Faulty;
                let fault = AuditFault::Changed { number };
                if !self.is_unreadable_last() && self.report.faults.last() != Some(&fault) {
                    self.fault(fault);
                }
            }
        }
        (self.report.last, self.report.head) = (number, hash);
    }

    /// Whether the line at this place was just named as one that cannot be read.
    fn is_unreadable_last(&self) -> bool {
        let place = self.report.lines;
        self.report.faults.last() == Some(&AuditFault::Unreadable { place })
    }

    fn fault(&mut self, fault: AuditFault) {
        match self.report.faults.len() < FAULTS_MAX {
            true => self.report.faults.push(fault),
            false => self.report.more += 1,
        }
    }

    /// The end of the file.
    pub fn finish(mut self) -> AuditReport {
        let last = self.report.last;
        if let Some((&to, _)) = self.heads.last_key_value().filter(|(number, _)| **number > last) {
            self.fault(AuditFault::Cut { from: last.saturating_add(1), to });
        }
        self.report
    }
}

impl core::fmt::Display for AuditFault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let which = |from: &u64, to: &u64| match from == to {
            true => format!("line {from}"),
            false => format!("lines {from} to {to}"),
        };
        let lines = |from: &u64, to: &u64| {
            format!("{} {}", which(from, to), if from == to { "is" } else { "are" })
        };
        match self {
            Self::Changed { number } => write!(f, "line {number} was changed"),
            Self::Missing { from, to } => write!(f, "{} missing", lines(from, to)),
            Self::MissingFile { from, to } => {
                let file = audit_file(*from);
                write!(f, "the file {file} is missing: {}", which(from, to))
            }
            Self::Cut { from, to } => write!(f, "{} cut off the end", lines(from, to)),
            Self::Misplaced { place, number } => {
                write!(f, "the line at place {place} has number {number}, which was there before")
            }
            Self::Unreadable { place } => {
                write!(f, "the line at place {place} cannot be read: it was changed")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(count: u64) -> Vec<Vec<u8>> {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        for number in 1..=count {
            let before = lines.last().map_or_else(AuditLine::origin, |line| audit_hash(line));
            let entry = match number % 2 {
                1 => AuditEntry::Order {
                    sentence: format!("hold delivery {number}"),
                    subject: format!("delivery {number}"),
                    order: serde_json::json!({"id": number}),
                },
                _ => AuditEntry::Outcome {
                    of: number - 1,
                    outcome: AuditOutcome::Done,
                    said: "held".to_owned(),
                },
            };
            let who = AuditWho::new(AuditMeans::Web, "kim", "192.0.2.1");
            let time = "2026-11-27T12:00:00Z".to_owned();
            let line = AuditLine { number, time, before, who, entry }.to_line();
            lines.push(line.trim_ascii_end().to_vec());
        }
        lines
    }

    fn checked(lines: &[Vec<u8>], heads: &[(u64, String)]) -> AuditReport {
        let mut check = AuditCheck::with_heads(heads.iter().cloned().collect());
        lines.iter().for_each(|line| check.line(line));
        check.finish()
    }

    fn heads(lines: &[Vec<u8>]) -> Vec<(u64, String)> {
        (1..).zip(lines.iter().map(|line| audit_hash(line))).collect()
    }

    #[test]
    fn a_log_as_it_was_written_has_no_fault() {
        let lines = log(6);
        let report = checked(&lines, &heads(&lines));
        assert_eq!((report.lines, report.last, report.compared), (6, 6, 6));
        assert_eq!((report.faults, report.head), (vec![], audit_hash(&lines[5])));
        assert_eq!(checked(&[], &[]).faults, []);
        let line = AuditLine::from_line(&lines[0]).unwrap();
        assert_eq!(line.to_line().trim_ascii_end(), lines[0]);
    }

    #[test]
    fn each_line_that_was_changed_is_named() {
        let good = log(6);
        for nth in 0..6 {
            let mut lines = good.clone();
            let text = String::from_utf8(lines[nth].clone()).unwrap();
            lines[nth] = text.replace("kim", "lee").into_bytes();
            let number = nth as u64 + 1;
            let with_heads = checked(&lines, &heads(&good));
            assert_eq!(with_heads.faults, [AuditFault::Changed { number }], "{number}");
            // Without what is kept elsewhere, the last line can be changed unseen.
            let alone = checked(&lines, &[]).faults;
            assert_eq!(alone.is_empty(), nth == 5, "{alone:?}");
        }
    }

    #[test]
    fn a_chain_that_was_made_anew_is_seen_by_what_is_kept_elsewhere() {
        let good = log(6);
        let kept = [heads(&good)[2].clone()];
        let mut lines = log(6);
        let text = String::from_utf8(lines[0].clone()).unwrap();
        lines[0] = text.replace("kim", "lee").into_bytes();
        for nth in 1..6 {
            let mut line = AuditLine::from_line(&lines[nth]).unwrap();
            line.before = audit_hash(&lines[nth - 1]);
            lines[nth] = line.to_line().trim_ascii_end().to_vec();
        }
        assert_eq!(checked(&lines, &[]).faults, []);
        assert_eq!(checked(&lines, &kept).faults, [AuditFault::Changed { number: 3 }]);
    }

    #[test]
    fn lines_that_are_missing_cut_off_or_put_in_are_named() {
        let good = log(6);
        let mut lines = good.clone();
        lines.drain(2..4);
        assert_eq!(checked(&lines, &[]).faults, [AuditFault::Missing { from: 3, to: 4 }]);
        assert_eq!(checked(&good[1..], &[]).faults, [AuditFault::Missing { from: 1, to: 1 }]);
        let cut = checked(&good[..4], &heads(&good));
        assert_eq!(cut.faults, [AuditFault::Cut { from: 5, to: 6 }]);
        assert_eq!(cut.faults[0].to_string(), "lines 5 to 6 are cut off the end");
        let all = checked(&[], &heads(&good));
        assert_eq!(all.faults, [AuditFault::Cut { from: 1, to: 6 }]);
        let mut lines = good.clone();
        lines.insert(3, good[0].clone());
        let misplaced = AuditFault::Misplaced { place: 4, number: 1 };
        assert_eq!(checked(&lines, &heads(&good)).faults, [misplaced]);
        let mut lines = good;
        lines[2] = b"{".to_vec();
        assert_eq!(checked(&lines, &[]).faults, [AuditFault::Unreadable { place: 3 }]);
    }

    #[test]
    fn a_log_in_files_is_one_chain_and_names_the_file_that_is_missing() {
        let lines = log(9);
        let report = |firsts: &[usize], heads: &[(u64, String)]| {
            let mut check = AuditCheck::with_heads(heads.iter().cloned().collect());
            for first in firsts {
                check.file(*first as u64);
                lines[first - 1..first + 2].iter().for_each(|line| check.line(line));
            }
            check.finish()
        };
        let all = report(&[1, 4, 7], &heads(&lines));
        assert_eq!((all.from, all.last, all.compared, all.faults), (1, 9, 9, vec![]));
        // Archived: the rest is proven from its first line on, and that one by what is kept.
        let rest = report(&[4, 7], &heads(&lines));
        assert_eq!((rest.from, rest.lines, rest.compared, rest.faults), (4, 6, 6, vec![]));
        let wrong = [(3, "0".repeat(64))];
        assert_eq!(report(&[4, 7], &wrong).faults, [AuditFault::Changed { number: 4 }]);
        let lost = report(&[1, 7], &[]);
        assert_eq!(lost.faults, [AuditFault::MissingFile { from: 4, to: 6 }]);
        let said = lost.faults[0].to_string();
        assert_eq!(said, "the file audit-000000000004.jsonl is missing: lines 4 to 6");
        assert_eq!(audit_file_first("audit-000000000004.jsonl"), Some(4));
        for other in ["audit.jsonl", "audit-4.jsonl", "audit-000000000000.jsonl", "x"] {
            assert_eq!(audit_file_first(other), None, "{other}");
        }
        // A file whose beginning was cut off.
        let mut check = AuditCheck::default();
        check.file(4);
        lines[4..].iter().for_each(|line| check.line(line));
        assert_eq!(check.finish().faults, [AuditFault::Missing { from: 4, to: 4 }]);
    }

    #[test]
    fn faults_are_bounded_and_long_texts_are_cut() {
        let lines = vec![b"x".to_vec(); 150];
        let report = checked(&lines, &[]);
        assert_eq!((report.faults.len(), report.more), (100, 50));
        let entry = AuditEntry::Order {
            sentence: "ä".repeat(9_000),
            subject: "s".repeat(9_000),
            order: Value::String("o".repeat(90_000)),
        };
        let who = AuditWho::new(AuditMeans::Signal, "", "");
        let line = AuditLine::first("2026-11-27T12:00:00Z", who, entry).to_line();
        assert!(line.len() < AuditLine::LINE_MAX, "{}", line.len());
        assert!(AuditLine::from_line(line.trim_ascii_end()).is_ok());
    }
}
