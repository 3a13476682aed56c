//! One destination as its threads share it: which delivery begins next, whose notice is awaited,
//! and what it was found to be able to do.

use super::ledger::DeliveryLedger;
use super::node_sink::NodeSink;
use super::read_notices::ReadNotices;
use crate::centre::shared::CentreShared;
use crate::journal::EventNote;
use crate::status::DestinationTrial;
use skyhaul_catalogue_io::{CatalogueError, CatalogueReader, DeliveryRow};
use skyhaul_config::{
    NodeFolder, OutletPlace, ProductDestination, ProductSubscription, RecordForm,
};
use skyhaul_dispatch::{
    DeliveryFailure, DeliveryState, DestinationQueue, FailureKind, QueuedDelivery,
};
use skyhaul_events::EventKind;
use skyhaul_net::Clock;
use skyhaul_remote::{RemoteAccess, RemotePlace, RemoteSink};
use skyhaul_units::{Duration, Instant, Rate, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One destination.
pub struct Outlet {
    /// What the centre's threads share.
    pub shared: Arc<CentreShared>,
    /// The time.
    pub clock: Clock,
    /// This node's name.
    pub node: String,
    /// Where it is.
    pub destination: ProductDestination,
    /// What goes there.
    pub subscriptions: Vec<ProductSubscription>,
    /// Notices that were read.
    pub read: ReadNotices,
    access: RemoteAccess,
    state: Mutex<OutletState>,
    /// Held while the abilities are found out: one trial at a time.
    trial: Mutex<()>,
    stop: AtomicBool,
}

/// What changes.
struct OutletState {
    queue: DestinationQueue,
    /// Whether the deliveries of earlier runs are in the queue.
    is_loaded: bool,
    /// When a notice is given up, by the number of its delivery.
    timeouts: BTreeMap<u64, Utc>,
    /// When notices are looked for next.
    look: Instant,
    /// How the last look for notices ended.
    heard: Result<(), String>,
    /// The sessions with its node that had opened when what waits was woken last.
    openings: u64,
    /// And when each delivery under way began.
    begun: BTreeMap<u64, u64>,
    /// Deliveries that failed over a session that there was before: they need not wait.
    woken: BTreeSet<u64>,
}

impl Outlet {
    /// Of a destination, for the node called `node`.
    pub fn new(
        shared: Arc<CentreShared>,
        clock: Clock,
        node: String,
        destination: ProductDestination,
        subscriptions: Vec<ProductSubscription>,
    ) -> Self {
        let lanes = subscriptions.iter().map(ProductSubscription::lane).collect();
        let queue = DestinationQueue::new(lanes, destination.entry.connections as usize);
        let (timeouts, look, heard) = (BTreeMap::new(), Instant::ZERO, Ok(()));
        let (openings, begun, woken) = (0, BTreeMap::new(), BTreeSet::new());
        let is_loaded = false;
        let state = OutletState { queue, is_loaded, timeouts, look, heard, openings, begun, woken };
        let access = destination.access(&node);
        let (state, trial, stop) = (Mutex::new(state), Mutex::new(()), AtomicBool::new(false));
        let read = ReadNotices::default();
        Self { shared, clock, node, destination, subscriptions, read, access, state, trial, stop }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.destination.name.as_str()
    }

    /// The ledger.
    pub fn ledger(&self) -> &DeliveryLedger {
        self.shared.deliveries()
    }

    fn state(&self) -> MutexGuard<'_, OutletState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends its threads: what they send now can go on later.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether its threads end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.shared.shutdown.is_requested()
    }

    /// The subscription of a delivery.
    pub fn subscription(&self, row: &DeliveryRow) -> Option<&ProductSubscription> {
        self.subscriptions.iter().find(|one| one.name.as_str() == row.subscription)
    }

    /// Takes in the deliveries of earlier runs, once.
    pub fn load(&self, reader: &CatalogueReader) -> Result<(), CatalogueError> {
        let mut state = self.state();
        if !state.is_loaded {
            for row in reader.open_deliveries(self.name())? {
                self.put(&mut state, &row);
            }
            state.is_loaded = true;
        }
        Ok(())
    }

    /// The deliveries that are to be looked at; one that runs is looked at when it has ended.
    pub fn changed(&self) -> Vec<u64> {
        let state = self.state();
        let changed = self.ledger().changed(self.name(), |id| state.queue.is_running(id));
        changed.into_iter().collect()
    }

    /// Puts a delivery where it belongs: among those that begin, those whose notice is awaited, or
    /// nowhere.
    pub fn place(&self, row: &DeliveryRow) {
        self.put(&mut self.state(), row);
    }

    fn put(&self, state: &mut OutletState, row: &DeliveryRow) {
        state.queue.remove(row.id);
        state.timeouts.remove(&row.id);
        let is_woken = state.woken.remove(&row.id);
        let lane = self.subscriptions.iter().position(|one| one.name.as_str() == row.subscription);
        // Those of a subscription that is gone wait until it is back, or an operator cancels them.
        let Some(lane) = lane else { return };
        match row.delivery.state {
            DeliveryState::Waiting | DeliveryState::Sending | DeliveryState::Placed => {
                state.queue.put(QueuedDelivery {
                    id: row.id,
                    lane,
                    published: row.published,
                    deadline: row.deadline,
                    next: row.delivery.next.filter(|_| !is_woken),
                    has_failed: row.delivery.failures > 0,
                });
            }
            DeliveryState::Recorded => {
                let due = row.delivery.next_timeout(&self.subscriptions[lane].rules());
                state.timeouts.extend(due.map(|due| (row.id, due)));
            }
            _ => {}
        }
    }

    /// The delivery that begins now.
    pub fn poll(&self) -> Option<u64> {
        let (now, openings, mut state) = (self.clock.utc(), openings(self), self.state());
        state.meet(now, openings);
        let id = state.queue.poll(now)?;
        state.begun.insert(id, openings);
        Some(id)
    }

    /// A delivery that ran has ended: well, or with this failure.
    pub fn ended(&self, id: u64, failure: Option<&DeliveryFailure>) {
        let (openings, mut state) = (openings(self), self.state());
        state.queue.ended(self.clock.utc(), id, failure, spread(id));
        let begun = state.begun.remove(&id);
        if failure.is_some() && begun != Some(openings) {
            // There is another session meanwhile: the next turn wakes the destination.
            state.openings = NOT_MET;
            state.woken.insert(id);
        }
        if failure.is_none() && state.heard.is_err() {
            // It can be reached: notices are looked for at once.
            state.look = Instant::ZERO;
        }
    }

    /// The deliveries whose notice is given up now.
    pub fn unanswered(&self) -> Vec<u64> {
        let (now, mut state) = (self.clock.utc(), self.state());
        let due = |due: &Utc| *due <= now;
        let found = state.timeouts.iter().filter(|(_, at)| due(at)).map(|(id, _)| *id).collect();
        state.timeouts.retain(|_, at| !due(at));
        found
    }

    /// Whether it is time to look for notices: by one thread at a time, where there may be some.
    pub fn looks(&self) -> bool {
        let has_record = |one: &ProductSubscription| one.record() != RecordForm::None;
        let (now, mut state) = (self.clock.now(), self.state());
        if now < state.look || !self.subscriptions.iter().any(has_record) {
            return false;
        }
        let each = match &self.destination.place {
            OutletPlace::Remote(RemotePlace::Folder(_)) => NEAR_LOOK,
            OutletPlace::Node(_) => NODE_LOOK,
            OutletPlace::Remote(_) => FAR_LOOK,
        };
        state.look = now + each;
        true
    }

    /// Keeps how a look for notices ended.
    pub fn heard(&self, heard: Result<(), String>) {
        let mut state = self.state();
        if heard.is_err() && self.destination.node().is_some() {
            // Each look waits for a session.
            state.look = self.clock.now() + FAR_LOOK;
        }
        state.heard = heard;
    }

    /// Why it cannot be used; none where it can.
    pub fn trouble(&self) -> Option<String> {
        let state = self.state();
        match state.queue.trouble() {
            Some((_, sentence)) => Some(sentence.to_owned()),
            None => state.heard.clone().err(),
        }
    }

    /// Opens a connection, after its abilities are known.
    pub fn open(&self) -> Result<Box<dyn RemoteSink>, DeliveryFailure> {
        let place = match &self.destination.place {
            OutletPlace::Node(at) => {
                return Ok(Box::new(node_sink(&self.shared, &self.destination, at)));
            }
            OutletPlace::Remote(place) => place,
        };
        let _one = self.trial.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.ledger().abilities(self.name(), &self.destination.place);
        if known.is_some() || self.destination.folder().is_some() {
            return skyhaul_remote::open(place, &self.access, known.as_ref());
        }
        let mut sink = skyhaul_remote::open(place, &self.access, None)?;
        let found = sink.abilities()?;
        tracing::info!(destination = self.name(), "{place} is {}", found.server);
        let at = self.clock.utc().to_string();
        let trial = DestinationTrial { place: place.to_string(), at, found };
        self.ledger().keep_trial(self.name(), &trial);
        match self.access.publish {
            None => Ok(sink),
            Some(_) => skyhaul_remote::open(place, &self.access, Some(&trial.found)),
        }
    }
}

impl OutletState {
    /// Wakes what waits for its node, once for each session with it that opens: deliveries begin,
    /// and notices are looked for.
    fn meet(&mut self, now: Utc, openings: u64) {
        if openings != self.openings {
            self.openings = openings;
            self.queue.wake(now);
            self.look = Instant::ZERO;
        }
    }
}

/// The sessions that have opened with the node where a destination is.
fn openings(outlet: &Outlet) -> u64 {
    let node = outlet.destination.node();
    node.map_or(0, |at| outlet.shared.desk.doors.openings(at.node.as_str()))
}

/// A destination that is a folder of another node.
pub fn node_sink(
    shared: &CentreShared,
    destination: &ProductDestination,
    at: &NodeFolder,
) -> NodeSink {
    let entry = &destination.entry;
    // Its connections share the rate.
    let limit = entry.rate.map(|rate| Rate::from_bps(rate.as_bps() / u64::from(entry.connections)));
    let sink = NodeSink::new(at.clone(), Arc::clone(&shared.desk.doors));
    sink.limited(limit).of_class(entry.class.as_ref())
}

/// Checks that a folder is there: where it lacks, a disk may not be mounted.
pub fn check_folder(outlet: &Outlet) -> Result<(), DeliveryFailure> {
    match outlet.destination.folder() {
        Some(dir) if !dir.is_dir() => {
            let what = "the folder is missing; mount or create it, no data is lost";
            let sentence = format!("{}: {what}", dir.display());
            Err(DeliveryFailure::new(FailureKind::Line, sentence))
        }
        _ => Ok(()),
    }
}

/// Spreads the next attempts of many deliveries: a number that differs for each of them.
pub fn spread(id: u64) -> u32 {
    // 2^32 divided by the golden ratio.
    (id as u32).wrapping_mul(0x9e37_79b9)
}

/// No sessions have opened so often: what waits is woken.
const NOT_MET: u64 = u64::MAX;
/// Between two looks into a folder of this machine.
const NEAR_LOOK: Duration = Duration::from_millis(500);
/// Between two looks into a folder of another node, over a session that is there.
const NODE_LOOK: Duration = Duration::from_secs(5);
/// Between two looks into a folder of another machine, or of a node that is away.
const FAR_LOOK: Duration = Duration::from_secs(30);

/// Notes what became of a delivery.
pub fn tell(outlet: &Outlet, kind: EventKind, id: u64, sentence: String) {
    let note = EventNote::new(kind, format!("delivery {id}"), sentence);
    let note = note.with("delivery", id).with("destination", outlet.name());
    outlet.shared.alarms.events().note(note);
}
