//! Forecasts of contacts, and their alarms.

use super::presence::subject_behind;
use super::*;
use skyhaul_config::ContactLabel;
use skyhaul_events::AlarmKind;

impl Uplink {
    /// Tells the session what is known of a path in advance.
    pub(super) fn send_forecasts(&self, manager: &mut SessionManager, path: PathId) {
        if let Some(session) = self.connection.id().and_then(|id| manager.session(id)) {
            self.paths.hint(session, path, self.clock);
        }
    }

    /// Forecasts when each contact will be at the centre, and raises an alarm about those that will
    /// miss their deadline.
    pub(super) fn forecast(&mut self, now: Instant, manager: &mut SessionManager) {
        self.timers.forecast_at = now + FORECAST;
        let Some(session) = self.connection.id().and_then(|id| manager.session(id)) else { return };
        if !self.feeder.is_feeding() {
            return;
        }
        let waiting =
            self.shared.spool().queue().waiting(self.feeder.to(), |flow| self.feeder.place(flow));
        let start = self.clock.utc_at_start();
        let waiting = waiting.into_iter().filter(|waiting| self.feeder.gives(waiting.flow));
        let waiting: Vec<_> = waiting.collect();
        let behind = waiting.iter().map(|waiting| {
            let delivery = self.feeder.delivery(waiting.flow, &self.label(waiting.flow));
            let due = |written: Utc| {
                delivery.deadline.map(|span| Instant::ZERO + (written + span).since(start))
            };
            let due = due(waiting.oldest).zip(due(waiting.newest));
            WaitingData {
                flow: waiting.flow,
                bytes: waiting.bytes,
                priority: delivery.priority,
                due,
            }
        });
        let behind: Vec<WaitingData> = behind.collect();
        let waiting = lateness::candidates(now, &behind);
        let mut forecasts = session.sender().forecasts(now, session.paths(), &waiting);
        // Guests hand over data only when the line has room: it is never late.
        forecasts.retain(|forecast| forecast.flow < FIRST_GUEST);
        for (flow, change) in self.lateness.update(now, &forecasts) {
            self.report_forecast(flow, change);
        }
        let shown = forecasts
            .iter()
            .map(|forecast| lateness::shown(now, forecast, &self.label(forecast.flow).channel));
        self.shared.board.forecasts(self.place, shown.collect());
    }

    /// What a contact is of; empty where it is not known yet.
    pub(super) fn label(&self, flow: FlowId) -> ContactLabel {
        let known = self.feeder.label(flow).cloned();
        known.or_else(|| self.shared.board.label_of(flow)).unwrap_or_default()
    }

    pub(super) fn report_forecast(&self, flow: FlowId, change: ForecastChange) {
        let contact = format!("contact {} of {}", flow.0, self.label(flow).channel);
        let subject = subject_behind(self, &contact);
        match change {
            ForecastChange::Late(late) => {
                let reason =
                    format!("at the present rate it will miss its deadline by {}", in_words(late));
                self.shared.alarms.raise(AlarmKind::ContactLate, subject, &reason);
            }
            ForecastChange::OnTime(spare) => {
                self.shared.alarms.clear(AlarmKind::ContactLate, &subject);
                tracing::info!(
                    "{contact}: back on schedule, {} before its deadline",
                    in_words(spare)
                );
            }
            ForecastChange::Over => {
                self.shared.alarms.clear(AlarmKind::ContactLate, &subject);
            }
        }
    }
}
