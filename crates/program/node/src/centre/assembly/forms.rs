//! The records of products of several contacts, as JSON in the state folder: summaries of contacts,
//! the products made of them, and each plan before it is carried out.
//!
//! Times are microseconds since 1970. Unknown fields are ignored, so that a version of the program
//! can read what the next one wrote.

use serde::{Deserialize, Serialize};
use skyhaul_level0::naming::ProductName;
use skyhaul_level0::report::Product;
use skyhaul_level0::{Previous, TimeWindow, WindowCell, WindowLength};
use skyhaul_store::StationName;
use skyhaul_units::{Duration, FlowId, Utc};
use std::collections::BTreeMap;

/// A contact: its station and its flow there.
pub type ContactKey = (String, u32);

/// The summary of a finished contact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContactSummary {
    /// The station.
    pub station: String,
    /// Its flow there.
    pub flow: u32,
    /// The mission.
    pub mission: String,
    /// The spacecraft.
    pub scid: u16,
    /// When it was processed.
    pub noted_us: i64,
    /// The contact of the same station that it completes.
    pub completes: Option<u32>,
    /// The station that captured it, and its flow there, where nodes passed it on; none of contacts
    /// noted by earlier releases.
    #[serde(default)]
    pub origin: Option<ContactKey>,
    /// The cells of time in which each product has packets.
    pub cells: BTreeMap<String, Vec<WindowCell>>,
    /// Its session-based products as they were published.
    pub versions: BTreeMap<String, Version>,
    /// The times of its first and last packet; not known of contacts noted by earlier releases.
    #[serde(default)]
    pub span_us: Option<(i64, i64)>,
}

/// A version of a product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Counts from 1.
    pub version: u32,
    /// Its construction record's name.
    pub name: String,
    /// Packets in it.
    pub packets: u64,
    /// Packets missing in it.
    pub missing: u64,
    /// Gaps in it.
    pub gaps: u64,
}

/// A job and its state: products of several contacts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssemblyJob {
    /// The products.
    pub target: ProductTarget,
    /// The contacts that the newest versions are made of.
    pub contacts: Vec<ContactKey>,
    /// The newest versions, by the product's name.
    pub versions: BTreeMap<String, Version>,
    /// The plan that is being carried out, saved before that begins.
    pub plan: Option<VersionPlan>,
    /// Data of its contacts is gone: no further version can be made.
    pub sealed: bool,
    /// When it was last made.
    pub made_us: i64,
    /// They are to be made again, as an operator ordered.
    #[serde(default)]
    pub again: Option<MakeAgain>,
}

/// An order to make products again from the stored contacts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MakeAgain {
    /// Counts orders: those of one command have one number.
    pub order: u64,
    /// Other rules than those of the configuration, as the tables `[products]` and `[[product]]`.
    pub rules: Option<String>,
}

/// The products that a job makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "lowercase")]
pub enum ProductTarget {
    /// The time-based products of a window.
    Window {
        /// The mission.
        mission: String,
        /// The spacecraft.
        scid: u16,
        /// The window's first second since 1970.
        from_s: i64,
        /// Its length in seconds.
        length_s: u64,
    },
    /// The session-based products of a contact, with the contacts that complete it or overlap it.
    Contact {
        /// The station.
        station: String,
        /// The flow.
        flow: u32,
    },
}

/// The plan of a version: everything that decides its content and names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionPlan {
    /// The creation time in its names.
    pub created_us: i64,
    /// The contacts that it is made of.
    pub contacts: Vec<ContactKey>,
    /// The products.
    pub products: Vec<String>,
    /// The groups of contacts whose frames are joined; a contact may also be in one of the version
    /// before.
    #[serde(default)]
    pub joined: Vec<Vec<ContactKey>>,
    /// For a contact's products: the times of its first and last packet. Contacts that overlap
    /// contribute nothing outside of it.
    #[serde(default)]
    pub span_us: Option<(i64, i64)>,
    /// The order by which they are made again; none of a version that has new contacts.
    #[serde(default)]
    pub again: Option<MakeAgain>,
}

impl VersionPlan {
    /// The span in which overlapping contacts contribute packets.
    pub fn span(&self) -> Option<TimeWindow> {
        let (from, to) = self.span_us?;
        Some(TimeWindow {
            from: Utc::from_micros(from),
            to: Utc::from_micros(to.saturating_add(1)),
        })
    }
}

impl ContactSummary {
    /// The contact.
    pub fn contact(&self) -> ContactKey {
        (self.station.clone(), self.flow)
    }

    /// The contact of the same station that it completes.
    pub fn completed(&self) -> Option<ContactKey> {
        self.completes.map(|flow| (self.station.clone(), flow))
    }

    /// Whether both have packets of the same time and spacecraft. Refill contacts overlap none.
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_whole = self.completes.is_none() && other.completes.is_none();
        let is_same = self.scid == other.scid && self.mission == other.mission;
        let spans = self.span_us.zip(other.span_us);
        is_whole
            && is_same
            && spans.is_some_and(|(one, other)| one.0 <= other.1 && other.0 <= one.1)
            && self.contact() != other.contact()
    }

    /// The name of its record.
    pub fn key(&self) -> String {
        format!("{}-{}", self.station, self.flow)
    }
}

impl Version {
    /// The version of a published product.
    pub fn of(product: &Product) -> Self {
        let (sidecar, accounting) = (&product.sidecar, &product.sidecar.accounting);
        Self {
            version: sidecar.product.version,
            name: product.name.to_string(),
            packets: accounting.delivered,
            missing: accounting.missing,
            gaps: accounting.gaps,
        }
    }

    /// This version as the one that another replaces; none where its name cannot be parsed.
    pub fn previous(&self) -> Option<Previous> {
        let name = ProductName::parse(&self.name).ok()?;
        Some(Previous { version: self.version, name, missing: self.missing, gaps: self.gaps })
    }
}

impl ProductTarget {
    /// The products of the window of `length` in which a cell lies.
    pub fn window(mission: &str, scid: u16, cell: WindowCell, length: WindowLength) -> Self {
        let from_s = cell.window(length).from.as_micros().div_euclid(MICROS);
        let length_s = length.as_duration().as_millis() / 1_000;
        Self::Window { mission: mission.to_owned(), scid, from_s, length_s }
    }

    /// The time window; none for a contact.
    pub fn span(&self) -> Option<TimeWindow> {
        let Self::Window { from_s, length_s, .. } = self else { return None };
        let from = Utc::from_micros(from_s.saturating_mul(MICROS));
        Some(TimeWindow { from, to: from + Duration::from_secs(*length_s) })
    }

    /// Whether the products are those of another contact, which this one does not complete.
    pub fn is_of_another(&self, station: &str, flow: u32, completes: Option<FlowId>) -> bool {
        let Self::Contact { station: own, flow: of } = self else { return false };
        own != station || (flow != *of && completes != Some(FlowId(*of)))
    }

    /// What the record is called.
    pub fn key(&self) -> String {
        match self {
            Self::Window { mission, scid, from_s, length_s } => {
                format!("window-{mission}-{scid}-{length_s}-{from_s}")
            }
            Self::Contact { station, flow } => format!("contact-{station}-{flow}"),
        }
    }
}

const MICROS: i64 = 1_000_000;

/// The store's key of a contact; none where its name is not a station's.
pub fn stored(contact: &ContactKey) -> Option<(StationName, FlowId)> {
    Some((StationName::new(&contact.0).ok()?, FlowId(contact.1)))
}
