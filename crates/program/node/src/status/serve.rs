//! The server of products.

use serde::{Deserialize, Serialize};

/// The server of products.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServeStatus {
    /// Where it listens.
    pub address: String,
    /// Connections now.
    pub connections: u32,
    /// Requests that were answered with a success.
    pub answered: u64,
    /// Bytes of answers that went out.
    pub bytes: u64,
    /// Connections that were closed at once, because there were too many.
    pub refused_connections: u64,
    /// Requests without a valid token.
    pub unauthorized: u64,
    /// Requests beyond the budget of their account.
    pub over_budget: u64,
    /// Other requests that were refused, or could not be answered.
    pub refused: u64,
    /// Connections that were closed because their client took nothing.
    pub stalled: u64,
    /// The accounts.
    pub accounts: Vec<ServeAccountStatus>,
}

/// An account of the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServeAccountStatus {
    /// Its name.
    pub name: String,
    /// Requests that are being answered.
    pub requests: u32,
    /// Requests that were answered with a success.
    pub answered: u64,
    /// Bytes of answers that went out.
    pub bytes: u64,
}
