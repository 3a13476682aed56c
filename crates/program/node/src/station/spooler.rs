//! Writes blocks to the spool and syncs the disk, so that capture never waits for it.

use super::appending::{Put, put, report, sync};
use super::continuation::Continuations;
use super::shared::StationShared;
use crate::services;
use crate::status::StoreState;
use skyhaul_net::Clock;
use skyhaul_store::{DamageFate, DestinationBacklog, GaveWay, GivesWay, SpoolPressure};
use skyhaul_units::{Duration, FlowId, Instant};
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
/// Between two checks of the state folder.
const LOOK: Duration = Duration::from_secs(1);
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

/// Checks that the state folder is in place, and ends the station where it is not. Raises alarms
/// about damage that was repaired.
fn look(shared: &StationShared, clock: Clock) -> bool {
    let (in_place, stats, damages, pressure) = {
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
        (spool.in_place(), spool.stats(), newest, spool.pressure(clock.utc()))
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
    warn_of_pressure(shared, &pressure);
    if stats.gave_way > 0 {
        tell_what_gave_way(shared, &pressure);
    }
    true
}

/// Raises an alarm before data gives way or the inputs have to wait.
fn warn_of_pressure(shared: &StationShared, pressure: &SpoolPressure) {
    if pressure.is_near() {
        shared.alarms.raise(NEARLY_FULL, &near_in_words(pressure));
    } else {
        shared.alarms.clear(NEARLY_FULL);
    }
}

/// Raises an alarm about each destination that will not get all.
fn tell_what_gave_way(shared: &StationShared, pressure: &SpoolPressure) {
    for backlog in &pressure.destinations {
        let GaveWay { blocks, .. } = backlog.gave_way;
        if blocks > 0 {
            let reason = format!(
                "{blocks} blocks left the spool before it had them, because the disk was full; it \
                is told which, and closes the gaps as lost"
            );
            shared.alarms.raise(&format!("data for {}", title(backlog)), &reason);
        }
    }
}

/// What is left, who is waited for, and what happens then.
fn near_in_words(pressure: &SpoolPressure) -> String {
    let then = match pressure.next_lacked() {
        GivesWay::Shadows => "data that only shadow destinations lack is removed",
        GivesWay::Settled => "data that one destination has and others lack is removed",
        GivesWay::Kept | GivesWay::Never => "the inputs are paused",
    };
    let waits = pressure.destinations.iter().filter(|backlog| backlog.waits.blocks > 0);
    let waits = waits.map(|backlog| format!("{} for {}", backlog.waits.bytes, title(backlog)));
    format!(
        "{} of {} are left, then {then}; waiting: {}; restore the lines, or raise max_size in \
        [spool]",
        pressure.room + pressure.kept,
        pressure.limit,
        waits.collect::<Vec<_>>().join(", ")
    )
}

fn title(backlog: &DestinationBacklog) -> &str {
    if backlog.name.is_empty() { "the centre" } else { &backlog.name }
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

const NEARLY_FULL: &str = "the spool is nearly full";

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_store::{Depth, DestinationId, DestinationRole};
    use skyhaul_units::ByteCount;

    #[test]
    fn the_warning_says_what_is_left_who_is_waited_for_and_what_happens_then() {
        let waits = Depth { blocks: 3, bytes: ByteCount::mib(7), ..Depth::default() };
        let centre = DestinationBacklog {
            id: DestinationId::FIRST,
            name: String::new(),
            role: DestinationRole::Counted,
            waits,
            gave_way: GaveWay::default(),
        };
        let mut pressure = SpoolPressure {
            room: ByteCount::mib(1),
            limit: ByteCount::mib(64),
            destinations: vec![centre],
            ..SpoolPressure::default()
        };
        let said = near_in_words(&pressure);
        assert!(said.contains("then the inputs are paused"), "{said}");
        assert!(said.contains("for the centre"), "{said}");
        pressure.settled = ByteCount::mib(2);
        assert!(near_in_words(&pressure).contains("others lack is removed"));
        pressure.shadows = ByteCount::mib(2);
        assert!(near_in_words(&pressure).contains("only shadow destinations lack is removed"));
    }
}
