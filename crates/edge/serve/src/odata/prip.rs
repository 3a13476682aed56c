//! `/prip/odata/v1`: products as the Production Interface (PRIP, ESA EOPG-GS) has them.
//!
//! A product is an item of the catalogue. Its `$value` is its first file of data; all of its files
//! are in its attributes, with their addresses.

use super::filter::{ODataFilter, ODataValue, TextFunction};
use super::identifier::{number_of, uuid_of};
use super::json_answer;
use super::query::{ODataOrder, ODataQuery};
use crate::answer::ServeAnswer;
use crate::file_answer::{file_answer, hex};
use crate::holdings::{Asker, HeldItem, ServedCatalogue, shown_time_is};
use crate::products::{place_of, token};
use crate::request::{ServeMethod, ServeRequest, encoded};
use serde_json::{Value, json};
use skyhaul_catalogue::{
    CompareOp, Filter, Item, ItemFile, ItemListing, ItemOrder, ItemState, Like, ListDirection,
    OrderKey, Property, PropertyType, PropertyValue,
};
use skyhaul_units::Utc;
use std::collections::BTreeSet;

/// Products of a page: as many as pollers ask for.
const PAGE: u64 = 1_000;
const ROOT: &str = "/prip/odata/v1";
/// All products come from the acquisition chain.
const PRODUCTION_TYPE: &str = "systematic_production";
const PROCESSING_LEVEL: &str = "L0";

fn bad(what: impl AsRef<str>) -> ServeAnswer {
    ServeAnswer::problem(400, what.as_ref())
}

/// Answers a request behind `/prip`.
///
/// # Errors
/// The answer to one that is refused.
pub fn answer(
    request: &ServeRequest,
    path: &[&str],
    asker: Asker<'_>,
    holdings: &mut dyn ServedCatalogue,
) -> Result<ServeAnswer, ServeAnswer> {
    if !matches!(request.method, ServeMethod::Get | ServeMethod::Head) {
        let refused = ServeAnswer::problem(405, "products are read with GET");
        return Err(refused.header("allow", "GET, HEAD"));
    }
    let ["odata", "v1", rest @ ..] = path else {
        return Err(ServeAnswer::problem(404, "the service is at /prip/odata/v1"));
    };
    match rest {
        [] => Ok(json_answer(&json!({
            "@odata.context": format!("{}{ROOT}/$metadata", asker.base),
            "value": [{"name": "Products", "kind": "EntitySet", "url": "Products"}],
        }))),
        ["$metadata"] => Ok(metadata()),
        ["Products"] => list(&ODataQuery::of(request).map_err(bad)?, request, asker, holdings),
        ["Products", "$count"] => {
            let query = ODataQuery::of(request).map_err(bad)?;
            let filter = asker.visible(query.filter.as_ref().map_or(Ok(ALL), filter_of)?);
            let count = holdings.count(&filter, u64::MAX)?;
            let mut answer = ServeAnswer::empty(200).header("content-type", "text/plain");
            answer.body = crate::answer::AnswerBody::Bytes(count.to_string().into());
            Ok(answer)
        }
        [entity, rest @ ..] => one(request, entity, rest, Found { asker, holdings }),
    }
}

const ALL: Filter = Filter::Always(true);

/// Where products are looked for.
struct Found<'a> {
    asker: Asker<'a>,
    holdings: &'a mut dyn ServedCatalogue,
}

/// What is behind `Products(ID)`.
fn one(
    request: &ServeRequest,
    entity: &str,
    rest: &[&str],
    found: Found<'_>,
) -> Result<ServeAnswer, ServeAnswer> {
    let nothing = || ServeAnswer::problem(404, "there is no such product");
    let id = entity.strip_prefix("Products(").and_then(|rest| rest.strip_suffix(')'));
    let id = id.ok_or_else(|| ServeAnswer::problem(404, "there is no such set; see Products"))?;
    // Some clients put the identifier in apostrophes.
    let number = number_of(id.trim_matches('\'')).ok_or_else(nothing)?;
    let held = found.holdings.numbered(number)?.ok_or_else(nothing)?;
    if !found.asker.may_know(&held.item) || held.item.state != ItemState::Present {
        return Err(nothing());
    }
    match rest {
        [] => {
            let query = ODataQuery::of(request).map_err(bad)?;
            let value = product(&held, found.asker, expands(&query)?);
            let mut value = query.selected(value).map_err(bad)?;
            let set = query.context_of("Products");
            value["@odata.context"] = json!(context(found.asker, &format!("{set}/$entity")));
            Ok(json_answer(&value))
        }
        ["$value"] => {
            let file = value_of(&held.item).ok_or_else(nothing)?;
            Ok(file_answer(request, file, held.item.published))
        }
        ["Attributes"] => Ok(json_answer(&json!({
            "@odata.context": context(found.asker, "Attributes"),
            "value": attributes(&held.item, found.asker),
        }))),
        _ => Err(ServeAnswer::problem(404, "a product has $value and Attributes")),
    }
}

fn context(asker: Asker<'_>, what: &str) -> String {
    format!("{}{ROOT}/$metadata#{what}", asker.base)
}

/// Whether attributes are shown within a product.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expanded {
    Nothing,
    Attributes,
}

fn expands(query: &ODataQuery) -> Result<Expanded, ServeAnswer> {
    match query.expand.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Ok(Expanded::Nothing),
        ["Attributes"] => Ok(Expanded::Attributes),
        _ => Err(bad("$expand of a product is Attributes")),
    }
}

fn list(
    query: &ODataQuery,
    request: &ServeRequest,
    asker: Asker<'_>,
    holdings: &mut dyn ServedCatalogue,
) -> Result<ServeAnswer, ServeAnswer> {
    if let Some(identifiers) = query.filter.as_ref().and_then(wanted_ids) {
        return chosen(query, &identifiers, asker, holdings);
    }
    let expanded = expands(query)?;
    let order = order_of(&query.order)?;
    let filter = asker.visible(query.filter.as_ref().map_or(Ok(ALL), filter_of)?);
    let wanted = query.top.unwrap_or(u64::MAX);
    let limit = wanted.min(PAGE);
    let after = query.skip_token.as_deref().map(|token| place_of(&order, token)).transpose()?;
    // A further page has skipped already.
    let skip = if after.is_some() { 0 } else { query.skip };
    let listing = ItemListing {
        filter: filter.clone(),
        order: order.clone(),
        after,
        skip,
        limit: limit as usize,
    };
    let page = match limit {
        0 => crate::holdings::HeldPage { items: Vec::new(), next: None },
        _ => holdings.list(&listing)?,
    };
    let products = page.items.iter().map(|held| query.selected(product(held, asker, expanded)));
    let products: Vec<Value> = products.collect::<Result<_, _>>().map_err(bad)?;
    let set = context(asker, &query.context_of("Products"));
    let mut value = json!({"@odata.context": set, "value": products});
    if query.is_counted {
        value["@odata.count"] = json!(holdings.count(&filter, u64::MAX)?);
    }
    // Who asks for ten gets no address of the eleventh.
    if let Some(next) = page.next.filter(|_| wanted > limit) {
        let left = query.top.map(|top| format!("$top={}", top - limit));
        let kept = request.query.iter().filter(|(name, _)| {
            !["top", "skip", "skiptoken"].contains(&name.trim_start_matches('$'))
        });
        let options: Vec<String> = kept
            .map(|(name, value)| format!("${}={}", name.trim_start_matches('$'), encoded(value)))
            .chain(left)
            .chain([format!("$skiptoken={}", token(&order, &next))])
            .collect();
        let address = format!("{}{ROOT}/Products?{}", asker.base, options.join("&"));
        value["@odata.nextLink"] = json!(address);
    }
    Ok(json_answer(&value))
}

/// The identifiers of a filter that asks for nothing else.
fn wanted_ids(filter: &ODataFilter) -> Option<Vec<&str>> {
    let values = match filter {
        ODataFilter::Compare(path, CompareOp::Equal, value) if path == "Id" => {
            core::slice::from_ref(value)
        }
        ODataFilter::In(path, values) if path == "Id" => &values[..],
        _ => return None,
    };
    let texts = values.iter().map(|value| match value {
        ODataValue::Uuid(text) | ODataValue::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Those of these products that are there, in the order of their numbers.
fn chosen(
    query: &ODataQuery,
    identifiers: &[&str],
    asker: Asker<'_>,
    holdings: &mut dyn ServedCatalogue,
) -> Result<ServeAnswer, ServeAnswer> {
    let expanded = expands(query)?;
    let numbers: BTreeSet<u64> = identifiers.iter().filter_map(|id| number_of(id)).collect();
    let mut found = Vec::new();
    for number in numbers {
        let held = holdings.numbered(number)?;
        let is_there =
            |held: &HeldItem| asker.may_know(&held.item) && held.item.state == ItemState::Present;
        if let Some(held) = held.filter(is_there) {
            found.push(query.selected(product(&held, asker, expanded)).map_err(bad)?);
        }
    }
    let count = found.len();
    let bounded = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let top = bounded(query.top.unwrap_or(u64::MAX));
    let shown: Vec<Value> = found.into_iter().skip(bounded(query.skip)).take(top).collect();
    let set = context(asker, &query.context_of("Products"));
    let mut value = json!({"@odata.context": set, "value": shown});
    if query.is_counted {
        value["@odata.count"] = json!(count);
    }
    Ok(json_answer(&value))
}

/// The file that a product stands for.
fn value_of(item: &Item) -> Option<&ItemFile> {
    item.files.iter().find(|file| !file.is_metadata).or(item.files.first())
}

fn product(held: &HeldItem, asker: Asker<'_>, expanded: Expanded) -> Value {
    let item = &held.item;
    let file = value_of(item);
    let published = item.published.to_string();
    let checksum = |kind: &str, value: String| {
        let date = &published;
        json!({"Algorithm": kind, "Value": value, "ChecksumDate": date})
    };
    let mut checksums = Vec::new();
    if let Some(file) = file {
        checksums.extend(file.md5.map(|md5| checksum("MD5", hex(&md5))));
        checksums.push(checksum("SHA256", hex(&file.sha256)));
    }
    let (start, end) = span(item);
    let mut value = json!({
        "Id": uuid_of(held.id),
        "Name": item.versioned_id(),
        "ContentType": "application/octet-stream",
        "ContentLength": file.map_or(0, |file| file.size),
        // What is not is in no list.
        "Online": true,
        "OriginDate": end.to_string(),
        "PublicationDate": published,
        "EvictionDate": null,
        "Checksum": checksums,
        "ContentDate": {"Start": start.to_string(), "End": end.to_string()},
        "ProductionType": PRODUCTION_TYPE,
        "Footprint": null,
        "GeoFootprint": null,
    });
    if expanded == Expanded::Attributes {
        value["Attributes"] = attributes(item, asker);
    }
    value
}

/// The first and the last time of an item.
fn span(item: &Item) -> (Utc, Utc) {
    let start = item.start.or(item.end).unwrap_or(item.published);
    (start, item.end.or(item.start).unwrap_or(item.published))
}

fn attributes(item: &Item, asker: Asker<'_>) -> Value {
    let of_type = |kind: &str, name: &str, value: Value| {
        json!({
            "@odata.type": format!("#OData.CSC.{kind}Attribute"),
            "Name": name,
            "ValueType": kind,
            "Value": value,
        })
    };
    let text = |name: &str, value: &str| of_type("String", name, json!(value));
    let number = |name: &str, value: u64| of_type("Integer", name, json!(value));
    let mut all = vec![
        text("platformShortName", &item.mission),
        text("productType", &item.product),
        text("processingLevel", PROCESSING_LEVEL),
        text("kind", item.form.name()),
        text("station", &item.stations.join(",")),
        number("version", u64::from(item.version)),
        number("packets", item.packets),
        number("missingPackets", item.missing),
    ];
    let addresses = item.files.iter().map(|file| text("file", &asker.address_of(item, &file.name)));
    all.extend(addresses);
    Value::Array(all)
}

/// What a property of a product is in the catalogue.
enum Named {
    /// One of its properties.
    Of(Property),
    /// The same text for all products.
    Always(&'static str),
    /// True, for all products.
    True,
    /// Nothing, for all products.
    Nothing,
}

fn named(path: &str) -> Result<Named, ServeAnswer> {
    Ok(match path {
        "Name" => Named::Of(Property::VersionedId),
        "PublicationDate" => Named::Of(Property::Published),
        "ContentDate/Start" => Named::Of(Property::Start),
        "ContentDate/End" | "OriginDate" => Named::Of(Property::End),
        "ContentType" => Named::Always("application/octet-stream"),
        "ProductionType" => Named::Always(PRODUCTION_TYPE),
        "Online" => Named::True,
        "EvictionDate" | "Footprint" | "GeoFootprint" => Named::Nothing,
        other => {
            let other = skyhaul_units::printable(other, 64);
            return Err(bad(format!(
                "products cannot be found by `{other}`; use Name, PublicationDate, OriginDate, \
                 ContentDate/Start, ContentDate/End, ContentType, ProductionType, Online or \
                 EvictionDate, or Id alone"
            )));
        }
    })
}

/// The same of an attribute.
fn attribute(name: &str) -> Result<Named, ServeAnswer> {
    Ok(match name {
        "platformShortName" => Named::Of(Property::Mission),
        "productType" => Named::Of(Property::Product),
        "processingLevel" => Named::Always(PROCESSING_LEVEL),
        "kind" => Named::Of(Property::Kind),
        "station" => Named::Of(Property::Station),
        "version" => Named::Of(Property::Version),
        "missingPackets" => Named::Of(Property::Missing),
        other => {
            let other = skyhaul_units::printable(other, 64);
            return Err(bad(format!(
                "products cannot be found by an attribute `{other}`; use platformShortName, \
                 productType, processingLevel, kind, station, version or missingPackets"
            )));
        }
    })
}

fn order_of(keys: &[ODataOrder]) -> Result<ItemOrder, ServeAnswer> {
    let key = |key: &ODataOrder| match named(&key.path)? {
        Named::Of(property) => Ok(Some(OrderKey { property, direction: key.direction })),
        Named::Always(_) | Named::True | Named::Nothing => Ok(None),
    };
    let keys: Vec<Option<OrderKey>> = keys.iter().map(key).collect::<Result<_, ServeAnswer>>()?;
    let mut keys: Vec<OrderKey> = keys.into_iter().flatten().collect();
    if keys.is_empty() {
        let direction = ListDirection::Rising;
        keys.push(OrderKey { property: Property::Published, direction });
    }
    ItemOrder::new(keys).map_err(bad)
}

/// The filter of the catalogue. Texts and times go into it as values, never as a part of a text
/// that is read again.
fn filter_of(filter: &ODataFilter) -> Result<Filter, ServeAnswer> {
    let each = |filters: &[ODataFilter]| filters.iter().map(filter_of).collect::<Result<_, _>>();
    Ok(match filter {
        ODataFilter::And(all) => Filter::And(each(all)?),
        ODataFilter::Or(any) => Filter::Or(each(any)?),
        ODataFilter::Not(inner) => Filter::Not(Box::new(filter_of(inner)?)),
        ODataFilter::Compare(path, op, value) => compare(named(path)?, path, *op, value)?,
        ODataFilter::Attribute(name, op, value) => compare(attribute(name)?, name, *op, value)?,
        ODataFilter::In(path, values) => {
            let equals = |value| compare(named(path)?, path, CompareOp::Equal, value);
            let any = values.iter().map(equals);
            Filter::Or(any.collect::<Result<_, _>>()?)
        }
        ODataFilter::Function(function, path, text) => {
            let like = match function {
                TextFunction::Begins => Like::beginning(text),
                TextFunction::Ends => Like::ending(text),
                TextFunction::Contains => Like::containing(text),
            };
            match named(path)? {
                Named::Of(property) if property.of_type() == PropertyType::Text => {
                    Filter::Like(property, like)
                }
                Named::Always(same) => Filter::Always(like.matches(same)),
                Named::Of(_) | Named::True | Named::Nothing => {
                    return Err(bad(format!("`{path}` is no text")));
                }
            }
        }
    })
}

fn compare(
    what: Named,
    path: &str,
    op: CompareOp,
    value: &ODataValue,
) -> Result<Filter, ServeAnswer> {
    let refuse = |wanted: &str| {
        let path = skyhaul_units::printable(path, 64);
        Err(bad(format!("`{path}` is compared with {wanted}")))
    };
    let is_null = *value == ODataValue::Null;
    let null = |filter: Filter| match op {
        CompareOp::Equal => Ok(filter),
        CompareOp::NotEqual => Ok(Filter::Not(Box::new(filter))),
        _ => refuse("null by eq and ne alone"),
    };
    match (what, value) {
        // The times of a product are always there: see `span`.
        (Named::Of(_) | Named::Always(_) | Named::True, ODataValue::Null) => {
            null(Filter::Always(false))
        }
        (Named::Nothing, _) if is_null => null(Filter::Always(true)),
        // Nothing compares with nothing but null.
        (Named::Nothing, _) => Ok(Filter::Always(op == CompareOp::NotEqual)),
        (Named::Always(same), ODataValue::Text(text)) => {
            Ok(Filter::Always(op.holds(same.cmp(text.as_str()))))
        }
        (Named::Always(_), _) => refuse("a text in apostrophes"),
        (Named::True, ODataValue::Bool(wanted)) => Ok(Filter::Always(op.holds(true.cmp(wanted)))),
        (Named::True, _) => refuse("true or false"),
        (Named::Of(property), value) => match (property.of_type(), value) {
            (PropertyType::Text, ODataValue::Text(text)) => {
                Ok(Filter::Compare(property, op, PropertyValue::Text(text.clone())))
            }
            (PropertyType::Time, ODataValue::Time(time)) => Ok(shown_time_is(property, op, *time)),
            (PropertyType::Number, ODataValue::Number(number)) => {
                Ok(Filter::Compare(property, op, PropertyValue::Number(*number)))
            }
            (PropertyType::Time, _) => refuse("a time such as 2026-11-23T06:00:00.000Z"),
            (PropertyType::Number, _) => refuse("a number"),
            (PropertyType::Text, _) => refuse("a text in apostrophes"),
        },
    }
}

/// The schema (OData CSDL), as far as clients read it.
fn metadata() -> ServeAnswer {
    let mut answer = ServeAnswer::empty(200).header("content-type", "application/xml");
    answer.body = crate::answer::AnswerBody::Bytes(METADATA.into());
    answer
}

const METADATA: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<edmx:Edmx Version="4.0" xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx">
<edmx:DataServices><Schema Namespace="OData.CSC" xmlns="http://docs.oasis-open.org/odata/ns/edm">
<EnumType Name="ProductionType">
<Member Name="systematic_production" Value="0"/>
<Member Name="on_demand_default" Value="1"/>
<Member Name="on_demand_non_default" Value="2"/>
</EnumType>
<ComplexType Name="Checksum">
<Property Name="Algorithm" Type="Edm.String" Nullable="false"/>
<Property Name="Value" Type="Edm.String" Nullable="false"/>
<Property Name="ChecksumDate" Type="Edm.DateTimeOffset" Precision="6"/>
</ComplexType>
<ComplexType Name="TimeRange">
<Property Name="Start" Type="Edm.DateTimeOffset" Precision="6"/>
<Property Name="End" Type="Edm.DateTimeOffset" Precision="6"/>
</ComplexType>
<EntityType Name="Attribute"><Key><PropertyRef Name="Name"/></Key>
<Property Name="Name" Type="Edm.String" Nullable="false"/>
<Property Name="ValueType" Type="Edm.String" Nullable="false"/>
</EntityType>
<EntityType Name="StringAttribute" BaseType="OData.CSC.Attribute">
<Property Name="Value" Type="Edm.String"/>
</EntityType>
<EntityType Name="IntegerAttribute" BaseType="OData.CSC.Attribute">
<Property Name="Value" Type="Edm.Int64"/>
</EntityType>
<EntityType Name="Product" HasStream="true"><Key><PropertyRef Name="Id"/></Key>
<Property Name="Id" Type="Edm.Guid" Nullable="false"/>
<Property Name="Name" Type="Edm.String" Nullable="false"/>
<Property Name="ContentType" Type="Edm.String" Nullable="false"/>
<Property Name="ContentLength" Type="Edm.Int64" Nullable="false"/>
<Property Name="Online" Type="Edm.Boolean" Nullable="false"/>
<Property Name="OriginDate" Type="Edm.DateTimeOffset" Precision="6"/>
<Property Name="PublicationDate" Type="Edm.DateTimeOffset" Precision="6" Nullable="false"/>
<Property Name="EvictionDate" Type="Edm.DateTimeOffset" Precision="6"/>
<Property Name="Checksum" Type="Collection(OData.CSC.Checksum)" Nullable="false"/>
<Property Name="ContentDate" Type="OData.CSC.TimeRange"/>
<Property Name="ProductionType" Type="OData.CSC.ProductionType"/>
<Property Name="Footprint" Type="Edm.GeographyPolygon"/>
<Property Name="GeoFootprint" Type="Edm.Geography"/>
<NavigationProperty Name="Attributes" Type="Collection(OData.CSC.Attribute)" ContainsTarget="true"/>
</EntityType>
<EntityContainer Name="Container"><EntitySet Name="Products" EntityType="OData.CSC.Product"/>
</EntityContainer>
</Schema></edmx:DataServices>
</edmx:Edmx>
"#;
