//! The server of a node: products for customers who come for them.

use crate::adopted::Adopted;
use crate::centre::Centre;
use crate::fault::Fault;
use crate::services::{self, is_exposed, is_shared, private_key};
use crate::sessions::{self, ContactSource, SessionWriter};
use crate::station::Station;
use crate::status::{ServeAccountStatus, ServeStatus};
use skyhaul_config::ServeEntry;
use skyhaul_net::Clock;
use skyhaul_serve::{GateLimits, ServeRoot};
use skyhaul_serve_io::{
    ServeFault, ServeFiles, ServeNotice, ServeServer, ServeSetup, ServedContacts, ServedProducts,
};
use skyhaul_units::Duration;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a server is of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ServedNode<'a> {
    /// A node that receives.
    Centre(&'a Centre),
    /// A node that only captures.
    Station(&'a Station),
}

/// The files of a station's contacts stay for so long, if the configuration does not say.
const CONTACTS_KEPT: Duration = Duration::from_secs(7 * 86_400);

/// The server at work.
#[derive(Debug)]
pub(crate) struct ServeService {
    server: ServeServer,
    entry: ServeEntry,
}

impl ServeService {
    /// Starts it, for the products of a centre, or for the contacts of a station.
    ///
    /// # Errors
    /// A file or the port cannot be used.
    pub(crate) fn start(
        entry: &ServeEntry,
        of: ServedNode<'_>,
        node: &skyhaul_config::Node,
        clock: Clock,
    ) -> Result<Self, Fault> {
        let files = files(entry)?;
        let state = &node.state;
        let (products, contacts) = match of {
            ServedNode::Centre(centre) => {
                let kept = centre.config().store.retention;
                let kept = entry.contact_retention.unwrap_or(kept);
                let contacts = match entry.roots().contains(&ServeRoot::Cadip) {
                    true => Some(offer(centre.shared().clone(), clock, state, kept)?),
                    false => None,
                };
                let folder = centre.shared().deliveries().products().to_owned();
                let catalogue = state.join(crate::centre::CATALOGUE_FILE);
                (Some(ServedProducts { catalogue, folder }), contacts)
            }
            ServedNode::Station(station) => {
                let kept = entry.contact_retention.unwrap_or(CONTACTS_KEPT);
                (None, Some(offer(station.shared().clone(), clock, state, kept)?))
            }
        };
        let setup = ServeSetup {
            bind: entry.bind,
            node: node.name.to_string(),
            address: entry.address.clone(),
            roots: entry.roots(),
            products,
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
        tracing::info!("requests are served at {secured}://{}", server.address());
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

/// Starts the thread that cuts contacts into files.
fn offer<S: ContactSource>(
    source: Arc<S>,
    clock: Clock,
    state: &Path,
    kept: Duration,
) -> Result<ServedContacts, Fault> {
    let writer = SessionWriter::open(source, clock, state, kept)?;
    let contacts = ServedContacts { folder: state.join(sessions::FOLDER), board: writer.board() };
    services::thread("contacts", move || writer.run())?;
    Ok(contacts)
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
    let is_exposed = entry.accounts.as_deref().is_some_and(is_shared);
    Ok(ServeFiles { tls: tls.transpose()?, accounts: accounts.transpose()?, is_exposed })
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
        ServeFault::Exposed => {
            let place = file(entry.accounts.as_ref());
            let help = format!("chmod 600 {place}; make new keys if another user may have read it");
            Fault::environment(what, place, help)
        }
        ServeFault::Accounts(_) => {
            let help = "correct it; `skyhaul serve token add` writes it";
            Fault::configuration(what, file(entry.accounts.as_ref()), help)
        }
    }
}
