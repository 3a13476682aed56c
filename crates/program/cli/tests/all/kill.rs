//! Real stations and centres, killed at random moments again and again while real recordings play
//! into them and cross a lossy line: every frame arrives once, and every product exists once.
//!
//! `SKYHAUL_KILLS=200` kills more often; `SKYHAUL_SEED` chooses other moments.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod field;
mod outcome;

use crate::support::node::NODES;
use field::Field;
use outcome::Outcome;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

#[test]
fn nodes_killed_at_any_moment_lose_nothing_and_duplicate_nothing() {
    let wanted = number("SKYHAUL_KILLS").unwrap_or(12);
    let seed = number("SKYHAUL_SEED").unwrap_or(1);
    println!("seed {seed}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut field = Field::prepare(seed);
    let (mut kills, mut passes) = ([0; 2], 0);
    while kills[0] + kills[1] < wanted {
        passes += 1;
        field.begin_pass(passes);
        while !field.is_pass_over(passes) {
            field.wait(Duration::from_millis(rng.random_range(20..1_500)));
            let victim = rng.random_range(0..NODES.len());
            if kills[0] + kills[1] < wanted && field.kill(victim) {
                kills[victim] += 1;
            }
        }
    }
    field.end();
    let [stations, centres] = kills;
    let outcome = Outcome::of(field.folder());
    println!(
        "{stations} stations and {centres} centres killed in {passes} passes: {} frames of {} \
        contacts, {} products",
        outcome.frames, outcome.contacts, outcome.products
    );
    outcome.compare(passes);
}

#[allow(clippy::disallowed_methods, reason = "how long a test runs is the caller's choice")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}
