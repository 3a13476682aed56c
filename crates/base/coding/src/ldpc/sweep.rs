//! Message passing: the normalised min-sum algorithm, check by check, so that each check sees what
//! those before it found (Hocevar, A reduced complexity decoder architecture via layered decoding
//! of LDPC codes, 2004; Chen and others, Reduced-complexity decoding of LDPC codes, 2005).
//!
//! Every lane has a codeword of its own. A bit's level is what is known of it, negative for one. A
//! check keeps what it last said to each of its bits in few registers: two sizes (one goes to the
//! bit with the smallest level, the other to all others), the place of that bit, and a sign for
//! each bit. What it said is taken back before it speaks again.

use super::lanes::{Lanes, Work};
use super::matrix::Checks;
use crate::vector::MAX_LANES;

/// Most bits of a check.
pub(super) const MAX_WEIGHT: usize = 32;

/// The largest size that a check takes from a bit. With 31, codes of low rate, whose bits have up
/// to six checks, lose ten times as many codewords in noise.
const MOST: u8 = 100;

/// Registers that a check keeps beside its signs, of which eight lie in one.
const SIZES: usize = 3;

/// Registers that each check keeps.
pub(super) const fn registers(weight: usize) -> usize {
    SIZES + weight.div_ceil(8)
}

/// One go at all checks.
pub(super) struct Sweep<'a> {
    pub checks: &'a Checks,
    /// Registers of each check, as [`registers`] says.
    pub registers: usize,
    /// The bits' levels.
    pub levels: &'a mut [u8],
    /// What the checks keep.
    pub kept: &'a mut [u8],
}

/// Levels without what a check said, on a boundary of the processor's cache.
#[repr(align(64))]
struct Inputs([u8; MAX_WEIGHT * MAX_LANES]);

impl Work for Sweep<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self { checks, registers, levels, kept } = self;
        let mut inputs = Inputs([0; MAX_WEIGHT * MAX_LANES]);
        for (columns, kept) in checks.rows().zip(kept.chunks_exact_mut(registers * L::LANES)) {
            let found = collect(lanes, columns, levels, kept, &mut inputs.0);
            spread(lanes, columns, found, Beliefs { levels, kept }, &inputs.0);
        }
    }
}

/// What a check changes.
struct Beliefs<'a> {
    /// The levels of all bits.
    levels: &'a mut [u8],
    /// What the check keeps.
    kept: &'a mut [u8],
}

/// What a check found in its bits.
struct Found<L: Lanes> {
    /// The smallest and the second smallest size.
    sizes: [L::Register; 2],
    /// Where the smallest is.
    place: L::Register,
    /// All signs together, the top bit of each lane.
    sign: L::Register,
}

/// Takes back what the check last said and looks at what is left.
#[inline(always)]
fn collect<L: Lanes>(
    lanes: L,
    columns: &[u16],
    levels: &[u8],
    kept: &[u8],
    inputs: &mut [u8],
) -> Found<L> {
    // No closures over registers: they are not sure to be inlined where the instructions are known.
    let first = lanes.load(kept, 0);
    let second = lanes.load(kept, L::LANES);
    let last = lanes.load(kept, 2 * L::LANES);
    let most = lanes.splat(MOST);
    let one = lanes.splat(1);
    let mut count = lanes.splat(0);
    let mut found = Found::<L> { sizes: [most; 2], place: count, sign: count };
    for (group, (columns, inputs)) in
        columns.chunks(8).zip(inputs.chunks_exact_mut(8 * L::LANES)).enumerate()
    {
        let mut signs = lanes.load(kept, (SIZES + group) * L::LANES);
        for (place, column) in columns.iter().enumerate() {
            let said = lanes.opposite(lanes.select_equal([last, count], second, first), signs);
            signs = lanes.plus(signs, signs);
            let input =
                lanes.minus_signed(lanes.load(levels, usize::from(*column) * L::LANES), said);
            lanes.store(input, inputs, place * L::LANES);
            let size = lanes.size(input);
            let [first, second] = found.sizes;
            found.place = lanes.select_at_most([first, size], found.place, count);
            found.sizes = [lanes.least(first, size), lanes.least(second, lanes.most(first, size))];
            found.sign = lanes.xor(found.sign, input);
            count = lanes.plus(count, one);
        }
    }
    found
}

/// Says to each bit what the others make of it.
#[inline(always)]
fn spread<L: Lanes>(
    lanes: L,
    columns: &[u16],
    found: Found<L>,
    beliefs: Beliefs<'_>,
    inputs: &[u8],
) {
    let Beliefs { levels, kept } = beliefs;
    let (first, second) = (normalised(lanes, found.sizes[0]), normalised(lanes, found.sizes[1]));
    lanes.store(first, kept, 0);
    lanes.store(second, kept, L::LANES);
    lanes.store(found.place, kept, 2 * L::LANES);
    let one = lanes.splat(1);
    let mut count = lanes.splat(0);
    for (group, (columns, inputs)) in
        columns.chunks(8).zip(inputs.chunks_exact(8 * L::LANES)).enumerate()
    {
        let mut signs = lanes.splat(0);
        for (place, column) in columns.iter().enumerate() {
            let input = lanes.load(inputs, place * L::LANES);
            let sign = lanes.xor(found.sign, input);
            let said =
                lanes.opposite(lanes.select_equal([found.place, count], second, first), sign);
            signs = lanes.append(signs, sign);
            lanes.store(lanes.plus_signed(input, said), levels, usize::from(*column) * L::LANES);
            count = lanes.plus(count, one);
        }
        for _ in columns.len()..8 {
            signs = lanes.plus(signs, signs);
        }
        lanes.store(signs, kept, (SIZES + group) * L::LANES);
    }
}

/// The smallest of some levels says too much of what all of them say together: about thirteen
/// sixteenths of it are said, but never nothing where there is something. 3/4 is worse for codes of
/// high rate, 7/8 for those of low rate.
#[inline(always)]
fn normalised<L: Lanes>(lanes: L, size: L::Register) -> L::Register {
    let zero = lanes.splat(0);
    let quarter = lanes.mean(lanes.mean(size, zero), zero);
    let part = lanes.mean(quarter, lanes.mean(quarter, zero));
    lanes.most(lanes.minus(size, part), lanes.least(size, lanes.splat(1)))
}

/// The signs of the bits' levels, a word for each bit with a bit for each lane.
pub(super) struct Signs<'a> {
    pub levels: &'a [u8],
    /// As many as there are bits.
    pub signs: &'a mut [u64],
}

impl Work for Signs<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        for (index, signs) in self.signs.iter_mut().enumerate() {
            *signs = lanes.signs(lanes.load(self.levels, index * L::LANES));
        }
    }
}

/// Of the lanes of a mask, those in which every check holds.
pub(super) fn good(checks: &Checks, signs: &[u64], open: u64) -> u64 {
    let mut good = open;
    for columns in checks.rows() {
        good &= !columns.iter().fold(0, |sum, column| sum ^ signs[usize::from(*column)]);
        if good == 0 {
            return 0;
        }
    }
    good
}
