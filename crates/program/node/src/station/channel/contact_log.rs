//! The beginning and the end of a contact of a channel: its flow in the spool, the log, the events.

use super::{ChannelRunner, RETRY};
use crate::fault::Fault;
use crate::journal::EventNote;
use crate::status::{ContactCaptured, StoreState};
use skyhaul_events::{AlarmKind, EventKind};
use skyhaul_store::{FlowRoute, SpoolError};
use skyhaul_units::FlowId;

impl ChannelRunner {
    /// Opens a flow for a contact, waiting for space as long as the station runs.
    pub(super) fn open_flow(&self, route: &FlowRoute) -> Option<FlowId> {
        loop {
            match self.shared.open_flow(self.clock.utc(), route) {
                Ok(flow) => {
                    self.shared.alarms.clear(AlarmKind::ContactUnopened, self.subject());
                    return Some(flow);
                }
                // The frame is lost with the input where that is live; a file is read again from
                // here.
                Err(SpoolError::Full { .. } | SpoolError::TooManyFlows)
                    if self.shared.shutdown.is_requested() =>
                {
                    return None;
                }
                Err(error @ (SpoolError::Full { .. } | SpoolError::TooManyFlows)) => {
                    if let SpoolError::Full { .. } = error {
                        self.shared.show_spool(StoreState::Full);
                    }
                    let (alarms, reason) = (&self.shared.alarms, error.to_string());
                    alarms.raise(AlarmKind::ContactUnopened, self.subject(), &reason);
                    self.shared.shutdown.pause(RETRY);
                }
                Err(error) => {
                    let help = "repair the disk and restart the station";
                    let fault = Fault::environment("the spool failed", error, help);
                    self.shared.shutdown.fail(fault);
                    return None;
                }
            }
        }
    }

    /// Says that a contact began.
    pub(super) fn tell_opened(&self, flow: FlowId, mission: &str) {
        let channel = &self.config.name;
        tracing::info!(%channel, mission, flow = flow.0, "contact opened");
        let sentence = format!("contact {} of channel {channel} began, mission {mission}", flow.0);
        self.tell(EventKind::ContactOpened, flow.0, sentence);
    }

    /// Says that a contact has ended.
    pub(super) fn tell_closed(&self, shown: &ContactCaptured) {
        let ContactCaptured { flow, frames, set_aside, .. } = shown;
        let channel = &self.config.name;
        tracing::info!(%channel, flow, frames, "contact closed");
        let sentence = format!(
            "contact {flow} of channel {channel} ended: {frames} good frames, {set_aside} set aside"
        );
        self.tell(EventKind::ContactClosed, *flow, sentence);
    }

    fn tell(&self, kind: EventKind, flow: u32, sentence: String) {
        let note = EventNote::new(kind, format!("contact {flow}"), sentence);
        let note = note.with("flow", flow).with("channel", self.config.name.to_string());
        self.shared.alarms.events().note(note);
    }
}
