//! A station's spool and a centre's contact store, with power cuts, kills, full disks and faults at
//! both ends in any order: everything that was promised arrives, once and in order.

#![allow(clippy::unwrap_used, reason = "a test stops at whatever it does not expect")]

use crate::rung::is_all;
use proptest::prelude::*;
use skyhaul_store::sim::SimDisk;
use skyhaul_store::{
    Appended, ArrivedRecord, ContactConfig, ContactStore, DestinationId, FlowId, FlowStatus, Held,
    LogEntry, Seq, Spool, SpoolConfig, SpoolDraw, SpoolError, SpoolItem, SpoolReader, StationName,
    StoreError,
};
use skyhaul_units::{ByteCount, Duration, Utc};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Clone)]
enum Op {
    OpenFlow,
    Append { pick: usize, len: usize },
    SyncStation,
    CloseFlow { pick: usize },
    Free,
    Transfer { count: usize },
    SyncCentre,
    Finish { pick: usize },
    Wait { seconds: u64 },
    CrashStation(u64),
    CrashCentre(u64),
    KillStation,
    KillCentre,
    Reconnect,
    StationCapacity(u64),
    CentreCapacity(u64),
    StationFault(u64),
    CentreFault(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => Just(Op::OpenFlow),
        14 => (0usize..8, 0usize..200).prop_map(|(pick, len)| Op::Append { pick, len }),
        6 => Just(Op::SyncStation),
        2 => (0usize..8).prop_map(|pick| Op::CloseFlow { pick }),
        3 => Just(Op::Free),
        8 => (1usize..12).prop_map(|count| Op::Transfer { count }),
        5 => Just(Op::SyncCentre),
        2 => (0usize..8).prop_map(|pick| Op::Finish { pick }),
        2 => (0u64..30).prop_map(|seconds| Op::Wait { seconds }),
        2 => any::<u64>().prop_map(Op::CrashStation),
        2 => any::<u64>().prop_map(Op::CrashCentre),
        1 => Just(Op::KillStation),
        1 => Just(Op::KillCentre),
        1 => Just(Op::Reconnect),
        1 => (0u64..16_000).prop_map(Op::StationCapacity),
        1 => (0u64..16_000).prop_map(Op::CentreCapacity),
        1 => (0u64..12).prop_map(Op::StationFault),
        1 => (0u64..12).prop_map(Op::CentreFault),
    ]
}

/// What the test knows of a flow.
#[derive(Debug, Default)]
struct Flow {
    appended: Vec<Vec<u8>>,
    /// So many of them were synced.
    durable: usize,
    closed: bool,
    /// What the contact held when it was finished.
    processed: Option<Vec<Vec<u8>>>,
}

struct World {
    station_disk: SimDisk,
    centre_disk: SimDisk,
    spool: Spool,
    centre: ContactStore,
    reader: SpoolReader,
    /// Read from the spool and not taken by the centre yet, as a window of the transport.
    held: Option<SpoolItem>,
    flows: BTreeMap<FlowId, Flow>,
    name: StationName,
    now: Utc,
    counter: u8,
}

const ROOMY: ByteCount = ByteCount::mib(4);

fn spool_config() -> SpoolConfig {
    SpoolConfig {
        segment_size: ByteCount::new(1_850),
        max_size: ByteCount::new(12_300),
        retention: Duration::from_secs(10),
        reserve: ByteCount::new(300),
    }
}

fn contact_config() -> ContactConfig {
    ContactConfig {
        segment_size: ByteCount::new(1_850),
        max_size: ByteCount::mib(1),
        reserve: ByteCount::new(300),
        preface: 0,
    }
}

fn open_spool(disk: &SimDisk, now: Utc) -> Spool {
    Spool::open(Arc::new(disk.clone()), spool_config(), now, SpoolDraw([7; 24])).unwrap()
}

fn open_centre(disk: &SimDisk) -> ContactStore {
    ContactStore::open(Arc::new(disk.clone()), contact_config()).unwrap()
}

impl World {
    fn new() -> Self {
        let now = Utc::from_micros(1_730_419_200_000_000);
        let (station_disk, centre_disk) = (SimDisk::new(ROOMY), SimDisk::new(ROOMY));
        let spool = open_spool(&station_disk, now);
        let reader = spool.queue().reader_from_custody(DestinationId::FIRST);
        let centre = open_centre(&centre_disk);
        let name = StationName::new("svalbard").unwrap();
        let flows = BTreeMap::new();
        Self {
            station_disk,
            centre_disk,
            spool,
            centre,
            reader,
            held: None,
            flows,
            name,
            now,
            counter: 0,
        }
    }

    fn pick(&self, pick: usize) -> Option<FlowId> {
        let open: Vec<FlowId> =
            self.spool.queue().open_flows().iter().map(|open| open.flow).collect();
        (!open.is_empty()).then(|| open[pick % open.len()])
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::OpenFlow => {
                if let Ok(flow) = self.spool.open_flow(self.now) {
                    assert!(
                        self.flows.insert(flow, Flow::default()).is_none(),
                        "a flow number was used twice"
                    );
                }
            }
            Op::Append { pick, len } => self.append(pick, len),
            Op::SyncStation => self.sync_station(),
            Op::CloseFlow { pick } => {
                if let Some(flow) = self.pick(pick)
                    && self.spool.close_flow(flow).is_ok()
                {
                    self.all_durable();
                    self.flows.get_mut(&flow).unwrap().closed = true;
                }
            }
            Op::Free => drop(self.spool.free(self.now)),
            Op::Transfer { count } => self.transfer(count),
            Op::SyncCentre => self.sync_centre(),
            Op::Finish { pick } => self.finish(pick),
            Op::Wait { seconds } => {
                self.now = self.now + Duration::from_secs(seconds);
                let due = self.centre.kept().due(Duration::from_secs(10), self.now);
                let _ = self.centre.release(&due);
            }
            Op::CrashStation(seed) => {
                self.station_disk.crash(seed);
                self.restart_station();
            }
            Op::CrashCentre(seed) => {
                self.centre_disk.crash(seed);
                self.restart_centre();
            }
            Op::KillStation => {
                self.station_disk.kill();
                self.restart_station();
            }
            Op::KillCentre => {
                self.centre_disk.kill();
                self.restart_centre();
            }
            Op::Reconnect => self.reconnect(),
            Op::StationCapacity(bytes) => self.station_disk.set_capacity(ByteCount::new(bytes)),
            Op::CentreCapacity(bytes) => self.centre_disk.set_capacity(ByteCount::new(bytes)),
            Op::StationFault(after) => self.station_disk.fail_after(after),
            Op::CentreFault(after) => self.centre_disk.fail_after(after),
        }
    }

    fn append(&mut self, pick: usize, len: usize) {
        let Some(flow) = self.pick(pick) else {
            return;
        };
        self.counter = self.counter.wrapping_add(1);
        let payload: Vec<u8> =
            (0..len).map(|at| self.counter ^ (at as u8)).chain([self.counter]).collect();
        match self.spool.append(flow, &payload, self.now) {
            Ok(seq) => {
                let known = self.flows.get_mut(&flow).unwrap();
                assert_eq!(seq.0, known.appended.len() as u64);
                known.appended.push(payload);
            }
            Err(SpoolError::Full { .. } | SpoolError::Log(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn all_durable(&mut self) {
        self.flows.values_mut().for_each(|flow| flow.durable = flow.appended.len());
    }

    fn sync_station(&mut self) {
        if self.spool.sync().is_ok() {
            self.all_durable();
        }
    }

    /// Hands records over until the centre pushes back.
    fn transfer(&mut self, count: usize) {
        for _ in 0..count {
            let next = match self.held.take() {
                Some(held) => Some(held),
                None => self.spool.queue_mut().read(&mut self.reader).unwrap(),
            };
            match next {
                None => return,
                Some(SpoolItem::Missing { flow, first, last }) => {
                    panic!("{flow}: {first} to {last} are missing")
                }
                Some(SpoolItem::Block(record)) => {
                    let arrival = ArrivedRecord {
                        station: &self.name,
                        flow: record.flow,
                        seq: record.seq,
                        received: self.now,
                        payload: &record.payload,
                    };
                    match self.centre.append(arrival) {
                        Ok(Appended::New | Appended::Duplicate) => {}
                        Err(
                            StoreError::Full { .. } | StoreError::Log(_) | StoreError::State { .. },
                        ) => {
                            self.held = Some(SpoolItem::Block(record));
                            return;
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }
    }

    fn sync_centre(&mut self) {
        for receipt in self.centre.sync().receipts {
            self.spool.custody(DestinationId::FIRST, receipt.flow, receipt.next);
        }
    }

    /// Level-0 has processed a contact that the station has closed.
    fn finish(&mut self, pick: usize) {
        let open: Vec<FlowId> =
            self.centre.spaces().open_contacts().map(|(_, flow)| flow).collect();
        let Some(flow) = open.get(pick % open.len().max(1)).copied() else {
            return;
        };
        let known = &self.flows[&flow];
        let complete = self.centre.spaces().status(&self.name, flow);
        let all = Seq(known.appended.len() as u64);
        if !known.closed || complete != (FlowStatus::Open { next: all, durable: all }) {
            return;
        }
        let content = self.content(flow);
        if let Ok(receipt) = self.centre.finish(&self.name.clone(), flow, self.now) {
            self.spool.custody(DestinationId::FIRST, receipt.flow, receipt.next);
            self.flows.get_mut(&flow).unwrap().processed = Some(content);
        }
    }

    fn content(&mut self, flow: FlowId) -> Vec<Vec<u8>> {
        let mut reader = self.centre.reader(&self.name, flow).unwrap();
        let mut content = Vec::new();
        while let Some(item) = self.centre.read(&mut reader).unwrap() {
            let LogEntry::Block(record) = item else { panic!("{item:?}") };
            assert_eq!((record.flow, record.seq.0), (flow, content.len() as u64));
            content.push(record.payload);
        }
        content
    }

    fn restart_station(&mut self) {
        self.spool = open_spool(&self.station_disk, self.now);
        let open: BTreeMap<FlowId, Seq> =
            self.spool.queue().open_flows().iter().map(|open| (open.flow, open.next)).collect();
        // An opening that failed half-way may show after a restart.
        for flow in open.keys() {
            self.flows.entry(*flow).or_default();
        }
        for (flow, known) in &mut self.flows {
            match open.get(flow) {
                Some(next) => {
                    let kept = next.0 as usize;
                    assert!(
                        kept >= known.durable && kept <= known.appended.len(),
                        "{kept} of {known:?}"
                    );
                    known.appended.truncate(kept);
                    known.durable = kept;
                    known.closed = false;
                    let last = self.spool.queue_mut().last_record(*flow).unwrap();
                    assert_eq!(last.map(|record| record.payload), known.appended.last().cloned());
                }
                // Closed for good although the call may have failed half-way: nothing can be
                // missing then.
                None => {
                    assert_eq!(known.durable, known.appended.len());
                    known.closed = true;
                }
            }
        }
        self.reconnect();
    }

    fn restart_centre(&mut self) {
        self.centre = open_centre(&self.centre_disk);
        for (flow, known) in &mut self.flows {
            // A finish that failed half-way may show after a restart.
            if self.centre.spaces().status(&self.name, *flow) == FlowStatus::Finished
                && known.processed.is_none()
            {
                known.processed = Some(known.appended.clone());
            }
            assert!(
                known.processed.is_none()
                    || self.centre.spaces().status(&self.name, *flow) == FlowStatus::Finished
            );
        }
        self.reconnect();
    }

    fn reconnect(&mut self) {
        for Held { flow, next, .. } in self.centre.spaces().resume(&self.name).flows {
            self.spool.custody(DestinationId::FIRST, flow, next);
        }
        self.held = None;
        self.reader = self.spool.queue().reader_from_custody(DestinationId::FIRST);
        assert_eq!(self.spool.stats().custody_ahead, 0);
    }

    /// Gives room, restarts both ends, and lets everything run to its end.
    fn settle(&mut self) {
        self.station_disk.set_capacity(ROOMY);
        self.centre_disk.set_capacity(ROOMY);
        self.station_disk.kill();
        self.restart_station();
        self.centre_disk.kill();
        self.restart_centre();
        self.sync_station();
        self.transfer(usize::MAX);
        self.sync_centre();
        assert_eq!(self.spool.queue().depth(self.now).blocks, 0);
        let flows: Vec<FlowId> = self.flows.keys().copied().collect();
        for flow in flows {
            let content = match self.centre.spaces().status(&self.name, flow) {
                FlowStatus::Unknown => Vec::new(),
                FlowStatus::Open { .. } => self.content(flow),
                FlowStatus::Finished => self.flows[&flow].processed.clone().unwrap(),
            };
            assert_eq!(content, self.flows[&flow].appended);
        }
        self.everything_can_be_freed();
    }

    fn everything_can_be_freed(&mut self) {
        for open in self.spool.queue().open_flows() {
            self.spool.close_flow(open.flow).unwrap();
        }
        self.now = self.now + Duration::from_secs(60);
        let flow = self.spool.open_flow(self.now).unwrap();
        self.flows.insert(flow, Flow::default());
        for _ in 0..8 {
            self.spool.append(flow, &[0; 300], self.now).unwrap();
        }
        self.spool.free(self.now).unwrap();
        assert!(
            self.spool.queue().size() < ByteCount::new(8_200),
            "{:?}",
            self.spool.queue().size()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if is_all() { 8_000 } else { 2_000 }))]

    #[test]
    fn everything_promised_arrives_once_and_in_order(ops in prop::collection::vec(op(), 1..90)) {
        let mut world = World::new();
        world.run(Op::OpenFlow);
        for op in ops {
            world.run(op);
        }
        world.settle();
    }
}

#[test]
fn no_receipt_is_given_for_a_folder_that_is_gone() {
    let disk = SimDisk::new(ROOMY);
    let (station, flow) = (StationName::new("svalbard").unwrap(), FlowId(7));
    let mut centre = open_centre(&disk);
    let received = Utc::from_micros(1_730_419_200_000_000);
    let arrive = |centre: &mut ContactStore, seq| {
        centre.append(ArrivedRecord {
            station: &station,
            flow,
            seq: Seq(seq),
            received,
            payload: &[1; 100],
        })
    };
    arrive(&mut centre, 0).unwrap();
    assert_eq!(centre.sync().receipts.len(), 1);
    centre.in_place().unwrap();
    let remade = disk.remove_all();
    arrive(&mut centre, 1).unwrap();
    let commit = centre.sync();
    assert!(commit.receipts.is_empty() && commit.failed.len() == 1, "{commit:?}");
    let reason = commit.failed[0].2.to_string();
    assert!(reason.contains("removed, moved or unmounted"), "{reason}");
    assert_eq!(centre.in_place().unwrap_err().kind(), std::io::ErrorKind::NotFound);
    assert!(centre.finish(&station, flow, received).is_err());
    // A folder of the same name is another one.
    let mut other = open_centre(&remade);
    other.in_place().unwrap();
    arrive(&mut other, 0).unwrap();
    assert_eq!(other.sync().receipts.len(), 1);
    assert!(centre.in_place().is_err());
}

#[test]
fn a_spool_whose_folder_is_gone_promises_nothing() {
    let disk = SimDisk::new(ROOMY);
    let now = Utc::from_micros(1_730_419_200_000_000);
    let mut spool = open_spool(&disk, now);
    let flow = spool.open_flow(now).unwrap();
    spool.append(flow, &[1; 100], now).unwrap();
    let handle = spool.sync_handle().unwrap();
    let _remade = disk.remove_all();
    assert!(matches!(spool.synced(handle.sync()), Err(SpoolError::Log(_))));
    assert!(spool.in_place().is_err());
    assert!(matches!(spool.open_flow(now), Err(SpoolError::State { .. })));
    let mut reader = spool.queue().reader_from_custody(DestinationId::FIRST);
    assert_eq!(spool.queue_mut().read(&mut reader).unwrap(), None);
}
