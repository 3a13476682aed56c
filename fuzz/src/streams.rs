//! What the far end of a stream says, and the bytes of a source.

use bytes::Bytes;
use skyhaul_streams::wire::Message;
use skyhaul_streams::{FrameFinder, NextBytes, StreamFormat, StreamReceiver};
use skyhaul_units::{Duration, Instant};

/// As a block: one that is read is written and read the same, and a group of it goes through the
/// sink's end, where each of its frames has one fate. As bytes: frames and what lies between them
/// are all there is.
pub fn streams(input: &[u8]) {
    for format in FORMATS {
        if let Ok(message) = Message::decode(&Bytes::copy_from_slice(input), format) {
            assert_eq!(Message::decode(&message.encode(), format), Ok(message.clone()));
            if let Message::Group(group) = message {
                goes_through(group, format);
            }
        }
        found(input, Some(format).filter(|format| format.has_headers()));
    }
}

const FORMATS: [StreamFormat; 4] =
    [StreamFormat::Vdif, StreamFormat::Mark5b, StreamFormat::Datagrams, StreamFormat::Rtp];

fn goes_through(mut group: skyhaul_streams::wire::FrameGroup, format: StreamFormat) {
    // Missing frames before it are made; not millions of them.
    group.first %= 64;
    let mut arrival = StreamReceiver::new(format, Duration::ZERO, None);
    let (now, end) = (Instant::ZERO, group.first + u64::from(group.count));
    arrival.group(now, group.clone()).expect("the first group is in nobody's way");
    assert!(arrival.group(now, group).is_err(), "it waits already");
    let mut next = 0;
    while let Some(given) = arrival.poll(now) {
        assert_eq!(given.first, next);
        next += given.count;
    }
    assert!(next == end && arrival.counters().balances());
}

fn found(input: &[u8], format: Option<StreamFormat>) {
    let mut finder = FrameFinder::new(format);
    let (mut bytes, mut pieces) = (0, input.chunks(100));
    let mut ended = false;
    loop {
        match finder.next() {
            Some(NextBytes::Frame(head, frame)) => {
                assert_eq!(head.frame_len(), frame.len());
                bytes += frame.len();
            }
            Some(NextBytes::Skipped(len)) => bytes += len,
            Some(NextBytes::Changed(..)) => return,
            None => match pieces.next() {
                Some(piece) => finder.push(piece),
                None if ended => break,
                None => {
                    finder.end();
                    ended = true;
                }
            },
        }
    }
    assert_eq!(bytes, input.len());
}
