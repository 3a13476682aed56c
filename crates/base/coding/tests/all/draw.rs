//! Numbers and blocks that look random and are the same each time.

#![allow(dead_code, reason = "each test file uses its part")]

use skyhaul_coding::ReedSolomon;

/// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled",
/// 2016).
pub struct Draw(pub u64);

impl Draw {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 32) as usize % bound
    }
}

/// Blocks at a stride, as sent and as received.
#[derive(Clone)]
pub struct Blocks {
    pub sent: Vec<u8>,
    pub received: Vec<u8>,
    pub stride: usize,
    pub count: usize,
}

/// Random blocks, each codeword with as many wrong symbols as `errors` says.
pub fn blocks(
    code: &ReedSolomon,
    draw: &mut Draw,
    count: usize,
    mut errors: impl FnMut(&mut Draw) -> usize,
) -> Blocks {
    let stride = code.block_len() + draw.below(6);
    let mut sent: Vec<u8> = (0..count * stride).map(|_| (draw.next() >> 32) as u8).collect();
    for block in sent.chunks_exact_mut(stride) {
        let (data, check) = block[..code.block_len()].split_at_mut(code.data_len());
        code.encode(data, check);
    }
    let mut received = sent.clone();
    let depth = code.parameters().interleave;
    for block in received.chunks_exact_mut(stride) {
        for codeword in 0..depth {
            let mut places: Vec<usize> = (0..code.block_len() / depth).collect();
            for _ in 0..errors(draw).min(places.len()) {
                let place = places.swap_remove(draw.below(places.len()));
                block[place * depth + codeword] ^= 1 + draw.below(255) as u8;
            }
        }
    }
    Blocks { sent, received, stride, count }
}
