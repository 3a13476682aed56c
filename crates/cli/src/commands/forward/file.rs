//! The files that `skyhaul forward --config` and `skyhaul forward serve --config` read.

use crate::failure::{Exit, Failure};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use skyhaul_forward::{Allow, Entrance, Forward};
use skyhaul_transport::{ClassConfig, ClassTree, ClassesConfig};
use skyhaul_units::Duration;
use std::path::Path;
use std::str::FromStr;

/// One thing that is forwarded.
#[derive(Debug)]
pub enum What {
    /// As `-L` has it.
    Local(Forward),
    /// As `-R` has it.
    Remote(Forward),
    /// As `-D` has it.
    Socks(Entrance),
    /// As `--transparent` has it.
    Transparent(Entrance),
}

/// It with what is its own; the flags say the rest.
#[derive(Debug)]
pub struct Table {
    pub what: What,
    pub class: Option<String>,
    pub priority: Option<u8>,
    pub deadline: Option<Duration>,
    pub idle: Option<Duration>,
}

impl Table {
    /// Without anything of its own.
    pub const fn of(what: What) -> Self {
        Self { what, class: None, priority: None, deadline: None, idle: None }
    }
}

/// What a far end reads.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Far {
    #[serde(default)]
    class: Vec<ClassConfig>,
    #[serde(default)]
    allow: Vec<Text<Allow>>,
    #[serde(default)]
    allow_listen: Vec<Text<Allow>>,
}

/// What a near end reads.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Near {
    #[serde(default)]
    class: Vec<ClassConfig>,
    #[serde(default)]
    forward: Vec<Written>,
}

/// `[[forward]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    local: Option<Text<Forward>>,
    remote: Option<Text<Forward>>,
    socks: Option<Text<Entrance>>,
    transparent: Option<Text<Entrance>>,
    class: Option<String>,
    priority: Option<u8>,
    deadline: Option<Duration>,
    idle: Option<Duration>,
}

/// What has the same form as on the command line.
#[derive(Debug)]
struct Text<T>(T);

impl<'de, T: FromStr<Err: core::fmt::Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}

/// The classes and the forwards of a near end's file.
///
/// # Errors
/// It cannot be read, or is wrong somewhere.
pub fn read_near(path: &Path) -> Result<(ClassesConfig, Vec<Table>), Failure> {
    let Near { class, forward } = read(path)?;
    let tables: Result<Vec<Table>, Failure> =
        (1..).zip(forward).map(|(nth, written)| table(path, nth, written)).collect();
    Ok((classes(class), tables?))
}

/// The classes of a far end's file, and the rules of where to connect and to listen.
///
/// # Errors
/// As above.
pub fn read_far(path: &Path) -> Result<(ClassesConfig, Vec<Allow>, Vec<Allow>), Failure> {
    let Far { class, allow, allow_listen } = read(path)?;
    let rules = |rules: Vec<Text<Allow>>| rules.into_iter().map(|rule| rule.0).collect();
    Ok((classes(class), rules(allow), rules(allow_listen)))
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

fn table(path: &Path, nth: usize, written: Written) -> Result<Table, Failure> {
    let Written { local, remote, socks, transparent, class, priority, deadline, idle } = written;
    let what = [
        local.map(|text| What::Local(text.0)),
        remote.map(|text| What::Remote(text.0)),
        socks.map(|text| What::Socks(text.0)),
        transparent.map(|text| What::Transparent(text.0)),
    ];
    let mut given = what.into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(what), None) => Ok(Table { what, class, priority, deadline, idle }),
        _ => {
            let what = format!("[[forward]] table {nth} does not say one thing that is forwarded");
            let help = "give it one of `local`, `remote`, `socks` and `transparent`";
            Err(Failure::new(Exit::Usage, &what, help).at(&path.display().to_string()))
        }
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let place = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| {
        let failure =
            Failure::io("the file cannot be read", &place, "give the path of an existing file", source);
        // Which file is read, the command line says.
        failure.with(Exit::Usage)
    })?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        let what = error.message().replace('\n', " ");
        let parts = what.split_once("; ").or_else(|| what.split_once(", "));
        let (what, help) = parts.unwrap_or((&what, "docs/forward.md shows every key"));
        Failure::new(Exit::Usage, what, help).at(&format!("{place}:{line}"))
    })
}
