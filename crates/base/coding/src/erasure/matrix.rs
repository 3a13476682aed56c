//! The coefficients of the code, and the inverse that recovers sources.
//!
//! Source i stands for the field element i, repair j for the element 255 - j; they never meet in a
//! group of at most 256 symbols. The Cauchy coefficient 1 / (x_j + y_i) is scaled in each column by
//! x_0 + y_i, which makes the row of repair 0 all ones and leaves every square part of the matrix
//! regular.

use crate::field::{EXP, LOG, ORDER, div};

/// The weight of source `source` in repair `repair`. Their sum is below 255 in a group of at most
/// 256 symbols.
pub fn coefficient(repair: u8, source: u8) -> u8 {
    div(scale(source), element(repair) ^ source)
}

/// The inverse of the part of the matrix with the rows `repairs` and the columns `missing`, row by
/// row: one row for each missing source, one column for each repair. By the closed form for Cauchy
/// matrices, in logarithms.
pub fn inverse(missing: &[u8], repairs: &[u8]) -> Vec<u8> {
    let of_repair: Vec<usize> =
        repairs.iter().map(|repair| repair_factor(*repair, missing, repairs)).collect();
    let mut inverse = Vec::with_capacity(missing.len() * repairs.len());
    for source in missing {
        let of_source = source_factor(*source, missing, repairs) + ORDER - log(scale(*source));
        for (repair, of_repair) in repairs.iter().zip(&of_repair) {
            let exponent = of_source + of_repair + ORDER - log(element(*repair) ^ source);
            inverse.push(EXP[exponent % ORDER]);
        }
    }
    inverse
}

/// log of the product of (x_j + y_k) over all missing k, divided by that of (x_j + x_k) over the
/// other repairs.
fn repair_factor(repair: u8, missing: &[u8], repairs: &[u8]) -> usize {
    let x = element(repair);
    let above: usize = missing.iter().map(|source| log(x ^ source)).sum();
    let others = repairs.iter().filter(|other| **other != repair);
    let below: usize = others.map(|other| ORDER - log(x ^ element(*other))).sum();
    (above + below) % ORDER
}

/// log of the product of (x_k + y_i) over all repairs k, divided by that of (y_i + y_k) over the
/// other missing.
fn source_factor(source: u8, missing: &[u8], repairs: &[u8]) -> usize {
    let above: usize = repairs.iter().map(|repair| log(element(*repair) ^ source)).sum();
    let others = missing.iter().filter(|other| **other != source);
    let below: usize = others.map(|other| ORDER - log(source ^ other)).sum();
    (above + below) % ORDER
}

/// The field element that a repair stands for.
const fn element(repair: u8) -> u8 {
    255 - repair
}

/// What a source's column is multiplied with.
const fn scale(source: u8) -> u8 {
    element(0) ^ source
}

/// Of an element that is not zero.
fn log(element: u8) -> usize {
    usize::from(LOG[usize::from(element)])
}
