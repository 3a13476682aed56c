//! Names of files and types: words that types no longer have (docs/glossary.md), names that say
//! nothing.

use std::path::Path;

use crate::checkout::{none, production, sources};
use crate::parsed::is_production;

#[test]
fn no_module_has_a_name_that_says_nothing() {
    let vague = sources().into_iter().filter(|(path, _)| {
        path.iter().any(|part| {
            VAGUE.contains(&Path::new(part).file_stem().and_then(|s| s.to_str()).unwrap_or(""))
        })
    });
    none(vague.map(|(path, _)| path.display().to_string()), "name it by what it holds");
}

/// One style: `name.rs` with its parts in `name/`. What several examples or test binaries share
/// needs the other one: cargo takes each file beside them for a binary.
#[test]
fn a_module_is_a_file_of_its_name() {
    let other = sources().into_iter().filter(|(path, _)| {
        let shared =
            path.iter().any(|part| part == "examples") || path.ends_with("tests/support/mod.rs");
        path.ends_with("mod.rs") && !shared
    });
    none(other.map(|(path, _)| path.display().to_string()), "name it by its module: name.rs");
}

#[test]
fn no_type_has_a_retired_name() {
    let mut found = Vec::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| is_production(path)) {
        for line in production(&text).lines() {
            let Some(name) = declared(line) else { continue };
            if let Some((_, instead)) = RETIRED.iter().find(|(retired, _)| *retired == name) {
                found.push(format!("{}: {name}: say {instead}", path.display()));
            }
        }
    }
    none(found.into_iter(), "take the word of docs/glossary.md");
}

/// The name of the type that a line declares.
fn declared(line: &str) -> Option<&str> {
    let mut words = line
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !["", "pub", "crate", "super", "in"].contains(word));
    let kind = words.next()?;
    ["struct", "enum", "trait", "type"].contains(&kind).then(|| words.next())?
}

const VAGUE: &[&str] =
    &["common", "core", "util", "utils", "helper", "helpers", "manager", "types"];

/// The retired name, and what is said in its place.
const RETIRED: &[(&str, &str)] = &[
    ("Engine", "SessionManager"),
    ("Carrier", "Endpoint"),
    ("TlsPath", "TcpPath"),
    ("Lent", "SharedSession"),
    ("Lending", "SharedSession"),
    ("Door", "ChannelService"),
    ("Guests", "Tenants"),
    ("Bridge", "ChannelDriver"),
    ("Exchange", "Client"),
    ("Book", "AssemblyJournal"),
    ("Note", "ContactSummary"),
    ("Standing", "PendingProduct"),
    ("Course", "what runs, by its field's term"),
    ("Given", "what it is"),
    ("Said", "what it is"),
    ("Told", "what it is"),
    ("Heard", "what it is"),
    ("Lacks", "Missing…"),
    ("Whose", "Owner"),
    ("Brought", "FrameRuns"),
];
