//! Level-0 processing: reads durable blocks of contacts from the store and makes their products,
//! live and after a restart alike.

use super::awaited::AwaitingContacts;
use super::contact::{BaseContact, BlockEffect, ContactProducts, Processing, ProductAttempt};
use super::shared::CentreShared;
use crate::custody::StoredContact;
use crate::journal::EventNote;
use crate::status::{ContactReceived, ContactState};
use skyhaul_config::ProductRules;
use skyhaul_events::{AlarmKind, EventKind};
use skyhaul_net::Clock;
use skyhaul_store::{LogEntry, StoreError};
use skyhaul_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The Level-0 thread.
#[derive(Debug)]
pub struct Processor {
    shared: Arc<CentreShared>,
    clock: Clock,
    rules: ProductRules,
    contacts: BTreeMap<StoredContact, Work>,
    awaiting: AwaitingContacts,
}

/// A contact in processing, or waiting for another attempt.
#[derive(Debug)]
enum Work {
    Going(Box<Processing>),
    /// Its products are written; it is still being passed on.
    Written(Box<ContactReceived>),
    /// Its products could not be written; it is processed from its beginning again at this time.
    Again(Instant),
    /// It cannot be processed; its data stays in the store.
    Failed,
}

/// The store is polled this often, should a wake-up be missed.
const IDLE: Duration = Duration::from_millis(250);
/// Between two attempts to write products.
const RETRY: Duration = Duration::from_secs(2);
/// Blocks of one contact taken before the next has its turn.
const TURN: usize = 32;

impl Processor {
    /// Makes products as `rules` say.
    pub fn new(shared: Arc<CentreShared>, clock: Clock, rules: ProductRules) -> Self {
        let (contacts, awaiting) = (BTreeMap::new(), AwaitingContacts::default());
        Self { shared, clock, rules, contacts, awaiting }
    }

    /// Runs until the centre stops.
    pub fn run(mut self) {
        while !self.shared.shutdown.is_requested() {
            if !self.turn() {
                self.shared.news.wait(IDLE);
            }
        }
    }

    /// Gives every contact a turn. Returns whether any has more to do.
    fn turn(&mut self) -> bool {
        let mut more = false;
        let open = StoredContact::open_in(&self.shared.store());
        for key in open {
            more |= self.contact(key);
        }
        let changes = self.shared.gaps().changes(self.clock.now());
        match changes.map_or(Ok(()), |changes| self.shared.keep_gaps(changes)) {
            Ok(()) => _ = self.shared.alarms.clear(AlarmKind::GapsUnsaved, GAPS),
            Err(error) => {
                self.shared.alarms.raise(AlarmKind::GapsUnsaved, GAPS, &error.to_string());
            }
        }
        more
    }

    fn contact(&mut self, key: StoredContact) -> bool {
        let now = self.clock.now();
        let mut going = match self.contacts.remove(&key) {
            Some(Work::Going(processing)) => processing,
            Some(Work::Written(shown)) => return self.written(key, shown),
            Some(Work::Failed) => {
                self.contacts.insert(key, Work::Failed);
                return false;
            }
            Some(Work::Again(at)) if now < at => {
                self.contacts.insert(key, Work::Again(at));
                return false;
            }
            work @ (Some(Work::Again(_)) | None) => match self.begin(
                &key,
                if work.is_some() { ProductAttempt::Again } else { ProductAttempt::First },
            ) {
                Ok(processing) => processing,
                Err(error) => return self.again(key, &error.to_string()),
            },
        };
        let outcome = self.blocks(&mut going);
        if outcome != Ok(BlockEffect::Early) {
            self.awaiting.goes_on(&key);
        }
        if let Some(reason) = going.products().unwritten() {
            self.shared.alarms.raise(AlarmKind::ProductsUnwritten, PRODUCTS, reason);
        }
        let (work, more) = match outcome {
            Ok(BlockEffect::Idle) => (Work::Going(going), false),
            Ok(BlockEffect::More) => (Work::Going(going), true),
            // Where it has waited long enough, it begins again at once.
            Ok(BlockEffect::Early) => return !self.awaiting.waits(&key, now),
            Ok(BlockEffect::Closed) => match self.finish(*going) {
                Ok(shown) => return self.written(key, Box::new(shown)),
                Err(reason) => return self.again(key, &reason),
            },
            Ok(BlockEffect::Unreadable(reason)) => {
                self.shared.alarms.raise(
                    AlarmKind::ContactFailed,
                    format!("flow {} of {}", key.flow, key.space),
                    &reason,
                );
                going.show(ContactState::Failed);
                self.tell(EventKind::ContactFailed, going.shown(), &reason);
                self.shared.commits.ways.end(&going.shown().name());
                self.shared.board.contact(going.shown());
                (Work::Failed, false)
            }
            Err(reason) => return self.again(key, &reason),
        };
        self.contacts.insert(key, work);
        self.well();
        more
    }

    fn begin(
        &self,
        key: &StoredContact,
        attempt: ProductAttempt,
    ) -> Result<Box<Processing>, StoreError> {
        let reader = self.shared.store().reader(&key.space, key.flow)?;
        let live = self.shared.live.clone();
        let products = ContactProducts::new(self.rules.clone(), attempt, key.to_string());
        let base = match self.awaiting.is_over(key, self.clock.now()) {
            true => BaseContact::Settled,
            false => BaseContact::Awaited,
        };
        Ok(Box::new(Processing::new(key.clone(), reader, products, live, base)))
    }

    /// Takes some blocks of a contact.
    fn blocks(&self, going: &mut Processing) -> Result<BlockEffect, String> {
        for _ in 0..TURN {
            let item = self.shared.store().read(going.reader());
            let outcome = match item.map_err(|error| error.to_string())? {
                None => BlockEffect::Idle,
                Some(LogEntry::Block(record)) => going.block(&record, &self.shared, self.clock)?,
                Some(LogEntry::Damaged(damage)) => {
                    self.shared.alarms.raise(
                        AlarmKind::StoreDamaged,
                        "the store",
                        &damage.to_string(),
                    );
                    going.count_damage(&self.shared);
                    BlockEffect::More
                }
                Some(LogEntry::SegmentEnd(_)) => BlockEffect::More,
            };
            if outcome == BlockEffect::Early {
                return Ok(outcome);
            }
            if outcome != BlockEffect::More {
                self.shared.board.contact(going.shown());
                return Ok(outcome);
            }
        }
        // A second attempt is behind what the first one showed.
        if going.products().attempt() == ProductAttempt::First {
            self.shared.board.contact(going.shown());
        }
        Ok(BlockEffect::More)
    }

    /// Writes the products. Returns the contact's status.
    fn finish(&self, going: Processing) -> Result<ContactReceived, String> {
        let (shown, note) = going.finish(self.clock, &self.shared)?;
        // Noted before it is marked as done: a contact that is done is not looked at again.
        if let Some(note) = note {
            self.shared.journal().note(note).map_err(|error| error.to_string())?;
            self.shared.hold_contacts();
        }
        Ok(shown)
    }

    /// Marks a contact whose products are written as done in the store, once it is passed on.
    /// Returns whether it did.
    fn written(&mut self, key: StoredContact, mut shown: Box<ContactReceived>) -> bool {
        shown.way.to = self.shared.onward.to(&key);
        if !self.shared.onward.is_settled(&key) {
            self.shared.board.contact(&shown);
            self.contacts.insert(key, Work::Written(shown));
            return false;
        }
        let finished = self.shared.store().finish(&key.space, key.flow, self.clock.utc());
        if let Err(error) = finished {
            return self.again(key, &error.to_string());
        }
        self.shared.onward.finished(&key);
        self.shared.board.contact(&shown);
        self.well();
        if shown.state == ContactState::Done {
            let (station, flow) = (&shown.station, shown.flow);
            tracing::info!(station, flow, mission = shown.mission, "products written");
            self.tell(EventKind::ContactDone, &shown, "its products are written");
        }
        if shown.state == ContactState::Refused {
            self.tell(EventKind::ContactRefused, &shown, "it came through this node before");
        }
        true
    }

    /// Notes what became of a contact.
    fn tell(&self, kind: EventKind, shown: &ContactReceived, what: &str) {
        let name = format!("contact {}", shown.name());
        let note = EventNote::new(kind, name.clone(), format!("{name}: {what}"));
        let note = note.with("station", shown.station.clone()).with("flow", shown.flow);
        self.shared.alarms.events().note(note.with("mission", shown.mission.clone()));
    }

    /// Clears the alarm once no contact's products wait.
    fn well(&self) {
        let waits = |work: &Work| match work {
            Work::Going(going) => going.products().unwritten().is_some(),
            Work::Again(_) => true,
            Work::Written(_) | Work::Failed => false,
        };
        if !self.contacts.values().any(waits) {
            self.shared.alarms.clear(AlarmKind::ProductsUnwritten, PRODUCTS);
        }
    }

    fn again(&mut self, key: StoredContact, reason: &str) -> bool {
        self.shared.alarms.raise(AlarmKind::ProductsUnwritten, PRODUCTS, reason);
        self.contacts.insert(key, Work::Again(self.clock.now() + RETRY));
        false
    }
}

const GAPS: &str = "the list of gaps";
const PRODUCTS: &str = "products";
