//! Arithmetic by look-ups of 16 entries, for processors without Galois field instructions.

use super::Simd;
use crate::field::{EXP, FIELD, LOG, ORDER};

/// A linear map of a symbol: the image is the sum of one entry for each nibble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nibbles {
    /// Images of 0 .. 15.
    pub(super) low: [u8; 16],
    /// Images of 0, 16 .. 240.
    pub(super) high: [u8; 16],
}

/// What products and inverses are made of.
pub(super) trait LookUp: Simd {
    /// Twice each lane, as a number modulo 256.
    fn twice(self, register: Self::Register) -> Self::Register;
    /// `sum` plus, where the top bit of `top` is set, `register`.
    fn add_where_top(
        self,
        top: Self::Register,
        register: Self::Register,
        sum: Self::Register,
    ) -> Self::Register;
    /// The entry for each lane below 16, zero for others.
    fn look_up(self, table: &[u8; 16], index: Self::Register) -> Self::Register;
}

/// Products in the conventional basis, bit by bit from the highest.
#[inline(always)]
pub(super) fn product<S: LookUp>(simd: S, a: S::Register, b: S::Register) -> S::Register {
    let reduction = simd.splat(FIELD as u8);
    let mut bits = b;
    let mut product = simd.add_where_top(bits, a, simd.splat(0));
    for _ in 1..8 {
        bits = simd.twice(bits);
        product = simd.add_where_top(product, reduction, simd.twice(product));
        product = simd.add_where_top(bits, a, product);
    }
    product
}

/// Inverses in the conventional basis.
#[inline(always)]
pub(super) fn inverse<S: LookUp>(simd: S, register: S::Register) -> S::Register {
    let mut sum = simd.splat(0);
    for (high, table) in INVERSES.iter().enumerate() {
        // Below 16 in the lanes whose upper nibble is `high`.
        let index = simd.xor(register, simd.splat((high as u8) << 4));
        sum = simd.xor(sum, simd.look_up(table, index));
    }
    sum
}

/// The inverses of all elements, by upper and lower nibble; zero for zero.
static INVERSES: [[u8; 16]; 16] = {
    let mut table = [[0u8; 16]; 16];
    let mut symbol = 1;
    while symbol < 256 {
        table[symbol / 16][symbol % 16] = EXP[ORDER - LOG[symbol] as usize];
        symbol += 1;
    }
    table
};
