//! The codes against the standard and independent implementations, and the decoder against noise.

use super::matrix::Matrix;
use super::*;
use crate::gf::Kernel;
use crate::noise::Noise;
use labrador_ldpc::LDPCCode;
use proptest::prelude::*;
use sha2::{Digest, Sha256};

/// SHA-256 over the columns of the ones of each row, in order, and 2^32 - 1 behind each row, as
/// little-endian numbers of four bytes. Computed from the matrices of ldpc-toolbox 0.12.0, which is
/// written from the standard by others.
const MATRICES: [&str; 10] = [
    "61d964693f90ed49bbf07ce32adab5b7486c45c189badb154b1c8fdb9a4b3a04",
    "6c348df3a1a30dc692f5ad88395bfb51268190e4c3c399b795de9adc6dee5ff4",
    "ebd5975827e79f0d7bff4c61d30851464d74d8b79d726a935f30543d2f0439cd",
    "12e31b94dc6fe27ed47bd73112843b8fd5fe1939489e03af348d6c00c270d861",
    "169578eb04638c79571994b83e1ec1ef580ce584e7dbcb1032d18b18c95f27dd",
    "76115345a1ceea9b6958f39c40530c2ed51b9c6b485c4c13b8cb36156f31d5b3",
    "1a212ca60e5ef84b4a42ccaf5ce66e12fe7879ee8217a1d98f38bf1df04b7868",
    "23e3a71aa19fc46fd42969e76cf8a8da3e2c729ef509ff12a0177c85fc8e1307",
    "5d243f7385d04f6fef2d3a97370c0fc5372b7878368b6e27edb1fade1dea158f",
    "6de5267a8bb419fe7a29d14f3866dd2c8f89073dc55632573ba617090c577ca5",
];

#[test]
fn matrices_are_those_of_an_independent_construction() {
    for (code, digest) in Code::ALL.into_iter().zip(MATRICES) {
        let matrix = Matrix::new(code);
        let mut sha = Sha256::new();
        for row in &matrix.rows {
            for index in 0..matrix.size {
                let column = |one: &matrix::Circulant| {
                    one.column * matrix.size + (one.shift + index) % matrix.size
                };
                let mut columns: Vec<u32> = row.iter().map(|one| column(one) as u32).collect();
                columns.sort_unstable();
                columns.push(u32::MAX);
                columns.iter().for_each(|column| sha.update(column.to_le_bytes()));
            }
        }
        let found: String = sha.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, digest, "{}", code.name());
    }
}

#[test]
fn the_generator_of_c2_is_the_one_that_the_standard_prints() {
    // CCSDS 131.0-B-5 annex C: the circulants of the first block row. A zero stands before the 511
    // bits.
    const FIRST: [&str; 2] = [
        "55BF56CC55283DFEEFEA8C8CFF04E1EBD9067710988E25048D67525426939E20\
         68D2DC6FCD2F822BEB6BD96C8A76F4932AAE9BC53AD20A2A9C86BB461E43759C",
        "6855AE08698A50AA3051768793DC238544AF3FE987391021AAF6383A6503409C\
         3CE971A80B3ECE12363EE809A01D91204F1811123EAB867D3E40E8C652585D28",
    ];
    let matrix = Matrix::new(Code::C2);
    let rows = expurgation::first_rows(&matrix, &inverse::c2_inverse(&matrix), 0);
    for (row, printed) in rows.iter().zip(FIRST) {
        for (digit, printed) in printed.chars().enumerate() {
            let bit =
                |place: usize| (4 * digit + place).checked_sub(1).is_some_and(|bit| row.bit(bit));
            let found = (0..4).fold(0, |digit, place| digit << 1 | u32::from(bit(place)));
            assert_eq!(Some(found), printed.to_digit(16), "digit {digit}");
        }
    }
}

/// Frames and their codewords, one after the other.
fn codewords(code: Code, count: usize, noise: &mut Noise) -> (Vec<u8>, Vec<u8>) {
    let encoder = LdpcEncoder::new(code);
    let frames = noise.bytes(count * code.frame_len());
    let mut codewords = vec![0; count * code.codeword_len()];
    let each =
        frames.chunks_exact(code.frame_len()).zip(codewords.chunks_exact_mut(code.codeword_len()));
    each.for_each(|(frame, codeword)| encoder.encode(frame, codeword));
    (frames, codewords)
}

/// What a receiver has of codewords at a ratio of energy in an information bit to noise density, in
/// decibel; a noiseless symbol has size 20.
fn receive(code: Code, codewords: &[u8], decibel: f64, noise: &mut Noise) -> Vec<i8> {
    let rate = code.information_bits() as f64 / code.codeword_bits() as f64;
    let deviation = (2.0 * rate * 10f64.powf(decibel / 10.0)).sqrt().recip();
    let bits = codewords.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1));
    bits.map(|bit| {
        (20.0 * (if bit { 1.0 } else { -1.0 } + deviation * noise.normal())).round() as i8
    })
    .collect()
}

#[test]
fn codewords_begin_with_the_frame_and_satisfy_every_check() {
    let mut noise = Noise(1);
    for code in Code::ALL {
        let (frames, codewords) = codewords(code, 2, &mut noise);
        let mut out = Vec::new();
        let decoded = LdpcDecoder::new(code).decode_hard(&codewords, &mut out);
        assert!(decoded.iter().all(Decoded::is_clean) && decoded.len() == 2, "{}", code.name());
        assert_eq!(out, frames);
        for (frame, codeword) in
            frames.chunks_exact(code.frame_len()).zip(codewords.chunks_exact(code.codeword_len()))
        {
            assert_eq!(frame, &codeword[..code.frame_len()]);
        }
    }
}

/// The codes that labrador-ldpc has.
fn of_labrador(code: Code) -> Option<LDPCCode> {
    use Information::{K1024, K4096};
    use Rate::{FourFifths, Half, TwoThirds};
    let Code::Ar4ja { information, rate } = code else { return None };
    match (information, rate) {
        (K1024, FourFifths) => Some(LDPCCode::TM1280),
        (K1024, TwoThirds) => Some(LDPCCode::TM1536),
        (K1024, Half) => Some(LDPCCode::TM2048),
        (K4096, FourFifths) => Some(LDPCCode::TM5120),
        (K4096, TwoThirds) => Some(LDPCCode::TM6144),
        (K4096, Half) => Some(LDPCCode::TM8192),
        _ => None,
    }
}

#[test]
fn codewords_are_those_of_another_encoder() {
    let mut noise = Noise(2);
    let mut compared = 0;
    for (code, other) in Code::ALL.into_iter().filter_map(|code| Some((code, of_labrador(code)?))) {
        let (frame, codeword) = codewords(code, 1, &mut noise);
        let mut expected = vec![0; code.codeword_len()];
        other.copy_encode(&frame, &mut expected);
        assert!(codeword == expected, "{}", code.name());
        compared += 1;
    }
    assert_eq!(compared, 6);
}

/// Ratios in decibel at which every codeword drawn comes out: 1.1 to 2.4 dB from where the capacity
/// of the channel with two inputs is the code's rate (2.84 dB for C2; 2.04, 1.06 and 0.19 dB for
/// 4/5, 2/3 and 1/2), the shorter the code the farther.
const CORRECTED: [f64; 10] = [4.2, 4.4, 3.3, 2.3, 3.6, 2.5, 1.6, 3.3, 2.2, 1.3];

#[test]
fn noise_near_the_capacity_of_the_channel_is_corrected() {
    for (code, decibel) in Code::ALL.into_iter().zip(CORRECTED) {
        let mut noise = Noise(3);
        let count = (400_000 / code.information_bits()).max(24);
        let (frames, sent) = codewords(code, count, &mut noise);
        let symbols = receive(code, &sent, decibel, &mut noise);
        let mut out = Vec::new();
        let decoded = LdpcDecoder::new(code).decode(&symbols, &mut out);
        let bad = decoded.iter().filter(|decoded| !decoded.is_good()).count();
        assert_eq!(bad, 0, "{bad} of {count} codewords of {} at {decibel} dB", code.name());
        assert!(out == frames, "{}", code.name());
        assert!(decoded.iter().all(|decoded| decoded.corrected_symbols() > 0), "there was noise");
    }
}

#[test]
fn where_checks_do_not_hold_the_frame_stays_as_received() {
    // Noise alone, and a codeword far below what the code is made for.
    let mut noise = Noise(4);
    for code in [Code::C2, Code::ALL[1], Code::ALL[3]] {
        let (_, sent) = codewords(code, 20, &mut noise);
        let mut symbols = receive(code, &sent, -3.0, &mut noise);
        symbols.extend(noise.bytes(code.codeword_bits()).into_iter().map(u8::cast_signed));
        let mut out = Vec::new();
        let decoded = LdpcDecoder::new(code).limited(10).decode(&symbols, &mut out);
        assert_eq!(decoded.len(), 21);
        for (index, decoded) in decoded.iter().enumerate() {
            assert!(
                !decoded.is_good()
                    && decoded.iterations() == 10
                    && decoded.corrected_symbols() == 0
            );
            let received = &symbols[index * code.codeword_bits()..][..code.information_bits()];
            let frame = &out[index * code.frame_len()..][..code.frame_len()];
            let bits =
                frame.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1));
            assert!(bits.eq(received.iter().map(|symbol| *symbol > 0)));
        }
    }
}

#[test]
fn symbols_of_which_nothing_is_known_are_filled_in() {
    let mut noise = Noise(5);
    for code in Code::ALL {
        let (frames, sent) = codewords(code, 1, &mut noise);
        let mut symbols = receive(code, &sent, 60.0, &mut noise);
        // A burst of a thirtieth of the codeword.
        let burst = code.codeword_bits() / 30;
        symbols[200..200 + burst].fill(0);
        let mut out = Vec::new();
        let decoded = LdpcDecoder::new(code).decode(&symbols, &mut out);
        assert!(decoded[0].is_good() && !decoded[0].is_clean(), "{}", code.name());
        assert_eq!(decoded[0].corrected_symbols(), 0, "an unknown symbol is not a wrong one");
        assert!(out == frames, "{}", code.name());
    }
}

#[test]
fn a_codeword_that_the_standard_leaves_unused_is_not_taken() {
    // All ones in the first block of check bits: every check of the matrix holds.
    let mut symbols = vec![-1; Code::C2.codeword_bits()];
    symbols[7136..7136 + 511].fill(1);
    let decoded = LdpcDecoder::new(Code::C2).decode(&symbols, &mut Vec::new());
    assert!(!decoded[0].is_good());
}

fn any_code() -> impl Strategy<Value = Code> {
    // The longest codes take long; they differ from others by their size alone.
    prop::sample::select(&Code::ALL[..7])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn kernels_and_company_make_no_difference(code in any_code(), count in 1usize..6, seed: u64,
        decibel in 0.0..6.0) {
        let mut noise = Noise(seed | 1);
        let (_, sent) = codewords(code, count, &mut noise);
        let symbols = receive(code, &sent, decibel, &mut noise);
        let mut expected = Vec::new();
        let mut alone = LdpcDecoder::new(code).limited(12);
        let found: Vec<Decoded> = symbols
            .chunks(code.codeword_bits())
            .flat_map(|symbols| alone.decode(symbols, &mut expected))
            .collect();
        for kernel in Kernel::available() {
            let mut out = Vec::new();
            let mut decoder = LdpcDecoder::with_kernel(code, kernel).limited(12);
            let decoded = decoder.decode(&symbols, &mut out);
            prop_assert_eq!(&decoded, &found, "{}", kernel.name());
            prop_assert!(out == expected, "{}", kernel.name());
        }
    }

    #[test]
    fn more_codewords_than_lanes_take_turns(seed: u64, count in 60usize..160) {
        let code = Code::ALL[1];
        let mut noise = Noise(seed | 1);
        let (frames, sent) = codewords(code, count, &mut noise);
        let symbols = receive(code, &sent, 3.4, &mut noise);
        let mut expected = Vec::new();
        let mut alone = LdpcDecoder::new(code).limited(20);
        let mut decoder = alone.clone();
        let found: Vec<Decoded> = symbols
            .chunks(code.codeword_bits())
            .flat_map(|symbols| alone.decode(symbols, &mut expected))
            .collect();
        let mut out = Vec::new();
        prop_assert_eq!(decoder.decode(&symbols, &mut out), found.clone());
        prop_assert!(out == expected);
        let frames = frames.chunks(code.frame_len()).zip(out.chunks(code.frame_len()));
        for (decoded, (sent, received)) in found.iter().zip(frames) {
            prop_assert!(!decoded.is_good() || sent == received);
        }
    }

    #[test]
    fn any_symbols_are_taken(code in any_code(),
        symbols in prop::collection::vec(any::<i8>(), 0..9_000)) {
        let mut out = Vec::new();
        let decoded = LdpcDecoder::new(code).limited(3).decode(&symbols, &mut out);
        prop_assert_eq!(decoded.len(), symbols.len() / code.codeword_bits());
        prop_assert_eq!(out.len(), decoded.len() * code.frame_len());
        for value in [i8::MIN, 0, i8::MAX] {
            LdpcDecoder::new(code).limited(3).decode(&vec![value; code.codeword_bits()], &mut out);
        }
    }

    #[test]
    fn few_wrong_bits_are_corrected_and_counted(code in any_code(), seed: u64, wrong in 1usize..8) {
        let mut noise = Noise(seed | 1);
        let (frames, mut sent) = codewords(code, 1, &mut noise);
        let places: std::collections::BTreeSet<usize> =
            (0..wrong).map(|_| noise.next() as usize % (code.codeword_bits() - 2)).collect();
        places.iter().for_each(|place| sent[place / 8] ^= 0x80 >> (place % 8));
        let mut out = Vec::new();
        let decoded = LdpcDecoder::new(code).decode_hard(&sent, &mut out);
        prop_assert!(decoded[0].is_good());
        prop_assert_eq!(decoded[0].corrected_symbols() as usize, places.len());
        prop_assert!(out == frames);
    }
}
