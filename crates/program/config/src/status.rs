//! `[status]`: other users of this host who may ask the node and give it orders.

use crate::blocks::UserName;
use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::node::Node;
use crate::section::section;

section! {
    /// Other users of this host who may use the status socket, beside the node's own user and
    /// root. Needs `status_socket` in `[node]`, outside of the state folder, which others cannot
    /// enter.
    "[status]" StatusEntry applies at_once checked by StatusEntry::check {
        /// Who may give orders: names of `/etc/passwd`, or numbers as text.
        operators: UserNames => optional,
        /// Who may ask.
        readers: UserNames => optional,
    }
}

/// Users of this host.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(transparent)]
pub struct UserNames(pub Vec<UserName>);

impl Default for StatusEntry {
    fn default() -> Self {
        crate::section::left_out()
    }
}

/// More are better served by a user of their own.
const USERS_MAX: usize = 64;

impl StatusEntry {
    /// Who may give orders.
    pub fn operators(&self) -> &[UserName] {
        self.operators.as_ref().map_or(&[], |users| &users.0)
    }

    /// Who may ask.
    pub fn readers(&self) -> &[UserName] {
        self.readers.as_ref().map_or(&[], |users| &users.0)
    }

    fn check(&self) -> Result<(), String> {
        let all: Vec<&UserName> = self.operators().iter().chain(self.readers()).collect();
        if all.len() > USERS_MAX {
            return Err(format!("[status] names more than {USERS_MAX} users"));
        }
        for (place, user) in all.iter().enumerate() {
            if all[..place].contains(user) {
                return Err(format!("user {user} is named twice in [status]; name each once"));
            }
        }
        Ok(())
    }

    /// Checks that the users can reach the socket.
    pub(super) fn check_socket(
        &self,
        config: ConfigText<'_>,
        node: &Node,
    ) -> Result<(), ConfigError> {
        if self.operators().is_empty() && self.readers().is_empty() {
            return Ok(());
        }
        if node.status_socket.as_ref().is_some_and(|socket| !socket.starts_with(&node.state)) {
            return Ok(());
        }
        let key = if self.operators().is_empty() { "readers" } else { "operators" };
        let place = KeyPlace { heading: "[status]", nth: 0, key };
        let what = "other users cannot reach a socket in the state folder".to_owned();
        let help = "write status_socket = \"/run/skyhaul/status.sock\" into [node]";
        Err(ConfigError::at(config, place, what, help))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use std::path::Path;

    const NODE: &str = "[node]\nname = \"n\"\nkey = \"k\"\nstate = \"s\"\nstatus_socket = \
                        \"/run/n.sock\"\n[[listen]]\nbind = \"127.0.0.1:4700\"\n\
                        [status]\noperators = [\"ops\", \"1007\"]\nreaders = [\"monitor\"]\n";

    #[test]
    fn users_are_named_once_and_can_reach_the_socket() {
        let read = |text: &str| parse(text, Path::new("/etc/skyhaul/node.toml"));
        let status = read(NODE).unwrap().status;
        let ops = [UserName::Named("ops".to_owned()), UserName::Number(1007)];
        assert_eq!(status.operators(), ops);
        assert_eq!(status.readers(), [UserName::Named("monitor".to_owned())]);
        for (from, to, said) in [
            ("status_socket = \"/run/n.sock\"\n", "", "cannot reach a socket in the state folder"),
            ("/run/n.sock", "s/n.sock", "cannot reach a socket in the state folder"),
            ("monitor", "ops", "user ops is named twice"),
            ("monitor", "a b", "`a b` is not a user"),
            ("readers", "viewers", "unknown key `viewers`"),
        ] {
            let error = read(&NODE.replacen(from, to, 1)).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
