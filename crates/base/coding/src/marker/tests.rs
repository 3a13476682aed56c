//! Every kernel against a count bit by bit.

use super::*;
use proptest::prelude::*;

const MARKERS: [Marker; 3] = [
    Marker::Bits32(0x1ACF_FC1D),
    Marker::Bits32(0x352E_F853),
    Marker::Bits64(0x0347_76C7_2728_95B0),
];

/// The marker's bits, first to last.
fn bits(marker: Marker) -> Vec<bool> {
    (0..marker.bits())
        .rev()
        .map(|place| match marker {
            Marker::Bits32(bits) => bits >> place & 1 == 1,
            Marker::Bits64(bits) => bits >> place & 1 == 1,
        })
        .collect()
}

fn naive(marker: Marker, most_errors: u32, bytes: &[u8], places: Range<usize>) -> Option<Hit> {
    let bit = |index: usize| bytes[index / 8] >> (7 - index % 8) & 1 == 1;
    let marker = bits(marker);
    places.take_while(|position| position + marker.len() <= 8 * bytes.len()).find_map(|position| {
        let wrong =
            marker.iter().enumerate().filter(|(i, sent)| bit(position + i) != **sent).count()
                as u32;
        let right = marker.len() as u32 - wrong;
        let hit = Hit { position, errors: wrong.min(right), inverted: right < wrong };
        (hit.errors <= most_errors).then_some(hit)
    })
}

fn plant(bytes: &mut [u8], position: usize, bits: impl Iterator<Item = bool>) {
    for (index, bit) in (position..).zip(bits) {
        let mask = 0x80 >> (index % 8);
        bytes[index / 8] = bytes[index / 8] & !mask | if bit { mask } else { 0 };
    }
}

#[test]
fn a_marker_is_found_at_every_place_in_both_polarities_with_every_number_of_errors() {
    for marker in MARKERS {
        let len = 8 * 90;
        for position in 0..=len - marker.bits() {
            let mut bytes = vec![0; 90];
            let (errors, inverted) = ((position * 7 % 8) as u32, position % 3 == 0);
            let wrong = |index: usize| (index * 11 + position) % marker.bits() < errors as usize;
            plant(
                &mut bytes,
                position,
                (0..).zip(bits(marker)).map(|(i, bit)| bit ^ inverted ^ wrong(i)),
            );
            for most_errors in [0, 1, 2, 3, 7] {
                let expected = naive(marker, most_errors, &bytes, 0..len);
                if errors <= most_errors {
                    assert_eq!(expected, Some(Hit { position, errors, inverted }));
                }
                for kernel in Kernel::available() {
                    let finder = Finder::with_kernel(marker, most_errors, kernel);
                    assert_eq!(
                        finder.find(&bytes, 0..len),
                        expected,
                        "{} {most_errors}",
                        kernel.name()
                    );
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn kernels_find_what_a_count_bit_by_bit_finds(
        mut bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0x1A), Just(0xFC)],
            0..300),
        marker in prop::sample::select(&MARKERS[..]),
        plants in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), any::<u64>(),
            0u32..10), 0..4),
        most_errors in 0u32..=7,
        from in 0usize..1_200,
        len in 0usize..2_600,
    ) {
        for (place, inverted, noise, errors) in plants {
            if 8 * bytes.len() >= marker.bits() {
                let mut wrong: Vec<usize> = (0..marker.bits()).collect();
                let mut noise = noise;
                let wrong: Vec<usize> = (0..errors).map(|_| {
                    noise = noise.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                    wrong.swap_remove((noise >> 33) as usize % wrong.len())
                }).collect();
                let position = place.index(8 * bytes.len() - marker.bits() + 1);
                plant(&mut bytes, position,
                    (0..).zip(bits(marker)).map(|(i, bit)| bit ^ inverted ^ wrong.contains(&i)));
            }
        }
        let expected = naive(marker, most_errors, &bytes, from..from + len);
        for kernel in Kernel::available() {
            let finder = Finder::with_kernel(marker, most_errors, kernel);
            prop_assert_eq!(finder.find(&bytes, from..from + len), expected, "{}", kernel.name());
        }
    }
}

#[test]
fn ranges_that_hold_no_marker_are_searched_without_harm() {
    let finder = Finder::new(MARKERS[0], 99);
    assert_eq!(finder.most_errors, Finder::MAX_ERRORS);
    for bytes in [&[][..], &[0x1A, 0xCF, 0xFC], &[0; 4]] {
        assert_eq!(finder.find(bytes, 0..usize::MAX), None);
        assert_eq!(finder.find(bytes, usize::MAX - 1..usize::MAX), None);
    }
    assert_eq!(
        finder.find(&0x1ACF_FC1D_u32.to_be_bytes(), 0..usize::MAX).map(|hit| hit.position),
        Some(0)
    );
}

#[test]
fn a_search_may_end_within_a_register() {
    for kernel in Kernel::available() {
        let finder = Finder::with_kernel(MARKERS[0], 0, kernel);
        assert_eq!(finder.find(&[0; 200], 0..8), None, "{}", kernel.name());
    }
}
