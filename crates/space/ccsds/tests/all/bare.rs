//! Frames without markers of a spacecraft that no mission describes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use proptest::prelude::*;
use skyhaul_ccsds::EndOfInput;
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
use skyhaul_ccsds::identify::{InputLayout, Unidentified, identify};
use skyhaul_ccsds::mission::{FrameKind, MissionSet};
use skyhaul_units::Utc;

/// Bytes by chance, always the same: splitmix64. A linear congruence would not do, since its bytes
/// at one place of frames with seeds in sequence count on as a header's.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u8 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) >> 56) as u8
    }
}

/// Frame number `at` of a spacecraft that is no mission's: of channel 2, every fifth of channel 5.
fn frame(kind: FrameKind, length: usize, at: u32) -> Vec<u8> {
    let mut chance = Chance(u64::from(at) << 32);
    let mut bytes: Vec<u8> = (0..length).map(|_| chance.next()).collect();
    let (vcid, count) = if at.is_multiple_of(5) { (5, at / 5) } else { (2, at - at / 5) };
    match kind {
        FrameKind::Tm => {
            bytes[..2].copy_from_slice(&(0x3A5_u16 << 4 | vcid << 1).to_be_bytes());
            bytes[2..4].copy_from_slice(&[at as u8, count as u8]);
        }
        _ => {
            bytes[..2].copy_from_slice(&(1 << 14 | 0xE7 << 6 | vcid).to_be_bytes());
            bytes[2..5].copy_from_slice(&count.to_be_bytes()[1..]);
        }
    }
    bytes
}

/// The length of the frames that the input is taken for.
fn found(input: &[u8]) -> Option<usize> {
    let found = identify(input, &MissionSet::built_in(), EndOfInput::Ahead).ok()?;
    assert_eq!(found.format, InputLayout::Frames);
    assert!(found.is_generic, "{} of {:?}", found.mission.name(), found.scid);
    Some(found.mission.frame().length)
}

/// Whether a mission that names no spacecraft has frames of this kind and length: they are its own.
fn is_of_a_mission(kind: FrameKind, length: usize) -> bool {
    let missions = MissionSet::built_in();
    missions.iter().any(|mission| {
        let frame = mission.frame();
        mission.scids().is_empty() && frame.kind == kind && frame.length == length
    })
}

/// The input of the property below: frames of which each is lost that chance puts above `kept`.
fn with_losses(kind: FrameKind, length: usize, seed: u64, kept: u8) -> Vec<u8> {
    let mut chance = Chance(seed);
    let there = (100..400).filter(|_| chance.next() <= kept);
    there.flat_map(|at| frame(kind, length, at)).collect()
}

/// Four headers by chance, each of another spacecraft, were taken for a mission that names none.
#[test]
fn headers_of_many_spacecraft_are_not_of_a_mission_that_names_none() {
    let input = with_losses(FrameKind::Aos, 144, 15_358_157_930_048_597_672, 141);
    assert_eq!(found(&input), Some(144));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn frames_of_which_many_are_lost_are_found(
        length in 120_usize..1_300, is_tm in any::<bool>(), seed in any::<u64>(),
            kept in 130_u8..=255,
    ) {
        let kind = if is_tm { FrameKind::Tm } else { FrameKind::Aos };
        prop_assume!(!is_of_a_mission(kind, length));
        prop_assert_eq!(found(&with_losses(kind, length, seed, kept)), Some(length));
    }

    #[test]
    fn frames_that_are_each_repeated_many_times_have_their_own_length(
        length in 120_usize..700, is_tm in any::<bool>(), times in 1_usize..24,
    ) {
        let kind = if is_tm { FrameKind::Tm } else { FrameKind::Aos };
        prop_assume!(!is_of_a_mission(kind, length));
        let sent = (100..200).flat_map(|at| frame(kind, length, at).repeat(times));
        let input: Vec<u8> = sent.take(256 << 10).collect();
        prop_assert_eq!(found(&input), Some(length));
    }

    #[test]
    fn what_is_no_run_of_frames_is_not_taken_for_one(seed in any::<u64>()) {
        let mut chance = Chance(seed);
        let noise: Vec<u8> = (0..100_000).map(|_| chance.next()).collect();
        prop_assert!(identify(&noise, &MissionSet::built_in(), EndOfInput::Ahead).is_err());
    }
}

/// Nothing else tells them from frames of that mission.
#[test]
fn frames_of_the_very_length_of_a_mission_without_spacecraft_are_taken_for_its_own() {
    assert!(is_of_a_mission(FrameKind::Aos, 1_195));
    let input: Vec<u8> = (100..400).flat_map(|at| frame(FrameKind::Aos, 1_195, at)).collect();
    let identified = identify(&input, &MissionSet::built_in(), EndOfInput::Ahead).unwrap();
    assert_eq!((identified.mission.name(), identified.is_generic), ("smap", false));
}

/// A mission of frames of 1,100 bytes names no spacecraft, and one of 1,115: each has five, or ten,
/// of these frames.
#[test]
fn frames_whose_length_divides_that_of_a_mission_have_their_own_length() {
    for (kind, length) in
        [(FrameKind::Tm, 220), (FrameKind::Aos, 220), (FrameKind::Aos, 223), (FrameKind::Tm, 110)]
    {
        let input: Vec<u8> = (100..300).flat_map(|at| frame(kind, length, at)).collect();
        assert_eq!(found(&input), Some(length));
    }
    // Five of these are as long as two of a mission's, of 1,115 bytes.
    let input: Vec<u8> =
        (100..160).flat_map(|at| frame(FrameKind::Aos, 446, at).repeat(10)).collect();
    assert_eq!(found(&input), Some(446));
}

/// Bytes around two values of opposite sign look like soft symbols; who says that these are frames
/// is not told so.
#[test]
fn frames_that_are_not_found_are_called_frames_where_the_caller_calls_them_so() {
    let mut chance = Chance(5);
    let symbol =
        |draw: u8| ((if draw & 1 == 1 { 40_i8 } else { -40 }) + (draw >> 3) as i8 - 16) as u8;
    let input: Vec<u8> = (0..60_000).map(|_| symbol(chance.next())).collect();
    let reason = |format| {
        let mut capture =
            Capture::new(MissionSet::built_in(), CaptureOptions { format, ..Default::default() });
        capture.push(Utc::default(), &input);
        capture.finish();
        match core::iter::from_fn(|| capture.poll()).last() {
            Some(CaptureEvent::Unidentified(reason)) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(reason(None), Unidentified::SoftAsBits);
    assert_eq!(reason(Some(InputLayout::Frames)), Unidentified::NoFrames);
    assert!(
        Unidentified::NoFrames.to_string().contains("mission file with the `kind` and `length`")
    );
}
