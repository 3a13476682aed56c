//! `[blocks]`: the block service, where programs of this host hand over blocks.

use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::name::{Name, from_text};
use crate::section::section;
use skyhaul_transport::ClassTree;
use skyhaul_units::Rate;
use std::path::PathBuf;
use std::str::FromStr;

section! {
    /// The block service: programs of this host hand over blocks at a local socket, and the node
    /// sends them in its sessions with its peers.
    "[blocks]" BlocksEntry applies at_once(allow) checked by BlocksEntry::check {
        /// The socket file. Programs connect to it.
        socket: PathBuf => required,
        /// The users whose programs may use it: tables `[[blocks.allow]]`. Default: the node's own
        /// user and root.
        allow: AllowEntries => optional,
    }
}

section! {
    /// A user whose programs may use the block service. Up to 64. With one such table, the node's
    /// own user and root need tables too.
    "[[blocks.allow]]" AllowEntry applies at_once checked by AllowEntry::check {
        /// The user: a name of `/etc/passwd`, or a number.
        user: UserName => required,
        /// The classes that blocks of these programs may have. Default: all.
        classes: ClassNames => optional,
        /// What all programs of the user together may send. Default: as much as the line carries.
        rate: Rate => optional,
        /// Whether its programs may say which rate and loss a path has. Such a hint changes what
        /// all programs, contacts and files have of the line.
        hints: bool => "false",
    }
}

/// Users that may use the block service.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(transparent)]
pub struct AllowEntries(pub Vec<AllowEntry>);

/// Names of classes.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(transparent)]
pub struct ClassNames(pub Vec<Name>);

/// A user of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserName {
    /// By its number.
    Number(u32),
    /// By its name.
    Named(String),
}

impl FromStr for UserName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(number) = text.parse() {
            return Ok(Self::Number(number));
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.$".contains(c);
        if (1..=32).contains(&text.len()) && text.chars().all(is_name) {
            return Ok(Self::Named(text.to_owned()));
        }
        Err(format!("`{text}` is not a user; write a name such as \"science\", or a number"))
    }
}
impl std::fmt::Display for UserName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}
from_text!(UserName);

impl BlocksEntry {
    /// The users that may use it; none is the node's own and root.
    pub fn allowed(&self) -> &[AllowEntry] {
        self.allow.as_ref().map_or(&[], |allow| &allow.0)
    }

    fn check(&self) -> Result<(), String> {
        let allowed = self.allowed();
        if allowed.len() > MAX_ALLOWED {
            let count = allowed.len();
            return Err(format!(
                "the block service has {count} [[blocks.allow]] tables; write at most {MAX_ALLOWED}"
            ));
        }
        // The path of a UNIX socket has room for 107 bytes; a relative one grows.
        if self.socket.as_os_str().len() > 100 {
            return Err("the path of the socket is too long; write one of up to 100 bytes".into());
        }
        for (place, entry) in allowed.iter().enumerate() {
            if allowed[..place].iter().any(|before| before.user == entry.user) {
                return Err(format!(
                    "user {} has two [[blocks.allow]] tables; write one for each user",
                    entry.user
                ));
            }
        }
        Ok(())
    }

    /// Checks that the classes are there.
    pub(super) fn check_classes(
        &self,
        config: ConfigText<'_>,
        tree: &ClassTree,
    ) -> Result<(), ConfigError> {
        for (nth, entry) in self.allowed().iter().enumerate() {
            let classes = entry.classes.iter().flat_map(|classes| &classes.0);
            for class in classes {
                if tree.find(class.as_str()).is_none() {
                    let place = KeyPlace { heading: "[[blocks.allow]]", nth, key: "classes" };
                    let user = format!("programs of user {}", entry.user);
                    return Err(ConfigError::no_class(config, place, class.as_str(), &user, tree));
                }
            }
        }
        Ok(())
    }
}

impl AllowEntry {
    fn check(&self) -> Result<(), String> {
        if self.rate == Some(Rate::ZERO) {
            return Err("a user with 0 bit/s sends nothing; write its rate like \"2 Mbit/s\", or \
                        remove the table"
                .to_owned());
        }
        if self.classes.as_ref().is_some_and(|classes| classes.0.is_empty()) {
            return Err("`classes` is empty; name at least one class, or remove the key".to_owned());
        }
        Ok(())
    }
}

/// More are better served by a user of their own.
const MAX_ALLOWED: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use std::path::Path;

    const NODE: &str = "[node]\nname = \"n\"\nkey = \"k\"\nstate = \"s\"\n[[listen]]\nbind = \
                        \"127.0.0.1:4700\"\n[[class]]\nname = \"voice\"\n[[class]]\nname = \
                        \"bulk\"\n[blocks]\nsocket = \"blocks.sock\"\n";

    #[test]
    fn users_are_names_or_numbers_with_classes_that_are_there() {
        let allow = "[[blocks.allow]]\nuser = \"radio\"\nclasses = [\"voice\"]\n\
                     [[blocks.allow]]\nuser = \"1007\"\nrate = \"5 Mbit/s\"\n";
        let read = |text: &str| parse(text, Path::new("/etc/skyhaul/node.toml"));
        let plain = read(NODE).unwrap().blocks.unwrap();
        assert_eq!(
            (plain.socket.as_path(), plain.allowed().len()),
            (Path::new("/etc/skyhaul/blocks.sock"), 0)
        );
        let blocks = read(&format!("{NODE}{allow}")).unwrap().blocks.unwrap();
        let users: Vec<&UserName> = blocks.allowed().iter().map(|entry| &entry.user).collect();
        assert_eq!(users, [&UserName::Named("radio".to_owned()), &UserName::Number(1007)]);
        for (from, to, what) in [
            ("\"voice\"]", "\"none\"]", "there is no class `none` for programs of user radio"),
            ("[\"voice\"]", "[]", "`classes` is empty"),
            ("1007", "radio", "user radio has two [[blocks.allow]] tables"),
            ("1007", "a b", "`a b` is not a user"),
            ("5 Mbit/s", "0 bit/s", "a user with 0 bit/s sends nothing"),
            ("rate", "speed", "unknown key `speed`"),
        ] {
            let error = read(&format!("{NODE}{}", allow.replacen(from, to, 1))).unwrap_err();
            assert!(error.what().contains(what), "{error}");
        }
        let many: String =
            (0..65).map(|user| format!("[[blocks.allow]]\nuser = \"{user}\"\n")).collect();
        let error = read(&format!("{NODE}{many}")).unwrap_err();
        assert!(error.what().contains("has 65 [[blocks.allow]] tables"), "{error}");
    }
}
