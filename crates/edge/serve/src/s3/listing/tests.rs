//! Pages have the keys of a bucket once and in order, whatever the prefix, the delimiter and the
//! size of the pages.

use super::*;
use crate::contact_session::ContactSession;
use crate::holdings::{HeldCollection, HeldPage};
use crate::request::ServeMethod;
use proptest::prelude::*;
use skyhaul_catalogue::{Item, ItemForm, ItemState};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Items in memory.
struct Memory(Vec<HeldItem>);

impl ServedCatalogue for Memory {
    fn list(&mut self, listing: &ItemListing) -> Result<HeldPage, HoldingsError> {
        let order = &listing.order;
        let mut found: Vec<&HeldItem> =
            self.0.iter().filter(|held| listing.filter.takes(&held.item)).collect();
        found.sort_by(|one, other| {
            order.compare(&order.place(one.id, &one.item), &order.place(other.id, &other.item))
        });
        let has_more = found.len() > listing.limit;
        let items: Vec<HeldItem> = found.into_iter().take(listing.limit).cloned().collect();
        let last = items.last().filter(|_| has_more);
        let next = last.map(|held| order.place(held.id, &held.item));
        Ok(HeldPage { items, next })
    }
    fn count(&mut self, _: &Filter, _: u64) -> Result<u64, HoldingsError> {
        Ok(0)
    }
    fn named(&mut self, _: &str, _: u32) -> Result<Option<HeldItem>, HoldingsError> {
        Ok(None)
    }
    fn numbered(&mut self, _: u64) -> Result<Option<HeldItem>, HoldingsError> {
        Ok(None)
    }
    fn collections(
        &mut self,
        _: Option<&str>,
        _: &Filter,
    ) -> Result<Vec<HeldCollection>, HoldingsError> {
        Ok(Vec::new())
    }
    fn sessions(&mut self) -> Vec<Arc<ContactSession>> {
        Vec::new()
    }
}

const PRODUCTS: [&str; 4] = ["imager", "imager-x", "im", "ädn"];

fn held(number: u32) -> HeldItem {
    let file = |name: String| ItemFile {
        name,
        size: 1,
        sha256: [number as u8; 32],
        md5: number.is_multiple_of(2).then_some([number as u8; 16]),
        cksum: None,
        is_metadata: false,
    };
    let item = Item {
        name: format!("{}-{}", ["p", "P", "q&<"][number as usize % 3], number / 2),
        version: 1 + number % 2,
        form: ItemForm::Session,
        mission: "aqua".to_owned(),
        product: PRODUCTS[number as usize % 4].to_owned(),
        stations: Vec::new(),
        apids: Vec::new(),
        start: None,
        end: None,
        published: Utc::from_micros(i64::from(number)),
        packets: 1,
        missing: 0,
        state: if number == 9 { ItemState::Removed } else { ItemState::Present },
        files: (0..1 + number % 3).map(|place| file(format!("{}f-{place}", 2 - place))).collect(),
    };
    HeldItem { id: u64::from(number), item }
}

fn keys(memory: &Memory) -> Vec<String> {
    let present = memory.0.iter().filter(|held| held.item.state == ItemState::Present);
    let mut keys: Vec<String> = present
        .flat_map(|held| {
            let (product, id) = (held.item.product.clone(), held.item.versioned_id());
            held.item.files.iter().map(move |file| format!("{product}/{id}/{}", file.name))
        })
        .collect();
    keys.sort();
    keys
}

/// What a bucket has below a prefix, by the definition of S3.
fn entries(keys: &[String], prefix: &str, delimiter: &str) -> Vec<String> {
    let shown = |key: &String| {
        let rest = key.strip_prefix(prefix)?;
        let end = rest.find(delimiter).filter(|_| !delimiter.is_empty());
        Some(end.map_or_else(
            || key.clone(),
            |end| format!("{prefix}{}", &rest[..end + delimiter.len()]),
        ))
    };
    let mut all: Vec<String> = keys.iter().filter_map(shown).collect();
    all.dedup();
    all
}

fn between<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    text.split(&open[..]).skip(1).filter_map(|rest| Some(rest.split_once(&close[..])?.0)).collect()
}

fn page(memory: &mut Memory, query: &[(&str, &str)]) -> String {
    let mut request = ServeRequest::new(ServeMethod::Get, "/aqua").unwrap();
    request.query =
        query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let asker = Asker { account: None, base: "https://c", node: "c" };
    let listing = ObjectListing::of(&request).unwrap();
    let products = PRODUCTS.map(str::to_owned);
    listing.answer("aqua", &products, asker, memory).unwrap().text()
}

/// The entries of a page in their order, decoded.
fn shown(text: &str) -> Vec<String> {
    let mut all = between(text, "Key");
    all.extend(text.split("<CommonPrefixes>").skip(1).flat_map(|part| between(part, "Prefix")));
    let mut all: Vec<String> = all
        .into_iter()
        .map(|key| ServeRequest::new(ServeMethod::Get, &format!("/?x={key}")).unwrap().query)
        .map(|query| query[0].1.clone())
        .collect();
    all.sort();
    all
}

fn walked(memory: &mut Memory, second: &str, of: [&str; 3], more: &mut u32) -> Vec<String> {
    let [prefix, delimiter, most] = of;
    let (mut all, mut place) = (Vec::new(), String::new());
    loop {
        let form = if second.is_empty() { ("x", "") } else { ("list-type", second) };
        let next = if second.is_empty() { "marker" } else { "continuation-token" };
        let query = [
            form,
            ("prefix", prefix),
            ("delimiter", delimiter),
            ("max-keys", most),
            ("encoding-type", "url"),
            (next, &place),
        ];
        let text = page(memory, &query);
        all.extend(shown(&text));
        let name = if second.is_empty() { "NextMarker" } else { "NextContinuationToken" };
        let Some(token) = between(&text, name).first().copied() else { return all };
        let decoded = ServeRequest::new(ServeMethod::Get, &format!("/?x={token}")).unwrap();
        place.clone_from(&decoded.query[0].1);
        // Others come meanwhile.
        if *more > 0 {
            *more -= 1;
            memory.0.push(held(100 + *more));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn pages_have_what_the_bucket_has_once(
        prefix in prop_oneof![
            Just(""), Just("im"), Just("imager"), Just("imager/"), Just("imager/p-"), Just("im/"),
            Just("imager-x/P-3-v2/"), Just("imager-x/P-3-v2/2f"), Just("none"), Just("ädn/q&<-1"),
        ],
        delimiter in prop_oneof![Just(""), Just("/"), Just("-"), Just("v"), Just("/p")],
        most in 1_usize..12,
        second in prop_oneof![Just(""), Just("2")],
        mut more in 0_u32..8,
    ) {
        let mut memory = Memory((0..24).map(held).collect());
        let wanted = entries(&keys(&memory), prefix, delimiter);
        let all = walked(&mut memory, second, [prefix, delimiter, &most.to_string()], &mut more);
        let mut sorted: Vec<String> = all.clone();
        sorted.sort();
        sorted.dedup();
        prop_assert_eq!(sorted.len(), all.len(), "nothing comes twice");
        let all: BTreeSet<String> = all.into_iter().collect();
        for entry in &wanted {
            prop_assert!(all.contains(entry), "{} is left out", entry);
        }
        let now: BTreeSet<String> =
            entries(&keys(&memory), prefix, delimiter).into_iter().collect();
        prop_assert!(all.is_subset(&now));
    }

    #[test]
    fn a_start_leaves_out_what_is_before_it(
        start in "(im|imager|imager-x|z)?/?(p-[0-9]-v1)?/?[0-2]?f?",
    ) {
        let mut memory = Memory((0..24).map(held).collect());
        let wanted: Vec<String> =
            keys(&memory).into_iter().filter(|key| key.as_str() > start.as_str()).collect();
        let query = [("list-type", "2"), ("start-after", &start[..]), ("encoding-type", "url")];
        prop_assert_eq!(shown(&page(&mut memory, &query)), wanted);
    }
}

#[test]
fn an_answer_has_what_clients_read() {
    let mut memory = Memory((0..8).map(held).collect());
    let text = page(&mut memory, &[("list-type", "2"), ("prefix", "ädn/"), ("max-keys", "1")]);
    for part in [
        "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>aqua</Name>",
        "<KeyCount>1</KeyCount><MaxKeys>1</MaxKeys><IsTruncated>true</IsTruncated>",
        "<Key>ädn/P-3-v2/1f-1</Key><LastModified>1970-01-01T00:00:00.000Z</LastModified>",
        "<Size>1</Size><StorageClass>STANDARD</StorageClass></Contents>",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let nothing = page(&mut memory, &[("list-type", "2"), ("max-keys", "0")]);
    assert!(nothing.contains("<IsTruncated>false"), "{nothing}");
    let first = page(&mut memory, &[("max-keys", "2")]);
    assert!(first.contains("<NextMarker>") && first.contains("<Owner>"), "{first}");
    for query in
        [("list-type", "3"), ("max-keys", "-1"), ("max-keys", "x"), ("encoding-type", "base64")]
    {
        let mut request = ServeRequest::new(ServeMethod::Get, "/aqua").unwrap();
        request.query = vec![(query.0.to_owned(), query.1.to_owned())];
        assert_eq!(ObjectListing::of(&request).unwrap_err().status, 400, "{query:?}");
    }
    assert_eq!(
        (successor("a"), successor("\u{d7ff}")),
        (Some("b".into()), Some("\u{e000}".into()))
    );
    assert_eq!((successor("a\u{10ffff}"), successor("")), (Some("b".into()), None));
}
