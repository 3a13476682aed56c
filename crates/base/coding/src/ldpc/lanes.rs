//! What the decoder is written in: registers with one codeword in each lane, of vector instructions
//! or of none.

use crate::gf::Kernel;
use crate::vector::{MAX_LANES, PIECE, Simd, Task, transpose};
use std::array;

/// Registers of small numbers.
pub(super) trait Lanes: Copy {
    /// A number in each lane.
    type Register: Copy;

    /// Numbers in a register.
    const LANES: usize;

    /// The same number in all lanes.
    fn splat(self, number: u8) -> Self::Register;
    /// The lanes from `bytes[at]` on.
    fn load(self, bytes: &[u8], at: usize) -> Self::Register;
    /// Writes the lanes from `bytes[at]` on.
    fn store(self, register: Self::Register, bytes: &mut [u8], at: usize);
    /// Registers of the first, second .. number of each lane's piece.
    fn transposed<'a>(self, piece: impl Fn(usize) -> &'a [u8; PIECE]) -> [Self::Register; PIECE];

    /// The bits that are set in one of both.
    fn xor(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// Lanes of `a` where all bits of the mask are set, of `b` where none is.
    fn select(self, mask: Self::Register, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The sums as numbers modulo 256.
    fn plus(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The differences as numbers modulo 256.
    fn minus(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The smaller number of each lane.
    fn least(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The larger number of each lane.
    fn most(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The mean of two numbers, rounded up.
    fn mean(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The sums of signed numbers, held within their range.
    fn plus_signed(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The differences of signed numbers, held within their range.
    fn minus_signed(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The sizes of signed numbers, 128 for -128.
    fn size(self, register: Self::Register) -> Self::Register;
    /// The numbers modulo 256, with the opposite sign in lanes where the top bit of `signs` is set.
    fn opposite(self, register: Self::Register, signs: Self::Register) -> Self::Register;
    /// Each lane moved up by a bit, the top bit of `signs` behind it.
    fn append(self, bits: Self::Register, signs: Self::Register) -> Self::Register;
    /// The top bit of each lane, the first lane lowest.
    fn signs(self, register: Self::Register) -> u64;
    /// Lanes of `x` where `a` and `b` are equal, of `y` elsewhere.
    fn select_equal(
        self,
        ab: [Self::Register; 2],
        x: Self::Register,
        y: Self::Register,
    ) -> Self::Register;
    /// Lanes of `x` where `a`, as a number, is at most `b`, of `y` elsewhere.
    fn select_at_most(
        self,
        ab: [Self::Register; 2],
        x: Self::Register,
        y: Self::Register,
    ) -> Self::Register;
}

/// Something to compute, whatever the registers.
pub(super) trait Work {
    /// What comes out.
    type Output;

    /// Computes it; `#[inline(always)]` in every implementation.
    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

/// Lanes that a kernel works on.
pub(super) fn lanes_of(kernel: Kernel) -> usize {
    if kernel.lanes() == 0 { Plain::LANES } else { kernel.lanes() }
}

/// Does the work on the instructions of a kernel.
pub(super) fn run<W: Work>(kernel: Kernel, work: W) -> W::Output {
    if kernel.lanes() == 0 {
        return work.run(Plain);
    }
    kernel.run(OnVectors(work)).expect("a kernel with lanes has instructions")
}

struct OnVectors<W>(W);

impl<W: Work> Task for OnVectors<W> {
    type Output = W::Output;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> W::Output {
        self.0.run(Vectors(simd))
    }
}

/// Vector instructions.
#[derive(Debug, Clone, Copy)]
struct Vectors<S>(S);

macro_rules! handed_on {
    ($($name:ident($($argument:ident),*);)*) => {
        $(#[inline(always)]
        fn $name(self, $($argument: S::Register),*) -> S::Register {
            self.0.$name($($argument),*)
        })*
    };
}

impl<S: Simd> Lanes for Vectors<S> {
    type Register = S::Register;

    const LANES: usize = S::LANES;

    handed_on! {
        xor(a, b);
        select(mask, a, b);
        plus(a, b);
        minus(a, b);
        least(a, b);
        most(a, b);
        mean(a, b);
        plus_signed(a, b);
        minus_signed(a, b);
        size(register);
        opposite(register, signs);
        append(bits, signs);
    }

    #[inline(always)]
    fn splat(self, number: u8) -> S::Register {
        self.0.splat(number)
    }

    #[inline(always)]
    fn load(self, bytes: &[u8], at: usize) -> S::Register {
        self.0.load(bytes, at)
    }

    #[inline(always)]
    fn store(self, register: S::Register, bytes: &mut [u8], at: usize) {
        self.0.store(register, bytes, at);
    }

    #[inline(always)]
    fn transposed<'a>(self, piece: impl Fn(usize) -> &'a [u8; PIECE]) -> [S::Register; PIECE] {
        let mut tile = [self.0.splat(0); PIECE];
        for (row, register) in tile.iter_mut().enumerate() {
            *register = self.0.gather(|part| piece(row + PIECE * part));
        }
        transpose(self.0, tile)
    }

    #[inline(always)]
    fn signs(self, register: S::Register) -> u64 {
        self.0.signs(register)
    }

    #[inline(always)]
    fn select_equal(self, ab: [S::Register; 2], x: S::Register, y: S::Register) -> S::Register {
        self.0.select_equal(ab, x, y)
    }

    #[inline(always)]
    fn select_at_most(self, ab: [S::Register; 2], x: S::Register, y: S::Register) -> S::Register {
        self.0.select_at_most(ab, x, y)
    }
}

/// No vector instructions but those that the compiler finds for loops over arrays.
#[derive(Debug, Clone, Copy)]
struct Plain;

type Array = [u8; PIECE];

#[inline(always)]
fn each(a: Array, b: Array, of: impl Fn(u8, u8) -> u8) -> Array {
    array::from_fn(|lane| of(a[lane], b[lane]))
}

impl Lanes for Plain {
    type Register = Array;

    const LANES: usize = PIECE;

    #[inline(always)]
    fn splat(self, number: u8) -> Array {
        [number; PIECE]
    }

    #[inline(always)]
    fn load(self, bytes: &[u8], at: usize) -> Array {
        *bytes[at..].first_chunk().expect("the caller's buffer holds the lanes")
    }

    #[inline(always)]
    fn store(self, register: Array, bytes: &mut [u8], at: usize) {
        *bytes[at..].first_chunk_mut().expect("the caller's buffer holds the lanes") = register;
    }

    #[inline(always)]
    fn transposed<'a>(self, piece: impl Fn(usize) -> &'a [u8; PIECE]) -> [Array; PIECE] {
        array::from_fn(|number| array::from_fn(|lane| piece(lane)[number]))
    }

    #[inline(always)]
    fn xor(self, a: Array, b: Array) -> Array {
        each(a, b, |a, b| a ^ b)
    }

    #[inline(always)]
    fn select(self, mask: Array, a: Array, b: Array) -> Array {
        array::from_fn(|lane| mask[lane] & a[lane] | !mask[lane] & b[lane])
    }

    #[inline(always)]
    fn plus(self, a: Array, b: Array) -> Array {
        each(a, b, u8::wrapping_add)
    }

    #[inline(always)]
    fn minus(self, a: Array, b: Array) -> Array {
        each(a, b, u8::wrapping_sub)
    }

    #[inline(always)]
    fn least(self, a: Array, b: Array) -> Array {
        each(a, b, u8::min)
    }

    #[inline(always)]
    fn most(self, a: Array, b: Array) -> Array {
        each(a, b, u8::max)
    }

    #[inline(always)]
    fn mean(self, a: Array, b: Array) -> Array {
        each(a, b, |a, b| (u16::from(a) + u16::from(b)).div_ceil(2) as u8)
    }

    #[inline(always)]
    fn plus_signed(self, a: Array, b: Array) -> Array {
        each(a, b, |a, b| a.cast_signed().saturating_add(b.cast_signed()).cast_unsigned())
    }

    #[inline(always)]
    fn minus_signed(self, a: Array, b: Array) -> Array {
        each(a, b, |a, b| a.cast_signed().saturating_sub(b.cast_signed()).cast_unsigned())
    }

    #[inline(always)]
    fn size(self, register: Array) -> Array {
        register.map(|number| number.cast_signed().unsigned_abs())
    }

    #[inline(always)]
    fn opposite(self, register: Array, signs: Array) -> Array {
        each(register, signs, |number, sign| {
            let mask = (sign.cast_signed() >> 7).cast_unsigned();
            (number ^ mask).wrapping_sub(mask)
        })
    }

    #[inline(always)]
    fn append(self, bits: Array, signs: Array) -> Array {
        each(bits, signs, |bits, sign| bits << 1 | sign >> 7)
    }

    #[inline(always)]
    fn signs(self, register: Array) -> u64 {
        register.iter().rev().fold(0, |mask, number| mask << 1 | u64::from(number >> 7))
    }

    #[inline(always)]
    fn select_equal(self, [a, b]: [Array; 2], x: Array, y: Array) -> Array {
        array::from_fn(|lane| if a[lane] == b[lane] { x[lane] } else { y[lane] })
    }

    #[inline(always)]
    fn select_at_most(self, [a, b]: [Array; 2], x: Array, y: Array) -> Array {
        array::from_fn(|lane| if a[lane] <= b[lane] { x[lane] } else { y[lane] })
    }
}

const _: () =
    assert!(PIECE <= MAX_LANES && MAX_LANES <= u64::BITS as usize, "a bit of a word for each lane");
