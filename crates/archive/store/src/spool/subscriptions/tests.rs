//! A spool with several destinations: who is waited for, what gives way, and who is told.

use super::super::{
    DestinationError, DestinationRole, GaveWay, GivesWay, MAX_LIVE_FLOWS, Settle, Since,
    SpoolConfig, SpoolDraw, SpoolItem, SpoolReader,
};
use super::*;
use crate::Seq;
use crate::sim::SimDisk;
use proptest::prelude::*;
use skyhaul_units::{ByteCount, Duration, Utc};
use std::collections::BTreeMap;
use std::sync::Arc;

const NOW: Utc = Utc::from_micros(1_730_419_200_000_000);

fn later(seconds: u64) -> Utc {
    NOW + Duration::from_secs(seconds)
}

/// Room for eight segments of six records of 100 bytes each.
fn open(disk: &SimDisk) -> Spool {
    open_of(disk, ByteCount::new(2_060), ByteCount::new(17_000))
}

fn open_of(disk: &SimDisk, segment_size: ByteCount, max_size: ByteCount) -> Spool {
    let config = SpoolConfig {
        segment_size,
        max_size,
        retention: Duration::from_secs(10),
        reserve: ByteCount::new(500),
    };
    Spool::open(Arc::new(disk.clone()), config, NOW, SpoolDraw([7; 24])).unwrap()
}

fn named(name: &str, role: DestinationRole, since: Since) -> SpoolDestination {
    SpoolDestination { name: name.to_owned(), role, since }
}

fn counted(name: &str) -> SpoolDestination {
    named(name, DestinationRole::Counted, Since::Now)
}

fn shadow(name: &str) -> SpoolDestination {
    named(name, DestinationRole::Shadow, Since::Now)
}

fn append(spool: &mut Spool, flow: FlowId, count: u64) {
    for _ in 0..count {
        spool.append(flow, &[7; 100], NOW).unwrap();
    }
    spool.sync().unwrap();
}

/// Regression: a node did not start on a full disk, because its destinations could not be written.
#[test]
fn destinations_are_declared_on_a_full_disk_and_written_when_there_is_room() {
    let disk = SimDisk::new(ByteCount::new(40_000));
    drop(open(&disk));
    disk.set_capacity(ByteCount::ZERO);
    let mut spool = open(&disk);
    let ids = spool.destinations_mut().set(&[counted("oper"), counted("backup")]).unwrap();
    assert!(spool.open_flow(NOW).is_err(), "no flow begins before it is written");
    disk.set_capacity(ByteCount::new(40_000));
    spool.free(NOW).unwrap();
    drop(spool);
    let mut spool = open(&disk);
    assert_eq!(
        ["oper", "backup"].map(|name| spool.destinations_mut().find(name).unwrap()),
        ids[..]
    );
}

/// What a reader gives: places of blocks, and of what is missing as negative numbers less one.
fn read(spool: &mut Spool, reader: &mut SpoolReader) -> Vec<i64> {
    let mut found = Vec::new();
    while let Some(item) = spool.queue_mut().read(reader).unwrap() {
        match item {
            SpoolItem::Block(record) => found.push(record.seq.0 as i64),
            SpoolItem::Missing { first, last, .. } => {
                found.extend((first.0..=last.0).map(|seq| -1 - seq as i64));
            }
        }
    }
    found
}

fn all_for(spool: &mut Spool, to: DestinationId) -> Vec<i64> {
    let mut reader = spool.queue().reader_from_custody(to);
    read(spool, &mut reader)
}

fn gave_way(spool: &Spool, to: DestinationId) -> GaveWay {
    let backlogs = spool.queue().backlogs(NOW);
    backlogs.iter().find(|backlog| backlog.id == to).unwrap().gave_way
}

fn route(settle: Settle, to: &[DestinationId]) -> FlowRoute {
    FlowRoute { settle, to: to.to_vec() }
}

#[test]
fn each_destination_has_its_own_place_and_the_slowest_holds_the_disk() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut spool = open(&disk);
    let ids = spool.destinations_mut().set(&[counted("oper"), counted("backup")]).unwrap();
    let [oper, backup] = ids[..] else { panic!("{ids:?}") };
    let flow = spool.open_flow(NOW).unwrap();
    append(&mut spool, flow, 20);
    assert_eq!(spool.custody(oper, flow, Seq(20)), 20);
    assert_eq!(spool.custody(backup, flow, Seq(3)), 3);
    assert_eq!(all_for(&mut spool, oper), [0; 0]);
    assert_eq!(all_for(&mut spool, backup), (3..20).collect::<Vec<i64>>());
    assert_eq!(spool.free(later(100)).unwrap(), ByteCount::ZERO, "the backup lacks most of it");
    assert_eq!(spool.queue().depth(NOW).blocks, 17);
    let waits: Vec<u64> =
        spool.queue().backlogs(NOW).iter().map(|backlog| backlog.waits.blocks).collect();
    assert_eq!(waits, [0, 17]);
    spool.close_flow(flow).unwrap();
    disk.crash(3);
    let mut spool = open(&disk);
    assert_eq!(spool.destinations_mut().find("backup"), Some(backup));
    assert_eq!(all_for(&mut spool, oper), [0; 0], "its receipts outlast the power");
    assert_eq!(all_for(&mut spool, backup), (3..20).collect::<Vec<i64>>());
    spool.custody(backup, flow, Seq::FINISHED);
    assert!(spool.queue().live_flows().is_empty());
    assert!(spool.free(later(100)).unwrap() > ByteCount::ZERO);
}

#[test]
fn what_all_must_have_never_gives_way() {
    let mut spool = open(&SimDisk::new(ByteCount::mib(1)));
    let ids = spool.destinations_mut().set(&[counted("oper"), counted("backup")]).unwrap();
    let flow = spool.open_flow(NOW).unwrap();
    let mut count = 0;
    while spool.append(flow, &[1; 100], NOW).is_ok() {
        count += 1;
    }
    spool.custody(ids[0], flow, Seq(count));
    let pressure = spool.pressure(NOW);
    assert!(pressure.is_near() && pressure.next() == GivesWay::Never, "{pressure:?}");
    assert!(matches!(spool.append(flow, &[1; 100], NOW), Err(SpoolError::Full { .. })));
    spool.sync().unwrap();
    let all: Vec<i64> = (0..count as i64).collect();
    assert_eq!(all_for(&mut spool, ids[1]), all);
    assert_eq!(gave_way(&spool, ids[1]), GaveWay::default());
}

#[test]
fn a_shadow_gives_way_first_and_then_what_any_has_and_each_is_told_its_gap() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut spool = open(&disk);
    let wanted = [counted("oper"), counted("backup"), shadow("trial")];
    let ids = spool.destinations_mut().set(&wanted).unwrap();
    let [oper, backup, trial] = ids[..] else { panic!("{ids:?}") };
    let [any, all, open_one] = [0, 1, 2].map(|_| spool.open_flow(NOW).unwrap());
    spool.destinations_mut().route(any, &route(Settle::Any, &[oper, backup]));
    append(&mut spool, any, 12);
    append(&mut spool, all, 12);
    for flow in [any, all] {
        spool.close_flow(flow).unwrap();
        spool.custody(oper, flow, Seq(12));
    }
    spool.custody(backup, all, Seq(12));
    spool.custody(backup, any, Seq(2));
    spool.custody(trial, all, Seq(1));
    let pressure = spool.pressure(NOW);
    assert!(!pressure.is_near() && pressure.shadows > ByteCount::ZERO, "{pressure:?}");
    assert!(pressure.settled > ByteCount::ZERO && pressure.kept == ByteCount::ZERO);
    let mut trial_reader = spool.queue().reader_from_custody(trial);
    let mut backup_reader = spool.queue().reader_from_custody(backup);
    // Until the segments of the shadow's flow have gone.
    while spool.stats().gave_way == 0 {
        spool.append(open_one, &[1; 100], NOW).unwrap();
    }
    assert_eq!(gave_way(&spool, trial).blocks, 5, "1 to 5: its first segment after those of `any`");
    assert_eq!(gave_way(&spool, backup).blocks, 0, "what is `any` waits behind what is a shadow's");
    while gave_way(&spool, backup).blocks == 0 {
        spool.append(open_one, &[1; 100], NOW).unwrap();
    }
    assert_eq!(gave_way(&spool, trial).blocks, 11);
    while spool.append(open_one, &[1; 100], NOW).is_ok() {}
    assert_eq!(gave_way(&spool, backup).blocks, 10);
    let told = |items: &[i64]| -> Vec<i64> {
        items.iter().filter(|item| **item < 0).map(|item| -1 - *item).collect()
    };
    spool.sync().unwrap();
    for (to, reader, gap) in [
        (trial, &mut trial_reader, (1..12).collect::<Vec<i64>>()),
        (backup, &mut backup_reader, (2..12).collect()),
    ] {
        let items = read(&mut spool, reader);
        assert_eq!(told(&items), gap, "{to:?}: by the reader that was there before");
        let items = all_for(&mut spool, to);
        assert_eq!(told(&items), gap, "{to:?}: by a new one");
    }
    assert_eq!(spool.stats().missing, 0, "the disk is not to blame");
    drop(spool);
    disk.crash(5);
    let mut spool = open(&disk);
    spool.resume(trial, all, Seq(1));
    let items = all_for(&mut spool, trial);
    assert_eq!(told(&items), (1..12).collect::<Vec<i64>>(), "after a power cut");
    spool.custody(trial, all, Seq(12));
    assert!(!spool.queue().live_flows().contains(&all), "the hole is closed and receipted");
}

#[test]
fn nothing_gives_way_before_the_disk_knows_who_lacks_it() {
    for fault in 0..12 {
        let disk = SimDisk::new(ByteCount::mib(1));
        let mut spool = open(&disk);
        let ids = spool.destinations_mut().set(&[counted("oper"), shadow("trial")]).unwrap();
        let flow = spool.open_flow(NOW).unwrap();
        append(&mut spool, flow, 6);
        spool.close_flow(flow).unwrap();
        let other = spool.open_flow(NOW).unwrap();
        while spool.append(other, &[1; 100], NOW).is_ok() {}
        spool.custody(ids[0], flow, Seq(6));
        spool.sync().unwrap();
        disk.fail_after(fault);
        let _ = spool.append(other, &[1; 100], NOW);
        drop(spool);
        disk.crash(fault);
        let mut spool = open(&disk);
        spool.resume(ids[1], flow, Seq(0));
        let items = all_for(&mut spool, ids[1]);
        for place in 0..6i64 {
            let count = items.iter().filter(|item| **item == -1 - place).count();
            let is_here = spool.queue().is_here(flow, Seq(place as u64));
            assert!(is_here || count == 1, "fault {fault}: {place} is neither here nor told");
        }
    }
}

#[test]
fn a_destination_that_is_removed_lets_go_and_added_again_begins_anew() {
    let mut spool = open(&SimDisk::new(ByteCount::mib(1)));
    let ids = spool.destinations_mut().set(&[counted("oper"), counted("backup")]).unwrap();
    let flow = spool.open_flow(NOW).unwrap();
    append(&mut spool, flow, 12);
    spool.close_flow(flow).unwrap();
    spool.custody(ids[0], flow, Seq(12));
    assert_eq!(spool.free(later(100)).unwrap(), ByteCount::ZERO);
    assert_eq!(spool.destinations_mut().set(&[counted("oper")]).unwrap(), [ids[0]]);
    assert!(spool.queue().live_flows().is_empty());
    let again = spool.destinations_mut().set(&[counted("oper"), counted("backup")]).unwrap();
    assert!(again[0] == ids[0] && again[1] > ids[1], "a number is never given twice: {again:?}");
    assert_eq!(all_for(&mut spool, again[1]), [0; 0], "it begins with flows opened afterwards");
    let kept = [counted("oper"), named("third", DestinationRole::Counted, Since::Kept)];
    let third = spool.destinations_mut().set(&kept).unwrap()[1];
    assert_eq!(all_for(&mut spool, third), (0..12).collect::<Vec<i64>>(), "with what is kept");
    spool.custody(third, flow, Seq(12));
    assert!(spool.free(later(100)).unwrap() > ByteCount::ZERO);
}

#[test]
fn a_destination_that_begins_with_what_is_kept_is_told_what_is_not() {
    let mut spool = open(&SimDisk::new(ByteCount::mib(1)));
    let oper = spool.destinations_mut().set(&[counted("oper")]).unwrap()[0];
    assert_eq!(oper, DestinationId::FIRST);
    let flow = spool.open_flow(NOW).unwrap();
    append(&mut spool, flow, 14);
    spool.custody(oper, flow, Seq(14));
    spool.free(later(100)).unwrap();
    let kept = [counted("oper"), named("late", DestinationRole::Counted, Since::Kept)];
    let late = spool.destinations_mut().set(&kept).unwrap()[1];
    let items = all_for(&mut spool, late);
    let gone = items.iter().filter(|item| **item < 0).count() as i64;
    assert!(gone > 0 && items.len() == 14, "{items:?}");
    assert_eq!(items[gone as usize..], (gone..14).collect::<Vec<i64>>());
    assert_eq!(spool.stats().missing, 0);
}

#[test]
fn a_flow_that_was_forgotten_may_have_been_longer_than_what_is_kept_of_it() {
    let mut spool = open(&SimDisk::new(ByteCount::mib(1)));
    let oper = spool.destinations_mut().set(&[counted("oper")]).unwrap()[0];
    let [flow, other] = [0, 1].map(|_| spool.open_flow(NOW).unwrap());
    append(&mut spool, other, 1);
    append(&mut spool, flow, 12);
    spool.close_flow(flow).unwrap();
    spool.custody(oper, flow, Seq(12));
    append(&mut spool, other, 12);
    spool.custody(oper, other, Seq(0));
    while spool.append(other, &[1; 100], NOW).is_ok() {}
    assert!(spool.queue().is_here(flow, Seq(0)) && !spool.queue().is_here(flow, Seq(8)));
    let kept = [counted("oper"), named("late", DestinationRole::Counted, Since::Kept)];
    let late = spool.destinations_mut().set(&kept).unwrap()[1];
    assert!(!spool.queue().is_end_known(late, flow) && spool.queue().is_end_known(late, other));
    // It had the whole of it before.
    spool.resume(late, flow, Seq(12));
    assert_eq!((spool.queue().extent(late, flow), spool.stats().custody_ahead), (None, 0));
}

#[test]
fn a_flow_is_routed_when_it_is_known_of_what_it_is() {
    let mut spool = open(&SimDisk::new(ByteCount::mib(1)));
    let wanted = [counted("oper"), counted("backup"), counted("partner")];
    let ids = spool.destinations_mut().set(&wanted).unwrap();
    let flow = spool.open_flow(NOW).unwrap();
    spool.destinations_mut().route(flow, &route(Settle::All, &[ids[0]]));
    append(&mut spool, flow, 4);
    let mut reader = spool.queue().reader_from_custody(ids[2]);
    assert_eq!(read(&mut spool, &mut reader), [0; 0]);
    let first = route(Settle::First, &[ids[2], ids[0]]);
    spool.destinations_mut().route(flow, &first);
    assert_eq!(read(&mut spool, &mut reader), [0, 1, 2, 3], "the reader goes back for it");
    append(&mut spool, flow, 1);
    spool.destinations_mut().route(flow, &route(Settle::First, &[ids[2], ids[0], ids[1]]));
    assert_eq!(read(&mut spool, &mut reader), [4], "nothing is read twice");
    assert_eq!(spool.queue().extent(ids[0], flow).unwrap().custody, Seq(0));
    spool.custody(ids[2], flow, Seq(5));
    spool.destinations_mut().route(flow, &route(Settle::All, &[]));
    assert_eq!(spool.queue().extent(ids[2], flow), None, "nobody wants it any more");
    spool.close_flow(flow).unwrap();
    spool.free(NOW).unwrap();
    assert!(spool.queue().live_flows().is_empty());
}

#[test]
fn a_change_that_cannot_be_kept_or_makes_no_sense_changes_nothing() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut spool = open(&disk);
    let ids = spool.destinations_mut().set(&[counted("oper")]).unwrap();
    let error = spool.destinations_mut().set(&[counted("a"), counted("a")]).unwrap_err();
    assert!(matches!(error, SpoolError::Destinations(DestinationError::Twice { .. })), "{error}");
    disk.fail_after(0);
    let error = spool.destinations_mut().set(&[counted("other")]).unwrap_err();
    assert!(matches!(error, SpoolError::State { .. }), "{error}");
    assert_eq!(spool.destinations_mut().find("oper"), Some(ids[0]));
    assert_eq!(spool.destinations_mut().find("other"), None);
}

#[test]
fn flows_that_only_a_shadow_lacks_do_not_keep_new_ones_from_being_opened() {
    let mut spool = open(&SimDisk::new(ByteCount::mib(16)));
    let ids = spool.destinations_mut().set(&[counted("oper"), shadow("trial")]).unwrap();
    let first = spool.open_flow(NOW).unwrap();
    append(&mut spool, first, 2);
    spool.close_flow(first).unwrap();
    spool.custody(ids[0], first, Seq(2));
    for _ in 1..MAX_LIVE_FLOWS {
        spool.queue.flows.open().unwrap();
    }
    spool.free(NOW).unwrap();
    spool.open_flow(NOW).unwrap();
    assert_eq!(gave_way(&spool, ids[1]).blocks, 2);
    assert!(matches!(spool.open_flow(NOW), Err(SpoolError::TooManyFlows)));
}

#[test]
fn a_spool_of_the_format_before_goes_on_for_its_centre() {
    let disk = SimDisk::new(ByteCount::mib(1));
    let mut spool = open(&disk);
    let flow = spool.open_flow(NOW).unwrap();
    append(&mut spool, flow, 4);
    drop(spool);
    let mut body = (flow.0 + 1).to_be_bytes().to_vec();
    for part in [&flow.0.to_be_bytes()[..], &[0; 8], &2u64.to_be_bytes(), &[0]] {
        body.extend_from_slice(part);
    }
    crate::publish::save_state(&disk, "spool", "flows", &body).unwrap();
    disk.crash(1);
    let mut spool = open(&disk);
    let ids = spool.destinations_mut().set(&[shadow("trial"), counted("oper")]).unwrap();
    assert_eq!(all_for(&mut spool, ids[1]), [2, 3], "the first that counts is the centre");
    assert_eq!(all_for(&mut spool, ids[0]), [0; 0]);
    disk.crash(2);
    let mut spool = open(&disk);
    assert_eq!(spool.destinations_mut().find("oper"), Some(ids[1]));
    assert_eq!(all_for(&mut spool, ids[1]), [2, 3]);
}

#[derive(Debug, Clone)]
enum Op {
    Append(usize),
    Open(Settle),
    Close(usize),
    Receipt(usize, usize, u64),
    Free(u64),
    Crash(u64),
    Remove(usize),
    Add,
}

fn op() -> impl Strategy<Value = Op> {
    let settle = prop::sample::select(vec![Settle::All, Settle::Any, Settle::First]);
    prop_oneof![
        20 => (0usize..4).prop_map(Op::Append),
        3 => settle.prop_map(Op::Open),
        2 => (0usize..4).prop_map(Op::Close),
        12 => (0usize..4, 0usize..8, 1u64..9).prop_map(|(to, flow, by)| Op::Receipt(to, flow, by)),
        3 => (0u64..20).prop_map(Op::Free),
        2 => any::<u64>().prop_map(Op::Crash),
        1 => (0usize..4).prop_map(Op::Remove),
        1 => Just(Op::Add),
    ]
}

/// What the test knows of a flow: how it settles, and how far each destination is.
#[derive(Debug)]
struct Known {
    settle: Settle,
    appended: u64,
    custody: BTreeMap<DestinationId, u64>,
    /// What is below this place was let go at some time: it stays so where the destination that
    /// had it is removed.
    let_go: u64,
}

impl Known {
    /// Notes what the rules let go now.
    fn note(&mut self, shadows: &[DestinationId]) {
        while self.let_go < self.appended && self.may_go(self.let_go, shadows) {
            self.let_go += 1;
        }
    }

    /// Whether the rules let a record go that not every destination has, or once did.
    fn may_go(&self, place: u64, shadows: &[DestinationId]) -> bool {
        if place < self.let_go {
            return true;
        }
        let counted: Vec<bool> = self
            .custody
            .iter()
            .filter(|(to, _)| !shadows.contains(to))
            .map(|(_, custody)| place < *custody)
            .collect();
        counted.is_empty()
            || match self.settle {
                Settle::All => counted.iter().all(|has| *has),
                Settle::Any => counted.contains(&true),
                Settle::First => counted[0],
            }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever comes: what must stay is here; each destination reads each place that it lacks
    /// once, as a block or as told gone; nothing that it must have is told gone.
    #[test]
    fn nothing_is_freed_early_and_no_loss_is_silent(ops in prop::collection::vec(op(), 1..120)) {
        // Room for a dozen records, so that nearly every run ends with a full spool.
        let open = |disk: &SimDisk| open_of(disk, ByteCount::new(1_000), ByteCount::new(4_400));
        let disk = SimDisk::new(ByteCount::mib(1));
        let mut spool = open(&disk);
        let mut declared = vec![counted("a"), counted("b"), shadow("s")];
        let mut ids = spool.destinations_mut().set(&declared).unwrap();
        let mut shadows = vec![ids[2]];
        let mut flows: BTreeMap<FlowId, Known> = BTreeMap::new();
        let mut now = NOW;
        for (number, op) in ops.into_iter().enumerate() {
            let open_flows: Vec<FlowId> =
                spool.queue().open_flows().iter().map(|open| open.flow).collect();
            match op {
                Op::Append(pick) if !open_flows.is_empty() => {
                    let flow = open_flows[pick % open_flows.len()];
                    if spool.append(flow, &[number as u8; 100], now).is_ok() {
                        flows.get_mut(&flow).unwrap().appended += 1;
                        spool.sync().unwrap();
                    }
                }
                Op::Open(settle) if open_flows.len() < 4 => {
                    let flow = spool.open_flow(now).unwrap();
                    spool.destinations_mut().route(flow, &route(settle, &ids));
                    spool.free(now).unwrap();
                    let custody = ids.iter().map(|id| (*id, 0)).collect();
                    flows.insert(flow, Known { settle, appended: 0, custody, let_go: 0 });
                }
                Op::Close(pick) if !open_flows.is_empty() => {
                    spool.close_flow(open_flows[pick % open_flows.len()]).unwrap();
                }
                Op::Receipt(to, flow, by) if !flows.is_empty() => {
                    let to = ids[to % ids.len()];
                    let flow = *flows.keys().nth(flow % flows.len()).unwrap();
                    let known = flows.get_mut(&flow).unwrap();
                    if let Some(custody) = known.custody.get_mut(&to) {
                        *custody = (*custody + by).min(known.appended);
                        spool.custody(to, flow, Seq(*custody));
                    }
                }
                Op::Free(seconds) => {
                    now = now + Duration::from_secs(seconds);
                    spool.free(now).unwrap();
                }
                Op::Crash(seed) => {
                    drop(spool);
                    disk.crash(seed);
                    spool = open(&disk);
                    // The greetings of all.
                    for (flow, known) in &flows {
                        for (to, custody) in &known.custody {
                            spool.resume(*to, *flow, Seq(*custody));
                        }
                    }
                }
                Op::Remove(pick) if declared.len() > 1 => {
                    declared.remove(pick % declared.len());
                }
                Op::Add if declared.len() < 4 => {
                    declared.push(counted(&format!("n{number}")));
                }
                _ => continue,
            }
            let set = spool.destinations_mut().set(&declared).unwrap();
            flows.values_mut().for_each(|known| known.custody.retain(|to, _| set.contains(to)));
            shadows.retain(|to| set.contains(to));
            ids = set;
            for (flow, known) in &mut flows {
                known.note(&shadows);
                for place in 0..known.appended {
                    let is_here = spool.queue().is_here(*flow, Seq(place));
                    prop_assert!(
                        is_here || known.may_go(place, &shadows),
                        "{flow:?} {place} is gone: {known:?}"
                    );
                }
            }
        }
        for to in &ids {
            let mut reader = spool.queue().reader_from_custody(*to);
            let mut read: BTreeMap<FlowId, Vec<u64>> = BTreeMap::new();
            while let Some(item) = spool.queue_mut().read(&mut reader).unwrap() {
                let (flow, first, last, is_block) = match item {
                    SpoolItem::Block(record) => (record.flow, record.seq, record.seq, true),
                    SpoolItem::Missing { flow, first, last } => (flow, first, last, false),
                };
                for place in first.0..=last.0 {
                    prop_assert!(
                        is_block || flows[&flow].may_go(place, &shadows),
                        "{flow:?} {place} is told gone"
                    );
                    read.entry(flow).or_default().push(place);
                }
            }
            for (flow, known) in &flows {
                let Some(custody) = known.custody.get(to) else { continue };
                // Of an open flow the newest is here, and nothing behind it is told.
                let expected: Vec<u64> = (*custody..known.appended).collect();
                let read = read.remove(flow).unwrap_or_default();
                prop_assert_eq!(&read, &expected, "{:?} to {:?}: {:?}", flow, to, known);
            }
        }
        prop_assert_eq!(spool.stats().missing, 0);
    }
}
