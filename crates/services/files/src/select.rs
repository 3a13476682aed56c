//! Which entries take part: rules that include and exclude by patterns.

use crate::path::RelPath;
use globset::{GlobBuilder, GlobMatcher};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A rule, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Whether what fits takes part or is left out.
    pub include: bool,
    /// The pattern: `*` and `?` within a name, `[abc]`, `**` over folders, `{a,b}`. With a `/` in
    /// it, it is for the whole path from the source on; without, for a name wherever it is.
    pub pattern: String,
}

/// What the rules tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// A folder.
    Folder,
    /// A file, a link or anything else.
    Other,
}

/// Rules in their order: the first that fits decides. Where none does, an entry takes part, unless
/// there are only rules that include and it is no folder.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    rules: Vec<(Rule, GlobMatcher)>,
}

/// Why a pattern is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// Its form.
    #[error("`{0}` is not a pattern ({1}); write it like *.h5, raw/** or pass-[0-9]*.dat")]
    Form(String, String),
    /// There are too many, or one is too long.
    #[error(
        "there are more than 256 rules, or a pattern of more than 1024 bytes; use fewer or shorter \
        ones"
    )]
    TooMany,
}

impl Selection {
    /// Rules, at most.
    pub const RULES_MAX: usize = 256;
    /// The longest pattern, in bytes.
    pub const PATTERN_MAX: usize = 1024;

    /// Of these rules.
    ///
    /// # Errors
    /// See [`SelectionError`].
    pub fn new(rules: Vec<Rule>) -> Result<Self, SelectionError> {
        let long = |rule: &Rule| rule.pattern.len() > Self::PATTERN_MAX;
        if rules.len() > Self::RULES_MAX || rules.iter().any(long) {
            return Err(SelectionError::TooMany);
        }
        let compiled = rules.into_iter().map(|rule| Ok((matcher(&rule.pattern)?, rule)));
        let rules = compiled.map(|pair| pair.map(|(matcher, rule)| (rule, matcher)));
        Ok(Self { rules: rules.collect::<Result<_, SelectionError>>()? })
    }

    /// The rules, as they were written.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().map(|(rule, _)| rule)
    }

    /// Whether the entry takes part. What is in a folder that does not is not asked for.
    pub fn takes(&self, path: &RelPath, kind: PathKind) -> bool {
        let whole = Path::new(OsStr::from_bytes(path.as_bytes()));
        let name = path.split().map_or(&[][..], |(_, name)| name);
        let name = Path::new(OsStr::from_bytes(name));
        for (rule, matcher) in &self.rules {
            if matcher.is_match(if rule.pattern.contains('/') { whole } else { name }) {
                return rule.include;
            }
        }
        kind == PathKind::Folder
            || self.rules.is_empty()
            || self.rules.iter().any(|(rule, _)| !rule.include)
    }
}

/// A pattern for the parts of a path that a user wrote for one, such as `pass-*/raw.dat`.
///
/// # Errors
/// See [`SelectionError`].
pub fn pattern(text: &str) -> Result<impl Fn(&[u8]) -> bool, SelectionError> {
    let matcher = matcher(text)?;
    Ok(move |name: &[u8]| matcher.is_match(Path::new(OsStr::from_bytes(name))))
}

fn matcher(pattern: &str) -> Result<GlobMatcher, SelectionError> {
    let built = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build();
    let glob = built
        .map_err(|error| SelectionError::Form(pattern.to_owned(), error.kind().to_string()))?;
    Ok(glob.compile_matcher())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(rules: &[(bool, &str)]) -> Selection {
        let rule = |(include, pattern): &(bool, &str)| Rule {
            include: *include,
            pattern: (*pattern).to_owned(),
        };
        Selection::new(rules.iter().map(rule).collect()).unwrap()
    }

    fn taken(selection: &Selection, path: &[u8]) -> bool {
        selection.takes(&RelPath::new(path).unwrap(), PathKind::Other)
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let rules = selection(&[(true, "keep.tmp"), (false, "*.tmp"), (false, "a/**")]);
        assert!(
            taken(&rules, b"x/keep.tmp") && taken(&rules, b"b/c") && !taken(&rules, b"x/y.tmp")
        );
        assert!(!taken(&rules, b"a/b/c"));
    }

    #[test]
    fn with_rules_that_include_alone_nothing_else_takes_part_but_folders() {
        let rules = selection(&[(true, "*.h5")]);
        assert!(taken(&rules, b"a/b.h5") && !taken(&rules, b"a/b.txt"));
        assert!(rules.takes(&RelPath::new(b"a").unwrap(), PathKind::Folder));
    }

    #[test]
    fn names_that_are_no_text_fit_too() {
        assert!(taken(&selection(&[(true, "caf?.d*")]), b"caf\xe9.dat"));
        assert!(pattern("caf*").unwrap()(b"caf\xe9"));
    }

    #[test]
    fn what_is_no_pattern_is_told() {
        let rule = Rule { include: true, pattern: "[a".to_owned() };
        assert!(
            Selection::new(vec![rule]).unwrap_err().to_string().contains("`[a` is not a pattern")
        );
    }
}
