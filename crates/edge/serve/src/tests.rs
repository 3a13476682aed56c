//! Requests to answers, over a catalogue in memory.

use crate::*;
use serde_json::{Value, json};
use skyhaul_catalogue::{Filter, Item, ItemFile, ItemForm, ItemListing, ItemState};
use skyhaul_units::Utc;
use std::sync::Arc;

/// A catalogue in memory.
struct Memory(Vec<HeldItem>);

impl ServedCatalogue for Memory {
    fn list(&mut self, listing: &ItemListing) -> Result<HeldPage, HoldingsError> {
        let order = &listing.order;
        let mut found: Vec<&HeldItem> =
            self.0.iter().filter(|held| listing.filter.takes(&held.item)).collect();
        found.sort_by(|one, other| {
            order.compare(&order.place(one.id, &one.item), &order.place(other.id, &other.item))
        });
        if let Some(after) = &listing.after {
            found.retain(|held| order.compare(after, &order.place(held.id, &held.item)).is_lt());
        }
        let behind = found.into_iter().skip(listing.skip as usize);
        let mut items: Vec<HeldItem> = behind.take(listing.limit + 1).cloned().collect();
        let has_more = items.len() > listing.limit;
        items.truncate(listing.limit);
        let last = items.last().filter(|_| has_more);
        let next = last.map(|held| order.place(held.id, &held.item));
        Ok(HeldPage { items, next })
    }

    fn count(&mut self, filter: &Filter, most: u64) -> Result<u64, HoldingsError> {
        let count = self.0.iter().filter(|held| filter.takes(&held.item)).count();
        Ok((count as u64).min(most))
    }

    fn named(&mut self, name: &str, version: u32) -> Result<Option<HeldItem>, HoldingsError> {
        let is_it = |held: &&HeldItem| held.item.name == name && held.item.version == version;
        Ok(self.0.iter().find(is_it).cloned())
    }

    fn numbered(&mut self, id: u64) -> Result<Option<HeldItem>, HoldingsError> {
        Ok(self.0.iter().find(|held| held.id == id).cloned())
    }

    fn collections(
        &mut self,
        asked: Option<&str>,
        filter: &Filter,
    ) -> Result<Vec<HeldCollection>, HoldingsError> {
        let mut found: Vec<HeldCollection> = Vec::new();
        for held in self.0.iter().filter(|held| filter.takes(&held.item)) {
            let (mission, product) = (held.item.mission.clone(), held.item.product.clone());
            let is_asked = asked.is_none_or(|asked| asked == held.item.mission);
            if is_asked
                && !found.iter().any(|known| known.mission == mission && known.product == product)
            {
                let (first, last, items) = (held.item.published, None, None);
                found.push(HeldCollection { mission, product, first, last, items });
            }
        }
        Ok(found)
    }

    fn sessions(&mut self) -> Vec<Arc<ContactSession>> {
        Vec::new()
    }
}

fn at(second: u32) -> Utc {
    Utc::from_rfc3339(&format!("2026-11-23T06:{:02}:{:02}Z", second / 60, second % 60)).unwrap()
}

fn held(number: u32) -> HeldItem {
    let file = |suffix: &str, is_metadata| ItemFile {
        name: format!("P{number}.{suffix}"),
        size: 100 + u64::from(number),
        sha256: [number as u8; 32],
        md5: number.is_multiple_of(2).then_some([number as u8; 16]),
        cksum: None,
        is_metadata,
    };
    let item = Item {
        name: format!("P{number}"),
        version: 1 + number % 2,
        form: ItemForm::Session,
        mission: if number < 20 { "aqua" } else { "terra" }.to_owned(),
        product: "modis".to_owned(),
        stations: vec!["polar".to_owned()],
        apids: vec![64],
        start: (!number.is_multiple_of(3)).then(|| at(number)),
        end: (number % 3 > 1).then(|| at(number + 10)),
        published: at(100 + number),
        packets: 7,
        missing: u64::from(number % 4),
        state: if number == 7 { ItemState::Removed } else { ItemState::Present },
        files: vec![file("CR", true), file("PDS", false)],
    };
    HeldItem { id: u64::from(number), item }
}

fn memory() -> Memory {
    Memory((1..=30).map(held).collect())
}

fn asked(request: &ServeRequest, account: Option<&ServeAccount>) -> ServeAnswer {
    let asker = Asker { account, base: "https://c.example.org", node: "centre" };
    let answer = answer(request, &ServeRoot::ALL, asker, &mut memory());
    finished(root_of(request), answer, "7F")
}

fn get(target: &str) -> ServeAnswer {
    asked(&ServeRequest::new(ServeMethod::Get, target).unwrap(), None)
}

fn post(body: &Value) -> ServeAnswer {
    let mut request = ServeRequest::new(ServeMethod::Post, "/stac/search").unwrap();
    request.body = body.to_string().into_bytes();
    asked(&request, None)
}

fn json_of(answer: &ServeAnswer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text());
    serde_json::from_str(&answer.text()).unwrap()
}

/// The target of an address.
fn target(address: &Value) -> String {
    address.as_str().unwrap().strip_prefix("https://c.example.org").unwrap().to_owned()
}

fn ids(value: &Value) -> Vec<String> {
    let features = value["features"].as_array().unwrap();
    features.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

fn next(value: &Value) -> Option<&Value> {
    value["links"].as_array().unwrap().iter().find(|link| link["rel"] == "next")
}

#[test]
fn a_file_is_found_by_product_and_name_and_nothing_else_is() {
    let found = get("/products/P2-v1/P2.PDS");
    assert_eq!((found.status, found.len()), (200, 102));
    for (target, status) in [
        ("/products/P2-v2/P2.PDS", 404),
        ("/products/P2-v01/P2.PDS", 404),
        ("/products/P2/P2.PDS", 404),
        ("/products/P2-v1/P3.PDS", 404),
        ("/products/P7-v2/P7.PDS", 410),
        ("/products/P2-v1/P2.PDS/x", 404),
        ("/other", 404),
    ] {
        assert_eq!(get(target).status, status, "{target}");
    }
    let request = ServeRequest::new(ServeMethod::Post, "/products/P2-v1/P2.PDS").unwrap();
    assert_eq!(asked(&request, None).status, 405);
}

#[test]
fn an_account_sees_what_its_filter_takes_everywhere() {
    let account = ServeAccount {
        filter: Some("mission = 'terra'".parse().unwrap()),
        ..ServeAccount::default()
    };
    let ask =
        |target: &str| asked(&ServeRequest::new(ServeMethod::Get, target).unwrap(), Some(&account));
    assert_eq!(ask("/products/P2-v1/P2.PDS").status, 404);
    assert_eq!(ask("/products/P20-v1/P20.PDS").status, 200);
    assert_eq!(ask("/stac/collections/aqua-modis").status, 404);
    assert_eq!(ask("/stac/collections/aqua-modis/items/P2-v1").status, 404);
    let all = json_of(&ask("/stac/search?limit=100&filter=mission='aqua'+OR+TRUE"));
    assert_eq!((ids(&all).len(), &all["numberMatched"]), (11, &11.into()));
    let products = json_of(&ask("/prip/odata/v1/Products?$count=true"));
    assert_eq!(products["@odata.count"], 11);
    let first = json_of(&get("/prip/odata/v1/Products?$top=1"))["value"][0]["Id"].clone();
    let target = format!("/prip/odata/v1/Products({})", first.as_str().unwrap());
    assert_eq!((get(&target).status, ask(&target).status), (200, 404));
}

#[test]
fn lists_of_products_have_links_or_json() {
    let page = get("/products/").text();
    assert!(page.contains("<a href=\"/products/P2-v1/\">P2-v1/</a>"), "{page}");
    assert!(!page.contains("P7-"), "it was removed");
    let page = get("/products/P2-v1/").text();
    assert!(page.contains("<a href=\"/products/P2-v1/P2.PDS\">P2.PDS</a>"), "{page}");
    let mut request = ServeRequest::new(ServeMethod::Get, "/products/P2-v1").unwrap();
    request.headers.insert("accept".to_owned(), "application/json".to_owned());
    let list = json_of(&asked(&request, None));
    assert_eq!(list["entries"][1]["size"], 102);
}

#[test]
fn stac_documents_lead_to_items() {
    let landing = json_of(&get("/stac"));
    for link in landing["links"].as_array().unwrap() {
        let answer = get(&target(&link["href"]));
        assert_eq!(answer.status, 200, "{link}");
    }
    let collections = json_of(&get("/stac/collections"));
    assert_eq!(collections["collections"][0]["id"], "aqua-modis");
    let items = json_of(&get("/stac/collections/terra-modis/items?limit=5"));
    assert_eq!(ids(&items), ["P30-v1", "P29-v2", "P28-v1", "P27-v2", "P26-v1"]);
    let item = json_of(&get("/stac/collections/terra-modis/items/P30-v1"));
    assert_eq!(item, items["features"][0]);
    let address = target(&item["assets"]["P30.PDS"]["href"]);
    assert_eq!(get(&address).status, 200, "{address}");
    for link in item["links"].as_array().unwrap() {
        assert_eq!(get(&target(&link["href"])).status, 200, "{link}");
    }
    assert_eq!(get("/stac/collections/aqua-modis/items/P30-v1").status, 404);
    assert_eq!(get("/stac/collections/none/items").status, 404);
}

#[test]
fn pages_follow_each_other_by_get_and_by_post() {
    let mut page = json_of(&get("/stac/search?limit=7&sortby=%2Bproperties.datetime,-id"));
    let mut by_get = ids(&page);
    while let Some(link) = next(&page) {
        page = json_of(&get(&target(&link["href"])));
        by_get.extend(ids(&page));
    }
    let sortby = serde_json::json!([
        {"field": "properties.datetime", "direction": "asc"}, {"field": "id", "direction": "desc"}
    ]);
    let mut page = json_of(&post(&serde_json::json!({"limit": 4, "sortby": sortby})));
    let mut by_post = ids(&page);
    while let Some(link) = next(&page) {
        assert_eq!(target(&link["href"]), "/stac/search");
        page = json_of(&post(&link["body"]));
        by_post.extend(ids(&page));
    }
    assert_eq!(by_get.len(), 29);
    assert_eq!(by_get, by_post);
}

#[test]
fn searches_find_what_they_say() {
    for (query, count) in [
        ("ids=P1-v2,P2-v1,P7-v2", 2),
        ("collections=terra-modis", 11),
        ("datetime=2026-11-23T06:00:08Z", 3),
        ("datetime=../2026-11-23T06:00:05Z", 4),
        ("datetime=2026-11-23T06:00:25Z/2026-11-23T06:00:26Z", 5),
        ("filter=id='P2-v1'", 1),
        ("filter=missing>2+AND+skyhaul:station='polar'", 6),
        ("filter-lang=cql2-json&filter={\"op\":\"=\",\"args\":[{\"property\":\"missing\"},3]}", 6),
        ("bbox=-180,-90,180,90", 0),
        ("bbox=170,-90,0,-170,90,9", 0),
        ("datetime=1937-01-01T12:00:27.87%2B01:00", 0),
        ("datetime=1937-01-01T12:00:27Z/..", 29),
        ("limit=1000&fields=id", 29),
    ] {
        let query = query.replace('{', "%7B").replace('}', "%7D").replace('"', "%22");
        let found = json_of(&get(&format!("/stac/search?{query}")));
        assert_eq!(found["numberMatched"], count, "{query}");
        assert_eq!(ids(&found).len(), count, "{query}");
    }
    let filter = serde_json::json!({"op": "like", "args": [{"property": "id"}, "P1_-v%"]});
    assert_eq!(json_of(&post(&serde_json::json!({"filter": filter})))["numberMatched"], 10);
    let found = json_of(&get("/stac/search?fields=properties.datetime,-type&limit=1"));
    let mut members: Vec<&String> = found["features"][0].as_object().unwrap().keys().collect();
    members.sort();
    assert_eq!(members, ["collection", "id", "properties", "stac_version"]);
}

#[test]
fn a_search_that_is_wrong_is_refused_with_a_sentence() {
    for (query, said) in [
        ("limit=0", "`limit` is a number from 1"),
        ("limit=1&limit=2", "`limit` is there twice"),
        ("colections=x", "there is no parameter `colections`"),
        ("datetime=yesterday", "`datetime` is a time"),
        ("datetime=../..", "`datetime` is a time"),
        ("bbox=1,2,3", "`bbox` is four or six numbers"),
        ("bbox=100.0,1.0,105.0,0.0", "the south comes first"),
        ("bbox=100.0,1.0,5.0,105.0,0.0,6.0", "the south comes first"),
        ("bbox=1,2,3,4&intersects=x", "not both"),
        ("filter=mision='aqua'", "there is no property `mision`"),
        ("filter=mission='aqua'&filter-lang=sql", "`filter-lang` is"),
        ("sortby=station", "has several values"),
        ("sortby=apple", "cannot be sorted by `apple`"),
        ("token=abc", "take the `next` link"),
        ("filter=mission='x';DROP", "is not expected"),
    ] {
        let answer = get(&format!("/stac/search?{query}"));
        assert_eq!(answer.status, 400, "{query}");
        assert!(answer.text().contains(said), "{query}: {}", answer.text());
    }
    let brackets = format!("/stac/search?filter={}", "(".repeat(10_000));
    assert_eq!(get(&brackets).status, 400);
    let mut request = ServeRequest::new(ServeMethod::Post, "/stac/search").unwrap();
    request.body = b"{\"limit\":".to_vec();
    assert_eq!(asked(&request, None).status, 400);
}

#[test]
fn prip_lists_products_as_its_minimal_set_of_queries_asks() {
    let value = |query: &str| json_of(&get(&format!("/prip/odata/v1/Products?{query}")));
    let names = |value: &Value| -> Vec<String> {
        let products = value["value"].as_array().unwrap();
        products.iter().map(|product| product["Name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&value("")).len(), 29);
    let first = value("$top=2&$expand=Attributes");
    assert_eq!(names(&first), ["P1-v2", "P2-v1"]);
    assert!(first.get("@odata.nextLink").is_none(), "two were asked for");
    let product = &first["value"][1];
    assert_eq!(product["Checksum"][0]["Algorithm"], "MD5");
    assert_eq!(product["ContentLength"], 102);
    assert_eq!(product["PublicationDate"], "2026-11-23T06:01:42.000000Z");
    assert_eq!(product["Attributes"][0]["Value"], "aqua");
    for (query, count) in [
        ("$filter=startswith(Name,'P1')&$top=1000", 11),
        ("$filter=startswith(Name,'P1')&$top=1000&$skip=8", 3),
        (
            "$filter=ContentDate/Start gt 2026-11-23T06:00:20.000Z and ContentDate/End lt \
          2026-11-23T06:00:30.000Z",
            3,
        ),
        (
            "$filter=PublicationDate gt 2026-11-23T06:02:00.000Z and ProductionType eq \
          OData.CSC.ProductionType'systematic_production'",
            10,
        ),
        (
            "$filter=PublicationDate gt 2026-11-23T06:02:00.000Z and ProductionType ne \
          'systematic_production'",
            0,
        ),
        ("$filter=contains(Name,'_')", 0),
        ("$filter=endswith(Name,'-v2') and EvictionDate eq null", 14),
        ("$filter=Name in ('P1-v2','P2-v1','x')", 2),
        ("$filter=not (Name eq 'P1-v2')&$top=1000", 28),
    ] {
        let found = value(&format!("{}&$count=true", query.replace(' ', "%20")));
        assert_eq!(names(&found).len(), count, "{query}");
    }
    // Regression: a product without a time of its own was neither before nor after any time.
    let count = |query: &str| {
        let query = format!("$count=true&$filter={query}").replace(' ', "%20");
        value(&query)["@odata.count"].as_u64().unwrap()
    };
    for time in ["Start", "End"] {
        let is_later = format!("ContentDate/{time} gt 2026-11-23T06:00:20Z");
        let later = count(&is_later);
        assert!((1..29).contains(&later), "{time}");
        assert_eq!(count(&format!("not ({is_later})")), 29 - later, "{time}");
    }
    assert_eq!(value("$top=0&$count=true")["@odata.count"], 29);
    let order = value("$orderby=ContentDate/Start%20desc&$top=1");
    assert_eq!(names(&order), ["P30-v1"]);
    assert_eq!(get("/prip/odata/v1/Products/$count").text(), "29");
    let target = format!("/prip/odata/v1/Products({})", product["Id"].as_str().unwrap());
    let one = json_of(&get(&target));
    assert_eq!(one["Name"], "P2-v1");
    let bytes = get(&format!("{target}/$value"));
    assert_eq!(bytes.header_of("content-disposition"), Some("attachment; filename=\"P2.PDS\""));
    assert_eq!(get(&format!("{target}/Attributes")).status, 200);
}

#[test]
fn libraries_of_odata_select_properties_and_find_products_by_their_attributes() {
    let value = |query: &str| {
        let query = query.replace(' ', "%20");
        json_of(&get(&format!("/prip/odata/v1/Products?{query}")))
    };
    for (query, count) in [
        ("$filter=Online eq true", 29),
        ("$filter=Online ne true or PublicationDate lt 2026-11-23T07:01:44%2B01:00", 3),
        (
            "$filter=Attributes/OData.CSC.StringAttribute/any(att:att/Name eq \
             'platformShortName' and att/OData.CSC.StringAttribute/Value eq 'aqua')",
            18,
        ),
        (
            "$filter=Attributes/OData.CSC.StringAttribute/any(a:a/Name eq 'station' and \
             a/Value eq 'polar') and not Attributes/OData.CSC.IntegerAttribute/any(att:att/Name \
             eq 'version' and att/OData.CSC.IntegerAttribute/Value lt 2)",
            14,
        ),
        ("$filter=Attributes/any(a:a/Name eq 'processingLevel' and a/Value eq 'L1')", 0),
    ] {
        let found = value(&format!("{query}&$count=true"));
        assert_eq!(found["value"].as_array().unwrap().len(), count, "{query}");
    }
    let selected = value("$select=Id,Name&$top=1");
    let context = "https://c.example.org/prip/odata/v1/$metadata#Products(Id,Name)";
    assert_eq!(selected["@odata.context"], context);
    assert_eq!(selected["value"][0].as_object().unwrap().len(), 2);
    assert_eq!(value("$select=*&$top=1")["value"][0], value("$top=1")["value"][0]);
    let both = value("$select=Name&$expand=Attributes&$top=1");
    let keys: Vec<&String> = both["value"][0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["Attributes", "Name"]);
    // By identifiers.
    let all = value("$select=Id")["value"].as_array().unwrap().clone();
    let id = |nth: usize| all[nth]["Id"].as_str().unwrap().to_owned();
    let one = value(&format!("$filter=Id eq {}&$select=Name&$count=true", id(3)));
    assert_eq!((&one["@odata.count"], &one["value"][0]["Name"]), (&json!(1), &json!("P4-v1")));
    let ids = format!("({},'{}',{})", id(5), id(1), id(5));
    let two = value(&format!("$filter=Id in {ids}&$expand=Attributes&$skip=1"));
    assert_eq!(two["value"][0]["Name"], "P6-v1");
    assert_eq!(two["value"].as_array().unwrap().len(), 1);
    let none = value("$filter=Id eq 536b7968-6175-8000-8000-000000000007");
    assert_eq!(none["value"], json!([]), "it was removed");
}

#[test]
fn a_poller_that_asks_for_what_came_since_misses_nothing_and_sees_nothing_twice() {
    let (mut since, mut seen) = ("2026-11-23T00:00:00.000Z".to_owned(), Vec::new());
    loop {
        let page = json_of(&get(&format!(
            "/prip/odata/v1/Products?$filter=PublicationDate%20gt%20{since}&$top=4&$orderby=\
             PublicationDate%20asc"
        )));
        let products = page["value"].as_array().unwrap();
        let Some(last) = products.last() else { break };
        since = last["PublicationDate"].as_str().unwrap().to_owned();
        seen.extend(products.iter().map(|product| product["Name"].as_str().unwrap().to_owned()));
    }
    assert_eq!(seen.len(), 29);
}

#[test]
fn odata_refuses_in_its_own_form_with_a_warning() {
    for (target, status, said) in [
        ("/prip/odata/v1/Products?$filter=Nam%20eq%20'a'", 400, "cannot be found by `Nam`"),
        ("/prip/odata/v1/Products?$filter=Name%20eq%201", 400, "compared with a text"),
        (
            "/prip/odata/v1/Products?$filter=Name%20eq%20'a'%20or%201%20eq%201",
            400,
            "cannot be found by `1`",
        ),
        ("/prip/odata/v1/Products?$filter=Name%20eq%20'%25'';DROP'", 200, ""),
        ("/prip/odata/v1/Products?$orderby=Size", 400, "cannot be found by `Size`"),
        ("/prip/odata/v1/Products?$select=Size", 400, "no property `Size`"),
        (
            "/prip/odata/v1/Products?$filter=Attributes/any(a:a/Name%20eq%20'x'%20and%20\
             a/Value%20eq%20'y')",
            400,
            "by an attribute `x`",
        ),
        (
            "/prip/odata/v1/Products?$filter=Attributes/any(a:a/Name%20eq%20'version'%20and%20\
             a/Value%20eq%20'2')",
            400,
            "`version` is compared with a number",
        ),
        ("/prip/odata/v1/Products?$filter=Online%20eq%201", 400, "with true or false"),
        ("/prip/odata/v1/Products?$top=-1", 400, "$top is a number"),
        ("/prip/odata/v1/Products?$top=1&top=2", 400, "$top is there twice"),
        ("/prip/odata/v1/Products?$apply=x", 400, "the option `$apply` is not supported"),
        ("/prip/odata/v1/Products(1)", 404, "no such product"),
        ("/prip/odata/v1/Sets", 404, "no such set"),
        ("/prip/other", 404, "/prip/odata/v1"),
    ] {
        let answer = get(target);
        assert_eq!((answer.status, answer.header_of("odata-version")), (status, Some("4.0")));
        let value: Value = serde_json::from_str(&answer.text()).unwrap();
        if status == 200 {
            continue;
        }
        let message = value["error"]["message"].as_str().unwrap();
        assert!(message.contains(said), "{target}: {message}");
        assert_eq!(value["error"]["code"], status.to_string());
        let warning = answer.header_of("warning").unwrap();
        assert!(warning.starts_with("299 skyhaul \"") && warning.ends_with('"'), "{warning}");
    }
}
