//! The same code on the operating system's files.

use skyhaul_store::{
    Appended, ArrivedRecord, ContactConfig, ContactStore, DestinationId, Disk, FlowId, FlowStatus,
    Publisher, RealDisk, Seq, Spool, SpoolConfig, SpoolDraw, SpoolItem, StationName,
};
use skyhaul_units::{ByteCount, Duration, Utc};
use std::io::Write;
use std::sync::Arc;

const NOW: Utc = Utc::from_micros(1_730_419_200_000_000);

#[test]
fn a_spool_on_files_survives_being_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let config = SpoolConfig {
        segment_size: ByteCount::kib(64),
        max_size: ByteCount::mib(4),
        retention: Duration::ZERO,
        reserve: ByteCount::ZERO,
    };
    let flow = {
        let disk = Arc::new(RealDisk::open(dir.path()).unwrap());
        let mut spool = Spool::open(disk, config, NOW, SpoolDraw([7; 24])).unwrap();
        let flow = spool.open_flow(NOW).unwrap();
        for n in 0..100u8 {
            spool.append(flow, &vec![n; 5_000], NOW).unwrap();
        }
        let handle = spool.sync_handle().unwrap();
        let synced = std::thread::scope(|scope| scope.spawn(|| handle.sync()).join().unwrap());
        spool.synced(synced).unwrap();
        flow
    };
    // A torn end, as a power cut leaves it.
    let mut segments: Vec<_> =
        std::fs::read_dir(dir.path().join("spool")).unwrap().map(|e| e.unwrap().path()).collect();
    segments.retain(|path| path.extension().is_some_and(|extension| extension == "seg"));
    segments.sort();
    let mut last = std::fs::OpenOptions::new().append(true).open(segments.last().unwrap()).unwrap();
    last.write_all(&[0; 777]).unwrap();
    let disk = Arc::new(RealDisk::open(dir.path()).unwrap());
    let mut spool = Spool::open(disk, config, NOW, SpoolDraw([7; 24])).unwrap();
    assert_eq!(spool.stats().log.torn, ByteCount::new(777));
    let mut reader = spool.queue().reader_from_custody(DestinationId::FIRST);
    for n in 0..100u8 {
        let Some(SpoolItem::Block(record)) = spool.queue_mut().read(&mut reader).unwrap() else {
            panic!("record {n}")
        };
        assert_eq!((record.flow, record.payload), (flow, vec![n; 5_000]));
    }
    assert_eq!(spool.queue_mut().read(&mut reader).unwrap(), None);
    let before = spool.queue().size();
    spool.custody(DestinationId::FIRST, flow, Seq(100));
    let freed = spool.free(NOW).unwrap();
    assert!(freed > ByteCount::kib(400) && spool.queue().size() == before - freed);
}

#[test]
fn a_contact_store_and_its_products_on_files() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(RealDisk::open(dir.path()).unwrap());
    let config = ContactConfig { reserve: ByteCount::ZERO, ..ContactConfig::default() };
    let mut store = ContactStore::open(disk.clone(), config).unwrap();
    let station = StationName::new("kiruna").unwrap();
    let arrival = ArrivedRecord {
        station: &station,
        flow: FlowId(1),
        seq: Seq(0),
        received: NOW,
        payload: b"frames",
    };
    assert_eq!(store.append(arrival).unwrap(), Appended::New);
    assert_eq!(store.sync().receipts.len(), 1);
    let publisher = Publisher::open(disk.clone(), "products").unwrap();
    let mut product = publisher.begin("a.PDS").unwrap();
    product.write_all(b"packets").unwrap();
    let path = publisher.publish(product).unwrap();
    assert_eq!(std::fs::read(disk.locate(&path)).unwrap(), b"packets");
    store.finish(&station, FlowId(1), NOW).unwrap();
    store.release(&[(station.clone(), FlowId(1))]).unwrap();
    drop(store);
    let store = ContactStore::open(disk.clone(), config).unwrap();
    assert_eq!(store.spaces().status(&station, FlowId(1)), FlowStatus::Finished);
    assert!(disk.list("contacts/kiruna/00000001").unwrap().is_empty());
    assert!(disk.free_space().unwrap() > ByteCount::ZERO);
}

#[test]
fn a_directory_is_held_by_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let held = RealDisk::open(dir.path()).unwrap();
    let error = RealDisk::open(dir.path()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ResourceBusy);
    assert!(error.to_string().contains("in use by another process"), "{error}");
    drop(held);
    assert!(RealDisk::open(dir.path()).is_ok());
}

#[test]
fn a_place_that_cannot_be_a_directory_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = RealDisk::open(&file.path().join("sub")).unwrap_err();
    assert!(error.to_string().contains(&file.path().display().to_string()), "{error}");
}

#[test]
fn nothing_is_durable_in_a_folder_that_was_moved_replaced_or_removed() {
    let home = tempfile::tempdir().unwrap();
    let state = home.path().join("state");
    type Away = fn(&std::path::Path);
    let ways: [Away; 3] = [
        |state| std::fs::rename(state, state.with_extension("moved")).unwrap(),
        |state| {
            std::fs::rename(state, state.with_extension("older")).unwrap();
            std::fs::create_dir_all(state.join("spool")).unwrap();
        },
        |state| std::fs::remove_dir_all(state).unwrap(),
    ];
    for away in ways {
        let disk = RealDisk::open(&state).unwrap();
        disk.make_dir("spool").unwrap();
        let file = disk.create("spool/a").unwrap();
        file.append(b"bytes").unwrap();
        file.sync().unwrap();
        disk.sync_dir("spool").unwrap();
        away(&state);
        file.append(b"more").unwrap();
        let refused =
            [file.sync(), disk.sync_dir("spool"), disk.in_place()].map(Result::unwrap_err);
        for error in &refused {
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
        }
        assert!(refused[0].to_string().contains("removed, moved or unmounted"), "{}", refused[0]);
        let _ = std::fs::remove_dir_all(&state);
    }
}

#[test]
fn a_sync_of_a_segment_that_was_sealed_and_removed_meanwhile_is_well() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(RealDisk::open(dir.path()).unwrap());
    let config = SpoolConfig {
        segment_size: ByteCount::kib(8),
        max_size: ByteCount::kib(64),
        retention: Duration::ZERO,
        reserve: ByteCount::ZERO,
    };
    let mut spool = Spool::open(disk, config, NOW, SpoolDraw([7; 24])).unwrap();
    let flow = spool.open_flow(NOW).unwrap();
    spool.append(flow, &[1; 5_000], NOW).unwrap();
    let handle = spool.sync_handle().unwrap();
    spool.append(flow, &[2; 5_000], NOW).unwrap();
    spool.custody(DestinationId::FIRST, flow, Seq(1));
    assert!(spool.free(NOW).unwrap() > ByteCount::ZERO);
    spool.synced(handle.sync()).unwrap();
}
