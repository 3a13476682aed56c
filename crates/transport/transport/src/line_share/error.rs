//! Why a shared line takes no more.

use super::shared::{LINE_PATHS_MAX, LINE_SESSIONS_MAX};

/// Why a line takes no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineShareError {
    /// All seats are taken.
    #[error("the line is shared by {LINE_SESSIONS_MAX} sessions, which is the most; close one")]
    TooManySessions,
    /// The table of paths is full.
    #[error("the line has {LINE_PATHS_MAX} paths, which is the most; remove one")]
    TooManyPaths,
}
