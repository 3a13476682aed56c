//! `[web]`: the page of the node, its metrics and its JSON interface.

use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::section::section;
use crate::serve::{ServeEntry, TlsPair};
use std::net::SocketAddr;
use std::path::PathBuf;

section! {
    /// Shows the node in a browser, and gives its metrics to Prometheus. Certificate, key and
    /// accounts are read again on SIGHUP.
    "[web]" WebEntry checked by WebEntry::check {
        /// The TCP address and port to listen on, such as `127.0.0.1:8480`. Beyond loopback, TLS
        /// is needed, and accounts or `anonymous`.
        bind: SocketAddr => required,
        /// The certificate and those that lead to it (PEM).
        certificate: PathBuf => optional,
        /// The certificate's private key (PEM), which other users cannot read.
        key: PathBuf => optional,
        /// The accounts file, which `skyhaul serve token` writes: whoever has a token of it may
        /// look. Not that of `[serve]`, whose customers would see the node.
        accounts: PathBuf => optional,
        /// What is permitted without a token: `viewer`, to look, also from other hosts; `none`.
        /// Default: to look, where there is no accounts file and `bind` is on loopback.
        anonymous: WebAnonymous => optional,
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

/// More names than a host has.
const HOSTS_MAX: usize = 64;

impl WebEntry {
    /// Its certificate and key, where it has them.
    pub fn tls(&self) -> Option<TlsPair<'_>> {
        let (certificate, key) = self.certificate.as_ref().zip(self.key.as_ref())?;
        Some(TlsPair { certificate, key })
    }

    /// The names of its host.
    pub fn host_names(&self) -> &[String] {
        self.hosts.as_ref().map_or(&[], |hosts| &hosts.0)
    }

    fn check(&self) -> Result<(), String> {
        if self.certificate.is_some() != self.key.is_some() {
            return Err("[web] has one of `certificate` and `key`; write both, or neither".into());
        }
        match (self.accounts.is_some(), self.anonymous) {
            (true, Some(WebAnonymous::Viewer)) => {
                let what = "[web] has `accounts`, and nobody needs a token: remove one of \
                            `accounts` and `anonymous`";
                return Err(what.to_owned());
            }
            (false, Some(WebAnonymous::None)) => {
                return Err("nobody could look at [web]: write `accounts`".to_owned());
            }
            (true, None | Some(WebAnonymous::None))
            | (false, None | Some(WebAnonymous::Viewer)) => {}
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
        if self.accounts.is_some() && self.accounts.as_ref() == customers {
            let what = "the customers of [serve] would see the node".to_owned();
            let help = "write `accounts` of [web] as a file of its own";
            return Err(ConfigError::at(config, place("accounts"), what, help));
        }
        if self.bind.ip().is_loopback() {
            return Ok(());
        }
        let lacks = match (self.tls(), self.accounts.is_some() || self.anonymous.is_some()) {
            (None, _) => "TLS",
            (Some(_), false) => "accounts",
            (Some(_), true) => return Ok(()),
        };
        let what = format!("[web] would be open to other hosts without {lacks}");
        let help = match lacks {
            "TLS" => "write `certificate` and `key`, or bind to 127.0.0.1",
            _ => "write `accounts`, or anonymous = \"viewer\", or bind to 127.0.0.1",
        };
        Err(ConfigError::at(config, place("bind"), what, help))
    }

    /// The paths as seen from the configuration's folder.
    pub(super) fn resolve(&mut self, base: &std::path::Path) {
        let paths = [&mut self.certificate, &mut self.key, &mut self.accounts];
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
                        \"tls/key.pem\"\naccounts = \"viewers.toml\"\nhosts = \
                        [\"centre.example.org\"]\n";

    #[test]
    fn a_page_beyond_this_host_has_tls_and_says_who_may_look() {
        let read = |text: &str| parse(text, Path::new("/etc/skyhaul/node.toml"));
        let web = read(NODE).unwrap().web.unwrap();
        assert_eq!(web.tls().unwrap().key, Path::new("/etc/skyhaul/tls/key.pem"));
        assert_eq!(web.accounts.as_deref(), Some(Path::new("/etc/skyhaul/viewers.toml")));
        assert_eq!(web.host_names(), ["centre.example.org"]);
        let viewers = "accounts = \"viewers.toml\"";
        let anonymous = NODE.replace(viewers, "anonymous = \"viewer\"");
        assert!(read(&anonymous).is_ok());
        let local = NODE.replace("0.0.0.0", "[::1]").replace(viewers, "");
        let local = local.replace("certificate", "# ").replace("key = \"tls", "# ");
        assert!(read(&local).is_ok());
        for (from, to, what) in [
            (viewers, "", "[web] would be open to other hosts without accounts"),
            ("certificate = \"tls/cert.pem\"\nkey =", "# ", "other hosts without TLS"),
            ("key = \"tls", "# \"", "[web] has one of `certificate` and `key`"),
            ("hosts", "anonymous = \"viewer\"\nhosts", "nobody needs a token"),
            (viewers, "anonymous = \"none\"", "nobody could look"),
            ("hosts", "anonymous = \"admin\"\nhosts", "unknown variant `admin`"),
            ("centre.example.org", "https://x", "`https://x` is no host name"),
            ("viewers.toml", "customers.toml", "the customers of [serve] would see the node"),
        ] {
            let error = read(&NODE.replacen(from, to, 1)).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
        }
    }
}
