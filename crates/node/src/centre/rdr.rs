//! Raw Data Records of a contact, made of its products' packet files.

use crate::config::Products;
use crate::rdr::{GranuleReport, Job, MadeFile, RdrError, make};
use crate::status::ProductStatus;
use skyhaul_ccsds::mission::Mission;
use skyhaul_hdf5::Library;
use skyhaul_level0::construction::ProductKind;
use skyhaul_level0::rdr::{FileFacts, RdrTable};
use skyhaul_level0::report::Product;
use skyhaul_units::Utc;
use std::path::Path;

/// Why a contact has no Raw Data Records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotMade {
    /// Trying again helps: there was no room.
    Again(String),
    /// Trying again does not: they are to be made by hand once the cause is gone.
    ByHand(String),
}

/// Makes the files of a contact that closed at `closed`; none of a mission that has no Raw Data Records. Made again they
/// are the same.
pub fn of_contact(
    mission: &Mission,
    made: &[Product],
    products: &Products,
    closed: Utc,
) -> Result<Vec<ProductStatus>, NotMade> {
    let table = RdrTable::built_in();
    let Some(plan) = table.plan(mission.name()) else { return Ok(Vec::new()) };
    let made = || made.iter().filter(|product| product.sidecar.product.kind == ProductKind::Pds);
    let packet_files = made().filter_map(|product| product.sidecar.product.packet_file.as_ref());
    let inputs: Vec<_> = packet_files.map(|file| products.dir.join(&file.name)).collect();
    if inputs.is_empty() {
        if made().all(|product| product.sidecar.accounting.delivered == 0) {
            return Ok(Vec::new());
        }
        let reason = "its packets are in no session-based product; set `session = true` in [products]";
        return Err(NotMade::ByHand(reason.to_owned()));
    }
    let job = Job {
        mission,
        plan,
        sensors: plan.sensors().map(|sensor| sensor.name.as_str()).collect(),
        packed: true,
        facts: FileFacts {
            origin: products.rdr_origin.0.clone(),
            mode: "ops".parse().expect("three letters"),
            orbit: 0,
            // Of the contact, not of now: processed again, it gives the same files.
            created: closed,
            software: concat!("skyhaul ", env!("CARGO_PKG_VERSION")).to_owned(),
        },
        dir: &products.dir,
    };
    let library = Library::load(products.hdf5_library.as_deref())
        .map_err(|error| NotMade::ByHand(error.to_string()))?;
    match make(library, &inputs, &job) {
        Ok(made) => Ok(made.files.iter().map(|file| shown(file, &products.dir)).collect()),
        Err(error @ (RdrError::Write { .. } | RdrError::Hdf5(_) | RdrError::Read { .. })) => {
            Err(NotMade::Again(error.to_string()))
        }
        Err(error) => Err(NotMade::ByHand(error.to_string())),
    }
}

/// As status shows it: a gap is a kind of packets of which a granule misses some.
fn shown(file: &MadeFile, dir: &Path) -> ProductStatus {
    let granules = || file.collections.iter().flat_map(|collection| &collection.granules);
    let gaps = |granule: &GranuleReport| granule.types.iter().filter(|kind| kind.missing > 0).count() as u64;
    ProductStatus {
        path: dir.join(&file.name).display().to_string(),
        sha256: file.sha256.clone(),
        packets: granules().map(|granule| granule.packets).sum(),
        gaps: granules().map(gaps).sum(),
    }
}
