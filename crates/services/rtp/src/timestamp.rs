//! Counters that wrap: sequence numbers of 16 bits and time stamps of 32.

/// Extends a counter of `bits` bits by the value that was seen last, to the nearest one.
pub const fn extend(last: u64, low: u64, bits: u32) -> u64 {
    let whole = 1u64 << bits;
    let base = last & !(whole - 1);
    let near = base | low;
    if near + whole / 2 < last {
        near + whole
    } else if near > last + whole / 2 && near >= whole {
        near - whole
    } else {
        near
    }
}

#[cfg(test)]
mod tests {
    use super::extend;

    #[test]
    fn a_counter_goes_on_over_its_end_and_a_little_back() {
        for (last, low, expected) in [
            (0x1_fffe, 0xffff, 0x1_ffff),
            (0x1_ffff, 0x0000, 0x2_0000),
            (0x2_0003, 0xfffd, 0x1_fffd),
            (0x2_0003, 0x0001, 0x2_0001),
            (0x0_0003, 0xfffd, 0x0_fffd),
        ] {
            assert_eq!(extend(last, low, 16), expected, "{last:x} {low:x}");
        }
        assert_eq!(extend(0xffff_fff0, 0x10, 32), 0x1_0000_0010);
    }
}
