//! What is written down about products of several contacts, as JSON in the state folder: what
//! contacts brought, which products were made of them, and what was planned before it is done.
//!
//! Times are microseconds since 1970. Unknown fields are passed over, so that a version of the
//! program reads what the next one wrote.

use serde::{Deserialize, Serialize};
use skyhaul_level0::naming::ProductName;
use skyhaul_level0::report::Product;
use skyhaul_level0::{Previous, TimeWindow, WindowCell, WindowLength};
use skyhaul_store::StationName;
use skyhaul_units::{Duration, FlowId, Utc};
use std::collections::BTreeMap;

/// A contact: its station and its flow there.
pub type ContactKey = (String, u32);

/// What a finished contact brought.
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
    /// When the packets of each product were made.
    pub cells: BTreeMap<String, Vec<WindowCell>>,
    /// Its session-based products as they were published.
    pub versions: BTreeMap<String, Version>,
    /// When its first and its last packet were made; not known of contacts noted by earlier
    /// releases.
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

/// What products are made of several contacts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssemblyJob {
    /// Which products.
    pub target: ProductTarget,
    /// The contacts that the newest versions are made of.
    pub contacts: Vec<ContactKey>,
    /// The newest versions, by the product's name.
    pub versions: BTreeMap<String, Version>,
    /// What is being done, written down before it is begun.
    pub plan: Option<VersionPlan>,
    /// Data of its contacts is gone: no further version can be made.
    pub sealed: bool,
    /// When it was last made.
    pub made_us: i64,
}

/// Which products a job makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "lowercase")]
pub enum ProductTarget {
    /// Time-based ones, of a window.
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
    /// Session-based ones, of a contact with what completes it and what contacts that overlap it
    /// have in its span.
    Contact {
        /// The station.
        station: String,
        /// The flow.
        flow: u32,
    },
}

/// Versions to be made: all that decides what they hold and how they are called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionPlan {
    /// The creation time that they get.
    pub created_us: i64,
    /// The contacts that they are made of.
    pub contacts: Vec<ContactKey>,
    /// The products.
    pub products: Vec<String>,
    /// Contacts whose frames are joined, group by group; a contact may be in one of the version
    /// before, too.
    #[serde(default)]
    pub joined: Vec<Vec<ContactKey>>,
    /// Of a contact's products: when its first and its last packet were made. Nothing outside comes
    /// from contacts that overlap.
    #[serde(default)]
    pub span_us: Option<(i64, i64)>,
}

impl VersionPlan {
    /// The span in which contacts that overlap bring packets.
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

    /// Whether packets of both were made at the same time, by the same spacecraft. Contacts that
    /// complete others overlap none.
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_whole = self.completes.is_none() && other.completes.is_none();
        let is_same = self.scid == other.scid && self.mission == other.mission;
        let spans = self.span_us.zip(other.span_us);
        is_whole
            && is_same
            && spans.is_some_and(|(one, other)| one.0 <= other.1 && other.0 <= one.1)
            && self.contact() != other.contact()
    }

    /// What the record is called.
    pub fn key(&self) -> String {
        format!("{}-{}", self.station, self.flow)
    }
}

impl Version {
    /// Of a product as published.
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

    /// As the version that another replaces; none where the name is not one.
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

    /// The window, where it is one.
    pub fn span(&self) -> Option<TimeWindow> {
        let Self::Window { from_s, length_s, .. } = self else { return None };
        let from = Utc::from_micros(from_s.saturating_mul(MICROS));
        Some(TimeWindow { from, to: from + Duration::from_secs(*length_s) })
    }

    /// Whether they are products of a contact, and this contact is neither that nor completes it.
    pub fn is_of_another(&self, station: &str, (flow, completes): (u32, Option<FlowId>)) -> bool {
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

/// As the store names contacts; none where a name is not a station's.
pub fn stored(contact: &ContactKey) -> Option<(StationName, FlowId)> {
    Some((StationName::new(&contact.0).ok()?, FlowId(contact.1)))
}
