//! The centre's end: keeps what arrives, syncs in groups, receipts, processes whole flows, loses
//! power.

use super::truth::{Deeds, is_final};
use super::{Moment, NAME, millis};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use skyhaul_node::custody::{PREFACE, Stamps, custody_of, keep};
use skyhaul_records::payload::split_taken;
use skyhaul_store::sim::SimDisk;
use skyhaul_store::{
    ContactConfig, ContactReader, ContactStore, ContactSync, FlowStatus, LogEntry, Receipt, Seq,
    SpoolIdentity, SpoolKnown, SpoolSender, StationName, StoreError,
};
use skyhaul_transport::{Custody, Received, SPOOLS_MAX, Session};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

pub struct Centre {
    pub disk: SimDisk,
    pub node: Option<Node>,
    pub deeds: Deeds,
    restart_at: Instant,
}

/// The process.
pub struct Node {
    store: ContactStore,
    station: StationName,
    /// Arrived and not written: the number of the connection, and the block.
    queue: VecDeque<(u64, Received)>,
    /// Who sends over the connections: those of which blocks are in the queue, and the newest.
    senders: BTreeMap<u64, (Vec<SpoolKnown>, Option<SpoolSender>)>,
    /// A connection on which the centre does not go on.
    pub refused: Option<u64>,
    /// The store was full.
    retry_at: Instant,
    unsynced: bool,
    sync: Option<(Instant, ContactSync)>,
    readers: BTreeMap<(StationName, FlowId), Reading>,
    free_at: Instant,
}

/// Level-0's view of a flow.
struct Reading {
    reader: ContactReader,
    next: Seq,
    /// Its last record was read; processing is done then.
    finish_at: Option<Instant>,
}

/// The session that is up, and its number.
pub type Line<'a> = Option<(u64, &'a mut Session)>;

const RETRY: Duration = millis(200);

impl Centre {
    pub fn new(disk: SimDisk) -> Self {
        Self { disk, node: None, deeds: Deeds::default(), restart_at: Instant::ZERO }
    }

    /// The process is gone; it starts again at `at`.
    pub fn die(&mut self, at: Instant) {
        self.disk.kill();
        self.node = None;
        self.restart_at = at;
    }

    pub fn next_wake(&self) -> Instant {
        let Some(node) = &self.node else { return self.restart_at };
        let sync = node.sync.as_ref().map(|(at, _)| *at);
        let queue = (!node.queue.is_empty()).then_some(node.retry_at);
        let finish = node.readers.values().filter_map(|reading| reading.finish_at);
        sync.into_iter()
            .chain(queue)
            .chain(finish)
            .chain([node.free_at])
            .min()
            .expect("one is always there")
    }

    /// Does what is due; `false` where the process has died of its disk.
    pub fn work(&mut self, at: Moment, rng: &mut ChaCha8Rng, line: Line<'_>) -> bool {
        if self.node.is_none() && at.now >= self.restart_at {
            self.start(at);
        }
        let Some(node) = &mut self.node else { return true };
        match node.work(at, &mut self.deeds, rng, line) {
            Ok(()) => true,
            Err(StoreError::Log(_) | StoreError::State { .. }) => {
                self.die(at.now + millis(rng.random_range(1..500)));
                false
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn start(&mut self, at: Moment) {
        let Ok(store) = ContactStore::open(Arc::new(self.disk.clone()), config()) else {
            self.disk.kill();
            self.restart_at = at.now + RETRY;
            return;
        };
        let station = StationName::new(NAME).unwrap();
        for ((space, flow), known) in &mut self.deeds.contacts {
            match store.spaces().status(space, *flow) {
                FlowStatus::Unknown => {
                    assert_eq!(known.promised, Seq::FIRST, "{space} {flow:?} is gone");
                }
                FlowStatus::Open { durable, .. } => {
                    assert!(
                        known.promised <= durable && !known.processed,
                        "{space} {flow:?}: {} promised, {durable} kept",
                        known.promised
                    );
                    // It is read again from its beginning.
                    known.records.clear();
                }
                // A finish that failed half-way may show after a restart: it had been processed.
                FlowStatus::Finished => {
                    let ends = known.records.last().is_some_and(|record| is_final(record));
                    assert!(ends, "{space} {flow:?} is finished without its last record");
                    known.processed = true;
                }
            }
        }
        self.node = Some(Node {
            store,
            station,
            queue: VecDeque::new(),
            senders: BTreeMap::new(),
            refused: None,
            retry_at: at.now,
            unsynced: false,
            sync: None,
            readers: BTreeMap::new(),
            free_at: at.now,
        });
    }
}

impl Node {
    /// What a new session tells the station.
    pub fn custody(&mut self, connection: u64, deeds: &mut Deeds) -> Vec<Custody> {
        let known = self.store.spaces().known(&self.station, SPOOLS_MAX);
        for one in &known {
            let space = self.store.admit(&self.station, one.spool.id).unwrap().space;
            for held in &one.resume.flows {
                deeds.promise(&space, held.flow, held.next);
            }
        }
        let custody = known.iter().map(custody_of).collect();
        let queue = &self.queue;
        self.senders.retain(|number, _| queue.iter().any(|(queued, _)| queued == number));
        self.senders.insert(connection, (known, None));
        custody
    }

    /// The station has said which spool it sends from.
    pub fn greeted(&mut self, connection: u64, spool: SpoolIdentity) {
        let Some((known, sender)) = self.senders.get_mut(&connection) else { return };
        let told = known
            .iter()
            .find(|known| known.spool.id == spool.id)
            .cloned()
            .unwrap_or_default()
            .state;
        let space = self.store.admit(&self.station, spool.id).unwrap().space;
        *sender = Some(SpoolSender { station: self.station.clone(), space, spool, told });
    }

    pub fn arrived(&mut self, connection: u64, received: Received) {
        self.queue.push_back((connection, received));
    }

    fn work(
        &mut self,
        at: Moment,
        deeds: &mut Deeds,
        rng: &mut ChaCha8Rng,
        mut line: Line<'_>,
    ) -> Result<(), StoreError> {
        self.finish_sync(at, deeds, &mut line)?;
        self.keep(at, deeds, &mut line)?;
        if self.unsynced
            && self.sync.is_none()
            && let Some(handle) = self.store.sync_handle()
        {
            self.unsynced = false;
            self.sync = Some((at.now + millis(rng.random_range(1..40)), handle));
        }
        self.read(at, deeds, rng)?;
        self.finish(at, deeds, &mut line)?;
        if at.now >= self.free_at {
            self.free_at = at.now + Duration::from_secs(1);
            let due = self.store.kept().due(Duration::from_secs(3), at.utc());
            self.store.release(&due)?;
        }
        Ok(())
    }

    fn keep(
        &mut self,
        at: Moment,
        deeds: &mut Deeds,
        line: &mut Line<'_>,
    ) -> Result<(), StoreError> {
        if at.now < self.retry_at {
            return Ok(());
        }
        let mut receipts = Vec::new();
        while let Some((connection, received)) = self.queue.front() {
            let stamps = Stamps::of(&received.timing, Moment::zero());
            let (_, sender) = &self.senders[connection];
            let sender = sender.as_ref().expect("blocks come behind the greeting");
            match keep(&mut self.store, sender, received, &stamps) {
                Ok(None) => self.unsynced = true,
                Ok(Some(receipt)) => receipts.push(receipt),
                Err(StoreError::Overtaken { .. }) => {
                    self.refused = Some(*connection);
                    self.queue.pop_front();
                    continue;
                }
                Err(StoreError::Full { .. }) => {
                    self.retry_at = at.now + RETRY;
                    self.unsynced = true;
                    break;
                }
                Err(error) => return Err(error),
            }
            if let Some((number, session)) = line
                && *number == *connection
            {
                session.release(received.bytes.len());
            }
            self.queue.pop_front();
        }
        receipts.iter().for_each(|receipt| self.tell(deeds, line, receipt));
        Ok(())
    }

    fn finish_sync(
        &mut self,
        at: Moment,
        deeds: &mut Deeds,
        line: &mut Line<'_>,
    ) -> Result<(), StoreError> {
        let Some((_, handle)) = self.sync.take_if(|(done_at, _)| *done_at <= at.now) else {
            return Ok(());
        };
        let commit = self.store.synced(handle.sync());
        commit.receipts.iter().for_each(|receipt| self.tell(deeds, line, receipt));
        commit.failed.into_iter().next().map_or(Ok(()), |(_, _, error)| Err(error.into()))
    }

    /// Reads what has become durable.
    fn read(
        &mut self,
        at: Moment,
        deeds: &mut Deeds,
        rng: &mut ChaCha8Rng,
    ) -> Result<(), StoreError> {
        let open: Vec<(StationName, FlowId)> = self
            .store
            .spaces()
            .open_contacts()
            .map(|(space, flow)| (space.clone(), flow))
            .collect();
        for (space, flow) in open {
            let reading = match self.readers.entry((space.clone(), flow)) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(slot) => {
                    let reader = self.store.reader(&space, flow)?;
                    slot.insert(Reading { reader, next: Seq::FIRST, finish_at: None })
                }
            };
            while let Some(item) = self.store.read(&mut reading.reader)? {
                let LogEntry::Block(record) = item else { panic!("{flow:?}: {item:?}") };
                assert_eq!((record.flow, record.seq), (flow, reading.next), "out of order");
                let (_, block) = Stamps::split(&record.payload).unwrap();
                let (_, payload) = split_taken(block).unwrap();
                deeds.contact(&space, flow).records.push(payload.to_vec());
                reading.next = record.seq.next();
                if is_final(payload) {
                    reading.finish_at = Some(at.now + millis(rng.random_range(0..300)));
                }
            }
        }
        Ok(())
    }

    /// Level-0 is done with a contact.
    fn finish(
        &mut self,
        at: Moment,
        deeds: &mut Deeds,
        line: &mut Line<'_>,
    ) -> Result<(), StoreError> {
        let due =
            |reading: &Reading| reading.finish_at.is_some_and(|finish_at| finish_at <= at.now);
        let contacts: Vec<(StationName, FlowId)> = self
            .readers
            .iter()
            .filter(|(_, reading)| due(reading))
            .map(|(key, _)| key.clone())
            .collect();
        for key in contacts {
            match self.store.finish(&key.0, key.1, at.utc()) {
                Ok(receipt) => {
                    deeds.contact(&key.0, key.1).processed = true;
                    self.readers.remove(&key);
                    self.tell(deeds, line, &receipt);
                }
                Err(StoreError::Full { .. }) => {
                    self.readers.get_mut(&key).unwrap().finish_at = Some(at.now + RETRY);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A receipt goes to the station, over the session that is up.
    fn tell(&self, deeds: &mut Deeds, line: &mut Line<'_>, receipt: &Receipt) {
        deeds.promise(&receipt.station, receipt.flow, receipt.next);
        let Some((number, session)) = line else { return };
        let sender = self.senders.get(number).and_then(|(_, sender)| sender.as_ref());
        let is_its = |sender: &SpoolSender| {
            sender.space == receipt.station && self.store.spaces().is_taken_up(sender)
        };
        if sender.is_some_and(is_its) {
            session.control_mut().receipt(receipt.flow, receipt.next);
        }
    }

    pub fn is_idle(&self) -> bool {
        // What a spool left that is no more has no end.
        let is_due = |reading: &Reading| reading.finish_at.is_some();
        self.queue.is_empty() && self.sync.is_none() && !self.readers.values().any(is_due)
    }
}

fn config() -> ContactConfig {
    ContactConfig {
        segment_size: ByteCount::kib(4),
        max_size: ByteCount::mib(1),
        reserve: ByteCount::new(300),
        preface: PREFACE,
    }
}
