//! What operators order to be made again.

use super::super::forms::{AssemblyJob, ContactSummary, MakeAgain, stored};
use super::shown;
use crate::centre::shared::CentreShared;
use crate::fault::Fault;
use crate::status::{
    ReprocessAction, ReprocessJob, ReprocessReport, ReprocessRequest, StatusReply, StatusRequest,
};

const PLACE: &str = "reprocessing";
/// Jobs of one order: a year of two-hour windows of one spacecraft.
const JOBS_MAX: usize = 5_000;

/// Whether a request is answered here.
pub const fn is_for_reprocessing(request: &StatusRequest) -> bool {
    matches!(request, StatusRequest::Reprocess { .. })
}

/// Answers.
pub fn answer(shared: &CentreShared, request: StatusRequest) -> StatusReply {
    let StatusRequest::Reprocess { order: request } = request else {
        let fault = Fault::configuration("this is no order to reprocess", PLACE, "ask others");
        return StatusReply::Answer(Err(fault).into());
    };
    let answered = match request {
        ReprocessRequest::Order(action) => order(shared, &action),
        ReprocessRequest::Look { order } => Ok(ReprocessReport {
            order,
            jobs: Vec::new(),
            waiting: waiting(shared, order),
            products: shared.deliveries().archive().again.of(order),
        }),
    };
    match answered {
        Ok(report) => StatusReply::Reprocess(Box::new(report)),
        Err(fault) => StatusReply::Answer(Err(fault).into()),
    }
}

fn order(shared: &CentreShared, action: &ReprocessAction) -> Result<ReprocessReport, Fault> {
    let rules = shared.journal().rules().clone();
    if !rules.enabled {
        let help = "ask a node with [products]";
        return Err(Fault::configuration("this node makes no products", PLACE, help));
    }
    if let Some(text) = &action.rules {
        rules.again(text).map_err(|what| {
            let help = "write the tables [products] and [[product]] as in a node's file";
            Fault::configuration(what, "the rules", help)
        })?;
    }
    let jobs = shared.journal().made_of(|note| takes(action, note));
    if jobs.is_empty() {
        let what = "no stored contact has packets of that mission and time";
        let help = "`skyhaul status` lists contacts; [store] and [[retention]] say how long they \
                    stay";
        return Err(Fault::configuration(what, PLACE, help));
    }
    if jobs.len() > JOBS_MAX {
        let what = format!("{} products of contacts and windows are too many", jobs.len());
        let help = format!("reprocess at most {JOBS_MAX} at a time: give a shorter span");
        return Err(Fault::configuration(what, PLACE, help));
    }
    let told = jobs.iter().map(|job| told(shared, job)).collect();
    let order = shared.utc().as_micros().cast_unsigned();
    let mut waiting = jobs.len();
    if !action.dry_run {
        let again = MakeAgain { order, rules: action.rules.clone() };
        waiting = shared.journal().make_again(jobs, &again).map_err(|error| {
            Fault::environment(error.to_string(), PLACE, "repair the disk, and order it again")
        })?;
        shared.hold_contacts();
    }
    Ok(ReprocessReport { order, jobs: told, waiting, products: Vec::new() })
}

fn takes(action: &ReprocessAction, note: &ContactSummary) -> bool {
    let name = || format!("{}-{}", note.station, note.flow);
    let origin = || note.origin.as_ref().map(|(station, flow)| format!("{station}-{flow}"));
    let is_named = action
        .contact
        .as_ref()
        .is_none_or(|contact| *contact == name() || Some(contact) == origin().as_ref());
    let (from, to) = (action.from.utc().as_micros(), action.to.utc().as_micros());
    // Of contacts noted by earlier releases the time of their processing is as good.
    let (first, last) = note.span_us.unwrap_or((note.noted_us, note.noted_us));
    note.mission == action.mission && is_named && first < to && from <= last
}

fn told(shared: &CentreShared, job: &AssemblyJob) -> ReprocessJob {
    let store = shared.store();
    let is_gone = |contact: &&(String, u32)| {
        stored(contact).is_none_or(|(name, flow)| !store.kept().contains(&name, flow))
    };
    let gone = job.contacts.iter().filter(is_gone);
    ReprocessJob {
        target: job.target.key(),
        what: shown(&job.target),
        products: job.versions.keys().cloned().collect(),
        gone: gone.map(|(station, flow)| format!("{station}-{flow}")).collect(),
    }
}

/// How many jobs of an order wait or are under way.
fn waiting(shared: &CentreShared, order: u64) -> usize {
    let is_its = |job: &AssemblyJob| job.again.as_ref().is_some_and(|again| again.order == order);
    shared.journal().standing().filter(|standing| is_its(&standing.job)).count()
}
