//! `/stac`: STAC API 1.1 (core, collections, features, item search, filter, sort, fields).

mod cql2_json;
mod documents;
mod fields;
mod search;

use crate::answer::ServeAnswer;
use crate::holdings::{Asker, HeldCollection, HeldItem, ServedCatalogue, known};
use crate::products::token;
use crate::request::{ServeMethod, ServeRequest, encoded};
use fields::ItemFields;
use search::ItemSearch;
use serde_json::{Value, json};
use skyhaul_catalogue::{Filter, ItemListing, ItemState, stac_item};

/// Up to so many items are counted: more would delay the answer.
const COUNTED_MAX: u64 = 10_000;

/// Answers a request behind `/stac`.
///
/// # Errors
/// The answer to one that is refused.
pub fn answer(
    request: &ServeRequest,
    path: &[&str],
    asker: Asker<'_>,
    holdings: &mut dyn ServedCatalogue,
) -> Result<ServeAnswer, ServeAnswer> {
    let is_read = matches!(request.method, ServeMethod::Get | ServeMethod::Head);
    let is_search = request.method == ServeMethod::Post && path == ["search"];
    if !is_read && !is_search {
        let allow = if path == ["search"] { "GET, HEAD, POST" } else { "GET, HEAD" };
        let refused = ServeAnswer::problem(405, "this address is read with GET");
        return Err(refused.header("allow", allow));
    }
    let json = |value: &Value| Ok(ServeAnswer::json(200, value));
    match path {
        [] => json(&documents::landing(asker, &collections(asker, holdings)?)),
        ["conformance"] => json(&documents::conformance()),
        ["api"] => Ok(ServeAnswer::json_as(
            200,
            "application/vnd.oai.openapi+json;version=3.0",
            &documents::api(asker),
        )),
        ["queryables"] => Ok(queryables(&format!("{}/stac/queryables", asker.base))),
        ["collections"] => json(&documents::collections(asker, &collections(asker, holdings)?)),
        ["collections", id] => json(&documents::collection(asker, &one(id, asker, holdings)?)),
        ["collections", id, "queryables"] => {
            one(id, asker, holdings)?;
            let id = encoded(id);
            Ok(queryables(&format!("{}/stac/collections/{id}/queryables", asker.base)))
        }
        ["collections", id, "items"] => {
            one(id, asker, holdings)?;
            let search = ItemSearch::of_collection(request, id)?;
            found(&search, asker, holdings)
        }
        ["collections", collection, "items", id] => {
            let held = known(id, asker, holdings)?;
            let is_there = held.item.state == ItemState::Present;
            if held.item.collection() != *collection || !is_there {
                return Err(ServeAnswer::problem(404, "there is no such item"));
            }
            Ok(ServeAnswer::json_as(200, GEO_JSON, &item(&held, asker)))
        }
        ["search"] => found(&ItemSearch::of(request)?, asker, holdings),
        _ => Err(ServeAnswer::problem(404, "there is nothing at this address")),
    }
}

const GEO_JSON: &str = "application/geo+json";

fn queryables(address: &str) -> ServeAnswer {
    ServeAnswer::json_as(200, "application/schema+json", &documents::queryables(address))
}

fn collections(
    asker: Asker<'_>,
    holdings: &mut dyn ServedCatalogue,
) -> Result<Vec<HeldCollection>, ServeAnswer> {
    Ok(holdings.collections(None, &asker.visible(Filter::Always(true)))?)
}

fn one(
    id: &str,
    asker: Asker<'_>,
    holdings: &mut dyn ServedCatalogue,
) -> Result<HeldCollection, ServeAnswer> {
    let found = collections(asker, holdings)?.into_iter().find(|held| held.id() == id);
    found.ok_or_else(|| ServeAnswer::problem(404, "there is no such collection"))
}

/// An item, with its links.
fn item(held: &HeldItem, asker: Asker<'_>) -> Value {
    let mut value = stac_item(&held.item, |file| asker.address_of(&held.item, file));
    let [collection, id] =
        [&held.item.collection(), &held.item.versioned_id()].map(|name| encoded(name));
    let of_collection = format!("{}/stac/collections/{collection}", asker.base);
    value["links"] = json!([
        {"rel": "self", "type": GEO_JSON, "href": format!("{of_collection}/items/{id}")},
        {"rel": "collection", "type": "application/json", "href": of_collection},
        {"rel": "parent", "type": "application/json", "href": of_collection},
        {"rel": "root", "type": "application/json", "href": format!("{}/stac", asker.base)},
    ]);
    value
}

/// The answer to a search.
fn found(
    search: &ItemSearch,
    asker: Asker<'_>,
    holdings: &mut dyn ServedCatalogue,
) -> Result<ServeAnswer, ServeAnswer> {
    let filter = asker.visible(search.filter.clone());
    let listing = ItemListing {
        filter: filter.clone(),
        order: search.order.clone(),
        after: search.after.clone(),
        skip: 0,
        limit: search.limit,
    };
    let page = holdings.list(&listing)?;
    let features: Vec<Value> = page
        .items
        .iter()
        .map(|held| {
            search.fields.as_ref().map_or_else(
                || item(held, asker),
                |fields: &ItemFields| fields.of(item(held, asker)),
            )
        })
        .collect();
    let mut links = vec![
        json!({"rel": "root", "type": "application/json", "href": format!("{}/stac", asker.base)}),
        json!({"rel": "self", "type": GEO_JSON, "href": format!("{}{}", asker.base, search.own)}),
    ];
    if let Some(next) = &page.next {
        links.push(search.next_link(&token(&search.order, next), asker.base));
    }
    let mut value = json!({
        "type": "FeatureCollection",
        "features": features,
        "links": links,
        "numberReturned": page.items.len(),
    });
    let matched = holdings.count(&filter, COUNTED_MAX + 1)?;
    if matched <= COUNTED_MAX {
        value["numberMatched"] = json!(matched);
    }
    Ok(ServeAnswer::json_as(200, GEO_JSON, &value))
}
