//! Whether a sample ends where its input ends.

/// Whether a sample is all that there is of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleEnd {
    /// More may come.
    Ahead,
    /// Nothing will follow.
    Reached,
}
