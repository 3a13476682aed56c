//! Files of one crate that use each other in a circle.
//!
//! A file uses another one where it names an item of it. A re-export is followed to the file that
//! declares the item, and is no use of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

use crate::checkout::none;
use crate::parsed::{for_tests, parsed};

#[test]
fn no_files_use_each_other_in_a_circle() {
    let circles = circles().into_iter().map(|files| files.join("\n    "));
    none(circles, "move what both sides use into a file of its own");
}

/// The files of each circle, largest circle first.
fn circles() -> Vec<Vec<String>> {
    let mut crates: BTreeMap<&str, Graph> = BTreeMap::new();
    for file in parsed() {
        let graph = crates.entry(&file.krate).or_default();
        graph.files.insert(file.uses.of.clone(), &file.uses);
    }
    let mut found: Vec<Vec<String>> =
        crates.into_values().flat_map(|graph| graph.circles()).collect();
    found.sort_by_key(|files| std::cmp::Reverse(files.len()));
    found
}

/// `["session", "outgoing"]` for `session/outgoing.rs`; empty for `lib.rs`.
type Module = Vec<String>;

/// One file, as far as uses are concerned.
#[derive(Default)]
pub struct Uses {
    path: String,
    /// Its own module.
    of: Module,
    /// Paths that it names, from the root of the crate.
    named: Vec<Vec<String>>,
    /// What it re-exports: name, and the path from the root of the crate.
    exports: BTreeMap<String, Vec<String>>,
    /// The same of re-exports of all names.
    globs: Vec<Vec<String>>,
    /// Where the paths of the module that is being read begin.
    module: Module,
}

/// The files of one crate.
#[derive(Default)]
struct Graph {
    files: BTreeMap<Module, &'static Uses>,
}

impl Graph {
    /// The module whose file declares what `path` names.
    fn declares(&self, path: &[String], depth: usize) -> Option<Module> {
        let known = (0..=path.len()).rev().find(|end| self.files.contains_key(&path[..*end]))?;
        let file = &self.files[&path[..known]];
        let Some(name) = path.get(known) else { return Some(path.to_vec()) };
        if depth < RE_EXPORTS_MAX {
            if let Some(target) = file.exports.get(name) {
                let target = [target, &path[known + 1..]].concat();
                return self.declares(&target, depth + 1);
            }
            for glob in &file.globs {
                let target = [glob, &path[known..]].concat();
                if let Some(found) =
                    self.declares(&target, depth + 1).filter(|found| found.len() > known)
                {
                    return Some(found);
                }
            }
        }
        Some(path[..known].to_vec())
    }

    fn uses(&self, module: &Module) -> BTreeSet<Module> {
        let named = self.files[module].named.iter();
        let mut uses: BTreeSet<Module> = named.filter_map(|path| self.declares(path, 0)).collect();
        uses.remove(module);
        uses
    }

    fn circles(&self) -> Vec<Vec<String>> {
        let uses: BTreeMap<&Module, BTreeSet<Module>> =
            self.files.keys().map(|module| (module, self.uses(module))).collect();
        let reach = |from: &Module| {
            let (mut seen, mut left) = (BTreeSet::new(), vec![from.clone()]);
            while let Some(at) = left.pop() {
                for next in uses.get(&at).into_iter().flatten() {
                    if seen.insert(next.clone()) {
                        left.push(next.clone());
                    }
                }
            }
            seen
        };
        let reached: BTreeMap<&Module, BTreeSet<Module>> =
            self.files.keys().map(|module| (module, reach(module))).collect();
        let mut circles: BTreeSet<Vec<&Module>> = BTreeSet::new();
        for (module, reach) in &reached {
            let back: Vec<&Module> = reached
                .iter()
                .filter(|(other, of)| reach.contains(**other) && of.contains(*module))
                .map(|(other, _)| *other)
                .collect();
            if back.len() > 1 {
                circles.insert(back);
            }
        }
        let paths = circles.into_iter();
        paths.map(|circle| circle.iter().map(|m| self.files[*m].path.clone()).collect()).collect()
    }
}

fn module_of(path: &Path) -> Module {
    let below: PathBuf = path.iter().skip(4).collect();
    let mut parts: Module =
        below.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| ["lib", "main", "mod"].contains(&last.as_str())) {
        parts.pop();
    }
    parts
}

impl Uses {
    pub fn of(path: &Path, file: &syn::File) -> Self {
        let of = module_of(path);
        let mut uses =
            Self { path: path.display().to_string(), module: of.clone(), of, ..Self::default() };
        uses.visit_file(file);
        uses
    }

    /// The path from the root of the crate, where it does not lead out of it.
    fn path_from_root(&self, path: &[String]) -> Option<Vec<String>> {
        let mut base = self.module.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => (base, rest) = (Vec::new(), &rest[1..]),
            "self" => rest = &rest[1..],
            "super" => {}
            _ => return None,
        }
        while rest.first().is_some_and(|part| part == "super") {
            base.pop();
            rest = &rest[1..];
        }
        Some([&base, rest].concat())
    }

    fn tree(&mut self, tree: &syn::UseTree, before: &[String], public: bool) {
        match tree {
            syn::UseTree::Path(path) => {
                self.tree(&path.tree, &[before, &[path.ident.to_string()]].concat(), public);
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.tree(tree, before, public));
            }
            syn::UseTree::Name(name) => {
                let name = name.ident.to_string();
                let path =
                    if name == "self" { before.to_vec() } else { [before, &[name]].concat() };
                let known = path.last().cloned().unwrap_or_default();
                self.used(&path, known, public);
            }
            syn::UseTree::Rename(rename) => {
                let path = [before, &[rename.ident.to_string()]].concat();
                self.used(&path, rename.rename.to_string(), public);
            }
            syn::UseTree::Glob(_) => {
                if let Some(path) = self.resolved(before, public) {
                    if public {
                        self.globs.push(path);
                    } else {
                        self.named.push(path);
                    }
                }
            }
        }
    }

    fn used(&mut self, path: &[String], known: String, public: bool) {
        let Some(path) = self.resolved(path, public) else { return };
        if public {
            self.exports.insert(known, path);
        } else {
            self.named.push(path);
        }
    }

    /// A re-export may begin with the name of a module of this file.
    fn resolved(&self, path: &[String], public: bool) -> Option<Vec<String>> {
        self.path_from_root(path)
            .or_else(|| public.then(|| [self.module.as_slice(), path].concat()))
    }
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_some() && !for_tests(&item.attrs) {
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !for_tests(&item.attrs) {
            let public = !matches!(item.vis, syn::Visibility::Inherited);
            self.tree(&item.tree, &[], public);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        self.named.extend(self.path_from_root(&parts));
        visit::visit_path(self, path);
    }
}

/// A re-export of a re-export of a re-export is still followed.
const RE_EXPORTS_MAX: usize = 8;
