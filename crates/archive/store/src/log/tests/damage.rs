//! DamagedRange that costs nothing, in blocks as a station gathers them.

use super::*;
use std::sync::LazyLock;

/// A log with blocks as a station gathers them, all durable, and the path of its only segment.
fn of_blocks(disk: &SimDisk, count: u64) -> (Log, String) {
    let mut log = Log::open(Arc::new(disk.clone()), DIR, LogConfig::default()).unwrap();
    for seq in 0..count {
        put(&mut log, 1, seq, block(seq)).unwrap();
        log.sync().unwrap();
    }
    let path = log.segments().path(SegmentNo(1));
    (log, path)
}

/// Made once: the tests compare hundreds of megabytes of them.
fn block(seq: u64) -> &'static [u8] {
    static BLOCKS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
        let of = |seq: u64| (0..100_000).map(|at| (seq.wrapping_mul(at) >> 5) as u8).collect();
        (3..19).map(of).collect()
    });
    &BLOCKS[seq as usize]
}

/// What a reader of the log finds, before and after it was opened again.
fn assert_all_there(disk: &SimDisk, log: &mut Log, count: u64, case: &str) {
    let again = &mut Log::open(Arc::new(disk.clone()), DIR, LogConfig::default()).unwrap();
    for log in [log, again] {
        let mut cursor = log.start();
        let (read, damages) = read_all(log, &mut cursor);
        let found: Vec<u64> = read.iter().map(|record| record.seq.0).collect();
        assert_eq!(found, (0..count).collect::<Vec<_>>(), "{case}: {:?}", log.damages);
        assert!(read.iter().all(|record| record.payload == block(record.seq.0)), "{case}");
        assert_eq!(
            (damages, log.stats().damages, log.stats().torn),
            (0, 0, ByteCount::ZERO),
            "{case}"
        );
    }
}

#[test]
fn a_lost_page_anywhere_in_a_log_costs_nothing_and_is_told() {
    // Behind each record stands a mark.
    let total = nth(1, 100_000).as_u64() + HEADER_LEN as u64;
    let guarded = HEADER_LEN as u64 + 100_000;
    let page = ByteCount::kib(4);
    for from in (0..2 * total).step_by(3_001) {
        for unreadable in [false, true] {
            let disk = SimDisk::new(ByteCount::mib(1));
            let (mut log, path) = of_blocks(&disk, 4);
            if unreadable {
                disk.spoil(&path, ByteCount::new(from), page).unwrap();
            } else {
                wreck(&disk, &path, ByteCount::new(from), page);
            }
            assert_all_there(
                &disk,
                &mut log,
                4,
                &format!("page at {from}, unreadable: {unreadable}"),
            );
            let hits = (0..3)
                .any(|nth| from < nth * total + guarded && from + page.as_u64() > nth * total);
            let Some(damage) = log.damages().last() else {
                assert!(!hits, "nobody was told of the page at {from}");
                continue;
            };
            assert_eq!(damage.fate, DamageFate::Mended);
            assert!(damage.to_string().contains("no data is lost; check the disk"), "{damage}");
        }
    }
}

#[test]
fn damage_that_was_told_once_is_not_told_at_every_reading() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let (mut log, path) = of_blocks(&disk, 3);
    disk.damage(&path, ByteCount::new(50_000)).unwrap();
    for _ in 0..3 {
        let mut cursor = log.start();
        read_all(&mut log, &mut cursor);
    }
    assert_eq!((log.stats().mended, log.damages().count()), (1, 1));
}
