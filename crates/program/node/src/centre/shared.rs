//! What a centre's threads have in common: the store, and what status shows.

use super::assembly::{AssemblyJournal, stored};
use super::delivery::DeliveryList;
use super::downlink::Adopted;
use super::gaps::{GapLedger, LedgerWrites};
use super::live::Receivers;
use crate::latency::Latency;
use crate::life::Life;
use crate::status::{
    AssembledProduct, AssemblyState, CentreStatus, ContactReceived, FilesStatus, ForwardsStatus,
    NodeStatus, Recent, ShortageStatus, StationPeer, StoreState, StoreStatus, StreamsStatus,
    peak_resident_bytes, resident_bytes, threads,
};
use skyhaul_level0::report::Product;
use skyhaul_net::{BusyClock, Clock, Waker, drops};
use skyhaul_store::{ContactStore, LedgerError, Seq, StationName};
use skyhaul_units::{Duration, FlowId, Instant, Utc};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// One centre's common state. Locks are held for the length of one call.
#[derive(Debug)]
pub struct Shared {
    clock: Clock,
    store: Mutex<ContactStore>,
    /// Products of several contacts. Taken before the store, never after it.
    book: Mutex<AssemblyJournal>,
    deliveries: Mutex<DeliveryList>,
    /// What is missing. Nothing else is taken while it is held.
    gaps: Mutex<GapLedger>,
    state: Mutex<State>,
    /// Of the thread that writes blocks: how long it has been in calls to the disk.
    pub disk: BusyClock,
    /// What the line's thread is to adopt of a configuration that was read again: the newest.
    adopted: Mutex<Option<Adopted>>,
    /// What all threads look at.
    pub life: Life,
    /// Who gets packets as they arrive.
    pub live: Receivers,
    /// Whether the store has news for the processor.
    news: (Mutex<bool>, Condvar),
}

/// What is kept in the state folder.
#[derive(Debug)]
pub struct Kept {
    /// What arrived.
    pub store: ContactStore,
    /// Products of several contacts.
    pub book: AssemblyJournal,
    /// Products for other systems.
    pub deliveries: DeliveryList,
    /// What is missing.
    pub gaps: GapLedger,
}

#[derive(Debug, Default)]
struct State {
    name: String,
    address: String,
    stations: Vec<StationPeer>,
    contacts: Recent<ContactReceived>,
    assembled: Recent<AssembledProduct>,
    store: StoreState,
    /// By which the system knows the lines' sockets.
    sockets: Vec<u64>,
    latency: BTreeMap<Stage, Latency>,
    commits: VecDeque<CommitTime>,
    refused: u64,
    forwards: Option<ForwardsStatus>,
    /// By station: no more than the configuration has.
    files: BTreeMap<String, FilesStatus>,
    /// By station, too.
    streams: BTreeMap<String, StreamsStatus>,
}

#[derive(Debug)]
struct CommitTime {
    station: StationName,
    flow: FlowId,
    next: Seq,
    at: Utc,
}

/// A stage of a frame's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The frame's last bit to its block closed.
    Capture,
    /// Closed to taken out of the durable spool for sending.
    Spool,
    /// Taken to its first symbol on the line.
    Queue,
    /// First symbol sent to the last one arrived that was no repetition.
    Line,
    /// From there to the block whole, and all before it.
    Repair,
    /// Given out to durable.
    Store,
    /// Durable to its packets sorted in.
    Level0,
    /// The frame's last bit to durable.
    Total,
}

/// Commits whose time is remembered until the processor asks: minutes of work.
const COMMITS_MAX: usize = 1 << 16;

/// Products that status shows although they are not made yet: three weeks of windows of one
/// spacecraft.
const WAITING_SHOWN: usize = 256;

impl Stage {
    const fn name(self) -> &'static str {
        match self {
            Self::Capture => "capture",
            Self::Spool => "spool",
            Self::Queue => "queue",
            Self::Line => "line",
            Self::Repair => "repair",
            Self::Store => "store",
            Self::Level0 => "level0",
            Self::Total => "total",
        }
    }
}

impl Shared {
    /// The state of a centre, of this name and at this address, that has done nothing yet.
    pub fn new(
        (name, address): (String, String),
        kept: Kept,
        live: Receivers,
        clock: Clock,
        waker: Waker,
    ) -> Self {
        let Kept { store, book, deliveries, gaps } = kept;
        Self {
            live,
            clock,
            store: Mutex::new(store),
            book: Mutex::new(book),
            deliveries: Mutex::new(deliveries),
            gaps: Mutex::new(gaps),
            state: Mutex::new(State { name, address, ..State::default() }),
            disk: BusyClock::new(clock),
            adopted: Mutex::new(None),
            life: Life::new(waker),
            news: (Mutex::new(true), Condvar::new()),
        }
    }

    /// Has the line's thread adopt these.
    pub fn adopt(&self, mut adopted: Adopted) {
        let mut waiting = self.adopted.lock().unwrap_or_else(PoisonError::into_inner);
        // What was to be adopted before and was not yet goes on with this.
        adopted.classes =
            adopted.classes.or_else(|| waiting.take().and_then(|before| before.classes));
        *waiting = Some(adopted);
        drop(waiting);
        self.life.wake_line();
    }

    /// What the line's thread is to adopt now.
    pub fn to_adopt(&self) -> Option<Adopted> {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The store. A thread that panicked with it in hand ends the centre; what it wrote is checked
    /// at the next start.
    pub fn store(&self) -> MutexGuard<'_, ContactStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The book of products of several contacts. Let go of the store before.
    pub fn book(&self) -> MutexGuard<'_, AssemblyJournal> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The deliveries.
    pub fn deliveries(&self) -> MutexGuard<'_, DeliveryList> {
        self.deliveries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is missing.
    pub fn gaps(&self) -> MutexGuard<'_, GapLedger> {
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what has changed of it; it is durable when this returns. Of the thread alone that
    /// processes contacts.
    ///
    /// # Errors
    /// The disk refuses; it is kept with the next changes.
    pub fn keep_gaps(&self, changes: LedgerWrites) -> Result<(), LedgerError> {
        let kept = changes.write();
        if kept.is_err() {
            self.gaps().not_kept(changes);
        }
        kept
    }

    /// Puts published products on the lists of those who get them, durably.
    ///
    /// # Errors
    /// The disk refuses: offer them again.
    pub fn offer(&self, products: &[Product]) -> Result<(), String> {
        let now = self.clock.utc();
        let mut deliveries = self.deliveries();
        let mut published = products.iter().filter(|product| product.is_published());
        published
            .try_for_each(|product| deliveries.offer(product, now))
            .map_err(|error| error.to_string())
    }

    /// Makes the store keep the contacts that products are still to be made of.
    pub fn hold_contacts(&self) {
        let held = self.book().held();
        self.store().hold(held.iter().filter_map(stored));
    }

    /// Shows a product of several contacts.
    pub fn assembled(&self, product: &AssembledProduct) {
        let key = |one: &AssembledProduct| {
            (
                one.mission.clone(),
                one.product.clone(),
                one.contact.clone(),
                one.from.clone(),
                one.to.clone(),
            )
        };
        self.state().assembled.show(product, |shown| key(shown) == key(product));
    }

    /// What status shows of a contact.
    pub fn shown(&self, station: &str, flow: u32) -> Option<ContactReceived> {
        let same = |shown: &ContactReceived| shown.flow == flow && shown.station == station;
        self.state().contacts.newest(same).cloned()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the processor that the store has more.
    pub fn wake_processor(&self) {
        *self.news.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.news.1.notify_all();
    }

    /// Waits until the store has more, at most `span`.
    pub fn wait_for_news(&self, span: Duration) {
        let guard = self.news.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.news.1.wait_timeout_while(guard, span.to_std(), |news| !*news);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    /// A stranger was refused.
    pub fn count_refused(&self) {
        self.state().refused += 1;
    }

    /// Changes what is shown of a station's files.
    pub fn files(&self, station: &str, change: impl FnOnce(&mut FilesStatus)) {
        let mut state = self.state();
        let fresh = || FilesStatus { station: station.to_owned(), ..FilesStatus::default() };
        change(state.files.entry(station.to_owned()).or_insert_with(fresh));
    }

    /// Changes what is shown of a station's streams.
    pub fn streams(&self, station: &str, change: impl FnOnce(&mut StreamsStatus)) {
        let mut state = self.state();
        let fresh = || StreamsStatus { station: station.to_owned(), ..StreamsStatus::default() };
        change(state.streams.entry(station.to_owned()).or_insert_with(fresh));
    }

    /// What is forwarded beside contacts.
    pub fn forwards(&self, forwards: Option<ForwardsStatus>) {
        self.state().forwards = forwards;
    }

    /// The stations that are connected.
    pub fn stations(&self, stations: Vec<StationPeer>) {
        self.state().stations = stations;
    }

    /// Whether the store takes data.
    pub fn store_state(&self, store: StoreState) {
        self.state().store = store;
    }

    /// The lines' sockets, as the system numbers them: for what it drops there.
    pub fn sockets(&self, sockets: Vec<u64>) {
        self.state().sockets = sockets;
    }

    /// The store has the flow's records below `next` since `at`.
    pub fn committed(&self, station: &StationName, flow: FlowId, next: Seq, at: Utc) {
        let mut state = self.state();
        if state.commits.len() == COMMITS_MAX {
            state.commits.pop_front();
        }
        state.commits.push_back(CommitTime { station: station.clone(), flow, next, at });
    }

    /// When the flow's record `seq` became durable, where that was since the start. Ask in the
    /// order of the flow.
    pub fn commit_time(&self, station: &StationName, flow: FlowId, seq: Seq) -> Option<Utc> {
        let mut state = self.state();
        let ours = |commit: &CommitTime| commit.flow == flow && commit.station == *station;
        let at = state
            .commits
            .iter()
            .find(|commit| ours(commit) && commit.next > seq)
            .map(|commit| commit.at);
        state.commits.retain(|commit| !ours(commit) || commit.next > seq.next());
        at
    }

    /// Frames that took `span` in `stage`.
    pub fn latency(&self, stage: Stage, span: Duration, frames: u64) {
        self.state().latency.entry(stage).or_default().record(span, frames);
    }

    /// Shows a contact, new or changed.
    pub fn contact(&self, contact: &ContactReceived) {
        let same = |shown: &ContactReceived| {
            shown.flow == contact.flow && shown.station == contact.station
        };
        self.state().contacts.show(contact, same);
    }

    /// The products that data waits for.
    fn waiting(&self) -> Vec<AssembledProduct> {
        let book = self.book();
        let waiting = book.standing().filter(|standing| standing.waiting > 0).take(WAITING_SHOWN);
        waiting.map(|standing| standing.shown(AssemblyState::Waiting)).collect()
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// What status shows now.
    pub fn status(&self) -> NodeStatus {
        let (stats, disk) = {
            let store = self.store();
            (store.stats(), store.size())
        };
        let mut assembled = self.waiting();
        let deliveries = self.deliveries().shown();
        let gaps = self.gaps().counts();
        let state = self.state();
        assembled.extend(state.assembled.to_vec());
        let store = StoreStatus {
            state: state.store,
            disk_busy_s: self.disk.so_far().as_secs_f64(),
            blocks: stats.appended,
            duplicates: stats.duplicates,
            disk_bytes: disk.as_u64(),
        };
        NodeStatus::Centre(CentreStatus {
            name: state.name.clone(),
            uptime_s: self.clock.now().since(Instant::ZERO).as_secs_f64(),
            rss_bytes: resident_bytes(),
            rss_peak_bytes: peak_resident_bytes(),
            log_dropped: crate::log::dropped(),
            threads: threads(),
            shortage: ShortageStatus::now(),
            socket_drops: drops::kernel_drops(|inode| state.sockets.contains(&inode)),
            address: state.address.clone(),
            stations: state.stations.clone(),
            contacts: state.contacts.to_vec(),
            assembled,
            deliveries,
            gaps,
            store,
            latency_s: state
                .latency
                .iter()
                .map(|(stage, times)| (stage.name().to_owned(), times.summary()))
                .collect(),
            live: self.live.status(),
            refused: state.refused,
            forwards: state.forwards.clone(),
            files: state.files.values().cloned().collect(),
            streams: state.streams.values().cloned().collect(),
            alarms: self.life.alarms(),
        })
    }
}
