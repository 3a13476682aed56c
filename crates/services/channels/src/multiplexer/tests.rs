use super::*;

const RTT: Duration = Duration::from_millis(100);
const BUDGET: ByteCount = ByteCount::kib(64);
const FIRST_CREDIT: ByteCount = ByteCount::kib(4);

fn ends() -> [Multiplexer; 2] {
    let rules = ChannelRules {
        first: FlowId(100),
        flows: 1,
        per_end: 4,
        counted: Counted::Bytes,
        windows: WindowRules {
            first_credit: FIRST_CREDIT,
            widest: ByteCount::kib(32),
            largest: ByteCount::new(1),
            budget: BUDGET,
        },
    };
    [SessionEnd::Calling, SessionEnd::Called].map(|end| Multiplexer::new(end, rules))
}

fn hear(at: &mut Multiplexer, now: Instant, flow: FlowId, block: &Bytes) -> Vec<ChannelEvent> {
    at.receive(now, flow, block).unwrap();
    std::iter::from_fn(|| at.poll_event()).collect()
}

/// A channel that both ends know.
fn open(near: &mut Multiplexer, far: &mut Multiplexer) -> ChannelKey {
    let key = near.open(Instant::ZERO, Carries::Data).unwrap();
    let flow = near.rules().flow(key);
    let message = near.open_message(key, "to".into());
    let opened = ChannelEvent::Opened { key, carries: Carries::Data, request: "to".into() };
    assert_eq!(hear(far, Instant::ZERO, flow, &message), [opened]);
    let message = far.accept(Instant::ZERO, key).unwrap();
    assert_eq!(hear(near, Instant::ZERO, flow, &message)[0], ChannelEvent::Accepted(key));
    key
}

/// Sends `len` bytes that the far end's application takes, `millis` after the last.
fn send(ends: &mut [Multiplexer; 2], key: ChannelKey, len: usize, now: Instant) {
    let [near, far] = ends;
    let message = near.data(key, &vec![1; len]).unwrap();
    assert_eq!(hear(far, now, near.rules().flow(key), &message).len(), 1);
    far.taken(now, RTT, key, len);
    while let Some(message) = far.poll_windows() {
        hear(near, now, near.rules().first, &message);
    }
}

#[test]
fn a_window_grows_that_holds_a_quick_reader_back_and_a_slow_one_keeps_its_width() {
    for (pause, grows) in [(Duration::from_millis(1), true), (Duration::from_secs(60), false)] {
        let mut both = ends();
        let [near, far] = &mut both;
        let key = open(near, far);
        let begun = near.credit(key);
        let mut now = Instant::ZERO;
        for _ in 0..20 {
            now += pause;
            send(&mut both, key, 3 << 10, now);
        }
        let granted = both[1].granted().as_u64();
        assert_eq!(granted > begun, grows, "{granted} bytes after a window of {begun}");
        assert!(granted <= 32 << 10);
    }
}

#[test]
fn all_windows_stay_within_the_budget_and_the_first_credit_of_each() {
    let mut both = ends();
    let [near, far] = &mut both;
    let keys = [(); 4].map(|()| open(near, far));
    let mut now = Instant::ZERO;
    for _ in 0..50 {
        for key in keys {
            now += Duration::from_millis(1);
            let len = both[0].credit(key).min(2 << 10);
            assert!(len > 0, "a reader that takes everything never leaves the far end waiting");
            send(&mut both, key, len as usize, now);
        }
    }
    assert!(both[1].granted() <= BUDGET + ByteCount::kib(4 * 4), "{}", both[1].granted());
    assert_eq!(both[0].open(now, Carries::Data), None);
}

#[test]
fn a_channel_ends_when_both_directions_have_and_its_slot_is_used_again_then() {
    let [mut near, mut far] = ends();
    let first = open(&mut near, &mut far);
    let flow = near.rules().flow(first);
    let late = far.data(first, b"late").unwrap();
    let finish = near.finish(first).unwrap();
    assert_eq!(near.finish(first), None);
    assert_eq!(near.data(first, b"x"), None);
    assert_eq!(hear(&mut far, Instant::ZERO, flow, &finish), [ChannelEvent::Finished(first)]);
    assert_eq!(near.count(), 1);
    let beside = near.open(Instant::ZERO, Carries::Data).unwrap();
    assert_ne!(near.rules().flow(beside), flow);
    let finish = far.finish(first).unwrap();
    hear(&mut near, Instant::ZERO, flow, &finish);
    assert_eq!((near.contains(first), far.contains(first)), (false, false));
    let second = near.open(Instant::ZERO, Carries::Data).unwrap();
    assert_eq!(near.rules().flow(second), flow);
    assert_eq!(hear(&mut near, Instant::ZERO, flow, &late), []);
    assert_eq!(near.credit(second), FIRST_CREDIT.as_u64());
}

#[test]
fn a_reset_ends_both_directions_and_only_the_opener_waits_for_the_reply() {
    // The opener resets.
    let [mut near, mut far] = ends();
    let key = open(&mut near, &mut far);
    let flow = near.rules().flow(key);
    let reset = near.reset(key, "why".into()).unwrap();
    assert_eq!(near.reset(key, Bytes::new()), None);
    let came = hear(&mut far, Instant::ZERO, flow, &reset);
    let [ChannelEvent::Reply { message, .. }, ended, ChannelEvent::Gone(_)] = &came[..] else {
        panic!("{came:?}")
    };
    let reason = Bytes::from("why");
    assert_eq!(*ended, ChannelEvent::Ended { key, reason, answer: Answer::Given });
    assert_eq!((near.count(), far.count()), (1, 0));
    assert_eq!(hear(&mut near, Instant::ZERO, flow, message), [ChannelEvent::Gone(key)]);
    assert_eq!((near.count(), near.granted()), (0, ByteCount::ZERO));
    // The far end refuses: nothing is to be said in return.
    let key = near.open(Instant::ZERO, Carries::Data).unwrap();
    let message = near.open_message(key, Bytes::new());
    hear(&mut far, Instant::ZERO, flow, &message);
    let reset = far.reset(key, "no".into()).unwrap();
    assert_eq!(far.accept(Instant::ZERO, key), None);
    let refused = ChannelEvent::Ended { key, reason: "no".into(), answer: Answer::Awaited };
    let came = hear(&mut near, Instant::ZERO, flow, &reset);
    assert_eq!(came, [refused, ChannelEvent::Gone(key)]);
    assert_eq!((near.count(), far.count()), (0, 0));
}

#[test]
fn a_channel_of_expendable_bytes_has_no_window() {
    let [mut near, mut far] = ends();
    let key = near.open(Instant::ZERO, Carries::Expendable).unwrap();
    let flow = near.rules().flow(key);
    let early = near.expendable(key, b"1").unwrap();
    let came = hear(&mut far, Instant::ZERO, flow, &early);
    assert_eq!(came, [ChannelEvent::Early { key, bytes: "1".into() }]);
    let message = near.open_message(key, Bytes::new());
    hear(&mut far, Instant::ZERO, flow, &message);
    let came = hear(&mut far, Instant::ZERO, flow, &early);
    assert_eq!(came, [ChannelEvent::Expendable { key, place: 0, bytes: "1".into() }]);
    assert_eq!((near.credit(key), far.credit(key), near.granted()), (0, 0, ByteCount::ZERO));
    let data = wire::data(key.generation, b"x");
    assert_eq!(far.receive(Instant::ZERO, flow, &data), Err(ChannelPeerError::OverWindow(key)));
    far.reset(key, Bytes::new());
    assert_eq!(hear(&mut far, Instant::ZERO, flow, &early), [ChannelEvent::Missed]);
}

#[test]
fn an_end_that_opens_a_slot_in_use_is_refused() {
    let [mut near, mut far] = ends();
    let key = open(&mut near, &mut far);
    let next = ChannelKey { generation: key.generation + 1, ..key };
    let content = ChannelContent::Open { window: 9, request: Bytes::new() };
    let flow = near.rules().flow(key);
    for key in [key, next] {
        let outcome = far.receive(Instant::ZERO, flow, &key.message(content.clone()));
        assert_eq!(outcome, Err(ChannelPeerError::OutOfPlace(key)));
    }
}
