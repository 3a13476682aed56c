//! Why a channel cannot be used.

/// Why a channel cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppChannelError {
    /// It has ended, or could not be opened.
    #[error("the channel is closed: {0}")]
    Closed(String),
    /// The session does not take the block.
    #[error("{0}")]
    Block(String),
}
