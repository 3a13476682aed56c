//! A cell's parameters as they stand in the file, and why they are refused.

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

/// A cell's parameters: the fixed ones and those of the sweep.
#[derive(Debug, Clone)]
pub struct CellParameters<'a> {
    pub(super) table: DeTable<'a>,
    pub(super) span: core::ops::Range<usize>,
}

impl CellParameters<'_> {
    /// The parameters as a kind wants them. Errors know their place in the file.
    ///
    /// # Errors
    /// A parameter is unknown, missing or of another form.
    pub fn read<T: DeserializeOwned>(self) -> Result<T, ParametersRefused> {
        Ok(T::deserialize(Deserializer::from(Spanned::new(self.span, self.table)))?)
    }
}

/// Why a cell's parameters were refused, in a sentence: what is wrong, then `; ` and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParametersRefused {
    /// The sentence.
    pub sentence: String,
    /// Which byte of the file is to blame; where none is, the parameters as a whole are.
    pub at: Option<usize>,
}

impl ParametersRefused {
    /// The parameters do not go together.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), at: None }
    }
}

impl From<toml::de::Error> for ParametersRefused {
    fn from(error: toml::de::Error) -> Self {
        Self { sentence: error.message().to_owned(), at: error.span().map(|span| span.start) }
    }
}
