//! Order, loss, doubles, other sources, and bounds.

use super::*;
use proptest::prelude::*;

const END: u8 = 0x80;

fn packet(number: u16, time: u32, marker: u8, content: &[u8]) -> Bytes {
    let mut bytes = vec![0x80, 96 | marker];
    bytes.extend(number.to_be_bytes());
    bytes.extend(time.to_be_bytes());
    bytes.extend([0, 0, 0, 1]);
    bytes.extend(content);
    Bytes::from(bytes)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// The numbers of the packets of each frame that is there, and what is missing.
fn frames(entrance: &mut RtpEntrance) -> Vec<(Vec<u16>, u64)> {
    let frames = core::iter::from_fn(|| entrance.poll());
    let numbers = |frame: &RtpFrame| frame.packets.iter().map(RtpPacket::sequence).collect();
    frames.map(|frame| (numbers(&frame), frame.missing)).collect()
}

fn entrance() -> RtpEntrance {
    RtpEntrance::new(RtpRules { codec: VideoCodec::H264, ..RtpRules::default() })
}

#[test]
fn packets_of_one_time_are_one_frame_in_order_over_the_end_of_the_numbers() {
    let mut entrance = entrance();
    for (number, time, marker) in
        [(65_534, 100, 0), (0, 100, END), (65_535, 100, 0), (1, 3_700, END), (1, 3_700, END)]
    {
        entrance.take(at(0), packet(number, time, marker, b"x")).unwrap();
    }
    assert_eq!(frames(&mut entrance), [(vec![65_534, 65_535, 0], 0), (vec![1], 0)]);
    assert_eq!(entrance.counters().late, 1, "twice");
    // Without a marker the next time stamp ends a frame, or the time does.
    entrance.take(at(1), packet(2, 7_300, 0, b"x")).unwrap();
    entrance.take(at(2), packet(3, 10_900, 0, b"x")).unwrap();
    assert_eq!(frames(&mut entrance), [(vec![2], 0)]);
    entrance.handle_timeout(at(102));
    assert_eq!(frames(&mut entrance), [(vec![3], 0)]);
}

#[test]
fn a_missing_packet_is_waited_for_and_then_left() {
    let mut entrance = entrance();
    entrance.take(at(0), packet(10, 0, 0, b"x")).unwrap();
    entrance.take(at(1), packet(12, 0, END, b"x")).unwrap();
    assert_eq!(frames(&mut entrance), []);
    assert_eq!(entrance.next_timeout(), Some(at(21)));
    entrance.handle_timeout(at(21));
    assert_eq!(frames(&mut entrance), [(vec![10, 12], 1)]);
    entrance.take(at(22), packet(11, 0, 0, b"x")).unwrap();
    let RtpCounters { packets, framed, late, missing, .. } = entrance.counters();
    assert_eq!((packets, framed, late, missing), (3, 2, 1, 1));
}

#[test]
fn the_most_telling_packet_gives_the_kind() {
    let mut entrance = entrance();
    for (number, marker, content) in [(1, 0, [0x67, 1]), (2, END, [0x65, 1]), (3, END, [0x41, 1])] {
        entrance.take(at(0), packet(number, u32::from(number / 3), marker, &content)).unwrap();
    }
    let kinds: Vec<RtpFrameKind> =
        core::iter::from_fn(|| entrance.poll()).map(|frame| frame.kind).collect();
    assert_eq!(kinds, [RtpFrameKind::Alone, RtpFrameKind::Dependent]);
}

#[test]
fn a_jump_of_the_numbers_begins_anew_and_leaves_what_was() {
    let mut entrance = entrance();
    entrance.take(at(0), packet(1, 0, 0, b"x")).unwrap();
    for number in [30_000, 9_000, 20_000, 20_001] {
        entrance.take(at(0), packet(number, 0, END, b"x")).unwrap();
    }
    assert_eq!(frames(&mut entrance), [(vec![1], 0), (vec![20_001], 0)]);
    let RtpCounters { restarts, missing, refused, .. } = entrance.counters();
    assert_eq!((restarts, missing, refused), (1, 0, 3), "one alone is no new beginning");
    assert!(entrance.take(at(0), Bytes::from_static(b"no packet")).is_err());
    assert_eq!(entrance.counters().refused, 4);
}

#[test]
fn another_source_is_refused_until_the_first_is_silent() {
    let of = |source: u8, number: u16, millis: u32| {
        let mut bytes = packet(number, millis * 90, END, b"x").to_vec();
        bytes[11] = source;
        Bytes::from(bytes)
    };
    let mut entrance = entrance();
    for step in 0..10 {
        let now = at(u64::from(step) * 40);
        entrance.take(now, of(1, 5 + step as u16, step * 40)).unwrap();
        entrance.take(now, of(2, 900 + step as u16, 7 + step * 40)).unwrap();
    }
    let numbers: Vec<u16> = (5..15).collect();
    let found: Vec<u16> = frames(&mut entrance).into_iter().flat_map(|(frame, _)| frame).collect();
    assert_eq!((found, entrance.counters().refused), (numbers, 10));
    entrance.take(at(1_400), of(2, 950, 1_400)).unwrap();
    assert_eq!(frames(&mut entrance), [(vec![950], 0)]);
    assert_eq!(entrance.counters().restarts, 1);
}

#[test]
fn a_frame_without_end_and_a_source_without_reader_are_bounded() {
    let mut entrance = entrance();
    let content = vec![0; 1_000];
    for number in 0..3_000 {
        entrance.take(at(0), packet(number, 0, 0, &content)).unwrap();
    }
    assert_eq!(entrance.counters().cut, 2);
    for number in 3_000..3_900 {
        entrance.take(at(0), packet(number, u32::from(number), END, b"x")).unwrap();
    }
    assert_eq!(entrance.done.len(), DONE_MAX);
    for number in (3_902..5_000).step_by(2) {
        entrance.take(at(0), packet(number, 0, 0, b"x")).unwrap();
        assert!(entrance.waiting.len() <= WAITING_MAX);
    }
}

proptest! {
    /// Packets are delayed and lost: every one that came is in a frame, once and in order, or was
    /// late.
    #[test]
    fn every_packet_has_one_fate(
        delays in proptest::collection::vec((0u64..40, 0u8..20), 1..300),
        first in any::<u16>(),
    ) {
        let mut sent: Vec<(u64, u16)> = Vec::new();
        for (place, (delay, fate)) in (0u16..).zip(&delays) {
            if *fate > 0 {
                sent.push((u64::from(place) * 2 + delay, first.wrapping_add(place)));
            }
        }
        sent.sort_unstable_by_key(|(at, _)| *at);
        let mut entrance = entrance();
        for (millis, number) in &sent {
            let place = number.wrapping_sub(first);
            let marker = if place % 3 == 2 { END } else { 0 };
            let one = packet(*number, u32::from(place / 3), marker, b"x");
            entrance.take(at(*millis), one).unwrap();
        }
        // What waited is put into frames, then the last frame ends.
        entrance.handle_timeout(at(100_000));
        entrance.handle_timeout(at(200_000));
        let all: Vec<u16> =
            frames(&mut entrance).into_iter().flat_map(|(numbers, _)| numbers).collect();
        let places: Vec<u16> = all.iter().map(|number| number.wrapping_sub(first)).collect();
        let begin = sent.first().map_or(0, |(_, number)| number.wrapping_sub(first));
        prop_assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{places:?} from {begin}");
        let counters = entrance.counters();
        prop_assert_eq!(counters.framed + counters.late, sent.len() as u64);
        prop_assert_eq!(all.len() as u64 + counters.dropped, counters.framed);
    }
}
