use super::*;
use crate::count::Modulus;
use crate::frame::{ConstructionRule, FrameFields, UslpFields, VcCount, write};
use crate::id::{Channel, MapId, Vcid};
use proptest::prelude::*;

fn mission(check: &str) -> Mission {
    let text = format!(
        "name = \"given\"\ntitle = \"Given\"\nscids = [4660]\n[frame]\nkind = \"uslp\"\nlength = \
        600\n\
         variable_length = true\ntruncated_length = 30\n{check}[coding]\nrandomiser = \"none\"\n"
    );
    Mission::from_toml(&text).unwrap()
}

const CHECKS: [&str; 3] = ["", "fecf = true\n", "fecf = true\nfecf_bits = 32\n"];

/// A frame with so many bytes of data, truncated where there are none.
fn frame(mission: &Mission, data: usize, count: u64) -> Vec<u8> {
    let uslp = UslpFields {
        is_destination: false,
        map: MapId::from_bits(3),
        is_truncated: data == 0,
        is_expedited: false,
        is_control: false,
        rule: ConstructionRule::Unsegmented,
        protocol: 5,
        pointer: None,
    };
    let modulus = if data == 0 { Modulus::NONE } else { Modulus::of_octets(2) };
    let fields = FrameFields {
        channel: Channel { scid: Scid::from_bits(4660), vcid: Vcid::from_bits(2) },
        count: VcCount { value: count % modulus.values(), modulus },
        is_replay: false,
        first_header: None,
        insert_zone: &[],
        data: &vec![0xC1; data],
        ocf: None,
        uslp: Some(uslp),
    };
    write(&fields, mission.frame()).unwrap()
}

/// Cuts a stream that comes in pieces of `piece` bytes; the frames, and the bytes skipped.
fn cut(mission: &Mission, stream: &[u8], piece: usize) -> (Vec<Vec<u8>>, usize) {
    let mut delimiter = Delimiter::new(mission);
    let (mut held, mut frames, mut skipped) = (Vec::new(), Vec::new(), 0);
    let mut take = |held: &mut Vec<u8>, end| {
        while let Some(cut) = delimiter.cut(held, end) {
            let len = match cut {
                Cut::Frame(len) => {
                    frames.push(held[..len].to_vec());
                    len
                }
                Cut::Skipped(len) => {
                    skipped += len;
                    len
                }
            };
            assert!(len > 0);
            held.drain(..len);
        }
        assert!(held.len() < 2 * 600 + 7 || end == EndOfInput::Ahead, "nothing is held at the end");
    };
    for piece in stream.chunks(piece) {
        held.extend_from_slice(piece);
        take(&mut held, EndOfInput::Ahead);
        assert!(held.len() <= 2 * 600 + 7, "{} bytes are held", held.len());
    }
    take(&mut held, EndOfInput::Reached);
    assert!(held.is_empty());
    (frames, skipped)
}

#[test]
fn a_frame_that_fails_its_check_is_cut_out_and_one_of_wrong_length_costs_no_other() {
    let mission = mission(CHECKS[1]);
    let sent: Vec<Vec<u8>> =
        (0..6).map(|count| frame(&mission, 40 + 30 * count, count as u64)).collect();
    let mut stream = sent.concat();
    let third: usize = sent[..2].iter().map(Vec::len).sum();
    stream[third + 20] ^= 1;
    let (frames, skipped) = cut(&mission, &stream, 64);
    assert_eq!((frames.len(), skipped), (6, 0), "damage inside leaves the length");
    stream[third + 5] ^= 7;
    let (frames, skipped) = cut(&mission, &stream, 64);
    assert_eq!((frames.len(), skipped), (5, sent[2].len()), "a wrong length leads nowhere");
}

#[test]
fn a_stream_that_begins_in_the_middle_of_a_frame_is_found() {
    for check in CHECKS {
        let mission = mission(check);
        let stream: Vec<u8> = (0..20).flat_map(|count| frame(&mission, 100, count)).collect();
        let len = frame(&mission, 100, 0).len();
        let (frames, skipped) = cut(&mission, &stream[33..], 50);
        assert_eq!((frames.len(), skipped), (19, len - 33), "{check}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn frames_are_cut_as_they_were_put_together(
        check in 0usize..3, sizes in prop::collection::vec(0usize..580, 2..30),
            piece in 1usize..900,
    ) {
        let mission = mission(CHECKS[check]);
        let counts = 0u64..;
        let sent: Vec<Vec<u8>> = sizes.iter().zip(counts).map(|(size, count)| frame(&mission,
            *size, count)).collect();
        let (frames, skipped) = cut(&mission, &sent.concat(), piece);
        prop_assert_eq!(skipped, 0);
        prop_assert_eq!(frames, sent);
    }

    #[test]
    fn any_bytes_are_cut_to_the_last(check in 0usize..3, seed: u64, len in 0usize..6_000,
        piece in 1usize..900) {
        let mission = mission(CHECKS[check]);
        let mut state = seed | 1;
        // Headers are frequent in it.
        let stream: Vec<u8> = (0..len).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            [0xC1, 0x23, 0x40, 0x20, 0, 1, 2, (state >> 40) as u8][(state >> 60) as usize % 8]
        }).collect();
        let (frames, skipped) = cut(&mission, &stream, piece);
        prop_assert_eq!(frames.iter().map(Vec::len).sum::<usize>() + skipped, stream.len());
        let whole = cut(&mission, &stream, stream.len().max(1)).0;
        prop_assert_eq!(frames, whole, "how the stream comes makes no difference");
    }
}
