//! The data set that lies beside the workspace.

use std::path::{Path, PathBuf};

/// Where a file of the data set lies, if it is there.
pub fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data").join(file)
}

/// A file of the data set beside the workspace; says so where it is absent.
pub fn read(file: &str) -> Option<Vec<u8>> {
    let path = path(file);
    let bytes = std::fs::read(&path).ok();
    if bytes.is_none() {
        eprintln!("SKIPPED: {} is not there", path.display());
    }
    bytes
}
