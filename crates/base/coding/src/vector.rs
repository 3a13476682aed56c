//! Registers of field elements, one a lane: what the batch coder is written in, once for all
//! instruction sets.
//!
//! A value of a type that is [`Simd`] exists only where the processor has its instructions, so that
//! safe code may use them. Code that is generic over it must be inlined into [`Simd::run`], where
//! the compiler is told of the instructions: every such function is `#[inline(always)]`.
//!
//! Constants of a computation are linear maps of a symbol's bits ([`Map`]): a product with a
//! constant, a change of basis, or both in one. Products of two registers need a field that the
//! instructions know. That is the *working basis* of a kernel: the field of AES where the processor
//! multiplies in it (all fields of 256 elements are isomorphic), the conventional basis elsewhere.

use crate::field::{EXP, ORDER};
use nibbles::Nibbles;
use ways::GROUPS;

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod gfni256;
#[cfg(target_arch = "x86_64")]
pub(crate) mod gfni512;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
mod nibbles;
pub(crate) mod rows;
#[cfg(target_arch = "x86_64")]
pub(crate) mod ssse3;
pub(crate) mod ways;

/// Most lanes of any register.
pub(crate) const MAX_LANES: usize = 64;

/// Symbols that are read or written in one piece: a sixteenth of a tile of 16 x 16 symbols.
pub(crate) const PIECE: usize = 16;

/// Something to compute, whatever the registers.
pub(crate) trait Task {
    /// What comes out.
    type Output;

    /// Computes it; `#[inline(always)]` in every implementation.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// A set of vector instructions that this processor has.
pub(crate) trait Simd: Copy {
    /// One symbol in each lane.
    type Register: Copy;
    /// A symbol's linear map in the form that the instructions take.
    type Factor: Copy;
    /// A register made ready for being mapped several times.
    type Split: Copy;

    /// Symbols in a register, a multiple of [`PIECE`].
    const LANES: usize;
    /// Sums that fit into the processor's registers beside what else is needed.
    const SUMS: usize;

    /// Runs the task where the compiler may use the instructions.
    fn run<T: Task>(self, task: T) -> T::Output;

    /// The maps of a table in the form that the instructions take.
    fn factors(table: &Factors) -> &[Self::Factor];

    /// The same symbol in all lanes.
    fn splat(self, symbol: u8) -> Self::Register;
    /// The lanes from `bytes[at]` on.
    fn load(self, bytes: &[u8], at: usize) -> Self::Register;
    /// Writes the lanes from `bytes[at]` on.
    fn store(self, register: Self::Register, bytes: &mut [u8], at: usize);
    /// Has the processor fetch the bytes at a place that will be read soon, if it can be told to.
    fn prefetch(self, bytes: &[u8], at: usize);
    /// The same 16 lanes over and over.
    fn repeat(self, piece: &[u8; PIECE]) -> Self::Register;
    /// A register from pieces of 16 lanes.
    fn gather<'a>(self, piece: impl Fn(usize) -> &'a [u8; PIECE]) -> Self::Register;
    /// Within each 16 lanes: the first halves of both with their lanes alternating, and the second
    /// halves.
    fn interleave(self, a: Self::Register, b: Self::Register) -> (Self::Register, Self::Register);

    /// The sum of two elements.
    fn xor(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// Prepares for [`Self::map`].
    fn split(self, register: Self::Register) -> Self::Split;
    /// The image of each symbol under a linear map.
    fn map(self, symbols: Self::Split, factor: &Self::Factor) -> Self::Register;
    /// The products of two registers, in the working basis.
    fn mul(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The inverses in the working basis, zero for zero.
    fn inverse(self, register: Self::Register) -> Self::Register;

    /// All bits set in lanes that are equal, none in others.
    fn equal(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// All bits set in lanes where `a`, as a number, is at most `b`.
    fn at_most(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The differences as numbers modulo 256.
    fn minus(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// Lanes of `a` where all bits of the mask are set, of `b` where none is.
    fn select(self, mask: Self::Register, a: Self::Register, b: Self::Register) -> Self::Register;
    /// One bit for each lane that is zero, the first lane lowest.
    fn zeros(self, register: Self::Register) -> u64;

    /// The bits that are set in both.
    fn and(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The bits that are set in either.
    fn or(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The sums as numbers modulo 256.
    fn plus(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The smaller number of each lane.
    fn least(self, a: Self::Register, b: Self::Register) -> Self::Register;
    /// The lower and the upper four bits of each lane, as numbers.
    fn halves(self, register: Self::Register) -> (Self::Register, Self::Register);
    /// Within each 16 lanes: the lanes of `from` that `places` names, all below 16.
    fn shuffle(self, from: Self::Register, places: Self::Register) -> Self::Register;
    /// One bit for each lane that is the same in both, the first lane lowest.
    fn same(self, a: Self::Register, b: Self::Register) -> u64;

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
    #[inline(always)]
    fn select_equal(
        self,
        [a, b]: [Self::Register; 2],
        x: Self::Register,
        y: Self::Register,
    ) -> Self::Register {
        self.select(self.equal(a, b), x, y)
    }

    /// Lanes of `x` where `a`, as a number, is at most `b`, of `y` elsewhere.
    #[inline(always)]
    fn select_at_most(
        self,
        [a, b]: [Self::Register; 2],
        x: Self::Register,
        y: Self::Register,
    ) -> Self::Register {
        self.select(self.at_most(a, b), x, y)
    }

    /// A step back in eight ways through a trellis, four for each of two places of decisions, as
    /// [`ways::back`] does it for one.
    #[inline(always)]
    fn back(self, decisions: [&[u64; GROUPS]; 2], ways: &mut [u64; 8]) {
        for (way, place) in ways.iter_mut().zip(0..) {
            *way = ways::back(decisions[place / 4], place as u32 % 4, *way);
        }
    }
}

/// A linear map of the eight bits of a symbol: the images of 1, 2, 4 .. 128.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Map([u8; 8]);

impl Map {
    /// The map that does what `image` does to a symbol; `image` is linear.
    pub(crate) fn new(image: impl Fn(u8) -> u8) -> Self {
        Self(core::array::from_fn(|bit| image(1 << bit)))
    }

    fn image(self, symbol: u8) -> u8 {
        (0..8).filter(|bit| symbol >> bit & 1 == 1).fold(0, |sum, bit| sum ^ self.0[bit])
    }

    /// As GF2P8AFFINEQB takes it: bit i of the image is the parity of byte 7 - i of the matrix and
    /// the symbol.
    fn matrix(self) -> u64 {
        let mut matrix = 0;
        for (column, image) in self.0.into_iter().enumerate() {
            for row in 0..8 {
                matrix |= u64::from(image >> row & 1) << (8 * (7 - row) + column);
            }
        }
        matrix
    }

    /// The images of 0 .. 15 and of 0, 16 .. 240: the image of a symbol is the sum of one of each.
    fn nibbles(self) -> Nibbles {
        Nibbles {
            low: core::array::from_fn(|x| self.image(x as u8)),
            high: core::array::from_fn(|x| self.image((x as u8) << 4)),
        }
    }
}

/// How a kernel takes linear maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As bit matrices; the working basis is that of AES.
    Matrices,
    /// As look-ups by nibble; the working basis is the conventional one.
    Nibbles,
}

impl Form {
    /// From the conventional to the working basis.
    pub(crate) fn working(self, symbol: u8) -> u8 {
        if self == Self::Matrices { TO_AES[usize::from(symbol)] } else { symbol }
    }

    /// From the working to the conventional basis.
    pub(crate) fn conventional(self, symbol: u8) -> u8 {
        if self == Self::Matrices { FROM_AES[usize::from(symbol)] } else { symbol }
    }
}

/// Linear maps, held in the one form that a kernel takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Factors {
    matrices: Vec<u64>,
    nibbles: Vec<Nibbles>,
}

impl Factors {
    /// The maps in the form that is asked for.
    pub(crate) fn new(form: Form, maps: impl Iterator<Item = Map>) -> Self {
        let mut factors = Self { matrices: Vec::new(), nibbles: Vec::new() };
        match form {
            Form::Matrices => factors.matrices.extend(maps.map(Map::matrix)),
            Form::Nibbles => factors.nibbles.extend(maps.map(Map::nibbles)),
        }
        factors
    }
}

/// Adds to each of `N` sums the image of `input` under a factor of its own.
///
/// # Panics
/// Where the row has fewer than `N` factors.
#[inline(always)]
pub(crate) fn accumulate<S: Simd, const N: usize>(
    simd: S,
    sums: &mut [S::Register; N],
    input: S::Register,
    row: &[S::Factor],
) {
    let row: &[S::Factor; N] = row.first_chunk().expect("a factor for each sum");
    let input = simd.split(input);
    for (sum, factor) in sums.iter_mut().zip(row) {
        *sum = simd.xor(*sum, simd.map(input, factor));
    }
}

/// Columns of 16 symbols become rows and rows columns, in each 16 lanes.
#[inline(always)]
pub(crate) fn transpose<S: Simd>(simd: S, mut tile: [S::Register; PIECE]) -> [S::Register; PIECE] {
    // Each round moves the highest bit of the row's number to the lowest place of the column's, and
    // so on round.
    for _ in 0..PIECE.ilog2() {
        let before = tile;
        for (index, pair) in tile.chunks_exact_mut(2).enumerate() {
            (pair[0], pair[1]) = simd.interleave(before[index], before[index + PIECE / 2]);
        }
    }
    tile
}

/// The field of AES: x^8 + x^4 + x^3 + x + 1 (FIPS 197 4.2).
const AES: u16 = 0x11B;

/// A root of our field's polynomial in the field of AES; the isomorphism maps alpha to it.
const AES_ROOT: u8 = {
    let mut root = 2u8;
    while power_sum(root) != 0 {
        root += 1;
    }
    root
};

/// root^8 + root^7 + root^2 + root + 1 in the field of AES.
const fn power_sum(root: u8) -> u8 {
    let square = mul_aes(root, root);
    let fourth = mul_aes(square, square);
    let seventh = mul_aes(mul_aes(fourth, square), root);
    mul_aes(seventh, root) ^ seventh ^ square ^ root ^ 1
}

const fn mul_aes(a: u8, b: u8) -> u8 {
    let mut product = 0u16;
    let mut bit = 8;
    while bit > 0 {
        bit -= 1;
        product <<= 1;
        if product & 0x100 != 0 {
            product ^= AES;
        }
        if b >> bit & 1 == 1 {
            product ^= a as u16;
        }
    }
    product as u8
}

const TO_AES: [u8; 256] = {
    let mut map = [0u8; 256];
    let mut power = 1u8;
    let mut exponent = 0;
    while exponent < ORDER {
        map[EXP[exponent] as usize] = power;
        power = mul_aes(power, AES_ROOT);
        exponent += 1;
    }
    map
};

const FROM_AES: [u8; 256] = {
    let mut map = [0u8; 256];
    let mut symbol = 0;
    while symbol < 256 {
        map[TO_AES[symbol] as usize] = symbol as u8;
        symbol += 1;
    }
    map
};

#[cfg(test)]
mod tests;
