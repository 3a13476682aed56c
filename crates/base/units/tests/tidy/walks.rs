//! The walks name files and functions that exist, and the glossary names types that exist.
//!
//! Crates may lie at any depth below `crates`: nothing here counts folders.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::checkout::{none, read, root};

#[test]
fn every_stop_of_the_walks_exists() {
    let page = read("docs/walks.md");
    assert!(!page.contains("```"), "a stop is a code span, and the page has no code fence");
    let stops = stops(&page);
    assert!(stops.len() >= STOPS_MIN, "only {} stops were found", stops.len());
    none(stops.iter().filter_map(wrong_stop), "correct the stop in docs/walks.md");
}

#[test]
fn every_type_of_the_glossary_is_declared_in_its_crate() {
    let page = read("docs/glossary.md");
    let (types, mut wrong) = types(&page);
    assert!(types.len() >= TYPES_MIN, "only {} types were found", types.len());
    wrong.extend(types.into_iter().filter_map(wrong_type));
    none(wrong.into_iter(), "correct the last but one column of docs/glossary.md");
}

/// A source file, and what the page names in it: a function, a type, or `Type::method`.
struct Stop<'a> {
    file: &'a str,
    name: &'a str,
}

/// Each source file in a code span, with the code span that follows; nothing where text stands
/// between them.
fn stops(page: &str) -> Vec<Stop<'_>> {
    let parts: Vec<&str> = page.split('`').collect();
    let mut found = Vec::new();
    for (at, file) in parts.iter().copied().enumerate().skip(1).step_by(2) {
        if !file.starts_with("crates/") || !file.ends_with(".rs") {
            continue;
        }
        let name = match parts.get(at + 1..at + 3) {
            Some([between, name]) if between.trim().is_empty() => *name,
            _ => "",
        };
        found.push(Stop { file, name });
    }
    found
}

fn wrong_stop(stop: &Stop<'_>) -> Option<String> {
    let Stop { file, name } = stop;
    let Ok(text) = std::fs::read_to_string(root().join(file)) else {
        return Some(format!("{file}: there is no such file"));
    };
    if name.is_empty() {
        return Some(format!("{file}: the name in it does not follow"));
    }
    let is_there = match name.rsplit_once("::") {
        Some((of, method)) => {
            declares(&text, &["fn"], method) && words(&text).any(|word| word == of)
        }
        None => declares(&text, NAMED, name),
    };
    (!is_there).then(|| format!("{file}: it has no `{name}`"))
}

/// What the type column names, and the rows that cannot be read.
fn types(page: &str) -> (Vec<&str>, Vec<String>) {
    let (mut types, mut wrong) = (Vec::new(), Vec::new());
    for row in page.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split('|').collect();
        match cells[..] {
            [_, _, _, _, cell, _, _] => types.extend(cell.split('`').skip(1).step_by(2)),
            _ => wrong.push(format!("a row has not five cells: {row}")),
        }
    }
    (types, wrong)
}

/// `crate::Type`, or `crate::Type::method`.
fn wrong_type(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split("::").collect();
    let (name, of, method) = match parts[..] {
        [name, of] => (name, of, None),
        [name, of, method] => (name, of, Some(method)),
        _ => return Some(format!("{path}: write it as crate::Type")),
    };
    let Some(folder) = crate_folder(name) else {
        return Some(format!("{path}: there is no such crate"));
    };
    let has = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).expect("sources are text");
        declares(&text, TYPES, of) && method.is_none_or(|method| declares(&text, &["fn"], method))
    };
    (!sources(&folder.join("src")).iter().any(has))
        .then(|| format!("{path}: it is not declared there"))
}

/// Whether a line of code has one of `keywords` with `name` behind it.
fn declares(text: &str, keywords: &[&str], name: &str) -> bool {
    text.lines().any(|line| {
        let code = line.split("//").next().unwrap_or("");
        let mut pairs = words(code).zip(words(code).skip(1));
        pairs.any(|(keyword, word)| word == name && keywords.contains(&keyword))
    })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

/// The folder of a crate, however deep it lies below `crates`. No crate lies in another one.
fn crate_folder(name: &str) -> Option<PathBuf> {
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            let is_crate = path.join("Cargo.toml").is_file();
            if is_crate && path.file_name() == Some(OsStr::new(name)) {
                return Some(path);
            }
            if !is_crate && path.is_dir() {
                folders.push(path);
            }
        }
    }
    None
}

/// The Rust sources below a folder, without those of tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.file_stem() == Some(OsStr::new("tests")) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension() == Some(OsStr::new("rs")) {
                found.push(path);
            }
        }
    }
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the checkout is readable");
    entries.map(|entry| entry.expect("the checkout is readable").path()).collect()
}

/// With fewer, the page was not read as it is written.
const STOPS_MIN: usize = 60;
/// The same of the glossary.
const TYPES_MIN: usize = 40;

const TYPES: &[&str] = &["struct", "enum", "trait", "type"];

/// What a stop may name that is no method.
const NAMED: &[&str] = &["fn", "struct", "enum", "trait", "type", "const", "static", "macro_rules"];
