//! The attributes of a Raw Data Record file, its collections and granules. Each has two dimensions,
//! [n, 1] (CDFCB volume I, metadata).

use super::build::PackedGranule;
use super::calendar::{clock, date};
use super::granule::{GranuleId, GranuleSpan};
use super::plan::{Collection, Satellite};
use skyhaul_units::Utc;
use std::fmt;
use std::str::FromStr;

/// An attribute.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// What it says.
    pub value: Value,
}

/// The values of an attribute, one below the other.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Texts, stored with the width of the longest.
    Text(Vec<String>),
    /// Numbers of 32 bits.
    U32(Vec<u32>),
    /// Numbers of 64 bits.
    U64(Vec<u64>),
    /// Fractions.
    F32(Vec<f32>),
}

/// A word of a file name: who made the file, or in which mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

/// Why a word does not fit into a file name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not fit into a file name; write 1 to 4 lower-case letters or digits")]
pub struct OriginError(String);

/// A granule that an aggregate begins or ends with.
#[derive(Debug, Clone, Copy)]
pub struct GranuleRef<'a> {
    /// Its id.
    pub id: &'a GranuleId,
    /// The time that it covers.
    pub span: GranuleSpan,
}

/// What is the same for the whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFacts {
    /// Who made it; in names a `u` (unclassified) follows.
    pub origin: Origin,
    /// Mode of processing: `ops`.
    pub mode: Origin,
    /// Number of the orbit; 0 where it is not known.
    pub orbit: u32,
    /// When it was made.
    pub created: Utc,
    /// The program that made it.
    pub software: String,
}

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if (1..=4).contains(&text.len()) && text.chars().all(fits) {
            return Ok(Self(text.to_owned()));
        }
        Err(OriginError(text.to_owned()))
    }
}

impl Origin {
    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FileFacts {
    /// Attributes of the file's root.
    pub fn root(&self, satellite: &Satellite) -> Vec<Attribute> {
        vec![
            text("Distributor", self.origin.as_str()),
            text("Mission_Name", &satellite.mission_name),
            text("N_Dataset_Source", self.origin.as_str()),
            text("N_HDF_Creation_Date", &date(self.created)),
            text("N_HDF_Creation_Time", &time(self.created)),
            text("Platform_Short_Name", &satellite.platform),
        ]
    }

    /// Attributes of a collection's group.
    pub fn collection(&self, collection: &Collection) -> Vec<Attribute> {
        vec![
            text("Instrument_Short_Name", &collection.sensor),
            text("N_Collection_Short_Name", &collection.short_name),
            text("N_Dataset_Type_Tag", "RDR"),
            text("N_Processing_Domain", self.mode.as_str()),
        ]
    }

    /// Attributes of a granule.
    pub fn granule(&self, collection: &Collection, granule: &PackedGranule) -> Vec<Attribute> {
        let (begin, end) = (granule.span.start, granule.span.end);
        let reference = format!("{}:{}:{VERSION}", collection.short_name, granule.id.as_str());
        let names = granule.types.iter().map(|kind| kind.name.clone()).collect();
        let counts = granule.types.iter().map(|kind| kind.received).collect();
        vec![
            text("Beginning_Date", &date(begin.utc())),
            text("Beginning_Time", &time(begin.utc())),
            text("Ending_Date", &date(end.utc())),
            text("Ending_Time", &time(end.utc())),
            of("N_Beginning_Orbit_Number", Value::U64(vec![self.orbit.into()])),
            of("N_Beginning_Time_IET", Value::U64(vec![begin.as_micros()])),
            text("N_Creation_Date", &date(self.created)),
            text("N_Creation_Time", &time(self.created)),
            of("N_Ending_Time_IET", Value::U64(vec![end.as_micros()])),
            text("N_Granule_ID", granule.id.as_str()),
            text("N_Granule_Status", "N/A"),
            text("N_Granule_Version", VERSION),
            text("N_IDPS_Mode", self.mode.as_str()),
            text("N_JPSS_Document_Ref", DOCUMENT),
            text("N_LEOA_Flag", "Off"),
            of("N_Packet_Type", Value::Text(names)),
            of("N_Packet_Type_Count", Value::U64(counts)),
            of("N_Percent_Missing_Data", Value::F32(vec![granule.percent_missing()])),
            text("N_Reference_ID", &reference),
            text("N_Software_Version", &self.software),
        ]
    }

    /// Attributes of a collection's aggregate: `number` granules, from `first` to `last`.
    pub fn aggregate(
        &self,
        first: GranuleRef<'_>,
        last: GranuleRef<'_>,
        number: u32,
    ) -> Vec<Attribute> {
        let (begin, end) = (first.span.start.utc(), last.span.end.utc());
        vec![
            text("AggregateBeginningDate", &date(begin)),
            text("AggregateBeginningGranuleID", first.id.as_str()),
            of("AggregateBeginningOrbitNumber", Value::U32(vec![self.orbit])),
            text("AggregateBeginningTime", &time(begin)),
            text("AggregateEndingDate", &date(end)),
            text("AggregateEndingGranuleID", last.id.as_str()),
            of("AggregateEndingOrbitNumber", Value::U32(vec![self.orbit])),
            text("AggregateEndingTime", &time(end)),
            of("AggregateNumberGranules", Value::U32(vec![number])),
        ]
    }
}

/// `HHMMSS.ffffffZ`.
fn time(time: Utc) -> String {
    format!("{}Z", clock(time))
}

fn text(name: &str, value: &str) -> Attribute {
    of(name, Value::Text(vec![value.to_owned()]))
}

fn of(name: &str, value: Value) -> Attribute {
    Attribute { name: name.to_owned(), value }
}

/// Version of a granule that was made once.
const VERSION: &str = "A1";
/// The control book's volume on Raw Data Records.
const DOCUMENT: &str = "474-00001-02_JPSS-CDFCB-X-Vol-II";
