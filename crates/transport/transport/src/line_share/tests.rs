//! Sessions that share a line: what each gets, and that the sum is what was declared.

mod world;

use super::*;
use crate::classes::ClassTree;
use proptest::prelude::*;
use skyhaul_units::{ByteCount, Duration};
use world::{Load, PATH, Together, at, tree};

const LINE: Rate = Rate::from_mbps(93);

/// Two classes with guarantees of 70 : 30, which leave a tenth of the line to be borrowed in the
/// same ratio.
const SEVENTY_THIRTY: &str = r#"
    class = [
        { name = "seventy", guarantee = "56 Mbit/s", quantum = "7 kB" },
        { name = "thirty", guarantee = "24 Mbit/s", quantum = "3 kB" },
    ]
"#;

/// Classes of two levels.
const NESTED: &str = r#"
    class = [
        { name = "live", guarantee = "20 Mbit/s", priority = 0, ceiling = "40 Mbit/s" },
        { name = "science", guarantee = "40 Mbit/s" },
        { name = "level0", parent = "science", guarantee = "25 Mbit/s" },
        { name = "products", parent = "science", guarantee = "10 Mbit/s", ceiling = "12 Mbit/s" },
        { name = "bulk", guarantee = "5 Mbit/s", priority = 6 },
    ]
"#;

fn assert_near(what: &str, got: Rate, expected: Rate, percent: u64) {
    let (got, expected) = (got.as_bps(), expected.as_bps());
    assert!(
        got.abs_diff(expected) * 100 <= expected * percent,
        "{what}: {got} bit/s, expected {expected} within {percent} %"
    );
}

/// The sum on the line, in IP packets: never above what was declared, and close to it.
fn assert_full(together: &Together, span: (u64, u64)) {
    let sum = together.packets(span);
    assert!(sum <= LINE, "{sum} of {LINE}");
    assert!(sum >= LINE.scaled(97, 100), "{sum} of {LINE}");
}

#[test]
fn guarantees_of_70_to_30_hold_across_sessions_whoever_is_asked_first() {
    for order in [["seventy", "thirty"], ["thirty", "seventy"]] {
        let mut together = Together::new(SEVENTY_THIRTY, LINE);
        for leaf in order {
            together.join([Load::of(leaf)]);
        }
        together.run(10_000);
        let span = (1_000, 10_000);
        assert_full(&together, span);
        let rates = [0, 1].map(|who| together.rate_of(who, None, span));
        let sum = Rate::from_bps(rates[0].as_bps() + rates[1].as_bps());
        for (who, leaf) in order.into_iter().enumerate() {
            let due = if leaf == "seventy" { 70 } else { 30 };
            assert_near(leaf, rates[who], sum.scaled(due, 100), 1);
        }
    }
}

#[test]
fn what_one_session_leaves_the_other_borrows_and_gives_back_within_20_ms() {
    let mut together = Together::new(SEVENTY_THIRTY, LINE);
    let seventy = Load { from: 4_000, until: 8_000, ..Load::of("seventy") };
    together.join([Load::of("thirty")]);
    together.join([seventy]);
    together.run(12_000);
    assert_full(&together, (100, 12_000));
    for span in [(100, 4_000), (8_100, 12_000)] {
        assert_full(&together, span);
        assert_eq!(together.rate_of(1, None, span), Rate::ZERO);
    }
    let seventy = together.rate_of(1, None, (4_020, 4_120));
    assert!(seventy >= Rate::from_mbps(56), "{seventy}");
    assert_near(
        "seventy",
        together.rate_of(1, None, (4_200, 8_000)),
        Rate::from_bps(together.rate_of(0, None, (4_200, 8_000)).as_bps() * 70 / 30),
        1,
    );
    let used = together.line.counters(tree(SEVENTY_THIRTY).find("thirty").unwrap());
    assert!(used.borrowed > ByteCount::new(0) && used.borrowed < used.sent, "{used:?}");
}

#[test]
fn without_guarantees_sessions_have_equal_shares_whatever_their_datagrams_sizes() {
    for sizes in [[1_400, 1_400, 1_400], [1_400, 200, 700], [100, 1_400, 9_000]] {
        let mut together = Together::new("", LINE);
        for size in sizes {
            together.join([Load { size, ..Load::of("default") }]);
        }
        together.run(4_000);
        let rates = [0, 1, 2].map(|who| together.rate_of(who, None, (500, 4_000)));
        let third = Rate::from_bps(rates.iter().map(|rate| rate.as_bps()).sum::<u64>() / 3);
        for rate in rates {
            assert_near("a third", rate, third, 1);
        }
        let sum = together.packets((500, 4_000));
        assert!(sum <= LINE && sum >= LINE.scaled(97, 100), "{sizes:?}: {sum}");
    }
}

#[test]
fn a_session_that_cannot_send_holds_nobody_up_and_is_back_at_once() {
    let mut together = Together::new(SEVENTY_THIRTY, LINE);
    together.join([Load::of("seventy")]).blocked = (3_000, 6_000);
    together.join([Load::of("thirty")]);
    together.run(9_000);
    assert_full(&together, (3_000, 6_000));
    assert_eq!(together.rate_of(0, None, (3_020, 6_000)), Rate::ZERO);
    assert_full(&together, (6_020, 9_000));
    let all = |span| {
        Rate::from_bps(
            together.rate_of(0, None, span).as_bps() + together.rate_of(1, None, span).as_bps(),
        )
    };
    let span = (6_020, 9_000);
    assert_near("seventy", together.rate_of(0, None, span), all(span).scaled(7, 10), 1);
}

#[test]
fn shares_hold_on_thin_lines_where_a_pacer_lets_one_datagram_go_at_a_time() {
    let thin = SEVENTY_THIRTY.replace(" Mbit/s", "00 kbit/s");
    let line = LINE.scaled(1, 10);
    for leaves in [["seventy", "thirty"], ["thirty", "seventy"]] {
        let mut together = Together::new(&thin, line);
        for leaf in leaves {
            together.join([Load::of(leaf)]).pace = Some(line);
        }
        together.run(20_000);
        let sum = together.packets((1_000, 20_000));
        assert!(sum <= line && sum >= line.scaled(97, 100), "{sum}");
        let rate = |who| together.rate_of(who, None, (1_000, 20_000)).as_bps();
        let all = Rate::from_bps(rate(0) + rate(1));
        let seventy = leaves.iter().position(|leaf| *leaf == "seventy").unwrap();
        assert_near("seventy", Rate::from_bps(rate(seventy)), all.scaled(7, 10), 1);
    }
}

#[test]
fn a_session_that_is_slower_than_its_guarantee_does_not_slow_the_other() {
    let mut together = Together::new(SEVENTY_THIRTY, LINE);
    together.join([Load::of("seventy")]).pace = Some(Rate::from_mbps(10));
    together.join([Load::of("thirty")]);
    together.run(5_000);
    assert_full(&together, (500, 5_000));
    let slow = together.rate_of(0, None, (500, 5_000));
    assert_near("the slow one", slow, Rate::from_mbps(10).scaled(1_400, 1_462), 10);
}

#[test]
fn a_session_below_its_share_has_what_it_wants_and_the_rest_goes_to_the_other() {
    let mut together = Together::new(SEVENTY_THIRTY, LINE);
    let rate = Some(Rate::from_mbps(20));
    together.join([Load::of("thirty")]);
    together.join([Load { rate, ..Load::of("seventy") }]);
    together.run(5_000);
    assert_full(&together, (500, 5_000));
    assert_near("thin", together.rate_of(1, None, (500, 5_000)), Rate::from_mbps(20), 1);
}

/// What the leaves of [`NESTED`] get of a line that all of them want, in the tree's order, and what
/// their sum is.
fn nested(sessions: &[&[&'static str]]) -> Vec<Rate> {
    let mut together = Together::new(NESTED, LINE);
    for leaves in sessions {
        together.join(leaves.iter().map(|leaf| Load::of(leaf)).collect::<Vec<_>>());
    }
    together.run(8_000);
    assert_full(&together, (1_000, 8_000));
    let span = (1_000, 8_000);
    let of = |leaf| {
        let rates = (0..sessions.len()).map(|who| together.rate_of(who, Some(leaf), span));
        Rate::from_bps(rates.map(Rate::as_bps).sum())
    };
    tree(NESTED).leaves().map(|(leaf, _)| of(leaf)).collect()
}

#[test]
fn classes_have_the_same_shares_in_three_sessions_as_in_one() {
    let all = ["live", "level0", "products", "bulk"];
    // An idle second session, so that the declared rate is shared.
    let one = nested(&[&all, &[]]);
    for sessions in
        [[&all[..], &all, &all], [&all[..2], &all[2..], &[]], [&all[1..], &all[..1], &all[2..3]]]
    {
        let several = nested(&sessions);
        for ((one, several), leaf) in one.iter().zip(&several).zip(all) {
            assert_near(leaf, *several, *one, 1);
        }
    }
}

#[test]
fn a_session_that_leaves_or_is_replaced_changes_nothing_for_the_others() {
    let mut together = Together::new("", LINE);
    for _ in 0..3 {
        together.join([Load::of("default")]);
    }
    together.run(1_000);
    together.sessions[0] = None;
    assert_eq!(together.line.sessions(), 2);
    together.run(2_000);
    assert_full(&together, (1_000, 2_000));
    let rates = [1, 2].map(|who| together.rate_of(who, None, (1_000, 2_000)));
    assert_near("those who stay", rates[1], rates[0], 1);
    together.join([Load::of("default")]);
    together.run(4_000);
    assert_full(&together, (2_000, 4_000));
    let rates = [1, 2, 3].map(|who| together.rate_of(who, None, (2_000, 4_000)));
    assert_near("the heir", rates[2], rates[0], 1);
    assert_near("the other", rates[1], rates[0], 1);
}

#[test]
fn the_tree_is_replaced_under_way() {
    let mut together = Together::new(SEVENTY_THIRTY, LINE);
    together.join([Load::of("seventy")]);
    together.join([Load::of("thirty")]);
    together.run(2_000);
    let swapped = SEVENTY_THIRTY.replace("seventy", "x").replace("thirty", "seventy");
    together.line.replace(tree(&swapped.replace('x', "thirty")));
    together.run(5_000);
    assert_full(&together, (2_000, 5_000));
    let rates = [0, 1].map(|who| together.rate_of(who, None, (2_500, 5_000)));
    let sum = Rate::from_bps(rates[0].as_bps() + rates[1].as_bps());
    assert_near("the first", rates[0], sum.scaled(3, 10), 1);
}

#[test]
fn a_rate_can_be_declared_anew_or_be_taken_back() {
    let mut together = Together::new("", LINE);
    together.join([Load::of("default")]);
    together.join([Load::of("default")]);
    together.run(1_000);
    together.line.declare(at(1_000), "fibre", Some(Rate::from_mbps(20))).unwrap();
    together.run(3_000);
    assert_near("less", together.packets((1_200, 3_000)), Rate::from_mbps(20), 1);
    together.line.declare(at(3_000), "fibre", None).unwrap();
    let member = &mut together.sessions[0].as_mut().unwrap().member;
    member.begin_turn(PATH);
    assert!(member.lets_repair(at(3_000), PATH));
}

#[test]
fn seats_and_paths_are_bounded_and_come_free_again() {
    let line = LineShare::new(ClassTree::default());
    let mut members: Vec<LineMember> =
        (0..LINE_SESSIONS_MAX).map(|_| line.join().unwrap()).collect();
    let full = line.join().unwrap_err();
    assert_eq!(full, LineShareError::TooManySessions);
    assert!(full.to_string().contains("16 sessions"), "{full}");
    members.pop();
    assert!(line.join().is_ok());
    let rate = Some(Rate::from_mbps(1));
    for number in 0..LINE_PATHS_MAX {
        line.declare(Instant::ZERO, &number.to_string(), rate).unwrap();
    }
    let full = line.declare(Instant::ZERO, "more", rate).unwrap_err();
    assert_eq!(full, LineShareError::TooManyPaths);
    assert_eq!(members[0].set_path(PATH, "more"), Err(full));
    // A path without a rate and without sessions makes room for another.
    line.declare(Instant::ZERO, "3", None).unwrap();
    line.declare(Instant::ZERO, "more", rate).unwrap();
    assert!(members[0].set_path(PATH, "more").is_ok());
}

#[test]
fn headers_and_what_the_path_sends_by_itself_are_charged_once() {
    let line = LineShare::new(ClassTree::default());
    line.declare(Instant::ZERO, "a", Some(Rate::from_bps(8_000_000).scaled(1_000, 995))).unwrap();
    let mut members = [line.join().unwrap(), line.join().unwrap()];
    members.iter_mut().for_each(|member| member.set_path(PATH, "a").unwrap());
    let [first, second] = &mut members;
    let free = |member: &mut LineMember, at| {
        member.begin_turn(PATH);
        member.lets_repair(at, PATH)
    };
    // 10,000 bytes in all at 1 MB/s: a debt of 10 ms.
    first.measured(Instant::ZERO, PATH, ByteCount::new(1_000));
    first.sent(at(0), PATH, 9_000);
    first.measured(at(0), PATH, ByteCount::new(10_000));
    assert!(!free(second, at(9)) && !free(first, at(9)));
    assert!(free(second, at(11)) && free(first, at(11)));
}

/// A choice of leaves as bits, and how much time passes before it.
fn questions() -> impl Strategy<Value = Vec<(u8, u64, u64)>> {
    proptest::collection::vec((any::<u8>(), 0u64..3_000, 40u64..9_000), 1..300)
}

/// Regression: it lost its room at the very moment at which the others had waited long enough for
/// it, and they, asked before it, were not asked again until it was back.
#[test]
fn a_session_that_loses_its_room_when_its_turn_is_over_does_not_stop_the_line() {
    let mut together = Together::new(NESTED, LINE);
    for (leaf, size, mbps, from, blocked) in [
        ("live", 2_004, None, 86, (0, 0)),
        ("products", 266, None, 14, (4, 105)),
        ("bulk", 1_556, None, 87, (0, 0)),
        ("live", 5_837, Some(7), 6, (720, 764)),
        ("level0", 413, None, 71, (618, 762)),
    ] {
        let load = Load { size, rate: mbps.map(Rate::from_mbps), from, ..Load::of(leaf) };
        together.join([load]).blocked = blocked;
    }
    together.join([Load::of("level0")]);
    together.run(800);
    // The line saves 20 ms at most of what nobody sends.
    for begin in (0..780).step_by(10) {
        let sum = together.packets((begin, begin + 20));
        assert!(sum > LINE.scaled(3, 4), "{sum} from {begin} ms on");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn one_session_alone_decides_as_without_a_shared_line(questions in questions()) {
        for text in ["", SEVENTY_THIRTY, NESTED] {
            let mut alone = tree(text);
            let line = LineShare::new(tree(text));
            line.declare(Instant::ZERO, "fibre", Some(Rate::from_mbps(1))).unwrap();
            let mut member = line.join().unwrap();
            member.set_path(PATH, "fibre").unwrap();
            let mut now = Instant::ZERO;
            for (has, micros, bytes) in &questions {
                now += Duration::from_micros(*micros);
                let has = |leaf: ClassId| has & (1 << (leaf.0 % 8)) != 0;
                member.begin_turn(PATH);
                let (there, here) = (alone.pick(now, has), member.pick(now, PATH, has));
                prop_assert_eq!(there, here);
                prop_assert_eq!(alone.next_timeout(now, has), member.class_due(now, has));
                prop_assert_eq!(member.rate_due(now), None);
                if let Some(leaf) = there {
                    alone.charge(now, leaf, ByteCount::new(*bytes));
                    let _ = member.charge(now, leaf, ByteCount::new(*bytes));
                    member.sent(now, PATH, *bytes as usize);
                }
            }
            for (leaf, _) in alone.leaves() {
                prop_assert_eq!(alone.counters(leaf), line.counters(leaf));
            }
        }
    }

    #[test]
    fn random_sessions_fill_the_line_and_stay_within_it(
        loads in proptest::collection::vec(
            (0usize..4, 100usize..9_000, proptest::option::of(1u64..60), 0u64..300), 1..6),
        blocked in proptest::collection::vec((0u64..800, 0u64..300), 6),
    ) {
        let mut together = Together::new(NESTED, LINE);
        for ((leaf, size, mbps, from), (begin, span)) in loads.iter().zip(blocked) {
            let leaf = ["live", "level0", "products", "bulk"][*leaf];
            let rate = mbps.map(Rate::from_mbps);
            let load = Load { size: *size, rate, from: *from, ..Load::of(leaf) };
            together.join([load]).blocked = (begin, begin + span);
        }
        // One that always has data where nothing but the line holds it.
        together.join([Load::of("level0")]);
        together.run(1_000);
        let sum = together.packets((0, 1_000));
        // The credit of a short pause, and a datagram that overdraws.
        let most = LINE * Duration::from_millis(1_000 + 4) + ByteCount::new(9_062);
        prop_assert!(sum <= Rate::over(most, Duration::from_secs(1)), "{}", sum);
        prop_assert!(sum >= LINE.scaled(97, 100), "{}", sum);
    }
}
