//! What a node reports of itself to the nodes that it has sessions with: a few figures, and its
//! worst alarms in words. The form on the line is in docs/reference/wire.md, part 4.8.

use crate::event::Severity;
use crate::register::AlarmStatus;
use serde::{Deserialize, Serialize};
use skyhaul_units::{Duration, printable};

/// A report. All of it is bounded, whoever made it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    /// The release that the node runs.
    pub version: String,
    /// Whether it captures and sends.
    pub sends: bool,
    /// Whether it receives.
    pub receives: bool,
    /// For how many seconds it has been up.
    pub up_s: u64,
    /// The next report comes within so many seconds: 1 to [`NodeReport::EVERY_MAX_S`].
    pub every_s: u64,
    /// Its alarms, without those that others explain.
    pub alarms: ReportedAlarms,
    /// The worst of them, the worst first; at most three.
    #[serde(default)]
    pub worst: Vec<ReportedAlarm>,
    /// Contacts that it captures or receives now.
    #[serde(default)]
    pub contacts: u64,
    /// The newest of them in words; at most four.
    #[serde(default)]
    pub under_way: Vec<String>,
    /// What waits for its destinations; none where it sends nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spool: Option<ReportedSpool>,
    /// What it keeps of contacts; none where it receives nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<ReportedStore>,
    /// Its deliveries of products; none where it receives nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<ReportedDeliveries>,
}

/// Alarms by severity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedAlarms {
    /// Data are lost or refused, or will be.
    pub critical: u64,
    /// Data are late, or will be.
    pub major: u64,
    /// They can wait for office hours.
    pub minor: u64,
}

/// An alarm in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedAlarm {
    /// How bad it is.
    pub severity: Severity,
    /// Its kind, as [`crate::AlarmKind::name`] of the node's release.
    pub kind: String,
    /// All of it.
    pub sentence: String,
}

/// What waits at a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedSpool {
    /// Whether the spool takes data.
    pub state: ReportedState,
    /// Blocks that a destination lacks.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// For how many seconds the oldest block without custody has waited.
    pub oldest_s: u64,
}

/// What a node keeps of contacts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedStore {
    /// Whether the store takes data.
    pub state: ReportedState,
    /// Bytes on disk.
    pub disk_bytes: u64,
}

/// Whether a disk takes data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportedState {
    /// It does.
    Ok,
    /// There is no room.
    Full,
    /// It fails.
    Failed,
    /// The node says what this release does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

/// Deliveries by what an operator asks first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedDeliveries {
    /// On their way.
    pub waiting: u64,
    /// On their way after their deadline.
    pub late: u64,
    /// Refused, given up or not answered.
    pub failed: u64,
}

/// Why a report is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeReportError {
    /// It is longer than any report.
    #[error("a report of {len} bytes, {max} at most", max = NodeReport::LEN_MAX)]
    TooLong {
        /// Its bytes.
        len: usize,
    },
    /// It has another form.
    #[error(
        "a report of form {0}, this program reads form 1; install the same release at both ends"
    )]
    Form(u8),
    /// It is no report.
    #[error("a report cannot be read ({0}); install the same release at both ends")]
    Unreadable(String),
    /// It names no time within which the next one comes.
    #[error("a report every {0} s, which is not from 1 s to 1 h")]
    Every(u64),
}

/// The first byte of a report among the messages of a session.
const MARK: u8 = 0x52;
/// The second.
const FORM: u8 = 1;
const VERSION_MAX: usize = 32;
const KIND_MAX: usize = 40;
const SENTENCE_MAX: usize = 240;
const CONTACT_MAX: usize = 96;
const WORST_MAX: usize = 3;
const UNDER_WAY_MAX: usize = 4;
/// Bytes of what a parser says is wrong.
const REASON_MAX: usize = 160;

impl NodeReport {
    /// Bytes of a report; all texts at their bounds, each byte escaped, take less.
    pub const LEN_MAX: usize = 4_096;
    /// The longest span between two reports, in seconds.
    pub const EVERY_MAX_S: u64 = 3_600;

    /// Whether a message of a session is a report, or was to be one.
    pub fn is_marked(body: &[u8]) -> bool {
        body.first() == Some(&MARK)
    }

    /// The alarms of a node, the worst first and those that others explain last.
    #[must_use]
    pub fn with_alarms(mut self, alarms: &[&AlarmStatus]) -> Self {
        let own = || alarms.iter().filter(|alarm| alarm.caused_by.is_none());
        let count = |severity| own().filter(|alarm| alarm.severity == severity).count() as u64;
        self.alarms = ReportedAlarms {
            critical: count(Severity::Critical),
            major: count(Severity::Major),
            minor: count(Severity::Minor),
        };
        let worst = own().take(WORST_MAX).map(|alarm| ReportedAlarm {
            severity: alarm.severity,
            kind: alarm.kind.name().to_owned(),
            sentence: alarm.sentence.clone(),
        });
        self.worst = worst.collect();
        self
    }

    /// Whether the node has other alarms than in the report before, as far as they can wait for no
    /// regular report: their number, or which is the worst.
    pub fn has_other_alarms(&self, before: &Self) -> bool {
        let worst = |report: &Self| report.worst.first().map(|alarm| alarm.kind.clone());
        self.alarms != before.alarms || worst(self) != worst(before)
    }

    /// How bad its worst alarm is.
    pub const fn severity(&self) -> Option<Severity> {
        match self.alarms {
            ReportedAlarms { critical: 1.., .. } => Some(Severity::Critical),
            ReportedAlarms { major: 1.., .. } => Some(Severity::Major),
            ReportedAlarms { minor: 1.., .. } => Some(Severity::Minor),
            ReportedAlarms { .. } => None,
        }
    }

    /// The span within which the next one comes.
    pub const fn every(&self) -> Duration {
        Duration::from_secs(self.every_s)
    }

    /// As a message; at most [`Self::LEN_MAX`] bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = vec![MARK, FORM];
        let json = serde_json::to_vec(&self.clone().bounded());
        body.extend(json.expect("a report has text keys only"));
        body
    }

    /// Reads a message. Members that are not known are skipped; texts and lists that are too long
    /// are cut, and characters that mislead who reads them stand as their bytes.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(body: &[u8]) -> Result<Self, NodeReportError> {
        if body.len() > Self::LEN_MAX {
            return Err(NodeReportError::TooLong { len: body.len() });
        }
        let json = match body {
            [MARK, FORM, json @ ..] => json,
            [MARK, form, ..] => return Err(NodeReportError::Form(*form)),
            _ => return Err(NodeReportError::Unreadable("it has no form".to_owned())),
        };
        let report: Self = serde_json::from_slice(json).map_err(|error| {
            NodeReportError::Unreadable(printable(&error.to_string(), REASON_MAX))
        })?;
        match report.every_s {
            1..=Self::EVERY_MAX_S => Ok(report.bounded()),
            other => Err(NodeReportError::Every(other)),
        }
    }

    fn bounded(mut self) -> Self {
        self.version = printable(&self.version, VERSION_MAX);
        self.worst.truncate(WORST_MAX);
        for alarm in &mut self.worst {
            alarm.kind = printable(&alarm.kind, KIND_MAX);
            alarm.sentence = printable(&alarm.sentence, SENTENCE_MAX);
        }
        self.under_way.truncate(UNDER_WAY_MAX);
        for contact in &mut self.under_way {
            *contact = printable(contact, CONTACT_MAX);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors(part: &str) -> Vec<serde_json::Value> {
        let page = include_str!("../../../../docs/reference/wire-vectors.json");
        let page: serde_json::Value = serde_json::from_str(page).unwrap();
        page[part].as_array().unwrap().clone()
    }

    fn bytes(vector: &serde_json::Value) -> Vec<u8> {
        let digits = vector["hex"].as_str().unwrap().bytes().filter(|byte| *byte != b' ');
        let digit = |byte: u8| u8::try_from((byte as char).to_digit(16).unwrap()).unwrap();
        let digits: Vec<u8> = digits.collect();
        digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }

    #[test]
    fn the_reports_of_the_wire_page_read_as_it_says_and_are_written_so() {
        let all = vectors("reports");
        assert_eq!(all.len(), 3);
        for vector in &all {
            let body = bytes(vector);
            assert!(NodeReport::is_marked(&body));
            let report = NodeReport::decode(&body).unwrap();
            let json = serde_json::to_value(&report).unwrap();
            assert_eq!(json, vector["reads"], "{}", vector["name"]);
            if vector["written"] != false {
                assert_eq!(report.encode(), body, "{}", vector["name"]);
            }
        }
        for vector in vectors("refused_reports") {
            let error = NodeReport::decode(&bytes(&vector)).unwrap_err();
            assert_eq!(error.to_string(), vector["error"]);
        }
    }

    /// A report whose texts are all too long, of a character that needs an escape.
    fn largest(character: &str) -> NodeReport {
        let text = || character.repeat(5_000);
        let alarm =
            || ReportedAlarm { severity: Severity::Critical, kind: text(), sentence: text() };
        let most = u64::MAX;
        NodeReport {
            version: text(),
            sends: false,
            receives: false,
            up_s: most,
            every_s: NodeReport::EVERY_MAX_S,
            alarms: ReportedAlarms { critical: most, major: most, minor: most },
            worst: (0..9).map(|_| alarm()).collect(),
            contacts: most,
            under_way: (0..9).map(|_| text()).collect(),
            spool: Some(ReportedSpool {
                state: ReportedState::Unknown,
                blocks: most,
                bytes: most,
                disk_bytes: most,
                oldest_s: most,
            }),
            store: Some(ReportedStore { state: ReportedState::Unknown, disk_bytes: most }),
            deliveries: Some(ReportedDeliveries { waiting: most, late: most, failed: most }),
        }
    }

    #[test]
    fn no_report_is_longer_than_its_bound_whatever_its_texts_are() {
        for character in ["x", "\"", "\\", "\u{1b}", "\u{202e}", "\u{1f6f0}"] {
            let body = largest(character).encode();
            assert!(body.len() <= NodeReport::LEN_MAX, "{character:?}: {} bytes", body.len());
            let read = NodeReport::decode(&body).unwrap();
            assert_eq!((read.worst.len(), read.under_way.len()), (WORST_MAX, UNDER_WAY_MAX));
            assert_eq!(read.encode(), body, "it reads and is written the same");
        }
    }

    #[test]
    fn a_message_that_is_longer_than_any_report_is_not_read() {
        let mut body = NodeReport { every_s: 10, ..NodeReport::default() }.encode();
        let room = NodeReport::LEN_MAX - body.len();
        body.extend(std::iter::repeat_n(b' ', room));
        assert!(NodeReport::decode(&body).is_ok());
        body.push(b' ');
        let len = body.len();
        assert_eq!(NodeReport::decode(&body), Err(NodeReportError::TooLong { len }));
    }

    #[test]
    fn characters_that_mislead_do_not_come_through() {
        let text = b"\x52\x01{\"version\":\"1\\u001b[2J\",\"sends\":true,\"receives\":false,\
                     \"up_s\":1,\"every_s\":10,\"alarms\":{},\"later\":[[1]]}";
        let read = NodeReport::decode(text).unwrap();
        assert_eq!(read.version, r"1\x1b[2J");
    }

    #[test]
    fn the_number_of_alarms_and_the_worst_one_are_news_and_reasons_are_not() {
        let report = |kind: &str, sentence: &str, major| NodeReport {
            alarms: ReportedAlarms { major, ..ReportedAlarms::default() },
            worst: vec![ReportedAlarm {
                severity: Severity::Major,
                kind: kind.to_owned(),
                sentence: sentence.to_owned(),
            }],
            ..NodeReport::default()
        };
        let one = report("spool-nearly-full", "3 GB are left", 1);
        assert!(!one.has_other_alarms(&report("spool-nearly-full", "2 GB are left", 1)));
        assert!(one.has_other_alarms(&report("spool-nearly-full", "3 GB are left", 2)));
        assert!(one.has_other_alarms(&report("path-down", "3 GB are left", 1)));
        assert_eq!(one.severity(), Some(Severity::Major));
        assert_eq!(NodeReport::default().severity(), None);
    }
}
