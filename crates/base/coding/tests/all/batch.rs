//! The batch coder, on every set of instructions that the processor has, against the coder for
//! single blocks.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use crate::draw::{Blocks, Draw, blocks};
use proptest::prelude::*;
use skyhaul_coding::gf::Kernel;
use skyhaul_coding::{
    Basis, BatchDecoder, BatchEncoder, Codeword, Correction, Decoded, Parameters, Randomiser,
    ReedSolomon,
};

fn parameters() -> impl Strategy<Value = Parameters> {
    let correction = prop_oneof![Just(Correction::E8), Just(Correction::E16)];
    let basis = prop_oneof![Just(Basis::Dual), Just(Basis::Conventional)];
    let depth = prop_oneof![Just(1usize), Just(2), Just(3), Just(4), Just(5), Just(8)];
    let fill = prop_oneof![Just(0usize), 0usize..222];
    (correction, basis, depth, fill).prop_map(|(correction, basis, interleave, fill)| {
        let fill = fill.min(254 - correction.check_len());
        Parameters { correction, basis, interleave, virtual_fill: fill * interleave }
    })
}

/// What the coder for single blocks makes of them.
fn one_by_one(code: &ReedSolomon, blocks: &Blocks) -> (Vec<u8>, Vec<Decoded>) {
    let mut bytes = blocks.received.clone();
    let decoded = bytes
        .chunks_exact_mut(blocks.stride)
        .map(|block| code.decode(&mut block[..code.block_len()]))
        .collect();
    (bytes, decoded)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_kernel_decodes_as_the_single_coder_does(
        parameters in parameters(),
        count in 1usize..150,
        split in 0usize..150,
        most in 0usize..=18,
        rare in any::<bool>(),
        seed in 1u64..,
    ) {
        let code = ReedSolomon::new(parameters).unwrap();
        let errors = |draw: &mut Draw| if rare && draw.below(20) !=
            0 { 0 } else { draw.below(most + 1) };
        let blocks = blocks(&code, &mut Draw(seed), count, errors);
        let (expected, outcomes) = one_by_one(&code, &blocks);
        for kernel in Kernel::available() {
            let mut decoder = BatchDecoder::with_kernel(&code, kernel);
            let mut bytes = blocks.received.clone();
            let decoded = decoder.decode(&mut bytes, blocks.stride).to_vec();
            prop_assert_eq!(decoded, outcomes.as_slice(), "{}", kernel.name());
            prop_assert!(bytes == expected, "{}", kernel.name());
            let (mut apart, len) = (vec![0xEE; count * code.block_len()], code.block_len());
            let (before, after) = blocks.received.split_at(split.min(count) * blocks.stride);
            let decoded = decoder.receive_from(&[before, after], blocks.stride, None,
                &mut apart).to_vec();
            prop_assert_eq!(decoded, outcomes.as_slice(), "{}", kernel.name());
            let same = |(apart, block): (&[u8], &[u8])| apart == &block[..len];
            prop_assert!(apart.chunks(len).zip(expected.chunks(blocks.stride)).all(same), "{}",
                kernel.name());
            // The same decoder again: nothing is left over from before.
            let decoded = decoder.decode(&mut bytes, blocks.stride);
            let again = one_by_one(&code, &Blocks { received: expected.clone(), ..blocks.clone() });
            prop_assert_eq!(decoded, again.1.as_slice(), "{}", kernel.name());
        }
    }

    #[test]
    fn every_kernel_encodes_as_the_single_coder_does(
        parameters in parameters(),
        count in 1usize..150,
        randomised in any::<bool>(),
        seed in 1u64..,
    ) {
        let code = ReedSolomon::new(parameters).unwrap();
        let blocks = blocks(&code, &mut Draw(seed), count, |_| 0);
        let sequence = Randomiser::Ccsds131071.sequence(code.block_len());
        let sequence = randomised.then_some(&sequence);
        let mut expected = blocks.sent.clone();
        if let Some(sequence) = sequence {
            for block in expected.chunks_exact_mut(blocks.stride) {
                sequence.apply(0, &mut block[..code.block_len()]);
            }
        }
        for kernel in Kernel::available() {
            let mut bytes = blocks.sent.clone();
            for block in bytes.chunks_exact_mut(blocks.stride) {
                block[code.data_len()..code.block_len()].fill(0xEE);
            }
            let mut encoder = BatchEncoder::with_kernel(&code, kernel);
            encoder.send(&mut bytes, blocks.stride, sequence);
            prop_assert!(bytes == expected, "{}", kernel.name());
            let mut decoder = BatchDecoder::with_kernel(&code, kernel);
            let clean = decoder.receive(&mut bytes, blocks.stride,
                sequence).iter().all(Decoded::is_clean);
            prop_assert!(clean && bytes == blocks.sent, "{}", kernel.name());
            let mut apart = vec![0xEE; count * code.block_len()];
            let clean = decoder.receive_from(&[&expected], blocks.stride, sequence, &mut apart);
            prop_assert!(clean.iter().all(Decoded::is_clean), "{}", kernel.name());
            let mut sent = blocks.sent.chunks(blocks.stride).zip(apart.chunks(code.block_len()));
            prop_assert!(sent.all(|(sent, apart)| sent.starts_with(apart)), "{}", kernel.name());
        }
    }
}

#[test]
fn up_to_e_errors_anywhere_are_corrected_and_counted() {
    for correction in [Correction::E8, Correction::E16] {
        for kernel in Kernel::available() {
            for errors in 0..=correction.symbols() {
                let parameters =
                    Parameters { correction, basis: Basis::Dual, interleave: 5, virtual_fill: 0 };
                let code = ReedSolomon::new(parameters).unwrap();
                let blocks = blocks(&code, &mut Draw(errors as u64 + 1), 70, |_| errors);
                let mut bytes = blocks.received.clone();
                let mut decoder = BatchDecoder::with_kernel(&code, kernel);
                let decoded = decoder.decode(&mut bytes, blocks.stride);
                let expected =
                    if errors == 0 { Codeword::Clean } else { Codeword::Corrected(errors as u8) };
                let right =
                    |decoded: &Decoded| decoded.codewords().iter().all(|word| *word == expected);
                assert!(
                    decoded.len() == blocks.count && decoded.iter().all(right),
                    "{}",
                    kernel.name()
                );
                assert!(bytes == blocks.sent, "{}", kernel.name());
            }
        }
    }
}

#[test]
fn blocks_of_a_few_data_symbols_are_encoded() {
    for fill in 190..=222 {
        let parameters = Parameters {
            correction: Correction::E16,
            basis: Basis::Dual,
            interleave: 1,
            virtual_fill: fill,
        };
        let code = ReedSolomon::new(parameters).unwrap();
        let blocks = blocks(&code, &mut Draw(3), 70, |_| 0);
        for kernel in Kernel::available() {
            let mut bytes = blocks.sent.clone();
            bytes.chunks_exact_mut(blocks.stride).for_each(|block| block[code.data_len()] ^= 0x55);
            BatchEncoder::with_kernel(&code, kernel).encode(&mut bytes, blocks.stride);
            assert!(bytes == blocks.sent, "{}, {} data symbols", kernel.name(), code.data_len());
        }
    }
}

#[test]
fn no_whole_block_is_no_outcome() {
    let parameters = Parameters {
        correction: Correction::E16,
        basis: Basis::Dual,
        interleave: 4,
        virtual_fill: 0,
    };
    let code = ReedSolomon::new(parameters).unwrap();
    let mut decoder = BatchDecoder::new(&code);
    assert_eq!(decoder.decode(&mut [], 1024), []);
    assert_eq!(decoder.decode(&mut [0; 1019], 1024), []);
    assert_eq!(decoder.decode(&mut [0; 1020], 1024).len(), 1);
    assert_eq!(decoder.decode(&mut [0; 2043], 1024).len(), 1);
    assert_eq!(decoder.decode(&mut [0; 2044], 1024).len(), 2);
}

#[test]
fn a_word_of_the_shorter_code_does_not_pass_for_one_of_the_longer() {
    // Its 16 roots are among those of the longer code, but not those that the gate looks at.
    let depth =
        |correction| Parameters { correction, basis: Basis::Dual, interleave: 4, virtual_fill: 0 };
    let code = ReedSolomon::new(depth(Correction::E8)).unwrap();
    let blocks = blocks(&code, &mut Draw(7), 64, |_| 0);
    let other = ReedSolomon::new(depth(Correction::E16)).unwrap();
    for kernel in Kernel::available() {
        let mut decoder = BatchDecoder::with_kernel(&other, kernel);
        let decoded = decoder.decode(&mut blocks.received.clone(), blocks.stride).to_vec();
        assert!(!decoded.iter().any(Decoded::is_good), "{}", kernel.name());
    }
}
