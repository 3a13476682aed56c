//! Wall-clock figures of the hot paths; see `benches/`. A figure is of one machine: name it where
//! it is quoted.

/// Numbers below a bound that look random and are the same each time (xorshift64*).
pub fn draw() -> impl FnMut(usize) -> usize {
    let mut state = 0x5EEDu64;
    move |bound| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }
}
