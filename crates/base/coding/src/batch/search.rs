//! Damaged codewords, one a lane, collected from many blocks: where they are wrong and by how much.
//!
//! Chien's search and Forney's formula go through all places of the codewords at once. A place's
//! values of locator and evaluator are sums of products with constants, as syndromes are; the work
//! is the same for one wrong symbol and for sixteen but for the coefficients that no lane has.

use super::locator::{Locator, MAX_SYNDROMES, evaluator, locator};
use crate::field::{ORDER, TO_DUAL, mul_exp};
use crate::gf::Kernel;
use crate::interleave::{Codeword, ReedSolomon};
use crate::key_equation::{MAX_ERRORS, PRIMITIVE};
use crate::parameters::{Basis, Parameters};
use crate::vector::{Factors, Form, MAX_LANES, Map, Simd, Task, accumulate};

/// A codeword to be corrected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Damaged {
    /// The number of its block.
    pub block: usize,
    /// Its number in the block.
    pub codeword: usize,
    /// Where its first symbol lies.
    pub start: usize,
}

/// The syndromes of damaged codewords, as many as a register has lanes at most.
#[derive(Debug, Clone)]
pub(super) struct Collected {
    damaged: Vec<Damaged>,
    /// A register for each syndrome.
    syndromes: Vec<u8>,
    lanes: usize,
}

impl Collected {
    pub(super) fn new(parameters: Parameters, kernel: Kernel) -> Self {
        let lanes = kernel.lanes();
        let syndromes = vec![0; parameters.correction.check_len() * lanes];
        Self { damaged: Vec::with_capacity(lanes), syndromes, lanes }
    }

    pub(super) fn damaged(&self) -> &[Damaged] {
        &self.damaged
    }

    pub(super) fn is_full(&self) -> bool {
        self.damaged.len() == self.lanes
    }

    pub(super) fn clear(&mut self) {
        self.damaged.clear();
    }

    /// Takes the syndromes of the lanes named by `dirty`, as long as there is room; the lanes that
    /// are left.
    pub(super) fn take(
        &mut self,
        sums: &[u8],
        mut dirty: u64,
        damaged: impl Fn(usize) -> Damaged,
    ) -> u64 {
        if self.damaged.is_empty() && dirty == u64::MAX >> (MAX_LANES - self.lanes) {
            self.syndromes.copy_from_slice(sums);
            self.damaged.extend((0..self.lanes).map(damaged));
            return 0;
        }
        while dirty != 0 && !self.is_full() {
            let lane = dirty.trailing_zeros() as usize;
            let room = self.damaged.len();
            for (to, from) in
                self.syndromes.chunks_exact_mut(self.lanes).zip(sums.chunks_exact(self.lanes))
            {
                to[room] = from[lane];
            }
            self.damaged.push(damaged(lane));
            dirty &= dirty - 1;
        }
        dirty
    }
}

/// Corrects collected codewords.
#[derive(Debug, Clone)]
pub(super) struct Corrector {
    tables: Tables,
    /// Symbols of a codeword.
    length: usize,
    interleave: usize,
    errors: Errors,
}

/// What the search found.
#[derive(Debug, Clone)]
struct Errors {
    /// For each place, counted from the last symbol, the lanes that have an error there.
    lanes: Vec<u64>,
    /// A register of values to add for each place, in the code's basis; valid in those lanes.
    values: Vec<u8>,
    /// Errors of each lane.
    counts: [u8; MAX_LANES],
    /// Lanes that can be corrected.
    correctable: u64,
}

impl Corrector {
    pub(super) fn new(code: &ReedSolomon, kernel: Kernel) -> Self {
        let parameters = code.parameters();
        let length = code.block_len() / parameters.interleave;
        let errors = Errors {
            lanes: vec![0; length],
            values: vec![0; length * kernel.lanes()],
            counts: [0; MAX_LANES],
            correctable: 0,
        };
        Self {
            tables: Tables::new(parameters, kernel),
            length,
            interleave: parameters.interleave,
            errors,
        }
    }

    /// Corrects what can be; the outcome of each codeword, in order.
    pub(super) fn correct(
        &mut self,
        kernel: Kernel,
        collected: &Collected,
        blocks: &mut [u8],
    ) -> impl Iterator<Item = Codeword> {
        let count = collected.damaged.len();
        if count > 0 {
            kernel.run(Search {
                tables: &self.tables,
                syndromes: &collected.syndromes,
                valid: u64::MAX >> (MAX_LANES - count),
                errors: &mut self.errors,
            });
            self.apply(collected, blocks);
        }
        (0..count).map(|lane| match self.errors.correctable >> lane & 1 {
            1 => Codeword::Corrected(self.errors.counts[lane]),
            _ => Codeword::Uncorrectable,
        })
    }

    fn apply(&self, collected: &Collected, blocks: &mut [u8]) {
        let Errors { lanes, values, correctable, .. } = &self.errors;
        let mut last = [0; MAX_LANES];
        for (last, damaged) in last.iter_mut().zip(&collected.damaged) {
            *last = damaged.start + (self.length - 1) * self.interleave;
        }
        for (place, (wrong, values)) in
            lanes.iter().zip(values.chunks_exact(collected.lanes)).enumerate()
        {
            let mut wrong = wrong & correctable;
            while wrong != 0 {
                let lane = wrong.trailing_zeros() as usize;
                blocks[last[lane] - place * self.interleave] ^= values[lane];
                wrong &= wrong - 1;
            }
        }
    }
}

/// Places that are looked at between two steps.
const PLACES: usize = 16;

/// The constants of the search. The locator's odd powers are apart: they make its derivative.
#[derive(Debug, Clone)]
struct Tables {
    /// Check symbols of the code.
    check_len: usize,
    odd: Powers,
    even: Powers,
    evaluator: Powers,
    /// From the working basis to that of the code.
    to_code: Factors,
}

/// For each coefficient its factors at the places from one step to the next, and that of the step.
#[derive(Debug, Clone)]
struct Powers {
    places: Factors,
    step: Factors,
}

impl Powers {
    /// Coefficient i is taken at X^-exponent(i), where X = beta^place.
    fn new(form: Form, count: usize, exponent: impl Fn(usize) -> usize) -> Self {
        let map = |coefficient: usize, place: usize| {
            let power = ORDER - PRIMITIVE * exponent(coefficient) * place % ORDER;
            Map::new(|symbol| form.working(mul_exp(form.conventional(symbol), power)))
        };
        let places = (0..count * PLACES).map(|index| map(index / PLACES, index % PLACES));
        let step = (0..count).map(|coefficient| map(coefficient, PLACES));
        Self { places: Factors::new(form, places), step: Factors::new(form, step) }
    }
}

impl Tables {
    fn new(parameters: Parameters, kernel: Kernel) -> Self {
        let form = kernel.form().unwrap_or(Form::Nibbles);
        let first_root = parameters.correction.first_root();
        let to_code = Map::new(|symbol| {
            let symbol = form.conventional(symbol);
            if parameters.basis == Basis::Dual { TO_DUAL[usize::from(symbol)] } else { symbol }
        });
        Self {
            check_len: parameters.correction.check_len(),
            odd: Powers::new(form, MAX_ERRORS / 2, |i| 2 * i + 1),
            even: Powers::new(form, MAX_ERRORS / 2 + 1, |i| 2 * i),
            // Forney: the value is X^(1 - first_root) evaluator(1/X) / locator'(1/X), and the sum
            // of the locator's odd powers at 1/X is locator'(1/X) / X. What is left of the power of
            // X stands in these factors.
            evaluator: Powers::new(form, MAX_ERRORS, |i| i + first_root),
            to_code: Factors::new(form, [to_code].into_iter()),
        }
    }
}

/// Finds the errors of the codewords with these syndromes.
struct Search<'a> {
    tables: &'a Tables,
    syndromes: &'a [u8],
    /// Lanes that hold a codeword.
    valid: u64,
    errors: &'a mut Errors,
}

impl Task for Search<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut syndromes = [simd.splat(0); MAX_SYNDROMES];
        for (index, syndrome) in syndromes.iter_mut().enumerate().take(self.tables.check_len) {
            *syndrome = simd.load(self.syndromes, index * S::LANES);
        }
        let locator = locator(simd, &syndromes, self.tables.check_len);
        simd.store(locator.degrees, &mut self.errors.counts, 0);
        let most = (self.tables.check_len / 2) as u8;
        let counts = self.errors.counts.iter().copied().enumerate();
        let valid = counts.filter(|(lane, count)| self.valid >> lane & 1 == 1 && *count <= most);
        let degree = usize::from(valid.map(|(_, count)| count).max().unwrap_or(0));
        let evaluator = evaluator(simd, &syndromes, &locator, degree);
        if S::SUMS == PLACES {
            search::<S, PLACES>(simd, self, locator, evaluator, degree);
        } else {
            search::<S, 8>(simd, self, locator, evaluator, degree);
        }
    }
}

/// Goes through all places, `N` at a time, with the coefficients up to the highest degree of a
/// lane.
#[inline(always)]
fn search<S: Simd, const N: usize>(
    simd: S,
    task: Search<'_>,
    locator: Locator<S::Register>,
    evaluator: [S::Register; MAX_ERRORS],
    degree: usize,
) {
    let Search { tables, valid, errors, .. } = task;
    let zero = simd.splat(0);
    let mut odd = [zero; MAX_ERRORS / 2];
    let mut even = [zero; MAX_ERRORS / 2 + 1];
    let mut evaluator = evaluator;
    for (i, coefficient) in locator.coefficients.into_iter().enumerate() {
        if i % 2 == 1 { odd[i / 2] = coefficient } else { even[i / 2] = coefficient }
    }
    let odd = &mut odd[..degree.div_ceil(2)];
    let even = &mut even[..=degree / 2];
    let evaluator = &mut evaluator[..degree];
    let to_code = &S::factors(&tables.to_code)[0];
    let (mut roots, mut worthless) = (zero, 0);
    for (chunk, lanes) in errors.lanes.chunks_mut(PLACES).enumerate() {
        for (part, lanes) in lanes.chunks_mut(N).enumerate() {
            let place = part * N;
            let derivative = values::<S, N>(simd, [zero; N], odd, &tables.odd, place);
            let locator = values::<S, N>(simd, derivative, even, &tables.even, place);
            let mut any = 0;
            for (lanes, value) in lanes.iter_mut().zip(locator) {
                *lanes = simd.zeros(value) & valid;
                any |= *lanes;
            }
            if any == 0 {
                continue;
            }
            let evaluator = values::<S, N>(simd, [zero; N], evaluator, &tables.evaluator, place);
            for (index, lanes) in lanes.iter().enumerate() {
                if *lanes == 0 {
                    continue;
                }
                // Zero also where the derivative is: an error of no value, or a root that counts
                // twice, is none.
                let value = simd.mul(evaluator[index], simd.inverse(derivative[index]));
                worthless |= simd.zeros(value) & lanes;
                roots = simd.minus(roots, simd.equal(locator[index], zero));
                let value = simd.map(simd.split(value), to_code);
                simd.store(value, &mut errors.values, (chunk * PLACES + place + index) * S::LANES);
            }
        }
        step(simd, odd, &tables.odd);
        step(simd, even, &tables.even);
        step(simd, evaluator, &tables.evaluator);
    }
    // Good where all roots are places of the codeword. A locator of more than E has too few roots
    // for its length.
    errors.correctable = simd.zeros(simd.xor(roots, locator.degrees)) & valid & !worthless;
}

/// Adds the values of a polynomial at `N` places to `sums`.
#[inline(always)]
fn values<S: Simd, const N: usize>(
    simd: S,
    mut sums: [S::Register; N],
    coefficients: &[S::Register],
    powers: &Powers,
    place: usize,
) -> [S::Register; N] {
    let rows = S::factors(&powers.places).chunks_exact(PLACES);
    for (coefficient, row) in coefficients.iter().zip(rows) {
        accumulate(simd, &mut sums, *coefficient, &row[place..]);
    }
    sums
}

#[inline(always)]
fn step<S: Simd>(simd: S, coefficients: &mut [S::Register], powers: &Powers) {
    for (coefficient, factor) in coefficients.iter_mut().zip(S::factors(&powers.step)) {
        *coefficient = simd.map(simd.split(*coefficient), factor);
    }
}
