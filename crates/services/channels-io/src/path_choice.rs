//! A path that a program wants.

use skyhaul_transport::PathOptions;
use std::net::SocketAddr;

/// A path to another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathChoice {
    /// The socket that it begins at: an index in [`ClientSetup::bind`](crate::ClientSetup::bind).
    pub socket: usize,
    /// The far end's address.
    pub remote: SocketAddr,
    /// How the session may use it.
    pub options: PathOptions,
}
