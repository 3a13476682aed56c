//! Expedited data sets: subsets of a contact that are published while it goes on, in slices of
//! reception time.
//!
//! They are there in time rather than complete: a slice has what was received in it, in order and
//! without duplicates within it. Everything in them is in the contact's own products too. The same
//! frames give the same slices.

use crate::builder::{ProductsBuilder, Scope};
use crate::construction::ProductKind;
use crate::files::{Error, Files};
use crate::intake::Nature;
use crate::limits::Limits;
use crate::naming::Digit;
use crate::order::Novelty;
use crate::publish::{Naming, Publication};
use crate::report::{ContactReport, FrameReport, Product};
use crate::rules::{ProductBasis, ProductRuleSet};
use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::mission::{ApidRange, Mission};
use skyhaul_units::{ByteCount, Duration, Utc};

/// A subset of a contact that is published while it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expedite {
    /// The mission's name of the product that it is of; all where none is given.
    pub product: Option<String>,
    /// Packets of these applications only; all of the product's where empty.
    pub apids: Vec<ApidRange>,
    /// How much reception time one data set covers, a second or more.
    pub slice: Duration,
    /// For quick look: construction records say so.
    pub quick_look: bool,
    /// Tells data sets of one spacecraft made in the same second apart.
    pub uniqueness: Digit,
}

/// The subsets of one contact.
pub(crate) struct Expedited<F: Files> {
    streams: Vec<Stream<F>>,
    published: Vec<Product>,
}

struct Stream<F: Files> {
    rules: ProductRuleSet,
    expedite: Expedite,
    mission: Mission,
    limits: Limits,
    /// Index among the subsets of the contact.
    index: usize,
    products: ProductsBuilder<F>,
    /// Slices so far.
    slices: u32,
    /// Slices that are over, each with the reception of its last packet: at most those of the
    /// packets that a contact holds back until its time is known.
    over: Vec<(ProductsBuilder<F>, Utc)>,
    /// When the slice that packets go to is over; none before its first packet.
    ends: Option<Utc>,
    /// When the last packet was received.
    last: Utc,
    /// The creation time of the last data set: each has its own second.
    created: Option<Utc>,
}

impl<F: Files> Default for Expedited<F> {
    fn default() -> Self {
        Self { streams: Vec::new(), published: Vec::new() }
    }
}

impl<F: Files> Expedited<F> {
    /// The subsets of a contact of `mission`.
    pub fn new(mission: &Mission, limits: &Limits, subsets: Vec<Expedite>) -> Self {
        let limits =
            Limits { window: limits.window.min(MEMORY), late: limits.late.min(MEMORY), ..*limits };
        let stream = |(index, expedite): (usize, Expedite)| Stream {
            rules: ProductRuleSet::default(),
            products: slice_builder(mission, &limits, &expedite, prefix(index, 0)),
            expedite,
            mission: mission.clone(),
            limits,
            index,
            slices: 0,
            over: Vec::new(),
            ends: None,
            last: Utc::default(),
            created: None,
        };
        Self {
            streams: subsets.into_iter().enumerate().map(stream).collect(),
            published: Vec::new(),
        }
    }

    /// What becomes of packets that a missing frame cut is as `rules` say.
    pub fn fill(&mut self, rules: &ProductRuleSet) {
        for stream in &mut self.streams {
            stream.rules = ProductRuleSet {
                fill: rules.fill,
                fills: rules.fills.clone(),
                ..ProductRuleSet::default()
            };
            stream.products.fill(rules);
        }
    }

    /// Takes a packet. The slices that it ends are to be published by [`Self::cut`].
    pub fn take(
        &mut self,
        files: &mut F,
        packet: &ExtractedPacket,
        nature: Nature,
    ) -> Result<(), Error> {
        for stream in &mut self.streams {
            if stream.ends.is_some_and(|ends| packet.received >= ends) {
                stream.end();
            }
            stream.products.take(files, packet, nature, Novelty::Known)?;
            if stream.ends.is_none() && !stream.products.is_empty() {
                stream.ends = Some(packet.received + stream.expedite.slice.max(SHORTEST));
            }
            stream.last = stream.last.max(packet.received);
        }
        Ok(())
    }

    /// When the last packet came of a slice that is over.
    pub fn over(&self) -> Option<Utc> {
        self.streams.iter().flat_map(|stream| &stream.over).map(|(_, last)| *last).max()
    }

    /// Publishes the slices that are over.
    pub fn cut(
        &mut self,
        files: &mut F,
        frames: &FrameReport,
        contact: &ContactReport,
    ) -> Result<(), Error> {
        for stream in &mut self.streams {
            for (slice, last) in core::mem::take(&mut stream.over) {
                let contact = ContactReport { closed: last, ..contact.clone() };
                let products = stream.publish(files, slice, frames, contact)?;
                self.published.extend(products);
            }
        }
        Ok(())
    }

    /// Publishes what is left.
    pub fn finish(
        &mut self,
        files: &mut F,
        frames: &FrameReport,
        contact: &ContactReport,
    ) -> Result<(), Error> {
        self.streams.iter_mut().filter(|stream| stream.ends.is_some()).for_each(Stream::end);
        self.cut(files, frames, contact)
    }

    /// What was published since this was asked last.
    pub fn published(&mut self) -> Vec<Product> {
        core::mem::take(&mut self.published)
    }
}

impl<F: Files> Stream<F> {
    /// Ends the slice; the next has working files of its own.
    fn end(&mut self) {
        self.slices += 1;
        let mut next = slice_builder(
            &self.mission,
            &self.limits,
            &self.expedite,
            prefix(self.index, self.slices),
        );
        next.fill(&self.rules);
        self.over.push((core::mem::replace(&mut self.products, next), self.last));
        self.ends = None;
    }

    fn publish(
        &mut self,
        files: &mut F,
        slice: ProductsBuilder<F>,
        frames: &FrameReport,
        contact: ContactReport,
    ) -> Result<Vec<Product>, Error> {
        let last = contact.closed;
        let created = self.created.map_or(last, |before| last.max(before + SHORTEST));
        self.created = Some(created);
        let publication = Publication {
            scid: contact.scid,
            contacts: core::slice::from_ref(&contact),
            frames,
            naming: Naming { created, uniqueness: self.expedite.uniqueness },
            window: None,
            basis: ProductBasis::Session,
            kind: if self.expedite.quick_look {
                ProductKind::QuickLookEds
            } else {
                ProductKind::Eds
            },
            previous: None,
            is_test: false,
        };
        slice.finish(files, &publication, &self.rules)
    }
}

fn slice_builder<F: Files>(
    mission: &Mission,
    limits: &Limits,
    expedite: &Expedite,
    prefix: String,
) -> ProductsBuilder<F> {
    let scope = Scope {
        window: None,
        only: expedite.product.iter().cloned().map(|name| [name].into()).next(),
        apids: expedite.apids.clone(),
        is_partial: true,
        prefix,
    };
    ProductsBuilder::new(mission, *limits, scope)
}

/// What the names of a slice's working files begin with.
fn prefix(subset: usize, slice: u32) -> String {
    format!("expedited{subset}-{slice}-")
}

/// Memory of one subset, for packets in order and for late ones each: 2 s of a 15 Mbit/s downlink;
/// the rest of a slice is in files.
const MEMORY: ByteCount = ByteCount::mib(4);
/// Names have whole seconds.
const SHORTEST: Duration = Duration::from_secs(1);
