//! Random sequences of everything that can happen to two sessions over one to four paths: whatever it is, each reliable
//! block arrives once, in order, as it was; each expendable one is settled at both ends; the books balance after every
//! step; and once all is mended both ends fall silent.
//!
//! `SKYHAUL_SEEDS=10000` runs more; `SKYHAUL_SEED=17` runs one again, and makes it smaller if it fails.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod random;

use random::case::Case;
use random::world::{Summary, World};

#[test]
fn whatever_happens_everything_is_delivered_once_or_settled() {
    let (first, count) = match (number("SKYHAUL_SEED"), number("SKYHAUL_SEEDS")) {
        (Some(seed), _) => (seed, 1),
        (None, seeds) => (0, seeds.unwrap_or(200)),
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
    }
    println!("{count} seeds: {total:?}");
    assert!(
        count < 100 || total.delivered > count * 5 && total.expired > count,
        "the runs did next to nothing"
    );
}

/// Runs a seed; should it fail, the smallest case found is shown.
fn run(seed: u64) -> Summary {
    let case = Case::new(seed);
    if std::env::var("SKYHAUL_NOSHRINK").is_ok() {
        return World::run(&case);
    }
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
