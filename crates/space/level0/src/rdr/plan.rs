//! The collections and packet types of one satellite's Raw Data Records.

use super::granule::{GranuleId, GranuleSpan};
use super::iet::Iet;
use skyhaul_ccsds::id::Apid;
use skyhaul_units::Duration;

/// How a satellite is called in Raw Data Records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Satellite {
    /// The mission whose packets are meant.
    pub mission: String,
    /// In file names: `npp`.
    pub id: String,
    /// In granule ids and headers: `NPP`, 4 bytes at most.
    pub short_name: String,
    /// The attribute `Platform_Short_Name`.
    pub platform: String,
    /// The attribute `Mission_Name`.
    pub mission_name: String,
    /// Where granules are counted from.
    pub base: Iet,
}

/// Packets that are kept together: those of a sensor, or the spacecraft's diary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// Name for people: `viirs`.
    pub name: String,
    /// The collection's short name: `VIIRS-SCIENCE-RDR`.
    pub short_name: String,
    /// In file names: `RVIRS`.
    pub product_id: String,
    /// The instrument, 16 bytes at most: `VIIRS`.
    pub sensor: String,
    /// Kind of data, 16 bytes at most: `SCIENCE`, `DIARY`.
    pub kind: String,
    /// Length of a granule.
    pub granule: Duration,
    /// Names of the collections that go into the same file.
    pub packed_with: Vec<String>,
    /// Its packets, in the order in which headers list them.
    pub packets: Vec<PacketType>,
}

/// The packets of one application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketType {
    /// Application process id.
    pub apid: Apid,
    /// Name, 16 bytes at most: `M04`.
    pub name: String,
    /// Most packets of a granule, where known.
    pub expected: Option<u32>,
    /// How many fewer a whole granule may have.
    pub slack: u32,
    /// Sent at all times, so that a granule without any misses them.
    pub always: bool,
}

/// A satellite's collections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RdrPlan {
    /// The satellite.
    pub satellite: Satellite,
    /// The collections; names are different.
    pub collections: Vec<Collection>,
}

impl RdrPlan {
    /// The collection of a name.
    pub fn collection(&self, name: &str) -> Option<&Collection> {
        self.collections.iter().find(|collection| collection.name == name)
    }
    /// The collection of a short name, as files carry it.
    pub fn by_short_name(&self, short_name: &str) -> Option<&Collection> {
        self.collections.iter().find(|collection| collection.short_name == short_name)
    }
    /// Collections that have a file of their own: those that are packed with no other.
    pub fn sensors(&self) -> impl Iterator<Item = &Collection> {
        let packed = |name: &str| {
            self.collections.iter().any(|other| other.packed_with.iter().any(|n| n == name))
        };
        self.collections.iter().filter(move |collection| !packed(&collection.name))
    }
    /// Place of the collection with packets of `apid`.
    pub fn of_apid(&self, apid: Apid) -> Option<usize> {
        self.collections
            .iter()
            .position(|collection| collection.packets.iter().any(|kind| kind.apid == apid))
    }
    /// The granule of a collection that `time` lies in; `None` before the base time.
    pub fn granule(&self, collection: &Collection, time: Iet) -> Option<GranuleSpan> {
        GranuleSpan::of(time, collection.granule, self.satellite.base)
    }
    /// The name of the granule that begins at `start`.
    pub fn granule_id(&self, start: Iet) -> GranuleId {
        GranuleId::new(&self.satellite.short_name, start, self.satellite.base)
    }
}

impl Collection {
    /// The collection's packets of `apid`.
    pub fn packet_type(&self, apid: Apid) -> Option<&PacketType> {
        self.packets.iter().find(|kind| kind.apid == apid)
    }
}
