//! What a far forwarding node says, what applications say by SOCKS, and what an operator writes of
//! forwards and rules.

use bytes::Bytes;
use skyhaul_channels::SessionEnd;
use skyhaul_channels::wire::{ChannelContent, ChannelMessage};
use skyhaul_forward::socks::{self, Handshake, SocksStep};
use skyhaul_forward::wire::{ForwardRefusal, ListenMessage, StreamRequest};
use skyhaul_forward::{
    Allow, Carriage, ConnectRefusal, Entrance, Event, Forward, ForwardStreams, STREAMS_MAX, Target,
};
use skyhaul_transport::ClassTree;
use skyhaul_units::{ByteCount, Duration, FlowId, Instant};

/// Any blocks, each with its flow and a length of two bytes before it: one that is read is written
/// and read the same, and whatever they say, the streams stay within their bounds. As text: what is
/// read is written and read the same.
pub fn forward(input: &[u8]) {
    if let Ok(text) = core::str::from_utf8(input) {
        let _ = text.parse::<Forward>();
        let _ = text.parse::<Entrance>();
        if let Ok(target) = text.parse::<Target>() {
            assert_eq!(target.to_string().parse(), Ok(target));
        }
        if let Ok(rule) = text.parse::<Allow>() {
            assert_eq!(rule.to_string().parse(), Ok(rule));
        }
    }
    application(input);
    let budget = ByteCount::kib(64);
    let mut mux = ForwardStreams::new(SessionEnd::Called, &ClassTree::default(), budget);
    let target = Target::Unix("/run/a.sock".to_owned());
    let _ = mux.open(Instant::ZERO, target, &Carriage::default());
    let mut rest = input;
    for millis in 0..64 {
        let Some(([flow, high, low], bytes)) = rest.split_first_chunk() else { break };
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(bytes.len());
        let (block, later) = bytes.split_at(length);
        rest = later;
        let block = Bytes::copy_from_slice(block);
        messages(&block);
        let now = Instant::ZERO + Duration::from_millis(millis);
        if mux.receive(now, FlowId((*flow).into()), &block).is_err() {
            break;
        }
        while let Some(event) = mux.poll_event() {
            match event {
                Event::Opened { id, .. } if millis % 2 == 0 => mux.accept(now, id),
                Event::Opened { id, .. } if millis % 3 == 0 => {
                    mux.refuse(id, ConnectRefusal::NotAllowed, "no")
                }
                Event::Data(id, bytes) => mux.taken(now, Duration::from_millis(9), id, bytes.len()),
                Event::Finished(id) => mux.finish(id),
                Event::Datagram(id, bytes) => {
                    mux.datagram(id, &bytes);
                }
                Event::ListenAsked { number, listen } => mux.listens.grant(number, listen.at),
                _ => {}
            }
        }
        while mux.poll_block().is_some() {}
        assert!(mux.streams() <= 1 + STREAMS_MAX as usize);
    }
}

/// What is read of a message is written and read the same.
fn messages(block: &Bytes) {
    crate::channels::message(block);
    let Ok(ChannelMessage { generation, content }) = ChannelMessage::decode(block) else { return };
    match content {
        ChannelContent::Open { request, .. } => {
            if let Ok(request) = StreamRequest::decode(&request) {
                assert_eq!(StreamRequest::decode(&request.encode()), Ok(request));
            }
        }
        ChannelContent::Reset { reason } => {
            if let Ok(refusal) = ForwardRefusal::decode(&reason) {
                assert_eq!(ForwardRefusal::decode(&refusal.encode()), Ok(refusal));
            }
        }
        ChannelContent::Service { kind, body } => {
            if let Ok(message) = ListenMessage::decode(kind, &body) {
                let again = ChannelMessage::decode(&message.encode(generation));
                let Ok(ChannelMessage { content: ChannelContent::Service { kind, body }, .. }) =
                    again
                else {
                    panic!("{again:?} is not a message of the service")
                };
                assert_eq!(ListenMessage::decode(kind, &body), Ok(message));
            }
        }
        _ => {}
    }
}

/// As an application: whatever it says, the handshake ends or wants more, and what it wants is
/// bounded.
fn application(input: &[u8]) {
    let (mut handshake, mut rest) = (Handshake::default(), input);
    while !rest.is_empty() {
        let wants = handshake.wants();
        assert!((1..=262).contains(&wants));
        let (bytes, later) = rest.split_at(wants.min(rest.len()));
        rest = later;
        match handshake.take(bytes) {
            SocksStep::Read | SocksStep::Say(_) => {}
            SocksStep::Asked(_) | SocksStep::Refuse(_) => break,
        }
    }
    if let Some((target, bytes)) = socks::unwrap(input) {
        let again = socks::wrap(&target, bytes);
        assert_eq!(socks::unwrap(&again), Some((target, bytes)));
    }
}
