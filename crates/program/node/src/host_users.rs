//! The users of this host, by name and number.

use std::path::Path;

/// The text of `/etc/passwd`, as it was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostUsers(String);

impl HostUsers {
    /// Reads it; a host without the file has no names.
    pub fn read() -> Self {
        Self(std::fs::read_to_string(Path::new("/etc/passwd")).unwrap_or_default())
    }

    /// The number of a user.
    pub fn uid(&self, name: &str) -> Option<u32> {
        let mut lines = self.0.lines().map(|line| line.split(':'));
        lines.find_map(|mut fields| {
            let is_it = fields.next() == Some(name);
            fields.nth(1).filter(|_| is_it)?.parse().ok()
        })
    }

    /// The name of a user, with the number: `kim (uid 1000)`, or `uid 1000`.
    pub fn shown(&self, uid: u32) -> String {
        let mut lines = self.0.lines().map(|line| line.split(':'));
        let name = lines.find_map(|mut fields| {
            let name = fields.next()?;
            (fields.nth(1)?.parse::<u32>().ok()? == uid).then_some(name)
        });
        name.map_or_else(|| format!("uid {uid}"), |name| format!("{name} (uid {uid})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_whole_name_and_by_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\nsci:x:1007:100::/home/sci:/bin/sh\nbad\n";
        let users = HostUsers(users.to_owned());
        assert_eq!((users.uid("sci"), users.uid("root")), (Some(1007), Some(0)));
        assert_eq!((users.uid("sc"), users.uid("bad")), (None, None));
        assert_eq!(users.shown(1007), "sci (uid 1007)");
        assert_eq!(users.shown(7), "uid 7");
    }
}
