//! What the far end of a session says of links that share it.

use bytes::Bytes;
use skyhaul_channels::links::wire::Message;
use skyhaul_channels::links::{Event, LINKS_MAX, Links, SessionEnd, WINDOW};
use skyhaul_transport::{Block, cost};
use skyhaul_units::FlowId;
use std::collections::BTreeSet;

/// Any blocks, each with two bytes of its flow and a length of one before it: one that is read is
/// written and read the same, and whatever they say, what was given out and not taken stays within
/// the windows, and links within their number.
pub fn links(input: &[u8]) {
    if let Ok(message) = Message::decode(&Bytes::copy_from_slice(input)) {
        assert_eq!(Message::decode(&message.encode()), Ok(message));
    }
    let first = FlowId(0x0001_0000);
    let mut links = Links::new(SessionEnd::Called, first);
    let own = links.begin();
    let own = own.and_then(|place| links.data(place, Block::reliable(first, vec![1].into())));
    assert!(own.is_some());
    let (mut open, mut waiting, mut rest) = (BTreeSet::new(), 0u64, input);
    while let Some(([high, low, len], bytes)) = rest.split_first_chunk() {
        let (block, after) = bytes.split_at(usize::from(*len).min(bytes.len()));
        rest = after;
        let flow = FlowId(first.0 + u32::from(u16::from_be_bytes([*high, *low])));
        let Ok(events) = links.receive(flow, &Bytes::copy_from_slice(block)) else { return };
        for event in events {
            match event {
                Event::Begun(place) => assert!(open.insert(place)),
                Event::Ended(place) => drop(open.remove(&place)),
                Event::Data(place, _, bytes) => {
                    waiting += cost(bytes.len());
                    // Each second one is taken.
                    if waiting % 2 == 0 {
                        links.taken(place, bytes.len());
                    }
                }
                Event::Passing(..) | Event::Credit(_) => {}
            }
        }
        assert!(open.len() <= LINKS_MAX);
        assert!(waiting <= 2 * (LINKS_MAX as u64) * WINDOW.as_u64());
        while let Some(block) = links.poll_block() {
            assert!(Message::decode(&block.bytes).is_ok());
        }
    }
}
