//! Random sequences of everything that can happen to two sessions over one to four paths: whatever
//! it is, each reliable block arrives once, in order, as it was; each expendable one is settled at
//! both ends; the books balance after every step; and once all is mended both ends fall silent.
//!
//! `SKYHAUL_SEEDS=10000` runs more; `SKYHAUL_SEED=17` runs one again, and makes it smaller if it
//! fails.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use crate::random::case::{Case, Step, Wanted};
use crate::random::line::{Faults, LineConfig};
use crate::random::world::{Summary, World};
use skyhaul_units::{Duration, Rate};

#[test]
fn whatever_happens_everything_is_delivered_once_or_settled() {
    let (first, count) = match (number("SKYHAUL_SEED"), number("SKYHAUL_SEEDS")) {
        (Some(seed), _) => (seed, 1),
        (None, seeds) => (0, seeds.unwrap_or(100)),
    };
    let mut total = Summary::default();
    for seed in first..first + count {
        let summary = run(seed);
        total.delivered += summary.delivered;
        total.expired += summary.expired;
        total.cancelled += summary.cancelled;
        total.sessions += summary.sessions;
        total.stalls += summary.stalls;
        total.recovered += summary.recovered;
        total.memory = total.memory.max(summary.memory);
    }
    println!("{count} seeds: {total:?}");
    assert!(
        count < 100 || total.delivered > count * 5 && total.expired > count,
        "the runs did next to nothing"
    );
}

/// A transfer over 10 s there and back with 14 % lost in both directions: 6 MB at 10 Mbit/s, whose
/// flight is 12 MB. Four repetitions in a row bring all of it. The memory stays within what the
/// session states, and is counted: the blocks themselves, the transmissions under way, of which the
/// path tells the fates, and what is coded at the transfer's end, which is here all of it.
#[test]
fn a_round_trip_of_ten_seconds_with_a_seventh_lost_is_no_hindrance() {
    for measured in [false, true] {
        let faults = Faults { loss: 140, ..Faults::default() };
        let delay = [Duration::from_secs(5); 2];
        let line =
            LineConfig { rate: Rate::from_mbps(10), delay, payload: 1_438, measured, faults };
        let opened = Step::Wait(Duration::from_secs(60));
        let blocks = (0..100).map(|_| Step::Send(0, Wanted::durable(60_000)));
        let steps =
            [opened].into_iter().chain(blocks).chain([Step::Await(Duration::from_secs(120))]);
        let mut case = Case::over(&[line], steps.collect());
        (case.setup.window, case.setup.send_buffer) = (8_000_000, 8_000_000);
        let held = World::run(&case).memory;
        // What the line has under way, there and back, is no more than 12.5 MB; an end keeps 128
        // bytes for each datagram.
        let under_way = 12_500_000 / 1_500 * 128;
        let blocks = 100 * skyhaul_transport::cost(60_000);
        println!("{held} bytes held, {blocks} of them blocks, {under_way} for what is under way");
        assert!(
            (blocks..blocks + under_way + 12_500_000).contains(&held),
            "{held} of {blocks} in blocks"
        );
    }
}

fn line(rate: u64, delay_ms: u64) -> LineConfig {
    let delay = [Duration::from_millis(delay_ms); 2];
    let (rate, faults) = (Rate::from_mbps(rate), Faults::default());
    LineConfig { rate, delay, payload: 1_438, measured: true, faults }
}

#[test]
fn a_greeting_lost_with_the_first_path_is_said_again_on_the_second() {
    let lines = [line(1, 300), line(4, 60)];
    let steps = vec![
        Step::DropPath(0, 0),
        Step::Send(0, Wanted::durable(1_209)),
        Step::Await(Duration::from_secs(10)),
    ];
    World::run(&Case::over(&lines, steps));
}

/// The block that waits needs the room that the one behind it in its flow would take.
#[test]
fn no_reliable_block_overtakes_one_that_waits_for_a_block_of_another_flow() {
    let loose =
        |flow, len, priority| Wanted { durable: false, flow, priority, ..Wanted::durable(len) };
    let steps = vec![
        Step::Wait(Duration::from_secs(1)),
        Step::Send(0, loose(0, 19_401, 2)),
        Step::Send(0, Wanted { depends: Some(0), ..loose(1, 119, 2) }),
        Step::Send(0, loose(1, 16_649, 1)),
        Step::Await(Duration::from_secs(10)),
    ];
    let mut case = Case::over(&[line(40, 15)], steps);
    case.setup.window = 20_000;
    World::run(&case);
}

/// All that is sent again while nothing answers is little, and each look at it finds something to
/// do.
#[test]
fn an_only_path_that_is_cut_for_long_is_tried_less_and_less() {
    let steps = vec![
        Step::Wait(Duration::from_secs(1)),
        Step::Send(0, Wanted::durable(44_000)),
        Step::Cut(0, 3, Duration::from_secs(30)),
        Step::Await(Duration::from_secs(60)),
    ];
    World::run(&Case::over(&[line(40, 2)], steps));
}

/// 7: the tail of a second copy was never sent. 7281: what a path had lied about was not sent
/// again, because a shorter copy of its start was under way. 8258: reports were overtaken by later
/// ones on faster paths, each time, and what they alone said was ignored.
#[test]
fn seeds_that_failed_once() {
    for seed in [7, 7_281, 8_258] {
        run(seed);
    }
}

/// Runs a seed; should it fail, the smallest case found is shown.
fn run(seed: u64) -> Summary {
    let case = Case::new(seed);
    let outcome = std::panic::catch_unwind(|| World::run(&case));
    outcome.unwrap_or_else(|_| {
        let (case, failure) = Case::new(seed).shrunk(|case| {
            World::run(case);
        });
        panic!("seed {seed}: {failure}\n{:#?}\n{:?}", case.steps, case.setup);
    })
}

#[allow(clippy::disallowed_methods, reason = "how long a test runs is the caller's choice")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}
