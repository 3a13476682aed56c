//! The backup centre: it gets the same contacts as the operational one, is killed in mid-pass,
//! comes back, and ends with the same products.

use super::child::NodeProcess;
use super::folder::Folder;
use super::line::DemoLine;
use super::products::{ProductAccount, accounts};
use serde::Serialize;
use skyhaul_exit::Failure;
use skyhaul_node::status::{CentreStatus, ContactState, StationStatus};
use skyhaul_units::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// The backup centre, and the line to it.
pub struct Backup<'a> {
    folder: &'a Folder,
    /// None while it is dead.
    node: Option<NodeProcess>,
    _line: DemoLine,
    killed_at: Option<Instant>,
    back_at: Option<Instant>,
}

/// What it is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackupState {
    /// It has not been killed yet.
    Running,
    /// It is dead.
    Killed,
    /// It is back.
    Back,
}

/// The backup centre in one look.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct BackupProgress {
    /// What it is doing.
    pub state: BackupState,
    /// Blocks that wait at the station for it.
    pub blocks: u64,
}

/// What became of it.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct BackupReport {
    /// Seconds from the first bit of the pass until it was killed.
    pub killed_s: f64,
    /// Seconds until it was started again.
    pub back_s: f64,
    /// Its products.
    pub products: usize,
    /// How many of them are the same as at the operational centre.
    pub identical: usize,
}

/// For how long it is dead.
const DEAD: Duration = Duration::from_secs(1);

impl<'a> Backup<'a> {
    /// The backup centre that runs as `node` behind `line`.
    pub const fn new(folder: &'a Folder, node: NodeProcess, line: DemoLine) -> Self {
        Self { folder, node: Some(node), _line: line, killed_at: None, back_at: None }
    }

    /// Kills it once `is_half_played`, and starts it again a second later.
    ///
    /// # Errors
    /// It ended by itself, or cannot be started.
    pub fn look(&mut self, now: Instant, pass: PassPart) -> Result<(), Failure> {
        if let Some(node) = &mut self.node {
            node.check()?;
        }
        if pass == PassPart::SecondHalf && self.killed_at.is_none() {
            self.killed_at = Some(now);
            if let Some(node) = self.node.take() {
                node.kill();
            }
        }
        if self.node.is_none() && self.killed_at.is_some_and(|at| now >= at + DEAD) {
            self.back_at = Some(now);
            self.node = Some(NodeProcess::start(super::folder::BACKUP, self.folder)?);
        }
        Ok(())
    }

    /// What it does, and what waits for it.
    pub fn progress(&self, station: &StationStatus) -> BackupProgress {
        let state = match (self.killed_at, self.back_at) {
            (None, _) => BackupState::Running,
            (Some(_), None) => BackupState::Killed,
            (Some(_), Some(_)) => BackupState::Back,
        };
        let waits = station.destinations.get(1).map(|destination| destination.backlog.blocks);
        BackupProgress { state, blocks: waits.unwrap_or_default() }
    }

    /// Whether it was killed, is back, and has made products of every contact of `station`.
    pub fn is_complete(&self, station: &StationStatus, backup: Option<&CentreStatus>) -> bool {
        let Some(backup) = backup.filter(|_| self.back_at.is_some()) else { return false };
        let ended = |flow: u32| {
            let mut received = backup.contacts.iter().filter(|contact| contact.flow == flow);
            received.any(|contact| contact.state == ContactState::Done)
        };
        self.progress(station).blocks == 0
            && station.contacts.iter().all(|contact| ended(contact.flow))
    }

    /// Ends it. Returns what it did, with times since `begun`.
    pub fn end(mut self, begun: Instant, troubles: &mut Vec<String>) -> BackupReport {
        if let Some(mut node) = self.node.take()
            && !node.end().is_some_and(|status| status.success())
        {
            troubles.push("the backup centre was told to stop and did not end well".to_owned());
        }
        let since = |at: Option<Instant>| at.map_or(0.0, |at| at.since(begun).as_secs_f64());
        BackupReport {
            killed_s: since(self.killed_at),
            back_s: since(self.back_at),
            ..BackupReport::default()
        }
    }
}

/// How far a pass is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassPart {
    /// Not half of it.
    FirstHalf,
    /// Half or more.
    SecondHalf,
}

/// The products of one centre: mission, product, and digest of each, with their number.
type ProductSet = BTreeMap<(String, String, Option<String>), usize>;

fn set_of(accounts: &BTreeMap<String, Vec<ProductAccount>>) -> ProductSet {
    let mut set = ProductSet::new();
    for account in accounts.values().flatten() {
        let digest = account.product.packet_file.as_ref().map(|file| file.sha256.clone());
        let key = (account.contacts[0].mission.clone(), account.product.name.clone(), digest);
        *set.entry(key).or_default() += 1;
    }
    set
}

/// Compares the products of both centres. Adds a sentence for each that one of them lacks.
///
/// # Errors
/// An account cannot be read.
pub fn compare(
    operational: &BTreeMap<String, Vec<ProductAccount>>,
    folder: &Folder,
    report: &mut BackupReport,
    differences: &mut Vec<String>,
) -> Result<(), Failure> {
    let ours = set_of(operational);
    let theirs = set_of(&accounts(&folder.backup_products())?);
    report.products = theirs.values().sum();
    let keys: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    for key in keys {
        let count = |set: &ProductSet| set.get(key).copied().unwrap_or_default();
        let (one, other) = (count(&ours), count(&theirs));
        report.identical += one.min(other);
        if one != other {
            let (mission, product, _) = key;
            differences.push(format!(
                "{mission} {product}: {one} such products at the operational centre, {other} at \
                the backup centre"
            ));
        }
    }
    Ok(())
}
