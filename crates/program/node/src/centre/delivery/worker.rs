//! The thread of one consumer: begins its deliveries in their order, and reads its notices. A
//! consumer whose folder hangs holds up no other.

use super::copy::{self, CopiedFile};
use super::ledger::{DeliveryLedger, rules};
use super::product::stem_of;
use crate::centre::shared::CentreShared;
use skyhaul_catalogue::{Item, ItemFile, ItemForm};
use skyhaul_catalogue_io::{CatalogueReader, DeliveryRow, ItemRow};
use skyhaul_config::{DeliveryEntry, DeliveryFormat};
use skyhaul_dispatch::{
    Checksum, DeliveredFile, DeliveryFailure, DeliveryInput, DeliveryOrdering, DeliveryOutput,
    DeliveryRecord, DeliveryState, DestinationQueue, FailureKind, Proof, QueuedDelivery, edos,
    sips,
};
use skyhaul_level0::naming::{ProductName, Series};
use skyhaul_net::Clock;
use skyhaul_units::{ByteCount, Duration, Utc};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The thread of one consumer.
#[derive(Debug)]
pub struct ConsumerWorker {
    pub(super) shared: Arc<CentreShared>,
    pub(super) clock: Clock,
    /// This centre's name.
    name: String,
    pub(super) consumer: DeliveryEntry,
    queue: DestinationQueue,
    /// When a notice is given up, by the number of its delivery.
    timeouts: BTreeSet<(Utc, u64)>,
}

/// Between two looks for due deliveries and new notices.
const LOOK: Duration = Duration::from_millis(500);

impl ConsumerWorker {
    /// Delivers as the centre called `name`.
    pub fn new(
        shared: Arc<CentreShared>,
        clock: Clock,
        name: String,
        consumer: DeliveryEntry,
    ) -> Self {
        let queue = DestinationQueue::new(DeliveryOrdering::Oldest, 1, rules(&consumer));
        Self { shared, clock, name, consumer, queue, timeouts: BTreeSet::new() }
    }

    pub(super) fn ledger(&self) -> &DeliveryLedger {
        self.shared.deliveries()
    }

    /// Runs until the centre stops.
    pub fn run(mut self) {
        let mut reader = None;
        while !self.shared.shutdown.is_requested() {
            if let Err(reason) = self.turn(&mut reader) {
                self.shared.alarms.raise(&self.alarm(), &reason);
            }
            self.shared.shutdown.pause(LOOK);
        }
    }

    /// The subject of the alarm about the consumer as a whole.
    fn alarm(&self) -> String {
        format!("products cannot be delivered to {}, retrying", self.consumer.name)
    }

    /// Reads notices, and delivers what is due.
    fn turn(&mut self, reader: &mut Option<CatalogueReader>) -> Result<(), String> {
        let say = |error: skyhaul_catalogue_io::CatalogueError| error.to_string();
        let reader = match reader {
            Some(reader) => reader,
            None => {
                let opened = self.ledger().reader().map_err(say)?;
                for row in opened.open_deliveries(self.consumer.name.as_str()).map_err(say)? {
                    self.place(&row);
                }
                reader.insert(opened)
            }
        };
        for id in self.ledger().changed(self.consumer.name.as_str()) {
            if let Some(row) = reader.delivery(id).map_err(say)? {
                self.place(&row);
            }
        }
        self.notices()?;
        self.expire().map_err(say)?;
        while let Some(id) = self.queue.poll(self.clock.utc()) {
            let failure = match self.deliver(reader, id) {
                Ok(failure) => failure,
                Err(error) => {
                    // Nothing is known of it; it is looked at again with the next turn.
                    self.queue.ended(self.clock.utc(), id, None, 0);
                    self.ledger().look_again(self.consumer.name.as_str(), id);
                    return Err(error.to_string());
                }
            };
            self.queue.ended(self.clock.utc(), id, failure.as_ref(), spread(id));
            if let Some(row) = reader.delivery(id).map_err(say)? {
                self.place(&row);
            }
            if self.shared.shutdown.is_requested() {
                break;
            }
        }
        match self.queue.trouble() {
            Some((_, sentence)) => Err(sentence.to_owned()),
            None => {
                self.shared.alarms.clear(&self.alarm());
                Ok(())
            }
        }
    }

    /// Puts a delivery where it belongs: among those that begin, those whose notice is awaited, or
    /// nowhere.
    fn place(&mut self, row: &DeliveryRow) {
        self.queue.remove(row.id);
        self.timeouts.retain(|(_, id)| *id != row.id);
        let rules = rules(&self.consumer);
        match row.delivery.state {
            DeliveryState::Waiting | DeliveryState::Sending | DeliveryState::Placed => {
                self.queue.put(QueuedDelivery {
                    id: row.id,
                    published: Utc::from_micros(i64::from(row.sequence)),
                    deadline: row.deadline,
                    next: row.delivery.next,
                });
            }
            DeliveryState::Recorded => {
                self.timeouts.extend(row.delivery.next_timeout(&rules).map(|due| (due, row.id)));
            }
            _ => {}
        }
    }

    /// Gives up the notices whose time is over.
    fn expire(&mut self) -> Result<(), skyhaul_catalogue_io::CatalogueError> {
        let now = self.clock.utc();
        while let Some((due, id)) = self.timeouts.first().copied().filter(|(due, _)| *due <= now) {
            self.ledger().step(id, DeliveryInput::Timeout, now)?;
            self.timeouts.remove(&(due, id));
        }
        Ok(())
    }

    /// Carries out one delivery. Returns its failure.
    fn deliver(
        &self,
        reader: &CatalogueReader,
        id: u64,
    ) -> Result<Option<DeliveryFailure>, skyhaul_catalogue_io::CatalogueError> {
        let Some(row) = reader.delivery(id)? else { return Ok(None) };
        let Some(ItemRow { item, .. }) = reader.item(row.item)? else { return Ok(None) };
        let ledger = self.ledger();
        let now = || self.clock.utc();
        let Some((_, DeliveryOutput::Quiet)) = ledger.step(id, DeliveryInput::Begin, now())? else {
            return Ok(None);
        };
        let failed = |failure: DeliveryFailure| {
            ledger.step(id, DeliveryInput::Failed(failure.clone(), spread(id)), now())?;
            if !failure.kind.is_of_destination() {
                let what = format!("a product is not delivered to {}", self.consumer.name);
                self.shared.alarms.raise(&what, &failure.sentence);
            }
            Ok(Some(failure))
        };
        let files = match self.hand_over(&row, &item) {
            Ok(files) => files,
            Err(failure) => return failed(failure),
        };
        let placed = ledger.step(id, DeliveryInput::Placed(Proof::Written), now())?;
        let Some((_, DeliveryOutput::Quiet)) = placed else { return Ok(None) };
        if let Err(failure) = self.write_record(&row, &item, files) {
            return failed(failure);
        }
        ledger.step(id, DeliveryInput::Recorded, now())?;
        let consumer = self.consumer.name.as_str();
        tracing::info!(consumer, name = stem_of(&item), "delivered");
        Ok(None)
    }

    /// Copies the files of a product. Returns them as the record names them.
    fn hand_over(
        &self,
        row: &DeliveryRow,
        item: &Item,
    ) -> Result<Vec<DeliveredFile>, DeliveryFailure> {
        let dir = &self.consumer.dir;
        if !dir.is_dir() {
            let sentence = format!(
                "{}: the folder is missing; mount or create it, no data is lost",
                dir.display()
            );
            return Err(DeliveryFailure::new(FailureKind::Line, sentence));
        }
        let is_sips = self.consumer.format == DeliveryFormat::Sips;
        let kind = is_sips.then_some(self.consumer.checksum);
        let wanted = |file: &&ItemFile| {
            row.delivery.only.as_ref().is_none_or(|only| only.contains(&file.name))
        };
        let directory = self.consumer.directory();
        let mut files = Vec::with_capacity(item.files.len());
        for file in item.files.iter().filter(wanted) {
            let (from, to) = (self.ledger().products().join(&file.name), dir.join(&file.name));
            let before = if row.delivery.is_repeated() {
                None
            } else {
                copy::there(&to, file, kind).map_err(|error| unusable(&to, &error))?
            };
            let CopiedFile { checksum, is_as_published } = match before {
                Some(CopiedFile { is_as_published: false, .. }) => {
                    let sentence = format!(
                        "{}: a file of this name with other content is there; move it away, then \
                        `skyhaul deliveries again {}`",
                        to.display(),
                        row.id
                    );
                    return Err(DeliveryFailure::new(FailureKind::Differs, sentence));
                }
                Some(seen) => seen,
                None => {
                    copy::copy(&from, dir, file, kind).map_err(|error| unusable(&from, &error))?
                }
            };
            if !is_as_published {
                let sentence = format!(
                    "{} differs from the published file; the published SHA-256 is in the account \
                    beside it",
                    file.name
                );
                return Err(DeliveryFailure::new(FailureKind::Source, sentence));
            }
            files.push(delivered(file, &directory, checksum));
        }
        Ok(files)
    }

    /// Writes the delivery record, and then its signal file.
    fn write_record(
        &self,
        row: &DeliveryRow,
        item: &Item,
        files: Vec<DeliveredFile>,
    ) -> Result<(), DeliveryFailure> {
        let record = self.record(row, item, files);
        let name = record_name(item);
        let bytes = match self.consumer.format {
            DeliveryFormat::Edos => edos::write_record(&record),
            DeliveryFormat::Sips => sips::write_record(&record, &self.consumer.terms())
                .map_err(|error| DeliveryFailure::new(FailureKind::Refused, error.to_string()))?,
        };
        let dir = &self.consumer.dir;
        copy::write(dir, &name, &bytes)
            .and_then(|()| copy::write(dir, &format!("{name}.XFR"), b""))
            .map_err(|error| unusable(&dir.join(&name), &error))
    }

    fn record(&self, row: &DeliveryRow, item: &Item, files: Vec<DeliveredFile>) -> DeliveryRecord {
        // The time of the product, not of now: a repeated delivery has the same record.
        let created = item.published;
        DeliveryRecord {
            originator: self.name.clone(),
            consumer: self.consumer.name.to_string(),
            sequence: row.sequence,
            product: stem_of(item),
            mission: item.mission.clone(),
            data_type: item.product.clone(),
            version: item.version,
            is_expedited: item.form == ItemForm::Expedited,
            created,
            expires: created + self.consumer.expires,
            span: item.start.zip(item.end),
            files,
        }
    }
}

fn delivered(file: &ItemFile, directory: &str, checksum: Option<Checksum>) -> DeliveredFile {
    DeliveredFile {
        directory: directory.to_owned(),
        name: file.name.clone(),
        size: ByteCount::new(file.size),
        checksum,
        is_metadata: file.is_metadata,
    }
}

fn unusable(path: &std::path::Path, error: &std::io::Error) -> DeliveryFailure {
    let kind = match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => FailureKind::Full,
        std::io::ErrorKind::PermissionDenied => FailureKind::Access,
        _ => FailureKind::Line,
    };
    let sentence = format!("{}: {error}; repair the folder, no data is lost", path.display());
    DeliveryFailure::new(kind, sentence)
}

/// Spreads the next attempts of many deliveries: a number that differs for each of them.
fn spread(id: u64) -> u32 {
    // 2^32 divided by the golden ratio.
    (id as u32).wrapping_mul(0x9e37_79b9)
}

/// The name of a delivery's record: that of the product in the series of delivery records.
fn record_name(item: &Item) -> String {
    let (suffix, series) = match item.form {
        ItemForm::Expedited => ("EDS", Series::EdsDelivery),
        _ => ("PDS", Series::PdsDelivery),
    };
    let stem = stem_of(item);
    let name = ProductName::parse(&format!("{stem}.{suffix}"));
    name.map_or_else(|_| format!("{stem}.PDR"), |name| name.in_series(series).to_string())
}
