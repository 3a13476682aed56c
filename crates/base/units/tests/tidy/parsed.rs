//! Reads each file of production once, for all tests: to parse everything takes seconds.

use std::path::Path;
use std::sync::OnceLock;

use crate::checkout::{crate_of, sources};
use crate::circles::Uses;
use crate::shapes::Shapes;

/// What the tests want to know of one file.
pub struct ParsedFile {
    pub krate: String,
    pub shapes: Shapes,
    pub uses: Uses,
}

/// All of them, sorted by path.
pub fn parsed() -> &'static [ParsedFile] {
    static ALL: OnceLock<Vec<ParsedFile>> = OnceLock::new();
    ALL.get_or_init(|| {
        let production = sources().into_iter().filter(|(path, _)| is_production(path));
        production.map(|(path, text)| ParsedFile::of(&path, &text)).collect()
    })
}

impl ParsedFile {
    fn of(path: &Path, text: &str) -> Self {
        let file = syn::parse_file(text).expect("sources compile");
        Self {
            krate: crate_of(path).to_owned(),
            shapes: Shapes::of(path, &file),
            uses: Uses::of(path, &file),
        }
    }
}

pub fn is_production(path: &Path) -> bool {
    let tests = path.iter().any(|part| part == "tests") || path.ends_with("tests.rs");
    !crate_of(path).is_empty() && path.iter().nth(3).is_some_and(|part| part == "src") && !tests
}

/// Whether an item is built for tests alone.
pub fn for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        list.path.is_ident("cfg") && list.tokens.to_string() == "test"
    })
}
