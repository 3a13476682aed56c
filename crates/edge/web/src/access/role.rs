//! What somebody may do at the page of a node.

use serde::{Deserialize, Serialize};

/// A role. Each has what those before it have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WebRole {
    /// Reads `/metrics` and `/readyz`.
    Metrics,
    /// Sees every figure of the node.
    Viewer,
    /// Gives orders.
    Operator,
    /// Sees who ordered what.
    Admin,
}

impl WebRole {
    /// All of them, the least first.
    pub const ALL: [Self; 4] = [Self::Metrics, Self::Viewer, Self::Operator, Self::Admin];

    /// Its name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

impl core::fmt::Display for WebRole {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

impl core::str::FromStr for WebRole {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|role| role.name() == text);
        found.ok_or_else(|| {
            let shown = skyhaul_units::printable(text, 32);
            format!("there is no role `{shown}`; write metrics, viewer, operator or admin")
        })
    }
}
