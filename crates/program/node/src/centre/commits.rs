//! When records of contacts became durable, remembered until Level-0 reads them.

use super::ways::ContactWays;
use skyhaul_store::{Seq, StationName};
use skyhaul_units::{FlowId, Utc};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The times of the store's latest commits.
#[derive(Debug, Default)]
pub struct CommitTimes {
    commits: Mutex<VecDeque<CommitTime>>,
    /// The way of the blocks that were read.
    pub ways: ContactWays,
}

/// The store has the flow's records below `next` since `at`.
#[derive(Debug)]
pub struct CommitTime {
    /// The station.
    pub station: StationName,
    /// Its flow.
    pub flow: FlowId,
    /// The first record that is not durable yet.
    pub next: Seq,
    /// When this became so.
    pub at: Utc,
}

/// Commits whose time is remembered: minutes of work. Beyond that the oldest is forgotten, and the
/// latency of its frames is not counted.
const COMMITS_MAX: usize = 1 << 16;

impl CommitTimes {
    fn commits(&self) -> MutexGuard<'_, VecDeque<CommitTime>> {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a commit.
    pub fn add(&self, commit: CommitTime) {
        let mut commits = self.commits();
        if commits.len() == COMMITS_MAX {
            commits.pop_front();
        }
        commits.push_back(commit);
    }

    /// When the flow's record `seq` became durable; none where that was before the start. Records
    /// are looked up in the order of the flow: earlier ones are forgotten.
    pub fn take(&self, station: &StationName, flow: FlowId, seq: Seq) -> Option<Utc> {
        let mut commits = self.commits();
        let ours = |commit: &CommitTime| commit.flow == flow && commit.station == *station;
        let found = commits.iter().find(|commit| ours(commit) && commit.next > seq);
        let at = found.map(|commit| commit.at);
        commits.retain(|commit| !ours(commit) || commit.next > seq.next());
        at
    }
}
