//! Users and tokens as they are shown: without a secret.

use super::role::WebRole;

/// A user of the file, without the hash of the password.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct KnownWebUser {
    /// The name.
    pub name: String,
    /// The role.
    pub role: WebRole,
    /// When it was made.
    pub created: String,
}

/// A token of the file, without its digest.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct KnownWebToken {
    /// The name.
    pub name: String,
    /// The role.
    pub role: WebRole,
    /// When it was made.
    pub created: String,
    /// When it expires, if it does.
    pub expires: Option<String>,
    /// When it was last used, to within a minute; none where the node does not know.
    pub last_used: Option<String>,
}
