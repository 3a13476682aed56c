//! A store and a spool on simulated disks, without lines: what is passed on, from where it goes on
//! after a restart, what stands for what the store lost.

use super::*;
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_records::payload::{BlockContent, TAKEN, with_taken};
use skyhaul_records::{Close, Record, RecordWriter};
use skyhaul_store::sim::SimDisk;
use skyhaul_store::{ArrivedRecord, ContactConfig, SpoolConfig, SpoolDraw, SpoolItem};
use skyhaul_units::{ByteCount, Utc};

const NOW: Utc = Utc::from_micros(1_790_000_000_000_000);
const FLOW: FlowId = FlowId(7);

struct Bench {
    disk: SimDisk,
    store: ContactStore,
    spool: Spool,
    relay: Relay,
}

impl Bench {
    fn new() -> Self {
        Self::on(SimDisk::new(ByteCount::mib(64)))
    }

    fn on(disk: SimDisk) -> Self {
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let contacts = ContactConfig { preface: super::super::PREFACE, ..ContactConfig::default() };
        let contacts = ContactConfig { reserve: ByteCount::ZERO, ..contacts };
        let store = ContactStore::open(shared.clone(), contacts).unwrap();
        let config = SpoolConfig {
            segment_size: ByteCount::mib(1),
            max_size: ByteCount::mib(8),
            reserve: ByteCount::ZERO,
            ..SpoolConfig::default()
        };
        let spool = Spool::open(shared.clone(), config, NOW, SpoolDraw([7; 24])).unwrap();
        let mut relay = Relay::open(shared, "relay").unwrap();
        relay.resume(&store, &spool).unwrap();
        Self { disk, store, spool, relay }
    }

    /// The power fails; what was synced is there.
    fn restart(self) -> Self {
        self.disk.crash(1);
        Self::on(self.disk)
    }

    fn contact() -> StoredContact {
        StoredContact { space: StationName::new("station").unwrap(), flow: FLOW }
    }

    /// A block arrives, and is durable.
    fn arrive(&mut self, seq: u64, payload: &[u8]) {
        let at = Stamps { sent: NOW, last_original: NOW, complete: NOW, delivered: NOW };
        let payload = at.before(&with_taken(NOW, payload));
        let station = Self::contact().space;
        let record = ArrivedRecord {
            station: &station,
            flow: FLOW,
            seq: Seq(seq),
            received: NOW,
            payload: &payload,
        };
        self.store.append(record).unwrap();
        assert!(self.store.sync().failed.is_empty());
    }

    /// Does what is to be done, and returns the tasks.
    fn pass_on(&mut self) -> Vec<RelayTask> {
        let contact = Self::contact();
        let mut done = Vec::new();
        loop {
            let task = self.relay.next(&mut self.store, &contact).unwrap();
            match &task {
                RelayTask::Wait | RelayTask::Settled | RelayTask::Refuse(_) => {
                    done.push(task);
                    return done;
                }
                RelayTask::Route(_) => {
                    let flow = self.spool.open_flow(NOW).unwrap();
                    self.relay.begin(&contact, flow).unwrap();
                }
                RelayTask::Append { flow, payload } => {
                    self.spool.append(*flow, payload, NOW).unwrap();
                    self.spool.sync_handle().map(|handle| self.spool.synced(handle.sync()));
                }
                RelayTask::Close(flow) => {
                    self.spool.close_flow(*flow).unwrap();
                    self.relay.closed(&contact);
                }
            }
            done.push(task);
        }
    }

    /// The blocks of the spool.
    fn passed_on(&mut self) -> Vec<Vec<u8>> {
        let queue = self.spool.queue_mut();
        let mut reader = queue.reader_from_custody(skyhaul_store::DestinationId::FIRST);
        let mut found = Vec::new();
        while let Some(item) = queue.read_flows(&mut reader, |_| true).unwrap() {
            let SpoolItem::Block(record) = item else { panic!("{item:?}") };
            found.push(record.payload);
        }
        found
    }
}

fn block(number: u64, hops: &[&str], is_last: bool) -> Vec<u8> {
    let mut records = Vec::new();
    if is_last {
        let close = Close {
            closed: NOW,
            last_bit: NOW,
            set_aside: 0,
            corrected_symbols: 0,
            frames: Vec::new(),
        };
        RecordWriter::new().write(&Record::Close(close), &mut records);
    }
    let head = BlockHead {
        closed: NOW,
        position: BitPosition::from_bits(number),
        set_aside: 0,
        corrected_symbols: 0,
        channel: "x".to_owned(),
        mission: "aqua".to_owned(),
        frames: Vec::new(),
        hops: hops.iter().map(|node| Hop { node: (*node).to_owned(), flow: FlowId(1) }).collect(),
    };
    let mut payload = Vec::new();
    head.encode(BlockContent::Records(&records), &mut payload);
    payload
}

fn one_hop_more(payload: &[u8]) -> Vec<u8> {
    BlockHead::passed_on(payload, Hop { node: "station".to_owned(), flow: FLOW }).unwrap()
}

#[test]
fn each_block_goes_on_once_with_its_hop_and_after_a_restart_from_where_it_was() {
    let mut bench = Bench::new();
    let blocks = [0, 1, 2].map(|number| block(number, &[], number == 2));
    bench.arrive(0, &blocks[0]);
    let label = ContactLabel {
        station: "station".to_owned(),
        channel: "x".to_owned(),
        mission: "aqua".to_owned(),
    };
    let done = bench.pass_on();
    assert_eq!((&done[0], done.last()), (&RelayTask::Route(label), Some(&RelayTask::Wait)));
    bench.arrive(1, &blocks[1]);
    let mut bench = bench.restart();
    assert_eq!(bench.relay.flows().count(), 1);
    assert!(matches!(bench.pass_on()[..], [RelayTask::Append { .. }, RelayTask::Wait]));
    bench.arrive(2, &blocks[2]);
    let mut bench = bench.restart();
    assert!(matches!(
        bench.pass_on()[..],
        [RelayTask::Append { .. }, RelayTask::Close(_), RelayTask::Settled]
    ));
    assert_eq!(bench.passed_on(), blocks.each_ref().map(|block| one_hop_more(block)));
    assert_eq!(bench.relay.fate(&Bench::contact()), Some(RelayFate::Passed));
    // It is closed, and known so as long as the store has it open.
    let mut bench = bench.restart();
    assert_eq!(bench.pass_on(), [RelayTask::Settled]);
    bench.store.finish(&Bench::contact().space, FLOW, NOW).unwrap();
    let open = StoredContact::open_in(&bench.store);
    bench.relay.keep_only(&open).unwrap();
    assert_eq!(bench.restart().relay.flows().count(), 0);
}

#[test]
fn a_block_that_a_disk_before_lost_goes_on_as_lost_and_the_next_one_says_whose_it_is() {
    let mut bench = Bench::new();
    bench.arrive(0, LOST);
    assert_eq!(bench.pass_on(), [RelayTask::Wait]);
    let second = block(1, &[], true);
    bench.arrive(1, &second);
    assert!(matches!(bench.pass_on().last(), Some(RelayTask::Settled)));
    assert_eq!(bench.passed_on(), [one_hop_more(LOST), one_hop_more(&second)]);
}

#[test]
fn what_the_store_cannot_read_back_goes_on_as_lost_in_its_place() {
    let mut bench = Bench::new();
    let blocks = [0, 1, 2].map(|number| block(number, &[], number == 2));
    for (seq, block) in (0..).zip(&blocks) {
        bench.arrive(seq, block);
    }
    bench.pass_on();
    // As if the first two were gone: the third one comes, and nothing before it.
    let contact = Bench::contact();
    let source = Source::of(&bench.store, &contact).unwrap();
    let mut reader = Source::of(&bench.store, &contact).unwrap().reader;
    let mut last = None;
    while let Some(LogEntry::Block(record)) = bench.store.read(&mut reader).unwrap() {
        last = Some(record);
    }
    let mut tasks = Going::new(source, FlowId(1), Seq::FIRST);
    tasks.held = last;
    let mut given = Vec::new();
    while let RelayTask::Append { payload, .. } = tasks.next(&mut bench.store).unwrap() {
        given.push(payload);
    }
    assert_eq!(given, [one_hop_more(LOST), one_hop_more(LOST), one_hop_more(&blocks[2])]);
}

#[test]
fn a_contact_in_a_ring_and_one_from_too_far_away_are_not_passed_on() {
    let mut bench = Bench::new();
    bench.arrive(0, &block(0, &["far", "relay"], false));
    assert_eq!(bench.pass_on(), [RelayTask::Settled]);
    assert_eq!(bench.relay.fate(&Bench::contact()), Some(RelayFate::Left));
    let mut bench = Bench::new();
    bench.arrive(0, &block(0, &["far"; HOPS_MAX], false));
    assert_eq!(bench.pass_on(), [RelayTask::Refuse(HopsError::TooMany(HOPS_MAX + 1))]);
    assert!(bench.passed_on().is_empty());
}

#[test]
fn bytes_that_are_no_block_are_passed_on_as_lost() {
    assert_eq!(passed_on(b"", &Hop { node: "station".to_owned(), flow: FLOW }), one_hop_more(LOST));
    assert_eq!(TAKEN, with_taken(NOW, b"").len());
}
