//! The error locators of codewords in lanes: Berlekamp's and Massey's algorithm.

use crate::key_equation::MAX_ERRORS;
use crate::vector::Simd;

/// Most syndromes.
pub(super) const MAX_SYNDROMES: usize = 2 * MAX_ERRORS;

/// The polynomial that has a root for each wrong symbol.
pub(super) struct Locator<R> {
    /// Lowest first; those above E are left out.
    pub coefficients: [R; MAX_ERRORS + 1],
    /// How many wrong symbols it claims. More than E where there is no locator.
    pub degrees: R,
}

/// The shortest linear recurrence of the syndromes of each lane (Massey, "Shift-register synthesis
/// and BCH decoding", 1969), with the last discrepancy's inverse at hand instead of a division.
/// `count` of them are valid.
#[inline(always)]
pub(super) fn locator<S: Simd>(
    simd: S,
    syndromes: &[S::Register; MAX_SYNDROMES],
    count: usize,
) -> Locator<S::Register> {
    let most = count / 2;
    let (zero, one) = (simd.splat(0), simd.splat(1));
    let mut current = [zero; MAX_ERRORS + 1];
    current[0] = one;
    // x^gap times the recurrence before the last change of length.
    let mut previous = current;
    let mut inverse = one;
    let mut degrees = zero;
    for n in 0..count {
        let mut discrepancy = zero;
        for i in 0..=n.min(most) {
            discrepancy = simd.xor(discrepancy, simd.mul(current[i], syndromes[n - i]));
        }
        let top = most.min(n + 1);
        for i in (0..top).rev() {
            previous[i + 1] = previous[i];
        }
        previous[0] = zero;
        let factor = simd.mul(discrepancy, inverse);
        // Longer where the discrepancy is not zero and 2 L <= n; the mask is empty where it is
        // zero.
        let short = simd.at_most(degrees, simd.splat((n / 2) as u8));
        let longer = simd.select(simd.equal(discrepancy, zero), zero, short);
        for i in 0..=top {
            let next = simd.xor(current[i], simd.mul(factor, previous[i]));
            previous[i] = simd.select(longer, current[i], previous[i]);
            current[i] = next;
        }
        inverse = simd.select(longer, simd.inverse(discrepancy), inverse);
        let length = simd.minus(simd.splat((n + 1) as u8), degrees);
        degrees = simd.select(longer, length, degrees);
    }
    Locator { coefficients: current, degrees }
}

/// The first `count` coefficients of syndromes(x) × locator(x), the others zero.
#[inline(always)]
pub(super) fn evaluator<S: Simd>(
    simd: S,
    syndromes: &[S::Register; MAX_SYNDROMES],
    locator: &Locator<S::Register>,
    count: usize,
) -> [S::Register; MAX_ERRORS] {
    let mut evaluator = [simd.splat(0); MAX_ERRORS];
    for (i, coefficient) in evaluator.iter_mut().enumerate().take(count) {
        for (k, syndrome) in syndromes.iter().enumerate().take(i + 1) {
            *coefficient = simd.xor(*coefficient, simd.mul(*syndrome, locator.coefficients[i - k]));
        }
    }
    evaluator
}
