//! Registers of 32 bytes with the Galois field instructions of x86-64.

#![allow(
    unsafe_code,
    reason = "vector instructions need a processor that has them; a value of the type shows it"
)]

use super::avx2::Avx2;
use super::{Factors, PIECE, Simd, Task};
use core::arch::x86_64::*;

/// GFNI with AVX2: all but products is as without GFNI.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gfni256(Avx2);

impl Gfni256 {
    /// `None` where the processor lacks it.
    pub(crate) fn detect() -> Option<Self> {
        if is_x86_feature_detected!("gfni") { Avx2::detect().map(Self) } else { None }
    }
}

#[target_feature(enable = "gfni,avx2")]
fn run<T: Task>(simd: Gfni256, task: T) -> T::Output {
    task.run(simd)
}

// SAFETY, for each block below that says "the instructions": the processor has them, because
// `detect` alone makes a value of the type.
impl Simd for Gfni256 {
    type Register = __m256i;
    type Factor = u64;
    type Split = __m256i;

    const LANES: usize = Avx2::LANES;
    const SUMS: usize = Avx2::SUMS;

    fn run<T: Task>(self, task: T) -> T::Output {
        // SAFETY: the instructions.
        unsafe { run(self, task) }
    }

    fn factors(table: &Factors) -> &[u64] {
        &table.matrices
    }

    #[inline(always)]
    fn splat(self, symbol: u8) -> __m256i {
        self.0.splat(symbol)
    }

    #[inline(always)]
    fn load(self, bytes: &[u8], at: usize) -> __m256i {
        self.0.load(bytes, at)
    }

    #[inline(always)]
    fn store(self, register: __m256i, bytes: &mut [u8], at: usize) {
        self.0.store(register, bytes, at);
    }

    #[inline(always)]
    fn prefetch(self, bytes: &[u8], at: usize) {
        self.0.prefetch(bytes, at);
    }

    #[inline(always)]
    fn repeat(self, piece: &[u8; PIECE]) -> __m256i {
        // SAFETY: the instructions; the piece has the 16 bytes that are read.
        unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(piece.as_ptr().cast())) }
    }

    #[inline(always)]
    fn gather<'a>(self, piece: impl Fn(usize) -> &'a [u8; PIECE]) -> __m256i {
        self.0.gather(piece)
    }

    #[inline(always)]
    fn interleave(self, a: __m256i, b: __m256i) -> (__m256i, __m256i) {
        self.0.interleave(a, b)
    }

    #[inline(always)]
    fn xor(self, a: __m256i, b: __m256i) -> __m256i {
        self.0.xor(a, b)
    }

    #[inline(always)]
    fn split(self, register: __m256i) -> __m256i {
        register
    }

    #[inline(always)]
    fn map(self, symbols: __m256i, factor: &u64) -> __m256i {
        // SAFETY: the instructions.
        unsafe {
            _mm256_gf2p8affine_epi64_epi8::<0>(symbols, _mm256_set1_epi64x(factor.cast_signed()))
        }
    }

    #[inline(always)]
    fn mul(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe { _mm256_gf2p8mul_epi8(a, b) }
    }

    #[inline(always)]
    fn inverse(self, register: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe {
            let identity = _mm256_set1_epi64x(0x0102_0408_1020_4080);
            _mm256_gf2p8affineinv_epi64_epi8::<0>(register, identity)
        }
    }

    #[inline(always)]
    fn equal(self, a: __m256i, b: __m256i) -> __m256i {
        self.0.equal(a, b)
    }

    #[inline(always)]
    fn at_most(self, a: __m256i, b: __m256i) -> __m256i {
        self.0.at_most(a, b)
    }

    #[inline(always)]
    fn minus(self, a: __m256i, b: __m256i) -> __m256i {
        self.0.minus(a, b)
    }

    #[inline(always)]
    fn select(self, mask: __m256i, a: __m256i, b: __m256i) -> __m256i {
        self.0.select(mask, a, b)
    }

    #[inline(always)]
    fn zeros(self, register: __m256i) -> u64 {
        self.0.zeros(register)
    }

    #[inline(always)]
    fn and(self, a: __m256i, b: __m256i) -> __m256i {
        self.0.and(a, b)
    }

    #[inline(always)]
    fn or(self, a: __m256i, b: __m256i) -> __m256i {
        self.0.or(a, b)
    }

    #[inline(always)]
    fn plus(self, a: __m256i, b: __m256i) -> __m256i {
        self.0.plus(a, b)
    }

    #[inline(always)]
    fn least(self, a: __m256i, b: __m256i) -> __m256i {
        self.0.least(a, b)
    }

    #[inline(always)]
    fn halves(self, register: __m256i) -> (__m256i, __m256i) {
        self.0.halves(register)
    }

    #[inline(always)]
    fn shuffle(self, from: __m256i, places: __m256i) -> __m256i {
        self.0.shuffle(from, places)
    }

    #[inline(always)]
    fn same(self, a: __m256i, b: __m256i) -> u64 {
        self.0.same(a, b)
    }

    #[inline(always)]
    fn most(self, a: __m256i, b: __m256i) -> __m256i {
        self.0.most(a, b)
    }

    #[inline(always)]
    fn mean(self, a: __m256i, b: __m256i) -> __m256i {
        self.0.mean(a, b)
    }

    #[inline(always)]
    fn plus_signed(self, a: __m256i, b: __m256i) -> __m256i {
        self.0.plus_signed(a, b)
    }

    #[inline(always)]
    fn minus_signed(self, a: __m256i, b: __m256i) -> __m256i {
        self.0.minus_signed(a, b)
    }

    #[inline(always)]
    fn size(self, register: __m256i) -> __m256i {
        self.0.size(register)
    }

    #[inline(always)]
    fn opposite(self, register: __m256i, signs: __m256i) -> __m256i {
        self.0.opposite(register, signs)
    }

    #[inline(always)]
    fn append(self, bits: __m256i, signs: __m256i) -> __m256i {
        self.0.append(bits, signs)
    }

    #[inline(always)]
    fn signs(self, register: __m256i) -> u64 {
        self.0.signs(register)
    }
}
