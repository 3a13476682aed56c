//! The centre's end: keeps what arrives, syncs in groups, receipts, processes whole flows, loses power.

use super::truth::{Truth, is_final};
use super::{Moment, NAME, millis};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use skyhaul_node::custody::{Stamps, keep};
use skyhaul_node::payload::split_taken;
use skyhaul_store::sim::SimDisk;
use skyhaul_store::{
    ContactConfig, ContactReader, ContactStore, ContactSync, FlowStatus, Item, Seq, StationName, StoreError,
};
use skyhaul_transport::{Received, Resume, Session};
use skyhaul_units::{Bytes, Duration, FlowId, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

pub struct Centre {
    pub disk: SimDisk,
    pub node: Option<Node>,
    restart_at: Instant,
}

/// The process.
pub struct Node {
    store: ContactStore,
    station: StationName,
    /// Arrived and not written: the number of the connection, and the block.
    queue: VecDeque<(u64, Received)>,
    /// The store was full.
    retry_at: Instant,
    unsynced: bool,
    sync: Option<(Instant, ContactSync)>,
    readers: BTreeMap<FlowId, Reading>,
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
        Self { disk, node: None, restart_at: Instant::ZERO }
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
        sync.into_iter().chain(queue).chain(finish).chain([node.free_at]).min().expect("one is always there")
    }

    /// Does what is due; `false` where the process has died of its disk.
    pub fn work(&mut self, at: Moment, truth: &mut Truth, rng: &mut ChaCha8Rng, line: Line<'_>) -> bool {
        if self.node.is_none() && at.now >= self.restart_at {
            self.start(at, truth);
        }
        let Some(node) = &mut self.node else { return true };
        match node.work(at, truth, rng, line) {
            Ok(()) => true,
            Err(StoreError::Log(_) | StoreError::State { .. }) => {
                self.die(at.now + millis(rng.random_range(1..500)));
                false
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn start(&mut self, at: Moment, truth: &mut Truth) {
        let Ok(store) = ContactStore::open(Arc::new(self.disk.clone()), config()) else {
            self.disk.kill();
            self.restart_at = at.now + RETRY;
            return;
        };
        let station = StationName::new(NAME).unwrap();
        for (flow, known) in &mut truth.flows {
            match store.status(&station, *flow) {
                FlowStatus::Unknown => assert_eq!(known.promised, Seq::FIRST, "{flow:?} is gone"),
                FlowStatus::Open { durable, .. } => {
                    assert!(
                        known.promised <= durable,
                        "{flow:?}: {} promised, {durable} kept",
                        known.promised
                    );
                }
                // A finish that failed half-way may show after a restart: it had been processed.
                FlowStatus::Finished => {
                    assert!(known.is_final(), "{flow:?} is finished without its last record");
                    known.processed = true;
                }
            }
            let finished = store.status(&station, *flow) == FlowStatus::Finished;
            assert!(finished || !known.processed, "{flow:?} was finished");
        }
        self.node = Some(Node {
            store,
            station,
            queue: VecDeque::new(),
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
    pub fn resume(&self, truth: &mut Truth) -> Resume {
        let resume = self.store.resume(&self.station);
        let resume = Resume { finished_below: resume.finished_below, open: resume.flows };
        let flows: Vec<FlowId> = truth.flows.keys().copied().collect();
        for flow in flows {
            truth.promise(flow, resume.next(flow).unwrap_or(Seq::FINISHED));
        }
        resume
    }

    pub fn arrived(&mut self, connection: u64, received: Received) {
        self.queue.push_back((connection, received));
    }

    fn work(
        &mut self,
        at: Moment,
        truth: &mut Truth,
        rng: &mut ChaCha8Rng,
        mut line: Line<'_>,
    ) -> Result<(), StoreError> {
        self.finish_sync(at, truth, &mut line)?;
        self.keep(at, truth, &mut line)?;
        if self.unsynced
            && self.sync.is_none()
            && let Some(handle) = self.store.sync_handle()
        {
            self.unsynced = false;
            self.sync = Some((at.now + millis(rng.random_range(1..40)), handle));
        }
        self.read(at, truth, rng)?;
        self.finish(at, truth, &mut line)?;
        if at.now >= self.free_at {
            self.free_at = at.now + Duration::from_secs(1);
            self.store.free(at.utc())?;
        }
        Ok(())
    }

    fn keep(&mut self, at: Moment, truth: &mut Truth, line: &mut Line<'_>) -> Result<(), StoreError> {
        if at.now < self.retry_at {
            return Ok(());
        }
        while let Some((connection, received)) = self.queue.front() {
            let stamps = Stamps::of(&received.timing, Moment::zero());
            match keep(&mut self.store, &self.station, received, &stamps) {
                Ok(None) => self.unsynced = true,
                Ok(Some(receipt)) => tell(truth, line, receipt.flow, receipt.next),
                Err(StoreError::Full { .. }) => {
                    self.retry_at = at.now + RETRY;
                    self.unsynced = true;
                    return Ok(());
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
        Ok(())
    }

    fn finish_sync(&mut self, at: Moment, truth: &mut Truth, line: &mut Line<'_>) -> Result<(), StoreError> {
        let Some((_, handle)) = self.sync.take_if(|(done_at, _)| *done_at <= at.now) else { return Ok(()) };
        let commit = self.store.synced(handle.sync());
        for receipt in commit.receipts {
            tell(truth, line, receipt.flow, receipt.next);
        }
        commit.failed.into_iter().next().map_or(Ok(()), |(_, _, error)| Err(error.into()))
    }

    /// Reads what has become durable, and compares it with what was captured.
    fn read(&mut self, at: Moment, truth: &Truth, rng: &mut ChaCha8Rng) -> Result<(), StoreError> {
        let open: Vec<FlowId> = self.store.open_contacts().map(|(_, flow)| flow).collect();
        for flow in open {
            let reading = match self.readers.entry(flow) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(slot) => slot.insert(Reading {
                    reader: self.store.reader(&self.station, flow)?,
                    next: Seq::FIRST,
                    finish_at: None,
                }),
            };
            while let Some(item) = self.store.read(&mut reading.reader)? {
                let Item::Block(record) = item else { panic!("{flow:?}: {item:?}") };
                assert_eq!((record.flow, record.seq), (flow, reading.next), "out of order");
                let (_, block) = Stamps::split(&record.payload).unwrap();
                let (_, payload) = split_taken(block).unwrap();
                truth.check(flow, record.seq, payload);
                reading.next = record.seq.next();
                if is_final(payload) {
                    reading.finish_at = Some(at.now + millis(rng.random_range(0..300)));
                }
            }
        }
        Ok(())
    }

    /// Level-0 is done with a flow.
    fn finish(&mut self, at: Moment, truth: &mut Truth, line: &mut Line<'_>) -> Result<(), StoreError> {
        let due = |reading: &Reading| reading.finish_at.is_some_and(|finish_at| finish_at <= at.now);
        let flows: Vec<FlowId> =
            self.readers.iter().filter(|(_, reading)| due(reading)).map(|(flow, _)| *flow).collect();
        for flow in flows {
            match self.store.finish(&self.station, flow, at.utc()) {
                Ok(receipt) => {
                    truth.flow(flow).processed = true;
                    self.readers.remove(&flow);
                    tell(truth, line, receipt.flow, receipt.next);
                }
                Err(StoreError::Full { .. }) => {
                    self.readers.get_mut(&flow).unwrap().finish_at = Some(at.now + RETRY);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.sync.is_none() && self.readers.is_empty()
    }
}

/// A receipt goes to the station, over the session that is up.
fn tell(truth: &mut Truth, line: &mut Line<'_>, flow: FlowId, next: Seq) {
    truth.promise(flow, next);
    if let Some((_, session)) = line {
        session.receipt(flow, next);
    }
}

fn config() -> ContactConfig {
    ContactConfig {
        segment_size: Bytes::kib(4),
        max_size: Bytes::mib(1),
        retention: Duration::from_secs(3),
        reserve: Bytes::new(300),
    }
}
