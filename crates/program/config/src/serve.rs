//! `[serve]`: products for customers who come for them, over HTTPS.

use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::section::section;
use skyhaul_serve::ServeRoot;
use skyhaul_units::Duration;
use std::net::SocketAddr;
use std::path::PathBuf;

section! {
    /// Serves published products over HTTPS to customers who come for them. Certificate, key and
    /// accounts are read again on SIGHUP. Needs `[products]`; at a node that only captures,
    /// `interfaces = ["cadip"]`.
    "[serve]" ServeEntry checked by ServeEntry::check {
        /// The TCP address and port to listen on. Beyond loopback, TLS and accounts are needed.
        bind: SocketAddr => required,
        /// The certificate and those that lead to it (PEM).
        certificate: PathBuf => optional,
        /// The certificate's private key (PEM), which other users cannot read.
        key: PathBuf => optional,
        /// The accounts file, which `skyhaul serve token` writes. Without it, everybody on this
        /// host may ask for everything.
        accounts: PathBuf => optional,
        /// What addresses in answers begin with, such as `https://centre.example.org:8443`.
        /// Default: what the client calls the server.
        address: String => optional,
        /// The interfaces: `products`, `stac`, `prip`, `cadip`, `s3`. With `cadip`, the frames of
        /// contacts are kept as files too. Default: `products`, `stac` and `prip`.
        interfaces: ServeRoots => optional,
        /// How long the files of a contact stay after its end (`cadip`). Default: `retention` of
        /// `[store]`; at a node that only captures, 7 d.
        contact_retention: Duration => optional,
        /// The most connections at a time. Each may take a file and 1 MiB of the system's memory.
        connections: u32 => "2000",
        /// The most of them from one address: an IPv4 address, or a network of 64 bits of IPv6.
        connections_per_address: u32 => "128",
        /// A client that takes nothing of its answer for so long is disconnected.
        idle: Duration => "120 s",
    }
}

/// Interfaces of a server.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(transparent)]
pub struct ServeRoots(pub Vec<ServeRoot>);

impl ServeEntry {
    /// Its interfaces.
    pub fn roots(&self) -> Vec<ServeRoot> {
        self.interfaces.as_ref().map_or_else(|| ServeRoot::USUAL.to_vec(), |roots| roots.0.clone())
    }

    /// Whether it has contacts alone, which a node that only captures has too.
    pub fn is_of_contacts(&self) -> bool {
        self.roots() == [ServeRoot::Cadip]
    }

    /// Its certificate and key, where it has them.
    pub fn tls(&self) -> Option<TlsPair<'_>> {
        let (certificate, key) = self.certificate.as_ref().zip(self.key.as_ref())?;
        Some(TlsPair { certificate, key })
    }

    fn check(&self) -> Result<(), String> {
        if self.certificate.is_some() != self.key.is_some() {
            return Err("[serve] has one of `certificate` and `key`; write both, or neither".into());
        }
        if self.interfaces.as_ref().is_some_and(|roots| roots.0.is_empty()) {
            return Err("`interfaces` is empty; name one, or remove the key".to_owned());
        }
        if self.contact_retention == Some(Duration::ZERO) {
            return Err("`contact_retention` is zero: nobody could take a file".to_owned());
        }
        if self.connections == 0 || self.connections_per_address == 0 {
            return Err("a server without connections serves nothing; write at least 1".to_owned());
        }
        if self.idle < IDLE_MIN || self.idle > IDLE_MAX {
            return Err("`idle` is from 5 s to 1 h".to_owned());
        }
        let address = self.address.as_deref();
        let host = |address: &str| {
            let (scheme, host) = address.split_once("://")?;
            let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
            let is_host = !host.is_empty() && host.chars().all(is_plain);
            (matches!(scheme, "http" | "https") && is_host).then_some(())
        };
        if address.is_some_and(|address| host(address).is_none()) {
            return Err("`address` is not like \"https://centre.example.org:8443\"".to_owned());
        }
        Ok(())
    }

    /// Checks that nobody beyond this host is served without TLS and accounts.
    pub(super) fn check_bind(&self, config: ConfigText<'_>) -> Result<(), ConfigError> {
        let lacks = match (self.tls().is_none(), self.accounts.is_none()) {
            (true, _) => "TLS",
            (false, true) => "accounts",
            (false, false) => return Ok(()),
        };
        if self.bind.ip().is_loopback() {
            return Ok(());
        }
        let place = KeyPlace { heading: "[serve]", nth: 0, key: "bind" };
        let what = format!("[serve] would be open to other hosts without {lacks}");
        let help = "write `certificate`, `key` and `accounts`, or bind to 127.0.0.1";
        Err(ConfigError::at(config, place, what, help))
    }

    /// The paths as seen from the configuration's folder.
    pub(super) fn resolve(&mut self, base: &std::path::Path) {
        let paths = [&mut self.certificate, &mut self.key, &mut self.accounts];
        paths.into_iter().flatten().for_each(|path| crate::from_base(base, path));
    }
}

/// The files of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsPair<'a> {
    /// The certificate.
    pub certificate: &'a PathBuf,
    /// Its private key.
    pub key: &'a PathBuf,
}

/// A shorter pause is one of a busy network.
const IDLE_MIN: Duration = Duration::from_secs(5);
const IDLE_MAX: Duration = Duration::from_secs(3_600);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use std::path::Path;

    const NODE: &str = "[node]\nname = \"n\"\nkey = \"k\"\nstate = \"s\"\n[[listen]]\nbind = \
                        \"127.0.0.1:4700\"\n[products]\ndir = \"products\"\n[serve]\nbind = \
                        \"0.0.0.0:8443\"\ncertificate = \"tls/cert.pem\"\nkey = \
                        \"tls/key.pem\"\naccounts = \"accounts.toml\"\nidle = \"60 s\"\n";

    #[test]
    fn a_node_that_only_captures_serves_contacts_alone() {
        let station = "[node]\nname = \"s\"\nkey = \"k\"\nstate = \"s\"\n[[destination]]\nto = \
                       \"node:c\"\n[[peer]]\nname = \"c\"\naddresses = [\"127.0.0.1:4700\"]\n\
                       fingerprints = [\"SHA256:DIGITS\"]\n[[channel]]\nname = \"x\"\ninput = \
                       \"file:a\"\n[serve]\nbind = \"127.0.0.1:0\"\ninterfaces = [\"cadip\"]\n";
        let read = |text: &str| parse(text, Path::new("/etc/skyhaul/node.toml"));
        let station = station.replace("DIGITS", &"0f".repeat(32));
        let config = read(&station).unwrap();
        assert!(config.serve.unwrap().is_of_contacts());
        let retention = config.station.unwrap().spool.retention;
        assert_eq!(retention, Duration::from_secs(60), "a look at the spool comes in time");
        for (from, to, what) in [
            ("[\"cadip\"]", "[\"cadip\", \"prip\"]", "[[listen]]"),
            ("[[channel]]\nname = \"x\"\ninput = \"file:a\"\n", "", "[[channel]]"),
        ] {
            let error = read(&station.replacen(from, to, 1)).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
        }
    }

    #[test]
    fn a_server_beyond_this_host_has_tls_and_accounts() {
        let read = |text: &str| parse(text, Path::new("/etc/skyhaul/node.toml"));
        let serve = read(NODE).unwrap().serve.unwrap();
        assert_eq!(serve.tls().unwrap().key, Path::new("/etc/skyhaul/tls/key.pem"));
        assert_eq!(serve.accounts.as_deref(), Some(Path::new("/etc/skyhaul/accounts.toml")));
        assert_eq!(serve.roots(), ServeRoot::USUAL);
        let local = NODE.replace("0.0.0.0", "[::1]").replace("accounts =", "# ");
        assert!(read(&local).is_ok());
        for (from, to, what) in [
            ("accounts =", "# ", "[serve] would be open to other hosts without accounts"),
            ("certificate = \"tls/cert.pem\"\nkey =", "# ", "other hosts without TLS"),
            ("key = \"tls", "# \"", "[serve] has one of `certificate` and `key`"),
            ("idle = \"60 s\"", "idle = \"1 s\"", "`idle` is from 5 s to 1 h"),
            ("idle = \"60 s\"", "interfaces = []", "`interfaces` is empty"),
            ("idle = \"60 s\"", "interfaces = [\"ftp\"]", "unknown variant `ftp`"),
            ("idle = \"60 s\"", "connections = 0", "serves nothing"),
            ("idle = \"60 s\"", "address = \"centre\"", "`address` is not like"),
            ("[products]\ndir = \"products\"", "", "[products]"),
            ("idle = \"60 s\"", "contact_retention = \"0 s\"", "`contact_retention` is zero"),
        ] {
            let error = read(&NODE.replacen(from, to, 1)).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
        }
    }
}
