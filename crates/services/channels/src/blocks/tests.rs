use super::*;
use crate::multiplexer::wire::{BadChannelMessage, ChannelContent, ChannelLimit, ChannelMessage};

const FIRST: FlowId = FlowId(0x0001_0000);
const RTT: Duration = Duration::from_millis(660);
const NOW: Instant = Instant::ZERO;

/// Two ends; what one says reaches the other at once, in order.
fn ends() -> (BlockChannels, BlockChannels) {
    let [near, far] =
        [SessionEnd::Calling, SessionEnd::Called].map(|end| BlockChannels::new(end, FIRST));
    (near, far)
}

fn block(len: usize) -> Block {
    Block::reliable(FlowId(FIRST.0 + 1), vec![7; len].into())
}

fn heard(at: &mut BlockChannels, block: Block) -> Vec<BlockEvent> {
    at.receive(NOW, block.flow, &block.bytes).unwrap()
}

/// What an end says of channels as such reaches the other.
fn settle(from: &mut BlockChannels, to: &mut BlockChannels) -> Vec<BlockEvent> {
    std::iter::from_fn(|| from.poll_block()).flat_map(|block| heard(to, block)).collect()
}

/// Opens a channel, and both ends know of it.
fn begin(near: &mut BlockChannels, far: &mut BlockChannels) -> ChannelKey {
    let key = near.begin(NOW).unwrap();
    assert_eq!(settle(near, far), [BlockEvent::Begun(key)]);
    settle(far, near);
    key
}

fn taken(at: &mut BlockChannels, key: ChannelKey, len: usize) {
    at.taken(NOW, RTT, key, len);
}

#[test]
fn a_channel_carries_blocks_both_ways_and_ends_at_both_ends() {
    let (mut near, mut far) = ends();
    let key = begin(&mut near, &mut far);
    let sent = near.data(key, block(3)).unwrap();
    let bytes = Bytes::from(vec![7; 3]);
    assert_eq!(heard(&mut far, sent), [BlockEvent::Data(key, block(3).flow, bytes.clone())]);
    let answer = far.data(key, block(3)).unwrap();
    assert_eq!(heard(&mut near, answer), [BlockEvent::Data(key, block(3).flow, bytes)]);
    near.end(key);
    assert_eq!(settle(&mut near, &mut far), [BlockEvent::Ended(key)]);
    assert_eq!(far.data(key, block(3)), None, "it is over at both ends");
}

#[test]
fn a_channel_begins_with_whichever_of_its_blocks_comes_first() {
    let (mut near, mut far) = ends();
    let key = near.begin(NOW).unwrap();
    let sent = near.data(key, block(3)).unwrap();
    let bytes = Bytes::from(vec![7; 3]);
    let came = heard(&mut far, sent);
    assert_eq!(came, [BlockEvent::Begun(key), BlockEvent::Data(key, block(3).flow, bytes)]);
    // The message that opens it brings the window, and begins nothing again.
    assert_eq!(far.credit(key), WINDOWS.first_credit.as_u64());
    settle(&mut near, &mut far);
    assert_eq!(far.credit(key), BLOCK_WINDOW.as_u64());
    // It may be overtaken by the end too.
    let second = near.begin(NOW).unwrap();
    let opening = near.poll_block().unwrap();
    near.end(second);
    let came = settle(&mut near, &mut far);
    assert_eq!(came, [BlockEvent::Begun(second), BlockEvent::Ended(second)]);
    assert_eq!(heard(&mut far, opening), []);
    assert_eq!(far.data(second, block(1)), None);
}

#[test]
fn a_channel_that_is_asked_for_waits_for_its_answer() {
    let (mut near, mut far) = ends();
    let request = Bytes::from_static(b"video");
    let key = near.ask(NOW, request.clone()).unwrap();
    assert_eq!(settle(&mut near, &mut far), [BlockEvent::Asked(key, request.clone())]);
    assert_eq!(settle(&mut far, &mut near), [], "nothing is said before the program decides");
    far.accept(NOW, key);
    assert_eq!(settle(&mut far, &mut near), [BlockEvent::Accepted(key)]);
    let sent = near.data(key, block(3)).unwrap();
    assert!(matches!(heard(&mut far, sent)[..], [BlockEvent::Data(..)]));
    // One that nobody wants ends with the reason.
    let key = near.ask(NOW, request.clone()).unwrap();
    settle(&mut near, &mut far);
    far.refuse(key, "nobody".into());
    assert_eq!(settle(&mut far, &mut near), [BlockEvent::Refused(key, "nobody".into())]);
    assert_eq!(near.data(key, block(3)), None);
    settle(&mut near, &mut far);
    assert!(near.begin(NOW).is_some());
}

#[test]
fn channels_of_both_ends_stand_side_by_side_on_flows_of_their_own() {
    let (mut near, mut far) = ends();
    let keys = [near.begin(NOW).unwrap(), near.begin(NOW).unwrap()];
    let theirs = begin(&mut far, &mut near);
    let mut flows: Vec<FlowId> =
        keys.iter().map(|key| near.data(*key, block(1)).unwrap().flow).collect();
    flows.push(far.data(theirs, block(1)).unwrap().flow);
    flows.sort();
    flows.dedup();
    assert_eq!(flows.len(), 3);
    let mut all: Vec<_> = std::iter::from_fn(|| near.begin(NOW)).collect();
    all.extend(std::iter::from_fn(|| far.begin(NOW)));
    assert_eq!(all.len() + keys.len() + 1, 2 * CHANNELS_MAX as usize);
    // The last flows of the last channel are within the flows of the service.
    flows.extend(all.iter().map(|key| near.channels.rules().flow(*key)));
    assert!(flows.iter().all(|flow| (FIRST.0 + 1..FIRST.0 + (1 << 16)).contains(&flow.0)));
}

#[test]
fn a_program_that_takes_nothing_holds_its_own_channel_back_and_no_other() {
    let (mut near, mut far) = ends();
    let (slow, quick) = (begin(&mut near, &mut far), begin(&mut near, &mut far));
    let mut sent = 0;
    while near.may_send(slow, &block(1 << 20)) {
        let block = near.data(slow, block(1 << 20)).unwrap();
        let came = heard(&mut far, block);
        sent += came.iter().filter(|event| matches!(event, BlockEvent::Data(..))).count();
    }
    assert!((28..32).contains(&sent), "{sent} MiB of a window of {BLOCK_WINDOW}");
    assert!(near.may_send(quick, &block(1 << 20)));
    // It takes some: the far end hears of it at half of the window.
    (0..15).for_each(|_| taken(&mut far, slow, 1 << 20));
    assert_eq!(settle(&mut far, &mut near), []);
    taken(&mut far, slow, 1 << 20);
    assert_eq!(settle(&mut far, &mut near), [BlockEvent::Credit(slow)]);
    let more = std::iter::from_fn(|| {
        near.may_send(slow, &block(1 << 20)).then(|| near.data(slow, block(1 << 20)).unwrap())
    });
    assert_eq!(more.count(), 16);
}

#[test]
fn the_largest_block_finds_room_whatever_was_told() {
    let (mut near, mut far) = ends();
    let keys: Vec<_> = (0..CHANNELS_MAX).map(|_| begin(&mut near, &mut far)).collect();
    let largest = MAX_BLOCK - wire::HEAD;
    // The first has the widest window, the last the narrowest.
    for key in [keys[0], keys[keys.len() - 1]] {
        for small in [0, 1, 900, 500_000, 1 << 20, 3 << 20] {
            for len in [small, largest].into_iter().filter(|len| *len > 0) {
                assert!(near.may_send(key, &block(len)), "{len} behind {small}");
                let sent = near.data(key, block(len)).unwrap();
                heard(&mut far, sent);
                taken(&mut far, key, len);
                settle(&mut far, &mut near);
            }
        }
    }
}

#[test]
fn the_windows_of_many_channels_stay_within_their_budget_and_a_busy_one_grows() {
    let (mut near, mut far) = ends();
    let keys: Vec<_> = (0..CHANNELS_MAX).map(|_| begin(&mut near, &mut far)).collect();
    let all = WINDOWS.budget + ByteCount::mib(18 * u64::from(CHANNELS_MAX));
    let given = far.channels.granted();
    assert!(given <= all, "{given}");
    let last = keys[keys.len() - 1];
    assert_eq!(near.credit(last), WINDOWS.first_credit.as_u64());
    // The others end, and the last one is busy.
    keys[..keys.len() - 1].iter().for_each(|key| near.end(*key));
    settle(&mut near, &mut far);
    settle(&mut far, &mut near);
    for _ in 0..40 {
        let sent = near.data(last, block(1 << 20)).unwrap();
        heard(&mut far, sent);
        taken(&mut far, last, 1 << 20);
        settle(&mut far, &mut near);
    }
    assert!(near.credit(last) > ByteCount::mib(24).as_u64(), "{}", near.credit(last));
    assert_eq!(far.channels.granted(), BLOCK_WINDOW);
}

#[test]
fn what_comes_late_for_a_channel_that_is_over_is_for_nobody_and_never_for_the_next() {
    let (mut near, mut far) = ends();
    let first = begin(&mut near, &mut far);
    let late = near.data(first, block(5)).unwrap();
    let sent = near.data(first, block(6)).unwrap();
    assert_eq!(heard(&mut far, sent).len(), 1);
    let answer = far.data(first, block(7)).unwrap();
    near.end(first);
    // Its slot has no other channel before the far end has confirmed its end.
    let beside = near.begin(NOW).unwrap();
    assert_ne!(near.channels.rules().flow(beside), near.channels.rules().flow(first));
    assert_eq!(settle(&mut near, &mut far), [BlockEvent::Ended(first), BlockEvent::Begun(beside)]);
    assert_eq!(settle(&mut far, &mut near), []);
    let second = near.begin(NOW).unwrap();
    assert_eq!(near.channels.rules().flow(second), near.channels.rules().flow(first));
    let sent = near.data(second, block(8)).unwrap();
    let came = heard(&mut far, sent);
    assert_eq!(came[..1], [BlockEvent::Begun(second)]);
    assert_eq!((heard(&mut far, late), heard(&mut near, answer)), (Vec::new(), Vec::new()));
    assert!(far.data(second, block(1)).is_some(), "the next one goes on");
}

#[test]
fn expendable_blocks_need_no_window() {
    let (mut near, mut far) = ends();
    let key = begin(&mut near, &mut far);
    let expendable = |len| Block::expendable(FIRST, Duration::from_secs(1), vec![1; len].into());
    for _ in 0..100 {
        assert!(near.may_send(key, &expendable(1 << 20)));
        let sent = near.data(key, expendable(1 << 20)).unwrap();
        assert!(matches!(heard(&mut far, sent).last(),
                Some(BlockEvent::Expendable(at, FIRST, _)) if *at == key));
    }
}

#[test]
fn an_end_that_keeps_to_no_rule_is_told_from_one_that_is_late() {
    let (mut near, mut far) = ends();
    let key = begin(&mut near, &mut far);
    let (rules, reset) = (*near.channels.rules(), ChannelContent::Reset { reason: Bytes::new() });
    let said = |generation, content| ChannelMessage { generation, content }.encode();
    let unknown = Err(BlockPeerError::Channel(ChannelPeerError::Unknown));
    let out_of_place = Err(BlockPeerError::Channel(ChannelPeerError::OutOfPlace(key)));
    // Of a slot of this end's, nothing begins there.
    assert_eq!(near.receive(NOW, rules.flow(key), &said(9, reset.clone())), unknown);
    assert_eq!(near.receive(NOW, FlowId(0), &said(1, reset.clone())), unknown);
    assert_eq!(near.receive(NOW, FIRST, &said(1, reset.clone())), unknown);
    let beyond = FlowId(FIRST.0 + 1 + 2 * CHANNELS_MAX * (FLOWS_OF_PROGRAM + 1));
    assert_eq!(far.receive(NOW, beyond, &said(1, reset.clone())), unknown);
    assert_eq!(
        near.receive(NOW, rules.flow(key), &Bytes::from_static(b"?")),
        Err(BlockPeerError::Channel(BadChannelMessage { len: 1 }.into()))
    );
    // On flows that are for something else.
    let data = ChannelContent::Data("x".into());
    assert_eq!(near.receive(NOW, rules.flow(key), &said(1, data)), out_of_place);
    assert_eq!(near.receive(NOW, rules.flow_at(key, 0), &said(1, reset)), out_of_place);
    let limits = ChannelContent::Windows(vec![ChannelLimit { key, limit: 1 }]);
    assert_eq!(near.receive(NOW, rules.flow(key), &said(1, limits)), out_of_place);
    // What only channels of other services have.
    assert_eq!(near.receive(NOW, rules.flow(key), &said(1, ChannelContent::Finish)), out_of_place);
    let service = ChannelContent::Service { kind: 16, body: Bytes::new() };
    assert_eq!(near.receive(NOW, FIRST, &said(1, service)), Err(BlockPeerError::Foreign));
    let empty = ChannelContent::Expendable(Bytes::new());
    let foreign = near.receive(NOW, rules.flow_at(key, 0), &said(1, empty));
    assert_eq!(foreign, Err(BlockPeerError::Foreign));
    let flood = Bytes::from(vec![0; 8 << 20]);
    let mut outcome = Ok(Vec::new());
    for _ in 0..8 {
        let data = said(1, ChannelContent::Data(flood.clone()));
        outcome = outcome.and_then(|_| far.receive(NOW, rules.flow_at(key, 0), &data));
    }
    assert_eq!(outcome, Err(BlockPeerError::Channel(ChannelPeerError::OverWindow(key))));
}

#[test]
fn a_flow_that_is_none_of_a_program_is_not_sent() {
    let (mut near, _) = ends();
    let key = near.begin(NOW).unwrap();
    for flow in [0, FIRST.0 - 1, FIRST.0 + FLOWS_OF_PROGRAM, u32::MAX] {
        assert_eq!(near.data(key, Block { flow: FlowId(flow), ..block(1) }), None);
    }
}

#[test]
fn messages_that_wait_for_the_session_are_one_a_slot_whatever_the_far_end_does() {
    let (_, mut far) = ends();
    let flow = far.channels.rules().flow_at(begin(&mut ends().0, &mut ends().1), 1_022);
    for generation in 1..10_000 {
        let said = |content| ChannelMessage { generation, content }.encode();
        let open = ChannelContent::Open { window: 1, request: Bytes::new() };
        far.receive(NOW, flow, &said(open)).unwrap();
        let reset = ChannelContent::Reset { reason: Bytes::new() };
        far.receive(NOW, flow, &said(reset)).unwrap();
    }
    assert_eq!(std::iter::from_fn(|| far.poll_block()).count(), 1);
}
