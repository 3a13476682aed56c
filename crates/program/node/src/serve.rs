//! The server of a node: products for customers who come for them.

use crate::adopted::Adopted;
use crate::centre::Centre;
use crate::fault::Fault;
use crate::services::{is_exposed, private_key};
use crate::status::{ServeAccountStatus, ServeStatus};
use skyhaul_config::ServeEntry;
use skyhaul_net::Clock;
use skyhaul_serve::{GateLimits, ServeRoot};
use skyhaul_serve_io::{ServeFault, ServeFiles, ServeNotice, ServeServer, ServeSetup};
use std::path::{Path, PathBuf};

/// The server at work.
#[derive(Debug)]
pub(crate) struct ServeService {
    server: ServeServer,
    entry: ServeEntry,
}

impl ServeService {
    /// Starts it, for the products of a centre.
    ///
    /// # Errors
    /// A file or the port cannot be used.
    pub(crate) fn start(
        entry: &ServeEntry,
        centre: &Centre,
        node: &skyhaul_config::Node,
        clock: Clock,
    ) -> Result<Self, Fault> {
        let files = files(entry)?;
        let contacts = match entry.roots().contains(&ServeRoot::Cadip) {
            true => Some(centre.offer_contacts(&node.state, clock)?),
            false => None,
        };
        let setup = ServeSetup {
            bind: entry.bind,
            node: node.name.to_string(),
            address: entry.address.clone(),
            roots: entry.roots(),
            catalogue: catalogue(&node.state),
            products: centre.shared().deliveries().products().to_owned(),
            contacts,
            limits: GateLimits {
                connections: entry.connections,
                per_address: entry.connections_per_address,
            },
            idle: entry.idle,
            clock,
            notify: Box::new(|notice| match notice {
                ServeNotice::Access(line) => tracing::info!("serve: {line}"),
                ServeNotice::Warning(what) => tracing::warn!("serve: {what}"),
            }),
        };
        let server = ServeServer::start(setup, &files).map_err(|error| fault(entry, &error))?;
        let secured = if files.tls.is_some() { "https" } else { "http" };
        tracing::info!("products are served at {secured}://{}", server.address());
        Ok(Self { server, entry: entry.clone() })
    }

    /// Reads certificate, key and accounts again.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn read(&self) -> Result<ServeFiles, String> {
        let files = files(&self.entry).map_err(|fault| fault.to_string())?;
        let checked = ServeServer::check(&files);
        checked.map_err(|error| fault(&self.entry, &error).to_string())?;
        Ok(files)
    }

    /// Takes files that were read again.
    ///
    /// # Errors
    /// What is wrong with them; nothing has changed.
    pub(crate) fn adopt(
        &self,
        files: &ServeFiles,
        new: Option<&ServeEntry>,
    ) -> Result<Adopted, String> {
        let changed = self.server.adopt(files);
        let changed = changed.map_err(|error| fault(&self.entry, &error).to_string())?;
        let changes = changed.into_iter().map(str::to_owned).collect();
        Ok(Adopted { changes, waits: waiting(Some(&self.entry), new) })
    }

    /// What it does.
    pub(crate) fn status(&self) -> ServeStatus {
        let counters = self.server.counters();
        let account = |usage: skyhaul_serve::AccountUsage| ServeAccountStatus {
            name: usage.name,
            requests: usage.requests,
            answered: usage.answered,
            bytes: usage.sent,
        };
        ServeStatus {
            address: self.server.address().to_string(),
            connections: counters.connections,
            answered: counters.answered,
            bytes: counters.sent,
            refused_connections: counters.refused_connections,
            unauthorized: counters.unauthorized,
            over_budget: counters.over_budget,
            refused: counters.refused,
            stalled: counters.stalled,
            accounts: self.server.usage().into_iter().map(account).collect(),
        }
    }
}

/// What has to wait for a restart, at a node that runs with `before`.
pub(crate) fn waiting(before: Option<&ServeEntry>, new: Option<&ServeEntry>) -> Vec<String> {
    let waits = match (before, new) {
        (Some(before), Some(new)) if before != new => "[serve]",
        (None, Some(_)) => "[serve] (new)",
        (Some(_), None) => "[serve] (removed)",
        (Some(_), Some(_)) | (None, None) => return Vec::new(),
    };
    vec![waits.to_owned()]
}

/// The file of the catalogue in a state folder.
fn catalogue(state: &Path) -> PathBuf {
    state.join(crate::centre::CATALOGUE_FILE)
}

/// Reads the files that an entry names.
fn files(entry: &ServeEntry) -> Result<ServeFiles, Fault> {
    let text = |file: &PathBuf, what: &str| {
        std::fs::read_to_string(file).map_err(|error| {
            let help = "correct it in [serve], or give this user read permission";
            Fault::environment(format!("{what} cannot be read ({error})"), file.display(), help)
        })
    };
    let tls = entry.tls().map(|pair| {
        let key = private_key(pair.key).map_err(|error| {
            let place = pair.key.display();
            let help = match is_exposed(&error) {
                true => {
                    format!("chmod 600 {place}; make a new key if another user may have read it")
                }
                false => "correct `key` in [serve], or give this user read permission".to_owned(),
            };
            Fault::environment(format!("the TLS key cannot be read ({error})"), place, help)
        })?;
        Ok((text(pair.certificate, "the certificate")?, key))
    });
    let accounts = entry.accounts.as_ref().map(|file| text(file, "the accounts file"));
    Ok(ServeFiles { tls: tls.transpose()?, accounts: accounts.transpose()? })
}

fn fault(entry: &ServeEntry, error: &ServeFault) -> Fault {
    let file = |file: Option<&PathBuf>| {
        file.map_or_else(|| "[serve]".to_owned(), |file| file.display().to_string())
    };
    let what = error.to_string();
    match error {
        ServeFault::Socket(_) => {
            let help = "stop the program that uses the port, or correct `bind` in [serve]";
            Fault::environment(what, entry.bind, help)
        }
        ServeFault::Thread(_) => {
            let help = "raise this user's process limit (ulimit -u)";
            Fault::environment(what, "[serve]", help)
        }
        ServeFault::Tls(_) => {
            let help = "write certificate and key as PEM, the node's own certificate first";
            Fault::configuration(what, file(entry.certificate.as_ref()), help)
        }
        ServeFault::Accounts(_) => {
            let help = "correct it; `skyhaul serve token add` writes it";
            Fault::configuration(what, file(entry.accounts.as_ref()), help)
        }
    }
}
