//! Delivery records and notices as PVL text, as science data processing systems exchange them
//! ("polling with delivery record", ESDS-RFC-030).
//!
//! A record keeps to what NASA's open consumer takes (Cumulus, `parse-pdr`): file types and
//! checksums of its lists, a blank on each side of `=`, a statement a line. It removes every `"`,
//! tears values at `=`, and takes bare digits for a number wherever they stand; text that does not
//! begin with a letter or `/` therefore stands in apostrophes, and text that no form carries
//! unharmed is refused here.

use super::pvl::{self, Statement};
use super::{
    Checksum, DeliveredFile, DeliveryRecord, FileAnswer, Notice, NoticeContent, NoticeError,
};
use skyhaul_units::{Utc, printable};

/// What a record says beside its product: terms of the consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// The host that the consumer fetches from, by the name under which it knows that; left out of
    /// the record where none.
    pub node_name: Option<String>,
    /// The version of the collection that the consumer puts the data into.
    pub data_version: String,
    /// What files are that are no metadata.
    pub file_type: FileType,
    /// What metadata files are: construction records and accounts.
    pub metadata_type: FileType,
}

/// What a file is, of the list that the consumer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileType(&'static str);

/// A value that a record cannot carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a delivery record cannot carry `{value}` as {key}: {reason}")]
pub struct DeliveryRecordError {
    key: &'static str,
    value: String,
    reason: &'static str,
}

impl FileType {
    /// A record of what other files hold.
    pub const METADATA: Self = Self("METADATA");

    /// All that the consumer knows.
    pub const fn all() -> &'static [&'static str] {
        &FILE_TYPES
    }

    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

/// `FILE_TYPE` of `parse-pdr`.
const FILE_TYPES: [&str; 11] = [
    "HDF",
    "HDF-EOS",
    "SCIENCE",
    "BROWSE",
    "METADATA",
    "BROWSE_METADATA",
    "QA_METADATA",
    "PRODHIST",
    "QA",
    "TGZ",
    "LINKAGE",
];

/// A delivery record's text.
///
/// # Errors
/// [`DeliveryRecordError`]: a value cannot be written so that the consumer reads it back.
pub fn write_record(
    record: &DeliveryRecord,
    terms: &Terms,
) -> Result<Vec<u8>, DeliveryRecordError> {
    let mut out = Lines { text: String::new(), depth: 0 };
    out.text("ORIGINATING_SYSTEM", &record.originator)?;
    out.text("CONSUMER_SYSTEM", &record.consumer)?;
    out.bare("TOTAL_FILE_COUNT", &record.files.len().to_string());
    out.bare("EXPIRATION_TIME", &time(record.expires));
    out.begin("FILE_GROUP");
    out.text("DATA_TYPE", &record.data_type)?;
    out.text("DATA_VERSION", &terms.data_version)?;
    if let Some(host) = &terms.node_name {
        out.text("NODE_NAME", host)?;
    }
    for file in &record.files {
        out.file(file, terms)?;
    }
    if let Some((first, last)) = record.span {
        out.bare("BEGINNING_DATE/TIME", &time(first));
        out.bare("ENDING_DATE/TIME", &time(last));
    }
    out.end("FILE_GROUP");
    out.text.push_str("END;\n");
    Ok(out.text.into_bytes())
}

/// Whether a record can say that files lie in this folder.
///
/// # Errors
/// [`DeliveryRecordError`] says what is in the way.
pub fn check_folder(folder: &str) -> Result<(), DeliveryRecordError> {
    written("DIRECTORY_ID", folder).map(drop)
}

/// A record under way.
struct Lines {
    text: String,
    depth: usize,
}

impl Lines {
    fn bare(&mut self, key: &str, value: &str) {
        self.text.push_str(&format!("{:1$}{key} = {value};\n", "", 2 * self.depth));
    }

    fn text(&mut self, key: &'static str, value: &str) -> Result<(), DeliveryRecordError> {
        let value = written(key, value)?;
        self.bare(key, &value);
        Ok(())
    }

    fn begin(&mut self, object: &str) {
        self.bare("OBJECT", object);
        self.depth += 1;
    }

    fn end(&mut self, object: &str) {
        self.depth -= 1;
        self.bare("END_OBJECT", object);
    }

    fn file(&mut self, file: &DeliveredFile, terms: &Terms) -> Result<(), DeliveryRecordError> {
        let kind = if file.is_metadata { terms.metadata_type } else { terms.file_type };
        self.begin("FILE_SPEC");
        self.text("DIRECTORY_ID", &file.directory)?;
        self.text("FILE_ID", &file.name)?;
        self.bare("FILE_TYPE", kind.as_str());
        self.bare("FILE_SIZE", &file.size.as_u64().to_string());
        match file.checksum {
            // The consumer takes a check of 0 for one that is not there, and the record for half a
            // checksum. It has no SHA-256.
            None | Some(Checksum::Cksum(0) | Checksum::Sha256(_)) => {}
            Some(Checksum::Md5(digest)) => {
                self.bare("FILE_CKSUM_TYPE", "MD5");
                self.text("FILE_CKSUM_VALUE", &crate::hex(&digest))?;
            }
            // The consumer holds this one to be a number.
            Some(Checksum::Cksum(value)) => {
                self.bare("FILE_CKSUM_TYPE", "CKSUM");
                self.bare("FILE_CKSUM_VALUE", &value.to_string());
            }
        }
        self.end("FILE_SPEC");
        Ok(())
    }
}

/// Text so that it is read as that text, in apostrophes where it needs them.
fn written(key: &'static str, value: &str) -> Result<String, DeliveryRecordError> {
    let harmful = |character: char| match character {
        '=' => Some("the consumer tears it at `=`; choose a name without"),
        '"' | '\'' => Some("it has a quotation mark; choose a name without"),
        // What a path has become that is no UTF-8.
        char::REPLACEMENT_CHARACTER => Some("it is not UTF-8; choose a name that is"),
        other if other.is_control() => Some("it has a control character; choose a name without"),
        _ => None,
    };
    let reason =
        if value.is_empty() { Some("it is empty") } else { value.chars().find_map(harmful) };
    if let Some(reason) = reason {
        return Err(DeliveryRecordError { key, value: value.escape_debug().to_string(), reason });
    }
    let is_plain =
        value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-:./".contains(&byte));
    let begins_as_text =
        value.starts_with(|first: char| first.is_ascii_alphabetic() || "/_".contains(first));
    Ok(if is_plain && begins_as_text { value.to_owned() } else { format!("'{value}'") })
}

impl core::str::FromStr for FileType {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known = FILE_TYPES.iter().find(|known| **known == text);
        known.map(|known| Self(known)).ok_or_else(|| {
            format!(
                "`{text}` is no file type of delivery records; write one of {}",
                FILE_TYPES.map(|known| format!("\"{known}\"")).join(", ")
            )
        })
    }
}

impl<'de> serde::Deserialize<'de> for FileType {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <String as serde::Deserialize>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A notice that everything was taken, or that nothing was and why, as a consumer writes it.
pub fn write_short(failure: Option<&str>, made: Utc) -> Vec<u8> {
    let disposition = failure.unwrap_or(SUCCESSFUL);
    let all = [
        text("MESSAGE_TYPE", "SHORTPAN"),
        text("DISPOSITION", disposition),
        text("TIME_STAMP", &time(made)),
    ];
    pvl::write(&all, "\n").into_bytes()
}

pub(crate) fn parse_notice(bytes: &[u8]) -> Result<Notice, NoticeError> {
    let text = core::str::from_utf8(bytes).map_err(|_| NoticeError("it is no text".to_owned()))?;
    let all = pvl::parse(text).map_err(|error| NoticeError(error.to_string()))?;
    let kind = pvl::value(&all, "MESSAGE_TYPE")
        .ok_or_else(|| NoticeError("it has no MESSAGE_TYPE".to_owned()))?;
    let disposition = || {
        let missing = || NoticeError("it has no DISPOSITION".to_owned());
        pvl::value(&all, "DISPOSITION").map(str::to_owned).ok_or_else(missing)
    };
    let answer = match kind {
        "SHORTPAN" => match disposition()? {
            reason if is_successful(&reason) => NoticeContent::Accepted,
            reason => NoticeContent::Failed(reason),
        },
        "LONGPAN" => settled(list(&all, "NO_OF_FILES", "FILE_NAME")?),
        "SHORTPDRD" => NoticeContent::Refused(disposition()?),
        "LONGPDRD" => {
            let groups = list(&all, "NO_FILE_GRPS", "DATA_TYPE")?;
            let failed = groups
                .into_iter()
                .find_map(|group| Some(format!("{}: {}", group.name, group.failure?)));
            failed.map_or(NoticeContent::Accepted, NoticeContent::Refused)
        }
        other => {
            return Err(NoticeError(format!("`{}` is no kind of notice", printable(other, 40))));
        }
    };
    Ok(Notice { sequence: None, answer })
}

/// The entries of a long notice: a count, then a name and a disposition for each.
fn list(all: &[Statement], count: &str, name: &str) -> Result<Vec<FileAnswer>, NoticeError> {
    let named: Option<usize> = pvl::value(all, count).and_then(|count| count.parse().ok());
    let names: Vec<_> = pvl::values(all, name).collect();
    let dispositions: Vec<_> = pvl::values(all, "DISPOSITION").collect();
    if named != Some(names.len()) || names.len() != dispositions.len() {
        return Err(NoticeError(format!("{count} does not agree with the entries")));
    }
    let answer = |(name, reason): (&str, &str)| FileAnswer {
        name: name.to_owned(),
        failure: (!is_successful(reason)).then(|| reason.to_owned()),
    };
    Ok(names.into_iter().zip(dispositions).map(answer).collect())
}

fn settled(files: Vec<FileAnswer>) -> NoticeContent {
    let is_fine = files.iter().all(|file| file.failure.is_none());
    if is_fine { NoticeContent::Accepted } else { NoticeContent::Files(files) }
}

fn is_successful(disposition: &str) -> bool {
    matches!(disposition, SUCCESSFUL | "OK")
}

pub(super) fn text(key: &str, value: &str) -> Statement {
    Statement::Value(key.to_owned(), value.to_owned())
}

/// ISO 8601 to the second.
pub(super) fn time(at: Utc) -> String {
    let text = at.to_string();
    format!("{}Z", text.get(..19).unwrap_or(&text))
}

const SUCCESSFUL: &str = "SUCCESSFUL";
