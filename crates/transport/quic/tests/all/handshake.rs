//! Setting up: it always succeeds with the right keys, never with others, and says why.

use crate::pair::{self, CLIENT, Options, SERVER, World, address, identity};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use skyhaul_quic::Refusal;
use skyhaul_sessions::admission::{ADDRESS_MAX, SETUP_MAX};
use skyhaul_sessions::{EndpointEvent, ReceivedDatagram};
use skyhaul_transport::{DownReason, Path, ProtocolVersions};
use skyhaul_units::{Duration, Instant};
use std::net::SocketAddr;

/// The only event of `node`, which must be a refusal.
fn refusal(world: &World, node: usize) -> (&Refusal, Option<skyhaul_quic::Fingerprint>) {
    match &world.seen[node].events[..] {
        [(_, EndpointEvent::Refused { reason, fingerprint, remote, .. })] => {
            assert_eq!(*remote, address(1 - node));
            (reason, *fingerprint)
        }
        other => panic!("node {node}: {other:?}"),
    }
}

#[test]
fn a_path_comes_up_at_both_ends_with_the_peers_key() {
    let world = World::connected(&Options::default());
    for node in [CLIENT, SERVER] {
        let [(at, EndpointEvent::Ready { peer, incoming, .. })] = &world.seen[node].events[..]
        else {
            panic!("{:?}", world.seen[node].events)
        };
        assert_eq!(*peer, identity(u8::try_from(1 - node).unwrap()).fingerprint());
        assert_eq!(*incoming, node == SERVER);
        assert!(at.since(Instant::ZERO) < Duration::from_millis(420), "node {node} at {at}");
        assert!(world.seen[node].payload >= 1_438, "{}", world.seen[node].payload);
    }
}

#[test]
fn a_handshake_over_660_ms_with_a_tenth_lost_always_completes() {
    let mut times = Vec::new();
    for seed in 0..400 {
        let world = World::connected(&Options { seed, ..Options::lossy(10, 660) });
        times.push(world.now.since(Instant::ZERO));
    }
    times.sort_unstable();
    println!("p50 {} p99 {} max {}", times[200], times[396], times[399]);
    assert!(times[396] <= Duration::from_secs(2), "p99 {}", times[396]);
}

#[test]
fn the_far_ends_acknowledgement_batching_is_on_whatever_was_lost() {
    for seed in 0..40 {
        let mut world = World::connected(&Options { seed, ..Options::lossy(15, 160) });
        world.keep_events = false;
        world.apps[CLIENT] =
            pair::App::Numbers { next: 0, count: 4_000, until: Instant::FAR_FUTURE };
        world.run(Duration::from_secs(3));
        let acknowledgements = world.path(SERVER).counters().sent.0;
        assert!(acknowledgements < 4_000 / 6, "seed {seed}: {acknowledgements} datagrams back");
    }
}

#[test]
fn a_caller_with_another_key_is_refused_and_both_ends_say_so() {
    let mut world = World::new(&Options { trusted: Some(7), ..Options::default() });
    world.run(Duration::from_secs(5));
    let stranger = identity(0).fingerprint();
    assert_eq!(refusal(&world, SERVER), (&Refusal::UntrustedKey, Some(stranger)));
    let (reason, _) = refusal(&world, CLIENT);
    assert_eq!(*reason, Refusal::OwnKeyUntrusted { ours: stranger });
    assert!(reason.to_string().contains(&stranger.to_string()), "{reason}");
}

#[test]
fn a_called_node_with_another_key_is_refused() {
    let mut world = World::new(&Options { expected: Some(7), ..Options::default() });
    world.run(Duration::from_secs(5));
    let expected = identity(7).fingerprint();
    let found = identity(1).fingerprint();
    assert_eq!(refusal(&world, CLIENT), (&Refusal::WrongKey { expected }, Some(found)));
    assert!(matches!(refusal(&world, SERVER).0, Refusal::OwnKeyUntrusted { .. }));
}

#[test]
fn trust_can_be_given_while_running() {
    let mut world = World::new(&Options { trusted: Some(7), ..Options::default() });
    world.nodes[SERVER].set_trusted([identity(0).fingerprint()].into());
    assert!(world.run_until(Instant::ZERO + Duration::from_secs(5), World::both_ready));
}

#[test]
fn a_node_of_another_version_is_told_both_versions() {
    let (old, new) = (ProtocolVersions::new(1, 2), ProtocolVersions::new(3, 4));
    for versions in [[old, new], [new, old]] {
        for percent in [0, 10] {
            let mut world = World::new(&Options { versions, ..Options::lossy(percent, 160) });
            world.run(Duration::from_secs(20));
            let ours = |node: usize| versions[node].text();
            // The called end is told what the caller offers first.
            let first = versions[CLIENT].names()[0].clone();
            let theirs = [ours(SERVER), String::from_utf8(first).unwrap()];
            for node in [CLIENT, SERVER] {
                let (reason, _) = refusal(&world, node);
                let (ours, theirs) = (ours(node), theirs[node].clone());
                assert_eq!(*reason, Refusal::Version { ours, theirs });
                assert!(reason.to_string().contains("install the same release on both"));
            }
        }
    }
}

#[test]
fn nobody_there_is_said_after_the_idle_time() {
    let always = vec![(Instant::ZERO, Instant::FAR_FUTURE)];
    let mut world = World::new(&Options { outages: always, ..Options::default() });
    world.run(Duration::from_secs(120));
    assert_eq!(refusal(&world, CLIENT), (&Refusal::NoAnswer, None));
    assert!(world.seen[SERVER].events.is_empty());
}

#[test]
fn closing_tells_the_far_end_why() {
    let mut world = World::connected(&Options::default());
    let now = world.now;
    world.path(CLIENT).close(now, "maintenance at noon");
    world.run(Duration::from_secs(5));
    let closed = |node: usize| match world.seen[node].events.last() {
        Some((_, EndpointEvent::Closed { reason, .. })) => reason.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(closed(CLIENT), DownReason::ClosedHere);
    assert_eq!(closed(SERVER), DownReason::ClosedByPeer("maintenance at noon".to_owned()));
}

#[test]
fn both_ends_derive_the_same_keying_material() {
    let mut world = World::connected(&Options::default());
    let mut material = [[0u8; 32]; 3];
    world.path(CLIENT).export_keying_material(&mut material[0], b"skyhaul session", b"a").unwrap();
    world.path(SERVER).export_keying_material(&mut material[1], b"skyhaul session", b"a").unwrap();
    world.path(SERVER).export_keying_material(&mut material[2], b"skyhaul session", b"b").unwrap();
    assert_eq!(material[0], material[1]);
    assert_ne!(material[0], material[2]);
}

#[test]
fn a_node_started_anew_says_so_and_can_be_called_again() {
    let options = Options::default();
    let mut world = World::connected(&options);
    world.restart_server(&options);
    let restarted = world.now;
    world.run(Duration::from_secs(7));
    let Some((at, EndpointEvent::Closed { reason, .. })) = world.seen[CLIENT].events.last() else {
        panic!("{:?}", world.seen[CLIENT].events)
    };
    assert_eq!(*reason, DownReason::Failed("the far end restarted".to_owned()));
    assert!(at.since(restarted) <= Duration::from_secs(6), "after {}", at.since(restarted));
    world.seen[CLIENT].ready = None;
    let now = world.now;
    world.nodes[CLIENT].connect(now, address(SERVER), identity(1).fingerprint()).unwrap();
    assert!(world.run_until(now + Duration::from_secs(5), World::both_ready));
}

#[test]
fn many_callers_at_a_time_must_prove_their_addresses_and_are_bounded() {
    let options = Options::default();
    let mut server = pair::endpoint(&options, SERVER);
    let mut out = Vec::new();
    for caller in 0..200u16 {
        let mut client = pair::endpoint(&options, CLIENT);
        client.connect(Instant::ZERO, address(SERVER), identity(1).fingerprint()).unwrap();
        client.poll_transmit(Instant::ZERO, &mut out).unwrap();
        let received = ReceivedDatagram {
            remote: ([198, 51, 100, 1], 1_000 + caller).into(),
            local_ip: None,
            ecn: None,
            payload: out[..].into(),
        };
        server.handle_datagram(Instant::ZERO, received);
        while server.poll_transmit(Instant::ZERO, &mut out).is_some() {}
    }
    assert_eq!(server.counters().retried, 200 - 16);
    assert_eq!(server.poll_event(), None);
}

#[test]
fn a_caller_that_proves_its_address_is_let_in_under_load() {
    let options = Options::default();
    let mut world = World::new(&options);
    let mut out = Vec::new();
    for caller in 0..16u16 {
        let mut client = pair::endpoint(&options, CLIENT);
        client.connect(Instant::ZERO, address(SERVER), identity(1).fingerprint()).unwrap();
        client.poll_transmit(Instant::ZERO, &mut out).unwrap();
        world.inject(SERVER, ([198, 51, 100, 1], 1_000 + caller).into(), &out);
        while world.nodes[SERVER].poll_transmit(Instant::ZERO, &mut out).is_some() {}
    }
    assert!(world.run_until(Instant::ZERO + Duration::from_secs(2), World::both_ready));
    // Each copy of its hello is answered.
    assert!((1..=3).contains(&world.nodes[SERVER].counters().retried));
}

/// Begins a handshake with the server, proves the address where it is asked to, and never goes on.
fn slow_caller(world: &mut World, from: SocketAddr) {
    let mut client = pair::endpoint(&Options { setup_copies: 1, ..Options::default() }, CLIENT);
    let (now, mut out) = (world.now, Vec::new());
    client
        .connect(now, address(SERVER), identity(1).fingerprint())
        .expect("an address that can be called");
    for _ in 0..2 {
        if client.poll_transmit(now, &mut out).is_none() {
            return;
        }
        world.inject(SERVER, from, &out);
        while let Some(answer) = world.nodes[SERVER].poll_transmit(now, &mut out) {
            // A Retry (RFC 9000 17.2.5).
            if answer.to == from && out[0] & 0xf0 == 0xf0 {
                let payload = out[..].into();
                let received = ReceivedDatagram {
                    remote: address(SERVER),
                    local_ip: None,
                    ecn: None,
                    payload,
                };
                client.handle_datagram(now, received);
            }
        }
    }
}

/// Seen with 64 handshakes that never went on: no station came in for a minute.
#[test]
fn slow_handshakes_of_one_address_keep_nobody_else_out_and_are_over_after_15_s() {
    let mut world = World::new(&Options::default());
    for port in 0..300 {
        slow_caller(&mut world, ([198, 51, 100, 1], 1_000 + port).into());
    }
    let counters = world.nodes[SERVER].counters();
    assert_eq!((counters.refused_busy, counters.overlooked), (300 - ADDRESS_MAX as u64, 0));
    assert!(world.run_until(Instant::ZERO + Duration::from_secs(2), World::both_ready));
    world.run(SETUP_MAX);
    let slow = |(_, event): &&(Instant, EndpointEvent)| {
        matches!(event, EndpointEvent::Refused { reason: Refusal::TooSlow, .. })
    };
    assert_eq!(world.seen[SERVER].events.iter().filter(slow).count(), ADDRESS_MAX);
    let ready = world.seen[SERVER].ready;
    assert!(ready.is_some_and(|id| world.nodes[SERVER].path(id).is_some()), "who is in stays");
}

#[test]
fn slow_handshakes_of_many_networks_delay_others_and_keep_nobody_out() {
    let mut world = World::new(&Options::default());
    // More than there are places, from as many networks, and 20 more each second.
    for second in 0..10_u8 {
        for caller in 0..if second == 0 { 200 } else { 20 } {
            slow_caller(&mut world, ([10, second, caller, 1], 1_000).into());
        }
        let limit = Instant::ZERO + Duration::from_secs(u64::from(second) + 1);
        if world.run_until(limit, World::both_ready) {
            println!("in after {}", world.now);
            return;
        }
    }
    panic!("kept out for 10 s");
}

#[test]
fn a_call_that_its_caller_takes_back_is_no_strangers() {
    let mut world = World::new(&Options::default());
    world.run(Duration::from_millis(90));
    let id = world.call;
    let now = world.now;
    world.nodes[CLIENT]
        .path(id)
        .expect("it is being set up")
        .close(now, "another connection was established first");
    world.run(Duration::from_secs(1));
    let reasons: Vec<&Refusal> = world.seen[SERVER]
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            EndpointEvent::Refused { reason, .. } => Some(reason),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, [&Refusal::Withdrawn]);
}

#[test]
fn no_bytes_make_an_endpoint_panic() {
    let mut world = World::connected(&Options::default());
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for round in 0..20_000u32 {
        let mut bytes = vec![0; (rng.next_u32() % 1_500) as usize];
        rng.fill_bytes(&mut bytes);
        if let Some(first) = bytes.first_mut() {
            // Every kind of header in turn, so that more than the first byte is looked at.
            *first = (*first & 0x0f) | ((round % 16) as u8) << 4;
        }
        if round % 2 == 0 && bytes.len() > 5 {
            bytes[1..5].copy_from_slice(&[0, 0, 0, 1]);
        }
        let from = if round % 3 == 0 { address(CLIENT) } else { ([198, 51, 100, 1], 9).into() };
        world.inject(SERVER, from, &bytes);
        if round % 100 == 0 {
            world.run(Duration::from_millis(1));
        }
    }
    let now = world.now;
    world.apps[CLIENT] = pair::App::Numbers { next: 0, count: 10, until: Instant::FAR_FUTURE };
    world.run_until(now + Duration::from_secs(1), |_| false);
    assert_eq!(world.seen[SERVER].datagrams, 10, "the path that was up still works");
}

#[test]
fn what_cannot_work_is_refused_with_what_to_do() {
    let options = Options::default();
    let mut client = pair::endpoint(&options, CLIENT);
    let key = identity(1).fingerprint();
    let error =
        client.connect(Instant::ZERO, ([192, 0, 2, 1], 0).into(), key).unwrap_err().to_string();
    assert!(error.contains("192.0.2.1:0") && error.contains("port"), "{error}");
    for payload in [0, 1_199, 65_528] {
        let mut config = pair::config(&options, CLIENT);
        config.path.udp_payload = payload;
        let error = skyhaul_quic::QuicEndpoint::new(config).err().unwrap().to_string();
        assert!(error.contains(&payload.to_string()) && error.contains("1472"), "{error}");
    }
}
