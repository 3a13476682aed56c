//! What operators ask of the archive, and order.

use super::look::LookForm;
use super::run;
use crate::centre::delivery::DeliveryLedger;
use crate::centre::shared::CentreShared;
use crate::fault::Fault;
use crate::status::{ArchiveItem, ArchivePage, ArchiveRequest, StatusReply, StatusRequest};
use skyhaul_catalogue::{CompareOp, Filter, Property, PropertyValue, RetentionStanding};
use skyhaul_catalogue_io::{CatalogueError, HoldOrder, ItemQuery, ItemRow, PageToken};
use skyhaul_units::Utc;

const PLACE: &str = "the archive";
/// Rows of one answer.
const PAGE_MAX: usize = 10_000;
/// Versions of one product.
const VERSIONS: usize = 1_000;

/// Whether a request is answered here.
pub const fn is_for_archive(request: &StatusRequest) -> bool {
    matches!(request, StatusRequest::Archive { .. })
}

/// Answers.
pub fn answer(shared: &CentreShared, request: StatusRequest) -> StatusReply {
    let StatusRequest::Archive { order: request } = request else {
        let fault =
            Fault::configuration("this is no request about the archive", PLACE, "ask others");
        return StatusReply::Answer(Err(fault).into());
    };
    let (ledger, now) = (shared.deliveries(), shared.utc());
    let evict = |form| {
        let found = run::run(shared, form);
        found.map(|found| StatusReply::Eviction(Box::new(found))).map_err(|error| {
            Fault::environment(error.to_string(), PLACE, "correct it, and give the command again")
        })
    };
    let answered = match request {
        ArchiveRequest::Due => evict(LookForm::Asked),
        ArchiveRequest::Evict => evict(LookForm::Ordered),
        ArchiveRequest::List { filter, held, after, limit } => {
            let query = ListQuery { filter, after, limit, held };
            list(ledger, query).map(|page| StatusReply::Archive(Box::new(page)))
        }
        ArchiveRequest::Hold { name, why } => {
            let order = why.map_or(HoldOrder::Release, HoldOrder::Hold);
            hold(ledger, &name, &order, now).map(|said| StatusReply::Answer(Ok(said).into()))
        }
        ArchiveRequest::Restored { item, from } => {
            restored(ledger, item, &from, now).map(|said| StatusReply::Answer(Ok(said).into()))
        }
        ArchiveRequest::Placed { volume, place, items } => {
            let placed = match items.is_empty() {
                true => Ok(()),
                false => ledger.catalogue().archive().placed(&volume, &place, items, now),
            };
            let said = || format!("{volume} is recorded");
            placed.map(|()| StatusReply::Answer(Ok(said()).into())).map_err(failed)
        }
    };
    answered.unwrap_or_else(|fault| StatusReply::Answer(Err(fault).into()))
}

fn failed(error: CatalogueError) -> Fault {
    Fault::environment(error.to_string(), "the catalogue", "see the log of the node")
}

/// Which products are listed.
struct ListQuery {
    filter: Option<String>,
    after: Option<String>,
    limit: usize,
    held: bool,
}

fn list(ledger: &DeliveryLedger, query: ListQuery) -> Result<ArchivePage, Fault> {
    let wrong = |what: String, place: &str, help: &str| Fault::configuration(what, place, help);
    let filter = query.filter.map(|text| text.parse::<Filter>()).transpose().map_err(|error| {
        let help = "write it as CQL2 text, such as mission = 'aqua'";
        wrong(error.to_string(), "the filter", help)
    })?;
    let after = query.after.map(|text| text.parse::<PageToken>()).transpose();
    let after =
        after.map_err(|error| wrong(error, "--after", "give what the page before ended with"))?;
    let limit = query.limit.clamp(1, PAGE_MAX);
    ledger
        .ask(|reader| {
            let wanted = ItemQuery { filter, after, limit };
            let found = match query.held {
                true => reader.archive().held(&wanted)?,
                false => reader.search(&wanted)?,
            };
            let next = found.next.map(|next| next.to_string());
            let item = |row: &ItemRow| {
                let archive = reader.archive();
                Ok(shown(row, archive.standing(row.id)?, archive.volumes_of(row.id)?))
            };
            let items = found.items.iter().map(item).collect::<Result<_, CatalogueError>>()?;
            Ok(ArchivePage { items, next })
        })
        .map_err(failed)
}

fn shown(row: &ItemRow, standing: RetentionStanding, volumes: Vec<String>) -> ArchiveItem {
    let pending = standing.pending;
    ArchiveItem {
        name: row.item.versioned_id(),
        kind: row.item.form.name().to_owned(),
        state: row.item.state.name().to_owned(),
        published: row.item.published.to_string(),
        bytes: row.item.size(),
        held: standing.held,
        pending: pending.map(|pending| {
            format!("delivery {} to {} is {}", pending.id, pending.destination, pending.state)
        }),
        copies: standing.copies,
        volumes,
    }
}

/// The items of a name, in all versions, or in the version that the name has.
pub fn named(ledger: &DeliveryLedger, name: &str) -> Result<Vec<ItemRow>, Fault> {
    let is = |property| {
        Filter::Compare(property, CompareOp::Equal, PropertyValue::Text(name.to_owned()))
    };
    let version = name
        .rsplit_once("-v")
        .and_then(|(name, version)| Some((name.to_owned(), version.parse::<u32>().ok()?)));
    let found = ledger
        .ask(|reader| {
            let filter = Some(is(Property::Id));
            let all = reader.search(&ItemQuery { filter, after: None, limit: VERSIONS })?.items;
            match version.filter(|_| all.is_empty()) {
                Some((name, version)) => {
                    Ok(reader.item_named(&name, version)?.into_iter().collect())
                }
                None => Ok(all),
            }
        })
        .map_err(failed)?;
    if found.is_empty() {
        let help = "take a name from `skyhaul archive list`";
        return Err(Fault::configuration(format!("there is no product `{name}`"), PLACE, help));
    }
    Ok(found)
}

/// The files of a product are there again. It is held: its time is over, and it would leave at
/// once.
fn restored(ledger: &DeliveryLedger, item: u64, from: &str, now: Utc) -> Result<String, Fault> {
    let archive = ledger.catalogue().archive();
    if !archive.restored(item, from, now).map_err(failed)? {
        let help = "wait until it is removed, then restore it";
        return Err(Fault::configuration("the product is being removed", PLACE, help));
    }
    let why = format!("restored from {from}");
    archive.hold(item, HoldOrder::Hold(why), now).map_err(failed)?;
    Ok("restored, and held".to_owned())
}

fn hold(ledger: &DeliveryLedger, name: &str, order: &HoldOrder, now: Utc) -> Result<String, Fault> {
    let mut changed = 0;
    for row in named(ledger, name)? {
        let done = ledger.catalogue().archive().hold(row.id, order.clone(), now);
        changed += u32::from(done.map_err(failed)?);
    }
    match (order, changed) {
        (HoldOrder::Hold(_), 0) => {
            let what = format!("the files of `{name}` are removed");
            let help = "`skyhaul archive restore` brings them back where a copy is known";
            Err(Fault::configuration(what, PLACE, help))
        }
        (HoldOrder::Hold(_), count) => Ok(format!("{name} is held, versions: {count}")),
        (HoldOrder::Release, 0) => {
            let help = "`skyhaul archive list --held` lists what is held";
            Err(Fault::configuration(format!("`{name}` is not held"), PLACE, help))
        }
        (HoldOrder::Release, count) => Ok(format!("{name} is released, versions: {count}")),
    }
}
