//! GF(256) as CCSDS 131.0-B 4.3 defines it (x^8 + x^7 + x^2 + x + 1), and the map to the dual
//! basis.

/// The field polynomial.
pub(crate) const FIELD: u16 = 0x187;

/// The order of the multiplicative group.
pub(crate) const ORDER: usize = 255;

/// `EXP[i]` is alpha^i; twice as long as the group, so that a sum of two logarithms needs no
/// reduction.
pub(crate) const EXP: [u8; 2 * ORDER + 2] = {
    let mut exp = [0u8; 2 * ORDER + 2];
    let mut value = 1u16;
    let mut i = 0;
    while i < 2 * ORDER + 2 {
        exp[i] = value as u8;
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= FIELD;
        }
        i += 1;
    }
    exp
};

/// `LOG[alpha^i]` is i; the entry of zero is never used.
pub(crate) const LOG: [u8; 256] = {
    let mut log = [0u8; 256];
    let mut i = 0;
    while i < ORDER {
        log[EXP[i] as usize] = i as u8;
        i += 1;
    }
    log
};

/// The product of two elements.
pub(crate) const fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 { 0 } else { EXP[LOG[a as usize] as usize + LOG[b as usize] as usize] }
}

/// `a` ÷ `b`; `b` is not zero.
pub(crate) const fn div(a: u8, b: u8) -> u8 {
    if a == 0 { 0 } else { EXP[LOG[a as usize] as usize + ORDER - LOG[b as usize] as usize] }
}

/// `a` × alpha^`exponent`, for exponents below the group order.
pub(crate) const fn mul_exp(a: u8, exponent: usize) -> u8 {
    if a == 0 { 0 } else { EXP[LOG[a as usize] as usize + exponent] }
}

/// Conventional to dual basis (CCSDS 131.0-B 4.3.9), by byte.
pub(crate) const TO_DUAL: [u8; 256] = linear_map([0x8D, 0xEF, 0xEC, 0x86, 0xFA, 0x99, 0xAF, 0x7B]);

/// Dual to conventional basis, by byte.
pub(crate) const FROM_DUAL: [u8; 256] =
    linear_map([0xC5, 0x42, 0x2E, 0xFD, 0xF0, 0x79, 0xAC, 0xCC]);

/// The images of all bytes under the matrix whose rows are the images of 0x80, 0x40, .. 0x01.
const fn linear_map(rows: [u8; 8]) -> [u8; 256] {
    let mut map = [0u8; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            if byte & (0x80 >> bit) != 0 {
                map[byte] ^= rows[bit];
            }
            bit += 1;
        }
        byte += 1;
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dual_basis_known_answers() {
        let powers = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80];
        let to = [0x7B, 0xAF, 0x99, 0xFA, 0x86, 0xEC, 0xEF, 0x8D];
        let from = [0xCC, 0xAC, 0x79, 0xF0, 0xFD, 0x2E, 0x42, 0xC5];
        for i in 0..8 {
            assert_eq!(TO_DUAL[powers[i]], to[i]);
            assert_eq!(FROM_DUAL[powers[i]], from[i]);
        }
        for byte in 0..=255u8 {
            assert_eq!(FROM_DUAL[usize::from(TO_DUAL[usize::from(byte)])], byte);
        }
    }

    #[test]
    fn products_agree_with_shift_and_reduce() {
        for a in 0..=255u8 {
            for b in 0..=255u8 {
                let mut expected = 0u16;
                for bit in (0..8).rev() {
                    expected <<= 1;
                    if expected & 0x100 != 0 {
                        expected ^= FIELD;
                    }
                    if b >> bit & 1 == 1 {
                        expected ^= u16::from(a);
                    }
                }
                assert_eq!(u16::from(mul(a, b)), expected);
                if b != 0 {
                    assert_eq!(div(mul(a, b), b), a);
                }
            }
        }
    }
}
