//! The thread of one consumer: begins its deliveries in their order, and reads its notices. A
//! consumer whose folder hangs holds up no other.

use super::digest::digests;
use super::ledger::{DeliveryLedger, rules};
use super::product::stem_of;
use crate::centre::shared::CentreShared;
use skyhaul_catalogue::{Item, ItemFile, ItemForm};
use skyhaul_catalogue_io::{CatalogueError, CatalogueReader, DeliveryRow, ItemRow};
use skyhaul_config::{DeliveryEntry, DeliveryFormat};
use skyhaul_dispatch::{
    Checksum, DeliveredFile, DeliveryFailure, DeliveryInput, DeliveryOrdering, DeliveryOutput,
    DeliveryRecord, DeliveryState, DestinationQueue, FailureKind, Proof, QueuedDelivery, edos,
    sips,
};
use skyhaul_level0::naming::{ProductName, Series};
use skyhaul_net::Clock;
use skyhaul_remote::{
    GoOn, OutgoingFile, PlaceProgress, Placing, ReadBack, RemoteAccess, RemoteFound, RemoteSink,
    ResumeNote,
};
use skyhaul_units::{ByteCount, Duration, Instant, Utc};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The thread of one consumer.
pub struct ConsumerWorker {
    pub(super) shared: Arc<CentreShared>,
    pub(super) clock: Clock,
    /// This centre's name.
    name: String,
    pub(super) consumer: DeliveryEntry,
    access: RemoteAccess,
    /// The connection, once there is one.
    sink: Option<Box<dyn RemoteSink>>,
    queue: DestinationQueue,
    /// When notices are looked for next.
    pub(super) look: Instant,
    /// When a notice is given up, by the number of its delivery.
    timeouts: BTreeMap<u64, Utc>,
}

/// The files of a product at its consumer.
struct Handed {
    files: Vec<DeliveredFile>,
    proof: Proof,
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
        let (access, look) = (consumer.access(), Instant::ZERO);
        let timeouts = BTreeMap::new();
        Self { shared, clock, name, consumer, access, sink: None, queue, look, timeouts }
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
        let say = |error: CatalogueError| error.to_string();
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
        let mut unseen = Ok(());
        for id in self.ledger().changed(self.consumer.name.as_str()) {
            if let Err(error) = self.look_at(reader, id) {
                self.ledger().look_again(self.consumer.name.as_str(), id);
                unseen = Err(error.to_string());
            }
        }
        unseen?;
        let heard = self.notices(reader);
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
                heard?;
                self.shared.alarms.clear(&self.alarm());
                Ok(())
            }
        }
    }

    /// Looks at a delivery that is new, or that an operator or a notice changed.
    fn look_at(&mut self, reader: &CatalogueReader, id: u64) -> Result<(), CatalogueError> {
        let Some(row) = reader.delivery(id)? else { return Ok(()) };
        self.place(&row);
        if row.delivery.state.is_settled() && !row.delivery.state.is_there() {
            self.discard(reader, &row)?;
        }
        Ok(())
    }

    /// Puts a delivery where it belongs: among those that begin, those whose notice is awaited, or
    /// nowhere.
    fn place(&mut self, row: &DeliveryRow) {
        self.queue.remove(row.id);
        self.timeouts.remove(&row.id);
        let rules = rules(&self.consumer);
        match row.delivery.state {
            DeliveryState::Waiting | DeliveryState::Sending | DeliveryState::Placed => {
                self.queue.put(QueuedDelivery {
                    id: row.id,
                    published: row.published,
                    deadline: row.deadline,
                    next: row.delivery.next,
                });
            }
            DeliveryState::Recorded => {
                self.timeouts.extend(row.delivery.next_timeout(&rules).map(|due| (row.id, due)));
            }
            _ => {}
        }
    }

    /// Gives up the notices whose time is over.
    fn expire(&mut self) -> Result<(), CatalogueError> {
        let now = self.clock.utc();
        let due: Vec<u64> =
            self.timeouts.iter().filter(|(_, due)| **due <= now).map(|(id, _)| *id).collect();
        for id in due {
            self.ledger().step(id, DeliveryInput::Timeout, now)?;
            self.timeouts.remove(&id);
        }
        Ok(())
    }

    /// Carries out one delivery. Returns its failure.
    fn deliver(
        &mut self,
        reader: &CatalogueReader,
        id: u64,
    ) -> Result<Option<DeliveryFailure>, CatalogueError> {
        let Some(row) = reader.delivery(id)? else { return Ok(None) };
        let Some(ItemRow { item, .. }) = reader.item(row.item)? else { return Ok(None) };
        let begun = self.ledger().step(id, DeliveryInput::Begin, self.clock.utc())?;
        if !matches!(begun, Some((_, DeliveryOutput::Quiet))) {
            return Ok(None);
        }
        match self.hand_over(reader, &row, &item) {
            Ok(sent) => {
                if let Some(Handed { files, proof }) = sent {
                    return self.conclude(&row, &item, files, proof);
                }
                // Stopped: by the end of the node, or by an order, which the state shows.
                Ok(None)
            }
            Err(failure) => self.failed(id, failure),
        }
    }

    /// All files are there: writes the record.
    fn conclude(
        &mut self,
        row: &DeliveryRow,
        item: &Item,
        files: Vec<DeliveredFile>,
        proof: Proof,
    ) -> Result<Option<DeliveryFailure>, CatalogueError> {
        let placed = self.ledger().step(row.id, DeliveryInput::Placed(proof), self.clock.utc())?;
        if !matches!(placed, Some((_, DeliveryOutput::Quiet))) {
            return Ok(None);
        }
        if let Err(failure) = self.write_record(row, item, files) {
            return self.failed(row.id, failure);
        }
        self.ledger().step(row.id, DeliveryInput::Recorded, self.clock.utc())?;
        let consumer = self.consumer.name.as_str();
        tracing::info!(consumer, name = stem_of(item), "delivered");
        Ok(None)
    }

    fn failed(
        &self,
        id: u64,
        failure: DeliveryFailure,
    ) -> Result<Option<DeliveryFailure>, CatalogueError> {
        let input = DeliveryInput::Failed(failure.clone(), spread(id));
        self.ledger().step(id, input, self.clock.utc())?;
        if !failure.kind.is_of_destination() {
            let what = format!("a product is not delivered to {}", self.consumer.name);
            self.shared.alarms.raise(&what, &failure.sentence);
        }
        Ok(Some(failure))
    }

    /// The connection to the place.
    pub(super) fn sink(&mut self) -> Result<&mut dyn RemoteSink, DeliveryFailure> {
        if let Some(dir) = self.consumer.folder()
            && !dir.is_dir()
        {
            let what = "the folder is missing; mount or create it, no data is lost";
            let sentence = format!("{}: {what}", dir.display());
            return Err(DeliveryFailure::new(FailureKind::Line, sentence));
        }
        if self.sink.is_none() {
            let place = &self.consumer.to.0;
            let name = self.consumer.name.as_str();
            let known = self.ledger().abilities(name);
            let mut sink = skyhaul_remote::open(place, &self.access, known.as_ref())?;
            if known.is_none() && self.consumer.folder().is_none() {
                let found = sink.abilities()?;
                tracing::info!(consumer = name, "{place} is {}", found.server);
                self.ledger().keep_abilities(name, &found);
            }
            self.sink = Some(sink);
        }
        self.sink
            .as_deref_mut()
            .ok_or_else(|| DeliveryFailure::new(FailureKind::Line, "there is no connection"))
            .map(|sink| sink as &mut dyn RemoteSink)
    }

    /// Places the files of a product. Returns them as the record names them; none where it was
    /// stopped.
    fn hand_over(
        &mut self,
        reader: &CatalogueReader,
        row: &DeliveryRow,
        item: &Item,
    ) -> Result<Option<Handed>, DeliveryFailure> {
        let is_sips = self.consumer.format == DeliveryFormat::Sips;
        let kind = is_sips.then_some(self.consumer.checksum);
        let wanted = |file: &&ItemFile| {
            row.delivery.only.as_ref().is_none_or(|only| only.contains(&file.name))
        };
        let directory = self.consumer.directory();
        let mut handed = Handed { files: Vec::new(), proof: Proof::Digest };
        for file in item.files.iter().filter(wanted) {
            let outgoing = self.outgoing(file);
            let path = &outgoing.path;
            let own = digests(path, kind).map_err(|error| {
                let help = "repair the folder, no data is lost";
                let sentence = format!("{}: {error}; {help}", path.display());
                DeliveryFailure::new(FailureKind::Line, sentence)
            })?;
            if own.sha256 != file.sha256 {
                let sentence = format!(
                    "{} differs from the published file; the published SHA-256 is in the account \
                    beside it",
                    file.name
                );
                return Err(DeliveryFailure::new(FailureKind::Source, sentence));
            }
            if row.delivery.is_repeated() {
                self.move_away(&outgoing)?;
            }
            let Some(proof) = self.place_file(reader, row.id, &outgoing)? else { return Ok(None) };
            handed.proof = weaker(handed.proof, proof);
            handed.files.push(delivered(file, &directory, own.checksum));
        }
        Ok(Some(handed))
    }

    /// The consumer wants a file again: what is there under its name is what was sent before.
    fn move_away(&mut self, file: &OutgoingFile) -> Result<(), DeliveryFailure> {
        let sink = self.sink()?;
        match sink.look(file)? {
            RemoteFound::Absent => Ok(()),
            RemoteFound::Same(_) | RemoteFound::Differs => {
                sink.rename(&file.name, &format!(".{}.refused", file.name))
            }
        }
    }

    /// Removes what a delivery that is given up left at the place: parts, uploads. Where that
    /// fails, the notes stay, and the next order tries again.
    fn discard(
        &mut self,
        reader: &CatalogueReader,
        row: &DeliveryRow,
    ) -> Result<(), CatalogueError> {
        let Some(ItemRow { item, .. }) = reader.item(row.item)? else { return Ok(()) };
        let mut is_all = true;
        for file in &item.files {
            let Some(note) = reader.note(row.id, &file.name)? else { continue };
            let Ok(note) = serde_json::from_str::<ResumeNote>(&note) else { continue };
            let outgoing = self.outgoing(file);
            let discarded = self.sink().and_then(|sink| sink.discard(&outgoing, &note));
            if let Err(failure) = discarded {
                tracing::warn!("{} keeps a part of {}: {failure}", self.consumer.name, file.name);
                is_all = false;
            }
        }
        if is_all { self.ledger().drop_notes(row.id) } else { Ok(()) }
    }

    fn outgoing(&self, file: &ItemFile) -> OutgoingFile {
        OutgoingFile {
            path: self.ledger().products().join(&file.name),
            name: file.name.clone(),
            size: ByteCount::new(file.size),
            sha256: file.sha256,
            md5: file.md5,
            read_back: ReadBack::Small,
        }
    }

    /// Places one file, from where an earlier attempt stopped. Returns none where it was stopped.
    fn place_file(
        &mut self,
        reader: &CatalogueReader,
        id: u64,
        file: &OutgoingFile,
    ) -> Result<Option<Proof>, DeliveryFailure> {
        let kept = |error: CatalogueError| {
            DeliveryFailure::new(FailureKind::Line, format!("the catalogue: {error}"))
        };
        let note = reader.note(id, &file.name).map_err(kept)?;
        // A note that cannot be read is of another release: the file is sent from its beginning.
        let mut note: ResumeNote =
            note.and_then(|note| serde_json::from_str(&note).ok()).unwrap_or_default();
        let (shared, consumer) = (Arc::clone(&self.shared), self.consumer.name.to_string());
        let mut lost = None;
        let begun = note.clone();
        let mut progress = |progress: PlaceProgress<'_>| {
            let ledger = shared.deliveries();
            if let PlaceProgress::Reached(step) = progress {
                note.apply(step);
                let text = serde_json::to_string(&note).unwrap_or_default();
                lost = ledger.keep_note(id, &file.name, &text).err();
            }
            let stops = lost.is_some()
                || shared.shutdown.is_requested()
                || ledger.is_changed(&consumer, id);
            if stops { GoOn::Stop } else { GoOn::Continue }
        };
        let placed = self.sink()?.place(file, &begun, &mut progress)?;
        if let Some(error) = lost {
            return Err(kept(error));
        }
        Ok(match placed {
            Placing::Placed(proof) => Some(proof),
            Placing::Stopped => None,
        })
    }

    /// Writes the delivery record, and then its signal file.
    fn write_record(
        &mut self,
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
        let sink = self.sink()?;
        sink.write(&name, &bytes)?;
        sink.write(&format!("{name}.XFR"), b"")
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

/// The proof of two files together: that of the one of which less is known.
const fn weaker(one: Proof, two: Proof) -> Proof {
    const fn rank(proof: Proof) -> u8 {
        match proof {
            Proof::Size => 0,
            Proof::Written => 1,
            Proof::ReadBack => 2,
            Proof::Digest | Proof::Receipt | Proof::Notice => 3,
        }
    }
    if rank(one) < rank(two) { one } else { two }
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
