//! The journal of products of several contacts: which are due. It is kept in memory, and in the
//! state folder so that a kill at any instant loses nothing and makes nothing twice.
//!
//! A finished contact is noted before the store marks it as done. A job is planned, with everything
//! that decides its bytes and names, before it begins; an interrupted job is repeated as planned,
//! over the same files.

use super::forms::{
    AssemblyJob, ContactKey, ContactSummary, MakeAgain, ProductTarget, Version, VersionPlan,
};
use super::overlap::{group_of, groups, with_completing};
use crate::status::{AssembledProduct, AssemblyState};
use serde::Serialize;
use serde::de::DeserializeOwned;
use skyhaul_config::ProductRules;
use skyhaul_level0::naming::{Digit, ProductName};
use skyhaul_store::{Disk, LedgerError, RecordDirectory};
use skyhaul_units::{Duration, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Notes and jobs.
#[derive(Debug)]
pub struct AssemblyJournal {
    rules: ProductRules,
    notes: RecordDirectory,
    jobs: RecordDirectory,
    known: BTreeMap<ContactKey, ContactSummary>,
    work: BTreeMap<String, Work>,
    last_created_us: i64,
    /// Records that the disk gave back damaged.
    damaged: Vec<String>,
}

/// A job, and the contacts that it does not have yet.
#[derive(Debug)]
struct Work {
    job: AssemblyJob,
    /// Contacts that are not in it, with the products that they have packets of.
    waiting: BTreeMap<ContactKey, BTreeSet<String>>,
}

impl Work {
    /// Whether it is under way, or to be made again.
    const fn is_ordered(&self) -> bool {
        self.job.plan.is_some() || self.job.again.is_some()
    }
}

/// A contact that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenContact {
    /// The spacecraft, where it is known.
    pub scid: Option<u16>,
}

/// A product that is made, or waits for contacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingProduct {
    /// The job.
    pub job: AssemblyJob,
    /// Contacts that are not in its newest version.
    pub waiting: usize,
}

impl PendingProduct {
    /// Its status.
    pub fn shown(&self, state: AssemblyState) -> AssembledProduct {
        let (mission, contact) = match &self.job.target {
            ProductTarget::Window { mission, .. } => (mission.clone(), None),
            ProductTarget::Contact { station, flow } => {
                (String::new(), Some(format!("{station}-{flow}")))
            }
        };
        let window = self.job.target.span();
        AssembledProduct {
            mission,
            contact,
            from: window.map(|window| window.from.to_string()),
            to: window.map(|window| window.to.to_string()),
            state,
            version: self
                .job
                .versions
                .values()
                .map(|version| version.version)
                .max()
                .unwrap_or_default(),
            contacts: self.waiting,
            ..AssembledProduct::default()
        }
    }
}

/// The longest time that an open contact delays products after they are due: four times the longest
/// pass of a satellite in low orbit.
const PATIENCE: Duration = Duration::from_secs(3_600);
/// The most jobs in the journal: seven years of 24 a day of one spacecraft. Beyond that the oldest
/// are forgotten.
const JOBS_MAX: usize = 65_536;

impl AssemblyJournal {
    /// Opens the journal in the folders of the state.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn open(disk: &Arc<dyn Disk>, rules: ProductRules) -> Result<Self, LedgerError> {
        let mut journal = Self {
            rules,
            notes: RecordDirectory::open(disk.clone(), "level0/contacts")?,
            jobs: RecordDirectory::open(disk.clone(), "level0/jobs")?,
            known: BTreeMap::new(),
            work: BTreeMap::new(),
            last_created_us: 0,
            damaged: Vec::new(),
        };
        for job in load::<AssemblyJob>(&journal.jobs, &mut journal.damaged)? {
            let planned = job.plan.as_ref().map_or(0, |plan| plan.created_us);
            journal.last_created_us = journal.last_created_us.max(planned).max(job.made_us);
            journal.work.insert(job.target.key(), Work { job, waiting: BTreeMap::new() });
        }
        for note in load::<ContactSummary>(&journal.notes, &mut journal.damaged)? {
            journal.known.insert(note.contact(), note);
        }
        for contact in journal.known.keys().cloned().collect::<Vec<_>>() {
            journal.enter(&contact);
        }
        Ok(journal)
    }

    /// The rules by which products are made.
    pub const fn rules(&self) -> &ProductRules {
        &self.rules
    }

    /// Records that were damaged on disk: their content is lost.
    pub fn damaged(&self) -> &[String] {
        &self.damaged
    }

    /// Notes a contact, durably. Noting it again changes nothing.
    ///
    /// # Errors
    /// The disk refuses; nothing is changed.
    pub fn note(&mut self, note: ContactSummary) -> Result<(), LedgerError> {
        put(&self.notes, &note.key(), &note)?;
        let contact = note.contact();
        let others: Vec<ContactKey> = self
            .known
            .values()
            .filter(|other| other.overlaps(&note))
            .map(ContactSummary::contact)
            .collect();
        self.known.insert(contact.clone(), note);
        // Contacts that came before it may have data for its products too.
        let is_of = |whole: &ContactKey| whole == &contact || others.contains(whole);
        let completing =
            self.known.values().filter(|note| note.completed().as_ref().is_some_and(is_of));
        let completing: Vec<ContactKey> = completing.map(ContactSummary::contact).collect();
        for entered in core::iter::once(&contact).chain(&others).chain(&completing) {
            self.enter(entered);
        }
        Ok(())
    }

    /// Whether no other contact has products with this second and digit in their names.
    pub fn is_free(&self, own: &ContactKey, created: Utc, digit: Digit) -> bool {
        let second = |time: Utc| time.as_micros().div_euclid(SECOND_US);
        let others = self.known.iter().filter(|(contact, _)| *contact != own);
        let names = others.flat_map(|(_, note)| note.versions.values());
        let is_its = |name: &ProductName| {
            second(name.created()) == second(created) && name.uniqueness() == digit
        };
        !names
            .filter_map(|version| ProductName::parse(&version.name).ok())
            .any(|name| is_its(&name))
    }

    /// Whether a contact is noted.
    pub fn is_noted(&self, contact: &ContactKey) -> bool {
        self.known.contains_key(contact)
    }

    /// The summary of a contact; none where it is not noted.
    pub fn noted(&self, contact: &ContactKey) -> Option<&ContactSummary> {
        self.known.get(contact)
    }

    /// The flow in a name space of a contact that nodes passed on; none where it is not noted.
    pub fn find_origin(&self, space: &str, origin: &ContactKey) -> Option<u32> {
        let is_it =
            |note: &&ContactSummary| note.station == space && note.origin.as_ref() == Some(origin);
        self.known.values().rev().find(is_it).map(|note| note.flow)
    }

    /// The next due job, with its plan.
    ///
    /// # Errors
    /// The disk refuses; nothing is changed.
    pub fn next(
        &mut self,
        now: Utc,
        open: &[OpenContact],
    ) -> Result<Option<AssemblyJob>, LedgerError> {
        let is_begun =
            |work: &&Work| work.job.plan.as_ref().is_some_and(|plan| plan.again.is_none());
        if let Some(work) = self.work.values().find(is_begun) {
            return Ok(Some(work.job.clone()));
        }
        let due = self.work.iter().find(|(_, work)| self.is_due(work, now, open));
        let Some(key) = due.map(|(key, _)| key.clone()) else { return Ok(None) };
        self.plan(&key, now, None)
    }

    /// The next job that an operator ordered to be made again, with its plan.
    ///
    /// # Errors
    /// The disk refuses; nothing is changed.
    pub fn next_again(&mut self, now: Utc) -> Result<Option<AssemblyJob>, LedgerError> {
        let is_begun =
            |work: &&Work| work.job.plan.as_ref().is_some_and(|plan| plan.again.is_some());
        if let Some(work) = self.work.values().find(is_begun) {
            return Ok(Some(work.job.clone()));
        }
        let is_next = |work: &&Work| work.job.again.is_some() && work.job.plan.is_none();
        let next = self.work.values().find(is_next);
        let next = next.map(|work| (work.job.target.key(), work.job.again.clone()));
        next.map_or(Ok(None), |(key, again)| self.plan(&key, now, again))
    }

    /// Saves the plan of a job: a version with all contacts that wait for it, or, by order, one
    /// with the same contacts again.
    fn plan(
        &mut self,
        key: &str,
        now: Utc,
        again: Option<MakeAgain>,
    ) -> Result<Option<AssemblyJob>, LedgerError> {
        let Some(work) = self.work.get(key) else { return Ok(None) };
        // Whole seconds, each used once: names have no finer time.
        let second = now
            .as_micros()
            .div_euclid(SECOND_US)
            .max(self.last_created_us.div_euclid(SECOND_US) + 1);
        let waiting = || work.waiting.keys().filter(|_| again.is_none());
        let contacts: BTreeSet<_> = work.job.contacts.iter().chain(waiting()).cloned().collect();
        let products: BTreeSet<_> = match again {
            Some(_) => work.job.versions.keys().cloned().collect(),
            None => work.waiting.values().flatten().cloned().collect(),
        };
        let joined = self.joined(&work.job, &contacts);
        let span_us = self.own(&work.job.target).and_then(|note| note.span_us);
        let plan = VersionPlan {
            span_us,
            created_us: second * SECOND_US,
            contacts: contacts.into_iter().collect(),
            products: products.into_iter().collect(),
            joined,
            again,
        };
        let job = AssemblyJob { plan: Some(plan), ..work.job.clone() };
        put(&self.jobs, key, &job)?;
        self.last_created_us = second * SECOND_US;
        if let Some(work) = self.work.get_mut(key) {
            work.job = job.clone();
        }
        Ok(Some(job))
    }

    /// A job was carried out as planned, and made these versions.
    ///
    /// # Errors
    /// The disk refuses: the job is repeated.
    pub fn done(
        &mut self,
        job: &AssemblyJob,
        versions: BTreeMap<String, Version>,
    ) -> Result<(), LedgerError> {
        let Some(plan) = &job.plan else { return Ok(()) };
        let mut made = job.clone();
        made.contacts.clone_from(&plan.contacts);
        if !versions.is_empty() || plan.again.is_none() {
            made.made_us = plan.created_us;
        }
        made.versions.extend(versions);
        if plan.again.is_some() {
            made.again = None;
        }
        made.plan = None;
        self.settle(made)
    }

    /// The data of a contact of the job is gone: the newest versions are the last ones.
    ///
    /// # Errors
    /// The disk refuses: the caller tries again.
    pub fn seal(&mut self, job: &AssemblyJob) -> Result<(), LedgerError> {
        self.settle(AssemblyJob { plan: None, sealed: true, ..job.clone() })
    }

    fn settle(&mut self, job: AssemblyJob) -> Result<(), LedgerError> {
        let key = job.target.key();
        put(&self.jobs, &key, &job)?;
        if let Some(work) = self.work.get_mut(&key) {
            work.waiting.retain(|contact, _| !job.sealed && !job.contacts.contains(contact));
            work.job = job;
        }
        Ok(())
    }

    /// The groups of joined contacts: those of the version before, where they differ, so that new
    /// packets can be told from known ones; and the present ones.
    fn joined(&self, job: &AssemblyJob, contacts: &BTreeSet<ContactKey>) -> Vec<Vec<ContactKey>> {
        if !self.rules.products.select {
            return Vec::new();
        }
        let now: Vec<&ContactSummary> =
            contacts.iter().filter_map(|contact| self.known.get(contact)).collect();
        let before: Vec<&ContactSummary> =
            job.contacts.iter().filter_map(|contact| self.known.get(contact)).collect();
        let joined = |notes: &[&ContactSummary]| {
            let notes = || notes.iter().copied();
            let groups = match &job.target {
                ProductTarget::Contact { station, flow } => {
                    group_of(&(station.clone(), *flow), notes()).into_iter().collect()
                }
                ProductTarget::Window { .. } => {
                    job.target.span().map_or_else(Vec::new, |window| groups(notes(), &window))
                }
            };
            groups.into_iter().map(|group| with_completing(group, notes())).collect::<Vec<_>>()
        };
        let now = joined(&now);
        let before = joined(&before).into_iter().filter(|group| !now.contains(group));
        before.chain(now.iter().cloned()).collect()
    }

    /// The contact whose products a job makes; none for a window.
    fn own(&self, target: &ProductTarget) -> Option<&ContactSummary> {
        let ProductTarget::Contact { station, flow } = target else { return None };
        self.known.get(&(station.clone(), *flow))
    }

    /// The jobs that made products of the contacts which `takes` takes, with the contacts of each:
    /// the products of the contacts themselves, and those of windows.
    pub fn made_of(&self, takes: impl Fn(&ContactSummary) -> bool) -> Vec<AssemblyJob> {
        let mut found: BTreeMap<String, AssemblyJob> = BTreeMap::new();
        for note in self.known.values().filter(|note| takes(note)) {
            let contact = note.contact();
            let own = note.completed().unwrap_or_else(|| contact.clone());
            if let Some(job) = self.own_job(&own) {
                found.insert(job.target.key(), job);
            }
            let windows = self.work.values().filter(|work| {
                let is_window = matches!(work.job.target, ProductTarget::Window { .. });
                is_window && work.job.contacts.contains(&contact)
            });
            found.extend(windows.map(|work| (work.job.target.key(), work.job.clone())));
        }
        found.into_values().filter(|job| !job.versions.is_empty()).collect()
    }

    /// The job of a contact's own products: that of their newest version, or of the first one.
    fn own_job(&self, contact: &ContactKey) -> Option<AssemblyJob> {
        let note = self.known.get(contact)?;
        let target = ProductTarget::Contact { station: contact.0.clone(), flow: contact.1 };
        if let Some(work) = self.work.get(&target.key()) {
            return Some(work.job.clone());
        }
        Some(AssemblyJob {
            target,
            contacts: vec![contact.clone()],
            versions: note.versions.clone(),
            plan: None,
            sealed: false,
            made_us: 0,
            again: None,
        })
    }

    /// Orders products to be made again, durably. What is ordered already stays as it is.
    ///
    /// # Errors
    /// The disk refuses: those before it are ordered.
    pub fn make_again(
        &mut self,
        jobs: Vec<AssemblyJob>,
        order: &MakeAgain,
    ) -> Result<usize, LedgerError> {
        let mut count = 0;
        for job in jobs {
            let key = job.target.key();
            let work = self.work.entry(key.clone());
            let work = work.or_insert_with(|| Work { job, waiting: BTreeMap::new() });
            if work.job.again.is_none() {
                let ordered = AssemblyJob { again: Some(order.clone()), ..work.job.clone() };
                put(&self.jobs, &key, &ordered)?;
                work.job = ordered;
                count += 1;
            }
        }
        Ok(count)
    }

    /// The contacts whose data jobs still need.
    pub fn held(&self) -> BTreeSet<ContactKey> {
        let going = self.work.values().filter(|work| {
            let job = &work.job;
            !work.waiting.is_empty() || job.plan.is_some() || job.again.is_some()
        });
        let planned = |work: &Work| work.job.plan.clone().map_or(Vec::new(), |plan| plan.contacts);
        going
            .flat_map(|work| {
                let first = work.job.contacts.iter().chain(work.waiting.keys()).cloned();
                first.chain(planned(work)).collect::<Vec<_>>()
            })
            .collect()
    }

    /// Removes the records of contacts whose data is gone, and the oldest jobs where there are too
    /// many.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn forget(&mut self, is_kept: impl Fn(&ContactKey) -> bool) -> Result<(), LedgerError> {
        let held = self.held();
        let gone =
            self.known.iter().filter(|(contact, _)| !is_kept(contact) && !held.contains(*contact));
        for (contact, key) in
            gone.map(|(contact, note)| (contact.clone(), note.key())).collect::<Vec<_>>()
        {
            self.notes.remove(&key)?;
            self.known.remove(&contact);
        }
        while self.work.len() > JOBS_MAX {
            let idle =
                self.work.iter().filter(|(_, work)| work.waiting.is_empty() && !work.is_ordered());
            let oldest = idle.min_by_key(|(_, work)| work.job.made_us).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            self.jobs.remove(&oldest)?;
            self.work.remove(&oldest);
        }
        Ok(())
    }

    /// All jobs.
    pub fn standing(&self) -> impl Iterator<Item = PendingProduct> {
        self.work
            .values()
            .map(|work| PendingProduct { job: work.job.clone(), waiting: work.waiting.len() })
    }

    /// Adds a noted contact to every job that it has packets for; none where no products are made.
    fn enter(&mut self, contact: &ContactKey) {
        if !self.rules.enabled {
            return;
        }
        let Some(note) = self.known.get(contact) else { return };
        let mut targets: BTreeMap<String, (ProductTarget, BTreeSet<String>)> = BTreeMap::new();
        for (product, cells) in &note.cells {
            let Some(length) = self.rules.of(&note.mission, product).window else { continue };
            for cell in cells {
                let target = ProductTarget::window(&note.mission, note.scid, *cell, length);
                let entry =
                    targets.entry(target.key()).or_insert_with(|| (target, BTreeSet::new()));
                entry.1.insert(product.clone());
            }
        }
        let own = note.completed().map_or(Some(note), |base| self.known.get(&base));
        let others = self.known.values().filter(|other| {
            let is_completed = note.completes.is_some()
                && Some(other.contact()) == own.map(ContactSummary::contact);
            is_completed || own.is_some_and(|own| own.overlaps(other)) && self.is_joined(other)
        });
        let mut versions: BTreeMap<String, &ContactSummary> = BTreeMap::new();
        for other in others {
            let target =
                ProductTarget::Contact { station: other.station.clone(), flow: other.flow };
            versions.insert(target.key(), other);
            targets.insert(target.key(), (target, note.cells.keys().cloned().collect()));
        }
        for (key, (target, products)) in targets {
            let first = versions.get(&key);
            let work = self.work.entry(key).or_insert_with(|| {
                let contacts = first.map(|first| first.contact()).into_iter().collect();
                let versions = first.map_or_else(BTreeMap::new, |first| first.versions.clone());
                let job = AssemblyJob {
                    target,
                    contacts,
                    versions,
                    plan: None,
                    sealed: false,
                    made_us: 0,
                    again: None,
                };
                Work { job, waiting: BTreeMap::new() }
            });
            if !work.job.contacts.contains(contact) && !work.job.sealed {
                work.waiting.insert(contact.clone(), products);
            }
        }
    }

    /// Whether a contact's products use packets of overlapping contacts.
    fn is_joined(&self, note: &ContactSummary) -> bool {
        let is_made = |product: &String| self.rules.of(&note.mission, product).session;
        self.rules.products.select && note.versions.keys().any(is_made)
    }

    /// Whether the next version of a job is due. A version costs a delivery to each consumer, so it
    /// waits while contacts may bring more packets for it, up to a limit.
    fn is_due(&self, work: &Work, now: Utc, open: &[OpenContact]) -> bool {
        if work.waiting.is_empty() || work.job.sealed || work.job.plan.is_some() {
            return false;
        }
        let scid = match &work.job.target {
            ProductTarget::Window { scid, .. } => Some(*scid),
            ProductTarget::Contact { station, flow } => {
                let completes = |note: &ContactSummary| {
                    note.station == *station && note.completes == Some(*flow)
                };
                // A refill is published at once: the centre asked for its frames, and no other
                // contact is expected to bring them.
                if work.waiting.keys().any(|contact| self.known.get(contact).is_some_and(completes))
                {
                    return true;
                }
                self.own(&work.job.target).map(|note| note.scid)
            }
        };
        let is_window = matches!(work.job.target, ProductTarget::Window { .. });
        let is_first = work.job.versions.is_empty();
        let over = work.job.target.span().map(|window| window.to + self.rules.products.wait);
        // The first version of a window waits until the window, and the configured wait after it,
        // are over: contacts that begin until then bring packets of the window.
        if is_window && is_first && over.is_none_or(|over| now < over) {
            return false;
        }
        // An open contact whose spacecraft is not known yet may be of this one.
        let may_bring =
            open.iter().any(|contact| contact.scid.is_none_or(|open| Some(open) == scid));
        let newest = work.waiting.keys().filter_map(|contact| self.known.get(contact));
        let newest = newest.map(|note| Utc::from_micros(note.noted_us)).max().unwrap_or_default();
        !may_bring || now >= newest.max(over.unwrap_or_default()) + PATIENCE
    }
}

fn put(ledger: &RecordDirectory, key: &str, record: &impl Serialize) -> Result<(), LedgerError> {
    ledger.put(key, &serde_json::to_vec(record).expect("records have text keys only"))
}

fn load<T: DeserializeOwned>(
    ledger: &RecordDirectory,
    damaged: &mut Vec<String>,
) -> Result<Vec<T>, LedgerError> {
    let loaded = ledger.load()?;
    damaged.extend(ledger.mend(&loaded)?);
    damaged.extend(loaded.damaged);
    let mut records = Vec::new();
    for (name, body) in loaded.records {
        match serde_json::from_slice(&body) {
            Ok(record) => records.push(record),
            Err(_) => damaged.push(name),
        }
    }
    Ok(records)
}

const SECOND_US: i64 = 1_000_000;

#[cfg(test)]
mod tests;
