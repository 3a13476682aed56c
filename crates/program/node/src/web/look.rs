//! A look as the page's server asks for it.

use super::{contacts, figures, rows, summary};
use crate::looks::{HeartBeat, NodeLook};
use crate::status::StoreState;
use bytes::Bytes;
use skyhaul_units::Utc;
use skyhaul_web::{ExpositionForm, RowVisit, WebLack, WebList, WebSource, exposition};
use std::sync::{Arc, OnceLock};

/// A look, and whether the node still turns.
pub(super) struct ShownLook {
    look: Arc<NodeLook>,
    beat: Arc<HeartBeat>,
    /// Made when somebody asks for it first, for all who ask.
    summary: OnceLock<String>,
    /// The metrics in each form; likewise.
    classic: OnceLock<Bytes>,
    open: OnceLock<Bytes>,
}

impl ShownLook {
    pub(super) fn new(look: Arc<NodeLook>, beat: Arc<HeartBeat>) -> Self {
        Self {
            look,
            beat,
            summary: OnceLock::new(),
            classic: OnceLock::new(),
            open: OnceLock::new(),
        }
    }
}

impl WebSource for ShownLook {
    fn number(&self) -> u64 {
        self.look.number
    }

    fn taken(&self) -> Utc {
        self.look.taken
    }

    fn summary(&self) -> &str {
        self.summary.get_or_init(|| summary::of(&self.look).to_string())
    }

    fn rows(&self, list: WebList, visit: &mut RowVisit<'_>) {
        let look = &self.look;
        // A visitor that has enough breaks off.
        let _ = match list {
            WebList::Nodes => rows::nodes(look, visit),
            WebList::Stations => rows::stations(look, visit),
            WebList::Channels => rows::channels(look, visit),
            WebList::Contacts => contacts::all(look, visit),
            WebList::Passes => rows::passes(look, visit),
            WebList::Paths => rows::paths(look, visit),
            WebList::Queues => rows::queues(look, visit),
            WebList::Gaps => rows::gaps(look, visit),
            WebList::Products => rows::products(look, visit),
            WebList::Deliveries => rows::deliveries(look, visit),
            WebList::Alarms => rows::alarms(look, visit),
            WebList::Latency => rows::latency(look, visit),
        };
    }

    fn metrics(&self, form: ExpositionForm) -> Bytes {
        let made = match form {
            ExpositionForm::Classic => &self.classic,
            ExpositionForm::OpenMetrics => &self.open,
        };
        made.get_or_init(|| exposition(&figures::all(&self.look), form).into()).clone()
    }

    fn lacks(&self) -> Vec<WebLack> {
        let status = &self.look.status;
        let mut lacks = Vec::new();
        let mut lack = |what, text: &str| lacks.push(WebLack { what, text: text.to_owned() });
        if !self.beat.is_alive() {
            lack("stuck", "the node's main thread does not turn");
        }
        match status.station.as_ref().map(|station| station.spool.state) {
            Some(StoreState::Full) => lack("spool_full", "the spool has no room"),
            Some(StoreState::Failed) => lack("spool_failed", "the disk of the spool fails"),
            Some(StoreState::Ok) | None => {}
        }
        match status.centre.as_ref().map(|centre| centre.store.state) {
            Some(StoreState::Full) => lack("store_full", "the store has no room"),
            Some(StoreState::Failed) => lack("store_failed", "the disk of the store fails"),
            Some(StoreState::Ok) | None => {}
        }
        lacks
    }

    fn is_alive(&self) -> bool {
        self.beat.is_alive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_net::Clock;

    #[test]
    fn all_who_ask_for_the_metrics_of_a_look_get_the_same_bytes() {
        let beat = Arc::new(HeartBeat::new(Clock::start()));
        let shown = ShownLook::new(Arc::new(figures::look_of(Default::default())), beat);
        for form in [ExpositionForm::Classic, ExpositionForm::OpenMetrics] {
            // Both are held: memory that was given back could be taken again.
            let (first, second) = (shown.metrics(form), shown.metrics(form));
            assert_eq!(first.as_ptr(), second.as_ptr(), "{form:?}");
        }
    }
}
