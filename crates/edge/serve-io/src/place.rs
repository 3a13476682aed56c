//! What a server is told, and what it tells.

use skyhaul_serve::{ContactSession, ServeRoot};
use skyhaul_units::Duration;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The texts of the files that a server is configured with.
#[derive(Clone, Default)]
pub struct ServeFiles {
    /// The certificate with those that lead to it (PEM), and its private key; none is no TLS.
    pub tls: Option<(String, String)>,
    /// The accounts; none is no accounts.
    pub accounts: Option<String>,
    /// Whether other users can read the accounts.
    pub is_exposed: bool,
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

/// Products that are served.
#[derive(Debug, Clone)]
pub struct ServedProducts {
    /// The file of the catalogue.
    pub catalogue: PathBuf,
    /// The folder of the files.
    pub folder: PathBuf,
}

/// Contacts that are offered.
#[derive(Debug, Clone)]
pub struct ServedContacts {
    /// Where their files are.
    pub folder: PathBuf,
    /// What is said of them.
    pub board: Arc<SessionBoard>,
}

/// The contacts that are offered now.
#[derive(Debug, Default)]
pub struct SessionBoard {
    shown: Mutex<Vec<Arc<ContactSession>>>,
}

impl SessionBoard {
    /// Shows these, by their numbers.
    pub fn show(&self, sessions: Vec<Arc<ContactSession>>) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = sessions;
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<ContactSession>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
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
    /// Products that are served.
    pub products: Option<ServedProducts>,
    /// Contacts that are offered.
    pub contacts: Option<ServedContacts>,
    /// A client that takes nothing for so long is closed.
    pub idle: Duration,
}
