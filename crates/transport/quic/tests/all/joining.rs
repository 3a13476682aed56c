//! Further connections become paths of a session, and nobody else's do.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::nodes::{CALLED, CALLER, World, address, identity};
use skyhaul_identity::{Keying, ProvenBy};
use skyhaul_sessions::{ConnectError, ConnectionId, EndpointEvent, PathTarget, SocketId};
use skyhaul_transport::wire::Control;
use skyhaul_transport::{
    DownReason, Path as _, PathEvent, PathId, PathOptions, ProtocolVersions, RefusalCause,
};
use skyhaul_units::Duration;

const FIRST: PathId = PathId(0);
const SECOND: PathId = PathId(1);
const THIRD: PathId = PathId(2);

/// Lines with which a session stands at both ends.
fn joined(lines: usize) -> World {
    let mut world = World::connected(1);
    for line in 1..lines {
        let path = world.join(line);
        let up = world.run(5, |world| world.nodes.iter().all(|node| node.up.contains(&path)));
        assert!(up, "path {path:?} did not come up: {:?}", world.nodes[CALLER].refused);
    }
    world
}

fn arrives(world: &mut World, blocks: usize, seconds: u64) {
    let all = world.run(seconds, |world| {
        world.nodes[CALLED].received.len() == blocks && world.nodes[CALLER].custody == blocks as u64
    });
    let (received, custody) = (world.nodes[CALLED].received.len(), world.nodes[CALLER].custody);
    assert!(all, "{received} of {blocks} blocks arrived, receipts for {custody}");
    for (place, bytes) in world.nodes[CALLED].received.iter().enumerate() {
        assert!(bytes.iter().all(|byte| *byte == place as u8), "block {place}");
    }
}

/// What the called end answers the bare endpoint with when it joins so.
fn answer(
    world: &mut World,
    path: u8,
    proof: impl FnOnce(&mut World, ConnectionId) -> [u8; 32],
) -> String {
    let called = identity(2).fingerprint();
    let id = world.bare.join(world.now, address(CALLED, 0), called).unwrap();
    let ready = |world: &mut World| {
        matches!(world.bare.poll_event(),
        Some(EndpointEvent::Ready { id: ready, .. }) if ready == id)
    };
    assert!(world.run(2, ready), "the bare endpoint did not connect");
    let proof = proof(world, id);
    let now = world.now;
    let join = Control::Join { path, proof }.encode();
    assert_eq!(world.bare.path(id).unwrap().send_control(now, &join), join.len());
    let mut reason = None;
    world.run(5, |world| {
        let now = world.now;
        while let Some(event) = world.bare.path(id).and_then(|path| path.poll(now)) {
            match event {
                PathEvent::Down(DownReason::ClosedByPeer(said)) => reason = Some(said),
                PathEvent::Control(_) => reason = Some("it was let in".to_owned()),
                _ => {}
            }
        }
        while let Some(event) = world.bare.poll_event() {
            if let EndpointEvent::Closed { reason: DownReason::ClosedByPeer(said), .. } = event {
                reason = Some(said);
            }
        }
        reason.is_some()
    });
    reason.unwrap_or_else(|| panic!("no answer"))
}

/// The proof that the caller's end of `first` gives on `second`.
fn proof(world: &mut World, first: ConnectionId, second: ConnectionId, path: u8) -> [u8; 32] {
    let mut keying = |id| {
        let connection = world.bare.path(id).unwrap();
        Keying::derive(|out, label| connection.export_keying_material(out, label, b"").is_ok())
            .unwrap()
    };
    let (first, second) = (keying(first), keying(second));
    second.prove(&first, path, ProvenBy::Connecting)
}

/// A session of the bare endpoint's own.
fn bare_session(world: &mut World) -> ConnectionId {
    let id = world.bare.connect(world.now, address(CALLED, 0), identity(2).fingerprint()).unwrap();
    let before = world.nodes[CALLED].connected;
    assert!(world.run(2, |world| {
        world.bare.poll_event();
        world.nodes[CALLED].connected > before
    }));
    id
}

#[test]
fn a_second_and_a_third_connection_join_and_carry_blocks() {
    let mut world = joined(3);
    world.send(200);
    arrives(&mut world, 200, 20);
    let id = world.nodes[CALLER].session.unwrap();
    let session = world.nodes[CALLER].manager.session(id).unwrap();
    let used: Vec<_> =
        session.paths().iter().filter(|(_, path)| path.stats.bytes_sent > 200_000).collect();
    assert_eq!(used.len(), 3, "{:?}", session.paths().iter().collect::<Vec<_>>());
}

#[test]
fn the_session_goes_on_over_the_second_path_when_the_first_dies() {
    let mut world = joined(2);
    world.send(50);
    world.run(1, |world| world.nodes[CALLED].received.len() > 10);
    world.cut.insert(0);
    world.send(50);
    arrives(&mut world, 100, 10);
    assert!(world.nodes[CALLER].stalled.contains(&FIRST));
    let gone = world.run(120, |world| world.nodes.iter().all(|node| node.down.contains(&FIRST)));
    assert!(gone, "the first connection never timed out");
    world.send(20);
    arrives(&mut world, 120, 10);
    // The number of the path that went is not used again.
    assert_eq!(world.join(2), THIRD);
    assert!(world.run(5, |world| world.nodes.iter().all(|node| node.up.contains(&THIRD))));
    assert!(world.nodes.iter().all(|node| node.disconnected.is_empty()));
}

#[test]
fn a_session_ends_once_when_its_last_path_dies() {
    let mut world = joined(2);
    world.send(50);
    world.cut.extend([0, 1]);
    let gone = world.run(120, |world| world.nodes.iter().all(|node| !node.disconnected.is_empty()));
    assert!(gone, "the session outlived its paths");
    world.run(60, |_| false);
    for node in &mut world.nodes {
        assert_eq!(node.disconnected.len(), 1, "{:?}", node.disconnected);
        assert_eq!(node.manager.sessions().count(), 0);
    }
    let (id, now) = (world.nodes[CALLER].session.unwrap(), world.now);
    let to = PathTarget { socket: SocketId(1), remote: address(CALLED, 1) };
    let late = world.nodes[CALLER].manager.join(now, id, to, PathOptions::default());
    assert!(matches!(late, Err(ConnectError::NoSession)), "{late:?}");
}

#[test]
fn a_path_called_for_a_session_that_ends_meanwhile_is_refused_with_a_reason() {
    let mut world = World::connected(1);
    world.join(1);
    let (id, now) = (world.nodes[CALLED].session.unwrap(), world.now);
    world.nodes[CALLED].manager.close(now, id, "maintenance");
    assert!(
        world.run(30, |world| !world.nodes[CALLER].refused.is_empty()),
        "nothing was said of the path"
    );
    assert!(
        world.nodes[CALLER].refused[0].contains("session"),
        "{:?}",
        world.nodes[CALLER].refused
    );
    assert_eq!(world.nodes[CALLER].disconnected.len(), 1);
}

#[test]
fn a_proof_that_is_none_is_refused() {
    let mut world = World::connected(1);
    let said = answer(&mut world, 5, |_, _| [7; 32]);
    assert_eq!(said, "no session here has this path");
    world.send(20);
    arrives(&mut world, 20, 5);
}

#[test]
fn a_good_proof_is_taken_for_a_free_number_alone() {
    let mut world = World::connected(1);
    let own = bare_session(&mut world);
    let said = answer(&mut world, 0, |world, id| proof(world, own, id, 0));
    assert_eq!(said, "no session here has this path", "a number in use");
    let said = answer(&mut world, 4, |world, id| proof(world, own, id, 3));
    assert_eq!(said, "no session here has this path", "a proof for another number");
    let said = answer(&mut world, 4, |world, id| proof(world, own, id, 4));
    assert_eq!(said, "it was let in");
    let said = answer(&mut world, 4, |world, id| proof(world, own, id, 4));
    assert_eq!(said, "no session here has this path", "a number in use");
}

#[test]
fn a_proof_from_another_connection_pair_is_refused() {
    let mut world = World::connected(3);
    let own = bare_session(&mut world);
    let stolen = std::cell::Cell::new([0; 32]);
    let said = answer(&mut world, 4, |world, id| {
        stolen.set(proof(world, own, id, 5));
        proof(world, own, id, 4)
    });
    assert_eq!(said, "it was let in");
    // The number is free, and the proof is of this number, but it is that of the connection before.
    let said = answer(&mut world, 5, |_, _| stolen.get());
    assert_eq!(said, "no session here has this path");
}

#[test]
fn a_connection_that_joins_and_says_something_else_first_is_closed() {
    let mut world = World::connected(1);
    let called = identity(2).fingerprint();
    let id = world.bare.join(world.now, address(CALLED, 0), called).unwrap();
    assert!(
        world.run(2, |world| matches!(world.bare.poll_event(), Some(EndpointEvent::Ready { .. })))
    );
    let now = world.now;
    let refuse = Control::Refuse { cause: RefusalCause::Told, reason: "no".to_owned() }.encode();
    world.bare.path(id).unwrap().send_control(now, &refuse);
    let closed =
        world.run(5, |world| matches!(world.bare.poll_event(), Some(EndpointEvent::Closed { .. })));
    assert!(closed);
    assert_eq!(world.nodes[CALLED].connected, 1);
    assert!(!world.nodes[CALLED].up.contains(&SECOND));
}

#[test]
fn two_paths_of_ten_seconds_there_and_back_that_lose_a_seventh_carry_a_session() {
    let mut world = World::over(1, Duration::from_secs(5), 140);
    world.join(1);
    let up = world.run(120, |world| world.nodes.iter().all(|node| node.up.contains(&SECOND)));
    assert!(up, "the second path did not come up: {:?}", world.nodes[CALLER].refused);
    world.send(50);
    arrives(&mut world, 50, 300);
    assert!(world.nodes.iter().all(|node| node.disconnected.is_empty() && node.down.is_empty()));
}

/// The called end closes all that it has, because it goes on in another process.
fn goes_on_elsewhere(world: &mut World) {
    let now = world.now;
    world.nodes[CALLED].manager.endpoints_mut().for_each(|one| one.close_to_go_on(now));
}

#[test]
fn all_paths_end_with_the_first_that_hears_that_the_far_end_goes_on_elsewhere() {
    let mut world = joined(2);
    // The farewell on the other line does not arrive.
    world.cut.insert(1);
    let began = world.now;
    goes_on_elsewhere(&mut world);
    assert!(world.run(5, |world| !world.nodes[CALLER].disconnected.is_empty()));
    assert_eq!(world.nodes[CALLER].disconnected, [DownReason::GoesOnElsewhere]);
    assert_eq!(world.now.since(began), Duration::from_millis(20), "one way");
    world.run(20, |_| false);
    assert_eq!(world.nodes[CALLER].disconnected.len(), 1, "once");
}

/// What is left of a pause where the far end goes on in another process at once: one way for the
/// farewell, two round trips for the handshake, one way for the first block.
#[test]
fn a_session_with_a_node_that_goes_on_elsewhere_pauses_for_three_round_trips() {
    let mut world = World::connected(1);
    world.run(5, |_| false);
    let began = world.now;
    goes_on_elsewhere(&mut world);
    assert!(world.run(5, |world| !world.nodes[CALLER].disconnected.is_empty()));
    world.replace(CALLED, ProtocolVersions::OURS);
    world.send(1);
    let before = world.nodes[CALLED].received.len();
    assert!(world.run(5, |world| world.nodes[CALLED].received.len() > before));
    let pause = world.now.since(began);
    assert!(pause <= Duration::from_millis(3 * 40 + 5), "{pause}");
}
