//! An erasure code for datagrams: from `k` source symbols any number of repair symbols, up to 256
//! in all, so that any `k` of them give the sources back (maximum distance separable).
//!
//! The sources are sent as they are (systematic). A repair symbol is the sum of coefficient ×
//! source over GF(2^8), and the coefficient depends on the two indices alone, not on how many
//! sources or repairs there are: a group may be closed at any size, and repairs made one at a time.
//! The coefficients are a Cauchy matrix (J. Blömer and others, "An XOR-based erasure-resilient
//! coding scheme", 1995) whose columns are scaled so that repair 0 is the plain sum.
//!
//! Symbols may differ in length: a shorter one counts as if zeros followed. What must know the
//! length again has to code it.
//!
//! ```
//! use skyhaul_coding::erasure::{Recovery, repair};
//! let sources: [&[u8]; 3] = [b"one", b"two", b"three"];
//! let repairs: Vec<Vec<u8>> = (0..2).map(|index| repair(index, &sources, 5)).collect();
//! // The first and the last are lost.
//! let recovery = Recovery::new(3, &[0, 2], &[0, 1])?;
//! let found = recovery.solve(&[&[], b"two", &[]], &[&repairs[0], &repairs[1]]);
//! assert_eq!(found, [b"one\0\0", b"three"]);
//! # Ok::<(), skyhaul_coding::erasure::Unsolvable>(())
//! ```

mod matrix;
#[cfg(test)]
mod tests;

use crate::gf::{Kernel, Term};
use matrix::{coefficient, inverse};

/// Sources and repairs of one group together: the elements of the field.
pub const SYMBOLS_MAX: usize = 256;

/// Sources of one group: one element is left for a repair.
pub const SOURCES_MAX: usize = SYMBOLS_MAX - 1;

/// Why a group cannot be solved with these symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsolvable {
    /// Fewer or more repairs than missing sources were named.
    #[error("{missing} sources are missing and {repairs} repairs were given: as many are needed")]
    Unequal {
        /// Sources missing.
        missing: usize,
        /// Repairs given.
        repairs: usize,
    },
    /// An index stands outside the group, or the same one stands twice.
    #[error("an index lies outside the group or is not above the one before it")]
    Index,
}

/// The repair symbol `index` of `sources`, of `len` bytes.
///
/// # Panics
/// Where the group has no such symbol: `sources` and `index` need `sources.len() + index < 256`.
pub fn repair(index: u8, sources: &[&[u8]], len: usize) -> Vec<u8> {
    let mut symbol = vec![0; len];
    let terms: Vec<Term<'_>> =
        sources.iter().enumerate().map(|(source, bytes)| (weight(index, source), *bytes)).collect();
    Kernel::best().accumulate(&mut symbol, &terms);
    symbol
}

/// Repair symbols that grow while the sources of their group come in.
#[derive(Debug, Clone)]
pub struct ErasureEncoder {
    sources: usize,
    repairs: Vec<Vec<u8>>,
    kernel: Kernel,
}

impl ErasureEncoder {
    /// For `repairs` repair symbols of `len` bytes each.
    pub fn new(repairs: u8, len: usize) -> Self {
        Self {
            sources: 0,
            repairs: vec![vec![0; len]; usize::from(repairs)],
            kernel: Kernel::best(),
        }
    }

    /// Adds the next source.
    ///
    /// # Panics
    /// Where the group would have more than [`SYMBOLS_MAX`] symbols.
    pub fn add(&mut self, source: &[u8]) {
        for (index, repair) in self.repairs.iter_mut().enumerate() {
            self.kernel.accumulate(repair, &[(weight(index as u8, self.sources), source)]);
        }
        self.sources += 1;
    }

    /// Sources added so far.
    pub fn sources(&self) -> usize {
        self.sources
    }

    /// Closes the group and gives its repair symbols, in the order of their index.
    pub fn finish(self) -> Vec<Vec<u8>> {
        self.repairs
    }
}

/// How the missing sources of a group come from what arrived.
#[derive(Debug, Clone)]
pub struct Recovery {
    sources: usize,
    missing: Vec<u8>,
    repairs: Vec<u8>,
    /// Row by row: the share of each repair, cleared of the sources that arrived, in each missing
    /// source.
    inverse: Vec<u8>,
}

impl Recovery {
    /// For a group of `sources` sources of which those at the indices `missing` did not arrive,
    /// with as many repair symbols, of the indices `repairs`. Both lists ascend.
    ///
    /// # Errors
    /// The lists differ in length, do not ascend, or name symbols outside the group.
    pub fn new(sources: usize, missing: &[u8], repairs: &[u8]) -> Result<Self, Unsolvable> {
        if missing.len() != repairs.len() {
            return Err(Unsolvable::Unequal { missing: missing.len(), repairs: repairs.len() });
        }
        let ascends = |list: &[u8]| list.windows(2).all(|pair| pair[0] < pair[1]);
        let inside = sources <= SOURCES_MAX
            && missing.last().is_none_or(|last| usize::from(*last) < sources)
            && repairs.last().is_none_or(|last| usize::from(*last) + sources < SYMBOLS_MAX);
        if !inside || !ascends(missing) || !ascends(repairs) {
            return Err(Unsolvable::Index);
        }
        let inverse = inverse(missing, repairs);
        Ok(Self { sources, missing: missing.to_vec(), repairs: repairs.to_vec(), inverse })
    }

    /// The missing sources, in the order of their index, each as long as the longest repair.
    /// `sources` has what arrived at its index and empty slices for what did not; `repairs` are in
    /// the order of their index.
    ///
    /// # Panics
    /// Where the slices are not as many as [`Self::new`] was told.
    pub fn solve(&self, sources: &[&[u8]], repairs: &[&[u8]]) -> Vec<Vec<u8>> {
        assert_eq!(
            (sources.len(), repairs.len()),
            (self.sources, self.repairs.len()),
            "slices for every index"
        );
        let kernel = Kernel::best();
        let len = repairs.iter().map(|repair| repair.len()).max().unwrap_or(0);
        let cleared: Vec<Vec<u8>> = self
            .repairs
            .iter()
            .zip(repairs)
            .map(|(index, repair)| self.clear(*index, repair, sources, len))
            .collect();
        let rows = self.inverse.chunks_exact(self.missing.len().max(1));
        rows.map(|row| {
            let terms: Vec<Term<'_>> =
                row.iter().copied().zip(cleared.iter().map(Vec::as_slice)).collect();
            let mut source = vec![0; len];
            kernel.accumulate(&mut source, &terms);
            source
        })
        .collect()
    }

    /// The repair less the share of what arrived.
    fn clear(&self, index: u8, repair: &[u8], sources: &[&[u8]], len: usize) -> Vec<u8> {
        let mut rest = repair.to_vec();
        rest.resize(len, 0);
        let arrived = sources.iter().enumerate().filter(|(_, bytes)| !bytes.is_empty());
        let terms: Vec<Term<'_>> = arrived
            .filter(|(source, _)| self.missing.binary_search(&(*source as u8)).is_err())
            .map(|(source, bytes)| (coefficient(index, source as u8), *bytes))
            .collect();
        Kernel::best().accumulate(&mut rest, &terms);
        rest
    }
}

/// The coefficient of a source in a repair.
fn weight(repair: u8, source: usize) -> u8 {
    assert!(usize::from(repair) + source < SYMBOLS_MAX - 1, "a group has at most 256 symbols");
    coefficient(repair, source as u8)
}
