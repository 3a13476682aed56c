//! Does one job: reads its contacts from the store, and publishes what the plan says.

use super::fill::weave;
use super::forms::{AssemblyJob, ProductTarget, VersionPlan};
use super::join::{self, JoinedContact};
use crate::centre::files::ProductFiles;
use crate::centre::shared::Shared;
use crate::config::ProductRules;
use crate::custody::Stamps;
use skyhaul_ccsds::id::Scid;
use skyhaul_ccsds::mission::Mission;
use skyhaul_level0::report::{ContactInput, Product};
use skyhaul_level0::{Assembly, ContactInfo, Edition, Limits, Novelty};
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
    fn about(self, dir: &Path) -> Self {
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
    /// Its opening record.
    pub open: Open,
    /// The mission as the contact has it.
    pub mission: Mission,
    closed: Utc,
    /// What each of several inputs of the station gave.
    pub inputs: Vec<ContactInput>,
}

impl ContactSource {
    /// As accounts name it.
    pub fn name(&self) -> String {
        format!("{}-{}", self.station, self.flow)
    }
}

/// Publishes the products of a planned job; returns them and the mission as the newest contact has
/// it.
///
/// # Errors
/// [`Undone`]; what is published already is published again, the same, when the job is done again.
pub fn run(
    job: &AssemblyJob,
    plan: &VersionPlan,
    rules: &ProductRules,
    shared: &Shared,
) -> Result<(Mission, Vec<Product>), Undone> {
    let sources: Vec<ContactSource> = plan
        .contacts
        .iter()
        .map(|(station, flow)| source(station, *flow, shared))
        .collect::<Result<_, _>>()?;
    // The mission as the newest contact has it: the same whatever the order of arrival.
    let newest =
        sources.iter().max_by_key(|source| (source.open.opened, &source.station, source.flow));
    let Some(newest) = newest else { return Err(Undone::Gone("every contact".to_owned())) };
    let mission = newest.mission.clone();
    let mission = &mission;
    let newest_scid = newest.open.scid;
    let scid = newest_scid.or_else(|| mission.scids().first().copied());
    let scid = match &job.target {
        ProductTarget::Window { scid, .. } => Scid::new(*scid).or(newest_scid),
        ProductTarget::Contact { .. } => scid,
    };
    let scid = scid.ok_or_else(|| Undone::Refused("no contact names the spacecraft".to_owned()))?;
    let names = mission.products().iter().map(|group| group.name.as_str());
    let (rules, dir, window) = match &job.target {
        ProductTarget::Window { .. } => {
            (rules.time(mission.name(), names), &rules.products.dir, job.target.span())
        }
        ProductTarget::Contact { .. } => {
            (rules.session(mission.name(), names), &rules.products.dir, None)
        }
    };
    let previous =
        job.versions.iter().filter_map(|(name, version)| Some((name.clone(), version.previous()?)));
    let edition = Edition {
        window,
        span: plan.span(),
        only: window.map(|_| plan.products.clone()),
        created: Utc::from_micros(plan.created_us),
        previous: previous.collect(),
    };
    let refused = |error: String| Undone::Refused(format!("{}: {error}", dir.display()));
    let files = ProductFiles::new(dir, WORK).map_err(|error| refused(error.to_string()))?;
    let mut assembly =
        Assembly::new(mission, scid, edition, Limits::default(), files).with_rules(rules);
    let sources: Vec<(ContactSource, Novelty)> =
        sources.into_iter().map(|source| with_standing(job, source)).collect();
    let fills = weave(&sources, shared)?;
    let members = sources.iter().zip(&fills).map(|((source, standing), fill)| {
        let is_other =
            job.target.is_of_another(&source.station, (source.flow, source.open.completes));
        JoinedContact { source, standing: *standing, fill, is_other }
    });
    let members: Vec<JoinedContact<'_>> = members.collect();
    for member in &members {
        give(member, scid, shared, &mut assembly).map_err(|undone| undone.about(dir))?;
    }
    for group in &plan.joined {
        join::give(&join::group(group, &members), scid, shared, &mut assembly)?;
    }
    let products = assembly.finish().map_err(|error| refused(error.to_string()))?;
    ProductFiles::clean(dir, WORK);
    Ok((mission.clone(), products))
}

/// Gives the frames of a contact, and those that belong among them.
fn give(
    member: &JoinedContact<'_>,
    scid: Scid,
    shared: &Shared,
    assembly: &mut Assembly<ProductFiles>,
) -> Result<(), Undone> {
    let JoinedContact { source, standing, fill, is_other } = *member;
    let refused = |error: skyhaul_level0::Error| Undone::Refused(error.to_string());
    let info = ContactInfo {
        station: source.station.clone(),
        contact: source.name(),
        also_fits: source.open.also_fits.clone(),
        scid: source.open.scid.unwrap_or(scid),
        opened: source.open.opened,
        window: None,
    };
    if is_other {
        assembly.other(&source.mission, info, source.closed).map_err(refused)?;
        assembly.inputs(source.inputs.clone());
        return if fill.is_woven { Ok(()) } else { join::beside(member, scid, shared, assembly) };
    }
    assembly.contact(&source.mission, info, source.closed, standing).map_err(refused)?;
    if fill.is_woven {
        return Ok(());
    }
    assembly.inputs(source.inputs.clone());
    let mut completing = fill.cursor();
    walk(&source.station, source.flow, shared, &mut |entry| {
        let Entry::Frame(frame) = entry else { return Ok(()) };
        while let Some((other, standing)) = completing.before(frame.position) {
            assembly.completing(other, *standing).map_err(refused)?;
        }
        assembly.frame(&frame).map_err(refused)
    })?;
    while let Some((other, standing)) = completing.rest() {
        assembly.completing(other, *standing).map_err(refused)?;
    }
    Ok(())
}

/// A contact, and whether the version before had it.
fn with_standing(job: &AssemblyJob, source: ContactSource) -> (ContactSource, Novelty) {
    let is_known =
        job.versions.is_empty() || job.contacts.contains(&(source.station.clone(), source.flow));
    (source, if is_known { Novelty::Known } else { Novelty::New })
}

/// What a contact says of itself.
fn source(station: &str, flow: u32, shared: &Shared) -> Result<ContactSource, Undone> {
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
    let open = open.ok_or_else(unreadable)?;
    let mission = Mission::from_toml(&open.mission).map_err(|_| unreadable())?;
    let closed = closed.unwrap_or(open.opened);
    Ok(ContactSource { station: station.to_owned(), flow, closed, open, mission, inputs })
}

/// Hands the records of a finished contact to `sink`. What the disk gives back damaged is passed
/// over: it was told when the contact was processed.
pub fn walk(
    station: &str,
    flow: u32,
    shared: &Shared,
    sink: &mut impl FnMut(Entry) -> Result<(), Undone>,
) -> Result<(), Undone> {
    let mut reader = reader(station, flow, shared)?;
    loop {
        if shared.life.is_stopping() {
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
pub fn reader(station: &str, flow: u32, shared: &Shared) -> Result<KeptReader, Undone> {
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

/// The folder worked in; contacts' names have a `-`.
const WORK: &str = "assembly";
