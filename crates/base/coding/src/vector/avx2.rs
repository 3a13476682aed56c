//! Registers of 32 bytes on x86-64; products by two look-ups of 16 entries (PSHUFB).

#![allow(
    unsafe_code,
    reason = "vector instructions need a processor that has them; a value of the type shows it"
)]

use super::nibbles::{self, LookUp, Nibbles};
use super::{Factors, PIECE, Simd, Task};
use core::arch::x86_64::*;

/// AVX2.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// `None` where the processor lacks it.
    pub(crate) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// The table in both halves of a register.
    #[inline(always)]
    fn table(self, table: &[u8; 16]) -> __m256i {
        // SAFETY: the instructions; the table has the 16 bytes that are read.
        unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast())) }
    }
}

#[target_feature(enable = "avx2")]
fn run<T: Task>(simd: Avx2, task: T) -> T::Output {
    task.run(simd)
}

// SAFETY, for each block below that says "the instructions": the processor has them, because
// `detect` alone makes a value of the type. Loads and stores are bounded by the arrays whose
// references they are given.
impl Simd for Avx2 {
    type Register = __m256i;
    type Factor = Nibbles;
    /// Lower and upper nibbles.
    type Split = (__m256i, __m256i);

    const LANES: usize = 32;
    const SUMS: usize = 8;

    fn run<T: Task>(self, task: T) -> T::Output {
        // SAFETY: the instructions.
        unsafe { run(self, task) }
    }

    fn factors(table: &Factors) -> &[Nibbles] {
        &table.nibbles
    }

    #[inline(always)]
    fn splat(self, symbol: u8) -> __m256i {
        // SAFETY: the instructions.
        unsafe { _mm256_set1_epi8(symbol.cast_signed()) }
    }

    #[inline(always)]
    fn load(self, bytes: &[u8], at: usize) -> __m256i {
        let lanes: &[u8; 32] =
            bytes[at..].first_chunk().expect("the caller's buffer holds the lanes");
        // SAFETY: the instructions; 32 bytes are there.
        unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, register: __m256i, bytes: &mut [u8], at: usize) {
        let lanes: &mut [u8; 32] =
            bytes[at..].first_chunk_mut().expect("the caller's buffer holds the lanes");
        // SAFETY: the instructions; 32 bytes are there.
        unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), register) }
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
    fn repeat(self, piece: &[u8; PIECE]) -> __m256i {
        // SAFETY: the instructions; the piece has the 16 bytes that are read.
        unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(piece.as_ptr().cast())) }
    }

    #[inline(always)]
    fn gather<'a>(self, piece: impl Fn(usize) -> &'a [u8; PIECE]) -> __m256i {
        let [a, b] = [piece(0), piece(1)];
        // SAFETY: the instructions; each piece has the 16 bytes that are read.
        unsafe {
            let (a, b) = (_mm_loadu_si128(a.as_ptr().cast()), _mm_loadu_si128(b.as_ptr().cast()));
            _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(a), b)
        }
    }

    #[inline(always)]
    fn interleave(self, a: __m256i, b: __m256i) -> (__m256i, __m256i) {
        // SAFETY: the instructions.
        unsafe { (_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)) }
    }

    #[inline(always)]
    fn xor(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe { _mm256_xor_si256(a, b) }
    }

    #[inline(always)]
    fn split(self, register: __m256i) -> (__m256i, __m256i) {
        // SAFETY: the instructions.
        unsafe {
            let nibble = _mm256_set1_epi8(0x0F);
            let high = _mm256_and_si256(_mm256_srli_epi16::<4>(register), nibble);
            (_mm256_and_si256(register, nibble), high)
        }
    }

    #[inline(always)]
    fn map(self, (low, high): (__m256i, __m256i), factor: &Nibbles) -> __m256i {
        let tables = (self.table(&factor.low), self.table(&factor.high));
        // SAFETY: the instructions.
        unsafe {
            _mm256_xor_si256(
                _mm256_shuffle_epi8(tables.0, low),
                _mm256_shuffle_epi8(tables.1, high),
            )
        }
    }

    #[inline(always)]
    fn mul(self, a: __m256i, b: __m256i) -> __m256i {
        nibbles::product(self, a, b)
    }

    #[inline(always)]
    fn inverse(self, register: __m256i) -> __m256i {
        nibbles::inverse(self, register)
    }

    #[inline(always)]
    fn equal(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe { _mm256_cmpeq_epi8(a, b) }
    }

    #[inline(always)]
    fn at_most(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe { _mm256_cmpeq_epi8(_mm256_min_epu8(a, b), a) }
    }

    #[inline(always)]
    fn minus(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe { _mm256_sub_epi8(a, b) }
    }

    #[inline(always)]
    fn select(self, mask: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe { _mm256_blendv_epi8(b, a, mask) }
    }

    #[inline(always)]
    fn zeros(self, register: __m256i) -> u64 {
        // SAFETY: the instructions.
        let mask =
            unsafe { _mm256_movemask_epi8(_mm256_cmpeq_epi8(register, _mm256_setzero_si256())) };
        u64::from(mask.cast_unsigned())
    }

    #[inline(always)]
    fn and(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe { _mm256_and_si256(a, b) }
    }

    #[inline(always)]
    fn or(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe { _mm256_or_si256(a, b) }
    }

    #[inline(always)]
    fn plus(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe { _mm256_add_epi8(a, b) }
    }

    #[inline(always)]
    fn least(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe { _mm256_min_epu8(a, b) }
    }

    #[inline(always)]
    fn halves(self, register: __m256i) -> (__m256i, __m256i) {
        self.split(register)
    }

    #[inline(always)]
    fn shuffle(self, from: __m256i, places: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe { _mm256_shuffle_epi8(from, places) }
    }

    #[inline(always)]
    fn same(self, a: __m256i, b: __m256i) -> u64 {
        // SAFETY: the instructions.
        let mask = unsafe { _mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b)) };
        u64::from(mask.cast_unsigned())
    }

    #[inline(always)]
    fn most(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe { _mm256_max_epu8(a, b) }
    }

    #[inline(always)]
    fn mean(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe { _mm256_avg_epu8(a, b) }
    }

    #[inline(always)]
    fn plus_signed(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe { _mm256_adds_epi8(a, b) }
    }

    #[inline(always)]
    fn minus_signed(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe { _mm256_subs_epi8(a, b) }
    }

    #[inline(always)]
    fn size(self, register: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe { _mm256_abs_epi8(register) }
    }

    #[inline(always)]
    fn opposite(self, register: __m256i, signs: __m256i) -> __m256i {
        // SAFETY: the instructions. A sign of zero would give zero: the lowest bit makes it
        // positive.
        unsafe { _mm256_sign_epi8(register, _mm256_or_si256(signs, _mm256_set1_epi8(1))) }
    }

    #[inline(always)]
    fn append(self, bits: __m256i, signs: __m256i) -> __m256i {
        // SAFETY: the instructions. A mask of all bits is minus one.
        unsafe {
            _mm256_sub_epi8(
                _mm256_add_epi8(bits, bits),
                _mm256_cmpgt_epi8(_mm256_setzero_si256(), signs),
            )
        }
    }

    #[inline(always)]
    fn signs(self, register: __m256i) -> u64 {
        // SAFETY: the instructions.
        let mask = unsafe { _mm256_movemask_epi8(register) };
        u64::from(mask.cast_unsigned())
    }
}

// SAFETY as above.
impl LookUp for Avx2 {
    #[inline(always)]
    fn twice(self, register: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe { _mm256_add_epi8(register, register) }
    }

    #[inline(always)]
    fn add_where_top(self, top: __m256i, register: __m256i, sum: __m256i) -> __m256i {
        // SAFETY: the instructions.
        unsafe {
            let mask = _mm256_cmpgt_epi8(_mm256_setzero_si256(), top);
            _mm256_xor_si256(sum, _mm256_and_si256(mask, register))
        }
    }

    #[inline(always)]
    fn look_up(self, table: &[u8; 16], index: __m256i) -> __m256i {
        // SAFETY: the instructions. An index from 16 on gets its top bit set, for which the look-up
        // gives zero.
        unsafe {
            _mm256_shuffle_epi8(self.table(table), _mm256_adds_epu8(index, _mm256_set1_epi8(0x70)))
        }
    }
}
