//! The result of a check field of a frame.

/// What a check field shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Check {
    /// The frame has no such field.
    #[default]
    None,
    /// The field agrees.
    Good,
    /// The field showed errors that it also corrected (header error control only).
    Corrected,
    /// The field disagrees.
    Bad,
}
