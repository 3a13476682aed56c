//! The key `to` of folders and mirrors: the destinations that get their files.

use crate::destination::{Destination, DestinationPlace};
use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::name::Name;
use std::collections::BTreeSet;
use std::str::FromStr;

/// Names of destinations: one, or a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DestinationNames(Vec<Name>);

/// One name or several, as a file writes them.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Written {
    One(String),
    Several(Vec<String>),
}

impl DestinationNames {
    /// The names, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Name> {
        self.0.iter()
    }

    /// Makes the names of what a file says.
    fn of(written: Vec<String>) -> Result<Self, String> {
        if written.is_empty() {
            return Err(
                "`to` names no destination; name one, or remove the key to send to the first"
                    .to_owned(),
            );
        }
        let mut seen = BTreeSet::new();
        for text in written.iter().map(|text| text.strip_prefix("node:").unwrap_or(text)) {
            if !seen.insert(text) {
                return Err(format!("`to` names the destination `{text}` twice; name it once"));
            }
        }
        let name = |text: String| -> Result<Name, String> {
            // Both spellings: that of `[[subscription]]`, and that of `[[destination]]`.
            if text.contains(':') {
                let DestinationPlace::Node(name) = text.parse()?;
                return Ok(name);
            }
            Name::from_str(&text).map_err(|error| error.to_string())
        };
        Ok(Self(written.into_iter().map(name).collect::<Result<_, _>>()?))
    }
}

impl<'de> serde::Deserialize<'de> for DestinationNames {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = match Written::deserialize(deserializer) {
            Ok(Written::One(name)) => vec![name],
            Ok(Written::Several(names)) => names,
            Err(_) => {
                let what = "`to` is a name or a list of names; write it like \"oper\" or [\"oper\", \
                            \"backup\"]";
                return Err(serde::de::Error::custom(what));
            }
        };
        Self::of(written).map_err(serde::de::Error::custom)
    }
}

/// The indexes of these destinations; the first one of the node where none is named.
pub(super) fn indexes<'a>(
    named: Option<impl Iterator<Item = &'a Name>>,
    destinations: &[Destination],
) -> Vec<usize> {
    let Some(names) = named else { return vec![0] };
    let index = |name: &Name| destinations.iter().position(|one| one.peer.name == *name);
    names.filter_map(index).collect()
}

/// Checks that each of the names is one of a destination. `place` is the key; `user` says what has
/// it, as in `a mirror`.
pub(super) fn check<'a>(
    config: ConfigText<'_>,
    place: KeyPlace<'_>,
    user: &str,
    mut named: impl Iterator<Item = &'a Name>,
    destinations: &[Destination],
) -> Result<(), ConfigError> {
    let is_unknown = |name: &&Name| !destinations.iter().any(|one| one.peer.name == **name);
    let Some(name) = named.find(is_unknown) else { return Ok(()) };
    let what = format!("there is no destination `{name}` for {user}");
    let known: Vec<&str> = destinations.iter().map(Destination::name).collect();
    let help = format!("write one of {}", known.join(", "));
    Err(ConfigError::at(config, place, what, &help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Table {
        to: DestinationNames,
    }

    fn read(text: &str) -> Result<Vec<String>, String> {
        let table: Result<Table, _> = toml::from_str(text);
        let names = |table: Table| table.to.iter().map(ToString::to_string).collect();
        table.map(names).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn one_name_or_several_are_read_in_both_spellings() {
        assert_eq!(read("to = \"oper\""), Ok(vec!["oper".to_owned()]));
        let both = Ok(vec!["oper".to_owned(), "backup".to_owned()]);
        assert_eq!(read("to = [\"node:oper\", \"backup\"]"), both);
    }

    #[test]
    fn what_names_no_destination_is_refused() {
        for (text, words) in [
            ("to = []", "names no destination"),
            ("to = [\"a\", \"node:a\"]", "`to` names the destination `a` twice"),
            ("to = 7", "is a name or a list of names"),
            ("to = \"sftp:a\"", "write `node:NAME`"),
            ("to = \"../a\"", "is not a name"),
        ] {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(words), "{text}: {refused}");
        }
    }

    fn station(tables: &str) -> Result<crate::StationConfig, ConfigError> {
        let destination = |name: &str, digit: char, keys: &str| {
            let key = digit.to_string().repeat(64);
            format!(
                "[[peer]]\nname = \"{name}\"\naddresses = [\"192.0.2.1:4700\"]\nfingerprints = \
                 [\"SHA256:{key}\"]\n[[destination]]\nto = \"node:{name}\"\n{keys}"
            )
        };
        let text = format!(
            "[node]\nname = \"s\"\nkey = \"k\"\nstate = \"st\"\n{}{}{}{tables}",
            destination("oper", 'a', ""),
            destination("backup", 'b', ""),
            destination("trial", 'c', "shadow = true\n")
        );
        Ok(*crate::parse(&text, "node.toml".as_ref())?.station.unwrap())
    }

    #[test]
    fn mirrors_folders_and_streams_go_to_the_destinations_that_they_name_or_to_the_first() {
        let config = station(
            "[[mirror]]\nsource = \"a\"\ninto = \".\"\n[[mirror]]\nsource = \"b\"\ninto = \
             \".\"\nto = [\"trial\", \"oper\"]\n[[folder]]\nname = \"f\"\npath = \"f\"\nas = \
             \"files\"\nto = \"node:backup\"\n[[stream]]\nfrom = \"udp://127.0.0.1:1\"\nto = \
             \"null\"\n[[stream]]\nfrom = \"udp://127.0.0.1:2\"\nto = \"null\"\ndestination = \
             \"backup\"\n",
        );
        let config = config.unwrap();
        let all = &config.destinations;
        let mirrors: Vec<_> =
            config.folders.mirrored.iter().map(|mirror| mirror.destinations(all)).collect();
        assert_eq!(mirrors, [vec![0], vec![2, 0]]);
        assert_eq!(config.folders.dropped[0].destinations(all), [1]);
        let streams: Vec<_> = config.stream.iter().map(|stream| stream.place(all)).collect();
        assert_eq!(streams, [0, 1]);
    }

    #[test]
    fn destinations_that_cannot_be_are_refused_with_their_line_and_what_to_write() {
        let folder = "[[folder]]\nname = \"f\"\npath = \"f\"\nas = \"files\"\n";
        let mirror = |nth: usize, to: &str| {
            format!("[[mirror]]\nsource = \"m{nth}\"\ninto = \".\"\nto = {to}\n")
        };
        let many = (0..6).map(|nth| mirror(nth, "[\"oper\", \"backup\", \"trial\"]"));
        for (tables, words) in [
            (mirror(0, "\"opr\""), "no destination `opr` for a mirror"),
            (format!("{folder}to = [\"oper\", \"x\"]\n"), "no destination `x` for a folder"),
            (
                "[[stream]]\nfrom = \"udp://127.0.0.1:1\"\nto = \"null\"\ndestination = \"y\"\n"
                    .to_owned(),
                "no destination `y` for a stream",
            ),
            (format!("{folder}to = \"trial\"\n"), "folder `f` goes to shadows alone"),
            (many.collect(), "the mirrors have too many destinations"),
            (
                "[[channel]]\nname = \"x\"\ninput = \"folder\"\n[[folder]]\nname = \"f\"\npath = \
                 \"f\"\nas = \"contacts\"\nchannel = \"x\"\nto = \"oper\"\n"
                    .to_owned(),
                "`to` has no effect",
            ),
        ] {
            let refused = station(&tables).unwrap_err();
            assert!(refused.to_string().contains(words), "{tables}: {refused}");
            assert!(refused.line().is_some(), "{tables}: {refused}");
        }
    }
}
