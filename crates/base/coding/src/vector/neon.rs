//! Registers of 16 bytes on 64-bit ARM; products by two look-ups of 16 entries (TBL).

#![allow(
    unsafe_code,
    reason = "vector instructions need a processor that has them; a value of the type shows it"
)]

use super::nibbles::{self, LookUp, Nibbles};
use super::{Factors, PIECE, Simd, Task};
use core::arch::aarch64::*;

/// NEON.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Neon(());

impl Neon {
    /// `None` where the processor lacks it.
    pub(crate) fn detect() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }

    #[inline(always)]
    fn table(self, table: &[u8; 16]) -> uint8x16_t {
        // SAFETY: the instructions; the table has the 16 bytes that are read.
        unsafe { vld1q_u8(table.as_ptr()) }
    }
}

#[target_feature(enable = "neon")]
fn run<T: Task>(simd: Neon, task: T) -> T::Output {
    task.run(simd)
}

// SAFETY, for each block below that says "the instructions": the processor has them, because
// `detect` alone makes a value of the type. Loads and stores are bounded by the arrays whose
// references they are given.
impl Simd for Neon {
    type Register = uint8x16_t;
    type Factor = Nibbles;
    /// Lower and upper nibbles.
    type Split = (uint8x16_t, uint8x16_t);

    const LANES: usize = 16;
    const SUMS: usize = 16;

    fn run<T: Task>(self, task: T) -> T::Output {
        // SAFETY: the instructions.
        unsafe { run(self, task) }
    }

    fn factors(table: &Factors) -> &[Nibbles] {
        &table.nibbles
    }

    #[inline(always)]
    fn splat(self, symbol: u8) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe { vdupq_n_u8(symbol) }
    }

    #[inline(always)]
    fn load(self, bytes: &[u8], at: usize) -> uint8x16_t {
        self.table(bytes[at..].first_chunk().expect("the caller's buffer holds the lanes"))
    }

    #[inline(always)]
    fn store(self, register: uint8x16_t, bytes: &mut [u8], at: usize) {
        let lanes: &mut [u8; 16] =
            bytes[at..].first_chunk_mut().expect("the caller's buffer holds the lanes");
        // SAFETY: the instructions; 16 bytes are there.
        unsafe { vst1q_u8(lanes.as_mut_ptr(), register) }
    }

    #[inline(always)]
    fn prefetch(self, _bytes: &[u8], _at: usize) {
        // The language has no such instruction for this processor.
    }

    #[inline(always)]
    fn repeat(self, piece: &[u8; PIECE]) -> uint8x16_t {
        // SAFETY: the instructions; the piece has the 16 bytes that are read.
        unsafe { vld1q_u8(piece.as_ptr()) }
    }

    #[inline(always)]
    fn gather<'a>(self, piece: impl Fn(usize) -> &'a [u8; PIECE]) -> uint8x16_t {
        self.table(piece(0))
    }

    #[inline(always)]
    fn interleave(self, a: uint8x16_t, b: uint8x16_t) -> (uint8x16_t, uint8x16_t) {
        // SAFETY: the instructions.
        unsafe { (vzip1q_u8(a, b), vzip2q_u8(a, b)) }
    }

    #[inline(always)]
    fn xor(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe { veorq_u8(a, b) }
    }

    #[inline(always)]
    fn split(self, register: uint8x16_t) -> (uint8x16_t, uint8x16_t) {
        // SAFETY: the instructions.
        unsafe { (vandq_u8(register, vdupq_n_u8(0x0F)), vshrq_n_u8::<4>(register)) }
    }

    #[inline(always)]
    fn map(self, (low, high): (uint8x16_t, uint8x16_t), factor: &Nibbles) -> uint8x16_t {
        let tables = (self.table(&factor.low), self.table(&factor.high));
        // SAFETY: the instructions.
        unsafe { veorq_u8(vqtbl1q_u8(tables.0, low), vqtbl1q_u8(tables.1, high)) }
    }

    #[inline(always)]
    fn mul(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        nibbles::product(self, a, b)
    }

    #[inline(always)]
    fn inverse(self, register: uint8x16_t) -> uint8x16_t {
        nibbles::inverse(self, register)
    }

    #[inline(always)]
    fn equal(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe { vceqq_u8(a, b) }
    }

    #[inline(always)]
    fn at_most(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe { vcleq_u8(a, b) }
    }

    #[inline(always)]
    fn minus(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe { vsubq_u8(a, b) }
    }

    #[inline(always)]
    fn select(self, mask: uint8x16_t, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe { vbslq_u8(mask, a, b) }
    }

    #[inline(always)]
    fn zeros(self, register: uint8x16_t) -> u64 {
        const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
        // SAFETY: the instructions. Each half's sum has one bit for each of its lanes.
        unsafe {
            let bits = vandq_u8(vceqzq_u8(register), self.table(&BITS));
            u64::from(vaddv_u8(vget_low_u8(bits))) | u64::from(vaddv_u8(vget_high_u8(bits))) << 8
        }
    }

    #[inline(always)]
    fn and(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe { vandq_u8(a, b) }
    }

    #[inline(always)]
    fn or(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe { vorrq_u8(a, b) }
    }

    #[inline(always)]
    fn plus(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe { vaddq_u8(a, b) }
    }

    #[inline(always)]
    fn least(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe { vminq_u8(a, b) }
    }

    #[inline(always)]
    fn halves(self, register: uint8x16_t) -> (uint8x16_t, uint8x16_t) {
        self.split(register)
    }

    #[inline(always)]
    fn shuffle(self, from: uint8x16_t, places: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe { vqtbl1q_u8(from, places) }
    }

    #[inline(always)]
    fn same(self, a: uint8x16_t, b: uint8x16_t) -> u64 {
        self.zeros(self.xor(a, b))
    }

    #[inline(always)]
    fn most(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe { vmaxq_u8(a, b) }
    }

    #[inline(always)]
    fn mean(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe { vrhaddq_u8(a, b) }
    }

    #[inline(always)]
    fn plus_signed(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe { vreinterpretq_u8_s8(vqaddq_s8(vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b))) }
    }

    #[inline(always)]
    fn minus_signed(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe { vreinterpretq_u8_s8(vqsubq_s8(vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b))) }
    }

    #[inline(always)]
    fn size(self, register: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe { vreinterpretq_u8_s8(vabsq_s8(vreinterpretq_s8_u8(register))) }
    }

    #[inline(always)]
    fn opposite(self, register: uint8x16_t, signs: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions. A mask of all bits is minus one.
        unsafe {
            let mask = vcltzq_s8(vreinterpretq_s8_u8(signs));
            vsubq_u8(veorq_u8(register, mask), mask)
        }
    }

    #[inline(always)]
    fn append(self, bits: uint8x16_t, signs: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe { vsubq_u8(vaddq_u8(bits, bits), vcltzq_s8(vreinterpretq_s8_u8(signs))) }
    }

    #[inline(always)]
    fn signs(self, register: uint8x16_t) -> u64 {
        // SAFETY: the instructions.
        self.zeros(unsafe { vcltq_u8(register, vdupq_n_u8(0x80)) })
    }
}

// SAFETY as above.
impl LookUp for Neon {
    #[inline(always)]
    fn twice(self, register: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe { vaddq_u8(register, register) }
    }

    #[inline(always)]
    fn add_where_top(self, top: uint8x16_t, register: uint8x16_t, sum: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions.
        unsafe {
            let mask = vcltzq_s8(vreinterpretq_s8_u8(top));
            veorq_u8(sum, vandq_u8(mask, register))
        }
    }

    #[inline(always)]
    fn look_up(self, table: &[u8; 16], index: uint8x16_t) -> uint8x16_t {
        // SAFETY: the instructions. The look-up gives zero for an index from 16 on.
        unsafe { vqtbl1q_u8(self.table(table), index) }
    }
}
