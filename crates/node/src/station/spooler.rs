//! Writes blocks to the spool and waits for the disk, so that capturing does not.

use super::shared::Shared;
use crate::status::StoreState;
use skyhaul_net::Clock;
use skyhaul_store::SpoolError;
use skyhaul_units::{Duration, FlowId};
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
/// Blocks appended before the disk is waited for.
const GROUP: usize = 16;

/// Runs until every channel has hung up.
pub fn run(shared: &Arc<Shared>, blocks: &Receiver<ToSpool>, clock: Clock) {
    loop {
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
        shared.life.wake_line();
    }
}

/// Appends, for as long as it takes; `false` where the station ends first.
fn append(shared: &Shared, block: &SpoolBlock, clock: Clock) -> bool {
    loop {
        let appended = shared.spool().append(block.flow, &block.payload, clock.utc());
        match appended {
            Ok(_) => {
                shared.store_state(StoreState::Ok);
                shared.life.clear_alarm(FULL);
                return true;
            }
            Err(SpoolError::Full { .. }) if shared.life.is_stopping() => return false,
            Err(error @ SpoolError::Full { .. }) => {
                shared.store_state(StoreState::Full);
                shared.life.alarm(FULL, &error.to_string());
                // What was appended before may be what the centre needs to make room.
                sync(shared);
                shared.life.wake_line();
                shared.life.pause(RETRY);
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

const FULL: &str = "the inputs are held back";

/// Waits for the disk without keeping the spool from its readers.
fn sync(shared: &Shared) {
    let handle = shared.spool().sync_handle();
    if let Some(handle) = handle {
        let synced = handle.sync();
        let outcome = shared.spool().synced(synced);
        report(shared, outcome);
    }
}

/// A spool that fails cannot promise anything: the station ends with the reason, and checks it at the next start.
fn report(shared: &Shared, outcome: Result<(), SpoolError>) -> bool {
    let Err(error) = outcome else { return true };
    shared.store_state(StoreState::Failed);
    shared.life.fail(super::spool_fault(&error));
    false
}
