//! Syndromes of the codewords in the lanes: values of their polynomials at the roots of the
//! generator.

use crate::field::{EXP, FROM_DUAL, ORDER, mul_exp};
use crate::gf::Kernel;
use crate::key_equation::PRIMITIVE;
use crate::parameters::{Basis, Parameters};
use crate::vector::{Factors, Form, Map, Simd, Task, accumulate};

/// Syndromes that a codeword is first checked by, and that are computed at a time.
pub(super) const GATE: usize = 16;

/// Symbols between two steps of Horner's rule; within a stretch each symbol is multiplied by its
/// own power of the root. 17 stretches are a whole codeword.
const STRETCH: usize = 15;

/// What a processor fetches at a time, in bytes.
const LINE: usize = 64;

/// The constants of the syndromes of a code, which come out in the kernel's working basis.
#[derive(Debug, Clone)]
pub(super) struct Syndromes {
    /// Of a code's check symbols.
    count: usize,
    /// For each symbol of a stretch a factor for each syndrome.
    powers: Factors,
    /// The factor of each syndrome from one stretch to the next.
    steps: Factors,
}

impl Syndromes {
    pub(super) fn new(parameters: Parameters, kernel: Kernel) -> Self {
        let Parameters { correction, basis, .. } = parameters;
        let (count, first_root) = (correction.check_len(), correction.first_root());
        let form = kernel.form().unwrap_or(Form::Nibbles);
        let power =
            |root: usize, exponent: usize| PRIMITIVE * (first_root + root) * exponent % ORDER;
        let into =
            |symbol: u8| if basis == Basis::Dual { FROM_DUAL[usize::from(symbol)] } else { symbol };
        let powers = (0..STRETCH * count).map(|index| {
            let exponent = power(index % count, STRETCH - 1 - index / count);
            Map::new(|symbol| form.working(mul_exp(into(symbol), exponent)))
        });
        let steps = (0..count).map(|root| {
            let exponent = power(root, STRETCH);
            Map::new(|symbol| form.working(mul_exp(form.conventional(symbol), exponent)))
        });
        Self { count, powers: Factors::new(form, powers), steps: Factors::new(form, steps) }
    }
}

/// Computes [`GATE`] syndromes of the codewords in the lanes.
pub(super) struct Sums<'a> {
    pub syndromes: &'a Syndromes,
    /// The symbols of the codewords.
    pub columns: &'a [u8],
    /// What is worked on next, fetched meanwhile.
    pub ahead: &'a [u8],
    /// The first syndrome.
    pub first: usize,
    /// All syndromes.
    pub sums: &'a mut [u8],
}

impl Sums<'_> {
    /// The same task once more.
    pub(super) fn again(&mut self) -> Sums<'_> {
        Sums {
            syndromes: self.syndromes,
            columns: self.columns,
            ahead: self.ahead,
            first: self.first,
            sums: self.sums,
        }
    }
}

impl Task for Sums<'_> {
    /// The lanes where a syndrome is not zero.
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> u64 {
        if S::SUMS == GATE { run::<S, GATE>(simd, self) } else { run::<S, 8>(simd, self) }
    }
}

#[inline(always)]
fn run<S: Simd, const N: usize>(simd: S, task: Sums<'_>) -> u64 {
    let Sums { syndromes, columns, ahead, first, sums: out } = task;
    let (powers, steps) = (S::factors(&syndromes.powers), S::factors(&syndromes.steps));
    let mut dirty = 0;
    for first in (first..first + GATE).step_by(N) {
        let steps: &[S::Factor; N] =
            steps[first..].first_chunk().expect("a step for each syndrome");
        let mut sums = [simd.splat(0); N];
        let mut left = columns.len() / S::LANES;
        // The last stretch is whole, the first one perhaps not.
        let mut position = (STRETCH - left % STRETCH) % STRETCH;
        while left > 0 {
            for (sum, step) in sums.iter_mut().zip(steps) {
                *sum = simd.map(simd.split(*sum), step);
            }
            while position < STRETCH {
                let symbols = simd.load(columns, columns.len() - left * S::LANES);
                accumulate(simd, &mut sums, symbols, &powers[position * syndromes.count + first..]);
                position += 1;
                left -= 1;
                simd.prefetch(ahead, left * LINE);
            }
            position = 0;
        }
        for (index, sum) in sums.into_iter().enumerate() {
            dirty |= !simd.zeros(sum);
            simd.store(sum, out, (first + index) * S::LANES);
        }
    }
    dirty
}

/// The value at root number `root` of x to a power.
pub(super) fn root_power(parameters: Parameters, root: usize, exponent: usize) -> u8 {
    EXP[PRIMITIVE * (parameters.correction.first_root() + root) * exponent % ORDER]
}
