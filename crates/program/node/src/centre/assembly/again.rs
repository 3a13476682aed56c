//! Level-0 again: an operator has products made anew from the stored contacts, by the rules in
//! force or by others.
//!
//! An order is a mark on each job in the journal, so that a kill forgets none. A thread of its own,
//! of the lowest priority, makes one job after the other into a hidden folder, and compares the
//! packets with those of the newest version in the catalogue. What is the same is dropped; what
//! differs becomes a version of its own.

mod board;
mod orders;
mod staging;

pub use board::AgainBoard;
pub use orders::{answer, is_for_reprocessing};
use skyhaul_events::AlarmKind;
pub use staging::staging;

use super::forms::{AssemblyJob, ProductTarget, Version, VersionPlan};
use super::job;
use super::source::Undone;
use crate::centre::delivery::item_of;
use crate::centre::shared::CentreShared;
use crate::status::{ReprocessOutcome, ReprocessedProduct};
use skyhaul_catalogue::{Item, ItemFile};
use skyhaul_config::ProductRules;
use skyhaul_level0::report::Product;
use skyhaul_units::{Duration, Instant, Utc};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The thread that makes products again.
#[derive(Debug)]
pub struct AgainThread {
    shared: Arc<CentreShared>,
    rules: ProductRules,
}

/// Between two looks for an order.
const LOOK: Duration = Duration::from_millis(500);
/// Between two attempts to write products.
const RETRY: Duration = Duration::from_secs(5);
/// A job waits for the end of a live contact for so long: the longest pass of a low orbit.
const PATIENCE: Duration = Duration::from_secs(900);
/// The lowest priority of Linux.
const NICE: i32 = 19;
const FAILED: &str = "products";

impl AgainThread {
    /// Makes products by `rules`, where an order has none of its own.
    pub const fn new(shared: Arc<CentreShared>, rules: ProductRules) -> Self {
        Self { shared, rules }
    }

    /// Runs until the centre stops.
    pub fn run(self) {
        // Of this thread alone. Where the system refuses, it runs like the others.
        let _ = rustix::process::setpriority_process(None, NICE);
        let mut waited: Option<Instant> = None;
        while !self.shared.shutdown.is_requested() {
            let next = self.shared.journal().next_again(self.shared.utc());
            let pause = match next {
                Ok(None) => {
                    self.shared.alarms.clear(AlarmKind::RemakeFailed, FAILED);
                    LOOK
                }
                Ok(Some(job)) if self.is_first(&mut waited) => match self.make(&job) {
                    Ok(()) => {
                        waited = None;
                        Duration::ZERO
                    }
                    Err(reason) => {
                        self.shared.alarms.raise(AlarmKind::RemakeFailed, FAILED, &reason);
                        RETRY
                    }
                },
                Ok(Some(_)) => LOOK,
                Err(error) => {
                    self.shared.alarms.raise(AlarmKind::RemakeFailed, FAILED, &error.to_string());
                    RETRY
                }
            };
            self.shared.shutdown.pause(pause);
        }
    }

    /// Whether nothing that is live goes before.
    fn is_first(&self, waited: &mut Option<Instant>) -> bool {
        let now = self.shared.now();
        let since = *waited.get_or_insert(now);
        let is_quiet = self.shared.store().spaces().open_contacts().next().is_none();
        is_quiet || now.since(since) >= PATIENCE
    }

    /// Carries out a job.
    fn make(&self, job: &AssemblyJob) -> Result<(), String> {
        let Some(plan) = &job.plan else { return Ok(()) };
        let order = plan.again.clone().unwrap_or_default();
        let rules = match &order.rules {
            Some(text) => self.rules.again(text)?,
            None => self.rules.clone(),
        };
        match job::run(job, plan, &rules, &self.shared) {
            Ok(made) => {
                let dir = &self.rules.products.dir;
                let done = self.publish(job, plan, &made.products, order.order);
                staging::clean(dir);
                done
            }
            Err(Undone::Stopped) => Ok(()),
            Err(Undone::Refused(reason)) => Err(reason),
            Err(Undone::Gone(what)) => {
                let reason = format!("{what} is no longer in the store");
                let outcome = ReprocessedProduct {
                    target: job.target.key(),
                    outcome: ReprocessOutcome::Gone,
                    reason: Some(reason),
                    ..ReprocessedProduct::default()
                };
                self.shared.deliveries().archive().again.add(order.order, outcome);
                let none = BTreeMap::new();
                self.shared.journal().done(job, none).map_err(|error| error.to_string())?;
                self.shared.hold_contacts();
                Ok(())
            }
        }
    }

    /// Publishes those products that differ from the version before.
    fn publish(
        &self,
        job: &AssemblyJob,
        plan: &VersionPlan,
        products: &[Product],
        order: u64,
    ) -> Result<(), String> {
        let dir = &self.rules.products.dir;
        let (mut changed, mut outcomes) = (Vec::new(), Vec::new());
        for product in products.iter().filter(|product| product.is_published()) {
            let Some(item) = item_of(product, Utc::from_micros(plan.created_us)) else { continue };
            let before = self.before(&item)?;
            let is_same = before.as_ref().is_some_and(|before| is_same(before, &item));
            let outcome = if is_same { ReprocessOutcome::Same } else { ReprocessOutcome::Changed };
            outcomes.push(ReprocessedProduct {
                target: job.target.key(),
                product: item.product.clone(),
                name: item.name.clone(),
                version: if is_same { item.version - 1 } else { item.version },
                outcome,
                packets: item.packets,
                reason: None,
            });
            if !is_same {
                staging::commit(dir, &item)
                    .map_err(|error| format!("{}: {error}", dir.display()))?;
                changed.push(product.clone());
            }
        }
        self.shared.offer(&changed)?;
        let named =
            |product: &Product| (product.sidecar.product.name.clone(), Version::of(product));
        let versions: BTreeMap<String, Version> = changed.iter().map(named).collect();
        for outcome in outcomes {
            let (name, version) = (&outcome.name, outcome.version);
            match outcome.outcome {
                ReprocessOutcome::Changed => {
                    tracing::info!("made {name} again, as version {version}");
                }
                _ => {
                    tracing::info!("made {name} again: it is as version {version} was");
                }
            }
            self.shared.deliveries().archive().again.add(order, outcome);
        }
        self.shared.journal().done(job, versions).map_err(|error| error.to_string())?;
        self.shared.hold_contacts();
        Ok(())
    }

    /// The version before an item, as it was published.
    fn before(&self, item: &Item) -> Result<Option<Item>, String> {
        let (name, version) = (item.name.clone(), item.version.saturating_sub(1));
        let found = self.shared.deliveries().ask(|reader| reader.item_named(&name, version));
        found.map(|row| row.map(|row| row.item)).map_err(|error| error.to_string())
    }
}

/// Whether two versions hold the same: their packets and what was set aside, in the same form.
/// Records and accounts differ in any case: they name the version.
fn is_same(one: &Item, other: &Item) -> bool {
    fn data(item: &Item) -> Vec<(u64, [u8; 32])> {
        let files = item.files.iter().filter(|file| !file.is_metadata);
        files.map(|ItemFile { size, sha256, .. }| (*size, *sha256)).collect()
    }
    data(one) == data(other) && one.files.len() == other.files.len()
}

/// What is made of a target, for people.
pub fn shown(target: &ProductTarget) -> String {
    match target {
        ProductTarget::Contact { station, flow } => format!("contact {station}-{flow}"),
        ProductTarget::Window { .. } => {
            target.span().map_or_else(String::new, |span| format!("window from {}", span.from))
        }
    }
}
