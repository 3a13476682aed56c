//! Who works on which alarm, in the state folder: a file for each part of a node, replaced in one
//! step.
//!
//! ```text
//! acknowledged-centre.json     the SHA-256 of what follows, in hexadecimal digits
//!                              the acknowledgements as JSON
//! ```

use crate::state_file;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use skyhaul_events::{Acknowledgement, AlarmKey};
use skyhaul_store::Disk;
use std::io;
use std::sync::Arc;

/// The acknowledgements of one part of a node, on the disk.
#[derive(Debug)]
pub(crate) struct AckRecord {
    disk: Arc<dyn Disk>,
    file: &'static str,
}

/// The part of a node whose alarms are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AlarmPart {
    /// What it sends.
    Station,
    /// What it receives.
    Centre,
}

/// Acknowledgements with their alarms.
pub(crate) type AckNotes = Vec<(AlarmKey, Acknowledgement)>;

/// What a record had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AckRead {
    /// These acknowledgements; none where there is no file.
    Whole(AckNotes),
    /// Nothing that can be used, for this reason.
    Damaged(String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// Of this form.
    version: u32,
    acknowledged: Vec<WrittenAck>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAck {
    #[serde(flatten)]
    alarm: AlarmKey,
    acknowledgement: Acknowledgement,
}

const VERSION: u32 = 1;
/// As many as there are alarms at most.
const NOTES_MAX: usize = 1_024;
/// Each with a note and a subject of the longest, escaped.
const BYTES_MAX: u64 = 16 << 20;
/// A digest in hexadecimal digits.
const DIGEST: usize = 64;

impl AckRecord {
    /// The record of a part in this state folder.
    pub(crate) fn new(disk: Arc<dyn Disk>, part: AlarmPart) -> Self {
        let file = match part {
            AlarmPart::Station => "acknowledged-station.json",
            AlarmPart::Centre => "acknowledged-centre.json",
        };
        Self { disk, file }
    }

    /// Its file in the state folder.
    pub(crate) const fn file(&self) -> &'static str {
        self.file
    }

    /// Reads it.
    pub(crate) fn read(&self) -> AckRead {
        match state_file::read(&*self.disk, self.file, BYTES_MAX) {
            Ok(None) => AckRead::Whole(Vec::new()),
            Ok(Some(text)) => parse(&text).map_or_else(AckRead::Damaged, AckRead::Whole),
            Err(error) => AckRead::Damaged(error.to_string()),
        }
    }

    /// Makes these durable, in place of those before.
    ///
    /// # Errors
    /// The disk refuses: those before are there still.
    pub(crate) fn write(&self, notes: AckNotes) -> io::Result<()> {
        let body = encoded(notes)?;
        let text = [digest(&body).as_bytes(), b"\n", &body, b"\n"].concat();
        state_file::replace(&*self.disk, self.file, &text)
    }
}

/// The JSON of a record.
fn encoded(notes: AckNotes) -> io::Result<Vec<u8>> {
    let of = |(alarm, acknowledgement)| WrittenAck { alarm, acknowledgement };
    let written = Written { version: VERSION, acknowledged: notes.into_iter().map(of).collect() };
    serde_json::to_vec(&written).map_err(io::Error::other)
}

fn digest(body: &[u8]) -> String {
    Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse(text: &[u8]) -> Result<AckNotes, String> {
    let whole = text.strip_suffix(b"\n").and_then(|text| text.split_at_checked(DIGEST));
    let (known, body) = whole.ok_or("it is cut off")?;
    let body = body.strip_prefix(b"\n").ok_or("it has no digest")?;
    if known != digest(body).as_bytes() {
        return Err("its content is not what was written".to_owned());
    }
    parse_body(body)
}

/// Reads the JSON of a record.
fn parse_body(body: &[u8]) -> Result<AckNotes, String> {
    let written: Written = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    if written.version != VERSION {
        return Err(format!("it is of form {}, this release reads {VERSION}", written.version));
    }
    if written.acknowledged.len() > NOTES_MAX {
        return Err(format!("it has more than {NOTES_MAX} acknowledgements"));
    }
    let of = |one: WrittenAck| (one.alarm, one.acknowledgement);
    Ok(written.acknowledged.into_iter().map(of).collect())
}

/// Reads the text of a record of acknowledgements, and whether it is written and read the same.
///
/// # Errors
/// It is none.
pub fn check_acknowledgements(body: &[u8]) -> Result<(), String> {
    let notes = parse_body(body)?;
    let again = encoded(notes.clone()).map_err(|error| error.to_string())?;
    match parse_body(&again)? == notes {
        true => Ok(()),
        false => Err("what is written is not what was read".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_events::AlarmKind;
    use skyhaul_store::sim::SimDisk;
    use skyhaul_units::ByteCount;

    fn notes() -> AckNotes {
        let alarm = AlarmKey { kind: AlarmKind::PeerSilent, subject: "node \"s\"\n".to_owned() };
        let said = Acknowledgement {
            by: "kim".to_owned(),
            note: "fibre cut".to_owned(),
            at: "2026-11-26T21:00:00Z".to_owned(),
        };
        vec![(alarm, said)]
    }

    fn record(disk: &SimDisk) -> AckRecord {
        AckRecord::new(Arc::new(disk.clone()), AlarmPart::Centre)
    }

    #[test]
    fn what_was_written_is_there_after_a_crash_and_what_was_not_costs_nothing() {
        let disk = SimDisk::new(ByteCount::mib(1));
        assert_eq!(record(&disk).read(), AckRead::Whole(Vec::new()));
        record(&disk).write(notes()).unwrap();
        disk.crash(1);
        assert_eq!(record(&disk).read(), AckRead::Whole(notes()));
        disk.set_capacity(ByteCount::ZERO);
        record(&disk).write([notes(), notes()].concat()).unwrap_err();
        disk.crash(2);
        assert_eq!(record(&disk).read(), AckRead::Whole(notes()));
    }

    #[test]
    fn a_record_with_any_byte_changed_or_cut_off_anywhere_is_damaged() {
        let disk = SimDisk::new(ByteCount::mib(1));
        record(&disk).write(notes()).unwrap();
        let text = state_file::read(&disk, record(&disk).file, BYTES_MAX).unwrap().unwrap();
        for at in 0..text.len() {
            let mut changed = text.clone();
            changed[at] ^= 1;
            assert!(parse(&changed).is_err(), "byte {at}");
            assert!(parse(&text[..at]).is_err(), "{at} bytes");
        }
        assert_eq!(parse(&text), Ok(notes()));
    }
}
