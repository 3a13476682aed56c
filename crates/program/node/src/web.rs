//! The page of the node: what its server is given, and what it shows of a look.

mod alarms;
mod contacts;
mod events;
mod figures;
mod look;
mod orders;
mod rows;
mod summary;
mod words;

use crate::adopted::Adopted;
use crate::fault::Fault;
use crate::looks::{HeartBeat, NodeLook};
use crate::services::{is_exposed, private_key};
use crate::status::WebStatus;
use look::ShownLook;
use skyhaul_config::WebEntry;
use skyhaul_web::access::WebRole;
use skyhaul_web_io::{WebFault, WebFiles, WebServer, WebSetup};
use std::path::PathBuf;
use std::sync::Arc;

pub use figures::metrics_of;
pub use orders::USES_FILE as WEB_TOKEN_USES;
pub(crate) use orders::WebOrders;

/// The server of the page at work.
#[derive(Debug)]
pub(crate) struct WebService {
    server: WebServer,
    entry: WebEntry,
    beat: Arc<HeartBeat>,
}

impl WebService {
    /// Starts it with the first look.
    ///
    /// # Errors
    /// A file or the port cannot be used.
    pub(crate) fn start(
        entry: &WebEntry,
        first: Arc<NodeLook>,
        beat: &Arc<HeartBeat>,
        orders: &Arc<WebOrders>,
    ) -> Result<Self, Fault> {
        let files = files(entry)?;
        let setup = WebSetup {
            bind: entry.bind,
            hosts: entry.host_names().to_vec(),
            look: Arc::new(ShownLook::new(first, beat.clone())),
            clock: beat.clock(),
            anonymous: entry.is_open().then_some(WebRole::Viewer),
            session_idle: entry.session_idle,
            uses: orders.kept_uses(),
            desk: orders.clone(),
        };
        let server = WebServer::start(setup, &files).map_err(|error| fault(entry, &error))?;
        let service = Self { server, entry: entry.clone(), beat: beat.clone() };
        tracing::info!("the node shows itself at {}", service.address());
        Ok(service)
    }

    /// Where browsers reach it.
    fn address(&self) -> String {
        let scheme = if self.server.has_tls() { "https" } else { "http" };
        format!("{scheme}://{}/", self.server.address())
    }

    /// Shows this look from now on.
    pub(crate) fn show(&self, look: &Arc<NodeLook>) {
        self.server.show(Arc::new(ShownLook::new(look.clone(), self.beat.clone())));
    }

    /// Reads certificate, key and users again.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn read(&self) -> Result<WebFiles, String> {
        let files = files(&self.entry).map_err(|fault| fault.to_string())?;
        let checked = WebServer::check(&files);
        checked.map_err(|error| fault(&self.entry, &error).to_string())?;
        Ok(files)
    }

    /// Takes files that were read again.
    ///
    /// # Errors
    /// What is wrong with them; nothing has changed.
    pub(crate) fn adopt(
        &self,
        files: &WebFiles,
        new: Option<&WebEntry>,
    ) -> Result<Adopted, String> {
        let changed = self.server.adopt(files);
        let changed = changed.map_err(|error| fault(&self.entry, &error).to_string())?;
        Ok(Adopted { changes: changed, waits: waiting(Some(&self.entry), new) })
    }

    /// What it does.
    pub(crate) fn status(&self) -> WebStatus {
        let counters = self.server.counters();
        WebStatus {
            address: self.address(),
            connections: counters.connections,
            streams: counters.streams,
            sessions: counters.sessions,
            answered: counters.answered,
            refused: counters.refused,
            unauthorized: counters.unauthorized,
            refused_connections: counters.refused_connections,
        }
    }
}

/// What has to wait for a restart, at a node that runs with `before`.
pub(crate) fn waiting(before: Option<&WebEntry>, new: Option<&WebEntry>) -> Vec<String> {
    let waits = match (before, new) {
        (Some(before), Some(new)) if before != new => "[web]",
        (None, Some(_)) => "[web] (new)",
        (Some(_), None) => "[web] (removed)",
        (Some(_), Some(_)) | (None, None) => return Vec::new(),
    };
    vec![waits.to_owned()]
}

/// Reads the files that an entry names.
fn files(entry: &WebEntry) -> Result<WebFiles, Fault> {
    let text = |file: &PathBuf, what: &str| {
        std::fs::read_to_string(file).map_err(|error| {
            let help = "correct it in [web], or give this user read permission";
            Fault::environment(format!("{what} cannot be read ({error})"), file.display(), help)
        })
    };
    let secret = |file: &PathBuf, what: &str, key: &str, remedy: &str| {
        private_key(file).map_err(|error| {
            let place = file.display();
            let help = match is_exposed(&error) {
                true => format!("chmod 600 {place}; {remedy}"),
                false => format!("correct `{key}` in [web], or give this user read permission"),
            };
            Fault::environment(format!("{what} cannot be read ({error})"), place, help)
        })
    };
    let tls = entry.tls().map(|pair| {
        let remedy = "make a new key if another user may have read it";
        let key = secret(pair.key, "the TLS key", "key", remedy)?;
        Ok((text(pair.certificate, "the certificate")?, key))
    });
    let users = entry.users.as_ref().map(|file| {
        let remedy = "give new passwords if another user may have read it";
        secret(file, "the users file", "users", remedy)
    });
    Ok(WebFiles { tls: tls.transpose()?, users: users.transpose()? })
}

fn fault(entry: &WebEntry, error: &WebFault) -> Fault {
    let file = |file: Option<&PathBuf>| {
        file.map_or_else(|| "[web]".to_owned(), |file| file.display().to_string())
    };
    let what = error.to_string();
    match error {
        WebFault::Socket(_) => {
            let help = "stop the program that uses the port, or correct `bind` in [web]";
            Fault::environment(what, entry.bind, help)
        }
        WebFault::Thread(_) => {
            let help = "raise this user's process limit (ulimit -u)";
            Fault::environment(what, "[web]", help)
        }
        WebFault::Tls(_) => {
            let help = "write certificate and key as PEM, the node's own certificate first";
            Fault::configuration(what, file(entry.certificate.as_ref()), help)
        }
        WebFault::Users(_) => {
            let help = "correct it; `skyhaul web user add` and `skyhaul web token add` write it";
            Fault::configuration(what, file(entry.users.as_ref()), help)
        }
    }
}
