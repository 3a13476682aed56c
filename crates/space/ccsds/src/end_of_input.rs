//! Whether the bytes that are given are the last of an input.

/// Whether more bytes may follow those that are given: a file is read piece by piece, and a live
/// input is identified from a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndOfInput {
    /// More may follow.
    Ahead,
    /// They are the last.
    Reached,
}
