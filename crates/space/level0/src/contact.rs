//! The Level-0 processing of one contact: frames in, products out.
//!
//! Memory is bounded by [`Limits`] whatever the contact's length: packets are written to their
//! product's file in order through a window of time. Packets later than the window are spilled and
//! merged when the contact closes, which rewrites that product's file. If no packet was late,
//! closing only flushes.

use crate::builder::{ProductsBuilder, Scope};
use crate::construction::ProductKind;
use crate::expedited::{Expedite, Expedited};
use crate::files::{Error, Files};
use crate::intake::{Intake, Nature};
use crate::limits::Limits;
use crate::naming::Digit;
use crate::order::Novelty;
use crate::publish::{Naming, Publication};
use crate::report::{ContactInput, ContactReport, Product};
use crate::rules::{EditionScope, ProductBasis, ProductRuleSet};
use crate::window::TimeWindow;
use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::id::Scid;
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::quality::CapturedFrame;
use skyhaul_units::Utc;

/// The data of a contact when it opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactInfo {
    /// The receiving station's name.
    pub station: String,
    /// The contact's name, which distinguishes it from others.
    pub contact: String,
    /// The spacecraft.
    pub scid: Scid,
    /// Names of other missions that fitted the downlink equally well.
    pub also_fits: Vec<String>,
    /// The file that the station read it from, where a folder brought it.
    pub file: Option<String>,
    /// When the contact began.
    pub opened: Utc,
    /// Packets with times in this window only; without a window, all.
    pub window: Option<TimeWindow>,
}

/// The data of a contact when it closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContactClose {
    /// When the contact ended.
    pub closed: Utc,
    /// The creation time of the products.
    pub created: Utc,
    /// Distinguishes products of this spacecraft that are made in the same second.
    pub uniqueness: Digit,
}

/// Processes one contact of one spacecraft to Level-0 products.
pub struct ContactProcessor<F: Files> {
    contact: ContactInfo,
    inputs: Vec<ContactInput>,
    rules: ProductRuleSet,
    intake: Intake,
    products: ProductsBuilder<F>,
    expedited: Expedited<F>,
    files: F,
}

impl<F: Files> ContactProcessor<F> {
    /// Begins a contact. Nothing is created before the first packet.
    pub fn new(mission: &Mission, contact: ContactInfo, limits: Limits, files: F) -> Self {
        let scope = Scope { window: contact.window, ..Scope::default() };
        Self {
            intake: Intake::new(mission, contact.scid, limits.clock),
            products: ProductsBuilder::new(mission, limits, scope),
            expedited: Expedited::default(),
            rules: ProductRuleSet::default(),
            files,
            contact,
            inputs: Vec::new(),
        }
    }

    /// The same, with products as `rules` say.
    #[must_use]
    pub fn with_rules(mut self, rules: ProductRuleSet) -> Self {
        self.intake = self.intake.with_rules(&rules);
        self.products.fill(&rules);
        self.expedited.fill(&rules);
        Self { rules, ..self }
    }

    /// The same, publishing these subsets as the data comes.
    #[must_use]
    pub fn with_expedited(mut self, subsets: Vec<Expedite>) -> Self {
        if let Some(shortest) = subsets.iter().map(|subset| subset.slice).min() {
            self.intake = self.intake.with_patience(shortest);
        }
        self.expedited = Expedited::new(self.products.mission(), self.products.limits(), subsets);
        self.expedited.fill(&self.rules);
        self
    }

    /// Takes the next frame, good or set aside, in the order of capture.
    ///
    /// # Errors
    /// [`Error::Files`] if storage fails; the contact must then be processed again from its
    /// beginning.
    pub fn frame(&mut self, frame: &CapturedFrame) -> Result<(), Error> {
        let Self { intake, products, expedited, files, .. } = self;
        let mut sink = |packet: &ExtractedPacket, nature: Nature| {
            expedited.take(files, packet, nature)?;
            products.take(files, packet, nature, Novelty::Known)
        };
        intake.frame(frame, &mut sink)?;
        self.cut()
    }

    /// Takes a packet that was extracted elsewhere. Packets of one application on one virtual
    /// channel must be passed in their order.
    ///
    /// # Errors
    /// As [`Self::frame`].
    pub fn packet(&mut self, packet: ExtractedPacket) -> Result<(), Error> {
        let Self { intake, products, expedited, files, .. } = self;
        let mut sink = |packet: &ExtractedPacket, nature: Nature| {
            expedited.take(files, packet, nature)?;
            products.take(files, packet, nature, Novelty::Known)
        };
        intake.packet(packet, &mut sink)?;
        self.cut()
    }

    /// The account so far of each input of a contact with several; the last call counts.
    pub fn inputs(&mut self, inputs: Vec<ContactInput>) {
        self.inputs = inputs;
    }

    /// The expedited products published since the last call.
    pub fn expedited(&mut self) -> Vec<Product> {
        self.expedited.published()
    }

    /// Completes and publishes all products: the last expedited ones, then those of the contact in
    /// the order of the mission's groups, those without a group last.
    ///
    /// # Errors
    /// As [`Self::frame`]; [`Error::NamesUsedUp`] if `close` leaves no name.
    pub fn finish(mut self, close: ContactClose) -> Result<Vec<Product>, Error> {
        let Self { intake, products, expedited, files, .. } = &mut self;
        let frames = intake.finish(&mut |packet, nature| {
            expedited.take(files, packet, nature)?;
            products.take(files, packet, nature, Novelty::Known)
        })?;
        let contact = self.report(close.closed);
        self.expedited.finish(&mut self.files, &frames, &contact)?;
        let naming = Naming { created: close.created, uniqueness: close.uniqueness };
        let publication = Publication {
            scid: self.contact.scid,
            contacts: &[contact],
            frames: &frames,
            naming,
            window: self.contact.window,
            basis: ProductBasis::Session,
            previous: None,
            kind: ProductKind::Pds,
            is_test: self.rules.is_test,
            scope: EditionScope::Changed,
        };
        let mut products = self.expedited.published();
        products.extend(self.products.finish(&mut self.files, &publication, &self.rules)?);
        Ok(products)
    }

    fn report(&self, closed: Utc) -> ContactReport {
        ContactReport {
            name: self.contact.contact.clone(),
            station: self.contact.station.clone(),
            mission: self.products.mission().name().to_owned(),
            also_fits: self.contact.also_fits.clone(),
            file: self.contact.file.clone(),
            scid: self.contact.scid,
            opened: self.contact.opened,
            closed,
            inputs: self.inputs.clone(),
            joined: None,
        }
    }

    /// Publishes the expedited slices that are over.
    fn cut(&mut self) -> Result<(), Error> {
        if let Some(over) = self.expedited.over() {
            let (frames, contact) = (self.intake.so_far(), self.report(over));
            self.expedited.cut(&mut self.files, &frames, &contact)?;
        }
        Ok(())
    }
}
