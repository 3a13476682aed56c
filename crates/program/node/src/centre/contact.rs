//! One contact on its way from blocks to products.

use super::archive::Archive;
use super::assembly::{ContactSummary, Version};
use super::board::Stage;
use super::files::ProductFiles;
use super::gaps::ContactWatch;
use super::live::{LiveContact, Receivers};
use super::rdr::{self, NotMade};
use super::shared::CentreShared;
use crate::custody::Stamps;
use crate::status::{ContactReceived, ContactState, InputFrames, ProductStatus};
use sha2::{Digest, Sha256};
use skyhaul_ccsds::id::Scid;
use skyhaul_ccsds::margin::LinkMargin;
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::quality::CapturedFrame;
use skyhaul_config::ProductRules;
use skyhaul_level0::construction::ProductKind;
use skyhaul_level0::naming::Digit;
use skyhaul_level0::{
    ContactInfo, ContactProcessor, Form, Limits, ProductRuleSet,
    report::{ContactInput, Product},
};
use skyhaul_net::Clock;
use skyhaul_records::payload::{BlockHead, PayloadError, split_taken};
use skyhaul_records::{Close, Open, Record as Entry, RecordReader};
use skyhaul_store::{ContactReader, FlowStatus, LogRecord, StationName};
use skyhaul_units::{Duration, FlowId, Utc};
use std::io;
use std::path::Path;

/// What taking a block led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockEffect {
    /// Everything durable is taken.
    Idle,
    /// There may be more.
    More,
    /// The contact has ended.
    Closed,
    /// The contact cannot be read, and why.
    Unreadable(String),
}

/// A contact between its first block and its products.
pub struct Processing {
    station: StationName,
    flow: FlowId,
    reader: ContactReader,
    rules: ProductRules,
    mission: Option<Mission>,
    level0: Option<ContactProcessor<ProductFiles>>,
    archive: Option<Archive>,
    /// Who gets its packets as they arrive.
    receivers: Receivers,
    live: Option<LiveContact>,
    /// Whether products were tried before in vain: then it ends at the first file that cannot be
    /// written.
    is_again: bool,
    /// Why products cannot be written. The contact is read on all the same, for what status shows.
    unwritten: Option<String>,
    shown: ContactReceived,
    hash: Sha256,
    close: Option<Close>,
    /// The contact of the same station that it completes, where its data is still there: then
    /// products are made of both.
    completes: Option<u32>,
    watch: ContactWatch,
}

impl std::fmt::Debug for Processing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Processing")
            .field("station", &self.station)
            .field("flow", &self.flow)
            .finish_non_exhaustive()
    }
}

impl Processing {
    /// A contact of which nothing is read yet.
    pub fn new(
        (station, flow): (StationName, FlowId),
        reader: ContactReader,
        rules: ProductRules,
        receivers: Receivers,
    ) -> Self {
        let shown = ContactReceived {
            station: station.as_str().to_owned(),
            flow: flow.0,
            ..ContactReceived::default()
        };
        Self {
            watch: ContactWatch::new(&station, flow),
            station,
            flow,
            reader,
            rules,
            mission: None,
            level0: None,
            archive: None,
            receivers,
            live: None,
            is_again: false,
            unwritten: None,
            shown,
            hash: Sha256::new(),
            close: None,
            completes: None,
        }
    }

    /// The same, after its products could not be written.
    pub fn again(self) -> Self {
        Self { is_again: true, ..self }
    }

    /// Whether its products could not be written before.
    pub const fn is_again(&self) -> bool {
        self.is_again
    }

    /// Why its products cannot be written.
    pub fn unwritten(&self) -> Option<&str> {
        self.unwritten.as_deref()
    }

    /// Where it is read on.
    pub const fn reader(&mut self) -> &mut ContactReader {
        &mut self.reader
    }

    /// Whose it is, and its number there.
    pub fn key(&self) -> (StationName, FlowId) {
        (self.station.clone(), self.flow)
    }

    /// What status shows of it.
    pub const fn shown(&self) -> &ContactReceived {
        &self.shown
    }

    /// Shows another state.
    pub const fn show(&mut self, state: ContactState) {
        self.shown.state = state;
    }

    /// The store did not give a block back.
    pub fn count_damage(&mut self, shared: &CentreShared) {
        self.watch.damaged(shared);
        self.shown.damaged_blocks += 1;
    }

    /// Takes the next block.
    ///
    /// # Errors
    /// Products could not be written.
    pub fn block(
        &mut self,
        record: &LogRecord,
        shared: &CentreShared,
        clock: Clock,
    ) -> Result<BlockEffect, String> {
        let opened = Stamps::split(&record.payload).and_then(|(stamps, wire)| {
            let (taken, payload) = split_taken(wire).ok()?;
            Some((stamps, taken, BlockHead::decode(payload)))
        });
        let Some((stamps, taken, head)) = opened else {
            return Ok(BlockEffect::Unreadable(format!(
                "block {} ends inside its header",
                record.seq
            )));
        };
        let opened = head.and_then(|(head, content)| Ok((head, content.records()?)));
        let (head, records) = match opened {
            Ok(opened) => opened,
            Err(PayloadError::Lost) => {
                self.count_damage(shared);
                let (flow, station) = (self.flow, self.station.as_str());
                let lost = format!(
                    "block {} of flow {flow} of {station}, and {} in all; check that station's \
                    disk",
                    record.seq, self.shown.damaged_blocks
                );
                shared.alarms.raise("a station's disk could not read blocks", &lost);
                return Ok(BlockEffect::More);
            }
            Err(error) => {
                return Ok(BlockEffect::Unreadable(format!("block {}: {error}", record.seq)));
            }
        };
        let durable = shared.commits.take(&self.station, self.flow, record.seq);
        let (mut reader, mut records) = (RecordReader::new(), &records[..]);
        let mut frames = Vec::new();
        loop {
            match reader.read(&mut records) {
                Ok(Some(Entry::Frame(frame))) => {
                    frames.push(frame.received);
                    // What was there before the start, or is read again, is live no more.
                    if let Some(live) = self.live.as_mut().filter(|_| durable.is_some()) {
                        live.frame(&frame);
                    }
                    self.frame(&frame, shared)?;
                }
                Ok(Some(entry)) => {
                    if let Err(reason) = self.entry(entry, shared)? {
                        return Ok(BlockEffect::Unreadable(reason));
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    return Ok(BlockEffect::Unreadable(format!("block {}: {error}", record.seq)));
                }
            }
        }
        self.watch.block(record.seq, shared);
        if let Some(durable) = durable {
            let way = Way { frames, head: &head, taken, stamps, durable, processed: clock.utc() };
            way.record(shared);
        }
        Ok(if self.close.is_some() { BlockEffect::Closed } else { BlockEffect::More })
    }

    /// Writes the products. What status shows when they are there, and what products of several
    /// contacts need to know.
    ///
    /// # Errors
    /// They could not be written; the contact is to be processed again from its beginning.
    pub fn finish(
        mut self,
        clock: Clock,
        shared: &CentreShared,
    ) -> Result<(ContactReceived, Option<ContactSummary>), String> {
        if let Some(reason) = self.unwritten {
            return Err(reason);
        }
        let (name, dir) = (self.name(), self.rules.products.dir.clone());
        let close = self.close.take().ok_or("the contact is not closed")?;
        let level0 = self.level0.take().ok_or("the contact has no opening record")?;
        let (created, uniqueness) = self.naming(close.closed, shared)?;
        let ending = skyhaul_level0::ContactClose { closed: close.closed, created, uniqueness };
        let products =
            level0.finish(ending).map_err(|error| unwritable(&dir, without_help(&error)))?;
        if let Some(archive) = self.archive.take() {
            archive.publish(&format!("{name}.cadu")).map_err(|error| unwritable(&dir, error))?;
        }
        ProductFiles::clean(&self.rules.products.dir, &name);
        shared.offer(&products)?;
        self.watch.close(&products, shared).map_err(|error| error.to_string())?;
        self.shown.expedited += expedited(&products).count() as u64;
        if let Some(product) = products.first() {
            self.shown.missing = product.sidecar.frames.missing;
        }
        let whole =
            products.iter().filter(|product| product.sidecar.product.kind == ProductKind::Pds);
        self.shown.products = whole.map(|product| self.product(product)).collect();
        self.shown.products.extend(self.raw_data_records(&products, close.closed, shared)?);
        self.shown.frames_sha256 = Some(hex(&self.hash.clone().finalize()));
        self.shown.unaccounted = unaccounted(&close, &self.shown);
        self.shown.last_bit_to_product_s = Some(clock.utc().since(close.last_bit).as_secs_f64());
        self.shown.state = ContactState::Done;
        let note = self.note(&products, clock.utc());
        Ok((self.shown, note))
    }

    /// The creation time and the digit of the contact's products: of the contact, not of now, so
    /// that processed again it gives the same files. Names have whole seconds, and contacts of two
    /// stations may end in the same one.
    fn naming(&self, closed: Utc, shared: &CentreShared) -> Result<(Utc, Digit), String> {
        let own = (self.station.as_str().to_owned(), self.flow.0);
        let journal = shared.journal();
        let seconds = (0..NAMING_SECONDS).map(|later| closed + Duration::from_secs(later));
        let digits =
            (0..8).filter_map(|step| Digit::new((self.flow.0.wrapping_add(step) % 8) as u8));
        let digits: Vec<Digit> = digits.collect();
        let mut names = seconds.flat_map(|second| digits.iter().map(move |digit| (second, *digit)));
        let free = names.find(|(created, digit)| journal.is_free(&own, *created, *digit));
        free.ok_or_else(|| "no free name is left for its products".to_owned())
    }

    /// The Raw Data Records of the contact, where they are wanted. Where they cannot be made the
    /// other products are there all the same, and an alarm says so.
    fn raw_data_records(
        &self,
        made: &[Product],
        closed: Utc,
        shared: &CentreShared,
    ) -> Result<Vec<ProductStatus>, String> {
        let products = &self.rules.products;
        // What completes a contact has its packets in the products of that.
        let mission = self.mission.as_ref().filter(|_| products.rdr && self.completes.is_none());
        let Some(mission) = mission else { return Ok(Vec::new()) };
        match rdr::of_contact(mission, made, products, closed) {
            Ok(records) => {
                if !records.is_empty() {
                    shared.alarms.clear(rdr::NO_RECORDS);
                }
                Ok(records.iter().map(|file| rdr::shown(file, &products.dir)).collect())
            }
            Err(NotMade::Again(reason)) => Err(reason),
            Err(NotMade::ByHand(reason)) => {
                let by_hand =
                    format!("{}: {reason}; then make them with `skyhaul rdr make`", self.name());
                shared.alarms.raise(rdr::NO_RECORDS, &by_hand);
                Ok(Vec::new())
            }
        }
    }

    /// What the contact brought; none without packets.
    fn note(&self, products: &[Product], now: Utc) -> Option<ContactSummary> {
        let scid = self.shown.scid.or_else(|| {
            let contact = products.first()?.sidecar.contacts.first()?;
            Some(contact.scid.value())
        })?;
        let named = |product: &Product| product.sidecar.product.name.clone();
        let products =
            || products.iter().filter(|product| product.sidecar.product.kind == ProductKind::Pds);
        let first = products().filter(|_| self.completes.is_none());
        let of =
            |product: &Product| product.sidecar.product.first.zip(product.sidecar.product.last);
        let times = products().filter_map(of).filter_map(|(first, last)| first.time.zip(last.time));
        let times: Vec<(Utc, Utc)> = times.collect();
        let from = times.iter().map(|(first, _)| first.as_micros()).min();
        let to = times.iter().map(|(_, last)| last.as_micros()).max();
        Some(ContactSummary {
            span_us: from.zip(to),
            station: self.station.as_str().to_owned(),
            flow: self.flow.0,
            mission: self.shown.mission.clone(),
            scid,
            noted_us: now.as_micros(),
            completes: self.completes,
            cells: products().map(|product| (named(product), product.cells.clone())).collect(),
            versions: first.map(|product| (named(product), Version::of(product))).collect(),
        })
    }

    fn frame(&mut self, frame: &CapturedFrame, shared: &CentreShared) -> Result<(), String> {
        self.watch.frame(frame);
        let (corrected, uncorrectable) = frame.quality.corrected.codewords();
        self.shown.corrected_codewords += u64::from(corrected);
        self.shown.uncorrectable_codewords += u64::from(uncorrectable);
        self.shown.margin.count(frame);
        if frame.is_good() {
            self.shown.frames += 1;
            self.shown.corrected_symbols += u64::from(frame.quality.corrected_symbols());
            self.hash.update(&frame.bytes);
        } else {
            self.shown.set_aside += 1;
        }
        let archived = self.archive.as_mut().map_or(Ok(()), |archive| archive.frame(frame));
        let archived = archived.map_err(|error| unwritable(&self.rules.products.dir, error));
        // Without Level-0: a contact whose first block was lost at the station. Its mission is not
        // known, its frames stay in the store.
        let sorted = self.level0.as_mut().map_or(Ok(()), |level0| level0.frame(frame));
        let sorted =
            sorted.map_err(|error| unwritable(&self.rules.products.dir, without_help(&error)));
        archived.and(sorted).or_else(|reason| self.give_up(reason))?;
        let early = self.level0.as_mut().map_or(Vec::new(), ContactProcessor::expedited);
        if !early.is_empty() {
            shared.offer(&early)?;
            self.shown.expedited += early.len() as u64;
        }
        Ok(())
    }

    /// Reads on without products where that tells anything new.
    fn give_up(&mut self, reason: String) -> Result<(), String> {
        if self.is_again {
            return Err(reason);
        }
        (self.archive, self.level0) = (None, None);
        self.unwritten.get_or_insert(reason);
        Ok(())
    }

    /// Takes what is no frame; the inner error is a contact that cannot be read.
    fn entry(&mut self, entry: Entry, shared: &CentreShared) -> Result<Result<(), String>, String> {
        match entry {
            Entry::Open(open) => return self.open(&open, shared),
            Entry::Close(close) => {
                self.shown.state = ContactState::Closed;
                self.shown.closed = Some(close.closed.to_string());
                self.close = Some(close);
            }
            Entry::Inputs(inputs) => {
                let frames = inputs.iter().map(|input| {
                    (input.name.clone(), InputFrames::of(&input.account, input.foreign))
                });
                self.shown.inputs = frames.collect();
                if let Some(level0) = &mut self.level0 {
                    level0.inputs(inputs.into_iter().map(ContactInput::from).collect());
                }
            }
            Entry::Frame(_) | Entry::Progress(_) | Entry::Resumed(_) => {}
        }
        Ok(Ok(()))
    }

    fn open(&mut self, open: &Open, shared: &CentreShared) -> Result<Result<(), String>, String> {
        let mission = match Mission::from_toml(&open.mission) {
            Ok(mission) => mission,
            Err(error) => return Ok(Err(format!("its mission cannot be read: {error}"))),
        };
        self.shown.mission = mission.name().to_owned();
        self.shown.margin = LinkMargin::new(&mission);
        self.shown.channel = open.channel.clone();
        self.shown.opened = Some(open.opened.to_string());
        self.shown.scid = open.scid.map(|scid| scid.value());
        self.live = self.receivers.contact(&mission);
        let Some(scid) = open.scid.or_else(|| mission.scids().first().copied()) else {
            return Ok(Err("the spacecraft is not named in the contact or its mission".to_owned()));
        };
        self.watch.open(open, &mission, shared);
        self.completes = open
            .completes
            .filter(|flow| *flow != self.flow && self.is_there(*flow, shared))
            .map(|flow| flow.0);
        let begun = self.begin_products(open, &mission, scid);
        self.mission = Some(mission);
        match begun {
            Ok(()) => Ok(Ok(())),
            Err(error) => self.give_up(unwritable(&self.rules.products.dir, error)).map(Ok),
        }
    }

    /// Whether a contact of the same station is going on, or is done and its data kept.
    fn is_there(&self, flow: FlowId, shared: &CentreShared) -> bool {
        shared.journal().is_noted(&(self.station.as_str().to_owned(), flow.0))
            || matches!(
                shared.store().spaces().status(&self.station, flow),
                FlowStatus::Open { .. }
            )
    }

    fn begin_products(&mut self, open: &Open, mission: &Mission, scid: Scid) -> io::Result<()> {
        let name = self.name();
        let files = ProductFiles::new(&self.rules.products.dir, &name)?;
        if self.rules.products.cadu_files {
            self.archive = Some(Archive::begin(files.clone(), mission)?);
        }
        let info = ContactInfo {
            station: self.station.as_str().to_owned(),
            contact: name,
            also_fits: open.also_fits.clone(),
            scid,
            opened: open.opened,
            window: None,
        };
        let names = mission.products().iter().map(|group| group.name.as_str());
        let rules = match self.completes {
            // Its packets are published with those of the contact that it completes.
            Some(_) => ProductRuleSet { form: Form::Account, ..ProductRuleSet::default() },
            None => self.rules.session(mission.name(), names),
        };
        let expedited = match self.completes {
            // What completes a contact comes long after it.
            Some(_) => Vec::new(),
            None => self.rules.expedited(mission.name(), self.flow.0),
        };
        self.level0 = Some(
            ContactProcessor::new(mission, info, Limits::default(), files)
                .with_rules(rules)
                .with_expedited(expedited),
        );
        Ok(())
    }

    /// The contact's name in files and sidecars.
    fn name(&self) -> String {
        format!("{}-{}", self.station.as_str(), self.flow)
    }

    fn product(&self, product: &Product) -> ProductStatus {
        let accounting = &product.sidecar.accounting;
        // Where no packet could be delivered, the account says why.
        let file = product.sidecar.product.packet_file.as_ref().or(product.files.last());
        ProductStatus {
            path: file
                .map(|file| self.rules.products.dir.join(&file.name).display().to_string())
                .unwrap_or_default(),
            sha256: file.map(|file| file.sha256.clone()).unwrap_or_default(),
            packets: accounting.delivered,
            gaps: accounting.gaps,
        }
    }
}

/// Seconds from the end of a contact in which a name for its products is looked for: of 480
/// contacts that end in one second.
const NAMING_SECONDS: u64 = 60;

/// When a block's frames were where.
struct Way<'a> {
    frames: Vec<Utc>,
    head: &'a BlockHead,
    taken: Utc,
    stamps: Stamps,
    durable: Utc,
    processed: Utc,
}

impl Way<'_> {
    fn record(&self, shared: &CentreShared) {
        let count = self.frames.len() as u64;
        for received in &self.frames {
            shared.board.latency(Stage::Capture, self.head.closed.since(*received), 1);
            shared.board.latency(Stage::Total, self.durable.since(*received), 1);
        }
        let Stamps { sent, last_original, delivered, .. } = self.stamps;
        let stages = [
            (Stage::Spool, self.head.closed, self.taken),
            (Stage::Queue, self.taken, sent),
            (Stage::Line, sent, last_original),
            (Stage::Repair, last_original, delivered),
            (Stage::Store, delivered, self.durable),
            (Stage::Level0, self.durable, self.processed),
        ];
        for (stage, from, to) in stages {
            shared.board.latency(stage, to.since(from), count);
        }
    }
}

/// Frames that the station counted more than are here.
fn unaccounted(close: &Close, shown: &ContactReceived) -> i64 {
    let counted = close.frames.iter().map(|(_, frames)| frames).sum::<u64>() + close.set_aside;
    counted.cast_signed() - (shown.frames + shown.set_aside).cast_signed()
}

/// Those of the products that are expedited.
fn expedited(products: &[Product]) -> impl Iterator<Item = &Product> {
    products.iter().filter(|product| product.sidecar.product.kind != ProductKind::Pds)
}

/// What is wrong with the products' folder, and what to do.
fn unwritable(dir: &Path, error: impl std::fmt::Display) -> String {
    format!(
        "{}: {error}; free space there or repair the folder; the data waits in the store",
        dir.display()
    )
}

/// Processing again is up to nobody here.
fn without_help(error: &skyhaul_level0::Error) -> String {
    match error {
        skyhaul_level0::Error::Files { what, name, source } => {
            format!("cannot {what} {name} ({source})")
        }
        other => other.to_string(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
