//! Carries out one job: reads its contacts from the store, and publishes the planned products.

use super::again::staging;
use super::fill::weave;
use super::forms::{AssemblyJob, ProductTarget, VersionPlan};
use super::join::{self, JoinedContact};
use super::source::{ContactSource, Undone, source, walk};
use crate::centre::files::ProductFiles;
use crate::centre::shared::CentreShared;
use skyhaul_ccsds::id::Scid;
use skyhaul_ccsds::mission::Mission;
use skyhaul_config::ProductRules;
use skyhaul_level0::report::Product;
use skyhaul_level0::{Assembly, ContactInfo, Edition, EditionScope, Limits, Novelty};
use skyhaul_records::Record as Entry;
use skyhaul_units::Utc;

/// What a job made.
#[derive(Debug)]
pub struct JobProducts {
    /// The mission as the newest contact has it.
    pub mission: Mission,
    /// The products.
    pub products: Vec<Product>,
}

/// Publishes the products of a planned job.
///
/// # Errors
/// [`Undone`]; what is published already is published again, the same, when the job is done again.
pub fn run(
    job: &AssemblyJob,
    plan: &VersionPlan,
    rules: &ProductRules,
    shared: &CentreShared,
) -> Result<JobProducts, Undone> {
    let sources: Vec<ContactSource> = plan
        .contacts
        .iter()
        .map(|(station, flow)| source(station, *flow, shared))
        .collect::<Result<_, _>>()?;
    // The mission of the newest contact: the same whatever the order of arrival.
    let newest =
        sources.iter().max_by_key(|source| (source.open.opened, &source.station, source.flow));
    let Some(newest) = newest else { return Err(Undone::Gone("every contact".to_owned())) };
    let mission = newest.mission.clone();
    let mission = &mission;
    let newest_scid = newest.open.scid;
    let scid = newest_scid.or_else(|| mission.scids().first().copied());
    let scid = match &job.target {
        ProductTarget::Window { scid, .. } => Scid::new(*scid).or(newest_scid),
        ProductTarget::Contact { .. } => scid,
    };
    let scid = scid.ok_or_else(|| Undone::Refused("no contact names the spacecraft".to_owned()))?;
    let names = mission.products().iter().map(|group| group.name.as_str());
    let (rules, dir, window) = match &job.target {
        ProductTarget::Window { .. } => {
            (rules.time(mission.name(), names), &rules.products.dir, job.target.span())
        }
        ProductTarget::Contact { .. } => {
            (rules.session(mission.name(), names), &rules.products.dir, None)
        }
    };
    let previous =
        job.versions.iter().filter_map(|(name, version)| Some((name.clone(), version.previous()?)));
    let edition = Edition {
        window,
        span: plan.span(),
        only: window.map(|_| plan.products.clone()),
        created: Utc::from_micros(plan.created_us),
        previous: previous.collect(),
        scope: if plan.again.is_some() { EditionScope::All } else { EditionScope::Changed },
    };
    let refused = |error: String| Undone::Refused(format!("{}: {error}", dir.display()));
    let dir = &match plan.again {
        // They are compared with the version before, and published where they differ.
        Some(_) => staging(dir).map_err(|error| refused(error.to_string()))?,
        None => dir.clone(),
    };
    let files = ProductFiles::new(dir, WORK).map_err(|error| refused(error.to_string()))?;
    let mut assembly =
        Assembly::new(mission, scid, edition, Limits::default(), files).with_rules(rules);
    let sources: Vec<(ContactSource, Novelty)> =
        sources.into_iter().map(|source| with_standing(job, source)).collect();
    let fills = weave(&sources, shared)?;
    let members = sources.iter().zip(&fills).map(|((source, standing), fill)| {
        let is_other =
            job.target.is_of_another(&source.station, source.flow, source.open.completes);
        JoinedContact { source, standing: *standing, fill, is_other }
    });
    let members: Vec<JoinedContact<'_>> = members.collect();
    for member in &members {
        give(member, scid, shared, &mut assembly).map_err(|undone| undone.about(dir))?;
    }
    for group in &plan.joined {
        join::give(&join::group(group, &members), scid, shared, &mut assembly)?;
    }
    let products = assembly.finish().map_err(|error| refused(error.to_string()))?;
    ProductFiles::clean(dir, WORK);
    Ok(JobProducts { mission: mission.clone(), products })
}

/// Passes the frames of a contact, with those merged into them, to the assembly.
fn give(
    member: &JoinedContact<'_>,
    scid: Scid,
    shared: &CentreShared,
    assembly: &mut Assembly<ProductFiles>,
) -> Result<(), Undone> {
    let JoinedContact { source, standing, fill, is_other } = *member;
    let refused = |error: skyhaul_level0::Error| Undone::Refused(error.to_string());
    let info = ContactInfo {
        station: source.captured_by().to_owned(),
        contact: source.name(),
        also_fits: source.open.also_fits.clone(),
        file: source.open.file.clone(),
        scid: source.open.scid.unwrap_or(scid),
        opened: source.open.opened,
        window: None,
    };
    if is_other {
        assembly.other(&source.mission, info, source.closed).map_err(refused)?;
        assembly.inputs(source.inputs.clone());
        return if fill.is_woven { Ok(()) } else { join::beside(member, scid, shared, assembly) };
    }
    assembly.contact(&source.mission, info, source.closed, standing).map_err(refused)?;
    if fill.is_woven {
        return Ok(());
    }
    assembly.inputs(source.inputs.clone());
    let mut completing = fill.cursor();
    walk(&source.station, source.flow, shared, &mut |entry| {
        let Entry::Frame(frame) = entry else { return Ok(()) };
        while let Some((other, standing)) = completing.before(frame.position) {
            assembly.completing(other, *standing).map_err(refused)?;
        }
        assembly.frame(&frame).map_err(refused)
    })?;
    while let Some((other, standing)) = completing.rest() {
        assembly.completing(other, *standing).map_err(refused)?;
    }
    Ok(())
}

/// A contact, with its novelty: whether the version before had it.
fn with_standing(job: &AssemblyJob, source: ContactSource) -> (ContactSource, Novelty) {
    let is_known =
        job.versions.is_empty() || job.contacts.contains(&(source.station.clone(), source.flow));
    (source, if is_known { Novelty::Known } else { Novelty::New })
}

/// The working folder. Names of contacts contain a `-`, so that none has this name.
const WORK: &str = "assembly";
