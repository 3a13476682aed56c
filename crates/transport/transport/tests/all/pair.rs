//! Two sessions, one virtual clock: what goes in comes out, whole, in order, once.

use crate::rung::is_all;
use crate::support::{World, thousandths};
use bytes::Bytes;
use proptest::prelude::*;
use skyhaul_lab::PlainLine;
use skyhaul_transport::{
    Block, BlockId, BlockMark, CloseReason, Custody, Event, FlowId, Held, Mode, Opening, PathEvent,
    PathId, PathOptions, Received, RefusalCause, Resume, SendError, Seq, Session, SessionConfig,
    SpoolId, SpoolIdentity,
};
use skyhaul_units::{ByteCount, Duration, Instant};

fn block(flow: u32, seq: u64, len: usize) -> Block {
    let bytes: Vec<u8> =
        (0..len).map(|at| (at as u64 * 31 + seq * 7 + u64::from(flow)) as u8).collect();
    Block::reliable(FlowId(flow), Bytes::from(bytes))
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[test]
fn a_lossy_line_carries_nearly_all_it_can() {
    let losses: &[u64] = if is_all() { &[0, 10, 100, 140] } else { &[0, 140] };
    for &loss in losses {
        let line = PlainLine { loss: thousandths(loss), ..PlainLine::default() };
        let mut world = World::opened(line, SessionConfig::default(), 7);
        let begun = world.now;
        let mut next = 0;
        world.run_until(begun + secs(23), |world| {
            while world.sessions[0].room() >= ByteCount::kib(300) {
                world.send(0, block(1, next, 200_000)).unwrap();
                next += 1;
            }
            false
        });
        // The mean position over ten seconds: how far the order lags at one instant does not count.
        let mean = |from: Duration| {
            let (from, to) = (begun + from, begun + from + secs(10));
            let until =
                world.received[1].iter().take_while(|received| received.timing.delivered <= to);
            let share = |received: &Received| {
                to.since(received.timing.delivered.max(from)).as_secs_f64() / secs(10).as_secs_f64()
            };
            until.map(|received| received.bytes.len() as f64 * share(received)).sum::<f64>()
        };
        let payload = line.payload as f64 / (line.payload + 62) as f64;
        let limit = line.rate.as_bps() as f64 / 8.0 * (1.0 - loss as f64 / 1000.0) * payload * 10.0;
        let ratio = (mean(secs(13)) - mean(secs(3))) / limit;
        assert!((0.985..1.01).contains(&ratio), "loss {loss}: {ratio}");
        for (place, received) in world.received[1].iter().enumerate() {
            assert_eq!(received.id, BlockId { flow: FlowId(1), seq: Seq(place as u64) });
            assert!(received.bytes == block(1, place as u64, 200_000).bytes, "block {place}");
        }
    }
}

#[test]
fn an_application_that_keeps_its_blocks_holds_the_sender_at_the_window() {
    let config = SessionConfig { receive_window: ByteCount::mib(1), ..SessionConfig::default() };
    let mut world = World::opened(PlainLine::default(), config, 1);
    world.releases[1] = false;
    for seq in 0..40 {
        world.send(0, block(0, seq, 100_000)).unwrap();
    }
    let later = world.now + secs(5);
    world.run_until(later, |_| false);
    assert_eq!(world.received[1].len(), 10, "1 MiB takes ten blocks of 100 kB");
    assert!(world.sessions[0].sender().is_held_back());
    world.releases[1] = true;
    for received in world.received[1].clone() {
        world.sessions[1].release(received.bytes.len());
    }
    assert!(world.run_until(later + secs(20), |world| world.received[1].len() == 40));
}

#[test]
fn the_send_buffer_is_bounded_and_says_so() {
    let config = SessionConfig { send_buffer: ByteCount::new(500_000), ..SessionConfig::default() };
    let mut world = World::opened(PlainLine::default(), config, 1);
    for seq in 0..4 {
        world.send(0, block(0, seq, 100_000)).unwrap();
    }
    let refused = world.send(0, block(0, 4, 100_000)).unwrap_err();
    assert!(matches!(refused, SendError::Full { .. }), "{refused}");
    let endless = Block { mode: Mode::Expendable, ..block(0, 4, 100) };
    assert_eq!(world.send(0, endless).unwrap_err(), SendError::NoDeadline { flow: FlowId(0) });
    let empty = world.send(0, block(1, 0, 0)).unwrap_err();
    assert!(matches!(empty, SendError::Length { len: 0, .. }));
}

#[test]
fn receipts_reach_the_sender_and_a_new_session_goes_on_from_them() {
    let mut world = World::opened(
        PlainLine { loss: thousandths(50), ..PlainLine::default() },
        SessionConfig::default(),
        3,
    );
    for seq in 0..5 {
        world.send(0, block(4, seq, 3000)).unwrap();
    }
    let deadline = world.now + secs(10);
    assert!(world.run_until(deadline, |world| world.received[1].len() == 5));
    world.sessions[1].control_mut().receipt(FlowId(4), Seq(3));
    assert!(world.run_until(deadline, |world| {
        world.events[0].contains(&Event::Custody { flow: FlowId(4), next: Seq(3) })
    }));

    let mut world = World::new(PlainLine::default(), SessionConfig::default(), 4);
    let resume = Resume {
        finished_below: FlowId(4),
        open: vec![Held { flow: FlowId(4), next: Seq(3), last: BlockMark(9) }],
    };
    world.open(0, "station", Resume::default());
    world.open(1, "centre", resume.clone());
    world.run_until(Instant::ZERO + secs(2), |world| world.sessions.iter().all(Session::is_open));
    let custody = Some(Custody { resume, ..Custody::default() });
    let spool = SpoolIdentity::default();
    assert_eq!(world.events[0], [Event::Greeted { name: "centre".to_owned(), spool, custody }]);
    world.sessions[0].sender_mut().start_flow(FlowId(4), Seq(3));
    for seq in 3..6 {
        world.send(0, block(4, seq, 3000)).unwrap();
    }
    assert!(world.run_until(Instant::ZERO + secs(4), |world| world.received[1].len() == 3));
    assert_eq!(world.received[1][0].id.seq, Seq(3));
}

#[test]
fn what_an_application_says_arrives_in_order_and_is_bounded() {
    let loss = PlainLine { loss: thousandths(50), ..PlainLine::default() };
    let mut world = World::new(loss, SessionConfig::default(), 5);
    assert_eq!(
        world.sessions[0].control_mut().tell(Bytes::from_static(b"early")),
        Err(SendError::NotOpen)
    );
    world.open(0, "station", Resume::default());
    world.open(1, "centre", Resume::default());
    world.run_until(Instant::ZERO + secs(2), |world| world.sessions.iter().all(Session::is_open));
    let said: Vec<Bytes> = (0..20u8).map(|number| Bytes::from(vec![number; 1000])).collect();
    for body in &said {
        world.sessions[1].control_mut().tell(body.clone()).unwrap();
    }
    let heard = |world: &World| -> Vec<Bytes> {
        let said = world.events[0].iter().filter_map(|event| match event {
            Event::Application { body } => Some(body.clone()),
            _ => None,
        });
        said.collect()
    };
    assert!(world.run_until(Instant::ZERO + secs(9), |world| heard(world).len() == said.len()));
    assert_eq!(heard(&world), said);
    let session = &mut world.sessions[1];
    let long = Bytes::from(vec![0; (64 << 10) + 1]);
    assert_eq!(
        session.control_mut().tell(long.clone()),
        Err(SendError::TooLong { len: long.len() })
    );
    let refused =
        (0..10).map(|_| session.control_mut().tell(long.slice(1..))).find_map(Result::err);
    assert!(matches!(refused, Some(SendError::Full { .. })), "{refused:?}");
}

#[test]
fn a_finished_flow_sent_again_is_reported_and_not_delivered() {
    let mut world = World::new(PlainLine::default(), SessionConfig::default(), 4);
    world.open(0, "station", Resume::default());
    world.open(1, "centre", Resume { finished_below: FlowId(4), open: Vec::new() });
    world.run_until(Instant::ZERO + secs(2), |world| world.sessions.iter().all(Session::is_open));
    world.send(0, block(2, 0, 3000)).unwrap();
    assert!(world.run_until(Instant::ZERO + secs(4), |world| {
        world.sessions[0].stats().sent.blocks_reported == 1
    }));
    assert!(world.received[1].is_empty());
}

#[test]
fn finished_flows_sent_again_do_not_use_up_the_window() {
    let config = SessionConfig { receive_window: ByteCount::kib(256), ..SessionConfig::default() };
    for loss in [0, 100] {
        let line = PlainLine { loss: thousandths(loss), ..PlainLine::default() };
        let mut world = World::new(line, config.clone(), 5);
        world.open(0, "station", Resume::default());
        world.open(1, "centre", Resume { finished_below: FlowId(4), open: Vec::new() });
        world.run_until(Instant::ZERO + secs(5), |world| {
            world.sessions.iter().all(Session::is_open)
        });
        for seq in 0..20 {
            world.send(0, block(2, seq, 60_000)).unwrap();
        }
        world.send(0, block(9, 0, 3_000)).unwrap();
        assert!(
            world.run_until(Instant::ZERO + secs(60), |world| world.received[1].len() == 1),
            "loss {loss}"
        );
    }
}

#[test]
fn a_path_that_lies_about_one_datagram_in_five_slows_the_session_down_and_never_locks_it() {
    let config = SessionConfig { receive_window: ByteCount::kib(16), ..SessionConfig::default() };
    let line = PlainLine { loss: thousandths(100), lies: thousandths(200), ..PlainLine::default() };
    for seed in 0..if is_all() { 60 } else { 20 } {
        let mut world = World::opened(line, config.clone(), seed);
        // Each block needs the room that the one before it gives back.
        for seq in 0..40 {
            world.send(0, block(seq as u32 % 2, seq / 2, 12_000)).unwrap();
        }
        let deadline = world.now + secs(600);
        let arrived = world.run_until(deadline, |world| {
            world.received[1].len() == 40 && world.sessions[0].stats().sent.buffer == 0
        });
        assert!(arrived, "seed {seed}: {:?}", world.sessions.each_ref().map(Session::stats));
    }
}

#[test]
fn a_refusal_reaches_the_far_end_as_a_sentence() {
    let mut world = World::opened(PlainLine::default(), SessionConfig::default(), 3);
    world.sessions[1].refuse(RefusalCause::Told, "this centre takes no data from `station`");
    let deadline = world.now + secs(2);
    let closed =
        Event::Closed(CloseReason::Refused("this centre takes no data from `station`".to_owned()));
    assert!(world.run_until(deadline, |world| world.events[0].contains(&closed)));
    assert!(world.path.ends[1].closed().is_some());
}

#[test]
fn an_end_whose_key_another_node_uses_too_is_told_so() {
    let mut world = World::opened(PlainLine::default(), SessionConfig::default(), 6);
    world.sessions[1].refuse(RefusalCause::Replaced, "another node uses this key");
    let deadline = world.now + secs(2);
    let closed = Event::Closed(CloseReason::Replaced("another node uses this key".to_owned()));
    assert!(world.run_until(deadline, |world| world.events[0].contains(&closed)));
    assert!(world.path.ends[0].closed().is_some(), "it closes the path");
}

/// The end that is called says what it has of several spools before it knows which one calls.
#[test]
fn each_end_goes_on_with_what_the_other_has_of_its_own_spool() {
    let spool = |number| SpoolIdentity { id: SpoolId([number; 16]), ..SpoolIdentity::default() };
    let custody = |number: u8| {
        let flow = Held {
            flow: FlowId(4),
            next: Seq(u64::from(number)),
            last: BlockMark(u64::from(number)),
        };
        Custody {
            spool: spool(number),
            resume: Resume { finished_below: FlowId(0), open: vec![flow] },
        }
    };
    for (number, known) in [(3, Some(custody(3))), (2, Some(custody(2))), (7, None)] {
        let mut world = World::new(PlainLine::default(), SessionConfig::default(), 4);
        world.sessions[1]
            .open(Opening { custody: vec![custody(2), custody(3)], ..Opening::default() });
        // The answer may be there before the calling end has said anything.
        world.run_until(Instant::ZERO + secs(1), |_| false);
        assert_eq!(world.events[0], []);
        world.sessions[0].open(Opening { spool: spool(number), ..Opening::default() });
        world.run_until(Instant::ZERO + secs(2), |world| {
            world.sessions.iter().all(Session::is_open)
        });
        let greeted = |spool, custody| [Event::Greeted { name: String::new(), spool, custody }];
        assert_eq!(world.events[0], greeted(SpoolIdentity::default(), known.clone()));
        assert_eq!(world.events[1], greeted(spool(number), None));
        let from = known.map_or(Seq(0), |custody| custody.resume.next(FlowId(4)).unwrap());
        world.sessions[0].sender_mut().start_flow(FlowId(4), from);
        world.send(0, block(4, from.0, 3000)).unwrap();
        assert!(world.run_until(Instant::ZERO + secs(4), |world| world.received[1].len() == 1));
        assert_eq!(world.received[1][0].id.seq, from);
    }
}

#[test]
fn another_protocol_version_is_named() {
    let mut session = Session::new(SessionConfig::default());
    session.open(Opening { name: "centre".to_owned(), ..Opening::default() });
    session.add_path(PathId(0), PathOptions::default());
    session.handle(Instant::ZERO, PathId(0), PathEvent::Up { payload: 1438 });
    let hello_of_version_2 = Bytes::from_static(&[0, 0, 0, 4, 1, 0, 2, 0]);
    session.handle(Instant::ZERO, PathId(0), PathEvent::Control(hello_of_version_2));
    assert_eq!(session.poll(), Some(Event::PathUp(PathId(0))));
    let Some(Event::Closed(CloseReason::Peer(reason))) = session.poll() else {
        panic!("not closed")
    };
    assert!(reason.contains("version 2") && reason.contains("same release"), "{reason}");
}

#[test]
fn timing_tells_line_from_repair() {
    let mut world = World::opened(
        PlainLine { loss: thousandths(100), ..PlainLine::default() },
        SessionConfig::default(),
        11,
    );
    let begun = world.now;
    for seq in 0..50 {
        world.send(0, block(0, seq, 20_000)).unwrap();
    }
    assert!(world.run_until(begun + secs(5), |world| world.received[1].len() == 50));
    let repaired = world.received[1].iter().filter(|received| received.timing.repaired).count();
    assert!((20..50).contains(&repaired), "14 symbols a block at 10 % loss: {repaired}");
    for timing in world.received[1].iter().map(|received| received.timing) {
        let sent = Instant::from_nanos(timing.sent.as_nanos() as u64);
        assert!(timing.last_original.since(sent) >= Duration::from_millis(80));
        assert!(timing.complete >= timing.last_original && timing.delivered >= timing.complete);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Any mix of flows, sizes, losses, false arrivals and silence: each flow comes out as it went
    /// in.
    #[test]
    fn every_block_arrives_once_in_order(
        seed in any::<u64>(),
        loss in 0u64..200,
        lies in 0u64..30,
        silence in 0u64..30,
        payload in 1200usize..1438,
        blocks in proptest::collection::vec((0usize..2, 0u32..70, 1usize..60_000), 1..60),
    ) {
        let [loss, lies, silence] = [loss, lies, silence].map(thousandths);
        let line = PlainLine { loss, lies, silence, payload, ..PlainLine::default() };
        let config = SessionConfig { receive_window: ByteCount::kib(256),
            ..SessionConfig::default() };
        let mut world = World::opened(line, config, seed);
        let mut sent: [std::collections::BTreeMap<u32, Vec<Bytes>>; 2] = Default::default();
        for (side, flow, len) in &blocks {
            let flow_blocks = sent[*side].entry(*flow).or_default();
            let block = block(*flow, flow_blocks.len() as u64, *len);
            flow_blocks.push(block.bytes.clone());
            world.send(*side, block).unwrap();
        }
        let deadline = world.now + secs(120);
        let arrived = world.run_until(deadline, |world| {
            world.received.iter().map(Vec::len).sum::<usize>() == blocks.len()
                && world.sessions.iter().all(|session| session.stats().sent.buffer == 0)
        });
        prop_assert!(arrived, "{:?}", world.sessions.each_ref().map(Session::stats));
        for (side, sent) in sent.iter().enumerate() {
            let mut got = std::collections::BTreeMap::<u32, Vec<Bytes>>::new();
            for received in &world.received[1 - side] {
                got.entry(received.id.flow.0).or_default().push(received.bytes.clone());
            }
            prop_assert_eq!(&got, sent);
        }
    }
}
