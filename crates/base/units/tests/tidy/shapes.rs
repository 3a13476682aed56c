//! The shape of types and functions: fields, methods, parameters.

use std::collections::BTreeMap;
use std::path::Path;

use syn::visit::{self, Visit};

use crate::checkout::{crate_of, none, sources};
use crate::parsed::{for_tests, parsed};

#[test]
fn structs_have_few_fields() {
    let found = shapes()
        .flat_map(|of| &of.fields)
        .filter(|(name, _, fields)| *fields > MAX_FIELDS && !MIRRORS.contains(&name.as_str()))
        .map(|(name, file, fields)| format!("{file}: {name} has {fields} fields"));
    none(found, "divide the struct");
}

#[test]
fn types_have_few_methods() {
    let mut methods: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, count) in shapes().flat_map(|of| &of.methods) {
        *methods.entry(name).or_default() += count;
    }
    let found = methods
        .into_iter()
        .filter(|(_, count)| *count > MAX_METHODS)
        .map(|(name, count)| format!("{name} has {count} methods"));
    none(found, "divide the type");
}

#[test]
fn no_parameter_is_a_tuple_that_stands_for_a_struct() {
    let found = shapes().flat_map(|of| of.tuples.clone());
    none(found, "name the parts in a struct");
}

#[test]
fn no_parameter_is_a_bool() {
    let found = shapes().flat_map(|of| of.bools.clone());
    none(found, "give an enum, or make two functions");
}

/// Tables and drawings of comments and raw strings are as wide as they are.
#[test]
fn lines_end_at_the_hundredth_column() {
    let mut found = Vec::new();
    for (path, text) in sources() {
        let mut raw = false;
        for (index, line) in text.lines().enumerate() {
            let was_raw = raw;
            raw = if raw { !line.contains("\"#") } else { opens_raw(line) };
            let table = line.trim_start().strip_prefix("//").is_some_and(|comment| {
                comment.trim_start_matches(['/', '!', ' ']).starts_with(['|', '`', '['])
            });
            if line.chars().count() > MAX_COLUMNS && !table && !was_raw && !raw {
                found.push(format!("{}:{}", path.display(), index + 1));
            }
        }
    }
    none(found.into_iter(), "break the line");
}

/// Whether a raw string begins on the line and goes on behind it.
fn opens_raw(line: &str) -> bool {
    line.rsplit_once("r#\"").is_some_and(|(_, rest)| !rest.contains("\"#"))
}

/// What one file has.
#[derive(Default)]
pub struct Shapes {
    krate: String,
    file: String,
    /// Name, file, number of fields.
    fields: Vec<(String, String, usize)>,
    /// `crate::Type`, number of methods in one `impl`.
    methods: Vec<(String, usize)>,
    tuples: Vec<String>,
    bools: Vec<String>,
}

fn shapes() -> impl Iterator<Item = &'static Shapes> {
    parsed().iter().map(|file| &file.shapes)
}

impl Shapes {
    pub fn of(path: &Path, file: &syn::File) -> Self {
        let mut shapes = Self {
            krate: crate_of(path).to_owned(),
            file: path.display().to_string(),
            ..Self::default()
        };
        shapes.visit_file(file);
        shapes
    }

    fn signature(&mut self, signature: &syn::Signature) {
        for input in &signature.inputs {
            let syn::FnArg::Typed(input) = input else { continue };
            let place = format!("{}: {}", self.file, signature.ident);
            match bare(&input.ty) {
                // A pattern in a closure or an entry of a map is no parameter of a signature.
                syn::Type::Tuple(tuple) if tuple.elems.len() > 1 => self.tuples.push(place),
                syn::Type::Path(path) if path.path.is_ident("bool") => self.bools.push(place),
                _ => {}
            }
        }
    }
}

/// The type behind references.
fn bare(of: &syn::Type) -> &syn::Type {
    match of {
        syn::Type::Reference(reference) => bare(&reference.elem),
        other => other,
    }
}

impl<'ast> Visit<'ast> for Shapes {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        if !for_tests(&item.attrs) {
            let name = format!("{}::{}", self.krate, item.ident);
            self.fields.push((name, self.file.clone(), item.fields.len()));
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !for_tests(&item.attrs) {
            self.signature(&item.sig);
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if for_tests(&item.attrs) {
            return;
        }
        let methods = item.items.iter().filter_map(|item| match item {
            syn::ImplItem::Fn(method) if !for_tests(&method.attrs) => Some(method),
            _ => None,
        });
        let methods: Vec<_> = methods.collect();
        // A trait decides the signatures of its implementations.
        if item.trait_.is_none() {
            if let syn::Type::Path(path) = &*item.self_ty
                && let Some(last) = path.path.segments.last()
            {
                self.methods.push((format!("{}::{}", self.krate, last.ident), methods.len()));
            }
            methods.iter().for_each(|method| self.signature(&method.sig));
        }
        methods.iter().for_each(|method| visit::visit_block(self, &method.block));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.signature(&item.sig);
    }
}

const MAX_COLUMNS: usize = 100;
const MAX_FIELDS: usize = 15;
const MAX_METHODS: usize = 25;

/// Structs that mirror a file, a message or a command line one to one. At most 8.
const MIRRORS: &[&str] = &["config::NodeFile", "lab::Line"];
