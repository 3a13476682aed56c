//! What the far end of a session says of channels that share it.

use bytes::Bytes;
use skyhaul_channels::wire::ChannelMessage;
use skyhaul_channels::{BLOCK_WINDOW, BlockChannels, BlockEvent, CHANNELS_MAX, SessionEnd};
use skyhaul_transport::{Block, cost};
use skyhaul_units::{Duration, FlowId, Instant};
use std::collections::BTreeSet;

/// Any blocks, each with two bytes of its flow and a length of one before it: one that is read is
/// written and read the same, and whatever they say, what was given out and not taken stays within
/// the windows, and channels within their number.
pub fn channels(input: &[u8]) {
    message(&Bytes::copy_from_slice(input));
    let first = FlowId(0x0001_0000);
    let mut channels = BlockChannels::new(SessionEnd::Called, first);
    let own = channels.begin(Instant::ZERO);
    let own = own.and_then(|key| channels.data(key, Block::reliable(first, vec![1].into())));
    assert!(own.is_some());
    let (mut open, mut waiting, mut rest) = (BTreeSet::new(), 0u64, input);
    for millis in 0_u64.. {
        let Some(([high, low, len], bytes)) = rest.split_first_chunk() else { break };
        let (block, after) = bytes.split_at(usize::from(*len).min(bytes.len()));
        rest = after;
        let now = Instant::ZERO + Duration::from_millis(millis);
        let flow = FlowId(first.0 + u32::from(u16::from_be_bytes([*high, *low])));
        let block = Bytes::copy_from_slice(block);
        message(&block);
        let Ok(events) = channels.receive(now, flow, &block) else { return };
        for event in events {
            match event {
                BlockEvent::Begun(key) => assert!(open.insert(key)),
                BlockEvent::Asked(key, request) => {
                    assert!(open.insert(key));
                    match request.len() % 2 {
                        0 => channels.accept(now, key),
                        _ => {
                            channels.refuse(key, request);
                            open.remove(&key);
                        }
                    }
                }
                BlockEvent::Accepted(_) => panic!("this end has asked for none"),
                BlockEvent::Ended(key) | BlockEvent::Refused(key, _) => drop(open.remove(&key)),
                BlockEvent::Data(key, _, bytes) => {
                    waiting += cost(bytes.len());
                    // Each second one is taken.
                    if waiting % 2 == 0 {
                        channels.taken(now, Duration::from_millis(9), key, bytes.len());
                    }
                }
                BlockEvent::Expendable(..) | BlockEvent::Credit(_) => {}
            }
        }
        assert!(open.len() <= CHANNELS_MAX as usize);
        assert!(waiting <= 2 * u64::from(CHANNELS_MAX) * BLOCK_WINDOW.as_u64());
        while let Some(block) = channels.poll_block() {
            assert!(ChannelMessage::decode(&block.bytes).is_ok());
        }
    }
}

/// One that is read is written the same.
pub(crate) fn message(block: &Bytes) {
    if let Ok(message) = ChannelMessage::decode(block) {
        assert_eq!(message.encode(), block);
    }
}
