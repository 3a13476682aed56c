//! Reed-Solomon against published answers, and its promises under random errors.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use proptest::prelude::*;
use skyhaul_coding::{Basis, Codeword, Correction, ParameterError, Parameters, ReedSolomon};

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn code(
    correction: Correction,
    basis: Basis,
    interleave: usize,
    virtual_fill: usize,
) -> ReedSolomon {
    ReedSolomon::new(Parameters { correction, basis, interleave, virtual_fill }).unwrap()
}

fn encoded(code: &ReedSolomon, data: &[u8]) -> Vec<u8> {
    let mut block = data.to_vec();
    block.resize(code.block_len(), 0);
    let (data, check) = block.split_at_mut(code.data_len());
    code.encode(data, check);
    block
}

#[test]
fn check_symbols_known_answers() {
    let cases = [
        (
            Correction::E16,
            Basis::Conventional,
            "2fbd4fb4748494b9acd554627212eeb3ebed41191de1d36320ea49290b25abcf",
        ),
        (
            Correction::E16,
            Basis::Dual,
            "4ffb92dd557ec67f27fb8982cf58f8fd028ad117fcef6b2793d0418826578651",
        ),
        (Correction::E8, Basis::Conventional, "2aa9a33235aefe260e3c55be8f495000"),
        (Correction::E8, Basis::Dual, "9755133f2714a3fbe0101e8f0e0ac1d2"),
    ];
    for (correction, basis, check) in cases {
        let code = code(correction, basis, 1, 0);
        let message: Vec<u8> = (0..code.data_len()).map(|i| i as u8).collect();
        assert_eq!(
            encoded(&code, &message)[code.data_len()..],
            hex(check),
            "{correction:?} {basis:?}"
        );
    }
}

#[test]
fn lengths_of_the_standard() {
    for (interleave, frame, cadu) in [
        (1, 223, 259),
        (2, 446, 514),
        (3, 669, 769),
        (4, 892, 1024),
        (5, 1115, 1279),
        (8, 1784, 2044),
    ] {
        let code = code(Correction::E16, Basis::Dual, interleave, 0);
        assert_eq!((code.data_len(), code.block_len() + 4), (frame, cadu));
    }
    let short = code(Correction::E16, Basis::Dual, 5, 15);
    assert_eq!((short.data_len(), short.block_len() + 4), (1100, 1264));
}

#[test]
fn impossible_parameters_are_refused() {
    let refused = |interleave, virtual_fill| {
        ReedSolomon::new(Parameters {
            correction: Correction::E16,
            basis: Basis::Dual,
            interleave,
            virtual_fill,
        })
        .unwrap_err()
    };
    assert_eq!(refused(6, 0), ParameterError::Interleave(6));
    assert_eq!(refused(0, 0), ParameterError::Interleave(0));
    assert_eq!(refused(4, 5), ParameterError::VirtualFill { fill: 5, interleave: 4 });
    assert_eq!(refused(1, 223), ParameterError::VirtualFill { fill: 223, interleave: 1 });
}

#[derive(Debug, Clone)]
struct Case {
    parameters: Parameters,
    /// Errors of each codeword: sorted distinct places (as fractions) and values.
    data: Vec<u8>,
    errors: Vec<Vec<(usize, u8)>>,
}

/// Blocks of all kinds with `errors` wrong symbols per codeword.
fn case(
    errors: impl Fn(usize) -> std::ops::RangeInclusive<usize> + Copy + 'static,
) -> impl Strategy<Value = Case> {
    let correction = prop_oneof![Just(Correction::E8), Just(Correction::E16)];
    let basis = prop_oneof![Just(Basis::Dual), Just(Basis::Conventional)];
    let depth = prop_oneof![Just(1usize), Just(2), Just(3), Just(4), Just(5), Just(8)];
    (correction, basis, depth, 0usize..200).prop_flat_map(
        move |(correction, basis, interleave, fill)| {
            let parameters =
                Parameters { correction, basis, interleave, virtual_fill: fill * interleave };
            let length = 255 - fill;
            let data = proptest::collection::vec(
                any::<u8>(),
                (length - correction.check_len()) * interleave,
            );
            let places = proptest::sample::subsequence(
                (0..length).collect::<Vec<_>>(),
                errors(correction.symbols()),
            );
            let word = places.prop_flat_map(|places| {
                let count = places.len();
                (Just(places), proptest::collection::vec(1u8..=255, count))
                    .prop_map(|(places, values)| places.into_iter().zip(values).collect::<Vec<_>>())
            });
            (data, proptest::collection::vec(word, interleave))
                .prop_map(move |(data, errors)| Case { parameters, data, errors })
        },
    )
}

fn damage(block: &mut [u8], case: &Case) {
    for (index, errors) in case.errors.iter().enumerate() {
        for (place, value) in errors {
            block[place * case.parameters.interleave + index] ^= value;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn up_to_e_wrong_symbols_are_always_corrected_and_counted(case in case(|e| 0..=e)) {
        let code = ReedSolomon::new(case.parameters).unwrap();
        let sent = encoded(&code, &case.data);
        prop_assert!(code.is_clean(&sent));
        let mut received = sent.clone();
        damage(&mut received, &case);
        let decoded = code.decode(&mut received);
        prop_assert_eq!(received, sent);
        for (outcome, errors) in decoded.codewords().iter().zip(&case.errors) {
            let expected =
                if errors.is_empty() { Codeword::Clean } else {
                    Codeword::Corrected(errors.len() as u8) };
            prop_assert_eq!(*outcome, expected);
        }
    }

    #[test]
    fn a_few_wrong_symbols_more_never_pass_as_the_block_sent(case in case(|e| e + 1..=e + 3)) {
        let code = ReedSolomon::new(case.parameters).unwrap();
        let sent = encoded(&code, &case.data);
        let mut received = sent.clone();
        damage(&mut received, &case);
        let before = received.clone();
        let decoded = code.decode(&mut received);
        for (index, outcome) in decoded.codewords().iter().enumerate() {
            let word = |block: &[u8]| {
                let symbols = block.iter().skip(index).step_by(case.parameters.interleave);
                symbols.copied().collect::<Vec<u8>>()
            };
            prop_assert_ne!(*outcome, Codeword::Clean);
            prop_assert_ne!(word(&received), word(&sent));
            if *outcome == Codeword::Uncorrectable {
                prop_assert_eq!(word(&received), word(&before), "left as received");
            }
        }
        prop_assert!(!decoded.is_good() || code.is_clean(&received), "a corrected block is a \
                                                                     codeword");
    }

    #[test]
    fn any_bytes_are_decoded_without_panic(seed in proptest::collection::vec(any::<u8>(), 1020)) {
        let code = code(Correction::E16, Basis::Dual, 4, 0);
        let mut block = seed;
        let decoded = code.decode(&mut block);
        prop_assert!(!decoded.is_good() || code.is_clean(&block));
    }
}
