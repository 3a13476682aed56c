use super::checksum::HEADER_LEN;
use super::*;
use crate::disk::Disk;
use crate::sim::SimDisk;
use proptest::prelude::*;
use std::sync::Arc;

mod damage;

const DIR: &str = "log";

fn small() -> LogConfig {
    LogConfig { segment_size: ByteCount::new(1_400) }
}

fn open(disk: &SimDisk) -> Log {
    Log::open(Arc::new(disk.clone()), DIR, small()).unwrap()
}

fn put(log: &mut Log, flow: u32, seq: u64, payload: &[u8]) -> Result<Position, LogError> {
    log.append(NewRecord {
        flow: FlowId(flow),
        seq: Seq(seq),
        written: Utc::from_micros(seq.cast_signed()),
        payload,
    })
}

fn read_all(log: &mut Log, cursor: &mut LogCursor) -> (Vec<LogRecord>, u64) {
    let (mut records, mut damages) = (Vec::new(), 0);
    while let Some(item) = log.read(cursor).unwrap() {
        match item {
            LogEntry::Block(record) => records.push(record),
            LogEntry::Damaged(_) => damages += 1,
            LogEntry::SegmentEnd(_) => {}
        }
    }
    (records, damages)
}

fn seqs(log: &mut Log) -> Vec<u64> {
    let mut cursor = log.start();
    read_all(log, &mut cursor).0.into_iter().map(|record| record.seq.0).collect()
}

/// Offsets of the records in the first segment, from a log of records of one size.
fn nth(index: u64, payload: usize) -> ByteCount {
    ByteCount::new(index * block_size(ByteCount::of(payload)).as_u64())
}

/// Damages every byte of a stretch.
fn wreck(disk: &SimDisk, path: &str, from: ByteCount, length: ByteCount) {
    (from.as_u64()..(from + length).as_u64())
        .for_each(|at| disk.damage(path, ByteCount::new(at)).unwrap());
}

/// Where the guard's last part, the header's copy, begins in a record.
fn copy(payload: usize) -> ByteCount {
    nth(1, payload) - ByteCount::of(HEADER_LEN)
}

#[test]
fn records_come_back_in_order_once_durable() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut log = open(&disk);
    let mut cursor = log.start();
    put(&mut log, 1, 0, b"a").unwrap();
    assert!(log.needs_sync());
    assert_eq!(log.read(&mut cursor).unwrap(), None);
    let handle = log.sync_handle().unwrap();
    put(&mut log, 1, 1, b"b").unwrap();
    log.synced(handle.sync()).unwrap();
    let (first, _) = read_all(&mut log, &mut cursor);
    assert_eq!(
        first.iter().map(|r| &r.payload[..]).collect::<Vec<_>>(),
        [b"a"],
        "b was appended after the sync began"
    );
    assert!(log.needs_sync());
    log.sync().unwrap();
    assert!(!log.needs_sync());
    assert!(log.sync_handle().is_none());
    let (second, _) = read_all(&mut log, &mut cursor);
    assert_eq!(second[0].seq, Seq(1));
    assert_eq!(second[0].written, Utc::from_micros(1));
}

#[test]
fn sealed_segments_open_by_their_seal_and_say_what_a_scan_says() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut log = open(&disk);
    for seq in 0..40 {
        put(&mut log, 1 + u32::from(seq % 3 == 0), seq, &[7; 90]).unwrap();
    }
    log.sync().unwrap();
    let before: Vec<_> =
        log.segments().sealed().map(|(number, summary)| (number, summary.clone())).collect();
    assert!(before.len() > 5);
    let again = open(&disk);
    let after: Vec<_> =
        again.segments().sealed().map(|(number, summary)| (number, summary.clone())).collect();
    assert_eq!(before, after);
    for (number, summary) in after {
        let file = disk.open(&again.segments().path(number)).unwrap();
        let scanned = scan::scan(&*file, number, scan::Trust::Durable).unwrap();
        assert_eq!((scanned.summary, scanned.sealed), (summary, true));
    }
    assert_eq!(again.segments().size(), disk.used());
    assert_eq!(again.stats(), LogStats::default());
}

#[test]
fn a_torn_end_is_cut_counted_and_does_not_come_back() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut log = open(&disk);
    for seq in 0..3 {
        put(&mut log, 1, seq, &[1; 20]).unwrap();
    }
    log.sync().unwrap();
    let file = disk.open(&log.segments().path(SegmentNo(1))).unwrap();
    file.append(&[0x53; 33]).unwrap();
    let mut log = open(&disk);
    assert_eq!(log.stats().torn, ByteCount::new(33));
    assert_eq!(seqs(&mut log), [0, 1, 2]);
    put(&mut log, 1, 3, &[1; 20]).unwrap();
    let mut log = open(&disk);
    assert_eq!(seqs(&mut log), [0, 1, 2, 3]);
    assert_eq!(log.stats().torn, ByteCount::ZERO);
}

#[test]
fn damage_of_durable_data_is_reported_with_its_place_and_stepped_over() {
    let (header, whole) = (ByteCount::of(HEADER_LEN), nth(1, 20));
    for (from, to) in [(ByteCount::ZERO, whole), (header, whole), (ByteCount::ZERO, copy(20))] {
        let disk = SimDisk::new(ByteCount::mib(1));
        let mut log = open(&disk);
        for seq in 0..4 {
            put(&mut log, 1, seq, &[9; 20]).unwrap();
        }
        log.sync().unwrap();
        let path = log.segments().path(SegmentNo(1));
        wreck(&disk, &path, nth(1, 20) + from, to - from);
        let mut cursor = log.start();
        let (read, damages) = read_all(&mut log, &mut cursor);
        assert_eq!((read.len(), damages), (3, 1), "a reader of the running log");
        let mut log = open(&disk);
        let damage = log.damages().next().unwrap().clone();
        assert_eq!(
            (damage.fate, damage.file.as_str(), damage.offset, damage.length),
            (DamageFate::SteppedOver, path.as_str(), nth(1, 20), nth(1, 20))
        );
        assert_eq!(seqs(&mut log), [0, 2, 3]);
        assert_eq!(log.stats().torn, ByteCount::ZERO);
        assert!(damage.to_string().contains("check the disk"), "{damage}");
    }
}

#[test]
fn durable_records_behind_a_damage_outlive_any_number_of_openings_after_a_torn_end() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut log = open(&disk);
    for seq in 0..4 {
        put(&mut log, 1, seq, &[9; 20]).unwrap();
    }
    // Without the mark that a sync leaves where nothing follows it, only the torn record says what
    // was durable.
    let synced = log.sync_handle().unwrap();
    put(&mut log, 1, 4, &[9; 20]).unwrap();
    log.synced(synced.sync()).unwrap();
    put(&mut log, 1, 5, &[9; 20]).unwrap();
    let path = log.segments().path(SegmentNo(1));
    wreck(&disk, &path, nth(1, 20), copy(20));
    wreck(
        &disk,
        &path,
        nth(5, 20) + ByteCount::of(HEADER_LEN),
        copy(20) - ByteCount::of(HEADER_LEN),
    );
    let mut first = open(&disk);
    assert_eq!(seqs(&mut first), [0, 2, 3, 4], "5 is torn");
    assert_eq!(first.stats().torn, nth(1, 20));
    for _ in 0..3 {
        let mut again = open(&disk);
        assert_eq!((again.stats().torn, again.stats().damages), (ByteCount::ZERO, 1));
        assert_eq!(
            (again.segments().active(), again.durable()),
            (first.segments().active(), first.durable())
        );
        assert_eq!(seqs(&mut again), [0, 2, 3, 4]);
        disk.crash(7);
    }
}

#[test]
fn a_hole_before_what_was_never_durable_ends_the_log() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut log = open(&disk);
    put(&mut log, 1, 0, &[9; 20]).unwrap();
    log.sync().unwrap();
    let mark = ByteCount::of(HEADER_LEN);
    for seq in 1..4 {
        put(&mut log, 1, seq, &[9; 20]).unwrap();
    }
    wreck(&disk, &log.segments().path(SegmentNo(1)), nth(1, 20) + mark, copy(20));
    let mut log = open(&disk);
    assert_eq!(seqs(&mut log), [0], "1 is damaged, 2 and 3 were never durable");
    assert_eq!(log.stats().torn, nth(3, 20));
}

#[test]
fn a_log_inside_a_payload_is_not_taken_for_records() {
    let inner = SimDisk::new(ByteCount::mib(1));
    let mut log = open(&inner);
    for seq in 100..104 {
        put(&mut log, 1, seq, &[9; 20]).unwrap();
    }
    log.sync().unwrap();
    let embedded =
        crate::disk::read_small(&inner, &log.segments().path(SegmentNo(1)), ByteCount::mib(1))
            .unwrap();
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut log = open(&disk);
    put(&mut log, 1, 0, &embedded).unwrap();
    put(&mut log, 1, 1, b"after").unwrap();
    log.sync().unwrap();
    let path = log.segments().path(SegmentNo(1));
    wreck(&disk, &path, ByteCount::ZERO, ByteCount::of(HEADER_LEN));
    assert_eq!(seqs(&mut open(&disk)), [0, 1], "from the header's copy");
    wreck(&disk, &path, copy(embedded.len()), ByteCount::of(HEADER_LEN));
    assert_eq!(seqs(&mut open(&disk)), [1]);
}

#[test]
fn another_version_is_refused_and_left_as_it_is() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut log = open(&disk);
    put(&mut log, 1, 0, b"kept").unwrap();
    log.sync().unwrap();
    let mut bytes =
        crate::disk::read_small(&disk, "log/0000000000000001.seg", ByteCount::kib(1)).unwrap();
    bytes[2] = 1;
    let place = [1u64.to_be_bytes(), 0u64.to_be_bytes()].concat();
    let sum = crc(&[&place, &bytes[..4], &bytes[8..HEADER_LEN]]);
    bytes[4..8].copy_from_slice(&sum.to_be_bytes());
    let file = disk.create("log/0000000000000001.seg").unwrap();
    file.append(&bytes).unwrap();
    let error = Log::open(Arc::new(disk.clone()), DIR, small()).unwrap_err();
    assert!(matches!(error, LogError::OtherVersion { version: 1, .. }), "{error}");
    assert_eq!(file.size().unwrap(), ByteCount::of(bytes.len()));
}

#[test]
fn a_header_of_which_zeros_reached_the_disk_is_a_torn_end() {
    let disk = SimDisk::new(ByteCount::mib(1));
    disk.make_dir(DIR).unwrap();
    disk.create("log/0000000000000001.seg").unwrap().append(b"SR\0\0\0\0").unwrap();
    assert_eq!(open(&disk).stats().torn, ByteCount::new(6));
}

#[test]
fn a_failed_sync_spoils_the_log_until_it_is_opened_again() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut log = open(&disk);
    put(&mut log, 1, 0, b"a").unwrap();
    disk.fail_after(0);
    assert!(matches!(log.sync(), Err(LogError::SyncFailed { .. })));
    assert!(
        matches!(log.sync(), Err(LogError::SyncFailed { .. })),
        "a second sync that works proves nothing"
    );
    assert!(matches!(put(&mut log, 1, 1, b"b"), Err(LogError::SyncFailed { .. })));
    let mut cursor = log.start();
    assert_eq!(log.read(&mut cursor).unwrap(), None);
    disk.kill();
    assert_eq!(seqs(&mut open(&disk)), [0]);
}

#[test]
fn a_sync_that_works_after_one_that_failed_promises_nothing() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut log = open(&disk);
    put(&mut log, 1, 0, b"a").unwrap();
    let (first, second) = (log.sync_handle().unwrap(), log.sync_handle().unwrap());
    disk.fail_after(0);
    let failed = first.sync();
    assert!(matches!(log.synced(second.sync()), Err(LogError::SyncFailed { .. })));
    assert!(log.synced(failed).is_err());
    let mut cursor = log.start();
    assert_eq!(log.read(&mut cursor).unwrap(), None);
}

#[test]
fn what_a_full_disk_and_then_a_fault_left_behind_is_taken_back_by_the_next_append() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut log = open(&disk);
    put(&mut log, 1, 0, &[1; 20]).unwrap();
    log.sync().unwrap();
    let before = disk.used();
    disk.set_capacity(before + ByteCount::new(30));
    disk.fail_after(1);
    assert!(matches!(put(&mut log, 1, 1, &[2; 20]), Err(LogError::Full { .. })));
    assert_eq!(disk.used(), before + ByteCount::new(30), "the fault hit the taking back");
    disk.set_capacity(ByteCount::mib(1));
    put(&mut log, 1, 1, &[3; 20]).unwrap();
    log.sync().unwrap();
    assert_eq!(seqs(&mut log), [0, 1]);
    assert_eq!((seqs(&mut open(&disk)), log.stats().taken_back), (vec![0, 1], 1));
}

#[test]
fn oversized_payloads_are_refused() {
    let mut log = open(&SimDisk::new(ByteCount::mib(4)));
    let limit = vec![0; MAX_PAYLOAD.as_usize()];
    assert!(put(&mut log, 1, 0, &limit).is_ok());
    let beyond = vec![0; MAX_PAYLOAD.as_usize() + 1];
    assert!(matches!(put(&mut log, 1, 1, &beyond), Err(LogError::TooLarge { .. })));
}

#[test]
fn a_segment_with_many_flows_is_closed_early() {
    let disk = SimDisk::new(ByteCount::mib(8));
    let config = LogConfig { segment_size: ByteCount::mib(4) };
    let mut log = Log::open(Arc::new(disk.clone()), DIR, config).unwrap();
    let flows = u32::try_from(summary::MAX_FLOWS).unwrap() + 1;
    for flow in 0..flows {
        put(&mut log, flow, 0, b"x").unwrap();
    }
    log.sync().unwrap();
    assert_eq!(log.segments().sealed().count(), 1);
    let log = Log::open(Arc::new(disk), DIR, config).unwrap();
    assert_eq!(log.segments().sealed().next().unwrap().1.flows.len(), summary::MAX_FLOWS);
    assert_eq!(log.stats().damages, 0);
}

#[derive(Debug, Clone)]
enum Op {
    Append { flow: u32, len: usize },
    Sync,
    BeginSync,
    EndSync,
    Seal,
    RemoveOldest,
    Crash(u64),
    Kill,
    Capacity(u64),
    Fault(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (0u32..3, 0usize..200).prop_map(|(flow, len)| Op::Append { flow, len }),
        4 => Just(Op::Sync),
        2 => Just(Op::BeginSync),
        2 => Just(Op::EndSync),
        1 => Just(Op::Seal),
        1 => Just(Op::RemoveOldest),
        3 => any::<u64>().prop_map(Op::Crash),
        1 => Just(Op::Kill),
        2 => (0u64..4_000).prop_map(Op::Capacity),
        1 => (0u64..6).prop_map(Op::Fault),
    ]
}

/// The log, and what it must hold.
struct Bench {
    disk: SimDisk,
    log: Log,
    begun: Option<(SyncHandle, usize)>,
    appended: Vec<LogRecord>,
    /// So many of them are promised.
    durable: usize,
    /// So many of them were removed.
    removed: usize,
    next: u64,
}

impl Bench {
    fn new() -> Self {
        let disk = SimDisk::new(ByteCount::mib(1));
        let log = open(&disk);
        Self { disk, log, begun: None, appended: Vec::new(), durable: 0, removed: 0, next: 0 }
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Append { flow, len } => self.append(flow, len),
            Op::Sync => {
                if self.log.sync().is_ok() {
                    self.durable = self.appended.len();
                }
            }
            Op::BeginSync => {
                self.begun = self.log.sync_handle().map(|handle| (handle, self.appended.len()));
            }
            Op::EndSync => {
                if let Some((handle, count)) = self.begun.take()
                    && self.log.synced(handle.sync()).is_ok()
                {
                    self.durable = self.durable.max(count);
                }
            }
            Op::Seal => {
                if self.log.seal().is_ok() {
                    self.durable = self.appended.len();
                }
            }
            Op::RemoveOldest => self.remove_oldest(),
            Op::Crash(seed) => {
                self.disk.crash(seed);
                self.reopen();
            }
            Op::Kill => {
                self.disk.kill();
                self.reopen();
            }
            Op::Capacity(bytes) => self.disk.set_capacity(ByteCount::new(bytes)),
            Op::Fault(after) => self.disk.fail_after(after),
        }
    }

    fn append(&mut self, flow: u32, len: usize) {
        let payload: Vec<u8> = (0..len).map(|at| (self.next as usize * 31 + at) as u8).collect();
        let before = self.disk.used();
        match put(&mut self.log, flow, self.next, &payload) {
            Ok(_) => {
                let written = Utc::from_micros(self.next.cast_signed());
                self.appended.push(LogRecord {
                    flow: FlowId(flow),
                    seq: Seq(self.next),
                    written,
                    payload,
                });
                self.next += 1;
            }
            Err(LogError::Full { .. }) => {
                let sealing = ByteCount::new(400);
                let is_ragged =
                    self.log.segments().active.as_ref().is_some_and(|active| active.ragged);
                let taken_back = self.disk.used() <= before + sealing;
                assert!(taken_back || is_ragged, "what did not fit was taken back, or will be");
            }
            Err(LogError::SyncFailed { .. } | LogError::Io { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn remove_oldest(&mut self) {
        let Some((number, summary)) = self.log.segments().sealed().next() else {
            return;
        };
        let last = summary.flows.iter().map(|span| span.last).max().unwrap();
        if self.log.segments_mut().remove(number).is_ok()
            && self.log.segments_mut().sync_removals().is_ok()
        {
            self.removed = self.appended.iter().position(|record| record.seq == last).unwrap() + 1;
        } else {
            // Whether it is there after a crash is open: forget it on both sides.
            self.disk.kill();
            self.reopen_after_half_removal(last);
        }
    }

    fn reopen_after_half_removal(&mut self, last: Seq) {
        self.log = open(&self.disk);
        self.begun = None;
        self.log.segments_mut().sync_removals().unwrap();
        let first = seqs(&mut self.log).first().copied();
        if first.is_none_or(|first| first > last.0) {
            self.removed = self.appended.iter().position(|record| record.seq == last).unwrap() + 1;
        }
        self.durable = self.durable.max(self.removed);
        self.check_recovered();
    }

    fn reopen(&mut self) {
        self.begun = None;
        self.log = open(&self.disk);
        self.check_recovered();
    }

    fn check_recovered(&mut self) {
        let mut cursor = self.log.start();
        let (found, damages) = read_all(&mut self.log, &mut cursor);
        assert_eq!(damages, 0);
        assert_eq!(self.log.stats().damages, 0);
        let kept = self.removed + found.len();
        assert!(kept >= self.durable, "{kept} of {} promised records are there", self.durable);
        assert_eq!(found[..], self.appended[self.removed..kept]);
        self.appended.truncate(kept);
        self.durable = kept;
    }

    fn check_readers(&mut self) {
        let mut cursor = self.log.start();
        let (found, damages) = read_all(&mut self.log, &mut cursor);
        assert_eq!(damages, 0);
        assert!(found.len() + self.removed >= self.durable);
        assert!(found.len() + self.removed <= self.appended.len());
        assert_eq!(found[..], self.appended[self.removed..self.removed + found.len()]);
    }
}

/// How many cases are tried: a quarter where not everything is tested (`SKYHAUL_RUNG=all`).
#[allow(clippy::disallowed_methods, reason = "how much is tested is the caller's choice")]
fn cases(all: u32) -> ProptestConfig {
    let is_all = std::env::var("SKYHAUL_RUNG").is_ok_and(|rung| rung == "all");
    ProptestConfig::with_cases(if is_all { all } else { all / 4 })
}

proptest! {
    #![proptest_config(cases(8_000))]

    #[test]
    fn what_was_promised_is_there_once_after_any_sequence(ops in prop::collection::vec(op(),
        1..50)) {
        let mut bench = Bench::new();
        for op in ops {
            bench.run(op);
            bench.check_readers();
        }
        bench.disk.set_capacity(ByteCount::mib(1));
        bench.disk.crash(1);
        bench.reopen();
        put(&mut bench.log, 1, bench.next, b"it goes on").unwrap();
        bench.log.sync().unwrap();
    }

    #[test]
    fn opening_any_bytes_twice_changes_nothing(bytes in prop::collection::vec(any::<u8>(),
        0..400)) {
        let (first, kept) = open_bytes(&bytes).unwrap();
        prop_assert_eq!(open_bytes(&kept).unwrap(), (first, kept));
    }

    #[test]
    fn opening_a_damaged_and_torn_log_twice_changes_nothing(
        lens in prop::collection::vec((0usize..80, any::<bool>()), 1..12),
        damages in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        end in any::<prop::sample::Index>(),
        garbage in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let disk = SimDisk::new(ByteCount::mib(1));
        let mut log = Log::open(Arc::new(disk.clone()), DIR, LogConfig::default()).unwrap();
        for (seq, (len, is_synced)) in lens.into_iter().enumerate() {
            put(&mut log, 1, seq as u64, &vec![seq as u8; len]).unwrap();
            if is_synced {
                log.sync().unwrap();
            }
        }
        let path = log.segments().path(SegmentNo(1));
        let mut bytes = crate::disk::read_small(&disk, &path, ByteCount::mib(1)).unwrap();
        for damage in damages {
            let at = damage.index(bytes.len());
            bytes[at] ^= 0x10;
        }
        bytes.truncate(end.index(bytes.len() + 1));
        bytes.extend(garbage);
        let (first, kept) = open_bytes(&bytes).unwrap();
        prop_assert_eq!(open_bytes(&kept).unwrap(), (first, kept));
    }

    #[test]
    fn a_damaged_byte_anywhere_costs_no_record(at in any::<prop::sample::Index>(),
        count in 1u64..12) {
        let disk = SimDisk::new(ByteCount::mib(1));
        let mut log = open(&disk);
        for seq in 0..count {
            put(&mut log, 1, seq, &[seq as u8; 60]).unwrap();
            log.sync().unwrap();
        }
        let (path, size) = disk.files()[0].clone();
        disk.damage(&path, ByteCount::of(at.index(size.as_usize()))).unwrap();
        prop_assert_eq!(seqs(&mut open(&disk)), (0..count).collect::<Vec<_>>());
        prop_assert_eq!(seqs(&mut log), (0..count).collect::<Vec<_>>());
    }
}
