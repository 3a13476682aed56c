//! What became of a configuration that was read again.

/// What became of a configuration that was read again.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Adopted {
    /// What has changed, for the log.
    pub changes: Vec<String>,
    /// What has to wait for a restart.
    pub waits: Vec<String>,
}

impl Adopted {
    /// One table has to wait for a restart.
    pub fn waiting(what: &str) -> Self {
        Self { changes: Vec::new(), waits: vec![what.to_owned()] }
    }
}
