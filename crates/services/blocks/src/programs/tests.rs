use super::*;
use proptest::prelude::*;
use skyhaul_units::{ByteCount, Duration, Rate};

const UID: u32 = 1_000;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn programs() -> Programs {
    let mut programs = Programs::new(ProgramLimits::default());
    assert_eq!(programs.allow(vec![AllowRule::all(UID), AllowRule::all(7)]), []);
    programs
}

fn bytes(len: usize) -> Bytes {
    vec![7; len].into()
}

fn offer(programs: &mut Programs, id: ProgramId, number: u64, len: usize) {
    programs.offer(at(0), id, BlockRequest::reliable(number, 0), bytes(len)).unwrap();
}

fn next(programs: &mut Programs, now: Instant) -> Option<(ProgramId, u64)> {
    programs.next(now, |_| true).map(|block| (block.program, block.number))
}

#[test]
fn blocks_leave_in_order_and_are_held_until_their_fate_is_taken() {
    let mut programs = programs();
    let id = programs.admit(UID).unwrap();
    (1..=3).for_each(|number| offer(&mut programs, id, number, 1_000));
    for number in 1..=3 {
        assert_eq!(next(&mut programs, at(0)), Some((id, number)));
    }
    assert_eq!(next(&mut programs, at(0)), None);
    assert_eq!(programs.held(), 3 * cost(1_000));
    programs.settle(id, 2, BlockFate::Delivered);
    programs.settle(id, 2, BlockFate::Expired);
    programs.settle(id, 9, BlockFate::Expired);
    assert_eq!(programs.held(), 3 * cost(1_000), "nobody has heard of it");
    assert_eq!(programs.take_fates(id, 9), [(2, BlockFate::Delivered)]);
    assert_eq!((programs.held(), programs.has_fates(id)), (2 * cost(1_000), false));
    programs.leave(id);
    assert_eq!(programs.held(), 0);
    assert_eq!(
        programs.offer(at(0), id, BlockRequest::reliable(4, 0), bytes(1)),
        Err(BadBlock::Gone)
    );
}

#[test]
fn what_a_node_does_not_take_has_its_fate_at_once() {
    let mut programs = programs();
    let id = programs.admit(UID).unwrap();
    let reliable = |number| BlockRequest::reliable(number, 0);
    for (head, len, refusal) in [
        (reliable(1), 0, BlockRefusal::Length),
        (reliable(2), 1 << 24, BlockRefusal::Length),
        (BlockRequest { flow: 1_022, ..reliable(3) }, 1, BlockRefusal::Flow),
        (BlockRequest { expendable: true, ..reliable(4) }, 1, BlockRefusal::Deadline),
        (BlockRequest { depends_on: Some(5), ..reliable(5) }, 1, BlockRefusal::Dependency),
    ] {
        programs.offer(at(0), id, head, bytes(len)).unwrap();
        let fate = BlockFate::Refused(refusal);
        assert_eq!(programs.take_fates(id, 9), [(head.number, fate)]);
    }
    programs.refuse(id, reliable(6), BlockRefusal::Descriptor).unwrap();
    assert_eq!(programs.counters(id).refused, 6);
    for number in [0, 6, 8, u64::MAX] {
        let wrong = programs.offer(at(0), id, reliable(number), bytes(1));
        assert_eq!(wrong, Err(BadBlock::Number { number, expected: 7 }));
    }
}

#[test]
fn what_is_too_late_is_given_up_with_all_that_depends_on_it() {
    let mut programs = programs();
    let id = programs.admit(UID).unwrap();
    let expendable =
        |number| BlockRequest::expendable(number, 0, Duration::from_millis(number * 10));
    programs.offer(at(0), id, expendable(1), bytes(10)).unwrap();
    programs.offer(at(0), id, expendable(2), bytes(10)).unwrap();
    for (number, useful_alone) in [(3, false), (4, true)] {
        let head =
            BlockRequest { depends_on: Some(1), useful_alone, ..BlockRequest::reliable(number, 0) };
        programs.offer(at(0), id, head, bytes(10)).unwrap();
    }
    assert_eq!(programs.poll_timeout(), Some(at(10)));
    programs.expire(at(10));
    assert_eq!(programs.take_fates(id, 9), [(1, BlockFate::Expired)]);
    // What comes later and depends on it is given up at once.
    let head = BlockRequest { depends_on: Some(1), ..BlockRequest::reliable(5, 0) };
    programs.offer(at(10), id, head, bytes(10)).unwrap();
    assert_eq!(programs.take_fates(id, 9), [(5, BlockFate::Expired)]);
    assert_eq!(next(&mut programs, at(11)), Some((id, 2)));
    assert_eq!(next(&mut programs, at(11)), Some((id, 4)));
    assert_eq!(programs.take_fates(id, 9), [(3, BlockFate::Expired)]);
    assert_eq!((programs.poll_timeout(), next(&mut programs, at(11))), (None, None));
}

#[test]
fn programs_have_turns_of_the_same_bytes_whatever_their_blocks() {
    let mut programs = programs();
    let [small, large] = [(); 2].map(|()| programs.admit(UID).unwrap());
    (1..=4_000).for_each(|number| offer(&mut programs, small, number, 1_000));
    (1..=8).for_each(|number| offer(&mut programs, large, number, 1 << 20));
    let mut sent = BTreeMap::from([(small, 0), (large, 0)]);
    while sent[&small] < 3_000_000 {
        let block = programs.next(at(0), |_| true).unwrap();
        *sent.get_mut(&block.program).unwrap() += block.bytes.len();
        let (small, large) = (sent[&small], sent[&large]);
        assert!(small.abs_diff(large) < 2 << 20, "{small} and {large}");
    }
    assert!(sent[&large] >= 2 << 20);
}

#[test]
fn one_whose_session_takes_nothing_holds_nobody_up() {
    let mut programs = programs();
    let [stuck, other] = [(); 2].map(|()| programs.admit(UID).unwrap());
    offer(&mut programs, stuck, 1, 10);
    (1..=9).for_each(|number| offer(&mut programs, other, number, 10));
    for number in 1..=9 {
        let block = programs.next(at(0), |id| id != stuck).unwrap();
        assert_eq!((block.program, block.number), (other, number));
    }
    assert_eq!(programs.next(at(0), |id| id != stuck), None);
    assert_eq!(next(&mut programs, at(0)), Some((stuck, 1)));
}

#[test]
fn the_programs_of_a_user_keep_to_its_rate_together() {
    let mut programs = Programs::new(ProgramLimits::default());
    let rate = Some(Rate::from_mbps(8));
    programs.allow(vec![AllowRule { rate, ..AllowRule::all(UID) }, AllowRule::all(7)]);
    let its = [(); 2].map(|()| programs.admit(UID).unwrap());
    let free = programs.admit(7).unwrap();
    for id in its {
        (1..=2_000).for_each(|number| offer(&mut programs, id, number, 1_000));
    }
    offer(&mut programs, free, 1, 1_000);
    let (mut sent, mut free_sent, mut now) = (0, 0, at(0));
    while now < at(1_000) {
        while let Some((id, _)) = next(&mut programs, now) {
            *(if id == free { &mut free_sent } else { &mut sent }) += 1;
        }
        let due = programs.poll_timeout().unwrap();
        assert!(due > now);
        now = due;
    }
    // 1 MB a second and the burst of the beginning.
    assert!((1_000..1_110).contains(&sent), "{sent} blocks of 1 kB");
    assert_eq!(free_sent, 1);
}

#[test]
fn greedy_programs_leave_room_for_a_further_one_and_a_large_block_finds_some() {
    let mut programs = programs();
    let greedy: Vec<ProgramId> = (0..40).map(|_| programs.admit(UID).unwrap()).collect();
    let mut numbers = BTreeMap::new();
    loop {
        let mut is_full = true;
        for id in &greedy {
            if programs.room(*id) >= cost(60_000) {
                let number = numbers.entry(*id).and_modify(|number| *number += 1).or_insert(1);
                offer(&mut programs, *id, *number, 60_000);
                is_full = false;
            }
        }
        if is_full {
            break;
        }
    }
    assert!(programs.held() <= 256 << 20);
    let late = programs.admit(7).unwrap();
    assert!(programs.room(late) > 4 << 20, "{}", programs.room(late));
    assert!(!programs.claim(late, cost(12 << 20)), "the room is another one's");
    // From now on the others get nothing, until there is room for it.
    let mut rounds = 0;
    while !programs.claim(late, cost(12 << 20)) {
        assert!(greedy.iter().all(|id| programs.room(*id) < cost(60_000)));
        let (id, number) = next(&mut programs, at(0)).unwrap();
        programs.settle(id, number, BlockFate::Delivered);
        programs.take_fates(id, 1);
        rounds += 1;
    }
    assert!(rounds < 200, "{rounds}");
    offer(&mut programs, late, 1, 12 << 20);
    assert!(programs.held() <= 256 << 20);
}

#[test]
fn nobody_is_admitted_without_a_rule_or_beyond_the_limits() {
    let limits = ProgramLimits { programs: 3, per_user: 2, ..ProgramLimits::default() };
    let mut programs = Programs::new(limits);
    assert_eq!(programs.admit(UID), Err(AdmissionError::User(UID)));
    programs.allow(vec![AllowRule::all(UID), AllowRule::all(7)]);
    let first = programs.admit(UID).unwrap();
    programs.admit(UID).unwrap();
    assert_eq!(programs.admit(UID), Err(AdmissionError::UserFull { uid: UID, most: 2 }));
    let other = programs.admit(7).unwrap();
    assert_eq!(programs.admit(7), Err(AdmissionError::Full(3)));
    assert_eq!(programs.allow(vec![AllowRule::all(UID)]), [other]);
    programs.leave(other);
    programs.leave(first);
    assert!(programs.admit(UID).is_ok());
    let rule = AllowRule { classes: Some(vec!["bulk".to_owned()]), ..AllowRule::all(UID) };
    assert!(rule.allows("bulk") && !rule.allows("voice"));
}

/// What random programs do.
#[derive(Debug, Clone, Copy)]
enum Act {
    Offer { who: usize, len: usize, deadline: Option<u64>, depends: bool },
    Next,
    Settle { who: usize },
    Hear { who: usize },
    Leave { who: usize },
    Wait { millis: u64 },
}

fn act() -> impl Strategy<Value = Act> {
    let who = 0usize..4;
    let len = prop_oneof![4 => 1usize..2_000, 1 => 1usize << 20..4 << 20];
    let deadline = proptest::option::of(1u64..50);
    prop_oneof![
        6 => (who.clone(), len, deadline, any::<bool>()).prop_map(|(who, len, deadline, depends)| {
            Act::Offer { who, len, deadline, depends }
        }),
        5 => Just(Act::Next),
        3 => who.clone().prop_map(|who| Act::Settle { who }),
        3 => who.clone().prop_map(|who| Act::Hear { who }),
        1 => who.prop_map(|who| Act::Leave { who }),
        1 => (1u64..20).prop_map(|millis| Act::Wait { millis }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_block_has_one_fate_and_memory_is_bounded(
        acts in proptest::collection::vec(act(), 0..300),
    ) {
        let limits = ProgramLimits { total: ByteCount::mib(8), each: ByteCount::mib(5),
            ..ProgramLimits::default() };
        let mut programs = Programs::new(limits);
        programs.allow(vec![AllowRule::all(UID)]);
        let mut ids = [(); 4].map(|()| programs.admit(UID).unwrap());
        let mut open: [BTreeSet<u64>; 4] = Default::default();
        let mut away: [Vec<u64>; 4] = Default::default();
        let mut numbers = [0u64; 4];
        let mut now = at(0);
        for act in acts {
            match act {
                Act::Offer { who, len, deadline, depends } => {
                    if programs.room(ids[who]) < cost(len) {
                        continue;
                    }
                    numbers[who] += 1;
                    let number = numbers[who];
                    let deadline = deadline.map(Duration::from_millis);
                    let head = BlockRequest {
                        deadline,
                        expendable: deadline.is_some(),
                        depends_on: Some(number - 1).filter(|one| depends && *one > 0),
                        ..BlockRequest::reliable(number, 0)
                    };
                    programs.offer(now, ids[who], head, bytes(len)).unwrap();
                    open[who].insert(number);
                }
                Act::Next => {
                    if let Some(block) = programs.next(now, |_| true) {
                        let who = ids.iter().position(|id| *id == block.program).unwrap();
                        prop_assert!(!block.head.expendable || block.until > Some(now));
                        away[who].push(block.number);
                    }
                }
                Act::Settle { who } => {
                    if let Some(number) = away[who].pop() {
                        programs.settle(ids[who], number, BlockFate::Delivered);
                    }
                }
                Act::Hear { who } => {
                    for (number, _) in programs.take_fates(ids[who], 5) {
                        prop_assert!(open[who].remove(&number), "{number} has two fates");
                    }
                }
                Act::Leave { who } => {
                    programs.leave(ids[who]);
                    ids[who] = programs.admit(UID).unwrap();
                    (open[who], away[who], numbers[who]) = (BTreeSet::new(), Vec::new(), 0);
                }
                Act::Wait { millis } => now += Duration::from_millis(millis),
            }
            prop_assert!(programs.held() <= 8 << 20);
        }
        while let Some(block) = programs.next(now, |_| true) {
            programs.settle(block.program, block.number, BlockFate::Delivered);
        }
        for who in 0..4 {
            away[who].iter().for_each(|one| programs.settle(ids[who], *one, BlockFate::Sent));
            for (number, _) in programs.take_fates(ids[who], usize::MAX) {
                prop_assert!(open[who].remove(&number), "{number} has two fates");
            }
            prop_assert!(open[who].is_empty(), "{:?} have none", open[who]);
        }
        prop_assert_eq!(programs.held(), 0);
    }
}
