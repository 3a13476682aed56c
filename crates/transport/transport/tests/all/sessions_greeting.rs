//! What an end sends before the far end knows it: all of it can be kept there.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use bytes::Bytes;
use skyhaul_transport::{
    Block, Event, FlowId, Opening, PathEvent, PathId, Session, SessionConfig, cost,
};
use skyhaul_units::{Duration, Instant};

/// Paths' payload: QUIC needs 1200 bytes of UDP, and leaves so much of them.
const PAYLOADS: [usize; 2] = [1_138, 8_938];
const BLOCK: usize = 64 << 10;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn session(payload: usize) -> Session {
    let mut session = Session::new(SessionConfig::default());
    session.open(Opening::default());
    for path in 0..2 {
        session.handle(Instant::ZERO, PathId(path), PathEvent::Up { payload });
    }
    session
}

/// All that the session's first path has to say.
fn greeting(session: &mut Session) -> Bytes {
    let bytes = Bytes::copy_from_slice(session.control_mut().poll(PathId(0)));
    session.control_mut().taken(bytes.len());
    bytes
}

/// All datagrams that a session sends at an instant, over paths that always have room.
fn datagrams(session: &mut Session, now: Instant) -> Vec<(PathId, Bytes)> {
    let mut sent = Vec::new();
    for path in [PathId(0), PathId(1)] {
        while let Some((token, datagram)) = session.poll_datagram(now, path) {
            sent.push((path, datagram));
            session.handle(now, path, PathEvent::Acked(token));
        }
    }
    sent
}

fn hand_over(to: &mut Session, now: Instant, datagrams: Vec<(PathId, Bytes)>) {
    for (path, datagram) in datagrams {
        to.handle(now, path, PathEvent::Datagram(datagram));
    }
    to.handle_timeout(now);
}

fn delivered(session: &mut Session) -> usize {
    let events = core::iter::from_fn(|| session.poll());
    events.filter(|event| matches!(event, Event::Block(_))).count()
}

/// The first of two paths once lost a greeting and brought it 400 ms late, and 255 Mbit/s came
/// meanwhile: what was not kept counted as arrived, and came back a block for each report.
#[test]
fn what_overtakes_a_late_greeting_is_not_more_than_can_be_kept() {
    for payload in PAYLOADS {
        let (mut near, mut far) = (session(payload), session(payload));
        let late = greeting(&mut near);
        near.handle(at(10), PathId(0), PathEvent::Control(greeting(&mut far)));
        near.handle_timeout(at(10));
        let mut taken = 0;
        while near.room().as_u64() >= cost(BLOCK) {
            near.send(at(10), Block::reliable(FlowId(0), Bytes::from(vec![7; BLOCK]))).unwrap();
            taken += 1;
        }
        let first = datagrams(&mut near, at(10));
        let bytes: usize = first.iter().map(|(_, datagram)| datagram.len()).sum();
        assert!(
            (11 << 20..14 << 20).contains(&bytes),
            "{bytes}: a round trip of a fast line goes out at once"
        );
        assert!(near.sender().is_held_back());
        hand_over(&mut far, at(110), first);
        assert_eq!(delivered(&mut far), 0, "it does not know the near end");

        far.handle(at(500), PathId(0), PathEvent::Control(late));
        hand_over(&mut far, at(500), Vec::new());
        let begun = delivered(&mut far);
        assert_eq!(begun as u64, (12 << 20) / cost(BLOCK), "all that came is there");
        let answer = datagrams(&mut far, at(500));
        hand_over(&mut near, at(600), answer);
        assert!(!near.sender().is_held_back(), "the far end answered: its window counts");
        let rest = datagrams(&mut near, at(600));
        hand_over(&mut far, at(700), rest);
        assert_eq!(begun + delivered(&mut far), taken);
        assert_eq!((near.stats().sent.symbols_denied, near.stats().sent.symbols_repeated), (0, 0));
    }
}

/// A node gave blocks that it took before the greeting to nobody: a transfer, and a program that
/// had called another one, waited for ever.
#[test]
fn a_block_that_overtook_the_greeting_comes_after_it() {
    let (mut near, mut far) = (session(PAYLOADS[0]), session(PAYLOADS[0]));
    let late = greeting(&mut near);
    near.handle(at(10), PathId(0), PathEvent::Control(greeting(&mut far)));
    near.send(at(10), Block::reliable(FlowId(0), Bytes::from_static(b"first"))).unwrap();
    let first = datagrams(&mut near, at(10));
    hand_over(&mut far, at(20), first);
    far.handle(at(30), PathId(0), PathEvent::Control(late));
    hand_over(&mut far, at(30), Vec::new());
    let events: Vec<_> = core::iter::from_fn(|| far.poll()).collect();
    let place = |is_it: fn(&Event) -> bool| events.iter().position(is_it).unwrap();
    let greeted = place(|event| matches!(event, Event::Greeted { .. }));
    assert!(greeted < place(|event| matches!(event, Event::Block(_))), "{events:?}");
}

#[test]
fn a_name_that_would_steer_a_terminal_is_read_as_what_can_be_shown() {
    let mut near = Session::new(SessionConfig::default());
    near.open(Opening { name: "polar\n\u{1b}[2J".to_owned(), ..Opening::default() });
    near.handle(Instant::ZERO, PathId(0), PathEvent::Up { payload: PAYLOADS[0] });
    let mut far = session(PAYLOADS[0]);
    far.handle(Instant::ZERO, PathId(0), PathEvent::Control(greeting(&mut near)));
    let names = std::iter::from_fn(|| far.poll()).find_map(|event| match event {
        Event::Greeted { name, .. } => Some(name),
        _ => None,
    });
    assert_eq!(names.as_deref(), Some(r"polar\x0a\x1b[2J"));
}
