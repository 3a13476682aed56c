//! Sums of products with the vector instructions of x86-64. Each kernel holds a stretch of the sum
//! in registers while it goes through all terms, so that the sum is read and written once.

#![allow(
    unsafe_code,
    reason = "vector loads and stores take pointers; every one is bounded beside it"
)]

use super::Term;
use super::tables::{MATRICES, NIBBLES};
use core::arch::x86_64::*;

pub fn has_gfni512() -> bool {
    is_x86_feature_detected!("gfni")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
}

pub fn has_gfni256() -> bool {
    is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx2")
}

pub fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
}

pub fn has_ssse3() -> bool {
    is_x86_feature_detected!("ssse3")
}

pub fn gfni512(sum: &mut [u8], terms: &[Term<'_>]) {
    assert!(has_gfni512(), "a kernel is only made where the processor has it");
    // SAFETY: the processor has what the function is compiled for.
    unsafe { gfni512_stretches(sum, terms) }
}

pub fn gfni256(sum: &mut [u8], terms: &[Term<'_>]) {
    assert!(has_gfni256(), "a kernel is only made where the processor has it");
    // SAFETY: the processor has what the function is compiled for.
    unsafe { gfni256_stretches(sum, terms) }
}

pub fn avx2(sum: &mut [u8], terms: &[Term<'_>]) {
    assert!(has_avx2(), "a kernel is only made where the processor has it");
    // SAFETY: the processor has what the function is compiled for.
    unsafe { avx2_stretches(sum, terms) }
}

pub fn ssse3(sum: &mut [u8], terms: &[Term<'_>]) {
    assert!(has_ssse3(), "a kernel is only made where the processor has it");
    // SAFETY: the processor has what the function is compiled for.
    unsafe { ssse3_stretches(sum, terms) }
}

const LANES_256: usize = 4;

#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn gfni512_stretches(sum: &mut [u8], terms: &[Term<'_>]) {
    // Eight registers hide the latency of a product; what is left takes as few as it needs.
    let mut start = 0;
    while start < sum.len() {
        start += match sum.len() - start {
            449.. => gfni512_stretch::<8>(sum, terms, start),
            193.. => gfni512_stretch::<4>(sum, terms, start),
            65.. => gfni512_stretch::<2>(sum, terms, start),
            _ => gfni512_stretch::<1>(sum, terms, start),
        };
    }
}

/// Works on `LANES` registers from `start` on; how many bytes that is.
#[target_feature(enable = "gfni,avx512f,avx512bw")]
#[inline]
fn gfni512_stretch<const LANES: usize>(sum: &mut [u8], terms: &[Term<'_>], start: usize) -> usize {
    let mut held = [_mm512_setzero_si512(); LANES];
    for (lane, register) in held.iter_mut().enumerate() {
        *register = load_512(sum, start + 64 * lane);
    }
    for (coefficient, slice) in terms {
        let matrix = _mm512_set1_epi64(MATRICES[usize::from(*coefficient)].cast_signed());
        let whole = slice.get(start..start + 64 * LANES);
        for (lane, register) in held.iter_mut().enumerate() {
            let bytes = match whole {
                // SAFETY: lanes x 64 bytes lie within the slice that was taken.
                Some(whole) => unsafe { _mm512_loadu_si512(whole.as_ptr().add(64 * lane).cast()) },
                None => load_512(slice, start + 64 * lane),
            };
            *register =
                _mm512_xor_si512(*register, _mm512_gf2p8affine_epi64_epi8::<0>(bytes, matrix));
        }
    }
    for (lane, register) in held.iter().enumerate() {
        let to = sum.get_mut(start + 64 * lane..).unwrap_or_default();
        if !to.is_empty() {
            // SAFETY: the mask has no more bits than `to` has bytes.
            unsafe { _mm512_mask_storeu_epi8(to.as_mut_ptr().cast(), mask(to.len()), *register) };
        }
    }
    64 * LANES
}

/// 64 bytes from `start` on, zeros behind the slice's end.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn load_512(slice: &[u8], start: usize) -> __m512i {
    match slice.get(start..) {
        // SAFETY: the mask has no more bits than `from` has bytes.
        Some(from) if !from.is_empty() => unsafe {
            _mm512_maskz_loadu_epi8(mask(from.len()), from.as_ptr().cast())
        },
        // No load at all: one whose mask is empty is slow where its address leads nowhere.
        _ => _mm512_setzero_si512(),
    }
}

/// One bit for each of the first 64 bytes.
const fn mask(len: usize) -> u64 {
    if len >= 64 { u64::MAX } else { (1 << len) - 1 }
}

#[target_feature(enable = "gfni,avx2")]
fn gfni256_stretches(sum: &mut [u8], terms: &[Term<'_>]) {
    const STRETCH: usize = 32 * LANES_256;
    for (index, stretch) in sum.chunks_mut(STRETCH).enumerate() {
        let mut held = load_256(stretch, 0);
        for (coefficient, slice) in terms {
            let matrix = _mm256_set1_epi64x(MATRICES[usize::from(*coefficient)].cast_signed());
            let from = load_256(slice, index * STRETCH);
            for (register, bytes) in held.iter_mut().zip(from) {
                *register =
                    _mm256_xor_si256(*register, _mm256_gf2p8affine_epi64_epi8::<0>(bytes, matrix));
            }
        }
        store_256(stretch, held);
    }
}

#[target_feature(enable = "avx2")]
fn avx2_stretches(sum: &mut [u8], terms: &[Term<'_>]) {
    const STRETCH: usize = 32 * LANES_256;
    let nibble = _mm256_set1_epi8(0x0f);
    for (index, stretch) in sum.chunks_mut(STRETCH).enumerate() {
        let mut held = load_256(stretch, 0);
        for (coefficient, slice) in terms {
            let [low, high] = NIBBLES[usize::from(*coefficient)].map(|table| broadcast(&table));
            let from = load_256(slice, index * STRETCH);
            for (register, bytes) in held.iter_mut().zip(from) {
                let upper = _mm256_and_si256(_mm256_srli_epi64::<4>(bytes), nibble);
                let low = _mm256_shuffle_epi8(low, _mm256_and_si256(bytes, nibble));
                let product = _mm256_xor_si256(low, _mm256_shuffle_epi8(high, upper));
                *register = _mm256_xor_si256(*register, product);
            }
        }
        store_256(stretch, held);
    }
}

#[target_feature(enable = "ssse3")]
fn ssse3_stretches(sum: &mut [u8], terms: &[Term<'_>]) {
    let nibble = _mm_set1_epi8(0x0f);
    for (index, stretch) in sum.chunks_mut(16).enumerate() {
        let mut held = load_128(stretch, 0);
        for (coefficient, slice) in terms {
            // SAFETY: each table has the 16 bytes that are read.
            let [low, high] = NIBBLES[usize::from(*coefficient)]
                .map(|table| unsafe { _mm_loadu_si128(table.as_ptr().cast()) });
            let bytes = load_128(slice, index * 16);
            let upper = _mm_and_si128(_mm_srli_epi64::<4>(bytes), nibble);
            let low = _mm_shuffle_epi8(low, _mm_and_si128(bytes, nibble));
            held = _mm_xor_si128(held, _mm_xor_si128(low, _mm_shuffle_epi8(high, upper)));
        }
        let mut whole = [0; 16];
        // SAFETY: the array has the 16 bytes that are written.
        unsafe { _mm_storeu_si128(whole.as_mut_ptr().cast(), held) };
        stretch.copy_from_slice(&whole[..stretch.len()]);
    }
}

/// 16 bytes from `start` on, zeros behind the slice's end.
#[target_feature(enable = "ssse3")]
#[inline]
fn load_128(slice: &[u8], start: usize) -> __m128i {
    let from = slice.get(start..).unwrap_or_default();
    let mut padded = [0; 16];
    let whole: &[u8; 16] = match from.first_chunk() {
        Some(whole) => whole,
        None => {
            padded[..from.len()].copy_from_slice(from);
            &padded
        }
    };
    // SAFETY: the array has the 16 bytes that are read.
    unsafe { _mm_loadu_si128(whole.as_ptr().cast()) }
}

/// The table in both halves of a register.
#[target_feature(enable = "avx2")]
#[inline]
fn broadcast(table: &[u8; 16]) -> __m256i {
    // SAFETY: the table has the 16 bytes that are read.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(table.as_ptr().cast()) })
}

/// A stretch from `start` on, zeros behind the slice's end.
#[target_feature(enable = "avx2")]
#[inline]
fn load_256(slice: &[u8], start: usize) -> [__m256i; LANES_256] {
    let from = slice.get(start..).unwrap_or_default();
    let mut padded = [0; 32 * LANES_256];
    let whole: &[u8; 32 * LANES_256] = match from.first_chunk() {
        Some(whole) => whole,
        None => {
            padded[..from.len()].copy_from_slice(from);
            &padded
        }
    };
    let mut registers = [_mm256_setzero_si256(); LANES_256];
    for (register, bytes) in registers.iter_mut().zip(whole.chunks_exact(32)) {
        // SAFETY: each piece has the 32 bytes that are read.
        *register = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
    }
    registers
}

/// Writes as much of the registers as the stretch has room for.
#[target_feature(enable = "avx2")]
#[inline]
fn store_256(stretch: &mut [u8], registers: [__m256i; LANES_256]) {
    let mut whole = [0; 32 * LANES_256];
    for (register, bytes) in registers.iter().zip(whole.chunks_exact_mut(32)) {
        // SAFETY: each piece has the 32 bytes that are written.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), *register) };
    }
    stretch.copy_from_slice(&whole[..stretch.len()]);
}
