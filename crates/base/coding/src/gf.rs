//! Sums of products over slices of field elements: what the erasure code spends its time on. And
//! the choice of vector instructions, for it and for the batch coder of Reed-Solomon blocks.
//!
//! The field is that of CCSDS 131.0-B 4.3 (x^8 + x^7 + x^2 + x + 1) in its conventional basis. All
//! kernels give the same bytes; which one runs is decided by what the processor has, once a call.

#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
mod tables;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
use crate::vector::neon::Neon;
use crate::vector::{Form, Simd, Task};
#[cfg(target_arch = "x86_64")]
use crate::vector::{avx2::Avx2, gfni256::Gfni256, gfni512::Gfni512, ssse3::Ssse3};

/// The products of a coefficient with every element.
pub(crate) fn products(coefficient: u8) -> &'static [u8; 256] {
    &tables::PRODUCTS[usize::from(coefficient)]
}

/// A coefficient and what it is multiplied with.
pub type Term<'a> = (u8, &'a [u8]);

/// One set of vector instructions, or none, known to run on this processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// GF2P8AFFINEQB on registers of 64 bytes, tails by mask.
    #[cfg(target_arch = "x86_64")]
    Gfni512,
    /// GF2P8AFFINEQB on registers of 32 bytes.
    #[cfg(target_arch = "x86_64")]
    Gfni256,
    /// Two look-ups of 16 entries for each byte (PSHUFB), 32 bytes at a time.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// The same, 16 bytes at a time.
    #[cfg(target_arch = "x86_64")]
    Ssse3,
    /// Two look-ups of 16 entries for each byte (TBL), 16 bytes at a time.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// A look-up in a table of 256 entries for each byte.
    Portable,
}

impl Kernel {
    /// The fastest that this processor has.
    pub fn best() -> Self {
        Self(ALL.iter().copied().find(|kind| kind.runs_here()).unwrap_or(Kind::Portable))
    }

    /// Every kernel that this processor has, the fastest first. The last one runs anywhere.
    pub fn available() -> impl Iterator<Item = Self> {
        ALL.iter().copied().filter(|kind| kind.runs_here()).map(Self)
    }

    /// Its name, for reports.
    pub const fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Gfni512 => "gfni-avx512",
            #[cfg(target_arch = "x86_64")]
            Kind::Gfni256 => "gfni-avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Ssse3 => "ssse3",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "neon",
            Kind::Portable => "portable",
        }
    }

    /// Adds coefficient × slice to `sum`, for every term. A slice that is shorter than `sum` counts
    /// as if zeros followed; what a longer one has beyond `sum` is left out.
    pub fn accumulate(self, sum: &mut [u8], terms: &[Term<'_>]) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Gfni512 => x86::gfni512(sum, terms),
            #[cfg(target_arch = "x86_64")]
            Kind::Gfni256 => x86::gfni256(sum, terms),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => x86::avx2(sum, terms),
            #[cfg(target_arch = "x86_64")]
            Kind::Ssse3 => x86::ssse3(sum, terms),
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => neon::accumulate(sum, terms),
            Kind::Portable => portable::accumulate(sum, terms),
        }
    }

    /// Adds one slice to another of the same length.
    ///
    /// # Panics
    /// Where the lengths differ.
    pub fn add(self, to: &mut [u8], from: &[u8]) {
        assert_eq!(to.len(), from.len(), "sums are of slices of one length");
        if self.0 == Kind::Portable {
            portable::add(to, from);
        } else {
            self.run(Add { to, from });
        }
    }

    /// Writes the sum of two slices to a third, all of the same length.
    pub(crate) fn sum(self, to: &mut [u8], from: &[u8], added: &[u8]) {
        assert!(
            to.len() == from.len() && to.len() == added.len(),
            "sums are of slices of one length"
        );
        if self.0 == Kind::Portable {
            portable::sum(to, from, added);
        } else {
            self.run(Sum { to, from, added });
        }
    }

    /// Symbols that a register holds; 0 without vector instructions.
    pub(crate) const fn lanes(self) -> usize {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Gfni512 => Gfni512::LANES,
            #[cfg(target_arch = "x86_64")]
            Kind::Gfni256 => Gfni256::LANES,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => Avx2::LANES,
            #[cfg(target_arch = "x86_64")]
            Kind::Ssse3 => Ssse3::LANES,
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => Neon::LANES,
            Kind::Portable => 0,
        }
    }

    /// How the instructions take linear maps; `None` without vector instructions.
    pub(crate) const fn form(self) -> Option<Form> {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Gfni512 | Kind::Gfni256 => Some(Form::Matrices),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 | Kind::Ssse3 => Some(Form::Nibbles),
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => Some(Form::Nibbles),
            Kind::Portable => None,
        }
    }

    /// Runs a task on the instructions; `None` without any.
    pub(crate) fn run<T: Task>(self, task: T) -> Option<T::Output> {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Gfni512 => Gfni512::detect().map(|simd| simd.run(task)),
            #[cfg(target_arch = "x86_64")]
            Kind::Gfni256 => Gfni256::detect().map(|simd| simd.run(task)),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => Avx2::detect().map(|simd| simd.run(task)),
            #[cfg(target_arch = "x86_64")]
            Kind::Ssse3 => Ssse3::detect().map(|simd| simd.run(task)),
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => Neon::detect().map(|simd| simd.run(task)),
            Kind::Portable => None,
        }
    }
}

struct Add<'a> {
    to: &'a mut [u8],
    from: &'a [u8],
}

impl Task for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        // The compiler makes vector code of it, and here it knows of the instructions.
        portable::add(self.to, self.from);
    }
}

struct Sum<'a> {
    to: &'a mut [u8],
    from: &'a [u8],
    added: &'a [u8],
}

impl Task for Sum<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        portable::sum(self.to, self.from, self.added);
    }
}

impl Kind {
    fn runs_here(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Gfni512 => x86::has_gfni512(),
            #[cfg(target_arch = "x86_64")]
            Self::Gfni256 => x86::has_gfni256(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => x86::has_avx2(),
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3 => x86::has_ssse3(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => neon::runs_here(),
            Self::Portable => true,
        }
    }
}

/// The fastest first.
const ALL: &[Kind] = &[
    #[cfg(target_arch = "x86_64")]
    Kind::Gfni512,
    #[cfg(target_arch = "x86_64")]
    Kind::Gfni256,
    #[cfg(target_arch = "x86_64")]
    Kind::Avx2,
    #[cfg(target_arch = "x86_64")]
    Kind::Ssse3,
    #[cfg(target_arch = "aarch64")]
    Kind::Neon,
    Kind::Portable,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field;
    use proptest::prelude::*;

    /// The sum by single products.
    fn expected(sum: &[u8], terms: &[Term<'_>]) -> Vec<u8> {
        let mut sum = sum.to_vec();
        for (coefficient, slice) in terms {
            for (to, from) in sum.iter_mut().zip(*slice) {
                *to ^= field::mul(*coefficient, *from);
            }
        }
        sum
    }

    #[test]
    fn every_product_of_every_kernel_is_right() {
        let all: Vec<u8> = (0..=255).collect();
        for kernel in Kernel::available() {
            for coefficient in 0..=255 {
                let mut sum = vec![0; 256];
                kernel.accumulate(&mut sum, &[(coefficient, &all)]);
                let products: Vec<u8> =
                    all.iter().map(|byte| field::mul(coefficient, *byte)).collect();
                assert_eq!(sum, products, "{}, coefficient {coefficient}", kernel.name());
            }
        }
    }

    #[test]
    fn the_best_kernel_is_the_first_available_and_the_portable_one_is_always_there() {
        assert_eq!(Kernel::available().next(), Some(Kernel::best()));
        assert_eq!(Kernel::available().last().map(Kernel::name), Some("portable"));
    }

    proptest! {
        #[test]
        fn kernels_give_the_same_bytes_at_any_length_and_place(
            sum in prop::collection::vec(any::<u8>(), 0..1_500),
            slices in prop::collection::vec((any::<u8>(),
                prop::collection::vec(any::<u8>(), 0..1_600)), 0..9),
            skip in 0usize..64,
        ) {
            // The skip moves the slices off the registers' natural places in memory.
            let terms: Vec<Term<'_>> =
                slices.iter().map(|(coefficient, slice)| (*coefficient,
                    slice.get(skip..).unwrap_or(&[]))).collect();
            let expected = expected(&sum, &terms);
            for kernel in Kernel::available() {
                let mut sum = sum.clone();
                kernel.accumulate(&mut sum, &terms);
                prop_assert_eq!(&sum, &expected, "{}", kernel.name());
            }
        }
    }
}
