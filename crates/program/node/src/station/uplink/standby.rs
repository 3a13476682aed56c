//! A station that stands by for another one: what it asks the centre, and what it shows.

use super::*;
use crate::status::{StandbyStatus, StandbyWord};
use bytes::Bytes;
use skyhaul_events::AlarmKind;
use skyhaul_level0::ledger::talk::Talk;
use skyhaul_level0::standby::StandbyState;

/// The subject of the alarm where a standby cannot stand by.
pub(super) const CANNOT: &str = "this node";

/// An uplink of a station that stands by for another one.
#[derive(Debug)]
pub(super) struct StandbyUplink<'a>(&'a mut Uplink);

impl<'a> StandbyUplink<'a> {
    pub(super) const fn of(uplink: &'a mut Uplink) -> Self {
        Self(uplink)
    }

    /// Reads what is new in the spool, asks the centre, and settles what it has.
    pub(super) fn work(&mut self, now: Instant, manager: &mut SessionManager) {
        let Uplink { shared, clock, feeder, connection, centre, .. } = &mut *self.0;
        let utc = clock.utc();
        let Some(standby) = feeder.standby() else { return };
        let before = standby.gate().state();
        if let Err(error) = standby.read_ahead(|reader| shared.spool().queue_mut().read(reader)) {
            shared.alarms.raise(AlarmKind::SpoolUnreadable, "the spool", &error.to_string());
        }
        if let Some(question) = standby.question(utc)
            && let Some(session) = connection.id().and_then(|id| manager.session(id))
        {
            let said = Bytes::from(Talk::StandBy(question.clone()).encode());
            if session.control_mut().tell(said).is_ok() {
                standby.asked(question);
            }
        }
        let of = standby.gate().of().to_owned();
        let changes = feeder.look(&mut shared.spool(), now, utc);
        for flow in changes.settled {
            tracing::info!(
                centre = centre.name,
                flow = flow.0,
                "the centre has this contact from {of}: settled without being sent"
            );
        }
        self.tell_state(before, &of);
    }

    /// Logs a change of the state, and raises or clears the alarm about it.
    fn tell_state(&mut self, before: StandbyState, of: &str) {
        let state = self.0.feeder.standby().map(|standby| standby.gate().state());
        let Some(state) = state.filter(|state| *state != before) else { return };
        let (centre, alarms) = (&self.0.centre.name, &self.0.shared.alarms);
        let subject = self.0.subject(CANNOT);
        match state {
            StandbyState::Asking => {}
            StandbyState::StandingBy => tracing::info!("{centre}: standby of {of}: it delivers"),
            StandbyState::TakingOver(_) => {
                tracing::warn!("{centre}: {of} does not deliver everything: taking over");
            }
            StandbyState::Unanswered => {
                let reason = format!(
                    "{centre} does not say what it has from {of}; everything is sent; install the \
                     same release there"
                );
                return alarms.raise(AlarmKind::StandbyFailed, &subject, &reason);
            }
            StandbyState::Unknown => {
                let reason = format!(
                    "{centre} knows no node {of}, which `standby_of` names; everything is sent; \
                     correct the name, or add the [[peer]] there"
                );
                return alarms.raise(AlarmKind::StandbyFailed, &subject, &reason);
            }
        }
        alarms.clear(AlarmKind::StandbyFailed, &subject);
    }

    /// What status shows.
    pub(super) fn status(&mut self) -> Option<StandbyStatus> {
        let standby = self.0.feeder.standby()?;
        let (counts, gate) = (standby.counts(), standby.gate());
        let (state, since) = match gate.state() {
            StandbyState::Asking => (StandbyWord::Asking, None),
            StandbyState::StandingBy => (StandbyWord::StandingBy, None),
            StandbyState::TakingOver(since) => (StandbyWord::TakingOver, Some(since.to_string())),
            StandbyState::Unanswered => (StandbyWord::Unanswered, None),
            StandbyState::Unknown => (StandbyWord::Unknown, None),
        };
        Some(StandbyStatus {
            of: gate.of().to_owned(),
            state,
            since,
            settled_contacts: counts.settled_contacts,
            settled_blocks: counts.settled_blocks,
            kept_back_blocks: counts.kept_back_blocks,
        })
    }
}
