//! Products of several contacts: of time windows, and further versions of a contact's products when
//! another contact completes it. They are made after the contacts' own products, from the stored
//! data.

mod again;
mod fill;
mod forms;
mod job;
mod join;
mod journal;
mod overlap;
mod records;
mod source;

use super::rdr;
use super::shared::CentreShared;
use crate::rdr::MadeFile;
use crate::status::{AssembledProduct, AssemblyState, ContactState};
use forms::{AssemblyJob, ProductTarget};
use skyhaul_config::ProductRules;
use skyhaul_events::AlarmKind;
use skyhaul_level0::report::Product;
use skyhaul_net::Clock;
use skyhaul_units::{Duration, Utc};
use source::Undone;
use std::collections::BTreeSet;
use std::sync::Arc;

pub use again::{AgainBoard, AgainThread, answer, is_for_reprocessing};
pub use forms::{ContactKey, ContactSummary, Version, stored};
use journal::PendingProduct;
pub use journal::{AssemblyJournal, OpenContact};

/// The thread that makes products of several contacts.
#[derive(Debug)]
pub struct Assembler {
    shared: Arc<CentreShared>,
    clock: Clock,
    rules: ProductRules,
}

/// Between two looks for a due job.
const LOOK: Duration = Duration::from_millis(500);
/// Between two attempts to write products.
const RETRY: Duration = Duration::from_secs(2);
/// Looks between two removals of old records.
const FORGET: u32 = 120;

impl Assembler {
    /// Makes products as `rules` say.
    pub const fn new(shared: Arc<CentreShared>, clock: Clock, rules: ProductRules) -> Self {
        Self { shared, clock, rules }
    }

    /// Runs until the centre stops.
    pub fn run(self) {
        let mut looks = 0u32;
        while !self.shared.shutdown.is_requested() {
            let pause = match self.turn() {
                Ok(true) => continue,
                Ok(false) => LOOK,
                Err(reason) => {
                    self.shared.alarms.raise(AlarmKind::AssemblyFailed, PRODUCTS, &reason);
                    RETRY
                }
            };
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(FORGET) {
                self.forget();
            }
            self.shared.shutdown.pause(pause);
        }
    }

    /// Does the next job. Returns whether there was one.
    fn turn(&self) -> Result<bool, String> {
        let open = self.open_contacts();
        let next = self
            .shared
            .journal()
            .next(self.clock.utc(), &open)
            .map_err(|error| error.to_string())?;
        let Some(job) = next else {
            self.shared.alarms.clear(AlarmKind::AssemblyFailed, PRODUCTS);
            return Ok(false);
        };
        let Some(plan) = &job.plan else { return Ok(false) };
        match job::run(&job, plan, &self.rules, &self.shared) {
            Ok(made) => {
                let records = records::make(&job, plan, &made, &self.rules, &self.shared)?;
                self.made(&job, &made.products, &records)?;
            }
            Err(Undone::Stopped) => return Ok(false),
            Err(Undone::Refused(reason)) => return Err(reason),
            Err(Undone::Gone(what)) => {
                tracing::warn!(
                    "{}: cannot make a further version: {what} is no longer in the store; its \
                    packets are in its own products",
                    job.target.key()
                );
                self.shared.journal().seal(&job).map_err(|error| error.to_string())?;
            }
        }
        self.shared.hold_contacts();
        Ok(true)
    }

    fn made(
        &self,
        job: &AssemblyJob,
        products: &[Product],
        records: &[MadeFile],
    ) -> Result<(), String> {
        let published = || products.iter().filter(|product| product.is_published());
        let versions =
            published().map(|product| (product.sidecar.product.name.clone(), Version::of(product)));
        let versions = versions.collect();
        self.shared.offer(products)?;
        self.shared.journal().done(job, versions).map_err(|error| error.to_string())?;
        for product in published() {
            let shown = self.shown(job, product);
            tracing::info!(
                product = shown.product,
                version = shown.version,
                path = shown.path,
                "made"
            );
            self.shared.board.assembled(&shown);
        }
        let version =
            published().map(|product| product.sidecar.product.version).max().unwrap_or_default();
        for file in records {
            let record = rdr::shown(file, &self.rules.products.dir);
            tracing::info!(path = record.path, "made");
            let name =
                file.collections.first().map_or_else(String::new, |first| first.name.clone());
            let (packets, gaps) = (record.packets, record.gaps);
            let (path, sha256) = (record.path, record.sha256);
            let missing = rdr::missing(file);
            let mission = file.mission.clone();
            self.shared.board.assembled(&AssembledProduct {
                mission,
                product: name,
                state: AssemblyState::Made,
                version,
                packets,
                missing,
                gaps,
                path,
                sha256,
                ..PendingProduct { job: job.clone(), waiting: 0 }.shown(AssemblyState::Made)
            });
        }
        Ok(())
    }

    fn shown(&self, job: &AssemblyJob, product: &Product) -> AssembledProduct {
        let (sidecar, accounting) = (&product.sidecar, &product.sidecar.accounting);
        let file = sidecar.product.packet_file.as_ref().or(product.files.last());
        let contact = match &job.target {
            ProductTarget::Contact { station, flow } => Some(format!("{station}-{flow}")),
            ProductTarget::Window { .. } => None,
        };
        let span = |at: fn(&skyhaul_level0::TimeWindow) -> Utc| {
            sidecar.product.window.as_ref().map(|window| at(window).to_string())
        };
        AssembledProduct {
            mission: sidecar
                .contacts
                .first()
                .map_or_else(String::new, |contact| contact.mission.clone()),
            product: sidecar.product.name.clone(),
            contact,
            from: span(|window| window.from),
            to: span(|window| window.to),
            state: AssemblyState::Made,
            version: sidecar.product.version,
            contacts: sidecar.contacts.len(),
            packets: accounting.delivered,
            missing: accounting.missing,
            gaps: accounting.gaps,
            added: sidecar.product.replaces.as_ref().map_or(0, |before| before.added),
            improved: sidecar.product.replaces.as_ref().map_or(0, |before| before.improved),
            path: file
                .map(|file| self.rules.products.dir.join(&file.name).display().to_string())
                .unwrap_or_default(),
            sha256: file.map(|file| file.sha256.clone()).unwrap_or_default(),
        }
    }

    /// The contacts that may still bring packets. A contact that cannot be processed brings none.
    fn open_contacts(&self) -> Vec<OpenContact> {
        let open: Vec<(String, u32)> = {
            let store = self.shared.store();
            store
                .spaces()
                .open_contacts()
                .map(|(station, flow)| (station.as_str().to_owned(), flow.0))
                .collect()
        };
        let shown =
            |(station, flow): &(String, u32)| self.shared.board.find_contact(station, *flow);
        let states = open.iter().map(shown);
        let going = states
            .filter(|shown| shown.as_ref().is_none_or(|shown| shown.state != ContactState::Failed));
        going.map(|shown| OpenContact { scid: shown.and_then(|shown| shown.scid) }).collect()
    }

    fn forget(&self) {
        let kept: BTreeSet<ContactKey> = {
            let store = self.shared.store();
            let kept = store.kept().iter().map(|(station, flow, _)| (station, flow));
            // A contact is noted before it moves from the open to the kept ones.
            kept.chain(store.spaces().open_contacts())
                .map(|(station, flow)| (station.as_str().to_owned(), flow.0))
                .collect()
        };
        if let Err(error) = self.shared.journal().forget(|contact| kept.contains(contact)) {
            tracing::warn!("old records of products cannot be removed: {error}");
        }
    }
}

const PRODUCTS: &str = "products of several contacts";
