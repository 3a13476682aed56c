//! Raw Data Records of windows of time, and of contacts whose products have a further version.

use super::forms::{AssemblyJob, ProductTarget, Version, VersionPlan};
use super::job::JobProducts;
use crate::centre::rdr::{self, Material, NO_RECORDS, NotMade};
use crate::centre::shared::CentreShared;
use crate::rdr::MadeFile;
use skyhaul_ccsds::mission::Mission;
use skyhaul_config::ProductRules;
use skyhaul_events::AlarmKind;
use skyhaul_level0::naming::{FileNumber, ProductName};
use skyhaul_level0::report::Product;
use skyhaul_level0::{Form, TimeWindow};
use skyhaul_units::{Duration, Utc};
use std::collections::BTreeMap;

/// Makes the Raw Data Records of what a job published, where they are wanted: each granule of it
/// anew, with the job's creation time. Where they cannot be made the products are there all the
/// same, and an alarm says so.
///
/// # Errors
/// The folder refuses: the job is done again, and gives the same files.
pub fn make(
    job: &AssemblyJob,
    plan: &VersionPlan,
    made: &JobProducts,
    rules: &ProductRules,
    shared: &CentreShared,
) -> Result<Vec<MadeFile>, String> {
    let JobProducts { mission, products } = made;
    let is_wanted = rules.products.rdr && rdr::has_records(mission);
    if !is_wanted || !products.iter().any(Product::is_published) {
        return Ok(Vec::new());
    }
    let mut newest = job.versions.clone();
    newest.extend(products.iter().filter(|product| product.is_published()).map(named));
    let mut packet_files = files(&newest, mission, rules);
    if let Some(window) = job.target.span() {
        packet_files.extend(beside(job, window, mission, rules, shared));
    }
    // Files that were removed from the folder of products are skipped.
    packet_files.retain(|name| rules.products.dir.join(name).exists());
    let material = Material {
        mission,
        packet_files: &packet_files,
        window: job.target.span(),
        created: Utc::from_micros(plan.created_us),
    };
    match rdr::of(material, &rules.products) {
        Ok(made) => {
            if !made.is_empty() {
                shared.alarms.clear(AlarmKind::RecordsUnmade, NO_RECORDS);
            }
            Ok(made)
        }
        Err(NotMade::Again(reason)) => Err(reason),
        Err(NotMade::ByHand(reason)) => {
            let by_hand =
                format!("{}: {reason}; then make them with `skyhaul rdr make`", job.target.key());
            shared.alarms.raise(AlarmKind::RecordsUnmade, NO_RECORDS, &by_hand);
            Ok(Vec::new())
        }
    }
}

fn named(product: &Product) -> (String, Version) {
    (product.sidecar.product.name.clone(), Version::of(product))
}

/// The packet files of the newest versions of products.
fn files(
    newest: &BTreeMap<String, Version>,
    mission: &Mission,
    rules: &ProductRules,
) -> Vec<String> {
    let file = |(product, version): (&String, &Version)| {
        let name = ProductName::parse(&version.name).ok()?.file(FileNumber::PACKETS);
        match rules.of(mission.name(), product).form {
            Form::Pds => Some(name.to_string()),
            Form::Packets => Some(format!("{}.dat", name.stem())),
            Form::Account => None,
        }
    };
    newest.iter().filter(|(_, version)| version.packets > 0).filter_map(file).collect()
}

/// The packet files of windows that a granule of this one may run into, and of other products of
/// the same span.
fn beside(
    job: &AssemblyJob,
    window: TimeWindow,
    mission: &Mission,
    rules: &ProductRules,
    shared: &CentreShared,
) -> Vec<String> {
    let whose = |target: &ProductTarget| match target {
        ProductTarget::Window { mission, scid, .. } => Some((mission.clone(), *scid)),
        ProductTarget::Contact { .. } => None,
    };
    let is_near =
        |other: &TimeWindow| other.from < window.to + LONGEST && window.from < other.to + LONGEST;
    let journal = shared.journal();
    let others = journal.standing().filter(|other| {
        whose(&other.job.target) == whose(&job.target)
            && other.job.target != job.target
            && other.job.target.span().as_ref().is_some_and(is_near)
    });
    others.flat_map(|other| files(&other.job.versions, mission, rules)).collect()
}

/// No granule is longer: those of VIIRS have 85.35 s.
const LONGEST: Duration = Duration::from_secs(120);
