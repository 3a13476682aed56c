//! Raw Data Records of a contact or of a window of time, made of the packet files of its products.

use crate::rdr::{GranuleReport, MadeFile, RdrError, RdrJob, make};
use crate::status::ProductStatus;
use skyhaul_ccsds::mission::Mission;
use skyhaul_config::Products;
use skyhaul_hdf5::Library;
use skyhaul_level0::TimeWindow;
use skyhaul_level0::construction::ProductKind;
use skyhaul_level0::rdr::{FileFacts, GranuleSpan, Iet, RdrTable};
use skyhaul_level0::report::Product;
use skyhaul_units::Utc;
use std::path::Path;

/// Why there are no Raw Data Records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotMade {
    /// A retry helps: there was no room.
    Again(String),
    /// A retry does not help: an operator makes them once the cause is removed.
    ByHand(String),
}

/// What Raw Data Records are made of.
#[derive(Debug, Clone, Copy)]
pub struct Material<'a> {
    /// The mission.
    pub mission: &'a Mission,
    /// Packet files in the folder of products.
    pub packet_files: &'a [String],
    /// The granules to make: those that overlap the window; all where there is none.
    pub window: Option<TimeWindow>,
    /// The creation time that they get. A granule's later file has a later one.
    pub created: Utc,
}

/// Makes the files of a contact that closed at `closed`; none of a mission that has no Raw Data
/// Records. Made again they are the same.
pub fn of_contact(
    mission: &Mission,
    made: &[Product],
    products: &Products,
    closed: Utc,
) -> Result<Vec<MadeFile>, NotMade> {
    let made = || made.iter().filter(|product| product.sidecar.product.kind == ProductKind::Pds);
    let packet_files = made().filter_map(|product| product.sidecar.product.packet_file.as_ref());
    let packet_files: Vec<_> = packet_files.map(|file| file.name.clone()).collect();
    if packet_files.is_empty() && has_records(mission) {
        // Those of windows are made with the windows.
        if products.time || made().all(|product| product.sidecar.accounting.delivered == 0) {
            return Ok(Vec::new());
        }
        let reason = "no session-based product has its packets; set `session = true` in [products]";
        return Err(NotMade::ByHand(reason.to_owned()));
    }
    // Of the contact, not of now: processed again, it gives the same files.
    of(Material { mission, packet_files: &packet_files, window: None, created: closed }, products)
}

/// Whether there are Raw Data Records of a mission.
pub fn has_records(mission: &Mission) -> bool {
    RdrTable::built_in().plan(mission.name()).is_some()
}

/// Makes the files of what is given; none of a mission that has no Raw Data Records, or without
/// packets. Made again they are the same.
pub fn of(material: Material<'_>, products: &Products) -> Result<Vec<MadeFile>, NotMade> {
    let Material { mission, packet_files, window, created } = material;
    let table = RdrTable::built_in();
    let Some(plan) = table.plan(mission.name()).filter(|_| !packet_files.is_empty()) else {
        return Ok(Vec::new());
    };
    let inputs: Vec<_> = packet_files.iter().map(|name| products.dir.join(name)).collect();
    let span = |window: TimeWindow| {
        Some(GranuleSpan { start: Iet::from_utc(window.from)?, end: Iet::from_utc(window.to)? })
    };
    let job = RdrJob {
        mission,
        plan,
        sensors: plan.sensors().map(|sensor| sensor.name.as_str()).collect(),
        within: window.and_then(span),
        packed: true,
        facts: FileFacts {
            origin: products.rdr_origin.0.clone(),
            mode: "ops".parse().expect("three letters"),
            orbit: 0,
            created,
            software: concat!("skyhaul ", env!("CARGO_PKG_VERSION")).to_owned(),
        },
        dir: &products.dir,
    };
    let library = Library::load(products.hdf5_library.as_deref())
        .map_err(|error| NotMade::ByHand(error.to_string()))?;
    match make(library, &inputs, &job) {
        Ok(made) => Ok(made.files),
        Err(error @ (RdrError::Write { .. } | RdrError::Hdf5(_) | RdrError::Read { .. })) => {
            Err(NotMade::Again(error.to_string()))
        }
        Err(error) => Err(NotMade::ByHand(error.to_string())),
    }
}

/// Packets known to be missing in a file.
pub fn missing(file: &MadeFile) -> u64 {
    let granules = file.collections.iter().flat_map(|collection| &collection.granules);
    granules.map(|granule| granule.missing).sum()
}

/// As status shows it: a gap is a kind of packets of which a granule misses some.
pub fn shown(file: &MadeFile, dir: &Path) -> ProductStatus {
    let granules = || file.collections.iter().flat_map(|collection| &collection.granules);
    let gaps = |granule: &GranuleReport| {
        granule.types.iter().filter(|kind| kind.missing > 0).count() as u64
    };
    ProductStatus {
        path: dir.join(&file.name).display().to_string(),
        sha256: file.sha256.clone(),
        packets: granules().map(|granule| granule.packets).sum(),
        gaps: granules().map(gaps).sum(),
    }
}

/// An alarm.
pub const NO_RECORDS: &str = "some Raw Data Records";
