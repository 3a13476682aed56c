//! Why a configuration was refused: what, where, and what to do.

use skyhaul_exit::{Exit, Failure};
use skyhaul_transport::{ClassError, ClassTree};
use std::path::{Path, PathBuf};

/// Why a configuration was refused. The person who wrote the file must act.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}, {}; help: {help}", self.place())]
pub struct ConfigError {
    what: String,
    file: PathBuf,
    line: Option<usize>,
    help: String,
}

/// A configuration that was read, and the file that it came from.
#[derive(Debug, Clone, Copy)]
pub struct ConfigText<'a> {
    /// The text.
    pub text: &'a str,
    /// The file.
    pub file: &'a Path,
}

/// Where a key stands in a configuration.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyPlace<'a> {
    /// The heading of its table.
    pub heading: &'a str,
    /// Which of the tables with this heading, from 0.
    pub nth: usize,
    /// The key; the heading for the table as a whole.
    pub key: &'a str,
}

impl ConfigText<'_> {
    /// The places of those tables of an array whose `key` is of this kind, among all of them: an
    /// array may be divided by kinds.
    pub(super) fn places(
        self,
        array: &str,
        key: &str,
        is_of_kind: impl Fn(&str) -> bool,
    ) -> Vec<usize> {
        let tables = self.text.parse::<toml::Table>().unwrap_or_default();
        let entries = tables.get(array).and_then(toml::Value::as_array).cloned();
        let is_it = |entry: &toml::Value| {
            entry.get(key).and_then(toml::Value::as_str).is_some_and(&is_of_kind)
        };
        let entries = entries.into_iter().flatten().enumerate();
        entries.filter(|(_, entry)| is_it(entry)).map(|(nth, _)| nth).collect()
    }
}

impl ConfigError {
    /// What is wrong.
    pub fn what(&self) -> &str {
        &self.what
    }
    /// What to do about it.
    pub fn help(&self) -> &str {
        &self.help
    }
    /// `file:line`, or the file where no one line is to blame.
    pub fn place(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", self.file.display()),
            None => self.file.display().to_string(),
        }
    }
    /// The line, counted from 1.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    pub(super) fn unreadable(file: &Path, source: &std::io::Error) -> Self {
        let what = format!("the configuration cannot be read ({source})");
        Self::content(file, None, what, "give the path of an existing file that this user can read")
    }

    pub(super) fn too_large(file: &Path, size: u64, limit: u64) -> Self {
        let what = format!("the file has {size} bytes, more than the {limit} of a configuration");
        Self::content(file, None, what, "give the path of a node's configuration")
    }

    /// No one line of the file is to blame.
    pub(super) fn of_file(file: &Path, what: String, help: &str) -> Self {
        Self::content(file, None, what, help)
    }

    /// The file gives the node nothing to do; `table` is one that it has.
    pub(super) fn idle(config: ConfigText<'_>, table: Option<&str>) -> Self {
        if let Some(table) = table {
            return Self::needs(config, table, "[[destination]]");
        }
        let what = "the node has neither a destination nor an address to listen on".to_owned();
        let help = "add a [[destination]] and its [[peer]] to send data, a [[listen]] to receive \
                    it, or both";
        Self::content(config.file, None, what, help)
    }

    /// A table has no effect without another one.
    pub(super) fn needs(config: ConfigText<'_>, table: &str, other: &str) -> Self {
        let is_heading = |line: &str| {
            let inside = line.trim().trim_start_matches('[');
            line.trim().starts_with('[')
                && inside.strip_prefix(table).is_some_and(|rest| rest.starts_with([']', '.']))
        };
        let line = config.text.lines().position(is_heading).map(|index| index + 1);
        let what = format!("the table `{table}` has no effect without a {other}");
        let help = format!("add a {other}, or remove the table");
        Self::content(config.file, line, what, &help)
    }

    /// A `[[peer]]` is the node itself.
    pub(super) fn own_peer(config: ConfigText<'_>, name: &crate::Name) -> Self {
        let line = line_in(config.text, "[[peer]]", "name", name.as_str());
        let what = format!("the peer `{name}` has the name of this node");
        Self::content(config.file, line, what, "give each node a name of its own")
    }

    /// Too many tables of one heading; the first one too many is named.
    pub(super) fn many(config: ConfigText<'_>, heading: &str, count: usize, most: usize) -> Self {
        let line = nth_line(config.text, KeyPlace { heading, nth: most, key: heading });
        let what = format!("there are {count} {heading} tables");
        Self::content(config.file, line, what, &format!("write at most {most}"))
    }

    /// The value of a key is refused.
    pub(super) fn at(
        config: ConfigText<'_>,
        place: KeyPlace<'_>,
        what: String,
        help: &str,
    ) -> Self {
        Self::content(config.file, nth_line(config.text, place), what, help)
    }

    pub(super) fn twice(text: &str, file: &Path, kind: &str, value: &str) -> Self {
        let quoted = format!("\"{value}\"");
        let mut lines = text.lines().enumerate().filter(|(_, line)| line.contains(&quoted));
        let line = lines.nth(1).map(|(index, _)| index + 1);
        let what = format!("{kind} `{value}` is defined twice");
        Self::content(file, line, what, &format!("give each {kind} once"))
    }

    pub(super) fn class(text: &str, file: &Path, error: &ClassError) -> Self {
        let sentence = error.to_string();
        let name = sentence.split('`').nth(1).unwrap_or_default();
        let line = line_in(text, "[[class]]", "name", name);
        let (what, help) = match (error, sentence.rsplit_once(": ")) {
            (ClassError::Priority { .. }, _) | (_, None) => (&*sentence, "write one that is"),
            (_, Some((what, help))) => (what, help),
        };
        Self::content(file, line, what.to_owned(), help)
    }

    /// A key of a `user` of the line names a class that is none of the tree's leaves.
    pub(super) fn no_class(
        config: ConfigText<'_>,
        place: KeyPlace<'_>,
        class: &str,
        user: &str,
        tree: &ClassTree,
    ) -> Self {
        let leaves: Vec<&str> = tree.leaves().map(|(_, name)| name).collect();
        let help = match &leaves[..] {
            [] | ["default"] => {
                format!("add a [[class]] table with the name \"{class}\", or remove `class`")
            }
            leaves => format!("the classes that can be used are {}", leaves.join(", ")),
        };
        let what = format!("there is no class `{class}` for {user}");
        Self::content(config.file, nth_line(config.text, place), what, &help)
    }

    pub(super) fn from_toml(error: &toml::de::Error, text: &str, file: &Path) -> Self {
        let line = error.span().map(|span| line_of(text, span.start));
        let message = error.message().trim().replace('\n', " ");
        let (what, help) = split(&message);
        Self::content(file, line, what, &help)
    }

    fn content(file: &Path, line: Option<usize>, what: String, help: &str) -> Self {
        Self { what, file: file.to_owned(), line, help: help.to_owned() }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::new(Exit::Usage, &error.what, &error.help).at(&error.place())
    }
}

/// The line of a key; that of the table's heading, where the key is the heading or is written on no
/// line of its own.
fn nth_line(text: &str, place: KeyPlace<'_>) -> Option<usize> {
    let KeyPlace { heading, nth, key } = place;
    let mut tables = text.lines().enumerate().filter(|(_, line)| line.trim().starts_with(heading));
    let (head, _) = tables.nth(nth)?;
    let mut keys = text.lines().enumerate().skip(head + 1);
    let inside = |line: &str| !line.trim().starts_with('[');
    let is_it =
        |line: &str| line.trim().strip_prefix(key).is_some_and(|rest| rest.trim().starts_with('='));
    let found = keys.by_ref().take_while(|(_, line)| inside(line)).find(|(_, line)| is_it(line));
    Some(found.map_or(head, |(index, _)| index) + 1)
}

/// The line of `key` with this value in a table of this heading.
fn line_in(text: &str, heading: &str, key: &str, value: &str) -> Option<usize> {
    let mut inside = false;
    let quoted = format!("\"{value}\"");
    let found = text.lines().position(|line| {
        let line = line.trim();
        if line.starts_with('[') {
            inside = line.starts_with(heading);
        }
        inside && line.starts_with(key) && line.contains(&quoted)
    });
    found.map(|index| index + 1)
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// Divides a parser's message into fault and help.
fn split(message: &str) -> (String, String) {
    if let Some((what, known)) = message.split_once(", expected ")
        && let Some(name) = what.strip_prefix("unknown field ")
    {
        let known = known.trim_start_matches("one of ");
        return (format!("unknown key {name}"), format!("the keys here are {known}"));
    }
    if let Some(name) = message.strip_prefix("missing field ") {
        return (format!("the key {name} is missing"), format!("add {name}"));
    }
    if let Some(found) = message
        .strip_prefix("invalid type: ")
        .and_then(|rest| rest.strip_suffix(", expected a string"))
    {
        let help =
            "write it in quotes, a quantity with its unit: \"93 Mbit/s\", \"160 ms\", \"64 MiB\"";
        return (format!("{found} is given, text is required"), help.to_owned());
    }
    if let Some((what, help)) = message.split_once("; ") {
        return (what.to_owned(), help.to_owned());
    }
    if let Some((what, help)) = message.split_once(": write ") {
        return (what.to_owned(), format!("write {help}"));
    }
    (message.to_owned(), "`skyhaul config keys` lists every key with its form".to_owned())
}
