use super::*;
use proptest::prelude::*;
use skyhaul_coding::marker::Marker;

const MARKER: u32 = 0x1ACF_FC1D;
const LEN: usize = 40;

/// Good where the block's first four bytes are the hash of the others; the opinion is the fifth
/// byte.
struct Sum;
impl Judge for Sum {
    type Opinion = (u8, bool);
    fn judge(&mut self, block: &[u8]) -> (Judgement, (u8, bool)) {
        let good = block[..4] == hash(&block[4..]);
        (if good { Judgement::Good } else { Judgement::Bad }, (block[4], good))
    }
}

fn hash(bytes: &[u8]) -> [u8; 4] {
    let hash = bytes
        .iter()
        .fold(0x811C_9DC5u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    hash.to_be_bytes()
}

/// Knows nothing.
struct Blind;
impl Judge for Blind {
    type Opinion = (u8, bool);
    fn judge(&mut self, block: &[u8]) -> (Judgement, (u8, bool)) {
        (Judgement::Unknown, (block[4], true))
    }
}

fn block(number: u8) -> Vec<u8> {
    let mut content = vec![number];
    content.extend((5..LEN).map(|i| (i as u8).wrapping_mul(37) ^ number.wrapping_mul(91)));
    let mut block = hash(&content).to_vec();
    block.extend(content);
    block
}

fn bits_of(bytes: &[u8]) -> Vec<bool> {
    bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> (7 - bit) & 1 == 1)).collect()
}

fn cadu(number: u8) -> Vec<bool> {
    let mut bytes = MARKER.to_be_bytes().to_vec();
    bytes.extend(block(number));
    bits_of(&bytes)
}

fn bytes_of(bits: &[bool]) -> Vec<u8> {
    bits.chunks(8)
        .map(|chunk| chunk.iter().enumerate().fold(0, |b, (i, bit)| b | u8::from(*bit) << (7 - i)))
        .collect()
}

/// Numbers of the good frames, and all events.
fn run<J: Judge<Opinion = (u8, bool)>>(
    bits: &[bool],
    judge: &mut J,
    push: usize,
) -> (Vec<u8>, Vec<SyncEvent<(u8, bool)>>) {
    let mut sync =
        Synchroniser::new(SyncConfig::default(), Marker::Bits32(MARKER), LEN, BitPosition::START);
    let mut events = Vec::new();
    for chunk in bytes_of(bits).chunks(push) {
        sync.push(Utc::default(), chunk);
        events.extend(std::iter::from_fn(|| sync.poll(judge)));
    }
    sync.finish();
    events.extend(std::iter::from_fn(|| sync.poll(judge)));
    let good = events.iter().filter_map(|event| match event {
        SyncEvent::Found(found) if found.opinion.1 => Some(found.opinion.0),
        _ => None,
    });
    (good.collect(), events)
}

fn stream(frames: u8) -> Vec<bool> {
    (0..frames).flat_map(cadu).collect()
}

#[test]
fn a_damaged_marker_costs_no_frame() {
    let mut bits = stream(10);
    let start = 5 * (LEN + 4) * 8;
    bits[start..start + 32].fill(true);
    let (good, events) = run(&bits, &mut Sum, 7);
    assert_eq!(good, (0..10).collect::<Vec<u8>>());
    let flywheels =
        events.iter().filter(|e| matches!(e, SyncEvent::Found(found) if found.flywheel)).count();
    assert_eq!(flywheels, 1);
}

#[test]
fn without_error_control_markers_alone_carry_the_flywheel() {
    let mut bits = stream(10);
    let start = 5 * (LEN + 4) * 8;
    for bit in bits[start..start + 32].iter_mut().step_by(3) {
        *bit = !*bit;
    }
    let (good, _) = run(&bits, &mut Blind, 1000);
    assert_eq!(good, (0..10).collect::<Vec<u8>>());
}

#[test]
fn noise_has_no_frames() {
    let mut state = 1u64;
    let noise: Vec<bool> = (0..200_000)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 63 == 1
        })
        .collect();
    let (good, events) = run(&noise, &mut Blind, 512);
    assert_eq!((good.len(), events.len()), (0, 0));
}

#[test]
fn lock_is_lost_when_the_signal_ends_and_comes_back_with_it() {
    let mut bits = stream(5);
    bits.extend(vec![false; 20 * LEN * 8 + 3]);
    bits.extend((5..9).flat_map(cadu));
    let (good, events) = run(&bits, &mut Sum, 64);
    assert_eq!(good, (0..9).collect::<Vec<u8>>());
    let locks = events.iter().filter(|event| matches!(event, SyncEvent::Locked(_))).count();
    let losses = events.iter().filter(|event| matches!(event, SyncEvent::Lost(_))).count();
    assert_eq!((locks, losses), (2, 1));
}

#[test]
fn a_frame_between_two_slips_is_found() {
    let mut bits = stream(3);
    bits.truncate(bits.len() - 9);
    bits.extend(cadu(3));
    bits.extend([true; 13]);
    bits.extend(cadu(4).iter().map(|bit| !bit));
    let (good, _) = run(&bits, &mut Sum, 1);
    assert_eq!(good, [0, 1, 3, 4]);
}

#[test]
fn continuing_after_the_last_frame_loses_none() {
    let mut bits = vec![true; 5];
    bits.extend(stream(12));
    let bytes = bytes_of(&bits);
    let (_, events) = run(&bits, &mut Sum, 4096);
    let ends = events.iter().filter_map(|event| match event {
        SyncEvent::Found(found) => {
            Some((found.opinion.0, found.position.plus_bits(8 * (LEN as u64 + 4))))
        }
        _ => None,
    });
    for (number, end) in ends {
        let mut sync = Synchroniser::new(SyncConfig::default(), Marker::Bits32(MARKER), LEN, end);
        sync.push(Utc::default(), &bytes[end.byte() as usize..]);
        sync.finish();
        let mut next = std::iter::from_fn(|| sync.poll(&mut Sum));
        let found = next
            .find_map(|event| if let SyncEvent::Found(found) = event { Some(found) } else { None });
        assert_eq!(
            found.map(|found| (found.opinion.0, found.position)),
            (number < 11).then_some((number + 1, end))
        );
    }
}

/// What happens to a stretch of the downlink.
#[derive(Debug, Clone)]
enum Impairment {
    Delete(usize),
    Insert(usize),
    Invert,
    DamageMarker(u8),
}

fn any_impairment() -> impl Strategy<Value = Impairment> {
    prop_oneof![
        (1usize..200).prop_map(Impairment::Delete),
        (1usize..200).prop_map(Impairment::Insert),
        Just(Impairment::Invert),
        (1u8..32).prop_map(Impairment::DamageMarker),
    ]
}

/// A downlink with impairments, each after so many frames, and the numbers of the frames that are
/// whole.
fn impaired(impairments: &[(usize, Impairment)], offset: usize) -> (Vec<bool>, Vec<u8>) {
    let mut bits = vec![false; offset];
    let mut expected = Vec::new();
    let mut number = 0u8;
    let mut inverted = false;
    let mut send = |bits: &mut Vec<bool>, expected: &mut Vec<u8>, inverted: bool| {
        bits.extend(cadu(number).iter().map(|bit| bit ^ inverted));
        expected.push(number);
        number += 1;
    };
    for (frames, impairment) in impairments {
        for _ in 0..*frames {
            send(&mut bits, &mut expected, inverted);
        }
        match impairment {
            Impairment::Delete(count) => {
                let start = bits.len() - 8 * LEN + 32;
                bits.drain(start..start + count);
                expected.pop();
            }
            Impairment::Insert(count) => bits.extend((0..*count).map(|i| i % 3 == 0)),
            Impairment::Invert => inverted = !inverted,
            Impairment::DamageMarker(step) => {
                let start = bits.len() - 8 * (LEN + 4);
                for bit in bits[start..start + 32].iter_mut().step_by(usize::from(*step)) {
                    *bit = !*bit;
                }
            }
        }
    }
    for _ in 0..2 {
        send(&mut bits, &mut expected, inverted);
    }
    (bits, expected)
}

/// Where frame 26 is due after the last deletion, its content has all but six bits of a marker.
#[test]
fn a_whole_frame_is_not_hidden_by_what_looks_like_the_marker_that_is_due() {
    let impairments = [(2, 1), (5, 1), (7, 1), (6, 1), (6, 64)]
        .map(|(frames, bits)| (frames, Impairment::Delete(bits)));
    let (bits, expected) = impaired(&impairments, 0);
    for push in [1, 7, 44, 4_096] {
        let (good, _) = run(&bits, &mut Sum, push);
        assert_eq!(good, expected, "in pushes of {push} bytes");
    }
}

proptest! {
    #[test]
    fn every_whole_frame_between_impairments_is_recovered(
        impairments in proptest::collection::vec((2usize..8, any_impairment()), 1..8),
        push in 1usize..300,
        offset in 0usize..8,
    ) {
        let (bits, expected) = impaired(&impairments, offset);
        let (good, _) = run(&bits, &mut Sum, push);
        prop_assert_eq!(good, expected);
    }

    #[test]
    fn any_bits_are_searched_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600),
        push in 1usize..64) {
        let bits = bits_of(&bytes);
        let _ = run(&bits, &mut Blind, push);
        let _ = run(&bits, &mut Sum, push);
    }
}
