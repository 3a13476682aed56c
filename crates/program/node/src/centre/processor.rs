//! Level-0 processing: reads durable blocks of contacts from the store and makes their products,
//! live and after a restart alike.

use super::contact::{BlockEffect, ContactProducts, Processing, ProductAttempt};
use super::shared::CentreShared;
use crate::status::ContactState;
use skyhaul_config::ProductRules;
use skyhaul_net::Clock;
use skyhaul_store::{LogEntry, StationName, StoreError};
use skyhaul_units::{Duration, FlowId, Instant};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The Level-0 thread.
#[derive(Debug)]
pub struct Processor {
    shared: Arc<CentreShared>,
    clock: Clock,
    rules: ProductRules,
    contacts: BTreeMap<Key, Work>,
}

type Key = (StationName, FlowId);

/// A contact in processing, or waiting for another attempt.
#[derive(Debug)]
enum Work {
    Going(Box<Processing>),
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
    pub const fn new(shared: Arc<CentreShared>, clock: Clock, rules: ProductRules) -> Self {
        Self { shared, clock, rules, contacts: BTreeMap::new() }
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
        let open: Vec<Key> = {
            let store = self.shared.store();
            store.spaces().open_contacts().map(|(station, flow)| (station.clone(), flow)).collect()
        };
        let mut more = false;
        for key in open {
            more |= self.contact(key);
        }
        let changes = self.shared.gaps().changes(self.clock.now());
        match changes.map_or(Ok(()), |changes| self.shared.keep_gaps(changes)) {
            Ok(()) => drop(self.shared.alarms.clear(GAPS)),
            Err(error) => self.shared.alarms.raise(GAPS, &error.to_string()),
        }
        more
    }

    fn contact(&mut self, key: Key) -> bool {
        let now = self.clock.now();
        let mut going = match self.contacts.remove(&key) {
            Some(Work::Going(processing)) => processing,
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
        if let Some(reason) = going.products().unwritten() {
            self.shared.alarms.raise(PRODUCTS, reason);
        }
        let (work, more) = match outcome {
            Ok(BlockEffect::Idle) => (Work::Going(going), false),
            Ok(BlockEffect::More) => (Work::Going(going), true),
            Ok(BlockEffect::Closed) => match self.finish(*going) {
                Ok(()) => return true,
                Err(reason) => return self.again(key, &reason),
            },
            Ok(BlockEffect::Unreadable(reason)) => {
                self.shared.alarms.raise(
                    &format!("flow {} of {} cannot be processed", key.1, key.0.as_str()),
                    &reason,
                );
                going.show(ContactState::Failed);
                self.shared.board.contact(going.shown());
                (Work::Failed, false)
            }
            Err(reason) => return self.again(key, &reason),
        };
        self.contacts.insert(key, work);
        self.well();
        more
    }

    fn begin(&self, key: &Key, attempt: ProductAttempt) -> Result<Box<Processing>, StoreError> {
        let reader = self.shared.store().reader(&key.0, key.1)?;
        let live = self.shared.live.clone();
        let (station, flow) = key.clone();
        let products = ContactProducts::new(self.rules.clone(), attempt);
        Ok(Box::new(Processing::new(station, flow, reader, products, live)))
    }

    /// Takes some blocks of a contact.
    fn blocks(&self, going: &mut Processing) -> Result<BlockEffect, String> {
        for _ in 0..TURN {
            let item = self.shared.store().read(going.reader());
            let outcome = match item.map_err(|error| error.to_string())? {
                None => BlockEffect::Idle,
                Some(LogEntry::Block(record)) => going.block(&record, &self.shared, self.clock)?,
                Some(LogEntry::Damaged(damage)) => {
                    self.shared.alarms.raise("the store is damaged", &damage.to_string());
                    going.count_damage(&self.shared);
                    BlockEffect::More
                }
                Some(LogEntry::SegmentEnd(_)) => BlockEffect::More,
            };
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

    /// Writes the products, then marks the contact as done in the store.
    fn finish(&self, going: Processing) -> Result<(), String> {
        let (station, flow) = going.key();
        let (shown, note) = going.finish(self.clock, &self.shared)?;
        let now = self.clock.utc();
        // Noted before it is marked as done: a contact that is done is not looked at again.
        if let Some(note) = note {
            self.shared.journal().note(note).map_err(|error| error.to_string())?;
            self.shared.hold_contacts();
        }
        self.shared.store().finish(&station, flow, now).map_err(|error| error.to_string())?;
        self.shared.board.contact(&shown);
        self.well();
        tracing::info!(
            station = station.as_str(),
            flow = flow.0,
            mission = shown.mission,
            "products written"
        );
        Ok(())
    }

    /// Clears the alarm once no contact's products wait.
    fn well(&self) {
        let waits = |work: &Work| match work {
            Work::Going(going) => going.products().unwritten().is_some(),
            Work::Again(_) => true,
            Work::Failed => false,
        };
        if !self.contacts.values().any(waits) {
            self.shared.alarms.clear(PRODUCTS);
        }
    }

    fn again(&mut self, key: Key, reason: &str) -> bool {
        self.shared.alarms.raise(PRODUCTS, reason);
        self.contacts.insert(key, Work::Again(self.clock.now() + RETRY));
        false
    }
}

const GAPS: &str = "the list of gaps cannot be saved, retrying";
const PRODUCTS: &str = "products cannot be written, retrying";
