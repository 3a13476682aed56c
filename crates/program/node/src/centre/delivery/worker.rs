//! A thread of one destination: begins its deliveries in their order, and reads its notices. A
//! destination whose folder hangs holds up no other.

use super::outlet::{Outlet, check_folder, spread, tell};
use super::product::stem_of;
use skyhaul_catalogue::Item;
use skyhaul_catalogue_io::{CatalogueError, CatalogueReader, DeliveryRow, ItemRow};
use skyhaul_config::ProductDestination;
use skyhaul_config::{ProductSubscription, VersionsName};
use skyhaul_dispatch::{
    DeliveredFile, DeliveryFailure, DeliveryInput, DeliveryOutput, DeliveryState, FailureKind,
    Proof,
};
use skyhaul_events::{AlarmKind, AlarmSubject, EventKind};
use skyhaul_remote::RemoteSink;
use skyhaul_units::Duration;
use std::sync::Arc;

/// A thread of one destination.
pub struct OutletWorker {
    pub(super) outlet: Arc<Outlet>,
    /// The connection, once there is one.
    sink: Option<Box<dyn RemoteSink>>,
}

/// A delivery under way.
pub struct DeliveryUnderWay {
    /// The delivery.
    pub row: DeliveryRow,
    /// Its product.
    pub item: Item,
    /// Its subscription.
    pub subscription: ProductSubscription,
}

/// Between two looks for due deliveries and new notices.
const LOOK: Duration = Duration::from_millis(500);

impl OutletWorker {
    /// Of a destination.
    pub const fn new(outlet: Arc<Outlet>) -> Self {
        Self { outlet, sink: None }
    }

    /// Runs until the destination or the node is stopped.
    pub fn run(mut self) {
        let alarms = Arc::clone(&self.outlet.shared.alarms);
        let subject = products_for(&self.outlet.destination);
        let mut reader = None;
        while !self.outlet.is_stopped() {
            let turned = self.turn(&mut reader);
            let has_more = turned == Ok(true);
            match turned.err().or_else(|| self.outlet.trouble()) {
                Some(reason) => alarms.raise(AlarmKind::DeliveryFailed, &subject, &reason),
                None => _ = alarms.clear(AlarmKind::DeliveryFailed, &subject),
            }
            if !has_more {
                self.outlet.shared.shutdown.pause(LOOK);
            }
        }
    }

    /// Looks at what is new, and carries out one delivery; returns whether one was due. A backlog
    /// holds up neither a newer product nor a notice: both are looked at before each delivery.
    fn turn(&mut self, reader: &mut Option<CatalogueReader>) -> Result<bool, String> {
        let say = |error: CatalogueError| error.to_string();
        let reader = match reader {
            Some(reader) => reader,
            None => reader.insert(self.outlet.ledger().reader().map_err(say)?),
        };
        self.outlet.load(reader).map_err(say)?;
        self.look(reader)?;
        let Some(id) = self.outlet.poll() else { return Ok(false) };
        let delivered = self.deliver(reader, id);
        self.outlet.ended(id, delivered.as_ref().ok().and_then(Option::as_ref));
        if let Err(error) = delivered {
            // Nothing is known of it; it is looked at again with the next turn.
            self.outlet.ledger().look_again(self.outlet.name(), id);
            return Err(error.to_string());
        }
        if let Some(row) = reader.delivery(id).map_err(say)? {
            self.outlet.place(&row);
        }
        Ok(true)
    }

    /// Looks at deliveries that changed, at notices, and at those that did not come.
    fn look(&mut self, reader: &CatalogueReader) -> Result<(), String> {
        let mut unseen = Ok(());
        for id in self.outlet.changed() {
            if let Err(error) = self.look_at(reader, id) {
                self.outlet.ledger().look_again(self.outlet.name(), id);
                unseen = Err(error.to_string());
            }
        }
        unseen?;
        if self.outlet.looks() {
            let heard = self.notices(reader);
            self.outlet.heard(heard);
        }
        for id in self.outlet.unanswered() {
            self.unanswered(reader, id).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Looks at a delivery that is new, or that an operator or a notice changed.
    fn look_at(&mut self, reader: &CatalogueReader, id: u64) -> Result<(), CatalogueError> {
        let Some(row) = reader.delivery(id)? else { return Ok(()) };
        self.outlet.place(&row);
        if row.delivery.state.is_settled() && !row.delivery.state.is_there() {
            self.discard(reader, &row)?;
        }
        Ok(())
    }

    /// What is known of a delivery; none where it, its item or its subscription is gone.
    fn outgoing(
        &self,
        reader: &CatalogueReader,
        id: u64,
    ) -> Result<Option<DeliveryUnderWay>, CatalogueError> {
        let Some(row) = reader.delivery(id)? else { return Ok(None) };
        let Some(ItemRow { item, .. }) = reader.item(row.item)? else { return Ok(None) };
        let subscription = self.outlet.subscription(&row).cloned();
        Ok(subscription.map(|subscription| DeliveryUnderWay { row, item, subscription }))
    }

    /// No notice came in time: the delivery is settled, its record is written again, or all is sent
    /// again.
    fn unanswered(&mut self, reader: &CatalogueReader, id: u64) -> Result<(), CatalogueError> {
        let now = self.outlet.clock.utc();
        let step = self.outlet.ledger().step(id, DeliveryInput::Timeout, now)?;
        let Some((row, output)) = step else { return Ok(()) };
        self.outlet.place(&row);
        let reason = row.delivery.reason.as_deref().unwrap_or_default();
        match output {
            DeliveryOutput::Remind => {
                let Some(of) = self.outgoing(reader, id)? else { return Ok(()) };
                // Where that fails, the next span brings the next reminder.
                if let Err(failure) = self.record_again(&of) {
                    tracing::warn!(destination = self.outlet.name(), "no reminder: {failure}");
                }
            }
            DeliveryOutput::Alarm => {
                let sentence = format!("delivery {id}: {reason}");
                let alarms = &self.outlet.shared.alarms;
                alarms.raise(AlarmKind::DeliveryRefused, self.outlet.name(), &sentence);
            }
            DeliveryOutput::Quiet | DeliveryOutput::Unfitting => {}
        }
        Ok(())
    }

    /// Carries out one delivery. Returns its failure.
    fn deliver(
        &mut self,
        reader: &CatalogueReader,
        id: u64,
    ) -> Result<Option<DeliveryFailure>, CatalogueError> {
        let Some(of) = self.outgoing(reader, id)? else { return Ok(None) };
        let now = self.outlet.clock.utc();
        let is_latest_only = of.subscription.entry.versions == VersionsName::Latest;
        let is_new =
            of.row.delivery.state == DeliveryState::Waiting && of.row.delivery.attempts == 0;
        if is_latest_only && is_new && reader.has_later_version(id)? {
            self.outlet.ledger().step(id, DeliveryInput::Superseded, now)?;
            return Ok(None);
        }
        let begun = self.outlet.ledger().step(id, DeliveryInput::Begin, now)?;
        if !matches!(begun, Some((_, DeliveryOutput::Quiet))) {
            return Ok(None);
        }
        match self.hand_over(reader, &of) {
            Ok(Some(handed)) => self.conclude(&of, handed.files, handed.proof),
            // Stopped: by the end of the node, or by an order, which the state shows.
            Ok(None) => Ok(None),
            Err(failure) => self.failed(id, failure),
        }
    }

    /// All files are there: writes the record.
    fn conclude(
        &mut self,
        of: &DeliveryUnderWay,
        files: Vec<DeliveredFile>,
        proof: Proof,
    ) -> Result<Option<DeliveryFailure>, CatalogueError> {
        let (id, outlet) = (of.row.id, Arc::clone(&self.outlet));
        let ledger = outlet.ledger();
        let placed = ledger.step(id, DeliveryInput::Placed(proof), outlet.clock.utc())?;
        if !matches!(placed, Some((_, DeliveryOutput::Quiet))) {
            return Ok(None);
        }
        if let Err(failure) = self.write_record(of, files) {
            return self.failed(id, failure);
        }
        ledger.step(id, DeliveryInput::Recorded, outlet.clock.utc())?;
        let (name, to) = (stem_of(&of.item), outlet.name());
        tracing::info!(destination = to, name, "delivered");
        let sentence = format!("delivery {id}: {name} is at {to}");
        tell(&outlet, EventKind::DeliveryHanded, id, sentence);
        Ok(None)
    }

    fn failed(
        &self,
        id: u64,
        failure: DeliveryFailure,
    ) -> Result<Option<DeliveryFailure>, CatalogueError> {
        let input = DeliveryInput::Failed(failure.clone(), spread(id));
        let step = self.outlet.ledger().step(id, input, self.outlet.clock.utc())?;
        let has_failed = step.is_some_and(|(row, _)| row.delivery.state == DeliveryState::Failed);
        if has_failed || !failure.kind.is_of_destination() {
            let subject = product_for(self.outlet.name());
            let sentence = format!("delivery {id}: {}", failure.sentence);
            // Before the alarm, which it explains.
            tell(&self.outlet, EventKind::DeliveryFailed, id, sentence);
            self.outlet.shared.alarms.raise(AlarmKind::DeliveryLost, subject, &failure.sentence);
        }
        Ok(Some(failure))
    }

    /// The connection to the place.
    pub(super) fn sink(&mut self) -> Result<&mut dyn RemoteSink, DeliveryFailure> {
        check_folder(&self.outlet)?;
        if self.sink.is_none() {
            self.sink = Some(self.outlet.open()?);
        }
        self.sink
            .as_deref_mut()
            .ok_or_else(|| DeliveryFailure::new(FailureKind::Line, "there is no connection"))
            .map(|sink| sink as &mut dyn RemoteSink)
    }
}

/// The subject of the alarm about products that do not get there: one for each destination, with
/// the newest.
pub fn product_for(destination: &str) -> String {
    format!("a product for {destination}")
}

/// The subject of the alarms about a destination as a whole. While another node is silent, its
/// deliveries wait because of that.
pub fn products_for(destination: &ProductDestination) -> AlarmSubject {
    let subject = AlarmSubject::from(format!("products for {}", destination.name));
    match destination.node() {
        Some(folder) => subject.behind(folder.node.as_str()),
        None => subject,
    }
}
