use super::*;
use crate::stream::Spec;
use crate::wire::{HELLO_LEN, VERSION};

const NEAR: &str = "192.0.2.7:4000";
const OTHER: &str = "192.0.2.8:4000";

fn far() -> ProbeServer {
    let limits = RequestLimits {
        rate: Rate::from_mbps(100),
        time: Duration::from_secs(60),
        datagrams: 100_000,
    };
    ProbeServer::new(FarConfig { limits, utc_at_zero: Utc::from_nanos(0), secret: [3; 32] })
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Everything that the far end says at `now` to a datagram.
fn raw(far: &mut ProbeServer, now: Instant, from: &str, datagram: &[u8]) -> Vec<ProbeDatagram> {
    let received = ProbeReceived { at: now, from: from.parse().unwrap(), bytes: datagram };
    far.datagram(now, received, &mut HostCounters::default);
    std::iter::from_fn(|| far.poll(now)).collect()
}

fn say(far: &mut ProbeServer, now: Instant, from: &str, message: &Message) -> Vec<Message> {
    let said = raw(far, now, from, &message.encode(HELLO_LEN));
    said.iter().map(|out| Message::decode(&out.datagram).unwrap()).collect()
}

fn opened(far: &mut ProbeServer, now: Instant, from: &str) -> u64 {
    let [Message::Challenge { cookie, .. }] = say(far, now, from, &Message::Hello { nonce: 5 })[..]
    else {
        panic!("no challenge")
    };
    let [Message::Opened { session, .. }] =
        say(far, now, from, &Message::Open { nonce: 5, cookie })[..]
    else {
        panic!("not opened")
    };
    session
}

#[test]
fn nothing_is_longer_than_the_question_before_the_address_is_shown() {
    let mut far = far();
    let mut questions: Vec<Vec<u8>> = (0..HELLO_LEN)
        .map(|len| {
            let mut hello = Message::Hello { nonce: 1 }.encode(0);
            hello.resize(len, 0);
            hello
        })
        .collect();
    let cookie = Cookie([0; 16]);
    let size = Message::Size { session: 4, number: 1, answer: 9_000 };
    let spec = Spec { payload: ByteCount::new(9_000), spacing: Duration::from_micros(1), count: 9 };
    let begin = Message::Begin { session: 4, stream: 1, direction: StreamDirection::Down, spec };
    questions
        .extend([Message::Open { nonce: 1, cookie }, size, begin].map(|message| message.encode(0)));
    questions.push([b"SkhP", &[VERSION + 1, 1][..]].concat());
    for question in questions {
        let bytes: usize =
            raw(&mut far, at(1), NEAR, &question).iter().map(|out| out.datagram.len()).sum();
        assert!(bytes <= question.len(), "{bytes} for {}", question.len());
    }
    assert_eq!(far.sessions(), 0);
}

#[test]
fn a_cookie_is_of_one_address_and_grows_old() {
    let mut far = far();
    let [Message::Challenge { cookie, .. }] =
        say(&mut far, at(0), NEAR, &Message::Hello { nonce: 5 })[..]
    else {
        panic!("no challenge")
    };
    let open = Message::Open { nonce: 5, cookie };
    let refused = [Message::Refused { about: 5, reason: RequestRefusal::Cookie }];
    assert_eq!(say(&mut far, at(1), OTHER, &open), refused);
    assert_eq!(say(&mut far, at(61_000), NEAR, &open), refused);
    assert!(matches!(say(&mut far, at(29_000), NEAR, &open)[..], [Message::Opened { .. }]));
}

#[test]
fn a_question_that_is_repeated_opens_one_session_and_begins_one_stream() {
    let mut far = far();
    let session = opened(&mut far, at(0), NEAR);
    assert_eq!(opened(&mut far, at(1), NEAR), session);
    let spec = Spec { payload: ByteCount::new(100), spacing: Duration::from_millis(1), count: 10 };
    let begin = Message::Begin { session, stream: 1, direction: StreamDirection::Up, spec };
    assert_eq!(say(&mut far, at(2), NEAR, &begin), [Message::Begun { session, stream: 1 }]);
    let data = Message::Data { session, stream: 1, seq: 0, sent: Utc::from_nanos(0) };
    assert_eq!(say(&mut far, at(3), NEAR, &data), []);
    assert_eq!(say(&mut far, at(3), NEAR, &data), []);
    assert_eq!(say(&mut far, at(4), NEAR, &begin), [Message::Begun { session, stream: 1 }]);
    let [Message::Told { tally, .. }] =
        say(&mut far, at(5), NEAR, &Message::Ask { session, stream: 1 })[..]
    else {
        panic!("not told")
    };
    assert_eq!((tally.received, tally.duplicates), (1, 1));
    let arrivals = vec![(0, Utc::from_micros(3_000))];
    assert_eq!(
        say(&mut far, at(5), NEAR, &Message::Fetch { session, stream: 1, from: 0 }),
        [Message::Arrivals { session, stream: 1, from: 0, arrivals }]
    );
}

#[test]
fn a_session_belongs_to_its_address() {
    let mut far = far();
    let session = opened(&mut far, at(0), NEAR);
    let ping = Message::Ping { session, number: 1, sent: Utc::from_nanos(0) };
    assert_eq!(
        say(&mut far, at(1), OTHER, &ping),
        [Message::Refused { about: session, reason: RequestRefusal::Session }]
    );
    assert!(matches!(say(&mut far, at(1), NEAR, &ping)[..], [Message::Pong { number: 1, .. }]));
}

#[test]
fn a_stream_keeps_its_spacing_and_ends_when_nobody_listens() {
    let mut far = far();
    let session = opened(&mut far, at(0), NEAR);
    let spec =
        Spec { payload: ByteCount::new(200), spacing: Duration::from_millis(1), count: 20_000 };
    let begin = Message::Begin { session, stream: 1, direction: StreamDirection::Down, spec };
    assert_eq!(say(&mut far, at(0), NEAR, &begin), [Message::Begun { session, stream: 1 }]);
    let mut sent = 0;
    let mut last = at(0);
    while let Some(due) = far.next_timeout() {
        if let Some(out) = far.poll(due) {
            assert_eq!(out.datagram.len(), 200);
            assert!(sent == 0 || due == last + Duration::from_millis(1));
            (sent, last) = (sent + 1, due);
        }
    }
    assert_eq!(sent, 2_996);
    let [Message::Told { tally, .. }] =
        say(&mut far, at(4_000), NEAR, &Message::Ask { session, stream: 1 })[..]
    else {
        panic!("not told")
    };
    assert_eq!(tally.offered, 2_996);
}

#[test]
fn more_than_the_limits_is_refused_for_one_and_for_all_together() {
    let mut far = far();
    let session = opened(&mut far, at(0), NEAR);
    let mut begin = |from: &str, session, stream, rate| {
        let spec =
            Spec::at(Rate::from_mbps(rate), ByteCount::new(1_000), Duration::from_secs(1), 9_000);
        let begin = Message::Begin { session, stream, direction: StreamDirection::Down, spec };
        say(&mut far, at(1), from, &begin).remove(0)
    };
    assert_eq!(
        begin(NEAR, session, 1, 101),
        Message::Refused { about: 1, reason: RequestRefusal::Limit }
    );
    assert_eq!(begin(NEAR, session, 2, 60), Message::Begun { session, stream: 2 });
    let other = opened(&mut far, at(1), OTHER);
    let spec = Spec::at(Rate::from_mbps(60), ByteCount::new(1_000), Duration::from_secs(1), 9_000);
    let begin =
        Message::Begin { session: other, stream: 1, direction: StreamDirection::Down, spec };
    assert_eq!(
        say(&mut far, at(1), OTHER, &begin)[0],
        Message::Refused { about: 1, reason: RequestRefusal::Busy }
    );
}

#[test]
fn sessions_are_bounded_and_fall_idle() {
    let mut far = far();
    for port in 0..SESSIONS_MAX {
        opened(&mut far, at(0), &format!("192.0.2.7:{}", 5_000 + port));
    }
    let [Message::Challenge { cookie, .. }] =
        say(&mut far, at(1), NEAR, &Message::Hello { nonce: 5 })[..]
    else {
        panic!("no challenge")
    };
    let open = Message::Open { nonce: 5, cookie };
    assert_eq!(
        say(&mut far, at(1), NEAR, &open),
        [Message::Refused { about: 5, reason: RequestRefusal::Busy }]
    );
    opened(&mut far, at(31_000), NEAR);
    assert_eq!(far.sessions(), 1);
}
