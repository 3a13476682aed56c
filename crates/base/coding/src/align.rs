//! Bit realignment: copies bytes out of a bit stream from any bit offset, upright or inverted.

use crate::gf::Kernel;
use crate::vector::{Simd, Task};

/// Whether a stream's bits are as they were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Polarity {
    /// As they were sent.
    Upright,
    /// Each bit is the opposite of what was sent.
    Inverted,
}

impl Polarity {
    /// Whether each bit is the opposite of what was sent.
    pub const fn is_inverted(self) -> bool {
        matches!(self, Self::Inverted)
    }

    /// The other one.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Upright => Self::Inverted,
            Self::Inverted => Self::Upright,
        }
    }
}

/// Fills `out` with the bits from bit `position` of `bytes` on; the highest bit of a byte comes
/// first.
///
/// ```
/// use skyhaul_coding::align::{self, Polarity};
/// let mut out = [0; 2];
/// align::copy(&[0x12, 0x34, 0x56], 4, Polarity::Upright, &mut out);
/// assert_eq!(out, [0x23, 0x45]);
/// ```
///
/// # Panics
/// Where `bytes` does not hold all bits that are asked for.
pub fn copy(bytes: &[u8], position: usize, polarity: Polarity, out: &mut [u8]) {
    copy_with(Kernel::best(), bytes, position, polarity, out);
}

/// The same with given instructions.
///
/// # Panics
/// Where `bytes` does not hold all bits that are asked for.
pub fn copy_with(
    kernel: Kernel,
    bytes: &[u8],
    position: usize,
    polarity: Polarity,
    out: &mut [u8],
) {
    let (first, shift) = (position / 8, position % 8);
    let needed = out.len() + usize::from(shift > 0 && !out.is_empty());
    let flip = if polarity == Polarity::Inverted { 0xFF } else { 0 };
    let task = Shift { from: &bytes[first..][..needed], shift: shift as u32, flip, out };
    if kernel.lanes() == 0 {
        task.apply();
    } else {
        kernel.run(task);
    }
}

struct Shift<'a> {
    from: &'a [u8],
    /// Bits of the first byte that are left out.
    shift: u32,
    flip: u8,
    out: &'a mut [u8],
}

impl Shift<'_> {
    #[inline(always)]
    fn apply(self) {
        let Self { from, shift, flip, out } = self;
        if shift == 0 {
            out.iter_mut().zip(from).for_each(|(to, byte)| *to = byte ^ flip);
            return;
        }
        let next = from.get(1..).unwrap_or_default();
        for ((to, byte), next) in out.iter_mut().zip(from).zip(next) {
            *to = (byte << shift | next >> (8 - shift)) ^ flip;
        }
    }
}

impl Task for Shift<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        // The compiler makes vector code of it, and here it knows of the instructions.
        self.apply();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_kernel_copies_the_bits_that_stand_there(
            bytes in prop::collection::vec(any::<u8>(), 1..400),
            position in 0usize..3_200,
            inverted: bool,
        ) {
            let position = position % (8 * bytes.len());
            let len = (8 * bytes.len() - position) / 8;
            let bit = |index: usize| bytes[index / 8] >> (7 - index % 8) & 1 ^ u8::from(inverted);
            let byte = |index: usize| (0..8).fold(0, |byte,
                i| byte << 1 | bit(position + 8 * index + i));
            let expected: Vec<u8> = (0..len).map(byte).collect();
            let polarity = if inverted { Polarity::Inverted } else { Polarity::Upright };
            for kernel in Kernel::available() {
                let mut out = vec![0x5A; len];
                copy_with(kernel, &bytes, position, polarity, &mut out);
                prop_assert_eq!(&out, &expected, "{}", kernel.name());
            }
        }
    }

    #[test]
    fn nothing_is_copied_from_the_very_end() {
        for position in 0..=8 {
            copy(&[0xFF], position, Polarity::Upright, &mut []);
        }
    }
}
