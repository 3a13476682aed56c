//! What becomes of a configuration that was read again.

/// What a part of a node does with a configuration that was read again. Nothing has changed yet.
#[derive(Debug)]
pub struct ReloadPlan<C> {
    /// The configuration that is in force then: the old one with all of the new one that can change
    /// while the node runs.
    pub in_force: C,
    /// What has to wait for a restart: where `in_force` differs from the file.
    pub waits: Vec<String>,
}

/// What became of a configuration that was read again.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Adopted {
    /// What has changed, for the log.
    pub changes: Vec<String>,
    /// What has to wait for a restart.
    pub waits: Vec<String>,
}

/// The names of the tables that differ.
pub fn differing<const N: usize>(tables: [(bool, &str); N]) -> Vec<String> {
    let differ = tables.into_iter().filter(|(differs, _)| *differs);
    differ.map(|(_, name)| name.to_owned()).collect()
}
