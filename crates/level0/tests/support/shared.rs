//! The data set that lies beside the workspace.

/// A file of the data set beside the workspace; says so where it is absent.
pub fn read(file: &str) -> Option<Vec<u8>> {
    let path = format!("{}/../../../shared/data/{file}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).ok();
    if bytes.is_none() {
        eprintln!("SKIPPED: {path} is not there");
    }
    bytes
}
