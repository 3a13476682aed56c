//! The AOS frame header error control: Reed-Solomon (10,6) over GF(16) on the spacecraft id, the
//! virtual channel id and the signalling field; corrects two wrong nibbles (CCSDS 732.0-B 4.1.2.6).
//! The frame count is not covered.

/// What the check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderCheck {
    /// No error.
    Clean,
    /// This many nibbles (1 or 2) were wrong; they are corrected in place.
    Corrected(u8),
    /// More than two nibbles are wrong; nothing was changed.
    Uncorrectable,
}

/// The check field of header bytes 0, 1 and 5 (ids, ids, signalling field).
pub fn encode(covered: [u8; 3]) -> u16 {
    let mut remainder = [0u8; CHECK];
    for nibble in nibbles(covered, 0).into_iter().take(DATA) {
        let feedback = nibble ^ remainder[0];
        for i in 0..CHECK {
            let next = if i + 1 < CHECK { remainder[i + 1] } else { 0 };
            remainder[i] = next ^ mul(feedback, GENERATOR[i]);
        }
    }
    remainder.iter().fold(0, |field, nibble| field << 4 | u16::from(*nibble))
}

/// Checks and corrects header bytes 0, 1 and 5 against the check `field`.
pub fn correct(covered: &mut [u8; 3], field: u16) -> HeaderCheck {
    let received = nibbles(*covered, field);
    let syndromes: [u8; CHECK] = core::array::from_fn(|j| {
        received.iter().fold(0, |sum, nibble| mul(sum, EXP[FIRST_ROOT + j]) ^ nibble)
    });
    if syndromes == [0; CHECK] {
        return HeaderCheck::Clean;
    }
    let Some(errors) = locate(syndromes) else { return HeaderCheck::Uncorrectable };
    let mut fixed = received;
    for (place, value) in errors.into_iter().flatten() {
        fixed[LENGTH - 1 - place] ^= value;
    }
    for (byte, pair) in covered.iter_mut().zip(fixed.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    HeaderCheck::Corrected(errors.iter().flatten().count() as u8)
}

/// Up to two errors as (power of x, value) that explain the syndromes (Peterson's closed form for
/// two errors).
fn locate(s: [u8; CHECK]) -> Option<[Option<(usize, u8)>; 2]> {
    let determinant = mul(s[0], s[2]) ^ mul(s[1], s[1]);
    if determinant == 0 {
        if s[0] == 0 || s[1] == 0 {
            return None;
        }
        let x = div(s[1], s[0]);
        let place = usize::from(LOG[usize::from(x)]);
        let consistent = s[2] == mul(s[1], x) && s[3] == mul(s[2], x) && place < LENGTH;
        return consistent.then(|| [Some((place, div(s[0], power(x, FIRST_ROOT)))), None]);
    }
    let sum = div(mul(s[0], s[3]) ^ mul(s[1], s[2]), determinant);
    let product = div(mul(s[1], s[3]) ^ mul(s[2], s[2]), determinant);
    let mut roots = (0..LENGTH).filter(|place| {
        let x = EXP[*place];
        mul(x, x) ^ mul(sum, x) ^ product == 0
    });
    let (first, second) = (roots.next()?, roots.next()?);
    let (x1, x2) = (EXP[first], EXP[second]);
    let a1 = div(mul(s[0], x2) ^ s[1], x1 ^ x2);
    let a2 = s[0] ^ a1;
    let values = (div(a1, power(x1, FIRST_ROOT)), div(a2, power(x2, FIRST_ROOT)));
    (values.0 != 0 && values.1 != 0).then_some([Some((first, values.0)), Some((second, values.1))])
}

fn nibbles(covered: [u8; 3], field: u16) -> [u8; LENGTH] {
    let [high, low] = field.to_be_bytes();
    let bytes = [covered[0], covered[1], covered[2], high, low];
    core::array::from_fn(|i| if i % 2 == 0 { bytes[i / 2] >> 4 } else { bytes[i / 2] & 0xF })
}

const LENGTH: usize = 10;
const DATA: usize = 6;
const CHECK: usize = 4;
/// Roots alpha^6 .. alpha^9.
const FIRST_ROOT: usize = 6;
/// x^4 + a^3 x^3 + a x^2 + a^3 x + 1, without its leading coefficient.
const GENERATOR: [u8; CHECK] = [8, 2, 8, 1];

/// Powers of alpha in GF(16) with x^4 + x + 1.
const EXP: [u8; 15] = [1, 2, 4, 8, 3, 6, 12, 11, 5, 10, 7, 14, 15, 13, 9];
/// Logarithms; the entry of zero is never used.
const LOG: [u8; 16] = [0, 0, 1, 4, 2, 8, 5, 10, 3, 14, 9, 7, 6, 13, 11, 12];

fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        0
    } else {
        EXP[usize::from(LOG[usize::from(a)] + LOG[usize::from(b)]) % 15]
    }
}

/// `a` ÷ `b`; `b` is not zero.
fn div(a: u8, b: u8) -> u8 {
    if a == 0 { 0 } else { EXP[usize::from(LOG[usize::from(a)] + 15 - LOG[usize::from(b)]) % 15] }
}

/// `a`^`n`; `a` is not zero.
fn power(a: u8, n: usize) -> u8 {
    EXP[usize::from(LOG[usize::from(a)]) * n % 15]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_answers() {
        assert_eq!(encode([0x12, 0x34, 0x56]), 0x94DC);
        assert_eq!(encode([0x36, 0x9C, 0xFA]), 0x457C);
    }

    fn damaged(covered: [u8; 3], errors: &[(usize, u8)]) -> ([u8; 3], u16) {
        let mut word = nibbles(covered, encode(covered));
        for (place, value) in errors {
            word[*place] ^= value;
        }
        let byte = |i: usize| word[2 * i] << 4 | word[2 * i + 1];
        ([byte(0), byte(1), byte(2)], u16::from_be_bytes([byte(3), byte(4)]))
    }

    proptest! {
        #[test]
        fn two_wrong_nibbles_are_corrected(covered: [u8; 3], a in 0usize..10, b in 0usize..10,
            va in 1u8..16, vb in 1u8..16) {
            let errors = if a == b { vec![(a, va)] } else { vec![(a, va), (b, vb)] };
            let (mut received, field) = damaged(covered, &errors);
            prop_assert_eq!(correct(&mut received, field),
                HeaderCheck::Corrected(errors.len() as u8));
            prop_assert_eq!(received, covered);
        }

        #[test]
        fn three_wrong_nibbles_never_pass_as_clean(covered: [u8; 3],
            values in [1u8..16, 1u8..16, 1u8..16], at in 0usize..8) {
            let errors = [(at, values[0]), (at + 1, values[1]), (at + 2, values[2])];
            let (mut received, field) = damaged(covered, &errors);
            let before = received;
            match correct(&mut received, field) {
                HeaderCheck::Clean => prop_assert!(false,
                    "three errors are within the code's distance \
                                                      of five"),
                HeaderCheck::Uncorrectable => prop_assert_eq!(received, before),
                HeaderCheck::Corrected(_) => {}
            }
        }
    }
}
