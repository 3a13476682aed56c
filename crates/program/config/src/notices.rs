//! `[[webhook]]`, `[[exec]]`, `[[mail]]`: who is told of events outside this machine.

use crate::error::{ConfigError, ConfigText};
use crate::section::section;
use skyhaul_events::EventFilter;
use skyhaul_remote::PostUrl;
use std::path::{Path, PathBuf};

section! {
    /// Sends events to a server, each as a CloudEvent (JSON) by POST, in order and at least once:
    /// what a server did not take is sent again, also after a restart, at intervals of 1 s to 5
    /// min. Up to 16.
    "[[webhook]]" WebhookEntry {
        /// Where they go: `https://host[:port]/path`; `http://` only to this machine.
        url: PostUrl => required,
        /// Which: kinds, groups and severities, such as `["alarm.*", "major+"]`.
        /// docs/reference/events.md has them.
        events: EventFilter => required,
        /// A file with a secret of at least 16 bytes, which other users cannot read. Each event is
        /// signed with it (HMAC-SHA256). Default: not signed.
        secret_file: PathBuf => optional,
        /// Certificates (PEM) that vouch for the server. Default: those of this machine.
        ca: PathBuf => optional,
    }
}

section! {
    /// Runs a command for each event, one at a time, with the event as JSON on its standard input.
    /// A command that fails is run up to 3 times; one that takes more than 60 s is killed. Up to
    /// 16.
    "[[exec]]" ExecEntry checked by ExecEntry::check {
        /// The program, with its absolute path, and its arguments. No shell reads them.
        command: Vec<String> => required,
        /// Which events.
        events: EventFilter => required,
    }
}

section! {
    /// Sends mail about events by the system's `sendmail`: one mail for what came within a minute.
    /// Up to 16.
    "[[mail]]" MailEntry checked by MailEntry::check {
        /// The addresses.
        to: Vec<String> => required,
        /// Which events.
        events: EventFilter => required,
        /// The program that takes the mail.
        sendmail: String => "/usr/sbin/sendmail",
    }
}

/// Who is told of events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoticesConfig {
    /// Servers.
    pub webhooks: Vec<WebhookEntry>,
    /// Commands.
    pub commands: Vec<ExecEntry>,
    /// Mails.
    pub mails: Vec<MailEntry>,
}

/// Of each table: each entry has a thread.
const ENTRIES_MAX: usize = 16;
const ADDRESSES_MAX: usize = 32;
const ARGUMENTS_MAX: usize = 64;

impl ExecEntry {
    fn check(&self) -> Result<(), String> {
        let first = self.command.first().map(Path::new);
        if !first.is_some_and(Path::is_absolute) {
            return Err("`command` begins with the absolute path of a program".to_owned());
        }
        if self.command.len() > ARGUMENTS_MAX {
            return Err(format!("a command has up to {ARGUMENTS_MAX} arguments"));
        }
        if self.command.iter().any(|part| part.contains('\0')) {
            return Err("an argument has no zero byte".to_owned());
        }
        Ok(())
    }
}

impl MailEntry {
    fn check(&self) -> Result<(), String> {
        if self.to.is_empty() || self.to.len() > ADDRESSES_MAX {
            return Err(format!("a mail goes to 1 to {ADDRESSES_MAX} addresses"));
        }
        for address in &self.to {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "@.+-_=".contains(c);
            let is_address = address.len() <= 254
                && !address.starts_with('-')
                && address.chars().all(is_plain)
                && address.matches('@').count() <= 1;
            if address.is_empty() || !is_address {
                return Err(format!("`{address}` is no mail address such as \"noc@example.org\""));
            }
        }
        if !Path::new(&self.sendmail).is_absolute() {
            return Err("`sendmail` is the absolute path of a program".to_owned());
        }
        Ok(())
    }
}

impl NoticesConfig {
    /// Whether nobody is told.
    pub fn is_empty(&self) -> bool {
        self.webhooks.is_empty() && self.commands.is_empty() && self.mails.is_empty()
    }

    pub(super) fn check(&self, config: ConfigText<'_>) -> Result<(), ConfigError> {
        for (heading, count) in [
            ("[[webhook]]", self.webhooks.len()),
            ("[[exec]]", self.commands.len()),
            ("[[mail]]", self.mails.len()),
        ] {
            if count > ENTRIES_MAX {
                return Err(ConfigError::many(config, heading, count, ENTRIES_MAX));
            }
        }
        Ok(())
    }

    /// The paths as seen from the configuration's folder.
    pub(super) fn resolve(&mut self, base: &Path) {
        for hook in &mut self.webhooks {
            let paths = [&mut hook.secret_file, &mut hook.ca];
            paths.into_iter().flatten().for_each(|path| crate::from_base(base, path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    const NODE: &str = "[node]\nname = \"n\"\nkey = \"k\"\nstate = \"s\"\n[[listen]]\nbind = \
                        \"127.0.0.1:4700\"\n[[webhook]]\nurl = \
                        \"https://ops.example.org/hook\"\nevents = [\"alarm.*\", \
                        \"major+\"]\nsecret_file = \"hook.secret\"\n[[exec]]\ncommand = \
                        [\"/usr/bin/logger\", \"-t\", \"skyhaul\"]\nevents = \
                        [\"*\"]\n[[mail]]\nto = [\"noc@example.org\"]\nevents = [\"critical+\"]\n";

    #[test]
    fn notices_are_read_and_what_cannot_be_is_named() {
        let read = |text: &str| parse(text, Path::new("/etc/skyhaul/node.toml"));
        let notices = read(NODE).unwrap().notices;
        let secret = notices.webhooks[0].secret_file.as_deref();
        assert_eq!(secret, Some(Path::new("/etc/skyhaul/hook.secret")));
        assert_eq!(notices.mails[0].sendmail, "/usr/sbin/sendmail");
        for (from, to, what) in [
            ("https://ops", "http://ops", "without encryption to another machine"),
            ("[\"alarm.*\", ", "[\"alarms.*\", ", "there are no events `alarms.*`"),
            ("events = [\"*\"]", "events = []", "takes no events"),
            ("/usr/bin/logger", "logger", "the absolute path of a program"),
            ("noc@example.org", "-oQ/tmp", "is no mail address"),
            ("noc@example.org", "noc@example.org\\nBcc: x", "is no mail address"),
            ("\"noc@example.org\"", "", "a mail goes to 1 to 32 addresses"),
        ] {
            let error = read(&NODE.replacen(from, to, 1)).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
        }
        let hook = "[[webhook]]\nurl = \"https://x/\"\nevents = [\"*\"]\n".repeat(16);
        assert!(read(&format!("{NODE}{hook}")).is_err());
    }
}
