//! The files of `skyhaul forward --config` and `skyhaul forward serve --config`.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use skyhaul_config::{ConfigText, ForwardEntry, ForwardRules, each_is_one};
use skyhaul_exit::{Exit, Failure};
use skyhaul_forward::{Allow, What};
use skyhaul_transport::{ClassConfig, ClassTree, ClassesConfig};
use skyhaul_units::Duration;
use std::path::Path;

/// The entry with its own settings; the flags give the others.
#[derive(Debug)]
pub struct ForwardTable {
    pub what: What,
    pub class: Option<String>,
    pub priority: Option<u8>,
    pub deadline: Option<Duration>,
    pub idle: Option<Duration>,
}

impl ForwardTable {
    /// Without anything of its own.
    pub const fn of(what: What) -> Self {
        Self { what, class: None, priority: None, deadline: None, idle: None }
    }
}

impl From<ForwardEntry> for ForwardTable {
    fn from(entry: ForwardEntry) -> Self {
        let what = entry.what();
        let ForwardEntry { class, priority, deadline, idle, .. } = entry;
        Self { what, class, priority, deadline, idle }
    }
}

/// What a far end reads.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Far {
    #[serde(default)]
    class: Vec<ClassConfig>,
    #[serde(default)]
    allow: ForwardRules,
    #[serde(default)]
    allow_listen: ForwardRules,
}

/// What a near end reads.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Near {
    #[serde(default)]
    class: Vec<ClassConfig>,
    #[serde(default)]
    forward: Vec<ForwardEntry>,
}

/// What an end reads that has classes alone.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Alone {
    #[serde(default)]
    class: Vec<ClassConfig>,
}

/// The classes and the forwards of a near end's file.
///
/// # Errors
/// It cannot be read, or is wrong somewhere.
pub fn read_near(path: &Path) -> Result<(ClassesConfig, Vec<ForwardTable>), Failure> {
    let (Near { class, forward }, text) = read(path)?;
    each_is_one(ConfigText { text: &text, file: path }, &forward)?;
    Ok((classes(class), forward.into_iter().map(ForwardTable::from).collect()))
}

/// The classes of a file that has nothing else.
///
/// # Errors
/// As above.
pub fn read_classes(path: &Path) -> Result<ClassesConfig, Failure> {
    let (Alone { class }, _) = read(path)?;
    Ok(classes(class))
}

/// The classes of a far end's file, and the rules of where to connect and to listen.
///
/// # Errors
/// As above.
pub fn read_far(path: &Path) -> Result<(ClassesConfig, Vec<Allow>, Vec<Allow>), Failure> {
    let (Far { class, allow, allow_listen }, _) = read(path)?;
    Ok((classes(class), allow.0, allow_listen.0))
}

/// The class tree.
///
/// # Errors
/// The classes contradict each other.
pub fn tree(classes: &ClassesConfig) -> Result<ClassTree, Failure> {
    ClassTree::new(classes).map_err(|error| Failure::from_sentence(Exit::Usage, &error.to_string()))
}

fn classes(classes: Vec<ClassConfig>) -> ClassesConfig {
    ClassesConfig { classes, ..ClassesConfig::default() }
}

/// The content of a file, and its text.
fn read<T: DeserializeOwned>(path: &Path) -> Result<(T, String), Failure> {
    let place = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| {
        let failure = Failure::io(
            "the file cannot be read",
            &place,
            "give the path of an existing file",
            source,
        );
        // The command line names the file.
        failure.with(Exit::Usage)
    })?;
    let parsed = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        let what = error.message().replace('\n', " ");
        let parts = what.split_once("; ").or_else(|| what.split_once(", "));
        let (what, help) = parts.unwrap_or((&what, "docs/how-to/forward.md shows every key"));
        Failure::new(Exit::Usage, what, help).at(&format!("{place}:{line}"))
    })?;
    Ok((parsed, text))
}
