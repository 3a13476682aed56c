//! Appends blocks to the spool and syncs it, as long as the station runs.

use super::shared::StationShared;
use crate::services;
use crate::status::StoreState;
use skyhaul_net::Clock;
use skyhaul_store::SpoolError;
use skyhaul_units::{Duration, FlowId};

/// Between two attempts when the spool is full.
const RETRY: Duration = Duration::from_millis(200);
const FULL: &str = "the inputs are paused";

/// What came of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It is in the spool.
    Done,
    /// The flow takes no more.
    Closed,
    /// The station ends first.
    Ends,
}

/// Appends a block to a flow, and retries as long as the station runs.
pub fn put(shared: &StationShared, flow: FlowId, payload: &[u8], clock: Clock) -> Put {
    loop {
        let appended = shared.spool().append(flow, payload, clock.utc());
        match appended {
            Ok(_) => {
                shared.board.spool(StoreState::Ok);
                shared.alarms.clear(FULL);
                return Put::Done;
            }
            Err(SpoolError::UnknownFlow { .. }) => return Put::Closed,
            Err(SpoolError::Full { .. }) if shared.shutdown.is_requested() => return Put::Ends,
            Err(error @ SpoolError::Full { .. }) => {
                shared.board.spool(StoreState::Full);
                shared.alarms.raise(FULL, &error.to_string());
                // The centre may need blocks that were appended before to free space.
                sync(shared);
                shared.shutdown.wake_line();
                shared.shutdown.pause(RETRY);
                let freed = shared.spool().free(clock.utc());
                report(shared, freed.map(|_| ()));
            }
            Err(error) => {
                report(shared, Err(error));
                return Put::Ends;
            }
        }
    }
}

/// Syncs the disk without holding the lock of the spool.
pub fn sync(shared: &StationShared) {
    let handle = shared.spool().sync_handle();
    if let Some(handle) = handle {
        let synced = handle.sync();
        let outcome = shared.spool().synced(synced);
        report(shared, outcome);
    }
}

/// A spool that failed cannot promise anything: the station ends with the reason, and checks the
/// spool at the next start.
pub fn report(shared: &StationShared, outcome: Result<(), SpoolError>) -> bool {
    let Err(error) = outcome else { return true };
    shared.board.spool(StoreState::Failed);
    let gone = shared.spool().in_place().err();
    shared.shutdown.fail(
        gone.map_or_else(|| crate::station::spool_fault(&error), |gone| services::gone(&gone)),
    );
    false
}
