//! `[web]`: the page of the node, its metrics and its JSON interface.

use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::section::section;
use crate::serve::{ServeEntry, TlsPair};
use skyhaul_units::Duration;
use std::net::SocketAddr;
use std::path::PathBuf;

section! {
    /// Shows the node in a browser, gives its metrics to Prometheus, and takes orders of operators.
    /// Certificate, key and users are read again on SIGHUP.
    "[web]" WebEntry checked by WebEntry::check {
        /// The TCP address and port to listen on, such as `127.0.0.1:8480`. Beyond loopback, TLS
        /// is needed, and `users` or `anonymous`.
        bind: SocketAddr => required,
        /// The certificate and those that lead to it (PEM).
        certificate: PathBuf => optional,
        /// The certificate's private key (PEM), which other users cannot read.
        key: PathBuf => optional,
        /// The users file, which `skyhaul web user` and `skyhaul web token` write: who may look,
        /// and who may give orders. Other users of this host cannot read it.
        users: PathBuf => optional,
        /// What is permitted without a token or a password: `viewer`, to look, also from other
        /// hosts; `none`. Default: to look, where there is no users file and `bind` is on loopback.
        anonymous: WebAnonymous => optional,
        /// A person who has logged in and does nothing for so long has to log in again.
        session_idle: Duration => "30 min",
        /// The names under which browsers reach the node, beside its addresses and `localhost`.
        hosts: WebHosts => optional,
    }
}

/// What somebody without a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WebAnonymous {
    /// Nothing.
    None,
    /// Look.
    Viewer,
}

/// Names of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(transparent)]
pub struct WebHosts(pub Vec<String>);

/// A person who reads does nothing for longer.
const IDLE_MIN: Duration = Duration::from_secs(60);
/// No session lasts longer.
const IDLE_MAX: Duration = Duration::from_secs(86_400);
/// More names than a host has.
const HOSTS_MAX: usize = 64;

impl WebEntry {
    /// Its certificate and key, where it has them.
    pub fn tls(&self) -> Option<TlsPair<'_>> {
        let (certificate, key) = self.certificate.as_ref().zip(self.key.as_ref())?;
        Some(TlsPair { certificate, key })
    }

    /// Whether everybody who reaches the page may look.
    pub const fn is_open(&self) -> bool {
        match self.anonymous {
            Some(WebAnonymous::Viewer) => true,
            Some(WebAnonymous::None) => false,
            None => self.users.is_none(),
        }
    }

    /// The names of its host.
    pub fn host_names(&self) -> &[String] {
        self.hosts.as_ref().map_or(&[], |hosts| &hosts.0)
    }

    fn check(&self) -> Result<(), String> {
        if self.certificate.is_some() != self.key.is_some() {
            return Err("[web] has one of `certificate` and `key`; write both, or neither".into());
        }
        if self.users.is_none() && self.anonymous == Some(WebAnonymous::None) {
            return Err("nobody could look at [web]: write `users`".to_owned());
        }
        if self.session_idle < IDLE_MIN || self.session_idle > IDLE_MAX {
            return Err("`session_idle` is from 1 min to 24 h".to_owned());
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        let is_name = |host: &String| (1..=253).contains(&host.len()) && host.chars().all(is_plain);
        if let Some(wrong) = self.host_names().iter().find(|host| !is_name(host)) {
            let shown = skyhaul_units::printable(wrong, 64);
            return Err(format!("`{shown}` is no host name; write it without scheme and port"));
        }
        if self.host_names().len() > HOSTS_MAX {
            return Err(format!("`hosts` has more than {HOSTS_MAX} names"));
        }
        Ok(())
    }

    /// Checks who could look, from where.
    pub(super) fn check_access(
        &self,
        config: ConfigText<'_>,
        serve: Option<&ServeEntry>,
    ) -> Result<(), ConfigError> {
        let place = |key| KeyPlace { heading: "[web]", nth: 0, key };
        let customers = serve.and_then(|serve| serve.accounts.as_ref());
        if self.users.is_some() && self.users.as_ref() == customers {
            let what = "the accounts of [serve] are of another form".to_owned();
            let help = "write `users` of [web] as a file of its own";
            return Err(ConfigError::at(config, place("users"), what, help));
        }
        if self.bind.ip().is_loopback() {
            return Ok(());
        }
        let lacks = match (self.tls(), self.users.is_some() || self.anonymous.is_some()) {
            (None, _) => "TLS",
            (Some(_), false) => "users",
            (Some(_), true) => return Ok(()),
        };
        let what = format!("[web] would be open to other hosts without {lacks}");
        let help = match lacks {
            "TLS" => "write `certificate` and `key`, or bind to 127.0.0.1",
            _ => "write `users`, or anonymous = \"viewer\", or bind to 127.0.0.1",
        };
        Err(ConfigError::at(config, place("bind"), what, help))
    }

    /// The paths as seen from the configuration's folder.
    pub(super) fn resolve(&mut self, base: &std::path::Path) {
        let paths = [&mut self.certificate, &mut self.key, &mut self.users];
        paths.into_iter().flatten().for_each(|path| crate::from_base(base, path));
    }
}

#[cfg(test)]
mod tests {
    use crate::parse;
    use std::path::Path;

    const NODE: &str = "[node]\nname = \"n\"\nkey = \"k\"\nstate = \"s\"\n[[listen]]\nbind = \
                        \"127.0.0.1:4700\"\n[products]\ndir = \"products\"\n[serve]\nbind = \
                        \"127.0.0.1:8443\"\naccounts = \"customers.toml\"\n[web]\nbind = \
                        \"0.0.0.0:8480\"\ncertificate = \"tls/cert.pem\"\nkey = \
                        \"tls/key.pem\"\nusers = \"users.toml\"\nhosts = \
                        [\"centre.example.org\"]\n";

    #[test]
    fn a_page_beyond_this_host_has_tls_and_says_who_may_look() {
        let read = |text: &str| parse(text, Path::new("/etc/skyhaul/node.toml"));
        let web = read(NODE).unwrap().web.unwrap();
        assert_eq!(web.tls().unwrap().key, Path::new("/etc/skyhaul/tls/key.pem"));
        assert_eq!(web.users.as_deref(), Some(Path::new("/etc/skyhaul/users.toml")));
        assert!(!web.is_open());
        assert_eq!(web.host_names(), ["centre.example.org"]);
        let viewers = "users = \"users.toml\"";
        let anonymous = NODE.replace(viewers, "anonymous = \"viewer\"");
        assert!(read(&anonymous).unwrap().web.unwrap().is_open());
        let both = NODE.replace("hosts", "anonymous = \"viewer\"\nhosts");
        assert!(read(&both).unwrap().web.unwrap().is_open());
        let local = NODE.replace("0.0.0.0", "[::1]").replace(viewers, "");
        let local = local.replace("certificate", "# ").replace("key = \"tls", "# ");
        assert!(read(&local).is_ok());
        for (from, to, what) in [
            (viewers, "", "[web] would be open to other hosts without users"),
            ("certificate = \"tls/cert.pem\"\nkey =", "# ", "other hosts without TLS"),
            ("key = \"tls", "# \"", "[web] has one of `certificate` and `key`"),
            ("hosts", "session_idle = \"30 s\"\nhosts", "`session_idle` is from 1 min"),
            (viewers, "anonymous = \"none\"", "nobody could look"),
            ("hosts", "anonymous = \"admin\"\nhosts", "unknown variant `admin`"),
            ("centre.example.org", "https://x", "`https://x` is no host name"),
            ("users.toml", "customers.toml", "the accounts of [serve] are of another form"),
        ] {
            let error = read(&NODE.replacen(from, to, 1)).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
        }
    }
}
