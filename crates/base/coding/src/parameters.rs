//! Parameters of a Reed-Solomon code (CCSDS 131.0-B 4.3).

/// Greatest interleave depth that the standard knows.
pub const MAX_INTERLEAVE: usize = 8;

/// How many symbols of a codeword can be corrected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Correction {
    /// (255,239): 8 symbols.
    E8,
    /// (255,223): 16 symbols.
    E16,
}

impl Correction {
    /// Correctable symbols of a codeword, E.
    pub const fn symbols(self) -> usize {
        match self {
            Self::E8 => 8,
            Self::E16 => 16,
        }
    }
    /// Check symbols of a codeword, 2 E.
    pub const fn check_len(self) -> usize {
        2 * self.symbols()
    }
    /// The generator's first root is alpha^(11 j) with this j.
    pub(crate) const fn first_root(self) -> usize {
        128 - self.symbols()
    }
}

/// How a symbol's eight bits stand for an element of GF(256).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Basis {
    /// Berlekamp's dual basis: what the standard transmits (CCSDS 131.0-B 4.3.9).
    Dual,
    /// Powers of alpha.
    Conventional,
}

/// What a block is coded with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parameters {
    /// Correctable symbols of a codeword.
    pub correction: Correction,
    /// Representation of the symbols.
    pub basis: Basis,
    /// Codewords of a block: 1, 2, 3, 4, 5 or 8.
    pub interleave: usize,
    /// Zero bytes assumed at the start of the block and not sent, over all codewords: a multiple of
    /// `interleave`.
    pub virtual_fill: usize,
}

/// Why coding parameters were refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// The interleave depth is not one of the standard.
    #[error("interleave depth {0} does not exist; it is one of 1, 2, 3, 4, 5, 8")]
    Interleave(usize),
    /// The virtual fill cannot be shared out or leaves no data.
    #[error(
        "virtual fill {fill} must be a multiple of the interleave depth {interleave} and leave \
        data in each codeword"
    )]
    VirtualFill {
        /// Fill over all codewords, in bytes.
        fill: usize,
        /// Interleave depth.
        interleave: usize,
    },
}
