//! The beginning and the end of a contact of a channel: its flow in the spool, the log, the events.

use super::{ChannelRunner, RETRY};
use crate::fault::Fault;
use crate::journal::EventNote;
use crate::status::{ContactCaptured, StoreState};
use skyhaul_config::Channel;
use skyhaul_events::{AlarmKind, AlarmSubject, EventKind};
use skyhaul_store::{FlowRoute, SpoolError};
use skyhaul_units::FlowId;

/// The subject of the alarms of a channel.
pub fn subject(config: &Channel) -> AlarmSubject {
    AlarmSubject::from(format!("channel {}", config.name))
}

/// Opens a flow for a contact, waiting for space as long as the station runs.
pub fn open_flow(runner: &ChannelRunner, route: &FlowRoute) -> Option<FlowId> {
    loop {
        match runner.shared.open_flow(runner.clock.utc(), route) {
            Ok(flow) => {
                runner.shared.alarms.clear(AlarmKind::ContactUnopened, subject(&runner.config));
                return Some(flow);
            }
            // The frame is lost with the input where that is live; a file is read again from
            // here.
            Err(SpoolError::Full { .. } | SpoolError::TooManyFlows)
                if runner.shared.shutdown.is_requested() =>
            {
                return None;
            }
            Err(error @ (SpoolError::Full { .. } | SpoolError::TooManyFlows)) => {
                if let SpoolError::Full { .. } = error {
                    runner.shared.show_spool(StoreState::Full);
                }
                let (alarms, reason) = (&runner.shared.alarms, error.to_string());
                alarms.raise(AlarmKind::ContactUnopened, subject(&runner.config), &reason);
                runner.shared.shutdown.pause(RETRY);
            }
            Err(error) => {
                let help = "repair the disk and restart the station";
                let fault = Fault::environment("the spool failed", error, help);
                runner.shared.shutdown.fail(fault);
                return None;
            }
        }
    }
}

/// Says that a contact began.
pub fn opened(runner: &ChannelRunner, flow: FlowId, mission: &str) {
    let channel = &runner.config.name;
    tracing::info!(%channel, mission, flow = flow.0, "contact opened");
    let sentence = format!("contact {} of channel {channel} began, mission {mission}", flow.0);
    tell(runner, EventKind::ContactOpened, flow.0, sentence);
}

/// Says that a contact has ended.
pub fn closed(runner: &ChannelRunner, shown: &ContactCaptured) {
    let ContactCaptured { flow, frames, set_aside, .. } = shown;
    let channel = &runner.config.name;
    tracing::info!(%channel, flow, frames, "contact closed");
    let sentence = format!(
        "contact {flow} of channel {channel} ended: {frames} good frames, {set_aside} set aside"
    );
    tell(runner, EventKind::ContactClosed, *flow, sentence);
}

fn tell(runner: &ChannelRunner, kind: EventKind, flow: u32, sentence: String) {
    let note = EventNote::new(kind, format!("contact {flow}"), sentence);
    let note = note.with("flow", flow).with("channel", runner.config.name.to_string());
    runner.shared.alarms.events().note(note);
}
