//! Sums of products with the vector instructions of 64-bit ARM.

#![allow(
    unsafe_code,
    reason = "vector loads and stores take pointers; every one is bounded beside it"
)]

use super::Term;
use super::tables::NIBBLES;
use core::arch::aarch64::*;

pub fn runs_here() -> bool {
    std::arch::is_aarch64_feature_detected!("neon")
}

pub fn accumulate(sum: &mut [u8], terms: &[Term<'_>]) {
    assert!(runs_here(), "a kernel is only made where the processor has it");
    // SAFETY: the processor has what the function is compiled for.
    unsafe { stretches(sum, terms) }
}

/// Registers that hold the sum: enough to hide the latency of a look-up.
const LANES: usize = 4;

#[target_feature(enable = "neon")]
fn stretches(sum: &mut [u8], terms: &[Term<'_>]) {
    const STRETCH: usize = 16 * LANES;
    let nibble = vdupq_n_u8(0x0f);
    for (index, stretch) in sum.chunks_mut(STRETCH).enumerate() {
        let mut held = load(stretch, 0);
        for (coefficient, slice) in terms {
            let tables = &NIBBLES[usize::from(*coefficient)];
            // SAFETY: each table has the 16 bytes that are read.
            let (low, high) =
                unsafe { (vld1q_u8(tables[0].as_ptr()), vld1q_u8(tables[1].as_ptr())) };
            let from = load(slice, index * STRETCH);
            for (register, bytes) in held.iter_mut().zip(from) {
                let low = vqtbl1q_u8(low, vandq_u8(bytes, nibble));
                let high = vqtbl1q_u8(high, vshrq_n_u8::<4>(bytes));
                *register = veorq_u8(*register, veorq_u8(low, high));
            }
        }
        store(stretch, held);
    }
}

/// A stretch from `start` on, zeros behind the slice's end.
#[target_feature(enable = "neon")]
#[inline]
fn load(slice: &[u8], start: usize) -> [uint8x16_t; LANES] {
    let from = slice.get(start..).unwrap_or_default();
    let mut padded = [0; 16 * LANES];
    let whole: &[u8; 16 * LANES] = match from.first_chunk() {
        Some(whole) => whole,
        None => {
            padded[..from.len()].copy_from_slice(from);
            &padded
        }
    };
    let mut registers = [vdupq_n_u8(0); LANES];
    for (register, bytes) in registers.iter_mut().zip(whole.chunks_exact(16)) {
        // SAFETY: each piece has the 16 bytes that are read.
        *register = unsafe { vld1q_u8(bytes.as_ptr()) };
    }
    registers
}

/// Writes as much of the registers as the stretch has room for.
#[target_feature(enable = "neon")]
#[inline]
fn store(stretch: &mut [u8], registers: [uint8x16_t; LANES]) {
    let mut whole = [0; 16 * LANES];
    for (register, bytes) in registers.iter().zip(whole.chunks_exact_mut(16)) {
        // SAFETY: each piece has the 16 bytes that are written.
        unsafe { vst1q_u8(bytes.as_mut_ptr(), *register) };
    }
    stretch.copy_from_slice(&whole[..stretch.len()]);
}
