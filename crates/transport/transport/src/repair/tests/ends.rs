//! Coder against decoder: any loss, order and repetition.

use crate::repair::*;
use proptest::prelude::*;
use skyhaul_units::{Duration, Instant, Probability};

/// A plan that adds `repairs` to each group of up to `sources`, dealt to `stride` groups.
fn plan(sources: u8, stride: u8, repairs: u8) -> RepairPlan {
    RepairPlan {
        sources,
        stride,
        // A table that never gives more than wanted and always that many: certain loss, held to a
        // share.
        repairs: fixed(repairs, sources),
        spare: u32::MAX,
        ..RepairPlan::default()
    }
}

fn fixed(repairs: u8, sources: u8) -> RepairTable {
    let every = RepairTable::for_target(
        GroupLosses::new(Probability::ONE, Probability::ONE, 1),
        Probability::from_ppb(1),
    );
    every.capped(u32::from(repairs), u32::from(sources))
}

fn content(number: usize) -> Bytes {
    let len = 1 + number * 37 % 90;
    Bytes::from((0..len).map(|at| (at * number + 11 * at) as u8 ^ 0xa5).collect::<Vec<u8>>())
}

/// Protects `count` datagrams due in a second and gives everything that is sent for them, the open
/// group closed.
fn sent(coder: &mut Coder, count: usize) -> (Vec<(Sid, Bytes)>, Vec<RepairSymbol>) {
    let due = Some(Instant::ZERO + Duration::from_secs(1));
    let sources = (0..count)
        .map(|number| (coder.protect(Instant::ZERO, &content(number), due), content(number)));
    let sources = sources.collect();
    let at_due = Instant::ZERO + Duration::from_secs(1);
    let repairs = core::iter::from_fn(|| coder.poll(at_due)).collect();
    (sources, repairs)
}

fn recovered(decoder: &mut RepairDecoder) -> Vec<(Sid, Bytes)> {
    core::iter::from_fn(|| decoder.poll()).collect()
}

fn balanced(decoder: &RepairDecoder) {
    let counted = decoder.counters();
    assert_eq!(
        counted.repairs,
        counted.used + counted.wasted + counted.rejected + decoder.held() as u64
    );
}

#[test]
fn what_was_lost_comes_back_as_it_was() {
    let mut coder = Coder::new();
    coder.adopt(plan(10, 1, 3));
    let (sources, repairs) = sent(&mut coder, 10);
    assert_eq!(repairs.len(), 3);
    let mut decoder = RepairDecoder::new();
    for (at, (sid, content)) in sources.iter().enumerate() {
        if ![0, 4, 9].contains(&at) {
            decoder.source(*sid, content.clone());
        }
    }
    for repair in repairs {
        assert!(recovered(&mut decoder).is_empty());
        decoder.repair(repair);
    }
    let expected: Vec<(Sid, Bytes)> = [0, 4, 9].map(|at| sources[at].clone()).to_vec();
    assert_eq!(recovered(&mut decoder), expected);
    let counted = *decoder.counters();
    assert_eq!((counted.sources, counted.recovered, counted.used, counted.wasted), (7, 3, 3, 0));
    balanced(&decoder);
}

#[test]
fn strided_groups_are_closed_together_and_each_has_its_repairs() {
    let mut coder = Coder::new();
    coder.adopt(plan(4, 3, 1));
    let (sources, repairs) = sent(&mut coder, 11);
    let shapes: Vec<_> = repairs
        .iter()
        .map(|repair| (repair.first.to_wire(), repair.count, repair.stride, repair.index))
        .collect();
    assert_eq!(
        shapes,
        [(0, 4, 3, 0), (1, 4, 3, 0)],
        "the lane of three sources has less than a repair's share"
    );
    let mut decoder = RepairDecoder::new();
    for (sid, content) in sources.iter().filter(|(sid, _)| ![3, 4].contains(&sid.to_wire())) {
        decoder.source(*sid, content.clone());
    }
    repairs.into_iter().for_each(|repair| decoder.repair(repair));
    assert_eq!(recovered(&mut decoder), [sources[3].clone(), sources[4].clone()]);
}

#[test]
fn a_group_is_closed_by_its_span_or_before_its_earliest_deadline() {
    let mut coder = Coder::new();
    let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
    coder.adopt(RepairPlan {
        span: Duration::from_millis(50),
        lead: Duration::from_millis(10),
        ..plan(100, 1, 50)
    });
    coder.protect(ms(0), &content(1), Some(ms(100)));
    assert_eq!(coder.next_timeout(), Some(ms(50)));
    coder.protect(ms(1), &content(2), Some(ms(40)));
    assert_eq!(coder.next_timeout(), Some(ms(30)));
    assert_eq!(coder.poll(ms(29)), None);
    let repair = coder.poll(ms(30)).unwrap();
    assert_eq!((repair.first.to_wire(), repair.count), (0, 2));
    assert_eq!(coder.next_timeout(), None);
    assert_eq!(coder.protect(ms(31), &content(3), Some(ms(100))).to_wire(), 2);
}

/// A group of one or two has no repair, and so nothing had that went out within the lead of its
/// deadline.
#[test]
fn a_group_that_begins_late_stays_open_for_half_of_the_time_left() {
    let mut coder = Coder::new();
    let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
    coder.adopt(RepairPlan { lead: Duration::from_millis(9), ..plan(100, 1, 50) });
    coder.protect(ms(0), &content(1), Some(ms(8)));
    assert_eq!(coder.next_timeout(), Some(ms(4)));
    coder.protect(ms(1), &content(2), Some(ms(8)));
    assert_eq!((coder.poll(ms(3)), coder.poll(ms(4)).map(|repair| repair.count)), (None, Some(2)));
}

#[test]
fn a_group_that_nothing_more_joins_can_be_closed_at_once() {
    let mut coder = Coder::new();
    coder.adopt(plan(100, 1, 200));
    coder.protect(Instant::ZERO, &content(1), Some(Instant::FAR_FUTURE));
    assert!(!coder.has_repair());
    coder.close();
    assert!(coder.has_repair());
    assert_eq!(coder.poll(Instant::ZERO).map(|repair| (repair.count, repair.index)), Some((1, 0)));
}

#[test]
fn what_comes_too_late_for_all_or_is_settled_is_not_sent() {
    let mut coder = Coder::new();
    let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
    coder.adopt(plan(2, 1, 2));
    for number in 0..2 {
        coder.protect(ms(0), &content(number), Some(ms(10)));
    }
    assert_eq!(coder.poll(ms(11)), None);
    assert_eq!(coder.counters().abandoned, 1);
    let sids: Vec<Sid> =
        (0..2).map(|number| coder.protect(ms(20), &content(number), Some(ms(100)))).collect();
    sids.into_iter().for_each(|sid| coder.settled(sid));
    assert_eq!(coder.poll(ms(21)), None);
    assert_eq!((coder.counters().repairs, coder.counters().groups), (0, 2));
}

#[test]
fn sources_without_deadline_are_repaired_when_nothing_else_is_to_be_sent() {
    let mut coder = Coder::new();
    coder.adopt(plan(10, 1, 5));
    for number in 0..10 {
        coder.protect(Instant::ZERO, &content(number), None);
    }
    coder.protect(Instant::ZERO, &content(10), None);
    coder.protect(Instant::ZERO, &content(11), None);
    let later = Instant::ZERO + Duration::from_secs(100);
    assert_eq!((coder.next_timeout(), coder.poll(later)), (None, None));
    let tail: Vec<u8> =
        core::iter::from_fn(|| coder.poll_tail(later)).map(|repair| repair.count).collect();
    assert_eq!(tail, [10, 10, 10, 10, 10, 2]);
}

#[test]
fn repair_never_takes_more_than_the_room_it_was_told_of() {
    let mut coder = Coder::new();
    let share = RepairPlan::SPARE_UNIT / 10;
    let now = Instant::ZERO;
    let mut sent = 0;
    for number in 0..10_000 {
        coder.adopt(RepairPlan { spare: share, ..plan(2, 1, 4) });
        coder.protect(now, &Bytes::from(vec![number as u8; 100]), Some(now));
        sent += core::iter::from_fn(|| coder.poll(now)).count();
    }
    let allowed = 10_000 / 10 + 1_024;
    assert!((allowed * 9 / 10..=allowed).contains(&sent), "{sent} of {allowed}");
    assert!(coder.counters().unaffordable > 0);
}

#[test]
fn closed_groups_are_bounded() {
    let mut coder = Coder::new();
    coder.adopt(plan(200, 16, 1));
    for number in 0..100_000 {
        coder.protect(Instant::ZERO, &content(number), None);
    }
    let kept: usize = core::iter::from_fn(|| coder.poll_tail(Instant::ZERO)).count();
    assert!(kept <= RETAINED_MAX / 200 + 16, "{kept}");
    assert!(coder.counters().abandoned > 20);
}

#[test]
fn numbers_go_round() {
    for start in [0, 1, MASK - 5, MASK] {
        let mut decoder = RepairDecoder::new();
        let sid = |at: u32| Sid::from_wire(start.wrapping_add(at));
        for at in (0..12).filter(|at| *at != 5) {
            decoder.source(sid(at), content(at as usize));
        }
        let contents: Vec<Bytes> = (0..12).map(content).collect();
        let slices: Vec<&[u8]> = contents.iter().map(|content| &content[..]).collect();
        let lengths: Vec<[u8; 2]> =
            contents.iter().map(|content| (content.len() as u16).to_be_bytes()).collect();
        let lengths: Vec<&[u8]> = lengths.iter().map(|length| &length[..]).collect();
        let bytes = [
            skyhaul_coding::erasure::repair(1, &lengths, 2),
            skyhaul_coding::erasure::repair(1, &slices, 90),
        ]
        .concat();
        decoder.repair(RepairSymbol {
            first: sid(0),
            count: 12,
            stride: 1,
            index: 1,
            bytes: bytes.into(),
        });
        assert_eq!(recovered(&mut decoder), [(sid(5), content(5))], "from {start}");
    }
}

#[test]
fn symbols_that_contradict_each_other_recover_nothing() {
    let mut coder = Coder::new();
    coder.adopt(plan(6, 1, 2));
    let (sources, repairs) = sent(&mut coder, 6);
    let mut decoder = RepairDecoder::new();
    for (sid, content) in &sources[2..] {
        decoder.source(*sid, content.clone());
    }
    let mut bytes = repairs[0].bytes.to_vec();
    bytes[0] ^= 0x7f;
    decoder.repair(RepairSymbol { bytes: bytes.into(), ..repairs[0].clone() });
    decoder.repair(repairs[1].clone());
    assert_eq!(recovered(&mut decoder), []);
    assert_eq!((decoder.counters().failed_groups, decoder.counters().wasted), (1, 2));
    balanced(&decoder);
}

#[test]
fn what_no_honest_sender_sends_is_refused() {
    let good = RepairSymbol {
        first: Sid(7),
        count: 2,
        stride: 1,
        index: 0,
        bytes: Bytes::from_static(b"\0\0x"),
    };
    let mut decoder = RepairDecoder::new();
    for bad in [
        RepairSymbol { count: 0, ..good.clone() },
        RepairSymbol { stride: 0, ..good.clone() },
        RepairSymbol { stride: 17, ..good.clone() },
        RepairSymbol { count: 200, index: 56, ..good.clone() },
        RepairSymbol { bytes: Bytes::from_static(b"x"), ..good.clone() },
        RepairSymbol { bytes: Bytes::from(vec![0; 65_536]), ..good.clone() },
    ] {
        decoder.repair(bad);
    }
    assert_eq!(decoder.counters().rejected, 6);
    decoder.repair(good.clone());
    decoder.repair(RepairSymbol { index: 1, bytes: Bytes::from_static(b"\0\0xy"), ..good });
    assert_eq!((decoder.counters().rejected, decoder.held()), (7, 1));
    balanced(&decoder);
}

#[test]
fn what_waits_is_bounded_and_counted_when_it_is_given_up() {
    let mut decoder = RepairDecoder::new();
    let symbol = |first: u32, index| RepairSymbol {
        first: Sid::from_wire(first),
        count: 100,
        stride: 1,
        index,
        bytes: Bytes::from_static(b"\0\x01x"),
    };
    for round in 0..100u32 {
        (0..90).for_each(|index| decoder.repair(symbol(round * 100, index)));
        balanced(&decoder);
        assert!(decoder.held() <= REPAIRS_MAX);
    }
    assert!(decoder.counters().failed_groups >= 70);
    // A jump far ahead leaves nothing behind.
    decoder.source(Sid::from_wire(1 << 22), content(1));
    assert_eq!(decoder.held(), 0);
    assert_eq!(decoder.counters().failed_groups, 100);
    balanced(&decoder);
}

proptest! {
    #[test]
    fn any_loss_order_and_repetition_is_worked_through(
        sources in 1u8..40,
        stride in 1u8..=16,
        repairs in 0u8..12,
        count in 1usize..300,
        fates in prop::collection::vec((0u8..10, 0usize..200), 1_000),
    ) {
        let mut coder = Coder::new();
        coder.adopt(plan(sources, stride, repairs));
        let (all, symbols) = sent(&mut coder, count);
        // Fate 0 is lost, 1 arrives twice; the second value delays it by so many datagrams.
        let mut arrivals: Vec<(usize, usize)> = Vec::new();
        for (at, (fate, delay)) in fates.iter().cycle().take(all.len()
            + symbols.len()).enumerate() {
            for copy in 0..[0, 2, 1][usize::from(*fate).min(2)] {
                arrivals.push((at + delay * (1 + copy), at));
            }
        }
        arrivals.sort_unstable();
        let mut decoder = RepairDecoder::new();
        let mut here = std::collections::BTreeMap::new();
        for (_, at) in arrivals {
            match all.get(at) {
                Some((sid, content)) => {
                    decoder.source(*sid, content.clone());
                    here.insert(sid.to_wire(), content.clone());
                }
                None => decoder.repair(symbols[at - all.len()].clone()),
            }
            for (sid, found) in recovered(&mut decoder) {
                prop_assert_eq!(&found, &all[sid.to_wire() as usize].1);
                prop_assert!(here.insert(sid.to_wire(), found).is_none(), "recovered although it \
                                                                          was there");
            }
            balanced(&decoder);
        }
        // Whatever is still missing cannot be had: its group has more missing than repairs that
        // came.
        for symbol in &symbols {
            let numbers = (0..u32::from(symbol.count)).map(|at| symbol.first.to_wire() + at
                * u32::from(symbol.stride));
            let missing = numbers.filter(|number| !here.contains_key(number)).count();
            let lost = symbols.iter().enumerate().filter(|(at, other)| {
                other.first == symbol.first && fates[(all.len() + at) % fates.len()].0 == 0
            });
            let came = symbols.iter().filter(|other| other.first == symbol.first).count()
                - lost.count();
            prop_assert!(missing == 0 || missing > came);
        }
        prop_assert_eq!(decoder.counters().rejected, 0);
    }
}
