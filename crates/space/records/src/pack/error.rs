//! Why a packed block is refused.

/// Why bytes are no packed block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnpackError {
    /// It ends too early.
    #[error("the packed block ends too early")]
    Truncated,
    /// It would grow beyond what a block may have.
    #[error("the packed block is of more than {most} bytes")]
    TooLong {
        /// The most that was allowed.
        most: usize,
    },
    /// A field that contradicts another.
    #[error("the packed block is damaged at its {0}")]
    Damaged(&'static str),
}
