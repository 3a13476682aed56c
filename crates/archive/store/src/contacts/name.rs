//! A station's name, safe as the name of a directory.

use crate::publish::is_plain_name;

/// A station's name: 1 to 64 letters, digits, `.`, `_` or `-`, not beginning with `.`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationName(String);

/// A text that cannot be a station's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` cannot name a station: use 1 to 64 letters, digits, `.`, `_` or `-`, not beginning \
    with `.`"
)]
pub struct StationNameError {
    text: String,
}

impl StationName {
    /// Takes a name.
    ///
    /// # Errors
    /// [`StationNameError`] if it cannot be the name of a directory on every system.
    pub fn new(text: &str) -> Result<Self, StationNameError> {
        if is_plain_name(text, LONGEST) {
            return Ok(Self(text.to_owned()));
        }
        // The text may come from a peer: a sentence quotes no more of it than this.
        Err(StationNameError {
            text: text.chars().take(LONGEST).flat_map(char::escape_default).collect(),
        })
    }

    /// This station's name with the suffix of one of its spools.
    pub(super) fn with(&self, spool: &str) -> Self {
        Self(format!("{}.{spool}", self.0))
    }

    /// The name of a folder that is a station's name, with or without the suffix of a spool.
    pub(super) fn of_space(text: &str) -> Option<Self> {
        is_plain_name(text, LONGEST + SPOOL_LONGEST).then(|| Self(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const LONGEST: usize = 64;
/// A dot and the 32 digits of a spool.
const SPOOL_LONGEST: usize = 33;

impl core::fmt::Display for StationName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_leave_the_directory_are_refused() {
        assert_eq!(StationName::new("Svalbard-2.x_1").unwrap().as_str(), "Svalbard-2.x_1");
        let long = "x".repeat(65);
        for text in ["", ".", "..", "a/b", "../a", "a\\b", ".a", "a b", "a\n", "é", long.as_str()]
        {
            let error = StationName::new(text).unwrap_err().to_string();
            assert!(error.contains("use 1 to 64") && !error.contains('\n'), "{error}");
        }
    }
}
