//! Writes blocks to the spool and waits for the disk, so that capturing does not.

use super::shared::StationShared;
use crate::services;
use crate::status::StoreState;
use skyhaul_net::Clock;
use skyhaul_store::{DamageFate, SpoolError};
use skyhaul_units::{Duration, FlowId, Instant};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};

/// What a channel hands over.
#[derive(Debug)]
pub enum ToSpool {
    /// A block of a contact.
    Block(SpoolBlock),
    /// The contact takes no more blocks; answered when that, and all before it, is durable.
    CloseFlow(FlowId, SyncSender<()>),
}

/// A block of a contact.
#[derive(Debug)]
pub struct SpoolBlock {
    /// The contact.
    pub flow: FlowId,
    /// What to keep.
    pub payload: Vec<u8>,
}

/// Blocks on their way to the spool, of all channels: with 256 KiB each, 8 MiB at the most.
pub const QUEUE: usize = 32;
/// Between two attempts when the spool is full.
const RETRY: Duration = Duration::from_millis(200);
/// The stop flag is looked at this often.
const IDLE: std::time::Duration = std::time::Duration::from_millis(200);
/// Between two looks whether the state folder is still there.
const LOOK: Duration = Duration::from_secs(1);
/// Blocks appended before the disk is waited for.
const GROUP: usize = 16;

/// Runs until every channel has hung up.
pub fn run(shared: &Arc<StationShared>, blocks: &Receiver<ToSpool>, clock: Clock) {
    let mut look_at = Instant::ZERO;
    loop {
        if clock.now() >= look_at {
            look_at = clock.now() + LOOK;
            if !look(shared) {
                return;
            }
        }
        let first = match blocks.recv_timeout(IDLE) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let mut closing = Vec::new();
        for item in std::iter::once(first).chain(blocks.try_iter().take(GROUP - 1)) {
            match item {
                ToSpool::Block(block) => {
                    if !append(shared, &block, clock) {
                        return;
                    }
                }
                ToSpool::CloseFlow(flow, done) => closing.push((flow, done)),
            }
        }
        sync(shared);
        for (flow, done) in closing {
            let closed = shared.spool().close_flow(flow);
            if report(shared, closed) {
                // A channel that does not wait any more looks at its next start.
                let _ = done.try_send(());
            }
        }
        shared.shutdown.wake_line();
    }
}

/// Whether the state folder is where it was; ends the station where it is not. Says what damage was
/// met.
fn look(shared: &StationShared) -> bool {
    let (in_place, stats, damages) = {
        let spool = shared.spool();
        let newest = |fate| {
            spool
                .queue()
                .damages()
                .filter(|damage| damage.fate == fate)
                .last()
                .map(ToString::to_string)
        };
        let newest = [DamageFate::SteppedOver, DamageFate::Mended].map(newest);
        (spool.in_place(), spool.stats(), newest)
    };
    if let Err(error) = in_place {
        shared.board.spool(StoreState::Failed);
        shared.shutdown.fail(services::gone(&error));
        return false;
    }
    let [lost, mended] = damages;
    if let Some(damage) = lost {
        let blocks = stats.missing;
        shared.alarms.raise(
            "the spool is damaged",
            &format!("{damage}; {blocks} blocks are reported to the centre as lost"),
        );
    }
    if let Some(damage) = mended {
        shared.alarms.raise("damage in the spool was repaired", &damage);
    }
    if stats.state_mended > 0 {
        shared.alarms.raise("the spool's state was damaged", services::STATE_MENDED);
    }
    true
}

/// Appends, for as long as it takes; `false` where the station ends first.
fn append(shared: &StationShared, block: &SpoolBlock, clock: Clock) -> bool {
    loop {
        let appended = shared.spool().append(block.flow, &block.payload, clock.utc());
        match appended {
            Ok(_) => {
                shared.board.spool(StoreState::Ok);
                shared.alarms.clear(FULL);
                return true;
            }
            Err(SpoolError::Full { .. }) if shared.shutdown.is_requested() => return false,
            Err(error @ SpoolError::Full { .. }) => {
                shared.board.spool(StoreState::Full);
                shared.alarms.raise(FULL, &error.to_string());
                // What was appended before may be what the centre needs to make room.
                sync(shared);
                shared.shutdown.wake_line();
                shared.shutdown.pause(RETRY);
                let freed = shared.spool().free(clock.utc());
                report(shared, freed.map(|_| ()));
            }
            Err(error) => {
                report(shared, Err(error));
                return false;
            }
        }
    }
}

const FULL: &str = "the inputs are paused";

/// Waits for the disk without keeping the spool from its readers.
fn sync(shared: &StationShared) {
    let handle = shared.spool().sync_handle();
    if let Some(handle) = handle {
        let synced = handle.sync();
        let outcome = shared.spool().synced(synced);
        report(shared, outcome);
    }
}

/// A spool that fails cannot promise anything: the station ends with the reason, and checks it at
/// the next start.
fn report(shared: &StationShared, outcome: Result<(), SpoolError>) -> bool {
    let Err(error) = outcome else { return true };
    shared.board.spool(StoreState::Failed);
    let gone = shared.spool().in_place().err();
    shared
        .shutdown
        .fail(gone.map_or_else(|| super::spool_fault(&error), |gone| services::gone(&gone)));
    false
}
