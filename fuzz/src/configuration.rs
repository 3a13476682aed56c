//! Files that people write.

use std::path::Path;

/// A node's configuration: read or refused; a refusal names the file and fits one line.
pub fn configuration(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Err(error) = skyhaul_config::parse(text, Path::new("node.toml")) {
        let sentence = error.to_string();
        assert!(sentence.contains("node.toml") && sentence.contains("; help: "), "{sentence}");
        assert!(!sentence.contains('\n'), "{sentence}");
    }
}
