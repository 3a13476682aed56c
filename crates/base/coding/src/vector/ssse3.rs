//! Registers of 16 bytes on x86-64; products by two look-ups of 16 entries (PSHUFB).

#![allow(
    unsafe_code,
    reason = "vector instructions need a processor that has them; a value of the type shows it"
)]

use super::nibbles::{self, LookUp, Nibbles};
use super::{Factors, PIECE, Simd, Task};
use core::arch::x86_64::*;

/// SSSE3.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ssse3(());

impl Ssse3 {
    /// `None` where the processor lacks it.
    pub(crate) fn detect() -> Option<Self> {
        is_x86_feature_detected!("ssse3").then_some(Self(()))
    }

    #[inline(always)]
    fn table(self, table: &[u8; 16]) -> __m128i {
        // SAFETY: the instructions; the table has the 16 bytes that are read.
        unsafe { _mm_loadu_si128(table.as_ptr().cast()) }
    }
}

#[target_feature(enable = "ssse3")]
fn run<T: Task>(simd: Ssse3, task: T) -> T::Output {
    task.run(simd)
}

// SAFETY, for each block below that says "the instructions": the processor has them, because
// `detect` alone makes a value of the type. Loads and stores are bounded by the arrays whose
// references they are given.
impl Simd for Ssse3 {
    type Register = __m128i;
    type Factor = Nibbles;
    /// Lower and upper nibbles.
    type Split = (__m128i, __m128i);

    const LANES: usize = 16;
    const SUMS: usize = 8;

    fn run<T: Task>(self, task: T) -> T::Output {
        // SAFETY: the instructions.
        unsafe { run(self, task) }
    }

    fn factors(table: &Factors) -> &[Nibbles] {
        &table.nibbles
    }

    #[inline(always)]
    fn splat(self, symbol: u8) -> __m128i {
        // SAFETY: the instructions.
        unsafe { _mm_set1_epi8(symbol.cast_signed()) }
    }

    #[inline(always)]
    fn load(self, bytes: &[u8], at: usize) -> __m128i {
        let lanes: &[u8; 16] =
            bytes[at..].first_chunk().expect("the caller's buffer holds the lanes");
        // SAFETY: the instructions; 16 bytes are there.
        unsafe { _mm_loadu_si128(lanes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, register: __m128i, bytes: &mut [u8], at: usize) {
        let lanes: &mut [u8; 16] =
            bytes[at..].first_chunk_mut().expect("the caller's buffer holds the lanes");
        // SAFETY: the instructions; 16 bytes are there.
        unsafe { _mm_storeu_si128(lanes.as_mut_ptr().cast(), register) }
    }

    #[inline(always)]
    fn prefetch(self, bytes: &[u8], at: usize) {
        if let Some(byte) = bytes.get(at) {
            // SAFETY: every processor with the instructions has this one, which changes nothing
            // that a program sees.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(core::ptr::from_ref(byte).cast()) }
        }
    }

    #[inline(always)]
    fn repeat(self, piece: &[u8; PIECE]) -> __m128i {
        // SAFETY: the instructions; the piece has the 16 bytes that are read.
        unsafe { _mm_loadu_si128(piece.as_ptr().cast()) }
    }

    #[inline(always)]
    fn gather<'a>(self, piece: impl Fn(usize) -> &'a [u8; PIECE]) -> __m128i {
        self.table(piece(0))
    }

    #[inline(always)]
    fn interleave(self, a: __m128i, b: __m128i) -> (__m128i, __m128i) {
        // SAFETY: the instructions.
        unsafe { (_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)) }
    }

    #[inline(always)]
    fn xor(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: the instructions.
        unsafe { _mm_xor_si128(a, b) }
    }

    #[inline(always)]
    fn split(self, register: __m128i) -> (__m128i, __m128i) {
        // SAFETY: the instructions.
        unsafe {
            let nibble = _mm_set1_epi8(0x0F);
            let high = _mm_and_si128(_mm_srli_epi16::<4>(register), nibble);
            (_mm_and_si128(register, nibble), high)
        }
    }

    #[inline(always)]
    fn map(self, (low, high): (__m128i, __m128i), factor: &Nibbles) -> __m128i {
        let tables = (self.table(&factor.low), self.table(&factor.high));
        // SAFETY: the instructions.
        unsafe { _mm_xor_si128(_mm_shuffle_epi8(tables.0, low), _mm_shuffle_epi8(tables.1, high)) }
    }

    #[inline(always)]
    fn mul(self, a: __m128i, b: __m128i) -> __m128i {
        nibbles::product(self, a, b)
    }

    #[inline(always)]
    fn inverse(self, register: __m128i) -> __m128i {
        nibbles::inverse(self, register)
    }

    #[inline(always)]
    fn equal(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: the instructions.
        unsafe { _mm_cmpeq_epi8(a, b) }
    }

    #[inline(always)]
    fn at_most(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: the instructions.
        unsafe { _mm_cmpeq_epi8(_mm_min_epu8(a, b), a) }
    }

    #[inline(always)]
    fn minus(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: the instructions.
        unsafe { _mm_sub_epi8(a, b) }
    }

    #[inline(always)]
    fn select(self, mask: __m128i, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: the instructions.
        unsafe { _mm_or_si128(_mm_and_si128(mask, a), _mm_andnot_si128(mask, b)) }
    }

    #[inline(always)]
    fn zeros(self, register: __m128i) -> u64 {
        // SAFETY: the instructions.
        let mask = unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(register, _mm_setzero_si128())) };
        u64::from(mask.cast_unsigned() as u16)
    }

    #[inline(always)]
    fn and(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: the instructions.
        unsafe { _mm_and_si128(a, b) }
    }

    #[inline(always)]
    fn or(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: the instructions.
        unsafe { _mm_or_si128(a, b) }
    }

    #[inline(always)]
    fn plus(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: the instructions.
        unsafe { _mm_add_epi8(a, b) }
    }

    #[inline(always)]
    fn least(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: the instructions.
        unsafe { _mm_min_epu8(a, b) }
    }

    #[inline(always)]
    fn halves(self, register: __m128i) -> (__m128i, __m128i) {
        self.split(register)
    }

    #[inline(always)]
    fn shuffle(self, from: __m128i, places: __m128i) -> __m128i {
        // SAFETY: the instructions.
        unsafe { _mm_shuffle_epi8(from, places) }
    }

    #[inline(always)]
    fn same(self, a: __m128i, b: __m128i) -> u64 {
        // SAFETY: the instructions.
        let mask = unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(a, b)) };
        u64::from(mask.cast_unsigned() as u16)
    }

    #[inline(always)]
    fn most(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: the instructions.
        unsafe { _mm_max_epu8(a, b) }
    }

    #[inline(always)]
    fn mean(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: the instructions.
        unsafe { _mm_avg_epu8(a, b) }
    }

    #[inline(always)]
    fn plus_signed(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: the instructions.
        unsafe { _mm_adds_epi8(a, b) }
    }

    #[inline(always)]
    fn minus_signed(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: the instructions.
        unsafe { _mm_subs_epi8(a, b) }
    }

    #[inline(always)]
    fn size(self, register: __m128i) -> __m128i {
        // SAFETY: the instructions.
        unsafe { _mm_abs_epi8(register) }
    }

    #[inline(always)]
    fn opposite(self, register: __m128i, signs: __m128i) -> __m128i {
        // SAFETY: the instructions. A sign of zero would give zero: the lowest bit makes it
        // positive.
        unsafe { _mm_sign_epi8(register, _mm_or_si128(signs, _mm_set1_epi8(1))) }
    }

    #[inline(always)]
    fn append(self, bits: __m128i, signs: __m128i) -> __m128i {
        // SAFETY: the instructions. A mask of all bits is minus one.
        unsafe {
            _mm_sub_epi8(_mm_add_epi8(bits, bits), _mm_cmpgt_epi8(_mm_setzero_si128(), signs))
        }
    }

    #[inline(always)]
    fn signs(self, register: __m128i) -> u64 {
        // SAFETY: the instructions.
        let mask = unsafe { _mm_movemask_epi8(register) };
        u64::from(mask.cast_unsigned() as u16)
    }
}

// SAFETY as above.
impl LookUp for Ssse3 {
    #[inline(always)]
    fn twice(self, register: __m128i) -> __m128i {
        // SAFETY: the instructions.
        unsafe { _mm_add_epi8(register, register) }
    }

    #[inline(always)]
    fn add_where_top(self, top: __m128i, register: __m128i, sum: __m128i) -> __m128i {
        // SAFETY: the instructions.
        unsafe {
            let mask = _mm_cmpgt_epi8(_mm_setzero_si128(), top);
            _mm_xor_si128(sum, _mm_and_si128(mask, register))
        }
    }

    #[inline(always)]
    fn look_up(self, table: &[u8; 16], index: __m128i) -> __m128i {
        // SAFETY: the instructions. An index from 16 on gets its top bit set, for which the look-up
        // gives zero.
        unsafe { _mm_shuffle_epi8(self.table(table), _mm_adds_epu8(index, _mm_set1_epi8(0x70))) }
    }
}
