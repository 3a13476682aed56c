//! Processing of one contact, from its blocks to its products.

mod products;
mod way;

pub use products::{ContactProducts, ProductAttempt};
use skyhaul_events::AlarmKind;

use super::assembly::{ContactKey, ContactSummary, Version};
use super::delivered::ReadBlock;
use super::gaps::ContactWatch;
use super::live::{LiveContact, Receivers};
use super::rdr::{self, NotMade};
use super::shared::CentreShared;
use crate::custody::{BlockEdges, Stamps, StoredContact};
use crate::status::{
    ContactReceived, ContactState, FrameReception, HopStatus, InputFrames, ProductStatus,
};
use sha2::{Digest, Sha256};
use skyhaul_ccsds::margin::LinkMargin;
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::quality::CapturedFrame;
use skyhaul_level0::construction::ProductKind;
use skyhaul_level0::ledger::AbsentBlock;
use skyhaul_level0::naming::Digit;
use skyhaul_level0::report::{ContactInput, Product};
use skyhaul_level0::{ContactClose, ContactInfo};
use skyhaul_net::Clock;
use skyhaul_records::hops::ring;
use skyhaul_records::payload::{BlockHead, PayloadError, split_taken};
use skyhaul_records::{Close, Open, Record as Entry, RecordReader, ends_contact};
use skyhaul_store::{ContactReader, FlowStatus, LogRecord, Seq, StationName};
use skyhaul_units::{Duration, FlowId, Instant, Utc};
use way::{Unread, Way};

/// The effect of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockEffect {
    /// Everything durable is read.
    Idle,
    /// There may be more.
    More,
    /// The contact has ended.
    Closed,
    /// It completes a contact of which nothing was read yet: it is to be read again from its
    /// beginning, when that is known.
    Early,
    /// The contact cannot be read, and why.
    Unreadable(String),
}

/// A contact in processing.
pub struct Processing {
    station: StationName,
    flow: FlowId,
    reader: ContactReader,
    products: ContactProducts,
    mission: Option<Mission>,
    /// The receivers of live packets.
    receivers: Receivers,
    live: Option<LiveContact>,
    shown: ContactReceived,
    hash: Sha256,
    close: Option<Close>,
    /// The contact of the same station that it completes, where its data is still there: then
    /// products are made of both.
    completes: Option<u32>,
    watch: ContactWatch,
    /// The first and the last good frame of the block being read.
    edges: BlockEdges,
    entrance: Entrance,
    base: BaseContact,
}

/// Whether the contact that one completes is waited for, where it is not known here yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseContact {
    /// Yes.
    Awaited,
    /// It is known, or is not waited for any more.
    Settled,
}

/// Whether a contact may be processed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entrance {
    /// No block of it was read that says where it came through.
    Unknown,
    Admitted,
    /// It came through this node before.
    Refused,
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
        contact: StoredContact,
        reader: ContactReader,
        products: ContactProducts,
        receivers: Receivers,
        base: BaseContact,
    ) -> Self {
        let StoredContact { space: station, flow } = contact;
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
            products,
            mission: None,
            receivers,
            live: None,
            shown,
            hash: Sha256::new(),
            close: None,
            completes: None,
            entrance: Entrance::Unknown,
            edges: BlockEdges::default(),
            base,
        }
    }

    /// Its products.
    pub const fn products(&self) -> &ContactProducts {
        &self.products
    }

    /// Its reader in the store.
    pub const fn reader(&mut self) -> &mut ContactReader {
        &mut self.reader
    }

    /// The contact in the store.
    fn key(&self) -> StoredContact {
        StoredContact { space: self.station.clone(), flow: self.flow }
    }

    /// Its status.
    pub const fn shown(&self) -> &ContactReceived {
        &self.shown
    }

    /// Changes the state in its status.
    pub const fn show(&mut self, state: ContactState) {
        self.shown.state = state;
    }

    /// A block could not be read back.
    pub fn count_damage(&mut self, shared: &CentreShared) {
        self.watch.absent(AbsentBlock::Damaged, shared);
        self.shown.integrity.damaged_blocks += 1;
    }

    /// The station's disk did not give a block back.
    fn lost(&mut self, seq: Seq, shared: &CentreShared) {
        self.count_damage(shared);
        let (flow, station) = (self.flow, self.station.as_str());
        let lost = format!(
            "block {seq} of flow {flow} of {station}, and {} in all; check that station's disk",
            self.shown.integrity.damaged_blocks
        );
        shared.alarms.raise(AlarmKind::StationDiskFailed, "a station's disk", &lost);
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
                self.lost(record.seq, shared);
                return Ok(BlockEffect::More);
            }
            Err(PayloadError::KeptBack) => {
                self.watch.absent(AbsentBlock::KeptBack, shared);
                self.shown.integrity.kept_back_blocks += 1;
                return Ok(BlockEffect::More);
            }
            Err(error) => {
                return Ok(BlockEffect::Unreadable(format!("block {}: {error}", record.seq)));
            }
        };
        let entrance = self.entrance(&head, shared);
        if entrance == Entrance::Admitted && self.base == BaseContact::Awaited {
            if completed(&records).is_some_and(|flow| self.here(flow, shared).is_none()) {
                return Ok(BlockEffect::Early);
            }
            self.base = BaseContact::Settled;
        }
        let durable = shared.commits.take(&self.station, self.flow, record.seq);
        if entrance == Entrance::Refused {
            let is_over = ends_contact(&records);
            return Ok(if is_over { BlockEffect::Closed } else { BlockEffect::More });
        }
        let read = self.entries(&records, durable, shared)?;
        if let Ok(frames) = &read {
            let way = Way { frames, head: &head, taken, stamps, durable, processed: clock.utc() };
            way.record(&self.shown, shared);
        }
        // After the way of the block is noted: their account is taken from it.
        self.offer_expedited(shared)?;
        if let Err(unread) = read {
            return Ok(BlockEffect::Unreadable(unread.sentence(record.seq)));
        }
        self.watch.block(record.seq, shared);
        self.account_kept_back(&head);
        self.note_delivered(record.seq, durable.map(|_| shared.now()), shared);
        Ok(if self.close.is_some() { BlockEffect::Closed } else { BlockEffect::More })
    }

    /// Takes the records of a block, which is durable since then. Returns when each of its frames
    /// was received; the inner error is a contact that cannot be read.
    fn entries(
        &mut self,
        mut records: &[u8],
        durable: Option<Utc>,
        shared: &CentreShared,
    ) -> Result<Result<Vec<Utc>, Unread>, String> {
        let (mut reader, mut frames) = (RecordReader::new(), Vec::new());
        loop {
            match reader.read(&mut records) {
                Ok(Some(Entry::Frame(frame))) => {
                    frames.push(frame.received);
                    // Frames from before the start, and those read again, are not live.
                    if let Some(live) = self.live.as_mut().filter(|_| durable.is_some()) {
                        live.frame(&frame);
                    }
                    self.frame(&frame)?;
                }
                Ok(Some(entry)) => {
                    if let Err(reason) = self.entry(entry, shared)? {
                        return Ok(Err(Unread::Entry(reason)));
                    }
                }
                Ok(None) => return Ok(Ok(frames)),
                Err(error) => return Ok(Err(Unread::Record(error.to_string()))),
            }
        }
    }

    /// Offers the expedited data sets that were published since the last call.
    fn offer_expedited(&mut self, shared: &CentreShared) -> Result<(), String> {
        let early = self.products.expedited();
        if !early.is_empty() {
            shared.offer(&early)?;
            self.shown.expedited += early.len() as u64;
        }
        Ok(())
    }

    /// Looks at where the contact came through, once.
    fn entrance(&mut self, head: &BlockHead, shared: &CentreShared) -> Entrance {
        if self.entrance == Entrance::Unknown {
            self.entrance = self.look_at_hops(head, shared);
        }
        self.shown.way.to = shared.onward.to(&self.key());
        self.entrance
    }

    fn look_at_hops(&mut self, head: &BlockHead, shared: &CentreShared) -> Entrance {
        let mut hops = head.hops.iter();
        if let Some(station) = hops.next() {
            (self.shown.station, self.shown.flow) = (station.node.clone(), station.flow.0);
            let via = hops.map(|hop| HopStatus { node: hop.node.clone(), flow: hop.flow.0 });
            let sender = HopStatus { node: self.station.as_str().to_owned(), flow: self.flow.0 };
            self.shown.way.via = via.chain([sender]).collect();
        }
        let sender = shared.store().spaces().station_of(&self.station);
        let Some(ring) = ring(shared.onward.own(), sender.as_str(), &head.hops) else {
            return Entrance::Admitted;
        };
        self.shown.state = ContactState::Refused;
        (self.shown.channel, self.shown.mission) = (head.channel.clone(), head.mission.clone());
        let reason = format!(
            "contact {} of channel {} goes in a ring, {ring}; it is neither processed nor passed \
             on here: correct the [[subscription]] of one of these nodes",
            self.shown.name(),
            self.shown.channel
        );
        shared.alarms.raise(AlarmKind::ContactRing, "a contact", &reason);
        Entrance::Refused
    }

    /// Writes the products. Returns the contact's status, and its summary for products of several
    /// contacts.
    ///
    /// # Errors
    /// They could not be written; the contact is to be processed again from its beginning.
    pub fn finish(
        mut self,
        clock: Clock,
        shared: &CentreShared,
    ) -> Result<(ContactReceived, Option<ContactSummary>), String> {
        if self.entrance == Entrance::Refused {
            return Ok((self.shown, None));
        }
        if let Some(reason) = self.products.unwritten() {
            return Err(reason.to_owned());
        }
        let close = self.close.take().ok_or("the contact is not closed")?;
        let (created, uniqueness) = self.naming(close.closed, shared)?;
        let ending = ContactClose { closed: close.closed, created, uniqueness };
        let products = self.products.finish(ending)?;
        shared.offer(&products)?;
        shared.keep_way(&self.shown.name(), close.closed)?;
        self.watch.close(&products, shared).map_err(|error| error.to_string())?;
        self.shown.expedited += expedited(&products).count() as u64;
        if let Some(product) = products.first() {
            self.shown.reception.missing = product.sidecar.frames.missing;
        }
        let whole =
            products.iter().filter(|product| product.sidecar.product.kind == ProductKind::Pds);
        self.shown.products = whole.map(|product| self.products.shown(product)).collect();
        self.shown.products.extend(self.raw_data_records(&products, close.closed, shared)?);
        self.shown.integrity.frames_sha256 = Some(hex(&self.hash.clone().finalize()));
        self.shown.integrity.unaccounted = unaccounted(&close, &self.shown);
        self.shown.last_bit_to_product_s = Some(clock.utc().since(close.last_bit).as_secs_f64());
        self.shown.state = ContactState::Done;
        let note = self.note(&products, clock.utc());
        Ok((self.shown, note))
    }

    /// The creation time and the digit in the names of the contact's products. They derive from the
    /// contact, not from the present time, so that processing it again gives the same files. Names
    /// have whole seconds, and contacts of two stations may end in the same one.
    fn naming(&self, closed: Utc, shared: &CentreShared) -> Result<(Utc, Digit), String> {
        let own = (self.station.as_str().to_owned(), self.flow.0);
        let journal = shared.journal();
        let seconds = (0..NAMING_SECONDS).map(|later| closed + Duration::from_secs(later));
        let digits =
            (0..8).filter_map(|step| Digit::new((self.shown.flow.wrapping_add(step) % 8) as u8));
        let digits: Vec<Digit> = digits.collect();
        let mut names = seconds.flat_map(|second| digits.iter().map(move |digit| (second, *digit)));
        let free = names.find(|(created, digit)| journal.is_free(&own, *created, *digit));
        free.ok_or_else(|| "no free name is left for its products".to_owned())
    }

    /// Makes the Raw Data Records of the contact, where they are wanted. Where that fails, the
    /// other products stay, and an alarm is raised.
    fn raw_data_records(
        &self,
        made: &[Product],
        closed: Utc,
        shared: &CentreShared,
    ) -> Result<Vec<ProductStatus>, String> {
        let products = &self.products.rules().products;
        // A refill contact has its packets in the products of the contact that it completes.
        let mission = self.mission.as_ref().filter(|_| products.rdr && self.completes.is_none());
        let Some(mission) = mission else { return Ok(Vec::new()) };
        match rdr::of_contact(mission, made, products, closed) {
            Ok(records) => {
                if !records.is_empty() {
                    shared.alarms.clear(AlarmKind::RecordsUnmade, rdr::NO_RECORDS);
                }
                Ok(records.iter().map(|file| rdr::shown(file, &products.dir)).collect())
            }
            Err(NotMade::Again(reason)) => Err(reason),
            Err(NotMade::ByHand(reason)) => {
                let by_hand = format!(
                    "{}: {reason}; then make them with `skyhaul rdr make`",
                    self.shown.name()
                );
                shared.alarms.raise(AlarmKind::RecordsUnmade, rdr::NO_RECORDS, &by_hand);
                Ok(Vec::new())
            }
        }
    }

    /// The summary of the contact; none without packets.
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
            origin: self.origin(),
            cells: products().map(|product| (named(product), product.cells.clone())).collect(),
            versions: first.map(|product| (named(product), Version::of(product))).collect(),
        })
    }

    fn frame(&mut self, frame: &CapturedFrame) -> Result<(), String> {
        self.watch.frame(frame);
        let (corrected, uncorrectable) = frame.quality.corrected.codewords();
        self.shown.reception.corrected_codewords += u64::from(corrected);
        self.shown.reception.uncorrectable_codewords += u64::from(uncorrectable);
        self.shown.reception.margin.count(frame);
        if frame.is_good() {
            self.edges.add(frame);
            self.shown.reception.frames += 1;
            self.shown.reception.corrected_symbols += u64::from(frame.quality.corrected_symbols());
            self.hash.update(&frame.bytes);
        } else {
            self.shown.reception.set_aside += 1;
        }
        self.products.frame(frame)
    }

    /// Takes a record that is not a frame; the inner error is a contact that cannot be read.
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
                self.products.inputs(inputs.into_iter().map(ContactInput::from).collect());
            }
            Entry::Frame(_) | Entry::Progress(_) | Entry::Resumed(_) => {}
        }
        Ok(Ok(()))
    }

    /// Notes for standby stations what is here.
    fn note_delivered(&mut self, seq: Seq, came: Option<Instant>, shared: &CentreShared) {
        let id = self.watch.id();
        if let Some((frames, mission)) = self.edges.take().zip(self.mission.as_ref()) {
            let mission = mission.name();
            shared.delivered.read(id, ReadBlock { mission, seq, frames, came });
        }
        if self.close.is_some() {
            shared.delivered.ended(id);
        }
    }

    /// The head of a block counts the frames that a standby kept back before it.
    fn account_kept_back(&mut self, head: &BlockHead) {
        if self.shown.integrity.kept_back_blocks > 0 {
            let counted = head.frames.iter().map(|(_, frames)| frames).sum::<u64>();
            let FrameReception { frames, set_aside, .. } = &self.shown.reception;
            self.shown.integrity.kept_back_frames =
                (counted + head.set_aside).saturating_sub(frames + set_aside);
        }
    }

    fn open(&mut self, open: &Open, shared: &CentreShared) -> Result<Result<(), String>, String> {
        let mission = match Mission::from_toml(&open.mission) {
            Ok(mission) => mission,
            Err(error) => return Ok(Err(format!("its mission cannot be read: {error}"))),
        };
        self.shown.mission = mission.name().to_owned();
        shared.commits.ways.begin(&self.shown.name(), mission.name());
        self.shown.reception.margin = LinkMargin::new(&mission);
        self.shown.channel = open.channel.clone();
        self.shown.opened = Some(open.opened.to_string());
        self.shown.scid = open.scid.map(|scid| scid.value());
        self.live = self.receivers.contact(&mission);
        let Some(scid) = open.scid.or_else(|| mission.scids().first().copied()) else {
            return Ok(Err("the spacecraft is not named in the contact or its mission".to_owned()));
        };
        let completes = open.completes.and_then(|flow| self.here(flow, shared));
        let open = &Open { completes, ..open.clone() };
        self.watch.open(open, &mission, shared);
        self.completes = completes
            .filter(|flow| *flow != self.flow && self.is_there(*flow, shared))
            .map(|flow| flow.0);
        let info = ContactInfo {
            station: self.shown.station.clone(),
            contact: self.shown.name(),
            also_fits: open.also_fits.clone(),
            file: open.file.clone(),
            scid,
            opened: open.opened,
            window: None,
        };
        let begun = self.products.begin(info, &mission, self.shown.flow, self.completes);
        self.mission = Some(mission);
        begun.map(Ok)
    }

    /// Whether a contact of the same station is open, or is done and its data kept.
    fn is_there(&self, flow: FlowId, shared: &CentreShared) -> bool {
        shared.journal().is_noted(&(self.station.as_str().to_owned(), flow.0))
            || matches!(
                shared.store().spaces().status(&self.station, flow),
                FlowStatus::Open { .. }
            )
    }

    /// The station and the contact's number there, where other nodes passed it on.
    fn origin(&self) -> Option<ContactKey> {
        let is_passed_on = !self.shown.way.via.is_empty();
        is_passed_on.then(|| (self.shown.station.clone(), self.shown.flow))
    }

    /// The flow, here, of contact number `flow` of the station. Nodes on the way number it anew.
    fn here(&self, flow: FlowId, shared: &CentreShared) -> Option<FlowId> {
        let Some((station, _)) = self.origin() else { return Some(flow) };
        let (space, origin) = (self.station.as_str(), (station, flow.0));
        let noted = shared.journal().find_origin(space, &origin);
        noted.or_else(|| shared.board.find_origin(space, &origin)).map(FlowId)
    }
}

/// The seconds after the end of a contact that may stand in the names of its products: enough for
/// 480 contacts that end in one second.
const NAMING_SECONDS: u64 = 60;

/// The contact that one completes which begins with these records.
fn completed(mut records: &[u8]) -> Option<FlowId> {
    match RecordReader::new().read(&mut records) {
        Ok(Some(Entry::Open(open))) => open.completes,
        _ => None,
    }
}

/// The frames that the station counted and that are not here.
fn unaccounted(close: &Close, shown: &ContactReceived) -> i64 {
    let counted = close.frames.iter().map(|(_, frames)| frames).sum::<u64>() + close.set_aside;
    let here = shown.reception.frames + shown.reception.set_aside;
    counted.cast_signed() - (here + shown.integrity.kept_back_frames).cast_signed()
}

/// The expedited ones of the products.
fn expedited(products: &[Product]) -> impl Iterator<Item = &Product> {
    products.iter().filter(|product| product.sidecar.product.kind != ProductKind::Pds)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
