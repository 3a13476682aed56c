//! The threads of destinations: they begin and end as the configuration says; and deadlines are
//! watched, also where all threads of a destination hang.

use super::backfill::Backfill;
use super::outlet::Outlet;
use super::worker::{OutletWorker, product_for, products_for};
use crate::alarms::Alarms;
use crate::centre::shared::CentreShared;
use crate::services;
use crate::status::BackfillAction;
use skyhaul_catalogue_io::{CatalogueError, CatalogueReader, DeliveryQuery, DeliveryRow};
use skyhaul_config::{Name, ProductDestination, ProductOutlets, ProductSubscription};
use skyhaul_dispatch::DeliveryState;
use skyhaul_events::{AlarmKind, AlarmSubject};
use skyhaul_net::Clock;
use skyhaul_units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

/// The threads of all destinations.
pub struct DeliveryThreads {
    shared: Arc<CentreShared>,
    clock: Clock,
    /// This node's name.
    node: String,
    running: BTreeMap<Name, Running>,
    /// Folders that were made, or there, before: one that is missing later may not be mounted.
    made: BTreeSet<PathBuf>,
    reader: Option<CatalogueReader>,
    /// Subscriptions whose earlier products were looked at.
    caught_up: Vec<ProductSubscription>,
    /// When deadlines are looked at next.
    look: Instant,
}

/// The threads of one destination.
struct Running {
    outlet: Arc<Outlet>,
    threads: Vec<JoinHandle<()>>,
}

/// Between two looks at the configuration.
const LOOK: Duration = Duration::from_millis(500);
/// Between two looks at deadlines.
const LATE_LOOK: Duration = Duration::from_secs(5);
/// Late deliveries of a destination that are looked at.
const LATE_MAX: usize = 1_000;

impl DeliveryThreads {
    /// Of a centre called `node`, which has made the folders of its destinations.
    pub fn new(shared: Arc<CentreShared>, clock: Clock, node: String) -> Self {
        let (running, look) = (BTreeMap::new(), Instant::ZERO);
        let outlets = shared.deliveries().outlets();
        let folders = outlets.destinations.iter().filter_map(ProductDestination::folder);
        let made = folders.map(Path::to_owned).collect();
        Self { shared, clock, node, running, made, reader: None, caught_up: Vec::new(), look }
    }

    /// Runs until the node stops.
    pub fn run(mut self) {
        while !self.shared.shutdown.is_requested() {
            let outlets = self.shared.deliveries().outlets();
            self.follow(&outlets);
            if let Err(error) = self.catch_up(&outlets) {
                tracing::warn!("earlier products are not looked at, retrying: {error}");
            }
            if self.clock.now() >= self.look {
                self.look = self.clock.now() + LATE_LOOK;
                if let Err(error) = self.watch(&outlets) {
                    tracing::warn!("deadlines of deliveries are not looked at: {error}");
                }
            }
            self.shared.shutdown.pause(LOOK);
        }
        for running in self.running.into_values() {
            for thread in running.threads {
                // A panic was logged; what is in the catalogue goes on with the next start.
                let _ = thread.join();
            }
        }
    }

    /// Has each destination of the configuration served as it says, and no other one. One that
    /// changes is served anew when its threads have ended: no two serve one delivery.
    fn follow(&mut self, outlets: &ProductOutlets) {
        let wanted: BTreeMap<&Name, &ProductDestination> =
            outlets.destinations.iter().map(|one| (&one.name, one)).collect();
        let alarms = &self.shared.alarms;
        self.running.retain(|name, running| {
            let is_same = wanted.get(name).is_some_and(|destination| {
                running.outlet.destination == **destination
                    && running.outlet.subscriptions == outlets.subscriptions_to(name)
            });
            if is_same {
                return true;
            }
            running.outlet.stop();
            let is_over = running.threads.iter().all(JoinHandle::is_finished);
            if is_over {
                let subject = products_for(&running.outlet.destination);
                alarms.clear(AlarmKind::DeliveryFailed, &subject);
                alarms.clear(AlarmKind::DeliveryLate, &subject);
                alarms.clear(AlarmKind::DeliveryRefused, name.as_str());
                alarms.clear(AlarmKind::DeliveryLost, product_for(name.as_str()));
            }
            !is_over
        });
        for (name, destination) in wanted {
            let subscriptions = outlets.subscriptions_to(name);
            if !self.running.contains_key(name) && !subscriptions.is_empty() {
                self.begin(destination.clone(), subscriptions);
            }
        }
    }

    fn begin(&mut self, destination: ProductDestination, of: Vec<ProductSubscription>) {
        let name = destination.name.clone();
        let folder = destination.folder().map(Path::to_owned);
        let folder = folder.filter(|folder| self.made.insert(folder.clone()));
        let outlet =
            Outlet::new(self.shared.clone(), self.clock, self.node.clone(), destination, of);
        let outlet = Arc::new(outlet);
        let mut threads = Vec::new();
        for _ in 0..outlet.destination.entry.connections {
            let (worker, folder) = (OutletWorker::new(outlet.clone()), folder.clone());
            let begun = services::thread("delivery", move || {
                // Where the folder cannot be made, the worker says that it is missing.
                let made = folder.as_deref().map(services::make_folder);
                if let Some(Err(fault)) = made {
                    tracing::warn!("{fault}");
                }
                worker.run();
            });
            match begun {
                Ok(thread) => threads.push(thread),
                // Those that have begun do the work of all; without one it is tried again.
                Err(fault) => tracing::warn!("{}: {fault}", outlet.name()),
            }
        }
        if !threads.is_empty() {
            self.running.insert(name, Running { outlet, threads });
        }
    }

    /// Begins the deliveries of products that were published before a subscription, once in each
    /// run and after each change of it. What has a delivery already keeps it.
    fn catch_up(&mut self, outlets: &ProductOutlets) -> Result<(), CatalogueError> {
        self.caught_up.retain(|one| outlets.subscriptions.contains(one));
        let new = |one: &&ProductSubscription| !self.caught_up.contains(one);
        let Some(subscription) = outlets.subscriptions.iter().find(new) else { return Ok(()) };
        if let Some(since) = subscription.entry.since {
            let (from, now) = (since.utc(), self.clock.utc());
            let action = BackfillAction::Begin;
            let look = Backfill { subscription, from, to: now, action, now };
            let reader = self.shared.deliveries().reader()?;
            let mut after = None;
            loop {
                let page = look.page(self.shared.deliveries(), &reader, after)?;
                after = page.next.and_then(|next| next.parse().ok());
                if after.is_none() || self.shared.shutdown.is_requested() {
                    break;
                }
            }
        }
        self.caught_up.push(subscription.clone());
        Ok(())
    }

    /// Raises an alarm for each destination that breaks the promise of a subscription, and clears
    /// those of others.
    fn watch(&mut self, outlets: &ProductOutlets) -> Result<(), CatalogueError> {
        let reader = match &self.reader {
            Some(reader) => reader,
            None => self.reader.insert(self.shared.deliveries().reader()?),
        };
        for destination in &outlets.destinations {
            let name = &destination.name;
            let of = name.as_str();
            let settled = |kind, subject: AlarmSubject, states: &[DeliveryState]| {
                clear_settled(&self.shared.alarms, kind, &subject, || any(reader, of, states))
            };
            let not_there = [DeliveryState::Failed, DeliveryState::Refused];
            settled(AlarmKind::DeliveryLost, product_for(of).into(), &not_there)?;
            let not_taken = [DeliveryState::Refused, DeliveryState::Unanswered];
            settled(AlarmKind::DeliveryRefused, of.into(), &not_taken)?;
            let rows = reader.late_deliveries(name.as_str(), self.clock.utc(), LATE_MAX)?;
            let mut broken = None;
            for row in rows {
                if breaks_promise(reader, outlets, &row)? {
                    broken = Some(row);
                    break;
                }
            }
            let Some(DeliveryRow { id, subscription, deadline: Some(deadline), .. }) = broken
            else {
                self.shared.alarms.clear(AlarmKind::DeliveryLate, products_for(destination));
                continue;
            };
            let reason = format!("delivery {id} for {subscription} was due at {deadline}");
            let subject = products_for(destination);
            self.shared.alarms.raise(AlarmKind::DeliveryLate, subject, &reason);
        }
        Ok(())
    }
}

/// Clears an alarm when a destination has no delivery in a state that it is about: each went again
/// with success, or an operator gave it up. `any` looks for one.
fn clear_settled(
    alarms: &Alarms,
    kind: AlarmKind,
    subject: &AlarmSubject,
    any: impl Fn() -> Result<Option<DeliveryRow>, CatalogueError>,
) -> Result<(), CatalogueError> {
    // One that came between the look and the end of the alarm raises it again.
    if any()?.is_none()
        && alarms.clear(kind, subject)
        && let Some(row) = any()?
    {
        let reason = row.delivery.reason.unwrap_or_default();
        alarms.raise(kind, subject, &format!("delivery {}: {reason}", row.id));
    }
    Ok(())
}

/// A delivery to a destination in one of these states.
fn any(
    reader: &CatalogueReader,
    destination: &str,
    states: &[DeliveryState],
) -> Result<Option<DeliveryRow>, CatalogueError> {
    for state in states {
        let query = DeliveryQuery {
            destination: Some(destination.to_owned()),
            state: Some(*state),
            limit: 1,
            ..DeliveryQuery::default()
        };
        if let Some((row, _)) = reader.deliveries(&query)?.into_iter().next() {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// Whether the promise of a late delivery's subscription is broken at its destination: others may
/// have kept it.
fn breaks_promise(
    reader: &CatalogueReader,
    outlets: &ProductOutlets,
    row: &DeliveryRow,
) -> Result<bool, CatalogueError> {
    let Some(subscription) = outlets.subscription(&row.subscription) else { return Ok(false) };
    let to = &subscription.to;
    let Some(place) = to.iter().position(|name| name.as_str() == row.destination) else {
        return Ok(false);
    };
    let states = reader.states_of(row.item, &row.subscription)?;
    let is_there = |name: &Name| {
        let mut its = states.iter().filter(|(destination, _)| destination == name.as_str());
        its.any(|(_, state)| state.is_there())
    };
    let is_there: Vec<bool> = to.iter().map(is_there).collect();
    Ok(subscription.entry.settle.promise().is_broken_by(place, &is_there))
}
