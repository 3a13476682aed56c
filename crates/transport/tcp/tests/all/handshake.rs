//! Setting up and ending: it always succeeds with the right keys, never with others, and says why.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::pair::{App, CLIENT, Options, SERVER, World, endpoint, identity};
use skyhaul_identity::Refusal;
use skyhaul_sessions::Endpoint;
use skyhaul_sessions::admission::{ADDRESS_MAX, CALLS_MAX, SETUP_MAX};
use skyhaul_tcp::{TlsConnections, TlsPathConfig, close_to_go_on};
use skyhaul_transport::{DownReason, Path, PathEvent, ProtocolVersions};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

fn refused(options: &Options) -> (World, [Refusal; 2]) {
    let mut world = World::new(options);
    world.run(Duration::from_secs(20));
    let reasons = [CLIENT, SERVER].map(|end| {
        assert!(world.seen[end].up.is_none() && world.seen[end].down.is_some(), "end {end}");
        assert!(world.paths[end].is_finished(), "end {end}");
        world.paths[end].lifecycle().refusal().unwrap().clone()
    });
    (world, reasons)
}

#[test]
fn a_path_comes_up_at_both_ends_with_the_peers_key() {
    for piece in [1, 7, 9_000] {
        let world = World::connected(&Options { piece, ..Options::default() });
        for end in [CLIENT, SERVER] {
            let key = identity(u8::try_from(1 - end).unwrap()).fingerprint();
            assert_eq!(world.paths[end].lifecycle().peer(), Some(key));
            let up = world.seen[end].up.unwrap().since(Instant::ZERO);
            // The called end is up after one and a half round trips, the caller after two.
            assert!(up < Duration::from_millis(325), "end {end} after {up}");
            assert_eq!(world.seen[end].events[0].1, PathEvent::Up { payload: 1438 });
        }
    }
}

#[test]
fn a_caller_with_another_key_is_refused_and_both_ends_say_so() {
    let (world, reasons) = refused(&Options { trusted: Some(7), ..Options::default() });
    let stranger = identity(0).fingerprint();
    assert_eq!(reasons, [Refusal::OwnKeyUntrusted { ours: stranger }, Refusal::UntrustedKey]);
    assert_eq!(world.paths[SERVER].lifecycle().peer(), Some(stranger));
    let DownReason::Failed(text) = world.down(CLIENT) else { panic!("{:?}", world.down(CLIENT)) };
    assert!(text.contains(&stranger.to_string()), "{text}");
}

#[test]
fn a_called_node_with_another_key_is_refused() {
    let (world, reasons) = refused(&Options { expected: Some(7), ..Options::default() });
    assert_eq!(reasons[CLIENT], Refusal::WrongKey { expected: identity(7).fingerprint() });
    assert_eq!(world.paths[CLIENT].lifecycle().peer(), Some(identity(1).fingerprint()));
    assert!(matches!(reasons[SERVER], Refusal::OwnKeyUntrusted { .. }));
}

#[test]
fn trust_can_be_given_while_running() {
    let options = Options { trusted: Some(7), ..Options::default() };
    let mut server = endpoint(&options, SERVER);
    let mut world = World::new(&options);
    world.paths[SERVER] = server.accept(Instant::ZERO).ok().unwrap();
    server.set_trusted([identity(0).fingerprint()].into());
    world.run(Duration::from_secs(1));
    assert!(world.seen.iter().all(|seen| seen.up.is_some()));
}

#[test]
fn a_node_of_another_version_is_told_both_versions() {
    let (old, new) = (ProtocolVersions::new(1, 2), ProtocolVersions::new(3, 4));
    for versions in [[old, new], [new, old]] {
        let (_, reasons) = refused(&Options { versions, ..Options::default() });
        // The called end is told what the caller offers first.
        let first = String::from_utf8(versions[CLIENT].names()[0].clone()).unwrap();
        let theirs = [versions[SERVER].text(), first];
        for end in [CLIENT, SERVER] {
            let (ours, theirs) = (versions[end].text(), theirs[end].clone());
            assert_eq!(reasons[end], Refusal::Version { ours, theirs });
        }
    }
}

#[test]
fn the_newest_version_that_both_ends_speak_is_agreed_on() {
    let (old, new) = (ProtocolVersions::new(1, 1), ProtocolVersions::new(1, 2));
    for (versions, agreed) in [([old, old], 1), ([old, new], 1), ([new, old], 1), ([new, new], 2)] {
        let mut world = World::new(&Options { versions, ..Options::default() });
        world.run(Duration::from_secs(1));
        for end in [CLIENT, SERVER] {
            assert_eq!(world.paths[end].lifecycle().version(), Some(agreed), "{versions:?}");
        }
    }
}

#[test]
fn nobody_there_is_said_after_the_time_for_the_set_up() {
    let mut world = World::new(&Options::default());
    world.pipes[CLIENT].cut = true;
    world.run(Duration::from_secs(20));
    for end in [CLIENT, SERVER] {
        assert_eq!(world.paths[end].lifecycle().refusal(), Some(&Refusal::NoAnswer));
        let (at, reason) = world.seen[end].down.clone().unwrap();
        assert_eq!((at, reason), (Instant::ZERO + Duration::from_secs(15), DownReason::TimedOut));
    }
}

#[test]
fn calls_being_set_up_are_bounded_and_free_their_places() {
    let options = Options::default();
    let mut server = endpoint(&options, SERVER);
    let mut calls: Vec<_> =
        (0..CALLS_MAX).map(|_| server.accept(Instant::ZERO).ok().unwrap()).collect();
    assert_eq!(server.accept(Instant::ZERO).err(), Some(Refusal::Busy));
    calls.pop();
    calls.push(server.accept(Instant::ZERO).ok().unwrap());
    calls[0].close(Instant::ZERO, "no");
    assert!(server.accept(Instant::ZERO).is_ok());
    assert!(server.accept(Instant::ZERO).is_ok(), "the one before is gone already");
}

#[test]
fn a_node_that_goes_on_in_another_process_says_so_by_a_code_of_its_own() {
    let mut world = World::connected(&Options::default());
    let now = world.now;
    close_to_go_on(&mut world.paths[SERVER], now);
    world.run(Duration::from_secs(5));
    assert_eq!(*world.down(SERVER), DownReason::ClosedHere);
    assert_eq!(*world.down(CLIENT), DownReason::GoesOnElsewhere);
    assert!(world.paths.iter().all(|path| path.is_finished() && path.next_timeout().is_none()));
}

#[test]
fn a_path_that_is_up_frees_its_place() {
    let options = Options::default();
    let mut server = endpoint(&options, SERVER);
    let mut world = World::new(&options);
    let _others: Vec<_> =
        (1..CALLS_MAX).map(|_| server.accept(Instant::ZERO).ok().unwrap()).collect();
    world.paths[SERVER] = server.accept(Instant::ZERO).ok().unwrap();
    assert!(server.accept(Instant::ZERO).is_err());
    world.run(Duration::from_secs(1));
    assert!(world.seen[SERVER].up.is_some() && server.accept(Instant::ZERO).is_ok());
}

#[test]
fn closing_tells_the_far_end_why() {
    for end in [CLIENT, SERVER] {
        let mut world = World::connected(&Options::default());
        world.apps[end] = App::Numbers { next: 0, count: 1_000_000, size: 1_438 };
        world.run(Duration::from_millis(700));
        let now = world.now;
        world.paths[end].close(now, "maintenance at noon");
        world.run(Duration::from_secs(5));
        assert_eq!(*world.down(end), DownReason::ClosedHere);
        assert_eq!(
            *world.down(1 - end),
            DownReason::ClosedByPeer("maintenance at noon".to_owned())
        );
        assert!(world.paths.iter().all(|path| path.is_finished() && path.next_timeout().is_none()));
    }
}

#[test]
fn closing_before_it_is_up_is_said_too() {
    let mut world = World::new(&Options::default());
    world.run(Duration::from_millis(100));
    let now = world.now;
    world.paths[CLIENT].close(now, "changed my mind");
    world.run(Duration::from_secs(5));
    assert_eq!(world.paths[CLIENT].lifecycle().refusal(), Some(&Refusal::ClosedHere));
    assert_eq!(world.paths[SERVER].lifecycle().refusal(), Some(&Refusal::Withdrawn));
}

#[test]
fn an_idle_path_lives_on_signs_of_life_and_a_dead_one_is_given_up() {
    let mut world = World::connected(&Options::default());
    world.run(Duration::from_secs(600));
    assert!(world.seen.iter().all(|seen| seen.down.is_none()));
    let sent = world.paths[CLIENT].counters().sent;
    assert!(sent < ByteCount::new(20_000), "{sent} in ten idle minutes");
    let rtt = world.paths[CLIENT].estimate().rtt;
    assert!(rtt >= Duration::from_millis(160) && rtt < Duration::from_millis(161), "{rtt}");
    let cut = world.now;
    world.pipes.iter_mut().for_each(|pipe| pipe.cut = true);
    world.run(Duration::from_secs(70));
    for end in [CLIENT, SERVER] {
        let (at, reason) = world.seen[end].down.clone().unwrap();
        assert_eq!(reason, DownReason::TimedOut);
        assert!(
            at.since(cut) <= Duration::from_secs(60) + Duration::from_millis(80),
            "{}",
            at.since(cut)
        );
    }
}

#[test]
fn a_stream_that_ends_without_a_farewell_is_said_to() {
    let mut world = World::connected(&Options::default());
    let now = world.now;
    world.paths[CLIENT].end_of_stream(now);
    world.paths[SERVER].stream_failed(now, "connection reset by peer");
    world.run(Duration::from_millis(1));
    let failed = |text: &str| DownReason::Failed(text.to_owned());
    assert_eq!(*world.down(CLIENT), failed("the stream ended without a close message"));
    assert_eq!(*world.down(SERVER), failed("connection reset by peer"));
}

#[test]
fn a_line_that_is_slow_to_answer_still_comes_up() {
    let options = Options {
        rate: Rate::from_bps(64_000),
        one_way: Duration::from_millis(700),
        stall_one_in: 4,
        piece: 300,
        ..Options::default()
    };
    for seed in 0..20 {
        World::connected(&Options { seed, ..options.clone() });
    }
}

#[test]
fn both_ends_derive_the_same_keying_material() {
    let world = World::connected(&Options::default());
    let export = |end: usize, context: &[u8]| {
        let mut material = [0u8; 32];
        world.paths[end]
            .export_keying_material(&mut material, b"skyhaul session", context)
            .unwrap();
        material
    };
    assert_eq!(export(CLIENT, b"a"), export(SERVER, b"a"));
    assert_ne!(export(CLIENT, b"a"), export(CLIENT, b"b"));
    let early = World::new(&Options::default());
    assert!(
        early.paths[CLIENT].export_keying_material(&mut [0; 32], b"skyhaul session", b"a").is_err()
    );
}

#[test]
fn the_payload_is_what_is_configured() {
    let path = TlsPathConfig { payload: 16_000, ..TlsPathConfig::default() };
    let world = World::connected(&Options { path, ..Options::default() });
    assert_eq!(world.seen[CLIENT].events[0].1, PathEvent::Up { payload: 16_000 });
}

#[test]
fn calls_from_one_address_take_their_part_of_the_places_and_no_more() {
    let options = Options::default();
    let mut server = TlsConnections::new(endpoint(&options, SERVER));
    let from = |host: u8, port: usize| ([198, 51, 100, host], 1_000 + port as u16).into();
    let taken =
        (0..100).filter(|port| server.accept(Instant::ZERO, from(1, *port)).is_some()).count();
    assert_eq!((taken, server.refused_busy()), (ADDRESS_MAX, 100 - ADDRESS_MAX as u64));
    assert!(server.accept(Instant::ZERO, from(2, 0)).is_some(), "another has a place");
    server.handle_timeout(Instant::ZERO + SETUP_MAX);
    while server.poll_event().is_some() {}
    let again =
        (0..100).filter(|port| server.accept(Instant::ZERO, from(1, *port)).is_some()).count();
    assert_eq!(again, ADDRESS_MAX, "they are free again after {SETUP_MAX}");
}

#[test]
fn a_call_that_its_caller_takes_back_or_that_says_nothing_is_no_strangers() {
    let mut world = World::new(&Options::default());
    world.run(Duration::from_millis(90));
    let now = world.now;
    world.paths[CLIENT].close(now, "another connection was established first");
    world.run(Duration::from_secs(1));
    assert_eq!(world.paths[SERVER].lifecycle().refusal(), Some(&Refusal::Withdrawn));
    let mut server = endpoint(&Options::default(), SERVER);
    let mut path = server.accept(Instant::ZERO).unwrap();
    path.end_of_stream(Instant::ZERO);
    assert_eq!(path.lifecycle().refusal(), Some(&Refusal::Withdrawn));
}
