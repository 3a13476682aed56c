//! The name of a client of the proxy.

/// A client. A later one in the same slot has another generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClientId {
    pub slot: u32,
    pub generation: u64,
}
