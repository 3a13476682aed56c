//! Whatever goes in comes out; whatever is damaged is refused, and takes no more memory than it
//! may.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use proptest::prelude::*;
use skyhaul_ccsds::mission::{FrameCheck, FrameFormat, FrameKind, FrameLengths};
use skyhaul_records::pack::{Effort, Packer, unpack};
use std::ops::Range;

const FORMAT: FrameFormat = FrameFormat {
    kind: FrameKind::Aos,
    length: 40,
    lengths: FrameLengths::Fixed,
    wide_scid: false,
    fhec: false,
    insert_zone: 0,
    ocf: true,
    fecf: FrameCheck::None,
};

/// Frames of two channels whose zones hold packets and pointers that are right, or nearly; with
/// bytes between them.
fn block() -> impl Strategy<Value = (Vec<u8>, Vec<Range<usize>>)> {
    let packets = proptest::collection::vec((0u8..3, 0usize..30, any::<bool>()), 0..40);
    let wrong = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let between = proptest::collection::vec(0usize..4, 60);
    (packets, wrong, between).prop_map(|(packets, wrong, between)| {
        let mut zone = Vec::new();
        let mut firsts = Vec::new();
        for (process, len, odd) in packets {
            firsts.push(zone.len());
            let len = if odd { len } else { 12 };
            zone.extend([8, process, 0, 0, 0, len as u8]);
            zone.extend((0..=len).map(|at| at as u8 ^ process));
        }
        let (mut records, mut frames) = (Vec::new(), Vec::new());
        for (place, piece) in zone.chunks(28).enumerate() {
            records.extend((0..between[place % between.len()]).map(|_| 9));
            let start = records.len();
            let from = place * 28;
            let first = firsts.iter().find(|first| **first >= from && **first < from + 28);
            let pointer = first.map_or(0x7FF, |first| (first - from) as u16);
            records.extend([0x42, 0x80 | (place % 2) as u8, 0, 0, place as u8, 0]);
            records.extend(pointer.to_be_bytes());
            records.extend_from_slice(piece);
            records.resize(start + 40, 7);
            frames.push(start..start + 40);
        }
        for (index, byte) in wrong {
            if !records.is_empty() {
                let at = index.index(records.len());
                records[at] = byte;
            }
        }
        (records, frames)
    })
}

fn pack(records: &[u8], frames: &[Range<usize>], effort: Effort) -> Option<Vec<u8>> {
    Packer::new().pack(records, frames, &FORMAT, effort)
}

proptest! {
    #[test]
    fn blocks_come_back((records, frames) in block(), effort in 0usize..3) {
        let effort = [Effort::Fast, Effort::Normal, Effort::Thorough][effort];
        let packed = pack(&records, &frames, effort);
        prop_assert!(records.len() < 2_000 || packed.is_some(), "what repeats gets smaller");
        if let Some(packed) = packed {
            prop_assert!(packed.len() < records.len());
            prop_assert!(unpack(&packed, records.len()).is_ok_and(|out| out == records));
            prop_assert!(unpack(&packed, records.len() - 1).is_err());
        }
    }

    #[test]
    fn places_that_are_no_frames_do_no_harm(
        bytes in proptest::collection::vec(0u8..4, 0..3_000),
        places in proptest::collection::vec((0usize..3_500, 0usize..60), 0..30),
    ) {
        let frames: Vec<Range<usize>> = places.into_iter().map(|(start, len)| start..start
            + len).collect();
        if let Some(packed) = pack(&bytes, &frames, Effort::Normal) {
            prop_assert_eq!(unpack(&packed, bytes.len()), Ok(bytes));
        }
    }

    #[test]
    fn frames_of_a_byte_each_come_back(frames in 1usize..4_000, tail in 0usize..3) {
        let format = FrameFormat { length: 9 + tail, ocf: false, ..FORMAT };
        let mut records = Vec::new();
        for frame in 0..frames {
            records.extend([0x42, 0x80, 0, 0, frame as u8, 0, 0, 0]);
            records.resize(records.len() + 1 + tail, frame as u8);
        }
        let places: Vec<Range<usize>> = (0..frames).map(|at| at * (9 + tail)..(at + 1)
            * (9 + tail)).collect();
        if let Some(packed) = Packer::new().pack(&records, &places, &format, Effort::Fast) {
            prop_assert_eq!(unpack(&packed, records.len()), Ok(records));
        }
    }

    #[test]
    fn damage_is_found_or_harmless(
        (records, frames) in block(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        if let Some(mut packed) = pack(&records, &frames, Effort::Fast) {
            let cut = cut.index(packed.len());
            prop_assert!(unpack(&packed[..cut], records.len()).is_err());
            for (index, byte) in damage {
                let at = index.index(packed.len());
                packed[at] = byte;
            }
            if let Ok(out) = unpack(&packed, records.len()) {
                prop_assert!(out.len() <= records.len());
            }
        }
    }
}
