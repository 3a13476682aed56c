use super::*;
use crate::disk::Disk;
use crate::sim::SimDisk;
use skyhaul_units::{Duration, Held};
use std::sync::Arc;

pub(super) const NOW: Utc = Utc::from_micros(1_730_419_200_000_000);

fn config() -> ContactConfig {
    ContactConfig {
        segment_size: ByteCount::new(2_060),
        max_size: ByteCount::new(83_000),
        reserve: ByteCount::new(500),
        preface: 0,
    }
}

pub(super) fn open(disk: &SimDisk) -> ContactStore {
    ContactStore::open(Arc::new(disk.clone()), config()).unwrap()
}

/// Releases the contacts that were finished ten seconds before.
fn free(store: &mut ContactStore, now: Utc) -> ByteCount {
    let due = store.kept().due(Duration::from_secs(10), now);
    store.release(&due).unwrap()
}

fn name(text: &str) -> StationName {
    StationName::new(text).unwrap()
}

fn put(store: &mut ContactStore, flow: u32, seq: u64) -> Result<Appended, StoreError> {
    let station = name("kiruna");
    let payload = [seq as u8; 100];
    store.append(ArrivedRecord {
        station: &station,
        flow: FlowId(flow),
        seq: Seq(seq),
        received: NOW,
        payload: &payload,
    })
}

fn read(store: &mut ContactStore, flow: u32) -> Vec<u64> {
    let mut reader = store.reader(&name("kiruna"), FlowId(flow)).unwrap();
    let mut found = Vec::new();
    while let Some(item) = store.read(&mut reader).unwrap() {
        let LogEntry::Block(record) = item else { panic!("{item:?}") };
        found.push(record.seq.0);
    }
    found
}

#[test]
fn records_are_taken_in_order_and_once() {
    let mut store = open(&SimDisk::new(ByteCount::mib(1)));
    assert_eq!(put(&mut store, 5, 0).unwrap(), Appended::New);
    assert_eq!(put(&mut store, 5, 1).unwrap(), Appended::New);
    assert_eq!(put(&mut store, 5, 0).unwrap(), Appended::Duplicate);
    let error = put(&mut store, 5, 3).unwrap_err();
    assert!(matches!(error, StoreError::Gap { expected: Seq(2), got: Seq(3), .. }), "{error}");
    assert!(matches!(put(&mut store, 6, 1), Err(StoreError::Gap { expected: Seq(0), .. })));
    assert_eq!(store.stats().duplicates, 1);
}

#[test]
fn a_receipt_covers_what_was_there_when_the_sync_began() {
    let mut store = open(&SimDisk::new(ByteCount::mib(1)));
    put(&mut store, 5, 0).unwrap();
    put(&mut store, 9, 0).unwrap();
    let handle = store.sync_handle().unwrap();
    put(&mut store, 5, 1).unwrap();
    assert_eq!(read(&mut store, 5), []);
    let commit = store.synced(handle.sync());
    let receipts: Vec<_> =
        commit.receipts.iter().map(|receipt| (receipt.flow.0, receipt.next.0)).collect();
    assert_eq!(receipts, [(5, 1), (9, 1)]);
    assert_eq!(read(&mut store, 5), [0]);
    assert_eq!(store.sync().receipts.len(), 1);
    assert!(store.sync_handle().is_none());
}

#[test]
fn what_is_durable_is_known_after_a_power_cut_and_goes_on() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut store = open(&disk);
    for seq in 0..20 {
        put(&mut store, 5, seq).unwrap();
    }
    store.sync();
    disk.crash(3);
    let mut store = open(&disk);
    let resume = store.spaces().resume(&name("kiruna"));
    let held = Held { flow: FlowId(5), next: Seq(20), last: mark(&[19; 100]) };
    assert_eq!(resume, ResumeFlow { finished_below: FlowId(0), flows: vec![held] });
    assert_eq!(read(&mut store, 5), (0..20).collect::<Vec<_>>());
    assert_eq!(put(&mut store, 5, 20).unwrap(), Appended::New);
    assert_eq!(store.spaces().resume(&name("elsewhere")), ResumeFlow::default());
}

#[test]
fn a_finished_flow_answers_duplicates_for_ever() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut store = open(&disk);
    for flow in [1, 2, 3, 7] {
        put(&mut store, flow, 0).unwrap();
    }
    let station = name("kiruna");
    for flow in [2, 1, 7] {
        let receipt = store.finish(&station, FlowId(flow), NOW).unwrap();
        assert_eq!(receipt.next, Seq::FINISHED);
    }
    assert!(matches!(store.finish(&station, FlowId(7), NOW), Err(StoreError::NotOpen { .. })));
    assert!(matches!(store.reader(&station, FlowId(7)), Err(StoreError::NotOpen { .. })));
    store.sync();
    free(&mut store, NOW + Duration::from_secs(10));
    disk.crash(5);
    let mut store = open(&disk);
    let resume = store.spaces().resume(&station);
    assert_eq!(resume.finished_below, FlowId(3));
    let flows: Vec<_> = resume.flows.iter().map(|held| (held.flow.0, held.next)).collect();
    assert_eq!(
        flows,
        [(1, Seq::FINISHED), (2, Seq::FINISHED), (3, Seq(1)), (7, Seq::FINISHED)],
        "of each, what its last block was"
    );
    assert!(resume.flows.iter().all(|held| held.last == mark(&[0; 100])));
    assert_eq!(put(&mut store, 7, 12).unwrap(), Appended::Duplicate);
    assert_eq!(store.spaces().status(&station, FlowId(2)), FlowStatus::Finished);
    assert_eq!(store.spaces().open_contacts().map(|(_, flow)| flow.0).collect::<Vec<_>>(), [3]);
}

#[test]
fn what_a_finished_contact_holds_is_durable() {
    for seed in 0..32 {
        let disk = SimDisk::new(ByteCount::mib(1));
        let mut store = open(&disk);
        put(&mut store, 1, 0).unwrap();
        store.finish(&name("kiruna"), FlowId(1), NOW).unwrap();
        disk.crash(seed);
        let segment = disk.list("contacts/kiruna/00000001").unwrap().remove(0);
        assert!(segment.size >= ByteCount::new(144), "seed {seed}: {segment:?}");
    }
}

#[test]
fn data_of_finished_contacts_goes_after_its_retention() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut store = open(&disk);
    for seq in 0..10 {
        put(&mut store, 1, seq).unwrap();
    }
    store.finish(&name("kiruna"), FlowId(1), NOW).unwrap();
    let mut store = open(&disk);
    assert_eq!(free(&mut store, NOW + Duration::from_secs(9)), ByteCount::ZERO);
    assert!(free(&mut store, NOW + Duration::from_secs(10)) > ByteCount::new(1_400));
    assert_eq!((store.size(), store.stats().removed), (ByteCount::ZERO, 1));
    assert_eq!(disk.files().len(), 1, "only the list of finished flows is left");
}

#[test]
fn a_full_store_pushes_back_gives_up_finished_contacts_and_goes_on() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut store = open(&disk);
    for seq in 0..30 {
        put(&mut store, 1, seq).unwrap();
    }
    store.finish(&name("kiruna"), FlowId(1), NOW).unwrap();
    let mut seq = 0;
    let error = loop {
        match put(&mut store, 2, seq) {
            Ok(_) => seq += 1,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, StoreError::Full { .. }) && error.to_string().contains("free space"),
        "{error}"
    );
    assert_eq!((store.stats().removed_early, store.stats().refused), (1, 1));
    assert!(store.size() <= config().max_size && seq > 200);
    store.finish(&name("kiruna"), FlowId(2), NOW).unwrap();
    assert_eq!(put(&mut store, 3, 0).unwrap(), Appended::New);
}

#[test]
fn a_device_full_at_any_byte_refuses_and_goes_on_when_there_is_room() {
    for room in 0..700 {
        let disk = SimDisk::new(ByteCount::mib(1));
        let config = ContactConfig { reserve: ByteCount::ZERO, ..config() };
        let mut store = ContactStore::open(Arc::new(disk.clone()), config).unwrap();
        put(&mut store, 1, 0).unwrap();
        disk.set_capacity(disk.used() + ByteCount::new(room));
        let mut next = 1;
        while put(&mut store, 1, next).is_ok() {
            next += 1;
        }
        let finished = store.finish(&name("kiruna"), FlowId(1), NOW);
        disk.set_capacity(ByteCount::mib(1));
        if finished.is_err() {
            assert_eq!(put(&mut store, 1, next).unwrap(), Appended::New);
            store.finish(&name("kiruna"), FlowId(1), NOW).unwrap();
        }
        disk.crash(room);
        let store = ContactStore::open(Arc::new(disk), config).unwrap();
        assert_eq!(
            store.spaces().status(&name("kiruna"), FlowId(1)),
            FlowStatus::Finished,
            "room for {room}"
        );
    }
}

#[test]
fn a_contact_may_begin_late_where_both_ends_lost_its_beginning() {
    let mut store = open(&SimDisk::new(ByteCount::mib(1)));
    store.begin_at(&name("kiruna"), FlowId(4), Seq(500)).unwrap();
    assert_eq!(put(&mut store, 4, 500).unwrap(), Appended::New);
    store.begin_at(&name("kiruna"), FlowId(4), Seq(900)).unwrap();
    assert_eq!(put(&mut store, 4, 501).unwrap(), Appended::New);
}

#[test]
fn one_contacts_failed_sync_leaves_the_others_going() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut store = open(&disk);
    put(&mut store, 1, 0).unwrap();
    put(&mut store, 2, 0).unwrap();
    disk.fail_after(0);
    let commit = store.sync();
    assert_eq!(commit.failed.iter().map(|(_, flow, _)| flow.0).collect::<Vec<_>>(), [1]);
    assert_eq!(commit.receipts.iter().map(|receipt| receipt.flow.0).collect::<Vec<_>>(), [2]);
    assert!(put(&mut store, 1, 1).is_err());
    assert_eq!(put(&mut store, 2, 1).unwrap(), Appended::New);
}

#[test]
fn open_contacts_are_bounded() {
    let disk = SimDisk::new(ByteCount::mib(8));
    let config = ContactConfig { max_size: ByteCount::mib(8), ..config() };
    let mut store = ContactStore::open(Arc::new(disk), config).unwrap();
    for flow in 0..u32::try_from(MAX_OPEN_CONTACTS).unwrap() {
        put(&mut store, flow, 0).unwrap();
    }
    assert!(matches!(put(&mut store, 5_000, 0), Err(StoreError::TooManyContacts)));
}

#[test]
fn a_finished_contact_is_read_again_and_held_against_retention_and_need() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut store = open(&disk);
    let station = name("kiruna");
    for flow in [1, 2] {
        for seq in 0..20 {
            put(&mut store, flow, seq).unwrap();
        }
        store.sync();
        store.finish(&station, FlowId(flow), NOW).unwrap();
    }
    store.hold([(station.clone(), FlowId(1))]);
    free(&mut store, NOW + Duration::from_secs(100));
    let kept: Vec<_> = store.kept().iter().map(|(_, flow, at)| (flow.0, at)).collect();
    assert_eq!(kept, [(1, NOW)], "the other one went");
    let mut reader = store.kept().reader(&station, FlowId(1)).unwrap();
    let mut found = Vec::new();
    while let Some(item) = reader.read().unwrap() {
        let LogEntry::Block(record) = item else { panic!("{item:?}") };
        found.push(record.seq.0);
    }
    assert_eq!(found, (0..20).collect::<Vec<_>>());
    assert!(matches!(store.kept().reader(&station, FlowId(2)), Err(StoreError::NotOpen { .. })));
    let mut store = open(&disk);
    assert!(store.kept().contains(&station, FlowId(1)), "reading changes nothing");
    free(&mut store, NOW + Duration::from_secs(100));
    assert!(!store.kept().contains(&station, FlowId(1)), "held by nobody after a restart");
}

#[test]
fn a_store_that_is_full_of_held_contacts_takes_no_more() {
    let mut store = open(&SimDisk::new(ByteCount::mib(1)));
    let station = name("kiruna");
    let mut flow = 0;
    while store.size() < ByteCount::new(20_000) {
        for seq in 0..20 {
            put(&mut store, flow, seq).unwrap();
        }
        store.finish(&station, FlowId(flow), NOW).unwrap();
        flow += 1;
    }
    let held: Vec<_> =
        store.kept().iter().map(|(station, flow, _)| (station.clone(), flow)).collect();
    store.hold(held.clone());
    let full = (0..400).map(|seq| put(&mut store, 900, seq)).find_map(Result::err);
    assert!(matches!(full, Some(StoreError::Full { .. })), "{full:?}");
    assert_eq!(store.kept().iter().count(), held.len());
}

/// Regression: a contact larger than the store waited for ever for room that nothing could make.
#[test]
fn a_store_that_open_contacts_fill_says_so_and_goes_on_once_it_may_be_larger() {
    let mut store = open(&SimDisk::new(ByteCount::mib(1)));
    for seq in 0..20 {
        put(&mut store, 1, seq).unwrap();
    }
    store.finish(&name("kiruna"), FlowId(1), NOW).unwrap();
    let needed = ByteCount::kib(4);
    assert_eq!(StoreJam::of(&store, needed), None, "what is finished may go");
    let mut seq = 0;
    let full = loop {
        match put(&mut store, 2, seq) {
            Ok(_) => seq += 1,
            Err(error) => break error,
        }
    };
    let StoreError::Full { needed, .. } = full else { panic!("{full}") };
    assert!(!store.kept().contains(&name("kiruna"), FlowId(1)), "it had to go");
    let jam = StoreJam::of(&store, needed).unwrap();
    assert_eq!((jam.contacts, jam.max_size), (1, config().max_size));
    let told = jam.to_string();
    assert!(told.contains("contacts that have not ended") && told.contains("raise max_size"));
    store.set_max_size(ByteCount::kib(200));
    assert_eq!(StoreJam::of(&store, needed), None);
    put(&mut store, 2, seq).unwrap();
}
