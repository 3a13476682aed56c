//! What operators ask of the catalogue and of deliveries, and order.

use super::backfill::Backfill;
use super::ledger::{DeliveryLedger, shown};
use super::outlet::node_sink;
use crate::centre::shared::CentreShared;
use crate::fault::Fault;
use crate::status::{
    BackfillPage, BackfillRequest, CataloguePage, DeliveryAction, DeliveryEvent, DeliveryFilter,
    DeliveryPage, DeliveryReport, DestinationTrial, OutletStatus, StatusReply, StatusRequest,
};
use skyhaul_catalogue::{Filter, stac_item};
use skyhaul_catalogue_io::{CatalogueError, CatalogueReader, DeliveryQuery, ItemQuery, PageToken};
use skyhaul_config::ProductDestination;
use skyhaul_dispatch::{DeliveryInput, DeliveryOutput};
use skyhaul_remote::RemoteSink;
use skyhaul_units::Utc;
use std::path::Path;

/// Rows of one answer.
const PAGE_MAX: usize = 10_000;
const PLACE: &str = "the catalogue";

/// Whether a request is answered here.
pub const fn is_for_deliveries(request: &StatusRequest) -> bool {
    matches!(
        request,
        StatusRequest::Deliveries(_)
            | StatusRequest::Delivery { .. }
            | StatusRequest::OrderDelivery { .. }
            | StatusRequest::Outlets
            | StatusRequest::TryOutlet { .. }
            | StatusRequest::KeepTrial { .. }
            | StatusRequest::Backfill(_)
            | StatusRequest::Items { .. }
    )
}

/// Answers.
pub fn answer(shared: &CentreShared, request: StatusRequest) -> StatusReply {
    let (ledger, now) = (shared.deliveries(), shared.utc());
    let products = ledger.products();
    let answered = match request {
        StatusRequest::Deliveries(filter) => {
            list(ledger, filter, now).map(|page| StatusReply::Deliveries(Box::new(page)))
        }
        StatusRequest::Delivery { id } => {
            report(ledger, id, now).map(|report| StatusReply::Delivery(Box::new(report)))
        }
        StatusRequest::OrderDelivery { id, action } => {
            order(ledger, id, action, now).map(|said| StatusReply::Answer(Ok(said).into()))
        }
        StatusRequest::Outlets => outlets(ledger).map(StatusReply::Outlets),
        StatusRequest::TryOutlet { name } => {
            try_outlet(shared, &name).map(|trial| StatusReply::Trial(Box::new(trial)))
        }
        StatusRequest::KeepTrial { name, trial } => {
            keep_trial(ledger, &name, &trial).map(|said| StatusReply::Answer(Ok(said).into()))
        }
        StatusRequest::Backfill(request) => {
            backfill(ledger, &request, now).map(|page| StatusReply::Backfill(Box::new(page)))
        }
        StatusRequest::Items { filter, after, limit } => {
            let query = query(filter.as_deref(), after.as_deref(), limit);
            query.and_then(|query| {
                search(ledger, products, &query).map(|page| StatusReply::Items(Box::new(page)))
            })
        }
        _ => Err(Fault::configuration("this is no request about deliveries", PLACE, "ask others")),
    };
    answered.unwrap_or_else(|fault| StatusReply::Answer(Err(fault).into()))
}

fn failed(error: CatalogueError) -> Fault {
    Fault::environment(error.to_string(), PLACE, "see the log of the node")
}

fn unknown(id: u64) -> Fault {
    let help = "take a number from `skyhaul deliveries list`";
    Fault::configuration(format!("there is no delivery {id}"), PLACE, help)
}

fn list(ledger: &DeliveryLedger, filter: DeliveryFilter, now: Utc) -> Result<DeliveryPage, Fault> {
    let DeliveryFilter { destination, subscription, state, item, before, limit } = filter;
    let limit = limit.clamp(1, PAGE_MAX);
    let query = DeliveryQuery { destination, subscription, state, item, before, limit };
    let rows = ledger.ask(|reader| reader.deliveries(&query)).map_err(failed)?;
    let next = rows.last().filter(|_| rows.len() == limit).map(|(row, _)| row.id);
    let deliveries = rows.iter().map(|(row, item)| shown(row, item, now)).collect();
    Ok(DeliveryPage { deliveries, next })
}

fn report(ledger: &DeliveryLedger, id: u64, now: Utc) -> Result<DeliveryReport, Fault> {
    let products = ledger.products();
    let found = ledger
        .ask(|reader| {
            let Some(row) = reader.delivery(id)? else { return Ok(None) };
            let Some(item) = reader.item(row.item)? else { return Ok(None) };
            Ok(Some((row, item, reader.events(id)?)))
        })
        .map_err(failed)?;
    let (row, item, events) = found.ok_or_else(|| unknown(id))?;
    let event = |event: skyhaul_catalogue_io::CatalogueEvent| DeliveryEvent {
        at: event.at.to_string(),
        what: event.what,
        text: event.text,
    };
    Ok(DeliveryReport {
        delivery: shown(&row, &item, now),
        item: stac_item(&item.item, |name| address(products, name)),
        events: events.into_iter().map(event).collect(),
    })
}

fn order(
    ledger: &DeliveryLedger,
    id: u64,
    action: DeliveryAction,
    now: Utc,
) -> Result<String, Fault> {
    let input = DeliveryInput::Ordered(action.into());
    let (row, output) = ledger.step(id, input, now).map_err(failed)?.ok_or_else(|| unknown(id))?;
    let (state, to) = (row.delivery.state.name(), &row.destination);
    if output == DeliveryOutput::Unfitting {
        let help = match action {
            DeliveryAction::Hold => "only a delivery that is not there yet can be held",
            DeliveryAction::Release => "only a held delivery can be released",
            DeliveryAction::Cancel => "`skyhaul deliveries again` sends it again",
            DeliveryAction::Again => {
                "the files of its product are removed; `skyhaul archive restore` brings them back"
            }
        };
        let what = format!("delivery {id} to {to} is {state}");
        return Err(Fault::configuration(what, PLACE, help));
    }
    Ok(format!("delivery {id} to {to} is {state} now"))
}

fn query(filter: Option<&str>, after: Option<&str>, limit: usize) -> Result<ItemQuery, Fault> {
    let wrong = |what: String, place: &str, help: &str| Fault::configuration(what, place, help);
    let filter = filter
        .map(|text| {
            text.parse::<Filter>().map_err(|error| {
                wrong(
                    error.to_string(),
                    "the filter",
                    "write it as CQL2 text, such as mission = 'aqua'",
                )
            })
        })
        .transpose()?;
    let after = place_of(after)?;
    Ok(ItemQuery { filter, after, limit: limit.clamp(1, PAGE_MAX) })
}

/// Where a page begins.
fn place_of(after: Option<&str>) -> Result<Option<PageToken>, Fault> {
    let help = "give what the page before ended with";
    let token = |text: &str| text.parse::<PageToken>();
    after.map(token).transpose().map_err(|error| Fault::configuration(error, "--after", help))
}

/// The destinations of products.
fn outlets(ledger: &DeliveryLedger) -> Result<Vec<OutletStatus>, Fault> {
    let outlets = ledger.outlets();
    let counts = ledger.ask(CatalogueReader::counts).map_err(failed)?;
    let shown = |destination: &ProductDestination| {
        let name = destination.name.as_str();
        let place = destination.place.to_string();
        let its = counts.iter().filter(|count| count.destination == name);
        let subscriptions = outlets.subscriptions_to(&destination.name);
        OutletStatus {
            name: name.to_owned(),
            subscriptions: subscriptions.iter().map(|one| one.name.to_string()).collect(),
            deliveries: its.map(|it| (it.state.name().to_owned(), it.count)).collect(),
            trial: ledger.trial(name).filter(|trial| trial.place == place),
            place,
        }
    };
    Ok(outlets.destinations.iter().map(shown).collect())
}

/// Tries a destination that is a folder of another node.
fn try_outlet(shared: &CentreShared, name: &str) -> Result<DestinationTrial, Fault> {
    let outlets = shared.deliveries().outlets();
    let mut its = outlets.destinations.iter().filter(|one| one.name.as_str() == name);
    let found = its.find_map(|one| Some((one, one.node()?)));
    let Some((destination, at)) = found else {
        let what = format!("the node has no destination `{name}` at another node");
        let help = "reload the node if its file has changed: systemctl reload, or SIGHUP";
        return Err(Fault::configuration(what, "the node", help));
    };
    let found = node_sink(shared, destination, at).abilities().map_err(|failure| {
        let help = "correct what it names, then try again; the node tries again by itself";
        Fault::environment(failure.sentence, format!("the destination {name}"), help)
    })?;
    let place = destination.place.to_string();
    let trial = DestinationTrial { place, at: shared.utc().to_string(), found };
    shared.deliveries().keep_trial(name, &trial);
    Ok(trial)
}

fn keep_trial(
    ledger: &DeliveryLedger,
    name: &str,
    trial: &DestinationTrial,
) -> Result<String, Fault> {
    let outlets = ledger.outlets();
    let is_it = |one: &&ProductDestination| {
        one.name.as_str() == name && one.place.to_string() == trial.place
    };
    if !outlets.destinations.iter().any(|one| is_it(&one)) {
        let what = format!("the node has no destination `{name}` in {}", trial.place);
        let help = "reload the node, its file has changed: systemctl reload, or SIGHUP";
        return Err(Fault::configuration(what, "the node", help));
    }
    ledger.keep_trial(name, trial);
    Ok(format!("kept what {name} can do"))
}

fn backfill(
    ledger: &DeliveryLedger,
    request: &BackfillRequest,
    now: Utc,
) -> Result<BackfillPage, Fault> {
    let BackfillRequest { subscription: name, from, to, after, action } = request;
    let outlets = ledger.outlets();
    let Some(subscription) = outlets.subscription(name) else {
        let what = format!("the node has no subscription `{name}` to products");
        let known: Vec<&str> = outlets.subscriptions.iter().map(|one| one.name.as_str()).collect();
        let help = match &known[..] {
            [] => "add a [[subscription]] with of = \"products\"".to_owned(),
            known => format!("name one of {}", known.join(", ")),
        };
        return Err(Fault::configuration(what, "the node", help));
    };
    let after = place_of(after.as_deref())?;
    let (from, to, action) = (from.utc(), to.utc(), *action);
    let look = Backfill { subscription, from, to, action, now };
    ledger.ask(|reader| look.page(ledger, reader, after)).map_err(failed)
}

fn search(
    ledger: &DeliveryLedger,
    products: &Path,
    query: &ItemQuery,
) -> Result<CataloguePage, Fault> {
    let page = ledger.ask(|reader| reader.search(query)).map_err(failed)?;
    let item =
        |row: &skyhaul_catalogue_io::ItemRow| stac_item(&row.item, |name| address(products, name));
    Ok(CataloguePage {
        items: page.items.iter().map(item).collect(),
        next: page.next.map(|next| next.to_string()),
    })
}

/// The address of a published file.
fn address(products: &Path, name: &str) -> String {
    let path = std::path::absolute(products).unwrap_or_else(|_| products.to_owned());
    format!("file://{}", path.join(name).display())
}
