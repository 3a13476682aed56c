//! The Level-0 processing of one contact: frames in, products out.
//!
//! Memory is bounded by [`Limits`] whatever the contact's length: packets go to their product's file in order
//! through a window of time; what comes later than the window is spilled and merged when the contact closes, which
//! takes a rewrite of that product's file. Where nothing was late, closing only flushes.

use crate::aside::{Reason, Shelved};
use crate::clock::{ClockCheck, Placement, Timeline};
use crate::files::{Error, Files};
use crate::naming::{Digit, Label, ProductName};
use crate::order::{ApidOrder, Held, PacketQuality};
use crate::product::{Finished, Plan, ProductBuilder, SortedBy};
use crate::publish::Publication;
use crate::report::{FrameCounts, Product};
use skyhaul_ccsds::extract::{ExtractedPacket, Extractor};
use skyhaul_ccsds::id::{Apid, Scid};
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::packet::Header;
use skyhaul_ccsds::quality::{CapturedFrame, Verdict};
use skyhaul_units::{Bytes, Duration, Utc};
use std::collections::BTreeMap;

/// What is known of a contact when it opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactInfo {
    /// The receiving station's name.
    pub station: String,
    /// The contact's name: whatever tells it from others.
    pub contact: String,
    /// The spacecraft.
    pub scid: Scid,
    /// When the contact began.
    pub opened: Utc,
    /// Packets with times in this half-open window only, [from, to); all where none is given.
    pub window: Option<(Utc, Utc)>,
}

/// What is known of a contact when it closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Close {
    /// When the contact ended.
    pub closed: Utc,
    /// The creation time that the products get.
    pub created: Utc,
    /// Tells products of this spacecraft made in the same second apart.
    pub uniqueness: Digit,
}

/// How much a contact's processing may hold, and what it believes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Which packet times are believed.
    pub clock: ClockCheck,
    /// How far, in packet time, a packet may come behind later ones and still be put in place as it comes.
    /// Default 30 s: channels of one spacecraft are a few seconds apart.
    pub window_span: Duration,
    /// Memory for packets in the windows of all products. Default 24 MiB: 12 s at 15 Mbit/s, where every packet
    /// is a kilobyte. At the limit the earliest half of the largest window is written.
    pub window: Bytes,
    /// Memory for late packets of all products. Default 8 MiB; at the limit the most are moved to a file.
    pub late: Bytes,
    /// Size of the file of packets set aside from one product. Default 256 MiB; past it packets are dropped and
    /// counted as rejected.
    pub set_aside: Bytes,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clock: ClockCheck::default(),
            window_span: Duration::from_secs(30),
            window: Bytes::mib(24),
            late: Bytes::mib(8),
            set_aside: Bytes::mib(256),
        }
    }
}

/// Processes one contact of one spacecraft to Level-0 products.
pub struct ContactProcessor<F: Files> {
    mission: Mission,
    contact: ContactInfo,
    limits: Limits,
    files: F,
    extractor: Extractor,
    timeline: Timeline,
    /// Packets that wait until the contact's time is known.
    waiting: Vec<ExtractedPacket>,
    waiting_bytes: usize,
    frames: FrameCounts,
    products: BTreeMap<Route, ProductBuilder<F>>,
}

/// Which product a packet goes to. There are at most two more than the mission has groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Route {
    /// The mission's group of this place in its list.
    Group(usize),
    /// No group of the mission contains it.
    Other,
    /// Its application has no time code.
    Untimed,
}

impl<F: Files> ContactProcessor<F> {
    /// Begins a contact. Nothing is created before the first packet.
    pub fn new(mission: &Mission, contact: ContactInfo, limits: Limits, files: F) -> Self {
        Self {
            mission: mission.clone(),
            contact,
            limits,
            files,
            extractor: Extractor::new(mission.clone()),
            timeline: Timeline::new(limits.clock),
            waiting: Vec::new(),
            waiting_bytes: 0,
            frames: FrameCounts::default(),
            products: BTreeMap::new(),
        }
    }

    /// Takes the next frame, good or set aside, in the order of capture.
    ///
    /// # Errors
    /// [`Error::Files`] where storage fails; the contact is then to be processed again from its beginning.
    pub fn frame(&mut self, frame: &CapturedFrame) -> Result<(), Error> {
        self.frames.received += 1;
        if let Some(reason) = frame.set_aside {
            self.frames.set_aside += 1;
            self.frames.list(frame.position, frame.received, reason.text().to_owned());
            return Ok(());
        }
        self.frames.good += 1;
        self.frames.corrected += u64::from(frame.quality.verdict == Verdict::Corrected);
        self.frames.corrected_symbols += u64::from(frame.quality.corrected.total());
        let mut packets = Vec::new();
        if let Err(error) = self.extractor.push(frame, |packet| packets.push(packet)) {
            self.frames.unreadable += 1;
            self.frames.list(frame.position, frame.received, error.to_string());
        }
        packets.into_iter().try_for_each(|packet| self.packet(packet))
    }

    /// Takes a packet that was extracted elsewhere. Packets of one application on one virtual channel are to come
    /// in their order.
    ///
    /// # Errors
    /// As [`Self::frame`].
    pub fn packet(&mut self, packet: ExtractedPacket) -> Result<(), Error> {
        if packet.header.is_idle() {
            self.frames.idle_packets += 1;
            return Ok(());
        }
        if self.timeline.is_set() {
            return self.route(&packet);
        }
        let is_enough = self.timeline.sample(&self.mission, &packet);
        self.waiting_bytes += packet.bytes.len() + WAITING_OVERHEAD;
        // One packet would keep the memory of the frames beside it from being given back.
        self.waiting.push(ExtractedPacket { bytes: packet.bytes.to_vec().into(), ..packet });
        if is_enough || self.waiting_bytes > MOST_WAITING { self.begin() } else { Ok(()) }
    }

    /// Completes and publishes all products, in the order of the mission's groups; those without a group last.
    ///
    /// # Errors
    /// As [`Self::frame`]; [`Error::NamesUsedUp`] where `close` leaves no name.
    pub fn finish(mut self, close: Close) -> Result<Vec<Product>, Error> {
        self.begin()?;
        let frames = self.frames.report(&self.extractor);
        let publication = Publication {
            mission: self.mission.name(),
            contact: &self.contact,
            close: &close,
            frames: &frames,
        };
        let mut used: BTreeMap<Label, usize> = BTreeMap::new();
        let mut published = Vec::new();
        for builder in self.products.into_values() {
            let finished = builder.finish(&mut self.files)?;
            let label = label(&finished);
            let earlier = used.entry(label).or_default();
            let name = |digit| {
                ProductName::construction_record(self.contact.scid.value(), label, close.created, digit)
            };
            let digit = close
                .uniqueness
                .after(*earlier)
                .ok_or_else(|| Error::NamesUsedUp { name: name(close.uniqueness).to_string() })?;
            *earlier += 1;
            published.push(publication.publish(&mut self.files, finished, name(digit))?);
        }
        Ok(published)
    }

    /// Settles the contact's time and places the packets that waited for it.
    fn begin(&mut self) -> Result<(), Error> {
        if !self.timeline.is_set() {
            self.timeline.set();
        }
        self.waiting_bytes = 0;
        core::mem::take(&mut self.waiting).iter().try_for_each(|packet| self.route(packet))
    }

    fn route(&mut self, packet: &ExtractedPacket) -> Result<(), Error> {
        let mut shelved = Shelved {
            vcid: packet.channel.vcid,
            apid: None,
            count: None,
            time: None,
            received: packet.received,
            bytes: &packet.bytes,
        };
        let Header::Space(header) = packet.header else {
            return self.refuse(shelved, Reason::NotASpacePacket);
        };
        shelved.apid = Some(header.apid);
        shelved.count = Some(header.count);
        let scid = packet.channel.scid;
        if scid != self.contact.scid && !self.mission.scids().contains(&scid) {
            return self.refuse(shelved, Reason::OtherSpacecraft);
        }
        let placement = self.timeline.place(&self.mission, packet, &header);
        let route = match placement {
            Placement::AsReceived => Route::Untimed,
            _ => self
                .mission
                .products()
                .iter()
                .position(|group| group.contains(packet.channel.vcid, header.apid))
                .map_or(Route::Other, Route::Group),
        };
        let (window, limits) = (self.contact.window, self.limits);
        let (product, files) = self.product(route)?;
        product.tally.received += 1;
        let held = Held {
            apid: header.apid,
            count: header.count,
            vcid: packet.channel.vcid,
            quality: PacketQuality::of(packet),
            received: packet.received,
            bytes: &packet.bytes,
        };
        match placement {
            Placement::AsReceived => product.append(&held)?,
            Placement::At(time) if window.is_some_and(|(from, to)| time < from || time >= to) => {
                product.tally.outside_window += 1;
            }
            Placement::At(time) => product.place(files, &limits, time, held)?,
            Placement::Aside(reason, time) => {
                product.aside.put(files, Shelved { time, ..shelved }, reason)?;
            }
        }
        self.relieve()
    }

    /// Sets aside a packet that belongs to no product.
    fn refuse(&mut self, packet: Shelved<'_>, reason: Reason) -> Result<(), Error> {
        let (product, files) = self.product(Route::Other)?;
        product.tally.received += 1;
        product.aside.put(files, packet, reason)
    }

    /// Keeps the memory of all products together within the limits.
    fn relieve(&mut self) -> Result<(), Error> {
        while self.products.values().map(ProductBuilder::window_cost).sum::<usize>()
            > self.limits.window.as_usize()
        {
            if let Some(largest) = self.products.values_mut().max_by_key(|product| product.window_cost()) {
                largest.write_half(&mut self.files)?;
            }
        }
        if self.products.values().map(ProductBuilder::late_cost).sum::<usize>() > self.limits.late.as_usize()
            && let Some(largest) = self.products.values_mut().max_by_key(|product| product.late_cost())
        {
            largest.spill(&mut self.files)?;
        }
        Ok(())
    }

    fn product(&mut self, route: Route) -> Result<(&mut ProductBuilder<F>, &mut F), Error> {
        if !self.products.contains_key(&route) {
            let plan = plan(&self.mission, route);
            let builder = ProductBuilder::new(plan, &self.limits, &mut self.files)?;
            self.products.insert(route, builder);
        }
        let builder = self.products.get_mut(&route).expect("it was put there where it was missing");
        Ok((builder, &mut self.files))
    }
}

fn plan(mission: &Mission, route: Route) -> Plan {
    let fixed = |name: &str, label: &str, sorted_by| Plan {
        name: name.to_owned(),
        label: Some(Label::parse(label).expect("the label is fixed")),
        order: ApidOrder::new(&[], mission.counters()),
        sorted_by,
        prefix: name.to_owned(),
    };
    match route {
        Route::Group(place) => {
            let group = &mission.products()[place];
            let listed = group.apids.first().map(|range| Label::session(range.first.value()));
            Plan {
                name: group.name.clone(),
                label: group.label.as_deref().and_then(|label| Label::parse(label).ok()).or(listed),
                order: ApidOrder::new(&group.apids, mission.counters()),
                sorted_by: SortedBy::PacketTime,
                prefix: format!("group{place}"),
            }
        }
        Route::Other => fixed("other", "0000OTHERPACKETSAS", SortedBy::PacketTime),
        Route::Untimed => fixed("untimed", "0000UNTIMEDPACKETS", SortedBy::Reception),
    }
}

/// The label of a product; of a group that lists neither label nor APIDs, by its first APID.
fn label<F: Files>(finished: &Finished<F>) -> Label {
    finished.plan.label.unwrap_or_else(|| {
        let first = finished.packets.account.apids.keys().next().copied();
        Label::session(first.map_or(0, Apid::value))
    })
}

/// Packets that wait for the contact's time, with this much around each: 2 MiB at most.
const MOST_WAITING: usize = 2 << 20;
const WAITING_OVERHEAD: usize = 160;
