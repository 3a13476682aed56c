//! Custody, in virtual time: whatever happens to both ends and the line between them, each captured
//! record that the station promised arrives in the centre's store once, in order, as it was.
//!
//! `SKYHAUL_SEEDS=5000` runs more; `SKYHAUL_SEED=17` runs one again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::custody::{Several, Summary, World};
use skyhaul_units::Duration;

#[test]
fn everything_promised_arrives_once_in_order_whatever_happens() {
    many(|seed| World::new(seed).run());
}

/// Two or three centres, of which one may be a shadow: crashes of either end, cuts, full disks,
/// stores put back, destinations removed and added again.
#[test]
fn each_destination_has_what_it_must_have_once_and_the_spool_holds_nothing_in_the_end() {
    let total = many(|seed| Several::new(seed).run());
    println!("{} segments gave way before every destination had them", total.gave_way);
    assert!(total.gave_way > 0 || number("SKYHAUL_SEED").is_some(), "nothing gave way");
}

/// State folders put back from older copies, cloned machines and stations with the same key.
#[test]
fn copies_of_a_spool_and_others_under_its_key_lose_nothing_and_mix_nothing() {
    let total = many(|seed| World::with_copies(seed).run());
    println!("{} spools went on as another one", total.parted);
    assert!(
        total.parted > 0 || number("SKYHAUL_SEED").is_some(),
        "no copy met what the centre had of another"
    );
}

#[test]
fn a_contact_of_which_nothing_is_left_does_not_wait_for_ever_where_its_spool_became_another() {
    run(|seed| World::with_copies(seed).run(), 111);
    run(|seed| World::with_copies(seed).run(), 250);
}

/// A copy met a centre that had a contact of the other copy, opened one of the same number
/// afterwards, and its first blocks were taken for what the centre had already.
#[test]
fn a_contact_of_a_number_that_another_copy_gave_is_another_one() {
    run(|seed| World::with_copies(seed).run(), 1_950);
}

/// Seeds of each kind of world in `make test`; `make simulate` runs thousands.
const SEEDS: u64 = 40;

#[allow(clippy::print_stdout, reason = "what a run was like is for whoever runs more of them")]
fn many(world: fn(u64) -> Summary) -> Summary {
    let (first, count) = match (number("SKYHAUL_SEED"), number("SKYHAUL_SEEDS")) {
        (Some(seed), _) => (seed, 1),
        (None, seeds) => (0, seeds.unwrap_or(SEEDS)),
    };
    let (mut total, mut slowest) = (Summary::default(), Duration::ZERO);
    for seed in first..first + count {
        let summary = run(world, seed);
        total.parted += summary.parted;
        total.gave_way += summary.gave_way;
        total.records += summary.records;
        total.flows += summary.flows;
        total.connections += summary.connections;
        slowest = slowest.max(summary.settled_after);
    }
    let Summary { records, flows, connections, .. } = total;
    println!(
        "{count} seeds: {records} records of {flows} flows over {connections} connections, settled \
        {:.1} s after a pass",
        slowest.as_secs_f64()
    );
    assert!(records >= count * 20 && connections >= count, "the runs did next to nothing");
    total
}

/// Once it was the only one, openings that the other had named were forgotten, and the spool was
/// taken for a copy.
#[test]
fn a_destination_that_is_added_again_does_not_make_the_spool_another_one() {
    run(|seed| Several::new(seed).run(), 389);
}

/// Segments behind one that is still needed had gone: a destination that began with what was kept
/// was told that the disk had lost them.
#[test]
fn what_had_gone_before_a_destination_was_added_is_no_damage() {
    run(|seed| Several::new(seed).run(), 43);
}

/// The last records of a contact had gone before earlier ones, which lay beside records of another:
/// a destination that began with what was kept was told that the disk had lost them.
#[test]
fn the_end_of_a_contact_that_had_gone_before_a_destination_was_added_is_no_damage() {
    run(|seed| Several::new(seed).run(), 1_845);
}

/// It had more of a contact than the spool had kept, which took that for another copy of itself.
#[test]
fn a_destination_that_is_added_again_may_have_more_than_what_is_kept() {
    run(|seed| Several::new(seed).run(), 699);
}

#[test]
fn a_receipt_for_what_an_earlier_session_brought_leaves_no_hole_in_the_next_one() {
    run(|seed| World::new(seed).run(), 76);
}

#[test]
fn a_report_of_room_that_got_lost_unnoticed_does_not_lock_the_line() {
    run(|seed| World::new(seed).run(), 601);
    run(|seed| World::new(seed).run(), 609);
}

fn run(world: fn(u64) -> Summary, seed: u64) -> Summary {
    let _told = TellSeed(seed);
    world(seed)
}

/// Names the seed when the run fails.
struct TellSeed(u64);

impl Drop for TellSeed {
    #[allow(clippy::print_stderr, reason = "the seed is what whoever reads the failure needs")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "seed {0} failed; again: SKYHAUL_SEED={0} cargo test -p skyhaul-node --test all \
                custody_sim",
                self.0
            );
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "how long a test runs is the caller's choice")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}
