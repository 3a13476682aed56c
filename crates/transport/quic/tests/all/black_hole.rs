//! Lines that carry less than they did: nothing at all, or only short datagrams.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::nodes::{CALLED, CALLER, World};
use skyhaul_transport::{PathId, PathState, PathStatus};
use skyhaul_units::Duration;

const FIRST: PathId = PathId(0);
const SECOND: PathId = PathId(1);
/// Blocks of 20 kB.
const BLOCKS: usize = 150;
const VOLUME: u64 = 20_000 * BLOCKS as u64;

fn status(world: &mut World, path: PathId) -> PathStatus {
    let id = world.nodes[CALLER].session.unwrap();
    let session = world.nodes[CALLER].manager.session(id).unwrap();
    session.paths().iter().find(|(id, _)| *id == path).unwrap().1
}

fn under_way() -> World {
    let mut world = World::connected(3);
    world.send(BLOCKS);
    assert!(world.run(5, |world| world.nodes[CALLED].received.len() > 10));
    world
}

fn arrives(world: &mut World, count: usize, seconds: u64) -> Duration {
    let began = world.now;
    let done = world.run(seconds, |world| world.nodes[CALLED].received.len() == count);
    let came = world.nodes[CALLED].received.len();
    assert!(done, "{came} of {count} after {seconds} s, {:?}", status(world, FIRST));
    world.now.since(began)
}

#[test]
fn where_large_packets_vanish_in_mid_session_smaller_ones_bring_everything() {
    for (largest, expected) in [(1_200, 1_200), (1_334, 1_200), (1_335, 1_335), (1_450, 1_335)] {
        let mut world = under_way();
        let full = status(&mut world, FIRST).payload;
        world.largest.insert(0, largest);
        let took = arrives(&mut world, BLOCKS, 10);
        let sent = world.sent[CALLER];
        println!("{largest} bytes: {took}, {sent} bytes sent for {VOLUME}");
        assert!(took < Duration::from_secs(3), "{largest} bytes: {took}");
        assert!(sent < VOLUME * 2, "{largest} bytes: {sent} sent for {VOLUME}");
        assert!(world.nodes[CALLER].stalled.is_empty(), "the path itself mends it");
        // Of the full size, the one half-way and the smallest, the search ends at the largest that
        // the line carries.
        world.run(3, |_| false);
        assert!(world.nodes[CALLER].resized.contains(&FIRST));
        let now = status(&mut world, FIRST).payload + (1_472 - full);
        assert_eq!(now, expected, "{largest} bytes");
    }
}

#[test]
fn the_full_size_is_used_again_a_minute_after_the_line_carries_it_again() {
    let mut world = under_way();
    let full = status(&mut world, FIRST).payload;
    world.largest.insert(0, 1_300);
    arrives(&mut world, BLOCKS, 10);
    world.run(2, |_| false);
    assert!(status(&mut world, FIRST).payload < full);
    world.largest.clear();
    world.run(70, |_| false);
    world.send(1);
    arrives(&mut world, BLOCKS + 1, 2);
    assert_eq!(status(&mut world, FIRST).payload, full);
}

#[test]
fn a_line_that_brings_no_full_datagram_of_any_size_counts_as_a_black_hole_until_it_does() {
    let mut world = under_way();
    world.largest.insert(0, 1_100);
    assert!(world.run(10, |world| world.nodes[CALLER].stalled.contains(&FIRST)));
    assert_eq!(status(&mut world, FIRST).state, PathState::BlackHole);
    let before = world.sent[CALLER];
    world.run(20, |_| false);
    let sent = world.sent[CALLER] - before;
    assert!(sent < 400_000, "{sent} bytes in 20 s into a black hole");
    // Another line takes over.
    assert_eq!(world.join(1), SECOND);
    let took = arrives(&mut world, BLOCKS, 5);
    assert_eq!(status(&mut world, FIRST).state, PathState::BlackHole, "after {took}");
    world.largest.clear();
    assert!(world.run(3, |world| world.nodes[CALLER].back.contains(&FIRST)));
    assert_eq!(status(&mut world, FIRST).state, PathState::Active);
}

#[test]
fn an_only_path_from_which_nothing_is_heard_is_silent_within_a_second_and_little_is_sent_there() {
    let mut world = under_way();
    world.cut.insert(0);
    let (cut, before) = (world.now, world.sent[CALLER]);
    assert!(world.run(10, |world| world.nodes[CALLER].stalled.contains(&FIRST)));
    let noticed = world.now.since(cut);
    assert!(
        (Duration::from_millis(900)..Duration::from_millis(1_200)).contains(&noticed),
        "{noticed}"
    );
    assert_eq!(status(&mut world, FIRST).state, PathState::Silent);
    let first_second = world.sent[CALLER] - before;
    world.run(25, |_| false);
    let sent = world.sent[CALLER] - before - first_second;
    println!("{first_second} bytes until it was noticed, {sent} in the 25 s after");
    assert!(sent < 100_000, "{sent} bytes in 25 s into a line that is cut");
    world.cut.clear();
    let took = arrives(&mut world, BLOCKS, 10);
    assert!(took < Duration::from_secs(3), "{took} after the line was back");
    assert!(world.nodes[CALLER].back.contains(&FIRST));
    assert_eq!(status(&mut world, FIRST).state, PathState::Active);
}

#[test]
fn another_path_that_comes_up_takes_over_from_a_silent_one() {
    let mut world = under_way();
    world.cut.insert(0);
    assert!(world.run(3, |world| world.nodes[CALLER].stalled.contains(&FIRST)));
    assert_eq!(world.join(1), SECOND);
    let took = arrives(&mut world, BLOCKS, 5);
    assert!(took < Duration::from_secs(2), "{took}");
    assert!(
        world.run(2, |world| world.nodes[CALLER].custody == BLOCKS as u64),
        "receipts come on it too"
    );
}
