//! The configuration in force, and how the file on the disk differs from it, key by key.

use crate::status::{ConfigDifference, ConfigReport};
use skyhaul_units::Utc;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use toml::{Table, Value};

/// Knows which configuration is in force.
#[derive(Debug)]
pub(crate) struct ConfigDesk {
    file: PathBuf,
    in_force: Mutex<ConfigInForce>,
}

#[derive(Debug)]
struct ConfigInForce {
    tables: Table,
    read: Utc,
    /// Tables and keys of it that wait for a restart.
    waits: Vec<String>,
}

/// Differences of one report: more than a person reads.
const DIFFERENCES_MAX: usize = 1_000;
/// Characters of a value.
const VALUE_MAX: usize = 200;

impl ConfigDesk {
    /// A node of `text`, which was read from `file`, is in force.
    pub(crate) fn new(file: PathBuf, text: &str, read: Utc) -> Self {
        let in_force = ConfigInForce { tables: tables(text), read, waits: Vec::new() };
        Self { file, in_force: Mutex::new(in_force) }
    }

    /// The file.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    fn in_force(&self) -> MutexGuard<'_, ConfigInForce> {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file was read again, and is in force but for what `waits`.
    pub(crate) fn adopt(&self, text: &str, read: Utc, waits: &[String]) {
        *self.in_force() = ConfigInForce { tables: tables(text), read, waits: waits.to_vec() };
    }

    /// How the file differs now. Reads it.
    pub(crate) fn report(&self) -> ConfigReport {
        let (before, read, waits) = {
            let in_force = self.in_force();
            (flat(&in_force.tables), in_force.read, in_force.waits.clone())
        };
        let (error, now) = match skyhaul_config::read_text(&self.file) {
            Ok(text) => {
                let wrong = skyhaul_config::parse(&text, &self.file).err();
                (wrong.map(|error| error.to_string()), text.parse::<Table>().ok())
            }
            Err(error) => (Some(error.to_string()), None),
        };
        // A file that is no TOML has no keys to compare.
        let mut differences = now.map_or_else(Vec::new, |now| differ(&before, &flat(&now)));
        let left_out = differences.len().saturating_sub(DIFFERENCES_MAX);
        differences.truncate(DIFFERENCES_MAX);
        ConfigReport {
            file: self.file.display().to_string(),
            read: read.to_string(),
            waits,
            error,
            differences,
            left_out: left_out as u64,
        }
    }
}

/// It was read before.
fn tables(text: &str) -> Table {
    text.parse().unwrap_or_default()
}

fn differ(
    before: &BTreeMap<String, Value>,
    now: &BTreeMap<String, Value>,
) -> Vec<ConfigDifference> {
    let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let keys = keys.into_iter().filter(|key| before.get(*key) != now.get(*key));
    let shown = |key: &String, value: Option<&Value>| value.map(|value| shown(key, value));
    let of = |key: &String| ConfigDifference {
        key: key.clone(),
        in_force: shown(key, before.get(key)),
        on_disk: shown(key, now.get(key)),
    };
    keys.map(of).collect()
}

/// The keys of a configuration with their tables, such as `[[channel]] x: input`.
fn flat(tables: &Table) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for (name, value) in tables {
        match value {
            Value::Table(table) => add(&format!("[{name}]"), table, &mut all),
            Value::Array(list) if list.iter().all(Value::is_table) && !list.is_empty() => {
                let mut known = BTreeSet::new();
                for (nth, table) in list.iter().filter_map(Value::as_table).enumerate() {
                    // Two of one name are told apart by their place.
                    let title = title(table).filter(|title| known.insert(title.clone()));
                    let title = title.unwrap_or_else(|| format!("number {}", nth + 1));
                    add(&format!("[[{name}]] {title}"), table, &mut all);
                }
            }
            value => drop(all.insert(name.clone(), value.clone())),
        }
    }
    all
}

fn add(place: &str, table: &Table, all: &mut BTreeMap<String, Value>) {
    for (key, value) in table {
        match value {
            Value::Table(inner) => add(&format!("{place} {key}."), inner, all),
            value => drop(all.insert(format!("{place} {key}"), value.clone())),
        }
    }
}

/// What tells a table from others of its kind.
fn title(table: &Table) -> Option<String> {
    let of = |key: &&str| table.get(*key).and_then(Value::as_str);
    let found = ["name", "bind", "to", "node", "mission"].iter().find_map(of)?;
    Some(skyhaul_units::printable(found, 64))
}

/// A value as it is written, without what may be a secret: what follows `?` in an address, a
/// password in one, the arguments of a command.
fn shown(key: &str, value: &Value) -> String {
    let last = key.rsplit(' ').next().unwrap_or_default();
    let is_file = last.ends_with("_file");
    let is_secret = ["password", "secret", "token"].iter().any(|word| last.contains(word));
    if is_secret && !is_file {
        return HIDDEN.to_owned();
    }
    let text = match value {
        Value::Array(list) if last == "command" && list.len() > 1 => {
            let program = list.first().map_or_else(String::new, open);
            format!("[{program}, {HIDDEN}]")
        }
        value => open(value),
    };
    skyhaul_units::printable(&text, VALUE_MAX)
}

const HIDDEN: &str = "(hidden)";

fn open(value: &Value) -> String {
    match value {
        Value::String(text) => Value::String(without_secret(text)).to_string(),
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(open).collect();
            format!("[{}]", list.join(", "))
        }
        value => value.to_string(),
    }
}

fn without_secret(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) if user.contains(':') => format!("{HIDDEN}@{host}"),
        _ => authority.to_owned(),
    };
    let path = path
        .split_once('?')
        .map_or_else(|| path.to_owned(), |(path, _)| format!("{path}?{HIDDEN}"));
    format!("{scheme}://{authority}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differences(before: &str, now: &str) -> Vec<[String; 3]> {
        let none = || "-".to_owned();
        let all = differ(&flat(&tables(before)), &flat(&tables(now)));
        let of = |one: ConfigDifference| {
            [one.key, one.in_force.unwrap_or_else(none), one.on_disk.unwrap_or_else(none)]
        };
        all.into_iter().map(of).collect()
    }

    #[test]
    fn each_key_that_differs_is_named_with_its_table_and_both_values() {
        let before = "[node]\nname = \"c\"\n[web]\nbind = \"127.0.0.1:1\"\n[[channel]]\nname = \
                      \"x\"\ninput = \"file:a\"\n[[channel]]\nname = \"y\"\ninput = \"file:b\"\n";
        let now = "[[channel]]\nname = \"y\"\ninput = \"file:b\"\nframe = 3\n[[channel]]\nname = \
                   \"x\"\ninput = \"file:z\"\n[node]\nname = \"c\"\n";
        let expected = [
            ["[[channel]] x input", "\"file:a\"", "\"file:z\""],
            ["[[channel]] y frame", "-", "3"],
            ["[web] bind", "\"127.0.0.1:1\"", "-"],
        ];
        assert_eq!(differences(before, now), expected);
        assert_eq!(differences(now, now), [[""; 3]; 0]);
    }

    #[test]
    fn no_secret_is_shown() {
        let now = "[[webhook]]\nurl = \"https://u:p@x.org/hook?token=t\"\nsecret_file = \"s\"\n\
                   [[exec]]\ncommand = [\"/bin/page\", \"--key\", \"k\"]\n[x]\npassword = \"p\"\n";
        let expected = [
            ["[[exec]] number 1 command", "-", "[\"/bin/page\", (hidden)]"],
            ["[[webhook]] number 1 secret_file", "-", "\"s\""],
            ["[[webhook]] number 1 url", "-", "\"https://(hidden)@x.org/hook?(hidden)\""],
            ["[x] password", "-", "(hidden)"],
        ];
        assert_eq!(differences("", now), expected);
    }
}
