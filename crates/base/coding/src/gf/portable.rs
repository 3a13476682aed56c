//! Sums of products without vector instructions.

use super::Term;
use super::tables::PRODUCTS;

/// See [`super::Kernel::accumulate`].
pub fn accumulate(sum: &mut [u8], terms: &[Term<'_>]) {
    for (coefficient, slice) in terms {
        let products = &PRODUCTS[usize::from(*coefficient)];
        for (to, from) in sum.iter_mut().zip(*slice) {
            *to ^= products[usize::from(*from)];
        }
    }
}

/// See [`super::Kernel::add`].
#[inline(always)]
pub fn add(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to ^= from;
    }
}

/// See [`super::Kernel::sum`].
#[inline(always)]
pub fn sum(to: &mut [u8], from: &[u8], added: &[u8]) {
    for ((to, from), added) in to.iter_mut().zip(from).zip(added) {
        *to = from ^ added;
    }
}
