//! What a search asks for: parameters of an address, or a body of JSON.

use super::cql2_json::cql2_text;
use super::fields::ItemFields;
use crate::answer::ServeAnswer;
use crate::holdings::shown_time_is;
use crate::products::place_of;
use crate::request::{ServeMethod, ServeRequest, encoded};
use serde_json::{Map, Value, json};
use skyhaul_catalogue::{
    CompareOp, Filter, ItemOrder, ListDirection, ListPlace, OrderKey, Property, PropertyValue,
};
use skyhaul_units::Utc;

/// A search.
#[derive(Debug, Clone)]
pub struct ItemSearch {
    /// What is searched for.
    pub filter: Filter,
    /// In which order.
    pub order: ItemOrder,
    /// Behind this place.
    pub after: Option<ListPlace>,
    /// At most so many.
    pub limit: usize,
    /// What of each item is shown; all without.
    pub fields: Option<ItemFields>,
    /// The path and query of the search itself.
    pub own: String,
    next: NextPage,
}

/// How the next page is asked for.
#[derive(Debug, Clone)]
enum NextPage {
    /// At this address, with a token behind it.
    Get(String),
    /// At this address, with this body and a token.
    Post(String, Map<String, Value>),
}

/// Items of a page, if the search does not say.
const LIMIT: usize = 100;
/// Items of a page at most: about 2 MB.
const LIMIT_MAX: u64 = 1_000;
/// Items and collections that a search may name.
const NAMED_MAX: usize = 1_000;

/// Parameters that a search may have.
const KNOWN: [&str; 12] = [
    "ids",
    "collections",
    "bbox",
    "intersects",
    "datetime",
    "limit",
    "token",
    "filter",
    "filter-lang",
    "filter-crs",
    "sortby",
    "fields",
];

fn bad(what: impl AsRef<str>) -> ServeAnswer {
    ServeAnswer::problem(400, what.as_ref())
}

impl ItemSearch {
    /// The search of a request for `/stac/search`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(request: &ServeRequest) -> Result<Self, ServeAnswer> {
        let path = "/stac/search";
        if request.method != ServeMethod::Post {
            let next = NextPage::Get(path.to_owned());
            return Self::read(&members(request)?, next, own(path, request));
        }
        let body = if request.body.is_empty() { b"{}".as_slice() } else { &request.body };
        let body: Map<String, Value> = serde_json::from_slice(body)
            .map_err(|error| bad(format!("the body is no object of JSON: {error}")))?;
        let next = NextPage::Post(path.to_owned(), body.clone());
        Self::read(&body, next, path.to_owned())
    }

    /// The search of a request for the items of a collection.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_collection(request: &ServeRequest, id: &str) -> Result<Self, ServeAnswer> {
        let path = format!("/stac/collections/{}/items", encoded(id));
        let mut members = members(request)?;
        members.insert("collections".to_owned(), json!([id]));
        let own = own(&path, request);
        Self::read(&members, NextPage::Get(path), own)
    }

    fn read(
        members: &Map<String, Value>,
        next: NextPage,
        own: String,
    ) -> Result<Self, ServeAnswer> {
        if let Some(name) = members.keys().find(|name| !KNOWN.contains(&name.as_str())) {
            let name = skyhaul_units::printable(name, 64);
            return Err(bad(format!("there is no parameter `{name}` of a search")));
        }
        let order = match members.get("sortby") {
            None | Some(Value::Null) => ItemOrder::default(),
            Some(keys) => order(keys)?,
        };
        let after = match members.get("token") {
            None | Some(Value::Null) => None,
            Some(token) => Some(place_of(&order, token.as_str().unwrap_or_default())?),
        };
        let fields = members.get("fields").map(ItemFields::read).transpose().map_err(bad)?;
        let mut search = Self {
            filter: Filter::Always(true),
            order,
            after,
            limit: limit(members.get("limit"))?,
            fields,
            own,
            next,
        };
        search.filter = filter(members)?;
        // The parameters as they were read: a next page asks for the same.
        if let NextPage::Get(path) = &mut search.next {
            let kept = members.iter().filter(|(name, _)| *name != "token");
            let is_own = |name: &str| name != "collections" || path.ends_with("/search");
            let query: Vec<String> = kept
                .filter(|(name, _)| is_own(name))
                .map(|(name, value)| format!("{}={}", encoded(name), encoded(&plain(value))))
                .collect();
            *path = format!("{path}?{}", query.join("&"));
        }
        Ok(search)
    }

    /// The link to the next page.
    pub fn next_link(&self, token: &str, base: &str) -> Value {
        match &self.next {
            NextPage::Get(path) => {
                let and = if path.ends_with('?') { "" } else { "&" };
                json!({
                    "rel": "next",
                    "type": "application/geo+json",
                    "method": "GET",
                    "href": format!("{base}{path}{and}token={token}"),
                })
            }
            NextPage::Post(path, body) => {
                let mut body = body.clone();
                body.insert("token".to_owned(), json!(token));
                json!({
                    "rel": "next",
                    "type": "application/geo+json",
                    "method": "POST",
                    "href": format!("{base}{path}"),
                    "body": body,
                })
            }
        }
    }
}

/// The path and query of a request.
fn own(path: &str, request: &ServeRequest) -> String {
    let query: Vec<String> = request
        .query
        .iter()
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
        .collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{path}{mark}{}", query.join("&"))
}

/// The parameters of an address as members of JSON.
fn members(request: &ServeRequest) -> Result<Map<String, Value>, ServeAnswer> {
    let mut members = Map::new();
    for (name, value) in &request.query {
        let is_list = matches!(name.as_str(), "ids" | "collections" | "bbox" | "sortby" | "fields");
        let value = match is_list {
            true => json!(value.split(',').map(str::trim).collect::<Vec<_>>()),
            false => json!(value),
        };
        if members.insert(name.clone(), value).is_some() {
            let name = skyhaul_units::printable(name, 64);
            return Err(bad(format!("the parameter `{name}` is there twice")));
        }
    }
    Ok(members)
}

/// A member as the parameter of an address.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

fn limit(value: Option<&Value>) -> Result<usize, ServeAnswer> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(LIMIT) };
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok()).filter(|limit| *limit > 0);
    let number = number.ok_or_else(|| bad("`limit` is a number from 1; more than 1000 is 1000"))?;
    Ok(number.min(LIMIT_MAX) as usize)
}

fn names(members: &Map<String, Value>, name: &str) -> Result<Option<Vec<String>>, ServeAnswer> {
    let value = members.get(name).filter(|value| !value.is_null());
    let Some(value) = value else { return Ok(None) };
    let names: Option<Vec<String>> = value
        .as_array()
        .and_then(|names| names.iter().map(|name| Some(name.as_str()?.to_owned())).collect());
    let names = names.filter(|names| names.len() <= NAMED_MAX);
    names.map(Some).ok_or_else(|| bad(format!("`{name}` is a list of at most {NAMED_MAX} names")))
}

/// The condition of all parameters.
fn filter(members: &Map<String, Value>) -> Result<Filter, ServeAnswer> {
    let mut all = Vec::new();
    let listed = [("collections", Property::Collection), ("ids", Property::VersionedId)];
    for (name, property) in listed {
        if let Some(names) = names(members, name)?.filter(|names| !names.is_empty()) {
            all.push(Filter::In(property, names.into_iter().map(PropertyValue::Text).collect()));
        }
    }
    match (members.get("bbox"), members.get("intersects")) {
        (None, None) => {}
        (Some(_), Some(_)) => return Err(bad("give `bbox` or `intersects`, not both")),
        (Some(bbox), None) => {
            check_box(bbox)?;
            // Items have no place on the ground.
            all.push(Filter::Always(false));
        }
        (None, Some(_)) => all.push(Filter::Always(false)),
    }
    if let Some(time) = members.get("datetime").filter(|time| !time.is_null()) {
        all.push(datetime(time.as_str().unwrap_or_default()).ok_or_else(|| {
            bad("`datetime` is a time such as 2026-11-23T06:00:00Z, or two with / between them, \
                 of which one may be `..`")
        })?);
    }
    if let Some(written) = members.get("filter").filter(|filter| !filter.is_null()) {
        all.push(written_filter(written, members.get("filter-lang"))?);
    }
    Ok(match all.len() {
        0 => Filter::Always(true),
        1 => all.remove(0),
        _ => Filter::And(all),
    })
}

fn written_filter(written: &Value, language: Option<&Value>) -> Result<Filter, ServeAnswer> {
    let usual = if written.is_string() { "cql2-text" } else { "cql2-json" };
    let language = language.and_then(Value::as_str).unwrap_or(usual);
    let text = match (language, written) {
        ("cql2-text", Value::String(text)) => text.clone(),
        ("cql2-json", Value::String(text)) => {
            let value: Value = serde_json::from_str(text)
                .map_err(|error| bad(format!("the filter is no JSON: {error}")))?;
            cql2_text(&value).map_err(bad)?
        }
        ("cql2-json", value) => cql2_text(value).map_err(bad)?,
        _ => return Err(bad("`filter-lang` is `cql2-text` or `cql2-json`")),
    };
    let filter: Filter =
        text.parse().map_err(|error| bad(format!("the filter is wrong {error}")))?;
    // STAC's identifiers have the version in them.
    Ok(filter.renamed(&|property| match property {
        Property::Id => Property::VersionedId,
        other => other,
    }))
}

fn check_box(value: &Value) -> Result<(), ServeAnswer> {
    let numbers: Option<Vec<f64>> = value.as_array().and_then(|numbers| {
        numbers
            .iter()
            .map(|number| number.as_f64().or_else(|| number.as_str()?.parse().ok()))
            .collect()
    });
    let is_box = numbers.as_ref().is_some_and(|numbers: &Vec<f64>| {
        matches!(numbers.len(), 4 | 6) && numbers.iter().all(|number| number.is_finite())
    });
    is_box.then_some(()).ok_or_else(|| bad("`bbox` is four or six numbers"))?;
    let numbers = numbers.unwrap_or_default();
    let (south, north) = (numbers.get(1), numbers.get(numbers.len() / 2 + 1));
    match south > north {
        true => Err(bad("`bbox` begins north of its end: the south comes first")),
        false => Ok(()),
    }
}

/// Items whose time meets an instant or a span.
fn datetime(text: &str) -> Option<Filter> {
    let time = |text: &str| match text {
        "" | ".." => Some(None),
        text => Utc::from_rfc3339(text)
            .or_else(|| Utc::from_rfc3339(&format!("{text}T00:00:00Z")))
            .map(Some),
    };
    let (from, to) = match text.split_once('/') {
        Some((from, to)) => (time(from)?, time(to)?),
        None => {
            let at = Some(Utc::from_rfc3339(text)?);
            (at, at)
        }
    };
    if from.is_none() && to.is_none() || from.zip(to).is_some_and(|(from, to)| from > to) {
        return None;
    }
    let least = from.map(|from| shown_time_is(Property::End, CompareOp::GreaterEqual, from));
    let most = to.map(|to| shown_time_is(Property::Start, CompareOp::LessEqual, to));
    Some(Filter::And(least.into_iter().chain(most).collect()))
}

/// `+a,-b`, or a list of fields with directions.
fn order(value: &Value) -> Result<ItemOrder, ServeAnswer> {
    let keys = value.as_array().ok_or_else(|| bad("`sortby` is a list"))?;
    let key = |value: &Value| -> Result<OrderKey, ServeAnswer> {
        let (name, is_falling) = match value {
            Value::String(text) => match text.strip_prefix('-') {
                Some(name) => (name, true),
                // A plus sign in an address is a space.
                None => (text.trim_start_matches(['+', ' ']), false),
            },
            value => {
                let name = value["field"].as_str().unwrap_or_default();
                (name, value["direction"].as_str() == Some("desc"))
            }
        };
        let property = match name {
            "id" => Some(Property::VersionedId),
            name => Property::named(name),
        };
        let property = property.ok_or_else(|| {
            let name = skyhaul_units::printable(name, 64);
            bad(format!("items cannot be sorted by `{name}`; see /stac/queryables"))
        })?;
        let direction = match is_falling {
            true => ListDirection::Falling,
            false => ListDirection::Rising,
        };
        Ok(OrderKey { property, direction })
    };
    let keys = keys.iter().map(key).collect::<Result<Vec<_>, _>>()?;
    ItemOrder::new(keys).map_err(bad)
}
