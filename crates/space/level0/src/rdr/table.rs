//! The TOML form of satellites and collections, and the checks that make plans of it.

use super::iet::Iet;
use super::plan::{Collection, PacketType, RdrPlan, Satellite};
use serde::Deserialize;
use skyhaul_ccsds::id::Apid;
use skyhaul_units::Duration;
use std::collections::BTreeMap;
use toml::Spanned;

/// The satellites that Raw Data Records are made of, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RdrTable {
    plans: Vec<RdrPlan>,
}

/// Why a table was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct TableError {
    /// Line of the text, from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub reason: String,
}

impl RdrTable {
    /// The table that comes with the program: `missions/rdr/jpss.toml`.
    pub fn built_in() -> Self {
        Self::from_toml(BUILT_IN).expect("the repository's table is read by a test")
    }

    /// Reads a table from TOML.
    ///
    /// # Errors
    /// [`TableError`] names the line and what is wrong there: a key that does not exist, a value
    /// out of range, or fields that contradict each other.
    pub fn from_toml(text: &str) -> Result<Self, TableError> {
        let form: Form = toml::from_str(text).map_err(|error| TableError {
            line: error.span().map_or(1, |span| line_of(text, span.start)),
            reason: error.message().trim().replace('\n', " "),
        })?;
        let checker = TableChecker { text };
        if form.satellite.len().max(form.collection.len()) > LONGEST_LIST {
            let reason = format!("there are more than {LONGEST_LIST} satellites or collections");
            return Err(TableError { line: 1, reason });
        }
        let ids: Vec<&str> =
            form.satellite.iter().map(|satellite| satellite.id.get_ref().as_str()).collect();
        form.collection.iter().try_for_each(|collection| checker.satellites(collection, &ids))?;
        let mut plans: Vec<RdrPlan> = Vec::new();
        for satellite in &form.satellite {
            let plan = checker.plan(satellite, &form.collection)?;
            if plans.iter().any(|known| known.satellite.mission == plan.satellite.mission) {
                let reason =
                    format!("mission `{}` is listed twice; keep one", plan.satellite.mission);
                return Err(checker.refuse(&satellite.id, &reason));
            }
            plans.push(plan);
        }
        Ok(Self { plans })
    }

    /// What the Raw Data Records of a mission are made of; `None` for missions that have none.
    pub fn plan(&self, mission: &str) -> Option<&RdrPlan> {
        self.plans.iter().find(|plan| plan.satellite.mission == mission)
    }

    /// The plan of the satellite that files call `short_name`.
    pub fn by_short_name(&self, short_name: &str) -> Option<&RdrPlan> {
        self.plans.iter().find(|plan| plan.satellite.short_name == short_name)
    }

    /// All plans.
    pub fn plans(&self) -> impl Iterator<Item = &RdrPlan> {
        self.plans.iter()
    }
}

const BUILT_IN: &str = include_str!("../../../../../missions/rdr/jpss.toml");
/// Most entries of each list. CrIS, with the most, has 83 kinds of packets.
const LONGEST_LIST: usize = 256;
/// Most packets of one kind in a granule: 24 bytes are reserved for each.
const MOST_EXPECTED: u32 = 1_000_000;
/// The longest granule: an hour. Memory is held for a whole one.
const LONGEST_GRANULE: u64 = 3_600_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    satellite: Vec<SatelliteForm>,
    collection: Vec<CollectionForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SatelliteForm {
    mission: String,
    id: Spanned<String>,
    short_name: Spanned<String>,
    platform: Spanned<String>,
    mission_name: Spanned<String>,
    base_time_us: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CollectionForm {
    name: Spanned<String>,
    short_name: Spanned<String>,
    product_id: Spanned<String>,
    sensor: Spanned<String>,
    kind: Spanned<String>,
    granule_us: Spanned<u64>,
    #[serde(default)]
    granule_us_of: BTreeMap<String, Spanned<u64>>,
    #[serde(default)]
    packed_with: Vec<Spanned<String>>,
    #[serde(default)]
    satellites: Vec<Spanned<String>>,
    packets: Vec<PacketForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PacketForm {
    apid: Spanned<u16>,
    name: Spanned<String>,
    #[serde(default)]
    expected: Option<Spanned<u32>>,
    #[serde(default)]
    slack: u32,
    #[serde(default)]
    always: bool,
    #[serde(default)]
    satellites: Vec<Spanned<String>>,
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

fn applies(satellites: &[Spanned<String>], id: &str) -> bool {
    satellites.is_empty() || satellites.iter().any(|satellite| satellite.get_ref() == id)
}

struct TableChecker<'a> {
    text: &'a str,
}

impl TableChecker<'_> {
    fn refuse<T>(&self, at: &Spanned<T>, reason: &str) -> TableError {
        TableError { line: line_of(self.text, at.span().start), reason: reason.to_owned() }
    }

    /// A text that fits its field and a file name.
    fn word(&self, word: &Spanned<String>, most: usize) -> Result<String, TableError> {
        let text = word.get_ref();
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_/ .".contains(c);
        if text.is_empty() || text.len() > most || !text.chars().all(fits) {
            let reason =
                format!("`{text}` does not fit: use 1 to {most} letters, digits and `-_/ .`");
            return Err(self.refuse(word, &reason));
        }
        Ok(text.clone())
    }

    /// A word that stands in a file name or in a path within a file.
    fn name(&self, name: &Spanned<String>, most: usize) -> Result<String, TableError> {
        let text = name.get_ref();
        if !text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            return Err(
                self.refuse(name, &format!("`{text}` is not a name: use letters, digits and `-`"))
            );
        }
        self.word(name, most)
    }

    /// Refuses satellites that are not listed.
    fn satellites(&self, form: &CollectionForm, ids: &[&str]) -> Result<(), TableError> {
        let named =
            form.packets.iter().flat_map(|packet| &packet.satellites).chain(&form.satellites);
        let unknown = |satellite: &&Spanned<String>| !ids.contains(&satellite.get_ref().as_str());
        if let Some(unknown) = named.into_iter().find(unknown) {
            let reason = format!("no satellite has the id `{}`", unknown.get_ref());
            return Err(self.refuse(unknown, &reason));
        }
        match form.granule_us_of.iter().find(|(id, _)| !ids.contains(&id.as_str())) {
            Some((id, at)) => Err(self.refuse(at, &format!("no satellite has the id `{id}`"))),
            None => Ok(()),
        }
    }

    fn plan(
        &self,
        form: &SatelliteForm,
        collections: &[CollectionForm],
    ) -> Result<RdrPlan, TableError> {
        let id = form.id.get_ref();
        let satellite = Satellite {
            mission: form.mission.clone(),
            id: self.name(&form.id, 8)?,
            short_name: self.name(&form.short_name, 4)?,
            platform: self.word(&form.platform, 16)?,
            mission_name: self.word(&form.mission_name, 32)?,
            base: Iet::from_micros(form.base_time_us),
        };
        let mut plan = RdrPlan { satellite, collections: Vec::new() };
        let applied: Vec<_> =
            collections.iter().filter(|form| applies(&form.satellites, id)).collect();
        for form in &applied {
            let collection = self.collection(form, id)?;
            let twice = |known: &Collection| {
                known.name == collection.name
                    || known.short_name == collection.short_name
                    || known.product_id == collection.product_id
            };
            if plan.collections.iter().any(twice) {
                let reason = "another collection has this name, short name or product id; keep one";
                return Err(self.refuse(&form.name, reason));
            }
            if let Some(kind) =
                collection.packets.iter().find(|kind| plan.of_apid(kind.apid).is_some())
            {
                let reason =
                    format!("application {} is in two collections; keep it in one", kind.apid);
                return Err(self.refuse(&form.name, &reason));
            }
            plan.collections.push(collection);
        }
        for packed in applied.iter().flat_map(|form| &form.packed_with) {
            let Some(known) = plan.collection(packed.get_ref()) else {
                let reason = format!("there is no collection `{}`", packed.get_ref());
                return Err(self.refuse(packed, &reason));
            };
            if !known.packed_with.is_empty() {
                let reason = format!("`{}` is packed with others itself", packed.get_ref());
                return Err(self.refuse(packed, &reason));
            }
        }
        Ok(plan)
    }

    fn collection(&self, form: &CollectionForm, satellite: &str) -> Result<Collection, TableError> {
        let granule = form.granule_us_of.get(satellite).unwrap_or(&form.granule_us);
        if !(1_000_000..=LONGEST_GRANULE).contains(granule.get_ref()) {
            return Err(self.refuse(granule, "a granule is a second to an hour long"));
        }
        if form.packets.len().max(form.packed_with.len()) > LONGEST_LIST {
            let reason = format!("a list has more than {LONGEST_LIST} entries");
            return Err(self.refuse(&form.name, &reason));
        }
        let mut packets: Vec<PacketType> = Vec::new();
        for form in form.packets.iter().filter(|form| applies(&form.satellites, satellite)) {
            let kind = self.packet_type(form)?;
            if packets.iter().any(|known| known.apid == kind.apid || known.name == kind.name) {
                let reason =
                    format!("application {} or its name is listed twice; keep one", kind.apid);
                return Err(self.refuse(&form.apid, &reason));
            }
            packets.push(kind);
        }
        if packets.is_empty() {
            return Err(self.refuse(&form.name, "the collection has no packets; list at least one"));
        }
        Ok(Collection {
            name: self.name(&form.name, 32)?,
            short_name: self.name(&form.short_name, 32)?,
            product_id: self.name(&form.product_id, 8)?,
            sensor: self.word(&form.sensor, 16)?,
            kind: self.word(&form.kind, 16)?,
            granule: Duration::from_micros(*granule.get_ref()),
            packed_with: form.packed_with.iter().map(|name| name.get_ref().clone()).collect(),
            packets,
        })
    }

    fn packet_type(&self, form: &PacketForm) -> Result<PacketType, TableError> {
        let apid = Apid::new(*form.apid.get_ref()).filter(|apid| *apid != Apid::IDLE);
        let apid = apid.ok_or_else(|| self.refuse(&form.apid, "an application id is 0 to 2046"))?;
        if let Some(expected) = &form.expected
            && !(1..=MOST_EXPECTED).contains(expected.get_ref())
        {
            return Err(self.refuse(
                expected,
                &format!("a granule has 1 to {MOST_EXPECTED} packets of a kind"),
            ));
        }
        Ok(PacketType {
            apid,
            name: self.word(&form.name, 16)?,
            expected: form.expected.as_ref().map(|expected| *expected.get_ref()),
            slack: form.slack,
            always: form.always,
        })
    }
}
