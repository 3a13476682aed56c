//! The key `to` of folders, mirrors and subscriptions: the destinations that get what they take.

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
            let name = text.strip_prefix("node:").unwrap_or(&text);
            Name::from_str(name).map_err(|error| error.to_string())
        };
        Ok(Self(written.into_iter().map(name).collect::<Result<_, _>>()?))
    }
}

impl Written {
    /// Reads a name or a list of names.
    fn read<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
        match <Self as serde::Deserialize>::deserialize(deserializer) {
            Ok(Self::One(name)) => Ok(vec![name]),
            Ok(Self::Several(names)) => Ok(names),
            Err(_) => {
                let what = "`to` is a name or a list of names; write it like \"oper\" or \
                            [\"oper\", \"backup\"]";
                Err(serde::de::Error::custom(what))
            }
        }
    }
}

impl<'de> serde::Deserialize<'de> for DestinationNames {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::of(Written::read(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// The destinations of a subscription: one name, a list, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscribedNames(pub Vec<Name>);

impl<'de> serde::Deserialize<'de> for SubscribedNames {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::read(deserializer)?;
        if written.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let names = DestinationNames::of(written).map_err(serde::de::Error::custom)?;
        Ok(Self(names.0))
    }
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
            ("to = \"sftp:a\"", "is not a name"),
            ("to = \"../a\"", "is not a name"),
        ] {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(words), "{text}: {refused}");
        }
    }
}
