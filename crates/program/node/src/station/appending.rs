//! Appends blocks to the spool and syncs it, as long as the station runs.

use super::shared::StationShared;
use super::spool_watch::{LOOK, look};
use crate::services;
use crate::status::StoreState;
use skyhaul_events::AlarmKind;
use skyhaul_net::Clock;
use skyhaul_store::SpoolError;
use skyhaul_units::{Duration, FlowId, Instant};

/// Between two attempts when the spool is full.
const RETRY: Duration = Duration::from_millis(200);
const FULL: &str = "the inputs";

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
    let mut look_at = Instant::ZERO;
    loop {
        let appended = shared.spool().append(flow, payload, clock.utc());
        match appended {
            Ok(_) => {
                shared.show_spool(StoreState::Ok);
                shared.alarms.clear(AlarmKind::InputsPaused, FULL);
                return Put::Done;
            }
            Err(SpoolError::UnknownFlow { .. }) => return Put::Closed,
            Err(SpoolError::Full { .. }) if shared.shutdown.is_requested() => return Put::Ends,
            Err(error @ SpoolError::Full { .. }) => {
                shared.show_spool(StoreState::Full);
                shared.alarms.raise(AlarmKind::InputsPaused, FULL, &error.to_string());
                // The centre may need blocks that were appended before to free space.
                sync(shared);
                shared.shutdown.wake_line();
                // The thread of the spool does not look while it waits here.
                if clock.now() >= look_at {
                    look_at = clock.now() + LOOK;
                    if !look(shared, clock) {
                        return Put::Ends;
                    }
                }
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
    shared.show_spool(StoreState::Failed);
    let gone = shared.spool().in_place().err();
    shared.shutdown.fail(
        gone.map_or_else(|| crate::station::spool_fault(&error), |gone| services::gone(&gone)),
    );
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::station::board::StationBoard;
    use crate::station::routing;
    use skyhaul_net::Waker;
    use skyhaul_store::{Spool, SpoolConfig, SpoolDraw, sim::SimDisk};
    use skyhaul_units::ByteCount;
    use std::sync::Arc;

    /// Regression: a spool that was full within a second of its last look named nobody who was
    /// waited for, and a state folder that went meanwhile was not missed, as long as it was full.
    #[test]
    fn a_spool_that_fills_at_once_is_watched_while_it_waits_for_room() {
        let clock = Clock::start();
        let settings = SpoolConfig {
            max_size: ByteCount::mib(4),
            segment_size: ByteCount::mib(1),
            ..SpoolConfig::default()
        };
        let disk = SimDisk::new(ByteCount::mib(256));
        let mut spool =
            Spool::open(Arc::new(disk), settings, clock.utc(), SpoolDraw([7; 24])).unwrap();
        let routing = routing::to_one_centre(&mut spool);
        let board = StationBoard::new("s".to_owned(), Vec::new(), Vec::new());
        let waker = Waker::new().unwrap();
        let shared = Arc::new(StationShared::new(
            board,
            routing,
            spool,
            crate::alarms::Alarms::quiet(clock),
            waker,
        ));
        let flow = shared.spool().open_flow(clock.utc()).unwrap();
        let (of, payload) = (shared.clone(), vec![7; 250_000]);
        let fill = move || while put(&of, flow, &payload, clock) == Put::Done {};
        let filling = services::thread("spool", fill).unwrap();
        let tells = |what: &str| shared.alarms.conditions().iter().any(|told| told.contains(what));
        while !tells("the spool is nearly full") {
            assert!(!filling.is_finished(), "it waits for room");
            std::thread::park_timeout(RETRY.to_std());
        }
        assert!(tells(FULL));
        shared.shutdown.request();
        filling.join().unwrap();
    }
}
