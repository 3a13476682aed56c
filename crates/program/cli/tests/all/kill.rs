//! Real stations and centres, killed at random moments again and again while real recordings play
//! into them and cross a lossy line: every frame arrives once, and every product exists once.
//!
//! `SKYHAUL_KILLS=200` kills more often; `SKYHAUL_SEED` chooses other moments.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "the seed and the counts of a run are shown")]

mod field;
mod outcome;

use field::Field;
use outcome::Outcome;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

#[test]
fn nodes_killed_at_any_moment_lose_nothing_and_duplicate_nothing() {
    kill_again_and_again(&["centre"]);
}

/// The station feeds two centres; each of the three nodes is killed.
#[test]
fn two_centres_and_their_station_killed_at_any_moment_each_have_every_frame_once() {
    kill_again_and_again(&["centre", "backup"]);
}

fn kill_again_and_again(centres: &[&'static str]) {
    let wanted = number("SKYHAUL_KILLS").unwrap_or(8);
    let seed = number("SKYHAUL_SEED").unwrap_or(1);
    println!("seed {seed}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut field = Field::prepare(seed, centres);
    let (mut kills, mut passes) = (vec![0; field.count()], 0);
    while kills.iter().sum::<u64>() < wanted {
        passes += 1;
        field.begin_pass(passes);
        while !field.is_pass_over(passes) {
            field.wait(Duration::from_millis(rng.random_range(20..1_500)));
            let victim = rng.random_range(0..field.count());
            if kills.iter().sum::<u64>() < wanted && field.kill(victim) {
                kills[victim] += 1;
            }
        }
    }
    field.end();
    for name in centres {
        let outcome = Outcome::of(&field.folder().join(format!("{name}-products")));
        println!(
            "station and centres killed {kills:?} times in {passes} passes: {name} has {} frames \
            of {} contacts, {} products",
            outcome.frames, outcome.contacts, outcome.products
        );
        outcome.compare(passes);
    }
}

#[allow(clippy::disallowed_methods, reason = "how long a test runs is the caller's choice")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Both nodes change their keys again and again meanwhile: the files of the configuration list the
/// first ones to the end.
#[test]
fn nodes_that_change_their_keys_and_are_killed_meanwhile_lose_nothing() {
    let kills = number("SKYHAUL_KILLS").unwrap_or(8);
    let seed = number("SKYHAUL_SEED").unwrap_or(1);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut field = Field::prepare(seed, &["centre"]);
    let before = field.key_files();
    let (mut killed, mut begun, mut passes) = (0, 0, 0);
    while killed < kills || begun < 4 {
        passes += 1;
        field.begin_pass(passes);
        while !field.is_pass_over(passes) {
            field.wait(Duration::from_millis(rng.random_range(20..900)));
            let node = rng.random_range(0..field.count());
            begun += u64::from(field.rotate_key(node));
            // Any instant of the change, which takes a few round trips.
            field.wait(Duration::from_millis(rng.random_range(0..400)));
            let victim = rng.random_range(0..field.count());
            killed += u64::from(killed < kills && field.kill(victim));
        }
    }
    let after = field.key_files();
    field.end();
    let changed = before.iter().zip(&after).filter(|(before, after)| before != after).count();
    let outcome = Outcome::of(&field.folder().join("centre-products"));
    println!(
        "seed {seed}: {begun} changes of keys begun, nodes killed {killed} times in {passes} \
         passes: {} frames of {} contacts",
        outcome.frames, outcome.contacts
    );
    assert_eq!(changed, 2, "both nodes have another key than at the beginning");
    outcome.compare(passes);
}
