//! Expedited data sets: subsets of a contact that are published during the contact, in slices of
//! reception time.
//!
//! They are early rather than complete: a slice has the packets received in it, in order and
//! without duplicates within the slice. All of them are in the contact's own products too. The same
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
use crate::rules::{EditionScope, ProductBasis, ProductRuleSet};
use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::mission::{ApidRange, Mission};
use skyhaul_units::{ByteCount, Duration, Utc};

/// A subset of a contact that is published during the contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expedite {
    /// The mission's name of its product; without a name, all products.
    pub product: Option<String>,
    /// Packets of these applications only; if empty, all of the product.
    pub apids: Vec<ApidRange>,
    /// The reception time that one data set covers, a second or more.
    pub slice: Duration,
    /// For quick look, which construction records show.
    pub quick_look: bool,
    /// Distinguishes data sets of one spacecraft that are made in the same second.
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
    /// Finished slices, each with the reception time of its last packet: at most those of the
    /// packets that a contact holds back until its time is known.
    over: Vec<(ProductsBuilder<F>, Utc)>,
    /// The end of the present slice; none before its first packet.
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

    /// `rules` define the treatment of packets that a missing frame cut.
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

    /// Takes a packet. [`Self::cut`] publishes the slices that it ends.
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

    /// The reception time of the last packet of a finished slice.
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

    /// The data sets published since the last call.
    pub fn published(&mut self) -> Vec<Product> {
        core::mem::take(&mut self.published)
    }
}

impl<F: Files> Stream<F> {
    /// Ends the slice; the next one has its own working files.
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
            scope: EditionScope::Changed,
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

/// The prefix of the names of a slice's working files.
fn prefix(subset: usize, slice: u32) -> String {
    format!("expedited{subset}-{slice}-")
}

/// Memory of one subset, for packets in order and for late ones each: 2 s of a 15 Mbit/s downlink;
/// the rest of a slice is in files.
const MEMORY: ByteCount = ByteCount::mib(4);
/// Names have whole seconds.
const SHORTEST: Duration = Duration::from_secs(1);
