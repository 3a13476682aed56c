//! How a command prints what it does.

/// For whom a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// Text for people.
    Text,
    /// Lines of JSON for programs.
    Json,
}

impl From<bool> for OutputFormat {
    /// By the flag `--json`.
    fn from(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}
