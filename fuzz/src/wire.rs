//! What arrives from the line.

use bytes::Bytes;
use skyhaul_transport::wire::{
    Control, ControlReader, Datagram, encode_protected, encode_repair, padding,
};

/// A datagram that reads is encoded to bytes that read and encode to themselves. (The input itself
/// may differ: it may have wide integers, a head with more than is known, or a time past the year
/// 2262, which is held to it.)
pub fn wire_datagram(input: &[u8]) {
    let Ok(datagram) = Datagram::decode(&Bytes::copy_from_slice(input)) else { return };
    let encoded = encode(&datagram);
    let again = Datagram::decode(&encoded).expect("what was encoded can be read");
    assert_eq!(encode(&again), encoded);
}

fn encode(datagram: &Datagram) -> Bytes {
    match datagram {
        Datagram::Symbol(symbol) => symbol.header.encode(&symbol.bytes),
        Datagram::Report(report) => report.encode(),
        Datagram::Notice(notice) => notice.encode(),
        Datagram::Padding(size) => padding(*size),
        Datagram::Protected { sid, content } => encode_protected(content, *sid),
        Datagram::Repair { path, symbol } => encode_repair(*path, symbol),
    }
}

/// A control stream gives the same messages however it is cut, and each is encoded again and reads
/// the same.
pub fn wire_control(input: &[u8]) {
    let whole = messages([input]);
    let (first, second) = input.split_at(input.len() / 2);
    assert_eq!(messages([first, second]), whole);
    for message in whole {
        assert_eq!(messages([&message.encode()[..]]), [message]);
    }
}

fn messages<const N: usize>(pieces: [&[u8]; N]) -> Vec<Control> {
    let mut reader = ControlReader::default();
    let mut messages = Vec::new();
    for piece in pieces {
        reader.push(piece);
        while let Ok(Some(message)) = reader.next_message() {
            messages.push(message);
        }
    }
    messages
}
