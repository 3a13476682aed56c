//! What counts as lost, when, and what is forgotten.

use super::reordering::WINDOW_MIN;
use super::*;
use crate::wire::FlowReport;
use skyhaul_units::{FlowId, Seq};

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn slice(number: u32) -> SentDatagram {
    SentDatagram::Slice(Slice { flow: FlowId(0), seq: Seq(0), start: number, end: number + 1 })
}

fn add(inflight: &mut Inflight, millis: u64, number: u32) -> Token {
    inflight.add(at(millis), slice(number), None).0
}

/// A path with a round trip of 160 ms, measured eight times.
fn measured() -> Inflight {
    let mut inflight = Inflight::default();
    for number in 0..8 {
        let token = add(&mut inflight, u64::from(number), number);
        inflight.settle_arrived(token, at(u64::from(number) + 160));
    }
    while inflight.next_fate().is_some() {}
    inflight
}

fn lost(inflight: &mut Inflight, millis: u64) -> Vec<(SentDatagram, LossReason)> {
    let next = || inflight.next_lost(at(millis)).map(|(sent, _, verdict)| (sent, verdict));
    core::iter::from_fn(next).collect()
}

#[test]
fn what_is_overtaken_by_more_than_the_window_is_lost_and_no_sooner() {
    let mut inflight = measured();
    let [_, _, inside, beyond] = [(1_000, 0), (1_001, 1), (1_009, 2), (1_012, 3)]
        .map(|(millis, number)| add(&mut inflight, millis, number));
    inflight.settle_arrived(inside, at(1_169));
    assert_eq!(lost(&mut inflight, 1_169), [], "the window is 10 ms: a sixteenth of a round trip");
    inflight.settle_arrived(beyond, at(1_172));
    let both = [(slice(0), LossReason::Overtaken), (slice(1), LossReason::Overtaken)];
    assert_eq!(lost(&mut inflight, 1_172), both);
    assert_eq!(lost(&mut inflight, 1_172), [], "each is told once");
}

#[test]
fn the_window_grows_to_half_a_round_trip_when_what_was_called_lost_arrives() {
    let mut inflight = measured();
    let before = inflight.window();
    for round in 0..10 {
        let start = 1_000 + round * 1_000;
        let early = add(&mut inflight, start, 0);
        let late = add(&mut inflight, start + 150, 1);
        inflight.settle_arrived(late, at(start + 310));
        assert_eq!(lost(&mut inflight, start + 310).len(), 1);
        let arrival = inflight.settle_arrived(early, at(start + 311)).unwrap();
        assert!(arrival.was_judged);
    }
    let rtt = inflight.rtt();
    assert!(before < rtt / 8 && inflight.window() == rtt / 16 + rtt / 2, "{}", inflight.window());
}

#[test]
fn patience_ends_after_a_round_trip_and_doubles_until_something_arrives() {
    let mut inflight = measured();
    let mut sent = 1_000;
    let mut waits = Vec::new();
    for number in 0..8 {
        add(&mut inflight, sent, number);
        let due = inflight.next_timeout().unwrap();
        assert_eq!(lost(&mut inflight, due.as_nanos() / 1_000_000 - 1), []);
        assert_eq!(
            inflight.next_lost(due).map(|(_, _, verdict)| verdict),
            Some(LossReason::Overdue)
        );
        waits.push(due.since(at(sent)).as_millis());
        sent = due.as_nanos() / 1_000_000 + 1;
    }
    assert!((160..320).contains(&waits[0]), "{waits:?}");
    assert!((1..6).all(|step| waits[step].abs_diff(waits[step - 1] * 2) <= 1), "{waits:?}");
    assert_eq!(waits[7], waits[5], "but not for ever: {waits:?}");
    let silent =
        inflight.silent_at(Duration::from_millis(160), Duration::from_millis(320), 16).unwrap();
    assert!(silent <= at(1_480), "repetitions do not begin the silence anew: {silent}");
    let token = add(&mut inflight, sent, 9);
    inflight.settle_arrived(token, at(sent + 160));
    add(&mut inflight, sent + 161, 10);
    let wait = inflight.next_timeout().unwrap().since(at(sent + 161)).as_millis();
    assert!(wait.abs_diff(waits[0]) <= 5, "{wait} after {waits:?}");
    let silent = inflight.silent_at(Duration::from_millis(160), Duration::from_millis(320), 16);
    assert!(silent.is_none_or(|silent| silent > at(sent + 320)), "an answer came");
}

#[test]
fn fates_come_in_the_order_of_sending_whatever_is_told_first() {
    let mut inflight = measured();
    let tokens = [0, 1, 2, 3].map(|number| add(&mut inflight, 1_000 + u64::from(number), number));
    inflight.settle_arrived(tokens[3], at(1_163));
    inflight.settle_lost(tokens[1]);
    assert_eq!(inflight.next_fate(), None, "the first is open");
    inflight.settle_arrived(tokens[0], at(1_164));
    let known: Vec<bool> = core::iter::from_fn(|| inflight.next_fate()).collect();
    assert_eq!(known, [false, true]);
    assert_eq!(inflight.judge_all(), [slice(2)]);
    assert_eq!(inflight.next_fate(), None, "a path given up may be back");
    let later = add(&mut inflight, 1_300, 4);
    inflight.settle_arrived(later, at(1_460));
    let known: Vec<bool> = core::iter::from_fn(|| inflight.next_fate()).collect();
    assert_eq!(known, [true, false, false], "what was sent after it has arrived");
    assert!(inflight.settle_arrived(tokens[2], at(1_461)).unwrap().was_judged);
    assert_eq!(inflight.len(), 0);
}

#[test]
fn a_silence_that_was_none_changes_neither_the_window_nor_the_measured_loss() {
    let mut inflight = measured();
    let (window, patience) = (inflight.window(), inflight.patience.now());
    let tokens: Vec<Token> =
        (0..100).map(|number| add(&mut inflight, 1_000 + number, number as u32)).collect();
    assert_eq!(inflight.judge_all().len(), 100);
    for (place, token) in (0..).zip(tokens) {
        assert!(inflight.settle_arrived(token, at(1_400 + place)).unwrap().was_judged);
        assert_eq!(inflight.next_fate(), Some(false));
    }
    // The late answers are a round trip like any other.
    assert_eq!(inflight.window(), (inflight.rtt() / 16).max(WINDOW_MIN));
    assert!(inflight.window() >= window && inflight.patience.now() < patience * 4);
    assert_eq!((inflight.len(), inflight.next_timeout()), (0, None));
}

#[test]
fn what_the_far_end_lacks_is_lost_once_it_should_have_come() {
    let mut inflight = measured();
    let tokens = [0, 1, 2].map(|number| add(&mut inflight, 1_000 + u64::from(number) * 20, number));
    let missing = |start, end| FlowReport { missing: vec![(start, end)], ..FlowReport::default() };
    let flight = Duration::from_millis(80);
    let miss = |inflight: &mut Inflight, flows: &[FlowReport], made| {
        let (slices, _) = inflight.miss(&MissingAtFarEnd::of(flows), at(made), flight);
        slices.iter().map(|slice| slice.start).collect::<Vec<_>>()
    };
    let all = [missing(0, None)];
    assert_eq!(
        miss(&mut inflight, &all, 1_099),
        [],
        "80 ms of flight, a window and a margin of 10 ms each"
    );
    let elsewhere = [
        FlowReport { next: 1, ..missing(0, None) },
        FlowReport { flow: FlowId(1), ..missing(0, None) },
    ];
    assert_eq!(miss(&mut inflight, &elsewhere, 1_400), [], "other blocks are lacking");
    assert_eq!(miss(&mut inflight, &[missing(1, Some(2))], 1_125), [1]);
    assert_eq!(
        miss(&mut inflight, &all, 1_125),
        [0],
        "each is told once, and the last is under way yet"
    );
    assert!(lost(&mut inflight, 1_125).is_empty());
    // All of them come after all: the way there is longer than half a round trip.
    for token in tokens {
        inflight.settle_arrived(token, at(1_210));
    }
    assert_eq!((inflight.order.detour_eighths, inflight.order.window_eighths), (2, 0));
    add(&mut inflight, 2_000, 0);
    assert_eq!(miss(&mut inflight, &all, 2_130), []);
    assert_eq!(miss(&mut inflight, &all, 2_170), [0]);
}

#[test]
fn what_owes_an_answer_is_given_once_and_what_is_coded_or_called_lost_is_not() {
    let mut inflight = measured();
    let tokens = [0, 1, 2].map(|number| add(&mut inflight, 1_000 + u64::from(number) * 20, number));
    inflight.add(at(1_050), slice(3), Some(Sid::from_wire(1)));
    inflight.add(at(1_050), SentDatagram::Notice, None);
    inflight.settle_arrived(tokens[0], at(1_160));
    let missing = [FlowReport { missing: vec![(1, Some(2))], ..FlowReport::default() }];
    assert_eq!(
        inflight.miss(&MissingAtFarEnd::of(&missing), at(1_200), Duration::from_millis(80)).0.len(),
        1
    );
    let starts = |slices: Vec<Slice>| slices.iter().map(|slice| slice.start).collect::<Vec<_>>();
    assert_eq!(starts(inflight.unanswered()), [2]);
    add(&mut inflight, 1_210, 4);
    assert_eq!(starts(inflight.unanswered()), [4]);
    assert_eq!(starts(inflight.unanswered()), []);
}

#[test]
fn what_is_lacking_in_a_row_ends_with_the_last_that_should_have_come_and_with_news_of_any_later() {
    let mut inflight = measured();
    let tokens = [0, 1, 2, 3].map(|number| add(&mut inflight, 1_000 + u64::from(number), number));
    let mut in_a_row = |missing: Vec<(u32, Option<u32>)>, made, arrived: Option<Token>| {
        if let Some(token) = arrived {
            inflight.settle_arrived(token, at(1_163));
        }
        let flows = [FlowReport { missing, ..FlowReport::default() }];
        inflight.miss(&MissingAtFarEnd::of(&flows), at(made), Duration::from_millis(80)).1
    };
    assert_eq!(
        in_a_row(vec![(0, Some(2))], 1_120, None),
        0,
        "two are lacking, and two behind them are not"
    );
    assert_eq!(
        in_a_row(vec![(0, Some(1)), (2, None)], 1_120, None),
        2,
        "one before them is not lacking"
    );
    assert_eq!(in_a_row(vec![(0, None)], 1_120, None), 4, "what was called lost counts on");
    assert_eq!(
        in_a_row(vec![(0, Some(3))], 1_170, Some(tokens[3])),
        0,
        "the path brought one sent later"
    );
}

#[test]
fn the_longer_the_bursts_of_loss_the_more_must_be_unanswered_for_a_quick_silence() {
    let mut inflight = measured();
    for number in 0..64 {
        add(&mut inflight, 1_000 + number, number as u32);
    }
    let silent_at = |bursts| {
        inflight
            .silent_at(Duration::from_millis(160), Duration::from_millis(320), many(bursts))
            .unwrap()
    };
    assert_eq!([many(1_000), many(1_500), many(8_000)], [16, 18, 96]);
    assert_eq!(silent_at(1_000), at(1_016 + 160 + 75));
    assert_eq!(silent_at(4_000), at(1_048 + 160 + 75));
    assert_eq!(silent_at(8_000), at(1_320), "not so many were sent");
}

#[test]
fn no_more_is_remembered_than_the_bound_and_the_oldest_counts_as_lost() {
    let mut inflight = Inflight::default();
    for number in 0..ENTRIES_MAX as u32 {
        assert_eq!(inflight.add(at(0), slice(number), Some(Sid::from_wire(number))).1, None);
    }
    assert_eq!(inflight.add(at(1), slice(0), None).1, Some(slice(0)));
    assert_eq!((inflight.len(), inflight.log.coded()), (ENTRIES_MAX, ENTRIES_MAX - 1));
    assert!(inflight.settle_recovered(Sid::from_wire(0)).is_none());
    assert_eq!(inflight.next_fate(), Some(true));
}
