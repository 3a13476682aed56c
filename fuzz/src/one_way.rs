//! Datagrams of a path without return: sealed ones from anyone, plain ones from a sender that means
//! harm, and blocks.

use bytes::Bytes;
use skyhaul_identity::OneWayKey;
use skyhaul_oneway::Listener;
use skyhaul_oneway::file::Part;
use skyhaul_transport::oneway::{Event, Message, OneWayReceiver, ReceiverConfig};
use skyhaul_units::{ByteCount, Duration, Instant};

/// A receiver takes anything, opened or not: memory stays bounded, every block seen is accounted
/// for, and what reads is encoded to bytes that read the same. The input is a series of records: a
/// length of two bytes (of which the highest bit says that a second passes), and a datagram.
pub fn one_way(input: &[u8]) {
    let config = ReceiverConfig { window: ByteCount::kib(64), ..ReceiverConfig::default() };
    let mut listener = Listener::new(OneWayKey::from_bytes([7; 32]), config);
    let mut receiver = OneWayReceiver::new(config);
    let mut now = Instant::ZERO;
    let mut rest = input;
    while let Some((len, tail)) = rest.split_first_chunk::<2>() {
        let len = u16::from_be_bytes(*len);
        let (datagram, tail) = tail.split_at(usize::from(len & 0x7fff).min(tail.len()));
        rest = tail;
        now += Duration::from_millis(if len & 0x8000 == 0 { 1 } else { 1_000 });
        let datagram = Bytes::copy_from_slice(datagram);
        if let Ok(message) = Message::decode(&datagram) {
            let again = Message::decode(&message.encode()).expect("what was encoded can be read");
            assert_eq!(again, message);
        }
        if let Ok(part) = Part::decode(&datagram) {
            assert_eq!(Part::decode(&part.clone().into_block().bytes), Ok(part));
        }
        listener.datagram(now, datagram.to_vec());
        receiver.datagram(now, datagram);
        while let Some(event) = receiver.poll_event() {
            assert!(!matches!(event, Event::Gap(gap) if gap.count == 0), "a gap of nothing");
        }
        assert!(receiver.memory() <= MEMORY, "{} bytes", receiver.memory());
    }
    let counters = receiver.counters();
    let settled = counters.blocks_delivered + counters.blocks_repaired + counters.blocks_dropped;
    assert_eq!(counters.blocks_seen, settled + receiver.in_flight());
    assert_eq!(listener.counters().opened, 0);
}

/// The window, the decoder's history, and repair symbols that wait.
const MEMORY: u64 = (64 << 10) + (16 << 20) + (1 << 16) + (2_048 << 15);
