//! What cannot be is told in a sentence.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use skyhaul::{Block, ByteCount, FlowId, Identity, Node, Outcome, Path, Rate, Wait};
use std::net::SocketAddr;

fn key(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32]).unwrap()
}

fn here() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

#[test]
fn a_session_needs_a_path_and_the_right_key() {
    let far = Node::named("far", key(2)).bind(here()).trust(key(1).fingerprint()).start().unwrap();
    let near = Node::named("near", key(1)).line(Rate::from_mbps(100)).start().unwrap();
    let none = near.connect([], key(2).fingerprint()).wait().unwrap_err();
    assert!(none.to_string().contains("no path given; give at least one"), "{none}");
    let to = Path::to(far.addresses()[0]);
    let other = near.connect([to], key(3).fingerprint()).wait().unwrap_err();
    assert!(other.to_string().contains("key"), "{other}");
    let stranger = Node::named("stranger", key(4)).start().unwrap();
    let refused = stranger.connect([to], key(2).fingerprint()).wait().unwrap_err();
    assert!(refused.to_string().contains("closed"), "{refused}");
}

#[test]
fn a_socket_that_is_not_there_costs_its_path_alone() {
    let far = Node::named("far", key(2)).bind(here()).trust(key(1).fingerprint()).start().unwrap();
    let near = Node::named("near", key(1)).start().unwrap();
    let to = Path::to(far.addresses()[0]);
    let session = near.connect([to, to.from_socket(7)], key(2).fingerprint()).wait().unwrap();
    let sent = session.send(Block::reliable(FlowId(0), "all of it".into())).wait().unwrap();
    let caller = far.accept().wait().unwrap();
    assert_eq!(caller.recv().wait().unwrap().bytes, "all of it");
    assert_eq!(sent.wait(), Some(Outcome::Delivered));
    let refused = session.refused_paths();
    assert!(
        refused.len() == 1 && refused[0].contains(&far.addresses()[0].to_string()),
        "{refused:?}"
    );
    assert_eq!((session.peer_name().as_str(), session.peer()), ("far", Some(key(2).fingerprint())));
    drop(far);
    assert!(session.recv().wait().is_none() && session.closed().is_some());
}

#[test]
fn what_is_no_block_is_cancelled_and_has_no_name() {
    let far = Node::named("far", key(2)).bind(here()).trust(key(1).fingerprint()).start().unwrap();
    let near = Node::named("near", key(1)).start().unwrap();
    let session =
        near.connect([Path::to(far.addresses()[0])], key(2).fingerprint()).wait().unwrap();
    let empty = session.send(Block::reliable(FlowId(0), Vec::new().into())).wait().unwrap();
    assert_eq!((empty.name().wait(), empty.wait()), (None, Some(Outcome::Cancelled)));
}

#[test]
fn packets_of_an_impossible_size_are_refused() {
    let error = Node::named("near", key(1)).packet(ByteCount::new(200)).start().unwrap_err();
    assert!(error.to_string().contains("172"), "{error}");
}
