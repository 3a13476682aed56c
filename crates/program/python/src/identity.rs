//! Keys.

use crate::errors::IdentityError;
use pyo3::prelude::*;
use std::path::PathBuf;

/// A node's private key.
#[pyclass(frozen, module = "skyhaul")]
pub struct Identity(pub skyhaul::Identity);

#[pymethods]
impl Identity {
    /// Makes a new key.
    #[staticmethod]
    fn generate() -> PyResult<Self> {
        let made = skyhaul::Identity::generate();
        made.map(Self).map_err(|error| IdentityError::new_err(error.to_string()))
    }

    /// Reads the key from a file that `skyhaul keygen` made.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        Self::from_pem(&std::fs::read_to_string(path)?)
    }

    /// Reads the key from a text.
    #[staticmethod]
    fn from_pem(text: &str) -> PyResult<Self> {
        let read = skyhaul::Identity::from_pem(text);
        read.map(Self).map_err(|error| IdentityError::new_err(error.to_string()))
    }

    /// Returns the key as text. Keep it secret.
    fn to_pem(&self) -> String {
        self.0.to_pem()
    }

    /// The fingerprint of the key.
    #[getter]
    fn fingerprint(&self) -> String {
        self.0.fingerprint().to_string()
    }

    fn __repr__(&self) -> String {
        format!("Identity({})", self.0.fingerprint())
    }
}
