//! What a server is told, and what it tells.

use skyhaul_serve::ServeRoot;
use skyhaul_units::Duration;
use std::path::PathBuf;

/// The texts of the files that a server is configured with.
#[derive(Clone, Default)]
pub struct ServeFiles {
    /// The certificate with those that lead to it (PEM), and its private key; none is no TLS.
    pub tls: Option<(String, String)>,
    /// The accounts; none is no accounts.
    pub accounts: Option<String>,
}

impl core::fmt::Debug for ServeFiles {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("ServeFiles(…)")
    }
}

/// What a server has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServeNotice {
    /// A request was answered: a line for the log.
    Access(String),
    /// Something that an operator should know.
    Warning(String),
}

/// What does not change while the server runs.
#[derive(Debug)]
pub struct ServePlace {
    /// The name of the node.
    pub node: String,
    /// What addresses in answers begin with; without it, what the client calls the server.
    pub address: Option<String>,
    /// The interfaces.
    pub roots: Vec<ServeRoot>,
    /// Where the files are.
    pub products: PathBuf,
    /// A client that takes nothing for so long is closed.
    pub idle: Duration,
}
