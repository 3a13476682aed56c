//! A path that a program wants.

use skyhaul_transport::PathOptions;
use std::net::SocketAddr;

/// A path to another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathChoice {
    /// The index in [`Setup::bind`](crate::Setup::bind) of the socket that it begins at.
    pub socket: usize,
    /// The far end's address.
    pub remote: SocketAddr,
    /// How the session may use it.
    pub options: PathOptions,
}
