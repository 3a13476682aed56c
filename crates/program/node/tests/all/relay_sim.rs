//! Relays, in virtual time: whatever happens to the nodes of a chain and the lines between them,
//! each block that the station promised is at each node behind it once, in order, as it was.
//!
//! `SKYHAUL_RUNG=all` runs 300 seeds of each length; `SKYHAUL_SEEDS=40` runs as many as that, and
//! `SKYHAUL_SEED=17` runs one again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::relays::{Chain, Passage};
use crate::rung::is_all;
use skyhaul_units::Duration;

#[test]
fn everything_promised_is_at_each_node_of_a_chain_once_whatever_happens() {
    let (first, count) = match (number("SKYHAUL_SEED"), number("SKYHAUL_SEEDS")) {
        (Some(seed), _) => (seed, 1),
        (None, seeds) => (0, seeds.unwrap_or(if is_all() { 300 } else { 6 })),
    };
    for relays in 1..=3 {
        let mut total = Passage::default();
        for seed in first..first + count {
            let passage = run(Chain::new(relays, seed), (relays, seed));
            total.blocks += passage.blocks;
            total.connections += passage.connections;
            total.settled_after = total.settled_after.max(passage.settled_after);
        }
        told(&format!(
            "{relays} relays, {count} seeds: {} blocks over {} connections, settled {:.1} s after \
             a pass",
            total.blocks,
            total.connections,
            total.settled_after.as_secs_f64()
        ));
        assert!(total.blocks >= count * 20, "the runs did next to nothing");
    }
}

/// 88: a relay died after it had finished a contact, and before it knew.
#[test]
fn a_relay_that_dies_while_it_finishes_a_contact_has_finished_it() {
    run(Chain::new(1, 88), (1, 88));
}

/// 117: blocks of a station that had died waited at a full disk, and overtook those of its next
/// connection, which went on for ever without receipts where it was not refused.
#[test]
fn a_connection_that_blocks_of_an_earlier_one_overtook_begins_anew() {
    run(Chain::new(1, 117), (1, 117));
}

/// 254: the spool freed the end of a contact, which synced it; the model waited for a sync of its
/// own before it closed the contact.
#[test]
fn a_contact_whose_end_was_freed_is_closed() {
    run(Chain::new(1, 254), (1, 254));
}

/// Blocks are passed on while the contact comes in. Beside the delay of the line a hop costs two
/// syncs of 3 to 7 ms, and the 10 ms for which the store gathers blocks.
#[test]
fn a_hop_adds_thirty_milliseconds_at_most_to_most_blocks() {
    for relays in 1..=3 {
        let passage = run(Chain::calm(relays, 1), (relays, 1));
        let mut added = passage.added;
        added.sort_unstable();
        let median = added[added.len() / 2];
        told(&format!(
            "{relays} relays: a hop adds {:.1} ms, the slowest block of {} {:.1} ms",
            median.as_secs_f64() * 1e3,
            added.len(),
            added[added.len() - 1].as_secs_f64() * 1e3
        ));
        assert!(added.len() as u64 > passage.blocks / 2, "each hop is measured");
        assert!(median <= Duration::from_millis(30), "{median:?}");
    }
}

fn run(chain: Chain, (relays, seed): (usize, u64)) -> Passage {
    let _told = TellSeed { relays, seed };
    chain.run()
}

/// Names the seed when the run fails.
struct TellSeed {
    relays: usize,
    seed: u64,
}

impl Drop for TellSeed {
    #[allow(clippy::print_stderr, reason = "the seed is what whoever reads the failure needs")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "{} relays, seed {1} failed; again: SKYHAUL_SEED={1} cargo test -p skyhaul-node \
                 --test all relay_sim",
                self.relays, self.seed
            );
        }
    }
}

#[allow(clippy::print_stdout, reason = "what a run was like is for whoever runs more of them")]
fn told(what: &str) {
    println!("{what}");
}

#[allow(clippy::disallowed_methods, reason = "how long a test runs is the caller's choice")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}
