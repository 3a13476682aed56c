use super::*;
use crate::sim::SimDisk;

const NOW: Utc = Utc::from_micros(1_730_419_200_000_000);

fn config() -> SpoolConfig {
    SpoolConfig {
        segment_size: ByteCount::new(2_060),
        max_size: ByteCount::new(17_000),
        retention: Duration::from_secs(10),
        reserve: ByteCount::new(500),
    }
}

fn open(disk: &SimDisk) -> Spool {
    Spool::open(Arc::new(disk.clone()), config(), NOW, SpoolDraw([7; 24])).unwrap()
}

fn later(seconds: u64) -> Utc {
    NOW + Duration::from_secs(seconds)
}

fn fill(spool: &mut Spool, flow: FlowId) -> u64 {
    let mut count = 0;
    loop {
        match spool.append(flow, &[count as u8; 100], NOW) {
            Ok(_) => count += 1,
            Err(SpoolError::Full { .. }) => return count,
            Err(error) => panic!("{error}"),
        }
    }
}

fn items(spool: &mut Spool, reader: &mut SpoolReader) -> Vec<(u32, u64)> {
    let mut found = Vec::new();
    while let Some(item) = spool.queue_mut().read(reader).unwrap() {
        let SpoolItem::Block(record) = item else { panic!("{item:?}") };
        found.push((record.flow.0, record.seq.0));
    }
    found
}

#[test]
fn flow_numbers_are_never_used_twice_even_on_a_new_disk() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut spool = open(&disk);
    let first = spool.open_flow(NOW).unwrap();
    spool.append(first, b"x", NOW).unwrap();
    spool.close_flow(first).unwrap();
    spool.custody(DestinationId::FIRST, first, Seq(1));
    spool.free(later(100)).unwrap();
    drop(spool);
    let second = open(&disk).open_flow(NOW).unwrap();
    assert!(second > first);
    let mut replaced = Spool::open(
        Arc::new(SimDisk::new(ByteCount::mib(1))),
        config(),
        later(60),
        SpoolDraw([7; 24]),
    )
    .unwrap();
    assert!(replaced.open_flow(later(60)).unwrap() > second);
    let mut without_clock = Spool::open(
        Arc::new(SimDisk::new(ByteCount::mib(1))),
        config(),
        Utc::from_micros(0),
        SpoolDraw([7; 24]),
    )
    .unwrap();
    assert_eq!(without_clock.open_flow(NOW).unwrap(), FlowId(1));
}

#[test]
fn records_without_custody_are_read_in_the_order_of_writing() {
    let mut spool = open(&SimDisk::new(ByteCount::mib(1)));
    let (a, b) = (spool.open_flow(NOW).unwrap(), spool.open_flow(NOW).unwrap());
    for _ in 0..3 {
        spool.append(a, &[1; 300], NOW).unwrap();
        spool.append(b, &[2; 300], NOW).unwrap();
    }
    spool.sync().unwrap();
    let mut reader = spool.queue().reader_from_custody(DestinationId::FIRST);
    let all = items(&mut spool, &mut reader);
    assert_eq!(all, [(a.0, 0), (b.0, 0), (a.0, 1), (b.0, 1), (a.0, 2), (b.0, 2)]);
    assert_eq!(spool.custody(DestinationId::FIRST, a, Seq(2)), 2);
    assert_eq!(
        spool.custody(DestinationId::FIRST, a, Seq(1)),
        0,
        "an old receipt takes nothing back"
    );
    let mut reader = spool.queue().reader_from_custody(DestinationId::FIRST);
    assert_eq!(items(&mut spool, &mut reader), [(b.0, 0), (b.0, 1), (a.0, 2), (b.0, 2)]);
}

#[test]
fn custody_and_closed_flows_survive_a_restart() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut spool = open(&disk);
    let (a, b) = (spool.open_flow(NOW).unwrap(), spool.open_flow(NOW).unwrap());
    for flow in [a, a, a, b] {
        spool.append(flow, &[flow.0 as u8; 10], NOW).unwrap();
    }
    spool.close_flow(b).unwrap();
    spool.custody(DestinationId::FIRST, a, Seq(2));
    spool.free(NOW).unwrap();
    disk.crash(7);
    let mut spool = open(&disk);
    assert_eq!(spool.queue().open_flows(), [OpenFlow { flow: a, next: Seq(3), custody: Seq(2) }]);
    assert_eq!(spool.queue_mut().last_record(a).unwrap().unwrap().seq, Seq(2));
    assert_eq!(spool.queue_mut().last_record(b).unwrap(), None);
    let mut reader = spool.queue().reader_from_custody(DestinationId::FIRST);
    assert_eq!(items(&mut spool, &mut reader), [(a.0, 2), (b.0, 0)]);
    assert!(matches!(spool.append(b, b"x", NOW), Err(SpoolError::UnknownFlow { .. })));
}

#[test]
fn depth_counts_what_waits_and_for_how_long() {
    let mut spool = open(&SimDisk::new(ByteCount::mib(1)));
    let flow = spool.open_flow(NOW).unwrap();
    assert_eq!(spool.queue().depth(NOW), Depth::default());
    for second in 0..20 {
        spool.append(flow, &[0; 100], later(second)).unwrap();
    }
    let depth = spool.queue().depth(later(20));
    assert_eq!(
        (depth.blocks, depth.bytes, depth.oldest),
        (20, ByteCount::new(2_000), Duration::from_secs(20))
    );
    spool.custody(DestinationId::FIRST, flow, Seq(9));
    let depth = spool.queue().depth(later(20));
    assert_eq!(
        (depth.blocks, depth.bytes, depth.oldest),
        (11, ByteCount::new(1_100), Duration::from_secs(11))
    );
    spool.custody(DestinationId::FIRST, flow, Seq::FINISHED);
    assert_eq!(spool.queue().depth(later(20)), Depth::default());
}

#[test]
fn space_is_freed_after_custody_and_retention() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut spool = open(&disk);
    let flow = spool.open_flow(NOW).unwrap();
    let count = 30;
    for _ in 0..count {
        spool.append(flow, &[0; 100], NOW).unwrap();
    }
    assert_eq!(spool.free(later(100)).unwrap(), ByteCount::ZERO, "the centre has nothing yet");
    spool.custody(DestinationId::FIRST, flow, Seq(count));
    assert_eq!(spool.free(later(9)).unwrap(), ByteCount::ZERO, "its retention is not over");
    assert!(spool.free(later(10)).unwrap() > ByteCount::new(2_000));
    let is_state = |path: &str| path == "spool/flows" || path == "spool/identity";
    let state: ByteCount =
        disk.files().iter().filter(|(path, _)| is_state(path)).map(|(_, size)| *size).sum();
    assert_eq!(
        spool.queue().size() + state,
        disk.used(),
        "what is left is one segment and the state"
    );
    assert_eq!(spool.stats().freed, 4);
}

#[test]
fn a_full_spool_pushes_back_and_goes_on_when_the_centre_has_taken_something() {
    let mut spool = open(&SimDisk::new(ByteCount::mib(1)));
    let flow = spool.open_flow(NOW).unwrap();
    let count = fill(&mut spool, flow);
    assert!(
        count > 40 && spool.queue().size() <= config().max_size,
        "{count} {}",
        spool.queue().size()
    );
    let error = spool.append(flow, &[0; 100], NOW).unwrap_err();
    assert!(error.to_string().contains("max_size"), "{error}");
    spool.custody(DestinationId::FIRST, flow, Seq(20));
    assert_eq!(
        spool.append(flow, &[0; 100], NOW).unwrap(),
        Seq(count),
        "retention yields to new data"
    );
    assert_eq!(spool.stats().freed_early, 1);
    assert_eq!(spool.stats().refused, 2);
}

#[test]
fn a_device_full_at_any_byte_leaves_a_valid_spool_that_goes_on_by_itself() {
    for room in 0..1_200 {
        let disk = SimDisk::new(ByteCount::mib(1));
        let mut spool = Spool::open(
            Arc::new(disk.clone()),
            SpoolConfig { reserve: ByteCount::ZERO, ..config() },
            NOW,
            SpoolDraw([7; 24]),
        )
        .unwrap();
        let flow = spool.open_flow(NOW).unwrap();
        disk.set_capacity(disk.used() + ByteCount::new(room));
        let before = fill(&mut spool, flow);
        spool.sync().unwrap();
        disk.set_capacity(ByteCount::mib(1));
        assert_eq!(spool.append(flow, &[9; 100], NOW).unwrap(), Seq(before), "room for {room}");
        spool.sync().unwrap();
        disk.crash(room);
        let mut spool = open(&disk);
        let mut reader = spool.queue().reader_from_custody(DestinationId::FIRST);
        assert_eq!(items(&mut spool, &mut reader).len() as u64, before + 1, "room for {room}");
    }
}

#[test]
fn freeing_never_forgets_what_comes_next_in_a_flow() {
    for seed in 0..64 {
        let disk = SimDisk::new(ByteCount::mib(1));
        let mut spool = open(&disk);
        let flow = spool.open_flow(NOW).unwrap();
        for _ in 0..7 {
            spool.append(flow, &[0; 100], NOW).unwrap();
        }
        assert_eq!(
            spool.queue.log.segments().sealed().count(),
            1,
            "the seventh, not durable yet, begins a segment"
        );
        spool.custody(DestinationId::FIRST, flow, Seq(6));
        if seed % 2 == 0 {
            disk.set_capacity(disk.used() + config().reserve);
            spool.append(flow, &[0; 100], NOW).unwrap();
            assert_eq!(spool.stats().freed_early, 1);
        } else {
            // The state file lags, as on a full device.
            disk.fail_after(0);
            spool.free(later(100)).unwrap();
            assert_eq!((spool.stats().freed, spool.stats().state_failures), (1, 1));
        }
        disk.set_capacity(ByteCount::mib(1));
        disk.crash(seed);
        assert!(open(&disk).queue().open_flows()[0].next >= Seq(7), "seed {seed}");
    }
}

#[test]
fn what_the_disk_does_not_give_back_is_named_so_that_the_far_end_need_not_wait() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut spool = open(&disk);
    let flow = spool.open_flow(NOW).unwrap();
    for _ in 0..12 {
        spool.append(flow, &[0; 100], NOW).unwrap();
    }
    spool.sync().unwrap();
    let record = crate::log::block_size(ByteCount::new(100)).as_u64();
    for place in [1, 5] {
        for at in place * record..(place + 1) * record {
            disk.damage("spool/0000000000000001.seg", ByteCount::new(at)).unwrap();
        }
    }
    let mut reader = spool.queue().reader_from_custody(DestinationId::FIRST);
    let mut missing = Vec::new();
    let mut blocks = 0;
    while let Some(item) = spool.queue_mut().read(&mut reader).unwrap() {
        match item {
            SpoolItem::Block(_) => blocks += 1,
            SpoolItem::Missing { first, last, .. } => missing.push((first.0, last.0)),
        }
    }
    assert_eq!(
        (missing, blocks),
        (vec![(1, 1), (5, 5)], 10),
        "5 is the last record of its segment"
    );
    assert_eq!((spool.stats().missing, spool.stats().log.damages), (2, 2));
    assert_eq!(spool.queue().damages().count(), 2);
}

#[test]
fn places_that_the_centre_has_and_the_disk_forgot_are_not_given_again() {
    let mut spool = open(&SimDisk::new(ByteCount::mib(1)));
    let flow = spool.open_flow(NOW).unwrap();
    spool.append(flow, b"x", NOW).unwrap();
    spool.custody(DestinationId::FIRST, flow, Seq(5));
    assert_eq!(spool.append(flow, b"y", NOW).unwrap(), Seq(5));
    assert_eq!(spool.stats().custody_ahead, 4);
}

#[test]
fn a_flipped_bit_anywhere_in_the_state_file_costs_nothing_and_is_told() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut spool = open(&disk);
    let (taken, closed) = (spool.open_flow(NOW).unwrap(), spool.open_flow(NOW).unwrap());
    for flow in [taken, closed] {
        spool.append(flow, b"x", NOW).unwrap();
        spool.append(flow, b"y", NOW).unwrap();
    }
    spool.custody(DestinationId::FIRST, taken, Seq(1));
    spool.close_flow(closed).unwrap();
    let saved = spool.queue.flows.encode();
    let file = disk.open("spool/flows").unwrap();
    let mut good = vec![0; file.size().unwrap().as_usize()];
    file.read_at(&mut good, ByteCount::ZERO).unwrap();
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        disk.create("spool/flows").unwrap().append(&bad).unwrap();
        let mut spool = open(&disk);
        assert_eq!(
            (spool.queue.flows.encode(), spool.stats().state_mended),
            (saved.clone(), 1),
            "bit {bit}"
        );
        spool.free(NOW).unwrap();
        assert_eq!(open(&disk).stats().state_mended, 0, "both copies are written again");
    }
}

#[test]
fn three_flipped_bits_in_blocks_of_8000_frames_cost_none() {
    // 219 frames of 1,024 bytes and what is noted of each fill a block of 256 KiB.
    const BLOCKS: u64 = 37;
    let block = |seq: u64| (0..256 << 10).map(|at: u64| ((at * (seq + 7)) >> 6) as u8).collect();
    let blocks: Vec<Vec<u8>> = (0..BLOCKS).map(block).collect();
    for seed in 0..8u64 {
        let disk = SimDisk::new(ByteCount::mib(32));
        let config = SpoolConfig {
            max_size: ByteCount::mib(16),
            segment_size: ByteCount::mib(4),
            ..config()
        };
        let mut spool =
            Spool::open(Arc::new(disk.clone()), config, NOW, SpoolDraw([7; 24])).unwrap();
        let flow = spool.open_flow(NOW).unwrap();
        for block in &blocks {
            spool.append(flow, block, NOW).unwrap();
        }
        spool.sync().unwrap();
        let segments: Vec<_> =
            disk.files().into_iter().filter(|(path, _)| path.ends_with(".seg")).collect();
        for flip in 0..3 {
            let place = (seed * 3 + flip + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let (path, _) = &segments[place as usize % segments.len()];
            // Where every segment has blocks, the last one too.
            disk.damage(path, ByteCount::new((place >> 20) % (200 << 10))).unwrap();
        }
        let mut reader = spool.queue().reader_from_custody(DestinationId::FIRST);
        for (seq, block) in blocks.iter().enumerate() {
            let Some(SpoolItem::Block(record)) = spool.queue_mut().read(&mut reader).unwrap()
            else {
                panic!("block {seq}")
            };
            assert!(record.payload == *block, "seed {seed}, block {seq}");
        }
        let stats = spool.stats();
        assert_eq!((stats.missing, stats.log.damages), (0, 0), "seed {seed}");
        assert!((1..=3).contains(&stats.log.mended), "seed {seed}: {stats:?}");
    }
}

#[test]
fn a_state_file_damaged_twice_is_refused_and_without_it_everything_is_sent_again() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut spool = open(&disk);
    let flow = spool.open_flow(NOW).unwrap();
    spool.append(flow, b"x", NOW).unwrap();
    spool.sync().unwrap();
    spool.custody(DestinationId::FIRST, flow, Seq(1));
    for at in 0..80 {
        disk.damage("spool/flows", ByteCount::new(at)).unwrap();
    }
    let error = Spool::open(Arc::new(disk.clone()), config(), NOW, SpoolDraw([7; 24])).unwrap_err();
    assert!(matches!(error, SpoolError::State { .. }), "{error}");
    disk.remove("spool/flows").unwrap();
    let mut spool = open(&disk);
    let mut reader = spool.queue().reader_from_custody(DestinationId::FIRST);
    assert_eq!(items(&mut spool, &mut reader), [(flow.0, 0)]);
    assert!(spool.open_flow(NOW).unwrap() > flow);
}

#[test]
fn live_flows_are_bounded() {
    let mut spool = open(&SimDisk::new(ByteCount::mib(1)));
    for _ in 0..MAX_LIVE_FLOWS {
        spool.open_flow(NOW).unwrap();
    }
    assert!(matches!(spool.open_flow(NOW), Err(SpoolError::TooManyFlows)));
}

#[test]
fn a_spool_of_less_than_four_segments_is_refused() {
    let disk = Arc::new(SimDisk::new(ByteCount::mib(1)));
    let error = Spool::open(
        disk,
        SpoolConfig { max_size: ByteCount::new(8_239), ..config() },
        NOW,
        SpoolDraw([7; 24]),
    )
    .unwrap_err();
    assert!(error.to_string().contains("max_size"), "{error}");
}

#[test]
fn what_is_in_custody_can_be_recalled_as_long_as_it_is_kept() {
    let mut spool = open(&SimDisk::new(ByteCount::mib(1)));
    let (a, b) = (spool.open_flow(NOW).unwrap(), spool.open_flow(NOW).unwrap());
    for round in 0..6 {
        spool.append(a, &[round; 300], later(u64::from(round))).unwrap();
        spool.append(b, &[9; 300], later(u64::from(round))).unwrap();
    }
    spool.close_flow(a).unwrap();
    spool.custody(DestinationId::FIRST, a, Seq::FINISHED);
    let recall = |spool: &mut Spool, from| {
        let mut reader = spool.queue().recall_reader(a, from);
        let mut seqs = Vec::new();
        while let Some(record) = spool.queue_mut().recall(&mut reader).unwrap() {
            assert_eq!(record.flow, a);
            seqs.push(record.seq.0);
        }
        seqs
    };
    assert_eq!(recall(&mut spool, NOW), [0, 1, 2, 3, 4, 5]);
    let late = recall(&mut spool, later(4));
    assert!(late.len() < 6 && late.ends_with(&[4, 5]), "from the segment on that has it: {late:?}");
    assert_eq!(recall(&mut spool, later(60)), [0; 0]);
    spool.custody(DestinationId::FIRST, b, Seq(6));
    spool.free(later(100)).unwrap();
    assert!(recall(&mut spool, NOW).len() < 6, "what is freed is gone");
}

/// The alarm compared what is left with `max_size` alone: a spool on a disk of less than a tenth of
/// that was always nearly full.
#[test]
fn a_spool_on_a_disk_smaller_than_its_limit_is_nearly_full_only_when_the_disk_is() {
    let disk = SimDisk::new(ByteCount::new(20_000));
    let config = SpoolConfig { max_size: ByteCount::mib(1), ..config() };
    let mut spool = Spool::open(Arc::new(disk.clone()), config, NOW, SpoolDraw([7; 24])).unwrap();
    assert!(!spool.pressure(NOW).is_near(), "{:?}", spool.pressure(NOW));
    let flow = spool.open_flow(NOW).unwrap();
    fill(&mut spool, flow);
    assert!(spool.pressure(NOW).is_near(), "{:?}", spool.pressure(NOW));
    spool.close_flow(flow).unwrap();
    let end = spool.queue().extent(DestinationId::FIRST, flow).unwrap().next;
    spool.custody(DestinationId::FIRST, flow, end);
    spool.free(later(100)).unwrap();
    assert!(!spool.pressure(later(100)).is_near(), "{:?}", spool.pressure(later(100)));
}
