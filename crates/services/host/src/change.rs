//! What to change of a host's settings, and the way back.

/// A change of one setting of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SettingChange {
    /// As `sysctl` calls it.
    pub key: String,
    /// What to set.
    pub to: String,
    /// What it was: the way back.
    pub from: String,
}
