//! From syndromes to errors: Berlekamp-Massey, Chien's search, Forney's formula.

use crate::field::{EXP, LOG, ORDER, div, mul, mul_exp};

/// Most symbols a codeword can have corrected.
pub(crate) const MAX_ERRORS: usize = 16;
const MAX_CHECK: usize = 2 * MAX_ERRORS;

/// The code's roots are alpha^(11 j): primitive element alpha^11 (CCSDS 131.0-B 4.3).
pub(crate) const PRIMITIVE: usize = 11;

/// Errors found: place counted from the last symbol of the codeword, and the value to XOR (conventional basis).
#[derive(Debug, Default)]
pub(crate) struct Errors {
    pub count: usize,
    pub places: [u8; MAX_ERRORS],
    pub values: [u8; MAX_ERRORS],
}

/// The errors that explain `syndromes` of a codeword of `length` symbols whose first root is alpha^(11
/// `first_root`); `None` where more than half as many errors as syndromes occurred.
pub(crate) fn solve(syndromes: &[u8], first_root: usize, length: usize) -> Option<Errors> {
    let max_errors = syndromes.len() / 2;
    let (locator, degree) = berlekamp_massey(syndromes);
    if degree == 0 || degree > max_errors {
        return None;
    }
    let evaluator = evaluator(syndromes, &locator, degree);
    let mut errors = Errors::default();
    for place in 0..length {
        // The locator's root belonging to place p is beta^-p, with beta = alpha^11.
        let inverse = (ORDER - PRIMITIVE * place % ORDER) % ORDER;
        if eval(&locator[..=degree], inverse) != 0 {
            continue;
        }
        // Forney: value = X^(1 - first_root) * evaluator(X^-1) / locator'(X^-1).
        let derivative = derivative_at(&locator[..=degree], inverse);
        if derivative == 0 || errors.count == degree {
            return None;
        }
        let scale = PRIMITIVE * place % ORDER * ((ORDER + 1 - first_root % ORDER) % ORDER) % ORDER;
        let value = mul_exp(div(eval(&evaluator[..degree], inverse), derivative), scale);
        if value == 0 {
            return None;
        }
        errors.places[errors.count] = place as u8;
        errors.values[errors.count] = value;
        errors.count += 1;
    }
    (errors.count == degree).then_some(errors)
}

/// The shortest linear recurrence of the syndromes, as the locator's coefficients and its degree.
fn berlekamp_massey(syndromes: &[u8]) -> ([u8; MAX_CHECK + 1], usize) {
    let mut locator = [0u8; MAX_CHECK + 1];
    let mut previous = [0u8; MAX_CHECK + 1];
    locator[0] = 1;
    previous[0] = 1;
    let (mut degree, mut gap, mut last_discrepancy) = (0usize, 1usize, 1u8);
    for n in 0..syndromes.len() {
        let discrepancy = (0..=degree).fold(0, |sum, i| sum ^ mul(locator[i], syndromes[n - i]));
        if discrepancy == 0 {
            gap += 1;
            continue;
        }
        let factor = div(discrepancy, last_discrepancy);
        let before = locator;
        for i in gap..=syndromes.len() {
            locator[i] ^= mul(factor, previous[i - gap]);
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
        *coefficient = (0..=i).fold(0, |sum, k| sum ^ mul(syndromes[k], locator[i - k]));
    }
    evaluator
}

/// The polynomial (lowest coefficient first) at alpha^`exponent`.
fn eval(polynomial: &[u8], exponent: usize) -> u8 {
    polynomial.iter().rev().fold(0, |sum, coefficient| mul_exp(sum, exponent) ^ coefficient)
}

/// The formal derivative of the polynomial at alpha^`exponent`: only odd powers stay in characteristic 2.
fn derivative_at(polynomial: &[u8], exponent: usize) -> u8 {
    let mut sum = 0;
    for (power, coefficient) in polynomial.iter().enumerate().skip(1).step_by(2) {
        if *coefficient != 0 {
            sum ^= EXP[(usize::from(LOG[usize::from(*coefficient)]) + exponent * (power - 1)) % ORDER];
        }
    }
    sum
}
