//! The closing of a connection over a line that loses datagrams.

use crate::pair::{CLIENT, Options, SERVER, World};
use skyhaul_sessions::EndpointEvent;
use skyhaul_transport::{DownReason, Path as _};
use skyhaul_units::Duration;

/// Closes at the client and loses the first `lost` closing datagrams; returns when the server
/// learns of it, after the close.
fn learns_after(lost: u32) -> Duration {
    let mut world = World::connected(&Options::default());
    // Datagrams of the set-up are sent several times at once. That is over.
    world.run(Duration::from_secs(3));
    world.take_line(CLIENT);
    world.lose_next(CLIENT, lost);
    let closed_at = world.now;
    world.path(CLIENT).close(closed_at, "maintenance");
    assert!(world.nodes[CLIENT].is_closing());
    let is_told = |world: &World| {
        matches!(
            world.seen[SERVER].events.last(),
            Some((_, EndpointEvent::Closed { reason: DownReason::ClosedByPeer(text), .. }))
                if text == "maintenance"
        )
    };
    let limit = closed_at + Duration::from_secs(2);
    assert!(world.run_until(limit, is_told), "{lost} lost: the server does not learn of it");
    let took = world.now.since(closed_at);
    world.run(Duration::from_secs(2));
    let (_, datagrams) = world.take_line(CLIENT);
    assert!(datagrams.len() <= 3, "{lost} lost: {} datagrams", datagrams.len());
    assert!(!world.nodes[CLIENT].is_closing());
    took
}

/// One way is 80 ms, and the copies leave half a round trip apart.
#[test]
fn a_farewell_of_which_two_datagrams_are_lost_still_arrives() {
    for (lost, expected) in [(0, 80), (1, 160), (2, 240)] {
        let took = learns_after(lost);
        let expected = Duration::from_millis(expected);
        let tolerance = Duration::from_millis(10);
        assert!(took + tolerance > expected && took < expected + tolerance, "{lost} lost: {took}");
    }
}

#[test]
fn a_node_that_goes_on_in_another_process_says_so_by_a_code_of_its_own() {
    for lost in 0..3 {
        let mut world = World::connected(&Options::default());
        world.run(Duration::from_secs(3));
        world.lose_next(SERVER, lost);
        let now = world.now;
        world.nodes[SERVER].close_to_go_on(now);
        assert!(world.nodes[SERVER].is_closing());
        let is_told = |world: &World| {
            matches!(
                world.seen[CLIENT].events.last(),
                Some((_, EndpointEvent::Closed { reason: DownReason::GoesOnElsewhere, .. }))
            )
        };
        assert!(world.run_until(now + Duration::from_secs(2), is_told), "{lost} lost");
        // One way is 80 ms, and the copies leave half a round trip apart.
        let took = world.now.since(now);
        assert!(took < Duration::from_millis(80 * (1 + u64::from(lost)) + 10), "{lost}: {took}");
        let closed = world.seen[SERVER].events.last().map(|(_, event)| event.clone());
        let by_itself =
            matches!(closed, Some(EndpointEvent::Closed { reason: DownReason::ClosedHere, .. }));
        assert!(by_itself, "{closed:?}");
    }
}
