//! Registers of 64 bytes with the Galois field instructions of x86-64.

#![allow(
    unsafe_code,
    reason = "vector instructions need a processor that has them; a value of the type shows it"
)]

use super::ways::{GROUPS, STATE};
use super::{Factors, PIECE, Simd, Task};
use core::arch::x86_64::*;

/// GFNI with AVX-512 F and BW.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gfni512(());

impl Gfni512 {
    /// `None` where the processor lacks it.
    pub(crate) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("gfni")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw");
        has.then_some(Self(()))
    }
}

#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn run<T: Task>(simd: Gfni512, task: T) -> T::Output {
    task.run(simd)
}

// SAFETY, for each block below that says "the instructions": the processor has them, because
// `detect` alone makes a value of the type. Loads and stores are bounded by the arrays whose
// references they are given.
impl Simd for Gfni512 {
    type Register = __m512i;
    type Factor = u64;
    type Split = __m512i;

    const LANES: usize = 64;
    const SUMS: usize = 16;

    fn run<T: Task>(self, task: T) -> T::Output {
        // SAFETY: the instructions.
        unsafe { run(self, task) }
    }

    fn factors(table: &Factors) -> &[u64] {
        &table.matrices
    }

    #[inline(always)]
    fn splat(self, symbol: u8) -> __m512i {
        // SAFETY: the instructions.
        unsafe { _mm512_set1_epi8(symbol.cast_signed()) }
    }

    #[inline(always)]
    fn load(self, bytes: &[u8], at: usize) -> __m512i {
        let lanes: &[u8; 64] =
            bytes[at..].first_chunk().expect("the caller's buffer holds the lanes");
        // SAFETY: the instructions; 64 bytes are there.
        unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, register: __m512i, bytes: &mut [u8], at: usize) {
        let lanes: &mut [u8; 64] =
            bytes[at..].first_chunk_mut().expect("the caller's buffer holds the lanes");
        // SAFETY: the instructions; 64 bytes are there.
        unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), register) }
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
    fn repeat(self, piece: &[u8; PIECE]) -> __m512i {
        // SAFETY: the instructions; the piece has the 16 bytes that are read.
        unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(piece.as_ptr().cast())) }
    }

    #[inline(always)]
    fn gather<'a>(self, piece: impl Fn(usize) -> &'a [u8; PIECE]) -> __m512i {
        let [a, b, c, d] = [piece(0), piece(1), piece(2), piece(3)];
        // SAFETY: the instructions; each piece has the 16 bytes that are read.
        unsafe {
            let (a, b) = (_mm_loadu_si128(a.as_ptr().cast()), _mm_loadu_si128(b.as_ptr().cast()));
            let (c, d) = (_mm_loadu_si128(c.as_ptr().cast()), _mm_loadu_si128(d.as_ptr().cast()));
            let ab = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(a), b);
            _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(ab, c), d)
        }
    }

    #[inline(always)]
    fn interleave(self, a: __m512i, b: __m512i) -> (__m512i, __m512i) {
        // SAFETY: the instructions.
        unsafe { (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)) }
    }

    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe { _mm512_xor_si512(a, b) }
    }

    #[inline(always)]
    fn split(self, register: __m512i) -> __m512i {
        register
    }

    #[inline(always)]
    fn map(self, symbols: __m512i, factor: &u64) -> __m512i {
        // SAFETY: the instructions.
        unsafe {
            _mm512_gf2p8affine_epi64_epi8::<0>(symbols, _mm512_set1_epi64(factor.cast_signed()))
        }
    }

    #[inline(always)]
    fn mul(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe { _mm512_gf2p8mul_epi8(a, b) }
    }

    #[inline(always)]
    fn inverse(self, register: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe {
            let identity = _mm512_set1_epi64(0x0102_0408_1020_4080);
            _mm512_gf2p8affineinv_epi64_epi8::<0>(register, identity)
        }
    }

    #[inline(always)]
    fn equal(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe { _mm512_movm_epi8(_mm512_cmpeq_epi8_mask(a, b)) }
    }

    #[inline(always)]
    fn at_most(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe { _mm512_movm_epi8(_mm512_cmple_epu8_mask(a, b)) }
    }

    #[inline(always)]
    fn minus(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe { _mm512_sub_epi8(a, b) }
    }

    #[inline(always)]
    fn select(self, mask: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the instructions. 0xCA is "a where the mask is set, else b".
        unsafe { _mm512_ternarylogic_epi64::<0xCA>(mask, a, b) }
    }

    #[inline(always)]
    fn zeros(self, register: __m512i) -> u64 {
        // SAFETY: the instructions.
        unsafe { _mm512_testn_epi8_mask(register, register) }
    }

    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe { _mm512_and_si512(a, b) }
    }

    #[inline(always)]
    fn or(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe { _mm512_or_si512(a, b) }
    }

    #[inline(always)]
    fn plus(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe { _mm512_add_epi8(a, b) }
    }

    #[inline(always)]
    fn least(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe { _mm512_min_epu8(a, b) }
    }

    #[inline(always)]
    fn halves(self, register: __m512i) -> (__m512i, __m512i) {
        // SAFETY: the instructions.
        unsafe {
            let nibble = _mm512_set1_epi8(0x0F);
            let high = _mm512_and_si512(_mm512_srli_epi16::<4>(register), nibble);
            (_mm512_and_si512(register, nibble), high)
        }
    }

    #[inline(always)]
    fn shuffle(self, from: __m512i, places: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe { _mm512_shuffle_epi8(from, places) }
    }

    #[inline(always)]
    fn same(self, a: __m512i, b: __m512i) -> u64 {
        // SAFETY: the instructions.
        unsafe { _mm512_cmpeq_epi8_mask(a, b) }
    }

    #[inline(always)]
    fn most(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe { _mm512_max_epu8(a, b) }
    }

    #[inline(always)]
    fn mean(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe { _mm512_avg_epu8(a, b) }
    }

    #[inline(always)]
    fn plus_signed(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe { _mm512_adds_epi8(a, b) }
    }

    #[inline(always)]
    fn minus_signed(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe { _mm512_subs_epi8(a, b) }
    }

    #[inline(always)]
    fn size(self, register: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe { _mm512_abs_epi8(register) }
    }

    #[inline(always)]
    fn opposite(self, register: __m512i, signs: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe {
            _mm512_mask_sub_epi8(
                register,
                _mm512_movepi8_mask(signs),
                _mm512_setzero_si512(),
                register,
            )
        }
    }

    #[inline(always)]
    fn append(self, bits: __m512i, signs: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe {
            let bits = _mm512_add_epi8(bits, bits);
            _mm512_mask_sub_epi8(bits, _mm512_movepi8_mask(signs), bits, _mm512_set1_epi8(-1))
        }
    }

    #[inline(always)]
    fn signs(self, register: __m512i) -> u64 {
        // SAFETY: the instructions.
        unsafe { _mm512_movepi8_mask(register) }
    }

    #[inline(always)]
    fn select_equal(self, [a, b]: [__m512i; 2], x: __m512i, y: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe { _mm512_mask_blend_epi8(_mm512_cmpeq_epi8_mask(a, b), y, x) }
    }

    #[inline(always)]
    fn select_at_most(self, [a, b]: [__m512i; 2], x: __m512i, y: __m512i) -> __m512i {
        // SAFETY: the instructions.
        unsafe { _mm512_mask_blend_epi8(_mm512_cmple_epu8_mask(a, b), y, x) }
    }

    #[inline(always)]
    fn back(self, decisions: [&[u64; GROUPS]; 2], ways: &mut [u64; 8]) {
        let [first, second] = decisions.map(|groups| groups.as_ptr());
        // SAFETY: the instructions; 32 bytes are at each place of decisions, and 64 at the ways.
        unsafe {
            let way = _mm512_loadu_si512(ways.as_ptr().cast());
            let (first, second) =
                (_mm256_loadu_si256(first.cast()), _mm256_loadu_si256(second.cast()));
            let table = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(first), second);
            // The group: of the state the newest bit and the oldest, the latter moved to the second
            // place.
            let (newest, oldest) = (_mm512_srli_epi64::<STATE>(way), _mm512_srli_epi64::<62>(way));
            // 0xD8 is "b where c is set, else a", 0xEA is "(a and b) or c".
            let group = _mm512_ternarylogic_epi64::<0xD8>(newest, oldest, _mm512_set1_epi64(2));
            let places = _mm512_setr_epi64(0, 0, 0, 0, 4, 4, 4, 4);
            let group = _mm512_ternarylogic_epi64::<0xEA>(group, _mm512_set1_epi64(3), places);
            let lanes = _mm512_setr_epi64(0, 16, 32, 48, 0, 16, 32, 48);
            let lane = _mm512_ternarylogic_epi64::<0xEA>(
                _mm512_srli_epi64::<{ STATE + 1 }>(way),
                _mm512_set1_epi64(15),
                lanes,
            );
            let upper = _mm512_srlv_epi64(_mm512_permutexvar_epi64(group, table), lane);
            let way = _mm512_or_si512(_mm512_srli_epi64::<1>(way), _mm512_slli_epi64::<63>(upper));
            _mm512_storeu_si512(ways.as_mut_ptr().cast(), way);
        }
    }
}
