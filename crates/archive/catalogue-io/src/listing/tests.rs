//! Pages in any order have every item once, also while items come and go.

use crate::Catalogue;
use proptest::prelude::*;
use skyhaul_catalogue::{
    Filter, Item, ItemForm, ItemListing, ItemOrder, ItemState, ListDirection, OrderKey, Property,
};
use skyhaul_units::Utc;

fn item(number: u32) -> Item {
    Item {
        name: format!("P{}", number / 2),
        version: number % 2 + 1,
        form: ItemForm::ALL[number as usize % 5],
        mission: ["aqua", "terra"][number as usize % 2].to_owned(),
        product: ["modis", "ceres", "x"][number as usize % 3].to_owned(),
        stations: Vec::new(),
        apids: Vec::new(),
        start: (!number.is_multiple_of(3)).then(|| Utc::from_micros(i64::from(number * 7 % 11))),
        end: (number.is_multiple_of(2)).then(|| Utc::from_micros(i64::from(number))),
        published: Utc::from_micros(1_000_000 * i64::from(number)),
        packets: 1,
        missing: u64::from(number % 4),
        state: ItemState::Present,
        files: Vec::new(),
    }
}

fn fresh(count: u32) -> (tempfile::TempDir, Catalogue) {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = Catalogue::open(&folder.path().join("catalogue.db")).unwrap();
    for number in 1..=count {
        catalogue.publish(item(number), Vec::new(), Utc::default()).unwrap();
    }
    (folder, catalogue)
}

fn keys() -> impl Strategy<Value = Vec<OrderKey>> {
    let sortable: Vec<Property> =
        Property::ALL.into_iter().filter(|property| !property.is_list()).collect();
    let direction = prop_oneof![Just(ListDirection::Rising), Just(ListDirection::Falling)];
    let key = (proptest::sample::select(sortable), direction)
        .prop_map(|(property, direction)| OrderKey { property, direction });
    proptest::collection::vec(key, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn pages_have_every_item_once_in_order_while_others_come(keys in keys(), limit in 1_usize..9) {
        let (_folder, catalogue) = fresh(30);
        let reader = catalogue.reader().unwrap();
        let order = ItemOrder::new(keys).unwrap();
        let mut listing = ItemListing {
            filter: Filter::Always(true),
            order: order.clone(),
            after: None,
            skip: 0,
            limit,
        };
        let (mut shown, mut further) = (Vec::new(), 31);
        loop {
            let page = reader.list(&listing).unwrap();
            shown.extend(page.items);
            let Some(next) = page.next else { break };
            listing.after = order.place_of(&order.token(&next));
            prop_assert!(listing.after.is_some());
            if further < 40 {
                catalogue.publish(item(further), Vec::new(), Utc::default()).unwrap();
                further += 1;
            }
        }
        let places: Vec<_> = shown.iter().map(|row| order.place(row.id, &row.item)).collect();
        for two in places.windows(2) {
            prop_assert_eq!(order.compare(&two[0], &two[1]), std::cmp::Ordering::Less);
        }
        let old: std::collections::BTreeSet<u64> =
            shown.iter().map(|row| row.id).filter(|id| *id <= 30).collect();
        prop_assert_eq!(old.len(), 30);
    }
}

#[test]
fn items_and_collections_are_found_by_name() {
    let (_folder, catalogue) = fresh(12);
    let reader = catalogue.reader().unwrap();
    let row = reader.item_named("P2", 2).unwrap().unwrap();
    assert_eq!((row.item.clone(), row.item.versioned_id()), (item(5), "P2-v2".to_owned()));
    assert_eq!(reader.item_named("P2", 3).unwrap(), None);
    let filter: Filter = "mission = 'terra' AND versioned_id <> 'P2-v2'".parse().unwrap();
    assert_eq!(reader.count(&filter, 100).unwrap(), 5);
    assert_eq!(reader.count(&filter, 3).unwrap(), 3);
    let found = reader.collections(None, &filter).unwrap();
    let names: Vec<&str> = found.iter().map(|row| row.product.as_str()).collect();
    assert_eq!(names, ["ceres", "modis", "x"]);
    assert!(found.iter().all(|row| row.mission == "terra"));
    let all = reader.collections(None, &Filter::Always(true)).unwrap();
    assert_eq!(all.len(), 6);
    let of_one = reader.collections(Some("aqua"), &Filter::Always(true)).unwrap();
    assert!(of_one.len() == 3 && of_one.iter().all(|row| row.mission == "aqua"));
    assert!(reader.collections(Some("aqu"), &Filter::Always(true)).unwrap().is_empty());
}

#[test]
fn an_item_is_published_after_all_that_readers_have_seen() {
    let (_folder, catalogue) = fresh(0);
    let reader = catalogue.reader().unwrap();
    // Regression: after one of a clock that was far ahead, the others lost their order.
    catalogue.publish(item(9_999), Vec::new(), Utc::default()).unwrap();
    for (place, number) in [5, 4, 4, 6].into_iter().enumerate() {
        let item = Item { name: format!("N{place}"), ..item(number) };
        catalogue.publish(item, Vec::new(), Utc::default()).unwrap();
    }
    let order =
        ItemOrder::new(vec![OrderKey { property: Property::Id, direction: ListDirection::Rising }])
            .unwrap();
    let listing =
        ItemListing { filter: Filter::Always(true), order, after: None, skip: 0, limit: 100 };
    let mut rows = reader.list(&listing).unwrap().items;
    rows.retain(|row| row.item.name.starts_with('N'));
    rows.sort_by_key(|row| row.id);
    assert_eq!(rows.len(), 4);
    let times: Vec<i64> = rows.iter().map(|row| row.item.published.as_micros()).collect();
    assert!(times.windows(2).all(|two| two[0] < two[1]), "{times:?}");
}
