//! From syndromes to errors, one codeword at a time: Berlekamp-Massey, Chien's search, Forney's
//! formula.

use crate::field::{EXP, ORDER, div, mul_exp};
use crate::gf::products;

/// Most symbols a codeword can have corrected.
pub(crate) const MAX_ERRORS: usize = 16;
const MAX_CHECK: usize = 2 * MAX_ERRORS;

/// The code's roots are alpha^(11 j): primitive element alpha^11 (CCSDS 131.0-B 4.3).
pub(crate) const PRIMITIVE: usize = 11;

/// Errors found: place counted from the last symbol of the codeword, and the value to XOR
/// (conventional basis).
#[derive(Debug, Default)]
pub(crate) struct Errors {
    pub count: usize,
    pub places: [u8; MAX_ERRORS],
    pub values: [u8; MAX_ERRORS],
}

/// The syndromes of a codeword of which `remainder`, in the conventional basis, is left by the
/// generator with the roots beta^`first_root` ..: as many as it has symbols.
pub(crate) fn syndromes(remainder: &[u8], first_root: usize) -> [u8; MAX_CHECK] {
    let mut syndromes = [0u8; MAX_CHECK];
    let rows: [&[u8; 256]; MAX_CHECK] =
        core::array::from_fn(|j| products(EXP[PRIMITIVE * (first_root + j) % ORDER]));
    // All roots side by side, so that the processor overlaps their look-ups.
    for symbol in remainder {
        for (syndrome, row) in syndromes.iter_mut().zip(rows) {
            *syndrome = row[usize::from(*syndrome)] ^ symbol;
        }
    }
    syndromes[remainder.len()..].fill(0);
    syndromes
}

/// The errors that explain `syndromes` of a codeword of `length` symbols whose first root is
/// alpha^(11 `first_root`); `None` where more than half as many errors as syndromes occurred.
pub(crate) fn solve(syndromes: &[u8], first_root: usize, length: usize) -> Option<Errors> {
    let max_errors = syndromes.len() / 2;
    let (locator, degree) = berlekamp_massey(syndromes);
    if degree == 0 || degree > max_errors {
        return None;
    }
    let evaluator = evaluator(syndromes, &locator, degree);
    let mut errors = Errors::default();
    // The locator's terms at beta^-place, where its root for an error there is; beta = alpha^11.
    let mut terms = [0u8; MAX_ERRORS];
    terms[..degree].copy_from_slice(&locator[1..=degree]);
    let steps: [&[u8; 256]; MAX_ERRORS] =
        core::array::from_fn(|i| products(EXP[ORDER - PRIMITIVE * (i + 1) % ORDER]));
    for place in 0..length {
        if terms[..degree].iter().fold(1, |sum, term| sum ^ term) == 0 {
            // Forney: X^(1 - first_root) evaluator(1/X) / locator'(1/X); the odd terms' sum is
            // locator'(1/X) / X.
            let odd = terms[..degree].iter().step_by(2).fold(0, |sum, term| sum ^ term);
            let inverse = (ORDER - PRIMITIVE * place % ORDER) % ORDER;
            let value = eval(&evaluator[..degree], inverse);
            if odd == 0 || value == 0 {
                return None;
            }
            errors.places[errors.count] = place as u8;
            errors.values[errors.count] = mul_exp(div(value, odd), inverse * first_root % ORDER);
            errors.count += 1;
            if errors.count == degree {
                // A polynomial has no more roots than its degree.
                return Some(errors);
            }
        }
        for (term, step) in terms[..degree].iter_mut().zip(steps) {
            *term = step[usize::from(*term)];
        }
    }
    None
}

/// The shortest linear recurrence of the syndromes, as the locator's coefficients and its degree.
fn berlekamp_massey(syndromes: &[u8]) -> ([u8; MAX_CHECK + 1], usize) {
    let mut locator = [0u8; MAX_CHECK + 1];
    let mut previous = [0u8; MAX_CHECK + 1];
    locator[0] = 1;
    previous[0] = 1;
    let (mut degree, mut gap, mut last_discrepancy) = (0usize, 1usize, 1u8);
    for n in 0..syndromes.len() {
        let terms = locator[..=degree].iter().zip(syndromes[..=n].iter().rev());
        let discrepancy = terms.fold(0, |sum, (a, b)| sum ^ products(*a)[usize::from(*b)]);
        if discrepancy == 0 {
            gap += 1;
            continue;
        }
        let row = products(div(discrepancy, last_discrepancy));
        let before = locator;
        // The earlier one has a lower degree than this step can have.
        for (to, from) in locator[gap..=n + 1].iter_mut().zip(previous) {
            *to ^= row[usize::from(from)];
        }
        if 2 * degree <= n {
            degree = n + 1 - degree;
            previous = before;
            last_discrepancy = discrepancy;
            gap = 1;
        } else {
            gap += 1;
        }
    }
    (locator, degree)
}

/// syndromes(x) × locator(x) mod x^degree: higher terms vanish when the locator is right.
fn evaluator(syndromes: &[u8], locator: &[u8], degree: usize) -> [u8; MAX_ERRORS] {
    let mut evaluator = [0u8; MAX_ERRORS];
    for (i, coefficient) in evaluator.iter_mut().enumerate().take(degree) {
        *coefficient =
            (0..=i).fold(0, |sum, k| sum ^ products(syndromes[k])[usize::from(locator[i - k])]);
    }
    evaluator
}

/// The polynomial (lowest coefficient first) at alpha^`exponent`.
fn eval(polynomial: &[u8], exponent: usize) -> u8 {
    polynomial.iter().rev().fold(0, |sum, coefficient| mul_exp(sum, exponent) ^ coefficient)
}
