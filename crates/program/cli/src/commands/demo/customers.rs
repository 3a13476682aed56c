//! The consumers of the demonstration's products: a second node, and an SFTP server and an object
//! store where this machine has the programs for them.

use super::child::NodeProcess;
use super::folder::{CUSTOMER, Folder};
use super::servers::{ObjectStore, ServerProcess, ServerStart, SftpServer};
use serde::Serialize;
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::Clock;
use skyhaul_node::status::ask_outlets;
use skyhaul_units::Duration;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;

/// The consumers.
pub struct Customers {
    /// The second node, once the centre listens.
    node: Option<NodeProcess>,
    /// They run until the end.
    _servers: Vec<ServerProcess>,
    tables: String,
    absent: Vec<String>,
}

/// Whether servers of other makers are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignServers {
    /// Those that this machine has.
    Started,
    /// None.
    Left,
}

/// What was delivered.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DeliveriesReport {
    /// How many deliveries to each consumer are in each state.
    pub destinations: BTreeMap<String, BTreeMap<String, u64>>,
    /// Consumers that this machine has no program for, in sentences.
    pub absent: Vec<String>,
    /// The page about latency and timeliness.
    pub page: Option<String>,
}

/// The page in the demonstration's folder.
const PAGE: &str = "report.html";

impl Customers {
    /// Starts the servers that this machine has programs for.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn find(folder: &Folder, wanted: ForeignServers) -> Result<Self, Failure> {
        let mut tables = format!(
            "\n[[peer]]\nname = \"{CUSTOMER}\"\nfingerprints = [\"{}\"]\n\n[[destination]]\nname = \
             \"second-node\"\nto = \"node:{CUSTOMER}/products\"\nconnections = 2\n",
            folder.customer_key()
        );
        let (mut servers, mut absent) = (Vec::new(), Vec::new());
        let starts: [ServerStart; 2] = [SftpServer::start, ObjectStore::start];
        for start in starts.into_iter().filter(|_| wanted == ForeignServers::Started) {
            match start(folder.root())? {
                Ok((server, table)) => {
                    servers.push(server);
                    tables.push_str(&table);
                }
                Err(sentence) => absent.push(sentence),
            }
        }
        tables.push_str("\n[[subscription]]\nof = \"products\"\nname = \"all\"\n");
        Ok(Self { node: None, _servers: servers, tables, absent })
    }

    /// The tables of the centre that deliver to them.
    pub fn tables(&self) -> &str {
        &self.tables
    }

    /// Starts the second node, which calls the centre.
    ///
    /// # Errors
    /// It does not start.
    pub fn join(&mut self, folder: &Folder, centre: SocketAddr) -> Result<(), Failure> {
        folder.write_customer(centre)?;
        self.node = Some(NodeProcess::start(CUSTOMER, folder)?);
        Ok(())
    }

    /// Sees whether the second node still runs.
    ///
    /// # Errors
    /// It ended by itself.
    pub fn check(&mut self) -> Result<(), Failure> {
        self.node.as_mut().map_or(Ok(()), NodeProcess::check)
    }

    /// Whether every consumer has every product.
    pub fn has_all(&self, folder: &Folder) -> bool {
        let counts = counts(folder);
        let mut all = counts.values().map(|states| {
            let accepted = states.get("accepted").copied().unwrap_or_default();
            (states.values().sum::<u64>() == accepted).then_some(accepted)
        });
        let Some(first) = all.next().flatten() else { return false };
        first > 0 && all.all(|other| other == Some(first))
    }

    /// What was delivered; where a consumer lacks a product, that is a trouble. Writes the page.
    pub fn report(&self, folder: &Folder, troubles: &mut Vec<String>) -> DeliveriesReport {
        let destinations = counts(folder);
        for (name, states) in &destinations {
            let open: Vec<String> = states
                .iter()
                .filter(|(state, _)| *state != "accepted")
                .map(|(state, count)| format!("{count} {state}"))
                .collect();
            if !open.is_empty() {
                troubles
                    .push(format!("deliveries to {name} are not all there: {}", open.join(", ")));
            }
        }
        if destinations.is_empty() {
            troubles.push("the centre does not say what it delivered".to_owned());
        }
        let page = write_page(folder).map_err(|failure| troubles.push(failure.to_string())).ok();
        DeliveriesReport { destinations, absent: self.absent.clone(), page }
    }

    /// Ends the second node; says where it did not end well.
    pub fn end(mut self, troubles: &mut Vec<String>) {
        let ended = self.node.as_mut().map(NodeProcess::end);
        if ended.is_some_and(|status| !status.is_some_and(|status| status.success())) {
            troubles.push(format!("the {CUSTOMER} was told to stop and did not end well"));
        }
    }
}

fn counts(folder: &Folder) -> BTreeMap<String, BTreeMap<String, u64>> {
    let outlets = ask_outlets(&folder.socket("centre")).unwrap_or_default();
    outlets.into_iter().map(|outlet| (outlet.name, outlet.deliveries)).collect()
}

/// Writes the page of `skyhaul report` about the demonstration, and returns its path.
fn write_page(folder: &Folder) -> Result<String, Failure> {
    let now = Clock::start().utc();
    let (from, to) = (now - Duration::from_secs(3_600), now + Duration::from_secs(60));
    let page = folder.root().join(PAGE);
    let refused = |what: &str| {
        let help = "run `skyhaul report --config centre.toml` in the demonstration's folder";
        Failure::new(Exit::Environment, what, help).at(&page.display().to_string())
    };
    let program = std::env::current_exe().map_err(|error| refused(&error.to_string()))?;
    let output = Command::new(program)
        .args(["report", "--config"])
        .arg(folder.root().join("centre.toml"))
        .args(["--from", &from.to_string(), "--to", &to.to_string(), "--html"])
        .arg(&page)
        .output()
        .map_err(|error| refused(&error.to_string()))?;
    match output.status.success() {
        true => Ok(page.display().to_string()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(refused(&format!("the page cannot be written ({})", said.trim())))
        }
    }
}
