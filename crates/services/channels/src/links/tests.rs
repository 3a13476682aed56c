use super::*;

const FIRST: FlowId = FlowId(0x0001_0000);

/// Two ends; what one says reaches the other at once, in order.
fn ends() -> (Links, Links) {
    (Links::new(SessionEnd::Calling, FIRST), Links::new(SessionEnd::Called, FIRST))
}

fn block(len: usize) -> Block {
    Block::reliable(FlowId(FIRST.0 + 1), vec![7; len].into())
}

fn heard(at: &mut Links, block: Block) -> Vec<Event> {
    at.receive(block.flow, &block.bytes).unwrap()
}

/// What an end says of links as such reaches the other.
fn settle(from: &mut Links, to: &mut Links) -> Vec<Event> {
    std::iter::from_fn(|| from.poll_block()).flat_map(|block| heard(to, block)).collect()
}

#[test]
fn a_link_begins_with_its_first_block_and_both_ends_say_things_on_it() {
    let (mut near, mut far) = ends();
    let place = near.begin().unwrap();
    let sent = near.data(place, block(3)).unwrap();
    let came = heard(&mut far, sent);
    let bytes = Bytes::from(vec![7; 3]);
    assert_eq!(came, [Event::Begun(place), Event::Data(place, block(3).flow, bytes.clone())]);
    let answer = far.data(place, block(3)).unwrap();
    assert_eq!(heard(&mut near, answer), [Event::Data(place, block(3).flow, bytes)]);
    near.end(place);
    assert_eq!(settle(&mut near, &mut far), [Event::Ended(place)]);
    assert_eq!(far.data(place, block(3)), None, "it is over at both ends");
}

#[test]
fn links_of_both_ends_stand_side_by_side_on_flows_of_their_own() {
    let (mut near, mut far) = ends();
    let places = [near.begin().unwrap(), near.begin().unwrap()];
    let theirs = far.begin().unwrap();
    let mut flows: Vec<FlowId> =
        places.iter().map(|place| near.data(*place, block(1)).unwrap().flow).collect();
    flows.push(far.data(theirs, block(1)).unwrap().flow);
    flows.dedup();
    assert_eq!(flows.len(), 3);
    assert!(flows.iter().all(|flow| (FIRST.0..FIRST.0 + (1 << 16)).contains(&flow.0)), "{flows:?}");
    let all: Vec<_> = std::iter::from_fn(|| near.begin()).collect();
    assert_eq!(all.len() + places.len(), LINKS_MAX);
}

#[test]
fn a_program_that_takes_nothing_holds_its_own_link_back_and_no_other() {
    let (mut near, mut far) = ends();
    let (slow, quick) = (near.begin().unwrap(), near.begin().unwrap());
    let mut sent = 0;
    while near.may_send(slow, &block(1 << 20)) {
        let block = near.data(slow, block(1 << 20)).unwrap();
        sent +=
            heard(&mut far, block).iter().filter(|event| matches!(event, Event::Data(..))).count();
    }
    assert!((28..32).contains(&sent), "{sent} MiB of a window of {WINDOW}");
    assert!(near.may_send(quick, &block(1 << 20)));
    // It takes some: the far end hears of it at a quarter of the window.
    (0..7).for_each(|_| far.taken(slow, 1 << 20));
    assert_eq!(settle(&mut far, &mut near), []);
    far.taken(slow, 1 << 20);
    assert_eq!(settle(&mut far, &mut near), [Event::Credit(slow)]);
    let more = std::iter::from_fn(|| {
        near.may_send(slow, &block(1 << 20)).then(|| near.data(slow, block(1 << 20)).unwrap())
    });
    assert_eq!(more.count(), 8);
}

#[test]
fn the_largest_block_finds_room_whatever_was_told() {
    let (mut near, mut far) = ends();
    let place = near.begin().unwrap();
    let largest = skyhaul_transport::MAX_BLOCK - HEAD;
    for _ in 0..5 {
        assert!(near.may_send(place, &block(largest)));
        let sent = near.data(place, block(largest)).unwrap();
        heard(&mut far, sent);
        far.taken(place, largest);
        settle(&mut far, &mut near);
    }
}

#[test]
fn what_comes_late_for_a_link_that_is_over_is_for_nobody_and_never_for_the_next() {
    let (mut near, mut far) = ends();
    let first = near.begin().unwrap();
    let late = near.data(first, block(5)).unwrap();
    let sent = near.data(first, block(6)).unwrap();
    assert_eq!(heard(&mut far, sent).len(), 2);
    let answer = far.data(first, block(7)).unwrap();
    near.end(first);
    let second = near.begin().unwrap();
    assert_eq!(second.slot, first.slot);
    // The next link overtakes the end of the one before.
    let sent = near.data(second, block(8)).unwrap();
    let came = heard(&mut far, sent);
    assert_eq!(came[..2], [Event::Ended(first), Event::Begun(second)]);
    assert_eq!(settle(&mut near, &mut far), [], "its end is no news");
    assert_eq!((heard(&mut far, late), heard(&mut near, answer)), (Vec::new(), Vec::new()));
}

#[test]
fn expendable_blocks_need_no_window() {
    let (mut near, mut far) = ends();
    let place = near.begin().unwrap();
    let passing =
        |len| Block::expendable(FIRST, skyhaul_units::Duration::from_secs(1), vec![1; len].into());
    for _ in 0..100 {
        assert!(near.may_send(place, &passing(1 << 20)));
        let sent = near.data(place, passing(1 << 20)).unwrap();
        assert!(matches!(heard(&mut far, sent).last(),
                Some(Event::Passing(at, FIRST, _)) if *at == place));
    }
}

#[test]
fn an_end_that_keeps_to_no_rule_is_told_from_one_that_is_late() {
    let (mut near, mut far) = ends();
    let place = near.begin().unwrap();
    let own = far.flow(place, 1);
    let said = |link, said| Message { link, said }.encode();
    // Of a slot of this end's, nothing begins there.
    assert_eq!(near.receive(own, &said(9, LinkMessage::End)), Err(LinkPeerError::Unknown));
    assert_eq!(near.receive(FlowId(0), &said(1, LinkMessage::End)), Err(LinkPeerError::Unknown));
    let beyond = FlowId(FIRST.0 + 2 * LINKS_MAX as u32 * FLOWS);
    assert_eq!(far.receive(beyond, &said(1, LinkMessage::End)), Err(LinkPeerError::Unknown));
    assert_eq!(
        near.receive(own, &Bytes::from_static(b"?")),
        Err(LinkPeerError::Malformed(Malformed))
    );
    // More was taken than was ever sent.
    assert_eq!(
        near.receive(own, &said(place.link, LinkMessage::Taken(1))),
        Err(LinkPeerError::Unknown)
    );
    let flood = Bytes::from(vec![0; 8 << 20]);
    let mut outcome = Ok(Vec::new());
    for _ in 0..8 {
        outcome =
            outcome.and_then(|_| far.receive(own, &said(1, LinkMessage::Data(flood.clone()))));
    }
    assert_eq!(outcome, Err(LinkPeerError::OverWindow));
}

#[test]
fn a_flow_that_is_none_of_a_program_is_not_sent() {
    let (mut near, _) = ends();
    let place = near.begin().unwrap();
    for flow in [0, FIRST.0 - 1, FIRST.0 + CONTROL, u32::MAX] {
        assert_eq!(near.data(place, Block { flow: FlowId(flow), ..block(1) }), None);
    }
}
