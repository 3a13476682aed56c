use super::*;
use crate::packet::{Grouping, SpaceHeader};
use proptest::prelude::*;

fn packet(apid: u16, count: u16, total_len: usize) -> Vec<u8> {
    let header = SpaceHeader {
        is_telecommand: false,
        has_secondary: false,
        apid: Apid::new(apid).unwrap(),
        grouping: Grouping::Standalone,
        count,
        total_len,
    };
    // 0x40 is the start of no header.
    let mut bytes = vec![0x40; total_len];
    bytes[..6].copy_from_slice(&header.to_bytes());
    bytes
}

/// Offsets and lengths of packets, and the damage, of a file that comes in stretches that end at
/// multiples of `step`.
fn scan(file: &[u8], step: usize) -> (Vec<(u64, usize)>, Vec<UnreadableRange>) {
    let (mut packets, mut damage) = (Vec::new(), Vec::new());
    let mut scanner = Scanner::default();
    let (mut start, mut end) = (0, 0);
    while end < file.len() || start < end {
        end = (end + step).min(file.len());
        let is_end = if end == file.len() { EndOfInput::Reached } else { EndOfInput::Ahead };
        let taken = scanner.scan(&file[start..end], is_end, |found| match found {
            Scanned::Packet { offset, header, bytes } => {
                assert_eq!(header.total_len(), bytes.len());
                assert_eq!(bytes, &file[offset as usize..][..bytes.len()]);
                packets.push((offset, bytes.len()));
            }
            Scanned::Damage(found) => damage.push(found),
        });
        start += taken;
        assert!(end - start < LOOK_AHEAD && (is_end == EndOfInput::Ahead || start == end));
        if is_end == EndOfInput::Reached {
            break;
        }
    }
    (packets, damage)
}

/// Ten packets, and where they begin.
fn ten() -> (Vec<u8>, Vec<(u64, usize)>) {
    let mut file = Vec::new();
    let mut places = Vec::new();
    for count in 0..10u16 {
        let packet = packet(100 + count % 3, count, 20 + usize::from(count));
        places.push((file.len() as u64, packet.len()));
        file.extend(packet);
    }
    (file, places)
}

#[test]
fn a_whole_file_has_its_packets_and_no_damage() {
    let (file, places) = ten();
    assert_eq!(scan(&file, usize::MAX >> 1), (places, vec![]));
    assert_eq!(scan(&[], 1), (vec![], vec![]));
}

#[test]
fn encapsulation_packets_are_packets() {
    let (mut file, mut places) = ten();
    for bytes in [&[0xE0][..], &[0xE9, 3, 0x40]] {
        places.push((file.len() as u64, bytes.len()));
        file.extend(bytes);
    }
    assert_eq!(scan(&file, 7), (places, vec![]));
}

#[test]
fn a_length_beyond_the_packets_end_costs_that_packet_alone() {
    for wrong in [50, 255] {
        let (mut file, mut places) = ten();
        let (offset, len) = places.remove(6);
        file[offset as usize + 5] = wrong;
        let (packets, damage) = scan(&file, usize::MAX >> 1);
        assert_eq!(packets, places, "{wrong}");
        let [damage] = damage[..] else { panic!("{damage:?}") };
        assert_eq!((damage.offset, damage.bytes), (offset, len as u64));
        assert!(matches!(damage.kind, DamageKind::Length(_) | DamageKind::CutOff(_)), "{damage:?}");
    }
}

#[test]
fn a_length_before_the_packets_end_leaves_its_rest_over() {
    let (mut file, mut places) = ten();
    let (offset, len) = places[6];
    file[offset as usize + 5] = 9;
    places[6].1 = 16;
    let kind = DamageKind::Header(HeaderError::Version(2));
    let rest = UnreadableRange { offset: offset + 16, bytes: len as u64 - 16, kind };
    assert_eq!(scan(&file, 13), (places, vec![rest]));
}

#[test]
fn a_wrong_header_costs_that_packet_alone() {
    let (mut file, mut places) = ten();
    let (offset, len) = places.remove(6);
    file[offset as usize] |= 0x40;
    let kind = DamageKind::Header(HeaderError::Version(2));
    assert_eq!(
        scan(&file, 11),
        (places, vec![UnreadableRange { offset, bytes: len as u64, kind }])
    );
}

#[test]
fn bytes_between_packets_before_them_and_after_them_are_damage() {
    let (file, places) = ten();
    let len = file.len() as u64;
    let noisy = [&[0x41; 30][..], &file, &[0x42; 1_000], &file, &[0x43; 3]].concat();
    let (packets, damage) = scan(&noisy, 64);
    let starts = [30, 1_030 + len];
    let moved = |start: u64| places.iter().map(move |(offset, len)| (start + offset, *len));
    assert_eq!(packets, starts.into_iter().flat_map(moved).collect::<Vec<_>>());
    let stretches: Vec<_> = damage.iter().map(|damage| (damage.offset, damage.bytes)).collect();
    assert_eq!(stretches, [(0, 30), (30 + len, 1_000), (1_030 + 2 * len, 3)]);
}

#[test]
fn a_file_that_ends_inside_a_packet_says_so() {
    let (file, mut places) = ten();
    let (offset, len) = places.pop().unwrap();
    let (packets, damage) = scan(&file[..file.len() - 1], 16);
    assert_eq!(packets, places);
    let kind = DamageKind::CutOff(len as u64);
    assert_eq!(damage, [UnreadableRange { offset, bytes: len as u64 - 1, kind }]);
    let short = &file[..places[4].0 as usize + 9];
    assert_eq!(scan(short, 10).0, places[..4], "of a short file, too");
    let (packets, damage) = scan(&file[..offset as usize + 4], 16);
    assert_eq!((packets, damage[0].kind, damage[0].bytes), (places, DamageKind::CutOffHeader, 4));
}

#[test]
fn zeros_are_no_packets() {
    let (file, places) = ten();
    let len = file.len() as u64;
    let (packets, damage) = scan(&[&file[..], &[0; 4_096], &file].concat(), 512);
    assert_eq!(packets.len(), 2 * places.len());
    assert_eq!(damage, [UnreadableRange { offset: len, bytes: 4_096, kind: DamageKind::Zeros }]);
    let (packets, damage) = scan(&[0; 1_000], 512);
    assert_eq!((packets, damage.len()), (vec![], 1));
}

#[test]
fn a_file_of_noise_has_no_packets() {
    let mut state = 1u64;
    let mut noise = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let file: Vec<u8> = (0..40_000).map(|_| noise()).collect();
    let (packets, damage) = scan(&file, 5_000);
    assert_eq!(packets, []);
    assert_eq!((damage.len(), damage[0].bytes), (1, 40_000));
}

proptest! {
    #[test]
    fn every_byte_is_in_one_packet_or_one_stretch_of_damage_however_the_file_comes(
        pieces in proptest::collection::vec(
            prop_oneof![
                (0u16..4, 0u16..20, 7usize..60).prop_map(|(apid, count, len)| packet(apid, count,
                    len)),
                proptest::collection::vec(any::<u8>(), 0..60),
            ],
            0..40,
        ),
        step in 1usize..400,
    ) {
        let file = pieces.concat();
        let (packets, damage) = scan(&file, usize::MAX >> 1);
        let mut stretches: Vec<(u64, u64)> =
            packets.iter().map(|(at, len)| (*at, *len as u64)).collect();
        stretches.extend(damage.iter().map(|damage| (damage.offset, damage.bytes)));
        stretches.sort_unstable();
        let mut end = 0;
        for (offset, len) in stretches {
            prop_assert_eq!(offset, end);
            end += len;
        }
        prop_assert_eq!(end, file.len() as u64);
        prop_assert_eq!(scan(&file, step), (packets, damage));
    }
}
