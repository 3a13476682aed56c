//! An axis of a sweep.

/// One dimension of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// The parameter, or a word for the set of them that it changes.
    pub name: String,
    /// Its values, as they are shown.
    pub labels: Vec<String>,
}
