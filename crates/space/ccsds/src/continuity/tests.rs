use super::*;
use proptest::prelude::*;

/// What is known of frames beside their counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    Bits,
    Time,
    /// Three packets begin in a frame; in every fourth one, none does.
    Packets,
}

/// Frame number `at` of a channel, as it was sent.
fn sent(at: u64, known: Known) -> Sign {
    let frames = |known_by: Known| if known == known_by { at } else { 0 };
    let begins = known == Known::Packets && !at.is_multiple_of(4);
    Sign {
        count: VcCount { value: at % 256, modulus: Modulus::TM_FRAME },
        received: Utc::from_micros(frames(Known::Time) as i64 * 1_000),
        position: BitPosition::from_bits(frames(Known::Bits) * 8_920),
        packet: begins.then(|| (Apid::from_bits(5), (3 * at % (1 << 14)) as u16)),
    }
}

/// What following these frames says is missing, and how often a count was set back.
fn account(frames: impl IntoIterator<Item = Sign>) -> (u64, u64) {
    let mut continuity = Continuity::default();
    let (mut missing, mut resets) = (0, 0);
    for frame in frames {
        let Followed { step, lost } = continuity.follow(&frame);
        match step {
            CountStep::Gap { missing: gap } => missing += gap,
            CountStep::Back => resets += 1,
            CountStep::Next | CountStep::Same => {}
        }
        if let Some(lost) = lost {
            assert_eq!(
                Modulus::TM_FRAME.between(lost.before.count.value, lost.after.count.value),
                lost.missing
            );
            missing += lost.missing;
            resets -= 1;
        }
    }
    (missing, resets)
}

proptest! {
    #[test]
    fn a_loss_of_more_than_half_of_a_short_count_is_told_by_bits_time_or_packets(
        from in 100_u64..2_000,
        missing in 1_u64..=254,
        known in prop_oneof![Just(Known::Bits), Just(Known::Time), Just(Known::Packets)],
    ) {
        let frames = (0..from).chain(from + missing..from + missing
            + 100).map(|at| sent(at, known));
        prop_assert_eq!(account(frames), (missing, 0));
    }

    #[test]
    fn a_counter_that_is_set_back_while_bits_time_and_packets_go_on_is_a_reset(
        from in 100_u64..2_000,
        back in 2_u64..=126,
        known in prop_oneof![Just(Known::Bits), Just(Known::Time), Just(Known::Packets)],
    ) {
        let frames = (0..from + 100).map(|at| {
            let mut sign = sent(at, known);
            if at >= from {
                sign.count.value = (at + 256 - back) % 256;
            }
            sign
        });
        prop_assert_eq!(account(frames), (0, 1));
    }

    #[test]
    fn what_is_played_again_is_no_loss(from in 200_u64..2_000, back in 2_u64..=126) {
        let frames = (0..from).chain(from - back..from + 100).map(|at| sent(at, Known::Packets));
        prop_assert_eq!(account(frames), (0, 1));
    }
}

#[test]
fn where_nothing_tells_a_count_that_goes_back_is_a_reset() {
    let frames = (0..300).chain(500..600).map(|at| sent(at, Known::Nothing));
    assert_eq!(account(frames), (0, 1));
}

#[test]
fn bits_without_frames_are_no_loss_where_packets_go_on() {
    let frames = (0..600_u64).map(|at| {
        let mut sign = sent(at, Known::Packets);
        let (count, bits) = if at < 300 { (at, at) } else { (at - 300, at + 400) };
        sign.count.value = count % 256;
        sign.position = BitPosition::from_bits(bits * 8_920);
        sign
    });
    assert_eq!(account(frames), (0, 1));
}

#[test]
fn long_counts_are_followed_by_themselves() {
    let count = |value| VcCount { value, modulus: Modulus::AOS_FRAME };
    let mut continuity = Continuity::default();
    let mut step =
        |value| continuity.follow(&Sign { count: count(value), ..sent(7, Known::Nothing) }).step;
    let steps = [10, 11, 11, 14, 3].map(&mut step);
    assert_eq!(
        steps,
        [
            CountStep::Next,
            CountStep::Next,
            CountStep::Same,
            CountStep::Gap { missing: 2 },
            CountStep::Back
        ]
    );
}

/// A header that was damaged without notice says a count by chance: what no bits have room for is
/// not missing.
#[test]
fn a_count_that_goes_on_by_more_than_there_was_room_for_is_no_loss_and_an_outage_is() {
    let frame = |at: u64, count: u64| Sign {
        count: VcCount { value: count, modulus: Modulus::AOS_FRAME_CYCLE },
        ..sent(at, Known::Bits)
    };
    let stray = (0..100).map(|at| frame(at, if at == 50 { 120_000_000 } else { at }));
    assert_eq!(account(stray), (0, 2));
    let outage = (0..100).chain(2_000_100..2_000_200).map(|at| frame(at, at));
    assert_eq!(account(outage), (2_000_000, 0));
}
