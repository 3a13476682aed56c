//! Writes blocks to the spool and syncs the disk, so that capture never waits for it.

use super::appending::{Put, put, report, sync};
use super::continuation::Continuations;
use super::shared::StationShared;
use super::spool_watch::{LOOK, look};
use skyhaul_net::Clock;
use skyhaul_units::{FlowId, Instant};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};

/// A message of a channel to the spool's thread.
#[derive(Debug)]
pub enum ToSpool {
    /// A block of a contact.
    Block(SpoolBlock),
    /// The contact has ended; answered when it is durable with all blocks before.
    CloseFlow(FlowId, SyncSender<()>),
}

/// A block of a contact.
#[derive(Debug)]
pub struct SpoolBlock {
    /// The contact.
    pub flow: FlowId,
    /// Its bytes.
    pub payload: Vec<u8>,
}

/// The most blocks of all channels in the queue to the spool: with 256 KiB each, 8 MiB.
pub const QUEUE: usize = 32;
/// The stop flag is checked this often.
const IDLE: std::time::Duration = std::time::Duration::from_millis(200);
/// The most blocks that are appended before the disk is synced.
const GROUP: usize = 16;

/// Runs until every channel has ended.
pub fn run(shared: &Arc<StationShared>, blocks: &Receiver<ToSpool>, clock: Clock) {
    let mut look_at = Instant::ZERO;
    let mut continued = Continuations::default();
    loop {
        if clock.now() >= look_at {
            look_at = clock.now() + LOOK;
            if !look(shared, clock) {
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
                    if !append(shared, &mut continued, &block, clock) {
                        return;
                    }
                }
                ToSpool::CloseFlow(flow, done) => closing.push((flow, done)),
            }
        }
        sync(shared);
        for (flow, done) in closing {
            let Some(others) = continued.ended(shared, flow, clock) else { return };
            if [flow].into_iter().chain(others).all(|flow| close(shared, flow)) {
                // A channel that does not wait any more reads its memo at the next start.
                let _ = done.try_send(());
            }
        }
        shared.shutdown.wake_line();
    }
}

/// Appends a block to its flow, and to those that its contact goes on in; `false` where the station
/// ends first.
fn append(
    shared: &StationShared,
    continued: &mut Continuations,
    block: &SpoolBlock,
    clock: Clock,
) -> bool {
    let Some(others) = continued.before(shared, block.flow, clock) else { return false };
    let has_others = !others.is_empty();
    for flow in others {
        if put(shared, flow, &block.payload, clock) == Put::Ends {
            return false;
        }
    }
    match put(shared, block.flow, &block.payload, clock) {
        Put::Done => true,
        Put::Ends => false,
        Put::Closed if has_others => true,
        Put::Closed => match continued.closed(shared, block.flow, clock) {
            Ok(new) => put(shared, new, &block.payload, clock) != Put::Ends,
            Err(error) => report(shared, Err(error)),
        },
    }
}

/// Closes a flow.
fn close(shared: &StationShared, flow: FlowId) -> bool {
    let closed = shared.spool().close_flow(flow);
    report(shared, closed)
}
