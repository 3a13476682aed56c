//! Bits in words, the first bit lowest, and runs of them from any place on.

/// Bits of a word.
pub(super) const WORD: usize = 64;

/// Words for so many bits.
pub(super) const fn words(bits: usize) -> usize {
    bits.div_ceil(WORD)
}

/// The 64 bits from place `at` on, zeros behind the end.
#[inline(always)]
pub(super) fn window(words: &[u64], at: usize) -> u64 {
    let (word, bit) = (at / WORD, at % WORD);
    let low = words.get(word).copied().unwrap_or(0) >> bit;
    if bit == 0 { low } else { low | words.get(word + 1).copied().unwrap_or(0) << (WORD - bit) }
}

/// Adds the first `bits` bits of `from` to those from place `at` on. The places are there.
pub(super) fn add(to: &mut [u64], at: usize, from: &[u64], bits: usize) {
    for start in (0..bits).step_by(WORD) {
        let word = window(from, start) & low(bits - start);
        let place = at + start;
        to[place / WORD] ^= word << (place % WORD);
        if !place.is_multiple_of(WORD)
            && let Some(next) = to.get_mut(place / WORD + 1)
        {
            *next ^= word >> (WORD - place % WORD);
        }
    }
}

/// A word with its lowest `bits` bits set, all where there are more.
pub(super) const fn low(bits: usize) -> u64 {
    if bits >= WORD { u64::MAX } else { (1 << bits) - 1 }
}

/// Takes `bits` bits from bytes that have the first bit highest, to place `at` on. The places are
/// zero.
pub(super) fn add_bytes(to: &mut [u64], at: usize, bytes: &[u8]) {
    for (index, bytes) in bytes.chunks(WORD / 8).enumerate() {
        let mut word = [0; WORD / 8];
        for (to, byte) in word.iter_mut().zip(bytes) {
            *to = byte.reverse_bits();
        }
        add(to, at + index * WORD, &[u64::from_le_bytes(word)], bytes.len() * 8);
    }
}

/// Writes the bits from place `at` on to bytes, the first bit highest.
pub(super) fn write_bytes(words: &[u64], at: usize, bytes: &mut [u8]) {
    for (index, bytes) in bytes.chunks_mut(WORD / 8).enumerate() {
        let word = window(words, at + index * WORD).to_le_bytes();
        for (byte, from) in bytes.iter_mut().zip(word) {
            *byte = from.reverse_bits();
        }
    }
}

/// Rows become columns: bit j of word i becomes bit i of word j.
#[inline(always)]
pub(super) fn transpose(square: &mut [u64; WORD]) {
    // Swaps the off-diagonal quarters, then the same within each quarter, and so on.
    let mut size = WORD / 2;
    let mut mask = u64::MAX >> size;
    while size > 0 {
        for block in square.chunks_exact_mut(2 * size) {
            let (upper, lower) = block.split_at_mut(size);
            for (upper, lower) in upper.iter_mut().zip(lower) {
                let swapped = (*upper >> size ^ *lower) & mask;
                *upper ^= swapped << size;
                *lower ^= swapped;
            }
        }
        size /= 2;
        mask ^= mask << size;
    }
}
