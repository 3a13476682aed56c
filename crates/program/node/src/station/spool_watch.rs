//! Watches the spool while blocks are appended, and while they wait for room: whether its folder is
//! in place, how near it is to its end, what was damaged or gave way.

use super::shared::StationShared;
use crate::services;
use crate::status::StoreState;
use skyhaul_events::AlarmKind;
use skyhaul_net::Clock;
use skyhaul_store::{DamageFate, DestinationBacklog, GaveWay, GivesWay, SpoolPressure};
use skyhaul_units::Duration;

/// Between two looks.
pub const LOOK: Duration = Duration::from_secs(1);

/// Checks that the state folder is in place, and ends the station where it is not. Raises alarms
/// about damage that was repaired.
pub fn look(shared: &StationShared, clock: Clock) -> bool {
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
        shared.show_spool(StoreState::Failed);
        shared.shutdown.fail(services::gone(&error));
        return false;
    }
    let [lost, mended] = damages;
    if let Some(damage) = lost {
        let blocks = stats.missing;
        shared.alarms.raise(
            AlarmKind::SpoolDamaged,
            SPOOL,
            &format!("{damage}; {blocks} blocks are reported to the centre as lost"),
        );
    }
    if let Some(damage) = mended {
        shared.alarms.raise(AlarmKind::SpoolMended, "damage in the spool", &damage);
    }
    if stats.state_mended > 0 {
        let mended = services::STATE_MENDED;
        shared.alarms.raise(AlarmKind::SpoolStateMended, "the spool's state", mended);
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
        shared.alarms.raise(AlarmKind::SpoolNearlyFull, SPOOL, &near_in_words(pressure));
    } else {
        shared.alarms.clear(AlarmKind::SpoolNearlyFull, SPOOL);
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
            shared.alarms.raise(
                AlarmKind::DataGaveWay,
                format!("data for {}", title(backlog)),
                &reason,
            );
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

const SPOOL: &str = "the spool";

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
