//! The documents of the API that are not items.

use crate::holdings::{Asker, HeldCollection};
use crate::request::encoded;
use serde_json::{Value, json};
use skyhaul_catalogue::{ItemForm, Property, PropertyType};

/// The classes that the API keeps to.
const CONFORMANCE: [&str; 19] = [
    "https://api.stacspec.org/v1.0.0/core",
    "https://api.stacspec.org/v1.0.0/collections",
    "https://api.stacspec.org/v1.0.0/ogcapi-features",
    "https://api.stacspec.org/v1.0.0/item-search",
    "https://api.stacspec.org/v1.0.0/item-search#sort",
    "https://api.stacspec.org/v1.0.0/item-search#fields",
    "https://api.stacspec.org/v1.0.0/item-search#filter",
    "https://api.stacspec.org/v1.0.0/ogcapi-features#sort",
    "https://api.stacspec.org/v1.0.0/ogcapi-features#fields",
    "http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/core",
    "http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/geojson",
    "http://www.opengis.net/spec/ogcapi-features-1/1.0/conf/oas30",
    "http://www.opengis.net/spec/ogcapi-features-3/1.0/conf/filter",
    "http://www.opengis.net/spec/ogcapi-features-3/1.0/conf/features-filter",
    "http://www.opengis.net/spec/ogcapi-features-3/1.0/conf/queryables",
    "http://www.opengis.net/spec/cql2/1.0/conf/cql2-text",
    "http://www.opengis.net/spec/cql2/1.0/conf/cql2-json",
    "http://www.opengis.net/spec/cql2/1.0/conf/basic-cql2",
    "http://www.opengis.net/spec/cql2/1.0/conf/advanced-comparison-operators",
];

const STAC_VERSION: &str = "1.1.0";
const JSON: &str = "application/json";
const GEO_JSON: &str = "application/geo+json";
const QUERYABLES: &str = "http://www.opengis.net/def/rel/ogc/1.0/queryables";

/// `/stac`.
pub fn landing(asker: Asker<'_>, collections: &[HeldCollection]) -> Value {
    let base = format!("{}/stac", asker.base);
    let search = format!("{base}/search");
    let api = "application/vnd.oai.openapi+json;version=3.0";
    let mut links = vec![
        json!({"rel": "self", "type": JSON, "href": base}),
        json!({"rel": "root", "type": JSON, "href": base}),
        json!({"rel": "service-desc", "type": api, "href": format!("{base}/api")}),
        json!({"rel": "conformance", "type": JSON, "href": format!("{base}/conformance")}),
        json!({"rel": "data", "type": JSON, "href": format!("{base}/collections")}),
        json!({"rel": "search", "type": GEO_JSON, "method": "GET", "href": search}),
        json!({"rel": "search", "type": GEO_JSON, "method": "POST", "href": search}),
        json!({"rel": QUERYABLES, "type": "application/schema+json",
            "href": format!("{base}/queryables")}),
    ];
    links.extend(collections.iter().map(|held| {
        let id = held.id();
        let href = format!("{base}/collections/{}", encoded(&id));
        json!({"rel": "child", "type": JSON, "title": id, "href": href})
    }));
    json!({
        "type": "Catalog",
        "stac_version": STAC_VERSION,
        "id": asker.node,
        "title": format!("Products of {}", asker.node),
        "description": format!("Level-0 products that the node {} has published.", asker.node),
        "conformsTo": CONFORMANCE,
        "links": links,
    })
}

/// `/stac/conformance`.
pub fn conformance() -> Value {
    json!({"conformsTo": CONFORMANCE})
}

/// `/stac/collections`.
pub fn collections(asker: Asker<'_>, all: &[HeldCollection]) -> Value {
    let base = format!("{}/stac", asker.base);
    json!({
        "collections": all.iter().map(|held| collection(asker, held)).collect::<Vec<_>>(),
        "links": [
            {"rel": "self", "type": JSON, "href": format!("{base}/collections")},
            {"rel": "root", "type": JSON, "href": base},
        ],
        "numberReturned": all.len(),
    })
}

/// `/stac/collections/ID`.
pub fn collection(asker: Asker<'_>, held: &HeldCollection) -> Value {
    let (id, base) = (held.id(), format!("{}/stac", asker.base));
    let own = format!("{base}/collections/{}", encoded(&id));
    let mut value = json!({
        "type": "Collection",
        "stac_version": STAC_VERSION,
        "stac_extensions": [],
        "id": id,
        "title": format!("{} of {}", held.product, held.mission),
        "description": format!("Level-0 products {} of {}.", held.product, held.mission),
        "license": "other",
        "extent": {
            // Where a product looks at is not known before it is processed further.
            "spatial": {"bbox": [[-180.0, -90.0, 180.0, 90.0]]},
            "temporal": {"interval": [[held.first, held.last]]},
        },
        "summaries": {"platform": [held.mission], "product:type": [held.product]},
        "links": [
            {"rel": "self", "type": JSON, "href": own},
            {"rel": "root", "type": JSON, "href": base},
            {"rel": "parent", "type": JSON, "href": base},
            {"rel": "items", "type": GEO_JSON, "href": format!("{own}/items")},
            {"rel": QUERYABLES, "type": "application/schema+json",
                "href": format!("{own}/queryables")},
        ],
    });
    if let Some(items) = held.items {
        value["skyhaul:items"] = json!(items);
    }
    value
}

/// `/stac/queryables`: a schema of what filters and orders name.
pub fn queryables(address: &str) -> Value {
    let of_type = |property: Property| match property.of_type() {
        PropertyType::Text => json!({"type": "string"}),
        PropertyType::Number => json!({"type": "number"}),
        PropertyType::Time => json!({"type": "string", "format": "date-time"}),
    };
    let shown = Property::ALL.into_iter().filter(|property| *property != Property::VersionedId);
    let mut properties: serde_json::Map<String, Value> =
        shown.map(|property| (property.name().to_owned(), of_type(property))).collect();
    properties["id"] = json!({"type": "string", "description": "NAME-v2, with the version"});
    properties["kind"] = json!({"type": "string", "enum": ItemForm::ALL.map(ItemForm::name)});
    for (name, property) in [("platform", Property::Mission), ("datetime", Property::Start)] {
        properties.insert(name.to_owned(), of_type(property));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": address,
        "type": "object",
        "title": "What filters and orders of items name",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// `/stac/api`: the paths, for programs that look for them.
pub fn api(asker: Asker<'_>) -> Value {
    let get =
        |what: &str| json!({"get": {"summary": what, "responses": {"200": {"description": what}}}});
    let mut paths = serde_json::Map::new();
    for (path, what) in [
        ("/", "The landing page"),
        ("/conformance", "The classes that the API keeps to"),
        ("/queryables", "What filters name"),
        ("/collections", "The collections"),
        ("/collections/{collectionId}", "A collection"),
        ("/collections/{collectionId}/queryables", "What filters name"),
        ("/collections/{collectionId}/items", "The items of a collection"),
        ("/collections/{collectionId}/items/{itemId}", "An item"),
        ("/search", "Items"),
    ] {
        paths.insert(path.to_owned(), get(what));
    }
    paths["/search"]["post"] = paths["/search"]["get"].clone();
    json!({
        "openapi": "3.0.3",
        "info": {"title": format!("Products of {}", asker.node), "version": STAC_VERSION},
        "servers": [{"url": format!("{}/stac", asker.base)}],
        "paths": paths,
    })
}
