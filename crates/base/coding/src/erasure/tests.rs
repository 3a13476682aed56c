//! Any loss that leaves as many symbols as there are sources is made good; nothing else is claimed.

use super::matrix::coefficient;
use super::*;
use crate::field;
use proptest::prelude::*;

#[test]
fn the_first_repair_is_the_plain_sum() {
    for source in 0..255 {
        assert_eq!(coefficient(0, source), 1);
    }
    assert_eq!(repair(0, &[&[1, 2], &[4], &[8, 16]], 3), [13, 18, 0]);
}

#[test]
fn the_inverse_times_the_matrix_is_one() {
    let missing = [0, 3, 77, 154];
    let repairs = [0, 9, 80, 100];
    let inverse = inverse(&missing, &repairs);
    for (row, _) in missing.iter().enumerate() {
        for (column, source) in missing.iter().enumerate() {
            let products = repairs.iter().enumerate().map(|(at, repair)| {
                field::mul(inverse[row * 4 + at], coefficient(*repair, *source))
            });
            assert_eq!(
                products.fold(0, |a, b| a ^ b),
                u8::from(row == column),
                "row {row}, column {column}"
            );
        }
    }
}

#[test]
fn every_loss_in_small_groups_is_made_good() {
    for sources in 1..=5usize {
        for lost in 0u32..1 << (sources + 4) {
            let lost: Vec<usize> = (0..sources + 4).filter(|at| lost >> at & 1 == 1).collect();
            if lost.len() <= 4 {
                round_trip(sources, 4, &lost, 7);
            }
        }
    }
}

#[test]
fn the_widest_groups_are_made_good() {
    let half: Vec<usize> = (0..128).collect();
    round_trip(128, 128, &half, 9);
    round_trip(255, 1, &[254], 9);
    round_trip(1, 255, &(0..255).collect::<Vec<_>>(), 9);
    round_trip(223, 33, &(190..223).collect::<Vec<_>>(), 1_280);
}

#[test]
fn what_lies_outside_a_group_is_refused() {
    let index = |sources, missing: &[u8], repairs: &[u8]| {
        Recovery::new(sources, missing, repairs).unwrap_err()
    };
    assert_eq!(index(4, &[1, 2], &[0]), Unsolvable::Unequal { missing: 2, repairs: 1 });
    assert_eq!(index(4, &[4], &[0]), Unsolvable::Index);
    assert_eq!(index(4, &[1, 1], &[0, 1]), Unsolvable::Index);
    assert_eq!(index(4, &[1, 2], &[1, 0]), Unsolvable::Index);
    assert_eq!(index(255, &[0], &[1]), Unsolvable::Index);
    assert_eq!(index(256, &[0], &[0]), Unsolvable::Index);
    assert!(Recovery::new(255, &[254], &[0]).is_ok());
}

#[test]
fn a_group_without_losses_has_nothing_to_solve() {
    let recovery = Recovery::new(2, &[], &[]).unwrap();
    assert!(recovery.solve(&[b"a", b"b"], &[]).is_empty());
}

#[test]
fn an_encoder_gives_the_same_repairs_as_one_call_each() {
    let sources: Vec<Vec<u8>> = (0..40).map(|at| symbol(at, 100 + at)).collect();
    let slices: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    let mut encoder = ErasureEncoder::new(6, 140);
    for source in &slices {
        encoder.add(source);
    }
    assert_eq!(encoder.sources(), 40);
    let expected: Vec<Vec<u8>> = (0..6).map(|index| repair(index, &slices, 140)).collect();
    assert_eq!(encoder.finish(), expected);
}

proptest! {
    #[test]
    fn random_losses_are_made_good(
        sources in 1usize..=200,
        repairs in 1usize..=56,
        len in 1usize..300,
        seed in prop::collection::vec(any::<prop::sample::Index>(), 56),
    ) {
        let mut lost: Vec<usize> = seed[..repairs].iter().map(|at| at.index(sources
            + repairs)).collect();
        lost.sort_unstable();
        lost.dedup();
        round_trip(sources, repairs, &lost, len);
    }
}

/// Codes `sources` symbols of up to `len` bytes, loses those at `lost` (repairs count on from the
/// sources) and recovers the rest.
fn round_trip(sources: usize, repairs: usize, lost: &[usize], len: usize) {
    let sent: Vec<Vec<u8>> =
        (0..sources).map(|at| symbol(at, 1 + (at * 7 + len - 1) % len)).collect();
    let slices: Vec<&[u8]> = sent.iter().map(Vec::as_slice).collect();
    let missing: Vec<u8> = lost.iter().filter(|at| **at < sources).map(|at| *at as u8).collect();
    let arrived = (0..repairs).filter(|index| !lost.contains(&(sources + index)));
    let used: Vec<u8> = arrived.map(|index| index as u8).take(missing.len()).collect();
    let symbols: Vec<Vec<u8>> = used.iter().map(|index| repair(*index, &slices, len)).collect();
    let received: Vec<&[u8]> =
        (0..sources).map(|at| if lost.contains(&at) { &[] } else { slices[at] }).collect();
    let recovery = Recovery::new(sources, &missing, &used).unwrap();
    let found = recovery.solve(&received, &symbols.iter().map(Vec::as_slice).collect::<Vec<_>>());
    for (at, found) in missing.iter().zip(found) {
        let mut expected = sent[usize::from(*at)].clone();
        expected.resize(len, 0);
        assert_eq!(found, expected, "source {at} of {sources}");
    }
}

/// Bytes that differ from symbol to symbol.
fn symbol(at: usize, len: usize) -> Vec<u8> {
    (0..len).map(|place| (at * 31 + place * 17 + at * place % 13) as u8 ^ 0x5a).collect()
}
