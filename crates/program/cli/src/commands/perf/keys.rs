//! The keys that the two ends have and accept.

use crate::commands::book::{self, KnownNodes};
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::{is_exposed, log, private_key};
use skyhaul_quic::{Fingerprint, Identity};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// How an end proves who it is, and whom it accepts.
#[derive(clap::Args)]
pub struct Keys {
    /// This end's private key, made by `skyhaul keygen`. Default: `skyhaul/node.key` in
    /// `$XDG_CONFIG_HOME` (`~/.config`), which is made at first use.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure_test")]
    key: Option<PathBuf>,
    /// The fingerprint of the other end's key, as `skyhaul keygen` prints it. A serving end can
    /// accept several. Default: as in the address book; a serving end accepts all nodes in it.
    #[arg(long, value_name = "SHA256:…", conflicts_with = "insecure_test")]
    peer: Vec<Fingerprint>,
    /// Encrypts with a publicly known key, for tests. Only over loopback.
    #[arg(long)]
    insecure_test: bool,
    /// With --insecure-test: also over other networks. Anyone who can reach this end is accepted.
    #[arg(long, requires = "insecure_test")]
    insecure_beyond_loopback: bool,
}

/// The keys, read by [`Keys`].
pub struct Accepted {
    /// This end.
    pub own: Identity,
    /// The other end; not empty.
    pub peers: Vec<Fingerprint>,
}

impl Keys {
    /// Whether both ends use the key that everybody knows.
    pub const fn is_insecure(&self) -> bool {
        self.insecure_test
    }

    /// Whether no flag says which key the other end has.
    pub const fn needs_peer(&self) -> bool {
        !self.insecure_test && self.peer.is_empty()
    }

    /// Reads the keys of an end that serves. Without `--peer` it accepts the nodes of the address
    /// book. `ends` are the addresses that are listened at.
    ///
    /// # Errors
    /// Keys are missing, cannot be read, may be read by others, or are none; the test's is to be
    /// used beyond loopback.
    pub fn of_server(
        &self,
        ends: impl IntoIterator<Item = SocketAddr>,
    ) -> Result<Accepted, Failure> {
        let mut known = Vec::new();
        if self.needs_peer() && book::has_own_folder() {
            let nodes = KnownNodes::load()?;
            known = nodes.iter().flat_map(|node| node.peer.fingerprints.iter()).collect();
            let names: Vec<&str> = nodes.iter().map(|node| node.peer.name.as_str()).collect();
            if !names.is_empty() {
                log::say(&format!("note: accepts the address book: {}", names.join(", ")));
            }
        }
        self.of_far(&known, ends)
    }

    /// Reads the keys of an end that connects to a node whose keys are `known` from the address
    /// book; `--peer` has priority. `ends` are the addresses that are connected to.
    ///
    /// # Errors
    /// As of [`Self::of_server`].
    pub fn of_far(
        &self,
        known: &[Fingerprint],
        ends: impl IntoIterator<Item = SocketAddr>,
    ) -> Result<Accepted, Failure> {
        if self.insecure_test {
            self.warn(ends)?;
            let own =
                Identity::from_seed(TEST_SEED).map_err(|error| unusable(&error.to_string()))?;
            let peers = vec![own.fingerprint()];
            return Ok(Accepted { own, peers });
        }
        let peers = if self.peer.is_empty() { known } else { &*self.peer };
        if peers.is_empty() || (self.key.is_none() && !book::has_own_folder()) {
            let what = "the keys are missing";
            let help = "run `skyhaul pair` at both ends, or give --key and --peer (`skyhaul \
                       keygen` makes keys), or --insecure-test on both ends";
            return Err(Failure::new(Exit::Usage, what, help));
        }
        let own = self.own()?;
        Ok(Accepted { own, peers: peers.to_vec() })
    }

    /// This end's key: that of the flag, or this user's, which is made if there is none.
    ///
    /// # Errors
    /// It cannot be read or made, may be read by others, or is none.
    pub fn own(&self) -> Result<Identity, Failure> {
        own_key(self.key.as_deref())
    }
}

/// The key in `file`, or this user's, which is made if there is none.
///
/// # Errors
/// It cannot be read or made, may be read by others, or is none.
pub fn own_key(file: Option<&Path>) -> Result<Identity, Failure> {
    let file = match file {
        Some(file) => file.to_owned(),
        None => book::own_key_file()?,
    };
    let place = file.display().to_string();
    let text = private_key(&file).map_err(|source| {
        let help = match is_exposed(&source) {
            true => {
                format!("chmod 600 {place}; make a new key if another user may have read it")
            }
            false => "give the path of a key made by `skyhaul keygen`".to_owned(),
        };
        Failure::io("the key cannot be read", &place, &help, source)
    })?;
    Identity::from_pem(&text).map_err(|error| unusable(&error.to_string()).at(&place))
}

impl Keys {
    /// Prints a warning about the test key at every start.
    fn warn(&self, ends: impl IntoIterator<Item = SocketAddr>) -> Result<(), Failure> {
        let beyond = ends.into_iter().find(|end| !end.ip().to_canonical().is_loopback());
        if let Some(end) = beyond.filter(|_| !self.insecure_beyond_loopback) {
            let what = format!("--insecure-test is for loopback, and {end} is not");
            let help = "give --key and --peer (`skyhaul keygen` makes keys), or \
                       --insecure-beyond-loopback if nobody else can send";
            return Err(Failure::new(Exit::Usage, &what, help));
        }
        let warning = "warning: --insecure-test: this key is public; this end trusts any far end";
        log::say(warning);
        Ok(())
    }
}

fn unusable(reason: &str) -> Failure {
    Failure::from_sentence(Exit::Usage, reason)
}

/// No secret: both ends make the same key of it, as does anyone who reads this.
const TEST_SEED: &[u8; 32] = b"skyhaul perf --insecure-test key";
