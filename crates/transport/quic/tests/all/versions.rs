//! Nodes of two versions of the protocol: the newest that both speak is spoken.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::nodes::{CALLED, CALLER, World};
use bytes::Bytes;
use skyhaul_transport::{Block, FlowId, ProtocolVersions};
use std::collections::BTreeMap;
use std::ops::Range;

/// A release, and the one after it, which speaks the version before too.
const OLD: ProtocolVersions = ProtocolVersions::new(1, 1);
const NEW: ProtocolVersions = ProtocolVersions::new(1, 2);
const PAIRS: [([ProtocolVersions; 2], u16); 4] =
    [([OLD, OLD], 1), ([OLD, NEW], 1), ([NEW, OLD], 1), ([NEW, NEW], 2)];

/// What both sessions speak.
fn spoken(world: &mut World) -> [u16; 2] {
    [CALLER, CALLED].map(|index| {
        let node = &mut world.nodes[index];
        node.manager.session(node.session.unwrap()).unwrap().paths().version()
    })
}

/// Sends numbered blocks of 20 kB.
fn put(world: &mut World, flow: u32, numbers: Range<u64>) {
    let (now, node) = (world.now, &mut world.nodes[CALLER]);
    let session = node.manager.session(node.session.unwrap()).unwrap();
    for number in numbers {
        let bytes = Bytes::from(number.to_be_bytes().repeat(2_500));
        session.send(now, Block::reliable(FlowId(flow), bytes)).unwrap();
    }
}

/// How often each number has arrived.
fn arrived(world: &World) -> BTreeMap<u64, usize> {
    let mut arrived = BTreeMap::new();
    for bytes in &world.nodes[CALLED].received {
        let number = u64::from_be_bytes(*bytes.first_chunk().unwrap());
        assert_eq!(bytes[..], number.to_be_bytes().repeat(2_500));
        *arrived.entry(number).or_default() += 1;
    }
    arrived
}

#[test]
fn each_pair_of_an_old_and_a_new_node_speaks_the_newest_version_of_both() {
    for (versions, agreed) in PAIRS {
        let mut world = World::speaking(versions);
        let path = world.join(1);
        let up = world.run(5, |world| world.nodes.iter().all(|node| node.up.contains(&path)));
        assert!(up, "{versions:?}: no second path, {:?}", world.nodes[CALLER].refused);
        put(&mut world, 0, 0..50);
        assert!(world.run(20, |world| world.nodes[CALLER].custody == 50), "{versions:?}");
        assert_eq!(spoken(&mut world), [agreed; 2], "{versions:?}");
        assert!(arrived(&world).values().eq(&[1; 50]));
    }
}

#[test]
fn a_node_that_is_exchanged_in_mid_pass_goes_on_with_what_is_not_in_custody() {
    const ALL: u64 = 200;
    for exchanged in [CALLER, CALLED] {
        for (before, versions, after) in [(1, [OLD, NEW], 2), (2, [NEW, OLD], 1)] {
            let mut ends = [NEW; 2];
            ends[exchanged] = versions[0];
            let mut world = World::speaking(ends);
            assert_eq!(spoken(&mut world), [before; 2]);
            put(&mut world, 0, 0..ALL);
            assert!(world.run(20, |world| world.nodes[CALLER].custody >= 50));
            let kept = world.nodes[CALLER].custody;
            assert!(kept < ALL, "in mid-pass");
            world.replace(exchanged, versions[1]);
            assert_eq!(spoken(&mut world), [after; 2]);
            put(&mut world, 1, kept..ALL);
            let all = world.run(20, |world| arrived(world).len() == ALL as usize);
            assert!(all, "{} of {ALL}", arrived(&world).len());
            let mut once = arrived(&world).into_iter().take_while(|(number, _)| *number < kept);
            assert!(once.all(|(_, times)| times == 1), "what is in custody is not sent again");
        }
    }
}
