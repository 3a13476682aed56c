//! Where threads of the lines meet the thread that looks: the report of this node, and those of
//! others.

use super::kept::{KeptReports, PeerSide};
use crate::status::NodeSeen;
use skyhaul_events::{Moment, NodeReport};
use skyhaul_units::Instant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The reports of this node and of others. Locks are held for the length of one call.
#[derive(Debug, Default)]
pub(crate) struct ReportDesk {
    own: Mutex<Option<Arc<NodeReport>>>,
    /// Grows when the own report has other alarms than before.
    change: AtomicU64,
    kept: Mutex<KeptReports>,
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ReportDesk {
    /// Tells this of the node from now on.
    pub(crate) fn show(&self, report: NodeReport) {
        let mut own = lock(&self.own);
        if own.as_ref().is_none_or(|before| report.has_other_alarms(before)) {
            self.change.fetch_add(1, Ordering::Relaxed);
        }
        *own = Some(Arc::new(report));
    }

    /// What the node tells of itself; none before it has looked at itself.
    pub(crate) fn own(&self) -> Option<Arc<NodeReport>> {
        lock(&self.own).clone()
    }

    /// Another number after each change of what cannot wait.
    pub(crate) fn change(&self) -> u64 {
        self.change.load(Ordering::Relaxed)
    }

    /// Reports of this node are wanted: it is a destination, or has sent contacts.
    pub(crate) fn expect(&self, side: PeerSide, name: &str) {
        lock(&self.kept).expect(side, name);
    }

    /// There is a session with it.
    pub(crate) fn connected(&self, side: PeerSide, name: &str) {
        lock(&self.kept).connected(side, name);
    }

    /// The last session with it has ended.
    pub(crate) fn lost(&self, side: PeerSide, name: &str) {
        lock(&self.kept).lost(side, name);
    }

    /// It is not configured any more.
    pub(crate) fn forget(&self, side: PeerSide, name: &str) {
        lock(&self.kept).forget(side, name);
    }

    /// Takes a report that came in a session with the node `name`.
    pub(crate) fn take(&self, at: Moment, name: &str, body: &[u8]) {
        // The line is logged when the lock is free again.
        let said = lock(&self.kept).take(at, name, body);
        if let Some(error) = said {
            tracing::warn!(
                node = name,
                "a report of the node is not taken, and further ones are counted alone: {error}"
            );
        }
    }

    /// What others have reported, the worst first.
    pub(crate) fn seen(&self, now: Instant) -> Vec<NodeSeen> {
        // Copied first: a thousand reports in words take longer than a line may wait.
        let kept = lock(&self.kept).clone();
        kept.seen(now)
    }
}
