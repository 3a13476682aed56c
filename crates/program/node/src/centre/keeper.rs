//! Writes received blocks to the store and syncs the disk; only then receipts go out.

use super::commits::CommitTime;
use super::shared::CentreShared;
use crate::custody::{Stamps, keep};
use crate::fault::Fault;
use crate::services;
use crate::status::StoreState;
use skyhaul_events::AlarmKind;
use skyhaul_net::Clock;
use skyhaul_sessions::SessionId;
use skyhaul_store::{Receipt, SpoolSender as From, StoreError, StoreJam};
use skyhaul_transport::Received;
use skyhaul_units::{Duration, Instant};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

/// A received block. The sessions' receive windows bound how many wait: a block's memory returns to
/// flow control only when it is written.
#[derive(Debug)]
pub struct ToKeep {
    /// The connection that it came over.
    pub connection: SessionId,
    /// The spool that it came from.
    pub sender: Arc<From>,
    /// The block.
    pub received: Received,
}

/// A message of the keeper to the downlink.
#[derive(Debug)]
pub enum Kept {
    /// A block of this length is written: its memory returns to flow control.
    Written(SessionId, usize),
    /// Blocks are durable: a receipt for the station.
    Durable(Receipt),
    /// The connection must end, and why.
    Broken(SessionId, String),
    /// Another connection brought data since this one began: the station has to connect again.
    Overtaken(SessionId, String),
}

/// The keeper's thread.
#[derive(Debug)]
pub struct Keeper {
    shared: Arc<CentreShared>,
    clock: Clock,
    /// The longest time that a block waits for others, so that one sync serves them all.
    sync_interval: Duration,
    blocks: Receiver<ToKeep>,
    kept: Sender<Kept>,
    unsynced_since: Option<Instant>,
}

/// Between two attempts when the store is full.
const RETRY: Duration = Duration::from_millis(200);
/// The stop flag is checked this often.
const IDLE: Duration = Duration::from_millis(200);
/// Between two checks of the state folder.
const LOOK: Duration = Duration::from_secs(1);
const FULL: &str = "stations";

impl Keeper {
    /// A keeper of `blocks`, which reports to `kept`.
    pub fn new(
        shared: Arc<CentreShared>,
        clock: Clock,
        sync_interval: Duration,
        blocks: Receiver<ToKeep>,
        kept: Sender<Kept>,
    ) -> Self {
        Self { shared, clock, sync_interval, blocks, kept, unsynced_since: None }
    }

    /// Runs until the downlink drops its end.
    pub fn run(mut self) {
        let mut look_at = Instant::ZERO;
        loop {
            let now = self.clock.now();
            let due = self.unsynced_since.map(|since| since + self.sync_interval);
            let patience = due.map_or(IDLE, |due| due.since(now));
            match self.blocks.recv_timeout(patience.to_std()) {
                Ok(block) => self.keep(block),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.sync();
                    return;
                }
            }
            if due.is_some_and(|due| due <= self.clock.now()) {
                self.sync();
            }
            if self.clock.now() >= look_at {
                look_at = self.clock.now() + LOOK;
                self.look();
            }
        }
    }

    fn keep(&mut self, block: ToKeep) {
        let ToKeep { connection, sender, received } = block;
        let stamps = Stamps::of(&received.timing, self.clock.utc_at_start());
        loop {
            let mut store = self.shared.store();
            let kept = self.shared.disk.during(|| keep(&mut store, &sender, &received, &stamps));
            drop(store);
            match kept {
                Ok(None) => {
                    self.unsynced_since.get_or_insert(self.clock.now());
                    break;
                }
                Ok(Some(receipt)) => {
                    if self.look() {
                        self.report(Kept::Durable(receipt));
                    }
                    break;
                }
                Err(StoreError::Full { .. }) if self.shared.shutdown.is_requested() => return,
                Err(error @ StoreError::Full { needed, .. }) => {
                    let jam = StoreJam::of(&self.shared.store(), needed);
                    let reason = jam.map_or_else(|| error.to_string(), |jam| jam.to_string());
                    self.shared.show_store(StoreState::Full);
                    self.shared.alarms.raise(AlarmKind::StationsPaused, FULL, &reason);
                    self.sync();
                    if !self.look() {
                        return;
                    }
                    self.shared.shutdown.pause(RETRY);
                }
                Err(error @ (StoreError::Gap { .. } | StoreError::TooManyContacts)) => {
                    self.report(Kept::Broken(connection, error.to_string()));
                    return;
                }
                Err(error @ StoreError::Overtaken { .. }) => {
                    self.report(Kept::Overtaken(connection, error.to_string()));
                    return;
                }
                Err(error) => {
                    return self.fail("the store failed", &error.to_string());
                }
            }
        }
        self.shared.show_store(StoreState::Ok);
        self.shared.alarms.clear(AlarmKind::StationsPaused, FULL);
        self.report(Kept::Written(connection, received.bytes.len()));
    }

    /// Checks that the state folder is in place, and ends the centre where it is not. Raises alarms
    /// about damage that was repaired.
    fn look(&self) -> bool {
        let (in_place, mended, states) = {
            let store = self.shared.store();
            (store.in_place(), store.mended().map(ToString::to_string), store.stats().state_mended)
        };
        if let Some(damage) = mended {
            self.shared.alarms.raise(AlarmKind::StoreMended, "damage in the store", &damage);
        }
        if states > 0 {
            self.shared.alarms.raise(
                AlarmKind::ContactListMended,
                "a list of finished contacts",
                services::STATE_MENDED,
            );
        }
        in_place.map_err(|error| self.shared.shutdown.fail(services::gone(&error))).is_ok()
    }

    /// Syncs the disk without holding the lock of the store.
    fn sync(&mut self) {
        self.unsynced_since = None;
        let handle = self.shared.store().sync_handle();
        let Some(handle) = handle else { return };
        let synced = self.shared.disk.during(|| handle.sync());
        let mut store = self.shared.store();
        let commit = store.synced(synced);
        let now = self.clock.utc();
        for receipt in &commit.receipts {
            // Added before the processor can read the blocks: it looks up when they became durable.
            self.shared.commits.add(CommitTime {
                station: receipt.station.clone(),
                flow: receipt.flow,
                next: receipt.next,
                at: now,
            });
        }
        drop(store);
        for receipt in commit.receipts {
            self.report(Kept::Durable(receipt));
        }
        if let Some((station, flow, error)) = commit.failed.into_iter().next() {
            let what = format!("the store failed at flow {flow} of {}", station.as_str());
            self.fail(&what, &error.to_string());
        }
        self.shared.news.notify();
        self.shared.onward.notify();
    }

    fn fail(&self, what: &str, reason: &str) {
        let help = "repair the disk and restart the centre: it continues from the data on disk";
        let gone = self.shared.store().in_place().err();
        let fault = gone
            .map_or_else(|| Fault::environment(what, reason, help), |gone| services::gone(&gone));
        self.shared.shutdown.fail(fault);
    }

    fn report(&self, kept: Kept) {
        // A downlink that has ended drops the message; the station learns its custody from the next
        // greeting.
        let _ = self.kept.send(kept);
        self.shared.shutdown.wake_line();
    }
}
