//! What a centre's threads share: the store and the ledgers beside it, what status shows, alarms,
//! the end of the centre.

use super::admission::LineDesk;
use super::assembly::{AssemblyJournal, stored};
use super::board::CentreBoard;
use super::commits::CommitTimes;
use super::delivered::DeliveredContacts;
use super::delivery::DeliveryLedger;
use super::gaps::{GapLedger, LedgerWrites};
use super::live::Receivers;
use super::onward::Onward;
use super::store_news::StoreNews;
use crate::alarms::Alarms;
use crate::incoming::FilesAccount;
use crate::shutdown::Shutdown;
use crate::status::{
    AssembledProduct, AssemblyState, CentreProducts, CentreStatus, FilesStatus, ProcessStatus,
    ShortageStatus, StoreState, StoreStatus, threads,
};
use skyhaul_events::EventKind;
use skyhaul_level0::report::Product;
use skyhaul_net::{BusyClock, Clock, Waker};
use skyhaul_store::{ContactStore, LedgerError};
use skyhaul_units::{Instant, Utc};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The state that the threads of one centre share. Locks are held for the length of one call.
#[derive(Debug)]
pub struct CentreShared {
    clock: Clock,
    store: Mutex<ContactStore>,
    /// Products of several contacts. Locked before the store, never after it.
    journal: Mutex<AssemblyJournal>,
    deliveries: DeliveryLedger,
    /// Missing frames. No other lock is taken while this one is held.
    gaps: Mutex<GapLedger>,
    /// When blocks became durable.
    pub commits: CommitTimes,
    /// What standby stations are told.
    pub delivered: DeliveredContacts,
    /// How long the thread that writes blocks has been in calls to the disk.
    pub disk: BusyClock,
    /// What the line's thread is told.
    pub desk: LineDesk,
    /// Wakes the Level-0 thread.
    pub news: StoreNews,
    /// Receivers of live packets.
    pub live: Receivers,
    /// Where contacts go on to.
    pub onward: Onward,
    /// What status shows.
    pub board: CentreBoard,
    /// What an operator must act on.
    pub alarms: Arc<Alarms>,
    /// Ends the centre.
    pub shutdown: Shutdown,
}

impl FilesAccount for CentreShared {
    fn count(&self, peer: &str, change: &mut dyn FnMut(&mut FilesStatus)) {
        self.board.files(peer, change);
    }
}

/// What is kept in the state folder.
#[derive(Debug)]
pub struct CentreState {
    /// Contacts.
    pub store: ContactStore,
    /// Products of several contacts.
    pub journal: AssemblyJournal,
    /// Products for other systems.
    pub deliveries: DeliveryLedger,
    /// Missing frames.
    pub gaps: GapLedger,
}

/// Products that status shows although they are not made yet: three weeks of windows of one
/// spacecraft.
const WAITING_SHOWN: usize = 256;

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CentreShared {
    /// The state of a centre that has done nothing yet and has no receivers of live packets; `line`
    /// wakes the thread of its lines.
    pub fn new(
        board: CentreBoard,
        kept: CentreState,
        onward: Onward,
        alarms: Arc<Alarms>,
        line: Waker,
    ) -> Self {
        let CentreState { store, journal, deliveries, gaps } = kept;
        let clock = alarms.clock();
        Self {
            clock,
            store: Mutex::new(store),
            journal: Mutex::new(journal),
            deliveries,
            gaps: Mutex::new(gaps),
            commits: CommitTimes::default(),
            delivered: DeliveredContacts::default(),
            disk: BusyClock::new(clock),
            desk: LineDesk::default(),
            news: StoreNews::default(),
            live: Receivers::default(),
            onward,
            board,
            shutdown: Shutdown::new(line, alarms.clone()),
            alarms,
        }
    }

    /// Shows whether the store takes data.
    pub fn show_store(&self, state: StoreState) {
        let before = self.board.store(state);
        match (before, state) {
            (StoreState::Ok, StoreState::Full | StoreState::Failed) => {
                let sentence = "the store takes no data: stations wait; see the alarms";
                self.alarms.events().tell(EventKind::StoreFull, "the store", sentence);
            }
            (StoreState::Full | StoreState::Failed, StoreState::Ok) => {
                let sentence = "the store takes data again";
                self.alarms.events().tell(EventKind::StoreOk, "the store", sentence);
            }
            _ => {}
        }
    }

    /// The store. A thread that panics while it holds the lock ends the centre; what it wrote is
    /// checked at the next start.
    pub fn store(&self) -> MutexGuard<'_, ContactStore> {
        lock(&self.store)
    }

    /// The journal of products of several contacts. Release the store before.
    pub fn journal(&self) -> MutexGuard<'_, AssemblyJournal> {
        lock(&self.journal)
    }

    /// The ledger of deliveries.
    pub const fn deliveries(&self) -> &DeliveryLedger {
        &self.deliveries
    }

    /// The ledger of missing frames.
    pub fn gaps(&self) -> MutexGuard<'_, GapLedger> {
        lock(&self.gaps)
    }

    /// Writes changes of the ledger; they are durable when this returns. Called by the Level-0
    /// thread alone.
    ///
    /// # Errors
    /// The disk refuses: they are written with the next changes.
    pub fn keep_gaps(&self, changes: LedgerWrites) -> Result<(), LedgerError> {
        changes.news().for_each(|note| self.alarms.events().note(note.clone()));
        let kept = changes.write();
        if kept.is_err() {
            self.gaps().not_kept(changes);
        }
        kept
    }

    /// Adds published products to the catalogue, with their deliveries, durably.
    ///
    /// # Errors
    /// The disk refuses: offer them again.
    pub fn offer(&self, products: &[Product]) -> Result<(), String> {
        let now = self.clock.utc();
        let mut published = products.iter().filter(|product| product.is_published());
        published
            .try_for_each(|product| {
                if self.deliveries.offer(product, now)? {
                    self.tell_published(product);
                }
                let kept = |contact: &str| self.deliveries.contact_times(contact);
                match self.commits.ways.of(product, kept) {
                    Some(times) => self.deliveries.keep_times(product, times),
                    None => Ok(()),
                }
            })
            .map_err(|error| error.to_string())
    }

    fn tell_published(&self, product: &Product) {
        let name = product.name.stem();
        let sentence = format!("product {name} is published");
        self.alarms.events().tell(EventKind::ProductPublished, name, sentence);
    }

    /// Keeps the way of the blocks of a contact whose products are published, for products that are
    /// made later.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn keep_way(&self, contact: &str, closed: Utc) -> Result<(), String> {
        let Some(times) = self.commits.ways.kept(contact) else { return Ok(()) };
        let kept = self.deliveries.catalogue().keep_contact(contact, closed, times);
        kept.map_err(|error| error.to_string())?;
        self.commits.ways.end(contact);
        Ok(())
    }

    /// Makes the store keep the contacts that products are still to be made of.
    pub fn hold_contacts(&self) {
        let held = self.journal().held();
        self.store().hold(held.iter().filter_map(stored));
    }

    /// The products that wait for data.
    fn waiting(&self) -> Vec<AssembledProduct> {
        let journal = self.journal();
        let waiting = journal.standing().filter(|standing| standing.waiting > 0);
        waiting.take(WAITING_SHOWN).map(|standing| standing.shown(AssemblyState::Waiting)).collect()
    }

    /// The clock.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The time of day.
    pub fn utc(&self) -> Utc {
        self.clock.utc()
    }

    /// The status of the centre now.
    pub fn status(&self) -> CentreStatus {
        let (stats, disk) = {
            let store = self.store();
            (store.stats(), store.size())
        };
        let mut status = CentreStatus {
            process: ProcessStatus::now(self.clock.now().since(Instant::ZERO)),
            threads: threads(),
            shortage: ShortageStatus::now(),
            products: CentreProducts {
                assembled: self.waiting(),
                deliveries: self.deliveries().shown(self.clock.utc()),
                gaps: self.gaps().counts(),
            },
            store: StoreStatus {
                disk_busy_s: self.disk.so_far().as_secs_f64(),
                blocks: stats.appended,
                duplicates: stats.duplicates,
                disk_bytes: disk.as_u64(),
                removed: stats.removed,
                removed_early: stats.removed_early,
                ..StoreStatus::default()
            },
            live: self.live.status(),
            alarms: self.alarms.status(),
            ..CentreStatus::default()
        };
        self.board.copy_to(&mut status);
        status
    }
}
