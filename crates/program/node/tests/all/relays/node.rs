//! One node of a chain: what it received, what it sends on, and the relay between the two, on one
//! disk.

mod told;

use super::truth::Truth;
use super::{Moment, millis, name};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use skyhaul_config::LineSharing;
use skyhaul_node::custody::{
    Feeder, PREFACE, Relay, RelayTask, Stamps, StoredContact, custody_of, find_divergence, keep,
};
use skyhaul_records::payload::{BlockHead, split_taken};
use skyhaul_store::sim::SimDisk;
use skyhaul_store::{
    ContactConfig, ContactReader, ContactStore, ContactSync, DestinationId, LogEntry, Receipt, Seq,
    Spool, SpoolConfig, SpoolDraw, SpoolError, SpoolIdentity, SpoolKnown, SpoolSender, StationName,
    StoreError, SyncHandle,
};
use skyhaul_transport::{Custody, Event, Received, SPOOLS_MAX, Session};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Utc};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// What a node is in its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Station,
    Relay,
    Centre,
}

pub struct Node {
    pub place: usize,
    pub role: Role,
    pub disk: SimDisk,
    pub process: Option<Process>,
    restart_at: Instant,
    /// How long the disk takes for a sync.
    pub sync: Range<u64>,
}

/// The process.
pub struct Process {
    place: usize,
    sync: Range<u64>,
    pub outbound: Option<Outbound>,
    pub inbound: Option<Inbound>,
    relay: Option<Relay>,
    /// A block that the spool had no room for, or an end that it could not keep.
    held: Option<(StoredContact, RelayTask)>,
    retry_at: Instant,
}

/// The spool, and what feeds the node behind from it.
pub struct Outbound {
    pub spool: Spool,
    feeder: Feeder,
    append_at: Instant,
    free_at: Instant,
    sync: Option<(Instant, SyncHandle)>,
}

/// The store, and what came from the node before.
pub struct Inbound {
    store: ContactStore,
    sender: StationName,
    queue: VecDeque<(u64, Received)>,
    senders: BTreeMap<u64, (Vec<SpoolKnown>, Option<SpoolSender>)>,
    /// A connection on which the node does not go on.
    refused: Option<u64>,
    readers: BTreeMap<StoredContact, Reading>,
    retry_at: Instant,
    sync_at: Option<Instant>,
    sync: Option<(Instant, ContactSync)>,
}

struct Reading {
    reader: ContactReader,
    next: Seq,
    is_over: bool,
}

/// The session with the node before, and its number.
pub type Line<'a> = Option<(u64, &'a mut Session)>;

const RETRY: Duration = millis(200);
/// As `[store] sync_interval` is unless it is set.
const GATHER: Duration = millis(10);

/// Why a process ends.
pub struct Died;

impl From<StoreError> for Died {
    fn from(error: StoreError) -> Self {
        assert!(matches!(error, StoreError::Log(_) | StoreError::State { .. }), "{error}");
        Self
    }
}

impl From<SpoolError> for Died {
    fn from(error: SpoolError) -> Self {
        assert!(matches!(error, SpoolError::Log(_) | SpoolError::State { .. }), "{error}");
        Self
    }
}

impl Node {
    pub fn new(place: usize, role: Role, disk: SimDisk) -> Self {
        Self { place, role, disk, process: None, restart_at: Instant::ZERO, sync: 1..40 }
    }

    pub fn die(&mut self, at: Instant) {
        self.disk.kill();
        self.process = None;
        self.restart_at = at;
    }

    pub fn next_wake(&self) -> Instant {
        self.process.as_ref().map_or(self.restart_at, Process::next_wake)
    }

    /// Does what is due; `false` where the process has died of its disk.
    pub fn work(
        &mut self,
        at: Moment,
        truth: &mut Truth,
        rng: &mut ChaCha8Rng,
        line: Line<'_>,
    ) -> bool {
        if self.process.is_none() && at.now >= self.restart_at {
            self.process = self.start(at, truth, rng);
            if self.process.is_none() {
                self.disk.kill();
                self.restart_at = at.now + RETRY;
            }
        }
        let Some(process) = &mut self.process else { return true };
        let lives = process.work(at, truth, rng, line).is_ok();
        if !lives {
            self.die(at.now + millis(rng.random_range(1..500)));
        }
        lives
    }

    fn start(&self, at: Moment, truth: &mut Truth, rng: &mut ChaCha8Rng) -> Option<Process> {
        let disk = Arc::new(self.disk.clone());
        let outbound = match self.role {
            Role::Centre => None,
            _ => {
                let draw = SpoolDraw(rng.random());
                let spool = Spool::open(disk.clone(), spool_config(), at.utc(), draw).ok()?;
                let feeder =
                    Feeder::new(DestinationId::FIRST, LineSharing::default(), ByteCount::mib(64));
                let is_station = self.role == Role::Station;
                let append_at = if is_station { at.now } else { Instant::FAR_FUTURE };
                Some(Outbound { spool, feeder, append_at, free_at: at.now, sync: None })
            }
        };
        let inbound = match self.role {
            Role::Station => None,
            _ => Some(Inbound {
                store: ContactStore::open(disk.clone(), store_config()).ok()?,
                sender: StationName::new(&name(self.place - 1)).unwrap(),
                queue: VecDeque::new(),
                senders: BTreeMap::new(),
                refused: None,
                readers: BTreeMap::new(),
                retry_at: at.now,
                sync_at: None,
                sync: None,
            }),
        };
        let relay = match (&inbound, &outbound) {
            (Some(inbound), Some(outbound)) => {
                let mut relay = Relay::open(disk, &name(self.place)).ok()?;
                assert_eq!(relay.damaged(), [""; 0]);
                relay.resume(&inbound.store, &outbound.spool).ok()?;
                Some(relay)
            }
            _ => None,
        };
        let (place, sync) = (self.place, self.sync.clone());
        let (held, retry_at) = (None, at.now);
        let mut process = Process { place, sync, outbound, inbound, relay, held, retry_at };
        process.close_forgotten().ok()?;
        if let (Role::Station, Some(outbound)) = (self.role, &process.outbound) {
            truth.restarted(&outbound.spool);
        }
        if let Some(inbound) = &process.inbound {
            truth.reopened(self.place, &StoredContact::open_in(&inbound.store));
        }
        Some(process)
    }
}

impl Process {
    fn next_wake(&self) -> Instant {
        let mut next = Instant::FAR_FUTURE;
        if let Some(out) = &self.outbound {
            next = next.min(out.free_at).min(out.append_at);
            next = out.sync.as_ref().map_or(next, |(at, _)| next.min(*at));
        }
        if let Some(inbound) = &self.inbound {
            let queue = (!inbound.queue.is_empty()).then_some(inbound.retry_at);
            let sync = inbound.sync.as_ref().map(|(at, _)| *at);
            let due = inbound.sync_at.filter(|_| sync.is_none());
            next = [queue, sync, due].into_iter().flatten().fold(next, Instant::min);
        }
        if self.held.is_some() {
            next = next.min(self.retry_at);
        }
        next
    }

    /// Flows that were opened before it could be kept what for.
    fn close_forgotten(&mut self) -> Result<(), SpoolError> {
        let (Some(relay), Some(outbound)) = (&self.relay, &mut self.outbound) else {
            return Ok(());
        };
        let known: Vec<FlowId> = relay.flows().collect();
        for open in outbound.spool.queue().open_flows() {
            if !known.contains(&open.flow) {
                outbound.spool.close_flow(open.flow)?;
            }
        }
        Ok(())
    }

    fn work(
        &mut self,
        at: Moment,
        truth: &mut Truth,
        rng: &mut ChaCha8Rng,
        mut line: Line<'_>,
    ) -> Result<(), Died> {
        let (place, sync) = (self.place, self.sync.clone());
        if let Some(inbound) = &mut self.inbound {
            inbound.finish_sync(at, &mut line)?;
            inbound.keep(at, place, truth, &mut line)?;
            inbound.begin_sync(at, &sync, rng);
        }
        if let Some(outbound) = &mut self.outbound {
            if let Some((_, handle)) = outbound.sync.take_if(|(done_at, _)| *done_at <= at.now) {
                outbound.spool.synced(handle.sync())?;
                truth.synced(place);
            }
            if place == 0 {
                outbound.capture(at, truth, rng)?;
            }
        }
        self.pass_on(at)?;
        self.read(at, place, truth, &mut line)?;
        let Some(outbound) = &mut self.outbound else { return Ok(()) };
        if outbound.sync.is_none()
            && let Some(handle) = outbound.spool.sync_handle()
        {
            truth.syncing(place);
            outbound.sync = Some((at.now + millis(rng.random_range(sync)), handle));
        }
        if at.now >= outbound.free_at {
            outbound.free_at = at.now + Duration::from_secs(1);
            outbound.spool.free(at.utc())?;
            let stats = outbound.spool.stats();
            assert_eq!((stats.custody_ahead, stats.missing), (0, 0), "node {place}");
        }
        Ok(())
    }

    /// What the relay's thread does.
    fn pass_on(&mut self, at: Moment) -> Result<(), Died> {
        let Self { outbound, inbound, relay, held, retry_at, .. } = self;
        let (Some(relay), Some(outbound), Some(inbound)) = (relay, outbound, inbound) else {
            return Ok(());
        };
        if held.is_some() && at.now < *retry_at {
            return Ok(());
        }
        let open = StoredContact::open_in(&inbound.store);
        relay.keep_only(&open).map_err(|_| Died)?;
        for contact in
            held.iter().map(|(contact, _)| contact.clone()).chain(open).collect::<Vec<_>>()
        {
            loop {
                let task = match held.take() {
                    Some((_, task)) => task,
                    None => relay.next(&mut inbound.store, &contact)?,
                };
                let full = match &task {
                    RelayTask::Wait | RelayTask::Settled => break,
                    RelayTask::Refuse(error) => panic!("{error}"),
                    RelayTask::Route(label) => {
                        assert_eq!(label.station, name(0));
                        match outbound.spool.open_flow(at.utc()) {
                            Ok(flow) => {
                                relay.begin(&contact, flow).map_err(|_| Died)?;
                                continue;
                            }
                            Err(SpoolError::Full { .. }) => {
                                relay.again(&contact);
                                *retry_at = at.now + RETRY;
                                break;
                            }
                            Err(error) => return Err(error.into()),
                        }
                    }
                    RelayTask::Append { flow, payload } => {
                        match outbound.spool.append(*flow, payload, at.utc()) {
                            Ok(_) => false,
                            Err(SpoolError::Full { .. }) => true,
                            Err(error) => return Err(error.into()),
                        }
                    }
                    RelayTask::Close(flow) => {
                        outbound.spool.close_flow(*flow)?;
                        relay.closed(&contact);
                        false
                    }
                };
                if full {
                    *held = Some((contact, task));
                    *retry_at = at.now + RETRY;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// What Level-0 does: reads each contact, and finishes it once it is passed on.
    fn read(
        &mut self,
        at: Moment,
        place: usize,
        truth: &mut Truth,
        line: &mut Line<'_>,
    ) -> Result<(), Died> {
        let Self { inbound, relay, .. } = self;
        let Some(inbound) = inbound else { return Ok(()) };
        for contact in StoredContact::open_in(&inbound.store) {
            inbound.read(place, &contact, truth)?;
            let is_over = inbound.readers.get(&contact).is_some_and(|reading| reading.is_over);
            let is_passed_on = relay.as_ref().is_none_or(|relay| relay.fate(&contact).is_some());
            if !is_over || !is_passed_on {
                continue;
            }
            match inbound.store.finish(&contact.space, contact.flow, at.utc()) {
                Ok(receipt) => {
                    truth.finished(place, &contact);
                    inbound.readers.remove(&contact);
                    inbound.tell(line, &receipt);
                }
                Err(StoreError::Full { .. }) => inbound.retry_at = at.now + RETRY,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// What the session with the node behind tells; `false` where it must not go on.
    pub fn event(&mut self, at: Moment, event: Event) -> bool {
        let Some(Outbound { spool, feeder, .. }) = &mut self.outbound else { return true };
        match event {
            Event::Greeted { custody, .. } => {
                let custody = custody.unwrap_or_default();
                if custody != Custody::default() {
                    let Ok(found) = find_divergence(spool, feeder.to(), &custody) else {
                        return false;
                    };
                    assert!(found.is_none(), "taken for a copy: {}", found.unwrap());
                }
                feeder.greeted(spool, &custody.resume, at.utc());
            }
            Event::Custody { flow, next } => feeder.custody(spool, flow, next),
            Event::Settled { id, .. } => feeder.settled(id),
            Event::PathUp(_) | Event::PathStalled(_) | Event::PathBack(_) => {}
            other => panic!("{other:?}"),
        }
        true
    }

    pub fn feed(&mut self, at: Moment, session: &mut Session) {
        let Some(Outbound { spool, feeder, .. }) = &mut self.outbound else { return };
        feeder.settle_finished(spool);
        let read = |reader: &mut _, wanted: &dyn Fn(FlowId) -> bool| {
            spool.queue_mut().read_flows(reader, wanted)
        };
        feeder.feed(read, session, at.now, || at.utc()).unwrap();
    }

    pub fn disconnected(&mut self) {
        self.outbound.iter_mut().for_each(|out| out.feeder.disconnected());
    }

    /// The connection with the node before that must begin anew.
    pub fn refused(&mut self) -> Option<u64> {
        self.inbound.as_mut().and_then(|inbound| inbound.refused.take())
    }

    pub fn is_idle(&self, at: Moment) -> bool {
        let is_sent = self.outbound.as_ref().is_none_or(|out| {
            out.spool.queue().live_flows().is_empty()
                && out.spool.queue().depth(at.utc()).blocks == 0
        });
        let is_kept = self.inbound.as_ref().is_none_or(|inbound| {
            inbound.queue.is_empty() && StoredContact::open_in(&inbound.store).is_empty()
        });
        is_sent && is_kept
    }
}

impl Outbound {
    fn capture(&mut self, at: Moment, truth: &mut Truth, rng: &mut ChaCha8Rng) -> Result<(), Died> {
        if at.now < self.append_at {
            return Ok(());
        }
        self.append_at = at.now + millis(rng.random_range(5..60));
        let open = self.spool.queue().open_flows();
        let Some(flow) = open.get(rng.random_range(0..open.len().max(1))).map(|open| open.flow)
        else {
            if !truth.is_ending {
                match self.spool.open_flow(at.utc()) {
                    Ok(_) | Err(SpoolError::Full { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            return Ok(());
        };
        if open.len() < 3 && !truth.is_ending && rng.random_bool(0.04) {
            return match self.spool.open_flow(at.utc()) {
                Ok(_) | Err(SpoolError::Full { .. }) => Ok(()),
                Err(error) => Err(error.into()),
            };
        }
        if truth.is_whole(flow) {
            // Freeing may have synced what no sync of this node did.
            if truth.is_durable(flow) || !self.spool.needs_sync() {
                self.spool.close_flow(flow)?;
            }
            return Ok(());
        }
        let payload = truth.block(at, flow, rng);
        match self.spool.append(flow, &payload, at.utc()) {
            Ok(seq) => truth.appended(flow, seq, payload),
            Err(SpoolError::Full { .. }) => self.append_at = at.now + RETRY,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

impl Inbound {
    /// What a new session tells the node before.
    pub fn custody(&mut self, connection: u64) -> Vec<Custody> {
        let known = self.store.spaces().known(&self.sender, SPOOLS_MAX);
        let custody = known.iter().map(custody_of).collect();
        let queue = &self.queue;
        self.senders.retain(|number, _| queue.iter().any(|(queued, _)| queued == number));
        self.senders.insert(connection, (known, None));
        custody
    }

    pub fn greeted(&mut self, connection: u64, spool: SpoolIdentity) {
        let Some((known, sender)) = self.senders.get_mut(&connection) else { return };
        let told = known.iter().find(|known| known.spool.id == spool.id).cloned();
        let space = self.store.admit(&self.sender, spool.id).unwrap().space;
        let told = told.unwrap_or_default().state;
        *sender = Some(SpoolSender { station: self.sender.clone(), space, spool, told });
    }

    pub fn arrived(&mut self, connection: u64, received: Received) {
        self.queue.push_back((connection, received));
    }

    fn begin_sync(&mut self, at: Moment, sync: &Range<u64>, rng: &mut ChaCha8Rng) {
        if self.sync.is_none() && self.sync_at.is_some_and(|due| due <= at.now) {
            self.sync_at = None;
            let done_at = at.now + millis(rng.random_range(sync.clone()));
            self.sync = self.store.sync_handle().map(|handle| (done_at, handle));
        }
    }

    fn finish_sync(&mut self, at: Moment, line: &mut Line<'_>) -> Result<(), Died> {
        let Some((_, handle)) = self.sync.take_if(|(done_at, _)| *done_at <= at.now) else {
            return Ok(());
        };
        let commit = self.store.synced(handle.sync());
        commit.receipts.iter().for_each(|receipt| self.tell(line, receipt));
        if commit.failed.is_empty() { Ok(()) } else { Err(Died) }
    }

    fn keep(
        &mut self,
        at: Moment,
        place: usize,
        truth: &mut Truth,
        line: &mut Line<'_>,
    ) -> Result<(), Died> {
        if at.now < self.retry_at {
            return Ok(());
        }
        let mut receipts = Vec::new();
        while let Some((connection, received)) = self.queue.front() {
            let stamps = Stamps::of(&received.timing, Moment::zero());
            let sender = self.senders[connection].1.as_ref().expect("the greeting came before");
            match keep(&mut self.store, sender, received, &stamps) {
                Ok(None) => {
                    self.sync_at.get_or_insert(at.now + GATHER);
                    truth.arrived(at, place, &received.bytes);
                }
                Ok(Some(receipt)) => receipts.push(receipt),
                Err(StoreError::Overtaken { .. }) => {
                    self.refused = Some(*connection);
                    self.queue.pop_front();
                    continue;
                }
                Err(StoreError::Full { .. }) => {
                    self.retry_at = at.now + RETRY;
                    self.sync_at.get_or_insert(at.now);
                    break;
                }
                Err(error) => return Err(error.into()),
            }
            if let Some((number, session)) = line
                && *number == *connection
            {
                session.release(received.bytes.len());
            }
            self.queue.pop_front();
        }
        receipts.iter().for_each(|receipt| self.tell(line, receipt));
        Ok(())
    }

    /// Reads what has become durable of a contact.
    fn read(
        &mut self,
        place: usize,
        contact: &StoredContact,
        truth: &mut Truth,
    ) -> Result<(), Died> {
        if !self.readers.contains_key(contact) {
            truth.reading(place, contact);
            let reader = self.store.reader(&contact.space, contact.flow)?;
            let reading = Reading { reader, next: Seq::FIRST, is_over: false };
            self.readers.insert(contact.clone(), reading);
        }
        let Some(reading) = self.readers.get_mut(contact) else { return Ok(()) };
        while let Some(item) = self.store.read(&mut reading.reader)? {
            let LogEntry::Block(record) = item else { panic!("{contact}: {item:?}") };
            assert_eq!(record.seq, reading.next, "{contact} is out of order");
            reading.next = record.seq.next();
            let (_, wire) = Stamps::split(&record.payload).unwrap();
            let (_, payload) = split_taken(wire).unwrap();
            reading.is_over |= truth.read(place, contact, payload);
        }
        Ok(())
    }

    fn tell(&self, line: &mut Line<'_>, receipt: &Receipt) {
        let Some((number, session)) = line else { return };
        let sender = self.senders.get(number).and_then(|(_, sender)| sender.as_ref());
        let is_its = |sender: &SpoolSender| {
            sender.space == receipt.station && self.store.spaces().is_taken_up(sender)
        };
        if sender.is_some_and(is_its) {
            session.control_mut().receipt(receipt.flow, receipt.next);
        }
    }
}

fn spool_config() -> SpoolConfig {
    SpoolConfig {
        segment_size: ByteCount::kib(4),
        max_size: ByteCount::kib(48),
        retention: Duration::from_secs(3),
        reserve: ByteCount::new(300),
    }
}

fn store_config() -> ContactConfig {
    ContactConfig {
        segment_size: ByteCount::kib(4),
        max_size: ByteCount::mib(1),
        reserve: ByteCount::new(300),
        preface: PREFACE,
    }
}

/// When a block was taken out of the spool before, and its payload.
pub fn taken(bytes: &[u8]) -> (Utc, BlockHead) {
    let (taken, payload) = split_taken(bytes).unwrap();
    (taken, BlockHead::decode(payload).unwrap().0)
}
