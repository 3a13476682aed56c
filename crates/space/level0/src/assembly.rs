//! Products of several contacts: of a window of time, or of a contact and what completes it.
//!
//! The contacts may come from any stations and overlap. The better copy of each packet is kept. The
//! packets of a product and their account do not depend on the order of the contacts, or on the
//! division of the frames among them, if each packet is complete in one contact or in the joint
//! stream ([`Assembly::joint`]). Memory has the same bounds as for one contact.

use crate::builder::{ProductsBuilder, Scope};
use crate::construction::ProductKind;
use crate::contact::ContactInfo;
use crate::files::{Error, Files};
use crate::frame_runs::FrameRuns;
use crate::intake::Intake;
use crate::joint::Joint;
use crate::limits::Limits;
use crate::naming::Digit;
use crate::order::Novelty;
use crate::publish::{Naming, Publication};
use crate::report::{ContactInput, ContactReport, FrameReport, JoinedFrames, Product};
use crate::rules::{Edition, ProductBasis, ProductRuleSet};
use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::frame::Frame;
use skyhaul_ccsds::id::{Channel, Scid};
use skyhaul_ccsds::mission::{FrameFormat, Mission};
use skyhaul_ccsds::quality::CapturedFrame;
use skyhaul_units::Utc;
use std::collections::BTreeSet;

/// Makes products of several contacts of one spacecraft.
pub struct Assembly<F: Files> {
    scid: Scid,
    edition: Edition,
    rules: ProductRuleSet,
    products: ProductsBuilder<F>,
    files: F,
    contacts: Vec<ContactReport>,
    frames: FrameReport,
    current: Option<(Intake, Novelty)>,
    format: FrameFormat,
    brought: FrameRuns,
    /// Channels whose newest frame was not in the previous version.
    spanning: BTreeSet<Channel>,
    /// Contacts whose frames are only in [`Self::joint`].
    others: BTreeSet<String>,
}

impl<F: Files> Assembly<F> {
    /// Begins. The products are those of `mission`'s groups. Nothing is created before the first
    /// packet.
    pub fn new(mission: &Mission, scid: Scid, edition: Edition, limits: Limits, files: F) -> Self {
        let only = edition.only.as_ref().map(|only| only.iter().cloned().collect());
        let is_partial = edition.only.is_some();
        let scope = Scope { window: edition.window, only, is_partial, ..Scope::default() };
        Self {
            scid,
            rules: ProductRuleSet::default(),
            products: ProductsBuilder::new(mission, limits, scope),
            files,
            contacts: Vec::new(),
            frames: FrameReport::default(),
            current: None,
            format: *mission.frame(),
            brought: FrameRuns::default(),
            spanning: BTreeSet::new(),
            others: BTreeSet::new(),
            edition,
        }
    }

    /// The same, with products as `rules` say.
    #[must_use]
    pub fn with_rules(mut self, rules: ProductRuleSet) -> Self {
        self.products.fill(&rules);
        Self { rules, ..self }
    }

    /// Begins the next contact, which ended at `closed` and whose frames `mission` describes.
    ///
    /// # Errors
    /// [`Error::Files`] if storage fails; the products must then be made again from the beginning.
    pub fn contact(
        &mut self,
        mission: &Mission,
        info: ContactInfo,
        closed: Utc,
        novelty: Novelty,
    ) -> Result<(), Error> {
        self.end_contact()?;
        let intake =
            Intake::new(mission, info.scid, self.products.limits().clock).with_rules(&self.rules);
        self.current = Some((intake, novelty));
        self.format = *mission.frame();
        self.brought.contact();
        self.spanning.clear();
        self.list(mission, info, closed);
        Ok(())
    }

    /// Lists another contact, whose frames are only in [`Self::joint`], after those of the
    /// products.
    ///
    /// # Errors
    /// As [`Self::contact`].
    pub fn other(
        &mut self,
        mission: &Mission,
        info: ContactInfo,
        closed: Utc,
    ) -> Result<(), Error> {
        self.end_contact()?;
        self.others.insert(info.contact.clone());
        self.list(mission, info, closed);
        Ok(())
    }

    fn list(&mut self, mission: &Mission, info: ContactInfo, closed: Utc) {
        self.contacts.push(ContactReport {
            name: info.contact,
            station: info.station,
            mission: mission.name().to_owned(),
            also_fits: info.also_fits,
            file: info.file,
            scid: info.scid,
            opened: info.opened,
            closed,
            inputs: Vec::new(),
            joined: None,
        });
    }

    /// The account of each input of a contact with several.
    pub fn inputs(&mut self, inputs: Vec<ContactInput>) {
        if let Some(contact) = self.contacts.last_mut() {
            contact.inputs = inputs;
        }
    }

    /// Ends the contact, and begins the joint stream of several contacts; `novelty` is
    /// [`Novelty::New`] if one of them is new. The order relative to the contacts does not matter.
    ///
    /// # Errors
    /// As [`Self::contact`].
    pub fn joint(
        &mut self,
        mission: &Mission,
        scid: Scid,
        novelty: Novelty,
    ) -> Result<Joint<'_, F>, Error> {
        self.end_contact()?;
        let intake =
            Intake::new(mission, scid, self.products.limits().clock).with_rules(&self.rules);
        self.brought.contact();
        let (format, span) = (*mission.frame(), self.edition.span);
        let Self { products, files, brought, .. } = self;
        Ok(Joint { products, files, intake, format, brought, span, novelty })
    }

    /// The part of the contact with this name in such a stream; the last call counts.
    pub fn joined(&mut self, contact: &str, frames: JoinedFrames) {
        if let Some(contact) = self.contacts.iter_mut().find(|known| known.name == contact) {
            contact.joined = Some(frames);
        }
    }

    /// Takes the next frame of the contact, good or set aside, in the order of capture. A frame
    /// before the first contact is ignored.
    ///
    /// # Errors
    /// As [`Self::contact`].
    pub fn frame(&mut self, frame: &CapturedFrame) -> Result<(), Error> {
        let Some((_, novelty)) = self.current else { return Ok(()) };
        self.take(frame, novelty)
    }

    /// Takes a frame of another contact that completes this one, at its position among the frames
    /// of this one, so that packets that extend over frames of both are complete. `novelty` is that
    /// of the other contact.
    ///
    /// # Errors
    /// As [`Self::contact`].
    pub fn completing(&mut self, frame: &CapturedFrame, novelty: Novelty) -> Result<(), Error> {
        self.take(frame, novelty)
    }

    fn take(&mut self, frame: &CapturedFrame, novelty: Novelty) -> Result<(), Error> {
        let Some((intake, _)) = &mut self.current else { return Ok(()) };
        let is_new = novelty == Novelty::New;
        let parsed = Frame::parse(&frame.bytes, &self.format).ok().filter(|_| frame.is_good());
        let channel = parsed.as_ref().map(|parsed| parsed.channel);
        if let Some(parsed) = parsed.filter(|_| is_new) {
            self.brought.take(parsed.channel, parsed.count.value, parsed.count.modulus);
        }
        // A packet that ends in the frame after a new one may have begun in the new one.
        let mut spans = channel.is_some_and(|channel| self.spanning.contains(&channel));
        intake.frame(frame, &mut |packet, nature| {
            let follows_new = core::mem::take(&mut spans);
            let novelty = if follows_new { Novelty::New } else { novelty };
            self.products.take(&mut self.files, packet, nature, novelty)
        })?;
        if let Some(channel) = channel {
            if is_new {
                self.spanning.insert(channel);
            } else if !spans {
                self.spanning.remove(&channel);
            }
        }
        Ok(())
    }

    /// Takes a packet that was extracted elsewhere.
    ///
    /// # Errors
    /// As [`Self::contact`].
    pub fn packet(&mut self, packet: ExtractedPacket) -> Result<(), Error> {
        let Some((intake, novelty)) = &mut self.current else { return Ok(()) };
        let novelty = *novelty;
        intake.packet(packet, &mut |packet, nature| {
            self.products.take(&mut self.files, packet, nature, novelty)
        })
    }

    /// Completes and publishes the products. A product without changes since the previous version
    /// is not published again: it has no files.
    ///
    /// # Errors
    /// As [`Self::contact`]; [`Error::NamesUsedUp`] where the edition leaves no name.
    pub fn finish(mut self) -> Result<Vec<Product>, Error> {
        self.end_contact()?;
        let (basis, uniqueness) = match self.edition.window {
            Some(_) => (ProductBasis::Time, Digit::default()),
            None => (ProductBasis::Session, SESSION_VERSIONS),
        };
        // In the order in which they began, so that the record does not depend on the order of
        // arrival; the joined contacts are after the contact of the products.
        let others = &self.others;
        self.contacts.sort_by(|one, other| {
            let place = |contact: &ContactReport| (others.contains(&contact.name), contact.opened);
            (place(one), &one.station, &one.name).cmp(&(place(other), &other.station, &other.name))
        });
        let publication = Publication {
            scid: self.scid,
            contacts: &self.contacts,
            frames: &self.frames,
            naming: Naming { created: self.edition.created, uniqueness },
            window: self.edition.window,
            basis,
            previous: Some((&self.edition.previous, &self.brought)),
            kind: ProductKind::Pds,
            is_test: self.rules.is_test,
            scope: self.edition.scope,
        };
        self.products.finish(&mut self.files, &publication, &self.rules)
    }

    fn end_contact(&mut self) -> Result<(), Error> {
        if let Some((mut intake, novelty)) = self.current.take() {
            let frames = intake.finish(&mut |packet, nature| {
                self.products.take(&mut self.files, packet, nature, novelty)
            })?;
            self.frames.add(frames);
        }
        Ok(())
    }
}

/// The first versions of products of contacts have the digits below.
const SESSION_VERSIONS: Digit = Digit::NINE;
