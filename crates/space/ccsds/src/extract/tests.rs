use super::*;
use crate::count::Modulus;
use crate::frame::{ConstructionRule, FrameFields, UslpFields};
use crate::id::{Scid, Vcid};
use crate::packet::{Grouping, SpaceHeader};
use crate::quality::{BitPosition, Quality};
use proptest::prelude::*;

/// Zone bytes of the test frames.
const ZONE: usize = 20;

fn mission(extra: &str) -> Mission {
    let text = format!(
        "name = \"test\"\ntitle = \"Test\"\nscids = [7]\n[frame]\nkind = \"aos\"\nlength = \
        {}\n[coding]\n\
         randomiser = \"none\"\n{extra}",
        ZONE + 8
    );
    Mission::from_toml(&text).unwrap()
}

fn frame(count: u32, pointer: u16, zone: &[u8]) -> CapturedFrame {
    assert_eq!(zone.len(), ZONE);
    let [_, high, middle, low] = count.to_be_bytes();
    let mut bytes = vec![0x41, 0xC5, high, middle, low, 0];
    bytes.extend(pointer.to_be_bytes());
    bytes.extend(zone);
    CapturedFrame {
        received: Utc::from_micros(i64::from(count)),
        position: BitPosition::START,
        quality: Quality { verdict: FrameVerdict::Clean, ..Quality::NOT_CHECKED },
        set_aside: None,
        bytes: Bytes::from(bytes),
        check_symbols: Bytes::new(),
    }
}

fn packet(apid: u16, count: u16, len: usize) -> Vec<u8> {
    let header = SpaceHeader {
        is_telecommand: false,
        has_secondary: false,
        apid: crate::id::Apid::new(apid).unwrap(),
        grouping: Grouping::Standalone,
        count,
        total_len: len,
    };
    let mut packet = header.to_bytes().to_vec();
    packet.extend((SpaceHeader::LEN..len).map(|i| (i as u8) ^ count as u8));
    packet
}

/// The packets laid one after the other into frames.
fn framed(packets: &[Vec<u8>]) -> Vec<CapturedFrame> {
    let bytes: Vec<u8> = packets.concat();
    let starts: Vec<usize> = packets
        .iter()
        .scan(0, |at, packet| {
            *at += packet.len();
            Some(*at - packet.len())
        })
        .collect();
    let whole = bytes.chunks_exact(ZONE).enumerate();
    whole
        .map(|(index, zone)| {
            let first =
                starts.iter().find(|start| (index * ZONE..(index + 1) * ZONE).contains(start));
            frame(index as u32, first.map_or(0x7FF, |start| (start - index * ZONE) as u16), zone)
        })
        .collect()
}

fn extract(mission: Mission, frames: &[CapturedFrame]) -> (Vec<Vec<u8>>, ChannelCounts) {
    let mut extractor = Extractor::new(mission);
    let mut packets = Vec::new();
    for frame in frames {
        extractor.push(frame, |packet| packets.push(packet.bytes.to_vec())).unwrap();
    }
    let counts = extractor
        .channels()
        .find(|(channel, _)| channel.scid.value() == 7)
        .map(|(_, c)| c)
        .unwrap_or_default();
    (packets, counts)
}

#[test]
fn a_missing_frame_drops_the_packets_it_touches_and_no_other() {
    let packets: Vec<Vec<u8>> = (0..10).map(|count| packet(1, count, 17)).collect();
    let mut frames = framed(&packets);
    frames.remove(3);
    let (found, counts) = extract(mission(""), &frames);
    let untouched: Vec<Vec<u8>> = packets
        .iter()
        .enumerate()
        .filter(|(i, _)| i * 17 + 17 <= 160 && (i * 17 + 17 <= 60 || i * 17 >= 80))
        .map(|(_, p)| p.clone())
        .collect();
    assert_eq!(found, untouched);
    assert_eq!((counts.gaps, counts.missing_frames, counts.interrupted_packets), (1, 1, 1));
}

fn extract_filling(frames: &[CapturedFrame]) -> (Vec<ExtractedPacket>, ChannelCounts) {
    let mut extractor = Extractor::new(mission("")).filling();
    let mut packets = Vec::new();
    for frame in frames {
        extractor.push(frame, |packet| packets.push(packet)).unwrap();
    }
    let counts = extractor.channels().next().unwrap().1;
    (packets, counts)
}

#[test]
fn a_packet_that_a_missing_frame_cut_is_filled_up_where_that_is_asked_for() {
    let packets: Vec<Vec<u8>> = (0..10).map(|count| packet(1, count, 17)).collect();
    let mut frames = framed(&packets);
    // Bytes 60 to 79: the ninth of packet 3 to the eleventh of packet 4.
    frames.remove(3);
    let (found, counts) = extract_filling(&frames);
    let mut filled = packets[3].clone();
    filled[9..].fill(FILL);
    let expected = [&packets[..3], &[filled], &packets[5..9]].concat();
    assert_eq!(found.iter().map(|packet| packet.bytes.to_vec()).collect::<Vec<_>>(), expected);
    assert_eq!(
        found.iter().map(|packet| packet.fill).collect::<Vec<_>>(),
        [0, 0, 0, 8, 0, 0, 0, 0]
    );
    assert!(found.iter().all(|packet| !packet.length_differs));
    assert_eq!((counts.interrupted_packets, counts.filled_packets), (1, 1));
    // The end of packet 4, whose header did not come.
    assert_eq!(counts.dropped_bytes, 5);
}

#[test]
fn a_packet_without_its_header_and_an_idle_one_are_not_filled_up() {
    // Four bytes of a header, then a gap.
    let zone = [packet(1, 0, 16), packet(1, 1, 30)[..4].to_vec()].concat();
    let idle = [packet(0x7FF, 0, 10), packet(0x7FF, 1, 30)[..10].to_vec()].concat();
    for zone in [zone, idle] {
        let frames = [frame(0, 0, &zone), frame(2, 0x7FF, &[0; ZONE])];
        let (found, counts) = extract_filling(&frames);
        assert_eq!((found.len(), counts.interrupted_packets, counts.filled_packets), (1, 1, 0));
    }
}

#[test]
fn a_length_that_a_frame_contradicts_is_told() {
    let long = packet(1, 0, 30);
    let second = |own: usize| {
        let mut zone = long[ZONE..ZONE + own].to_vec();
        zone.extend(packet(1, 1, 8));
        zone.resize(ZONE, 0);
        zone
    };
    // The packet goes on for 10 bytes; the pointer says 12, then 4.
    let later = [frame(0, 0, &long[..ZONE]), frame(1, 12, &second(10))];
    let (found, _) = extract_filling(&later);
    assert_eq!(
        (found[0].bytes.to_vec(), found[0].fill, found[0].length_differs),
        (long.clone(), 0, true)
    );
    let sooner = [frame(0, 0, &long[..ZONE]), frame(1, 4, &second(4))];
    let (found, _) = extract_filling(&sooner);
    let mut filled = long.clone();
    filled[ZONE + 4..].fill(FILL);
    assert_eq!(
        (found[0].bytes.to_vec(), found[0].fill, found[0].length_differs),
        (filled, 6, true)
    );
    assert_eq!(found[1].bytes.to_vec(), packet(1, 1, 8));
}

#[test]
fn a_repeated_frame_is_passed_over() {
    let packets: Vec<Vec<u8>> = (0..10).map(|count| packet(1, count, 16)).collect();
    let mut frames = framed(&packets);
    frames.insert(3, frames[3].clone());
    frames.insert(1, frames[1].clone());
    let (found, counts) = extract(mission(""), &frames);
    assert_eq!(found, packets);
    assert_eq!((counts.repeated_frames, counts.gaps), (2, 0));
}

#[test]
fn a_pointer_that_disagrees_drops_the_running_packet_only() {
    let long = packet(1, 0, 30);
    let mut first = long[..ZONE].to_vec();
    first.truncate(ZONE);
    let mut second = long[ZONE..].to_vec();
    second.extend(packet(1, 1, 8));
    second.resize(ZONE, 0);
    // The packet goes on for 10 bytes, but the pointer says 12.
    let frames = [frame(0, 0, &first), frame(1, 12, &second)];
    let (found, counts) = extract(mission(""), &frames);
    assert_eq!(counts.bad_first_headers, 1);
    assert_eq!(found, [long], "its own length ends it before the pointer");
    let frames = [frame(0, 0, &first), frame(1, 4, &second)];
    let (found, counts) = extract(mission(""), &frames);
    assert_eq!((found.len(), counts.bad_first_headers, counts.interrupted_packets), (0, 1, 1));
}

#[test]
fn a_pointer_beyond_the_zone_is_counted_and_the_frame_ignored() {
    let (found, counts) = extract(mission(""), &[frame(0, ZONE as u16, &[0; ZONE])]);
    assert_eq!((found.len(), counts.bad_first_headers, counts.dropped_bytes), (0, 1, ZONE as u64));
}

#[test]
fn an_irrational_length_drops_the_rest_of_the_frame() {
    let mut zone = packet(1, 0, 8);
    zone.extend(packet(1, 1, 3_000)[..12].to_vec());
    let next = [packet(1, 2, 7), packet(1, 3, 13)].concat();
    let frames = [frame(0, 0, &zone), frame(1, 0, &next)];
    let (found, counts) = extract(mission("[packets]\nlongest = 1000\n"), &frames);
    assert_eq!(found, [packet(1, 0, 8), packet(1, 2, 7), packet(1, 3, 13)]);
    assert_eq!((counts.bad_headers, counts.dropped_bytes), (1, 12));
}

#[test]
fn encapsulation_packets_come_out_beside_space_packets() {
    let mut zone = vec![0xE0, 0xE0, 0xE5, 5, 1, 2, 3];
    zone.extend(packet(1, 0, 13));
    let (found, counts) = extract(mission(""), &[frame(0, 0, &zone)]);
    let expected = [vec![0xE0], vec![0xE0], vec![0xE5, 5, 1, 2, 3], packet(1, 0, 13)];
    assert_eq!(found, expected);
    assert_eq!((counts.packets, counts.idle_packets), (4, 2));
}

#[test]
fn spacecraft_with_the_same_channel_are_kept_apart() {
    let packets: Vec<Vec<u8>> = (0..10).map(|count| packet(1, count, 16)).collect();
    let mut other = frame(900, 0x7FF, &[0; ZONE]);
    let mut bytes = other.bytes.to_vec();
    bytes[0] ^= 1;
    other.bytes = Bytes::from(bytes);
    let mut frames = framed(&packets);
    frames.insert(2, other);
    let (found, counts) = extract(mission(""), &frames);
    assert_eq!(found, packets);
    assert_eq!((counts.gaps, counts.frames), (0, 8));
}

#[test]
fn the_number_of_channels_is_bounded() {
    let mut extractor = Extractor::new(mission(""));
    for number in 0..300u16 {
        let mut invented = frame(0, 0x7FF, &[0; ZONE]);
        let mut bytes = invented.bytes.to_vec();
        bytes[..2].copy_from_slice(&(0x4000 | number).to_be_bytes());
        invented.bytes = Bytes::from(bytes);
        extractor.push(&invented, |_| {}).unwrap();
    }
    assert_eq!(extractor.channels().count(), MAX_CHANNELS);
    assert_eq!(extractor.counts().excess_channels, 300 - MAX_CHANNELS as u64);
}

/// A USLP frame of 60 bytes with one octet of count, its packets after a pointer or, without one,
/// whole.
fn uslp(
    map: u8,
    is_expedited: bool,
    count: u8,
    pointer: Option<u16>,
    data: &[u8],
) -> CapturedFrame {
    let rule = if pointer.is_some() {
        ConstructionRule::SpanningPackets
    } else {
        ConstructionRule::Unsegmented
    };
    let fields = FrameFields {
        channel: Channel { scid: Scid::from_bits(0x1234), vcid: Vcid::from_bits(3) },
        count: VcCount { value: u64::from(count), modulus: Modulus::of_octets(1) },
        is_replay: false,
        first_header: None,
        insert_zone: &[],
        data,
        ocf: None,
        uslp: Some(UslpFields {
            is_destination: false,
            map: MapId::from_bits(map),
            is_truncated: false,
            is_expedited,
            is_control: false,
            rule,
            protocol: 0,
            pointer,
        }),
    };
    let bytes = crate::frame::write(&fields, uslp_mission().frame()).unwrap();
    CapturedFrame { bytes: Bytes::from(bytes), ..frame(0, 0x7FF, &[0; ZONE]) }
}

fn uslp_mission() -> Mission {
    let text = "name = \"test\"\ntitle = \"Test\"\nscids = [4660]\n[frame]\nkind = \
               \"uslp\"\nlength = 60\nfecf = true\n\
                [coding]\nrandomiser = \"none\"\n";
    Mission::from_toml(text).unwrap()
}

/// The zone of the frames of [`uslp`] with a pointer: header 8, data field header 3, error control
/// 2.
const USLP_ZONE: usize = 60 - 13;

#[test]
fn packets_of_each_access_point_are_put_together_by_themselves() {
    let (long, other) = (packet(1, 0, USLP_ZONE + 10), packet(2, 0, USLP_ZONE + 20));
    let tail = |whole: &[u8], next: usize| {
        let mut zone = whole[USLP_ZONE..].to_vec();
        zone.extend(packet(9, next as u16, USLP_ZONE - zone.len()));
        zone
    };
    let frames = [
        uslp(0, false, 0, Some(0), &long[..USLP_ZONE]),
        uslp(5, false, 1, Some(0), &other[..USLP_ZONE]),
        uslp(0, false, 2, Some(10), &tail(&long, 1)),
        // Expedited frames have a count of their own.
        uslp(5, true, 77, None, &packet(3, 0, 60 - 11)),
        uslp(5, false, 3, Some(20), &tail(&other, 2)),
    ];
    let mut extractor = Extractor::new(uslp_mission());
    let mut packets = Vec::new();
    for frame in &frames {
        extractor
            .push(frame, |packet| {
                packets.push((packet.map.unwrap().value(), packet.bytes.to_vec()));
            })
            .unwrap();
    }
    let expected = [(0, long), (5, packet(3, 0, 60 - 11)), (5, other)];
    let own = packets.into_iter().filter(|(_, bytes)| bytes[1] != 9).collect::<Vec<_>>();
    assert_eq!(own, expected);
    let (channel, counts) = extractor.channels().next().unwrap();
    assert_eq!((channel.scid.value(), channel.vcid.value()), (0x1234, 3));
    assert_eq!(
        (counts.frames, counts.gaps, counts.bad_first_headers, counts.dropped_bytes),
        (5, 0, 0, 0)
    );
}

#[test]
fn a_missing_frame_interrupts_the_packets_of_all_access_points_of_its_service() {
    let long = packet(1, 0, 2 * USLP_ZONE);
    let frames = [
        uslp(0, false, 0, Some(0), &long[..USLP_ZONE]),
        uslp(1, false, 1, Some(0), &long[..USLP_ZONE]),
        uslp(1, true, 9, Some(0), &long[..USLP_ZONE]),
        uslp(2, false, 3, Some(0xFFFF), &[]),
        uslp(1, true, 10, Some(0xFFFF), &long[USLP_ZONE..]),
        uslp(1, false, 4, Some(0xFFFF), &long[USLP_ZONE..]),
    ];
    let mut extractor = Extractor::new(uslp_mission());
    let mut packets = 0;
    for frame in &frames {
        extractor.push(frame, |_| packets += 1).unwrap();
    }
    let (_, counts) = extractor.channels().next().unwrap();
    assert_eq!(
        (packets, counts.gaps, counts.missing_frames, counts.interrupted_packets),
        (1, 1, 1, 2)
    );
}

proptest! {
    #[test]
    fn packets_of_any_lengths_come_out_as_they_went_in(
        lengths in proptest::collection::vec(7usize..90, 1..30),
    ) {
        let mut packets: Vec<Vec<u8>> =
            lengths.iter().enumerate().map(|(count, len)| packet(3, count as u16, *len)).collect();
        let total: usize = lengths.iter().sum();
        let fill = (ZONE - total % ZONE) % ZONE;
        packets.push(packet(0x7FF, 0, if fill < 7 { fill + ZONE } else { fill }));
        let (found, counts) = extract(mission(""), &framed(&packets));
        prop_assert_eq!(counts.idle_packets, 1);
        prop_assert_eq!(counts.dropped_bytes, 0);
        prop_assert_eq!(found, packets);
    }

    #[test]
    fn what_is_not_in_a_packet_is_counted_as_dropped(
        frames in proptest::collection::vec((0u32..40, 0u16..0x800,
            proptest::array::uniform20(any::<u8>())), 0..30),
    ) {
        let frames: Vec<CapturedFrame> = frames.iter().map(|(count, pointer, zone)| frame(*count,
            *pointer, zone)).collect();
        let (packets, counts) = extract(mission(""), &frames);
        prop_assert_eq!(packets.iter().map(|packet| packet.len() as u64).sum::<u64>(),
            counts.packet_bytes);
        prop_assert!(counts.packet_bytes + counts.dropped_bytes <= (frames.len() * ZONE) as u64);
    }
}
