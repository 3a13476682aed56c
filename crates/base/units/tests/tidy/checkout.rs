//! Reads the checkout: sources, manifests, pages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Passes when `found` is empty; otherwise shows all of it and what to do.
pub fn none(found: impl Iterator<Item = String>, help: &str) {
    let found: Vec<String> = found.collect();
    assert!(found.is_empty(), "{help}:\n  {}", found.join("\n  "));
}

/// The file without what is built for tests alone.
pub fn production(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim_start() != "#[cfg(test)]" {
            kept.push_str(line);
            kept.push('\n');
            continue;
        }
        // The item ends on its line, or at the brace in the column where it began.
        let indent = line.len() - line.trim_start().len();
        let end = format!("{}}}", " ".repeat(indent));
        let mut item = lines.by_ref().skip_while(|line| line.trim_start().starts_with("#["));
        let first = item.next().unwrap_or_default();
        if !first.ends_with(';') && !first.ends_with('}') {
            let _ = item.find(|line| *line == end);
        }
    }
    kept
}

/// The crate that a path of `crates/STREET/CRATE/` lies in.
pub fn crate_of(path: &Path) -> &str {
    let below = path.starts_with("crates");
    path.iter().nth(2).filter(|_| below).and_then(|name| name.to_str()).unwrap_or("")
}

/// The Rust sources by their path from the checkout. These tests are left out: they say what they
/// ban.
pub fn sources() -> Vec<(PathBuf, String)> {
    let mut sources = files("rs");
    assert!(sources.len() > 10, "the checkout was not found");
    sources.retain(|(path, _)| !path.starts_with("crates/base/units/tests"));
    sources
}

/// Text files with `extension`, sorted by path, without what is built or ignored.
pub fn files(extension: &str) -> Vec<(PathBuf, String)> {
    let mut folders = vec![root()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the checkout is readable") {
            let path = entry.expect("the checkout is readable").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
            if BUILT.contains(&name) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().and_then(|ext| ext.to_str()).unwrap_or("") == extension
                && let Ok(text) = std::fs::read_to_string(&path)
            {
                let relative = path.strip_prefix(root()).expect("found below the root").to_owned();
                found.push((relative, text));
            }
        }
    }
    found.sort();
    found
}

pub fn manifests() -> BTreeMap<String, toml::Table> {
    let crates = files("toml").into_iter().filter(|(path, _)| {
        path.starts_with("crates") && path.ends_with("Cargo.toml") && path.iter().count() == 4
    });
    crates
        .map(|(path, text)| {
            (crate_of(&path).to_owned(), toml::from_str(&text).expect("manifests are TOML"))
        })
        .collect()
}

/// The workspace's own crates in one table of a manifest.
pub fn ours(manifest: &toml::Table, table: &str) -> Vec<String> {
    let Some(table) = manifest.get(table).and_then(toml::Value::as_table) else {
        return Vec::new();
    };
    table.keys().filter_map(|name| name.strip_prefix("skyhaul-").map(str::to_owned)).collect()
}

pub fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .canonicalize()
        .expect("the checkout exists")
}

/// What holds nothing written by hand; `.git` is a file where the checkout is one of several.
const BUILT: &[&str] =
    &[".git", "target", "artifacts", "coverage", "demo-output", ".venv", "node_modules"];
