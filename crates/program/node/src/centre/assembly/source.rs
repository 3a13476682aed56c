//! Reads the contacts of a job from the store.

use super::forms::ContactKey;
use crate::centre::shared::CentreShared;
use crate::custody::Stamps;
use skyhaul_ccsds::mission::Mission;
use skyhaul_level0::report::ContactInput;
use skyhaul_records::payload::{BlockHead, split_taken};
use skyhaul_records::{Open, Record as Entry, RecordReader};
use skyhaul_store::{KeptReader, LogEntry, LogRecord, StationName};
use skyhaul_units::{FlowId, Utc};
use std::path::Path;

/// Why a job was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undone {
    /// Data of a contact is gone from the store.
    Gone(String),
    /// Products cannot be written, or contacts not be read now.
    Refused(String),
    /// The centre ends.
    Stopped,
}

impl Undone {
    /// The same, saying where.
    pub fn about(self, dir: &Path) -> Self {
        match self {
            Self::Refused(reason) => Self::Refused(format!("{}: {reason}", dir.display())),
            other => other,
        }
    }
}

/// One contact of a job.
#[derive(Debug)]
pub struct ContactSource {
    /// The station.
    pub station: String,
    /// Its number there.
    pub flow: u32,
    /// The station that captured it, and its flow there, where nodes passed it on.
    pub origin: Option<ContactKey>,
    /// Its opening record.
    pub open: Open,
    /// The mission as the contact has it.
    pub mission: Mission,
    /// When the station closed it.
    pub closed: Utc,
    /// What each of several inputs of the station gave.
    pub inputs: Vec<ContactInput>,
}

impl ContactSource {
    /// As accounts name it.
    pub fn name(&self) -> String {
        match &self.origin {
            Some((station, flow)) => format!("{station}-{flow}"),
            None => format!("{}-{}", self.station, self.flow),
        }
    }

    /// The station that captured it.
    pub fn captured_by(&self) -> &str {
        self.origin.as_ref().map_or(&self.station, |(station, _)| station)
    }
}

/// Reads the opening and closing records of a contact.
///
/// # Errors
/// [`Undone`]: the contact cannot be read.
pub fn source(station: &str, flow: u32, shared: &CentreShared) -> Result<ContactSource, Undone> {
    let mut open = None;
    let mut closed = None;
    let mut inputs = Vec::new();
    walk(station, flow, shared, &mut |entry| {
        match entry {
            Entry::Open(found) => open = Some(found),
            Entry::Close(close) => closed = Some(close.closed),
            Entry::Inputs(given) => inputs = given.into_iter().map(ContactInput::from).collect(),
            _ => {}
        }
        Ok(())
    })?;
    let unreadable = || Undone::Gone(format!("flow {flow} of {station}"));
    let mut open = open.ok_or_else(unreadable)?;
    let mission = Mission::from_toml(&open.mission).map_err(|_| unreadable())?;
    let closed = closed.unwrap_or(open.opened);
    let key = (station.to_owned(), flow);
    let noted = shared.journal().noted(&key).map(|note| (note.origin.clone(), note.completes));
    let (origin, completes) = noted.unwrap_or_default();
    if origin.is_some() {
        // The station named its own contact, and the store has it under another number.
        open.completes = completes.map(FlowId);
    }
    let (station, _) = key;
    Ok(ContactSource { station, flow, origin, closed, open, mission, inputs })
}

/// Passes the records of a finished contact to `sink`. Blocks that are damaged on disk are skipped:
/// that was reported when the contact was processed.
pub fn walk(
    station: &str,
    flow: u32,
    shared: &CentreShared,
    sink: &mut impl FnMut(Entry) -> Result<(), Undone>,
) -> Result<(), Undone> {
    let mut reader = reader(station, flow, shared)?;
    loop {
        if shared.shutdown.is_requested() {
            return Err(Undone::Stopped);
        }
        match reader.read().map_err(|error| Undone::Refused(error.to_string()))? {
            Some(LogEntry::Block(record)) => records(&record, sink)?,
            Some(LogEntry::Damaged(_) | LogEntry::SegmentEnd(_)) => {}
            None => return Ok(()),
        }
    }
}

/// Reads a finished contact from its beginning.
pub fn reader(station: &str, flow: u32, shared: &CentreShared) -> Result<KeptReader, Undone> {
    let gone = || Undone::Gone(format!("flow {flow} of {station}"));
    let name = StationName::new(station).map_err(|_| gone())?;
    let store = shared.store();
    if !store.kept().contains(&name, FlowId(flow)) {
        return Err(gone());
    }
    store.kept().reader(&name, FlowId(flow)).map_err(|error| Undone::Refused(error.to_string()))
}

/// Hands the contact's records in a block to `sink`.
pub fn records(
    record: &LogRecord,
    sink: &mut impl FnMut(Entry) -> Result<(), Undone>,
) -> Result<(), Undone> {
    let Some((_, wire)) = Stamps::split(&record.payload) else { return Ok(()) };
    let Ok((_, payload)) = split_taken(wire) else { return Ok(()) };
    let Ok((_, content)) = BlockHead::decode(payload) else { return Ok(()) };
    let Ok(records) = content.records() else { return Ok(()) };
    let (mut reader, mut records) = (RecordReader::new(), &records[..]);
    while let Ok(Some(entry)) = reader.read(&mut records) {
        sink(entry)?;
    }
    Ok(())
}
