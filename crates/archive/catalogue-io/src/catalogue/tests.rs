//! What is written is there after any end of the process, and filters mean the same in SQL as in
//! memory.

use super::*;
use crate::archive::{CandidatePlace, HoldOrder, ItemRemoval, RetentionScope};
use crate::deliveries::DeliveryQuery;
use crate::search::{ItemQuery, PageToken};
use crate::times::AccountScope;
use proptest::prelude::*;
use skyhaul_catalogue::{
    AccountRow, BlockTimes, ConsumerTimes, Filter, ItemFile, ItemForm, ItemState, RetentionLeaves,
    RetentionStart,
};
use skyhaul_dispatch::{
    DeliveryFailure, DeliveryInput, DeliveryOrder, DeliveryRules, DeliveryState, FailureKind,
    Notice, NoticeContent, Proof, VersionRule,
};
use skyhaul_units::Duration;

fn at(second: u64) -> Utc {
    Utc::from_day(20_780, Duration::from_secs(second))
}

fn item(number: u32) -> Item {
    let of = |list: &[&str]| list[number as usize % list.len()].to_owned();
    let file = |suffix: &str, is_metadata| ItemFile {
        name: format!("P{number}.{suffix}"),
        size: u64::from(number),
        sha256: [7; 32],
        md5: Some([8; 16]),
        cksum: Some(number),
        is_metadata,
    };
    Item {
        name: format!("P{number}"),
        version: number % 3 + 1,
        form: ItemForm::ALL[number as usize % 5],
        mission: of(&["aqua", "noaa-20", "Aqua"]),
        product: of(&["modis", "viirs*science", "amsu[a]", "x?y", "100%"]),
        stations: match number % 4 {
            0 => Vec::new(),
            1 => vec!["svalbard-1".to_owned()],
            _ => vec!["svalbard-1".to_owned(), of(&["mcmurdo-2", "inuvik"])],
        },
        apids: (0..number % 4).map(|place| 800 + u16::try_from(place * 13).unwrap()).collect(),
        start: (!number.is_multiple_of(3)).then(|| at(u64::from(number) * 10)),
        end: (number % 3 > 1).then(|| at(u64::from(number) * 10 + 5)),
        published: at(1_000 + u64::from(number)),
        packets: u64::from(number) * 3,
        missing: u64::from(number % 2),
        state: if number.is_multiple_of(7) { ItemState::Removed } else { ItemState::Present },
        files: vec![file("PDS", false), file("CR", true)],
    }
}

/// One whose files are there.
fn present(number: u32) -> Item {
    Item { state: ItemState::Present, ..item(number) }
}

fn offer(destination: &str) -> DeliveryOffer {
    DeliveryOffer {
        subscription: "all".to_owned(),
        destination: destination.to_owned(),
        versions: VersionRule::All,
        deadline: Some(at(9_000)),
        begin: None,
    }
}

fn fresh() -> (tempfile::TempDir, Catalogue) {
    let folder = tempfile::tempdir().unwrap();
    let catalogue = Catalogue::open(&folder.path().join("catalogue.db")).unwrap();
    (folder, catalogue)
}

#[test]
fn an_item_is_published_once_with_a_delivery_for_each_destination() {
    let (folder, catalogue) = fresh();
    let offers = || vec![offer("lance-a"), offer("lance-b")];
    let first = catalogue.publish(item(5), offers(), at(1)).unwrap();
    assert!(first.is_new);
    assert_eq!(first.deliveries.len(), 2);
    let again = catalogue.publish(item(5), offers(), at(2)).unwrap();
    assert_eq!((again.item, again.is_new, again.deliveries), (first.item, false, Vec::new()));
    // A further destination gets it too.
    let further = catalogue.publish(item(5), vec![offer("lance-c")], at(3)).unwrap();
    assert_eq!(further.deliveries.len(), 1);
    drop(catalogue);
    let path = folder.path().join("catalogue.db");
    let catalogue = Catalogue::open(&path).unwrap();
    let reader = catalogue.reader().unwrap();
    let read = reader.item(first.item).unwrap().unwrap();
    assert_eq!(read.item, item(5));
    let open = reader.open_deliveries("lance-b").unwrap();
    assert_eq!((open.len(), open[0].sequence, open[0].deadline), (1, 1, Some(at(9_000))));
    assert_eq!(open[0].delivery, Delivery::offered(at(1)));
}

#[test]
fn what_became_of_a_delivery_is_read_back() {
    let (_folder, catalogue) = fresh();
    let id = catalogue.publish(item(1), vec![offer("a")], at(1)).unwrap().deliveries[0].1;
    let (rules, reader) = (DeliveryRules::default(), catalogue.reader().unwrap());
    let mut delivery = reader.delivery(id).unwrap().unwrap().delivery;
    let full = DeliveryFailure::new(FailureKind::Full, "no space left on device");
    for input in [
        DeliveryInput::Begin,
        DeliveryInput::Failed(full, 0),
        DeliveryInput::Begin,
        DeliveryInput::Placed(Proof::ReadBack),
    ] {
        delivery.handle(at(2), input, &rules);
        catalogue.save(id, delivery.clone()).unwrap();
        assert_eq!(reader.delivery(id).unwrap().unwrap().delivery, delivery);
    }
    delivery.only = Some(["b".to_owned()].into());
    catalogue.save(id, delivery.clone()).unwrap();
    assert_eq!(reader.delivery(id).unwrap().unwrap().delivery, delivery);
    catalogue.keep_note(id, "P1.PDS", "{\"upload\":\"x\"}").unwrap();
    assert_eq!(reader.note(id, "P1.PDS").unwrap().as_deref(), Some("{\"upload\":\"x\"}"));
    delivery.handle(at(3), DeliveryInput::Recorded, &rules);
    catalogue.save(id, delivery.clone()).unwrap();
    assert_eq!(reader.note(id, "P1.PDS").unwrap(), None);
    assert_eq!(reader.open_deliveries("a").unwrap(), []);
    let whats: Vec<String> =
        reader.events(id).unwrap().into_iter().map(|event| event.what).collect();
    assert_eq!(whats, ["sending", "waiting", "sending", "placed", "placed", "accepted"]);
    // Sent again, it has another number.
    delivery.handle(at(4), DeliveryInput::Ordered(DeliveryOrder::Again), &rules);
    assert_eq!(catalogue.renew(id, delivery).unwrap(), Some(2));
    let counts = reader.counts().unwrap();
    assert_eq!((counts.len(), counts[0].state, counts[0].count), (1, DeliveryState::Waiting, 1));
}

#[test]
fn deliveries_are_listed_by_destination_state_and_item() {
    let (_folder, catalogue) = fresh();
    for number in 0..20 {
        catalogue.publish(present(number), vec![offer("a"), offer("b")], at(1)).unwrap();
    }
    let reader = catalogue.reader().unwrap();
    let ids = |query: DeliveryQuery| -> Vec<u64> {
        reader.deliveries(&query).unwrap().iter().map(|(row, _)| row.id).collect()
    };
    let limit = 4;
    let of_b = DeliveryQuery { destination: Some("b".to_owned()), limit, ..Default::default() };
    assert_eq!(ids(of_b.clone()), [40, 38, 36, 34]);
    assert_eq!(ids(DeliveryQuery { before: Some(34), ..of_b.clone() }), [32, 30, 28, 26]);
    assert!(ids(DeliveryQuery { state: Some(DeliveryState::Failed), ..of_b }).is_empty());
    let of_item = DeliveryQuery { item: Some("P3".to_owned()), limit, ..Default::default() };
    assert_eq!(ids(of_item), [8, 7]);
}

#[test]
fn pages_neither_lose_nor_repeat_items_while_others_come() {
    let (_folder, catalogue) = fresh();
    (100..200).for_each(|number| drop(catalogue.publish(item(number), Vec::new(), at(1)).unwrap()));
    let reader = catalogue.reader().unwrap();
    let (mut seen, mut after, mut further) = (Vec::new(), None, 0);
    loop {
        let page = reader.search(&ItemQuery { filter: None, after, limit: 7 }).unwrap();
        seen.extend(page.items.iter().map(|row| row.item.name.clone()));
        // Newer ones come meanwhile, and such of a time that was passed.
        drop(catalogue.publish(item(300 + further), Vec::new(), at(1)).unwrap());
        drop(catalogue.publish(item(90 - further), Vec::new(), at(1)).unwrap());
        further += 1;
        let Some(next) = page.next else { break };
        assert_eq!(next.to_string().parse::<PageToken>(), Ok(next));
        after = Some(next);
    }
    let wanted: Vec<String> = (100..200).rev().map(|number| format!("P{number}")).collect();
    let of_before: Vec<String> =
        seen.iter().filter(|name| wanted.contains(name)).cloned().collect();
    let unique: std::collections::BTreeSet<&String> = seen.iter().collect();
    assert_eq!(unique.len(), seen.len(), "none twice");
    assert_eq!(of_before.len(), 100, "none lost");
    assert!("12".parse::<PageToken>().is_err());
}

#[test]
fn several_threads_write_in_few_transactions() {
    let (_folder, catalogue) = fresh();
    std::thread::scope(|scope| {
        for thread in 0..8u32 {
            let catalogue = &catalogue;
            scope.spawn(move || {
                for number in 0..25 {
                    let offers = vec![offer(&format!("d{thread}"))];
                    catalogue.publish(present(thread * 100 + number), offers, at(1)).unwrap();
                }
            });
        }
    });
    let reader = catalogue.reader().unwrap();
    assert_eq!(reader.counts().unwrap().iter().map(|one| one.count).sum::<u64>(), 200);
    assert_eq!(reader.open_deliveries("d3").unwrap().len(), 25);
}

#[test]
fn a_file_of_a_later_version_and_one_that_is_damaged_are_refused_with_what_to_do() {
    let (folder, catalogue) = fresh();
    (0..50).for_each(|number| drop(catalogue.publish(item(number), Vec::new(), at(1)).unwrap()));
    drop(catalogue);
    let path = folder.path().join("catalogue.db");
    let later = folder.path().join("later.db");
    std::fs::copy(&path, &later).unwrap();
    Connection::open(&later).unwrap().pragma_update(None, "user_version", 9).unwrap();
    let error = Catalogue::open(&later).unwrap_err().to_string();
    assert!(error.contains("has version 9, this program reads 7"), "{error}");
    let text = folder.path().join("text.db");
    std::fs::write(&text, "this is no database, but it is longer than a header is\n".repeat(40))
        .unwrap();
    let error = Catalogue::open(&text).unwrap_err().to_string();
    assert!(error.contains("the catalogue is damaged"), "{error}");
    let error = Catalogue::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("directory"), "{error}");
}

#[test]
fn a_full_disk_refuses_what_it_has_no_room_for_and_nothing_else() {
    let (_folder, catalogue) = fresh();
    catalogue.publish(item(1), Vec::new(), at(1)).unwrap();
    catalogue.write(|connection| connection.pragma_update(None, "max_page_count", 60)).unwrap();
    let mut published = 0;
    let error = loop {
        match catalogue.publish(present(1_000 + published), vec![offer("a")], at(1)) {
            Ok(_) => published += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, CatalogueError::Full { .. }), "{error}");
    let reader = catalogue.reader().unwrap();
    assert_eq!(reader.open_deliveries("a").unwrap().len() as u32, published);
    catalogue.write(|connection| connection.pragma_update(None, "max_page_count", 6_000)).unwrap();
    catalogue.publish(present(9_999), vec![offer("a")], at(1)).unwrap();
}

#[test]
fn nothing_in_a_filter_is_taken_for_sql() {
    let (_folder, catalogue) = fresh();
    (0..10).for_each(|number| drop(catalogue.publish(item(number), Vec::new(), at(1)).unwrap()));
    let reader = catalogue.reader().unwrap();
    for text in [
        "mission = '''; DROP TABLE item; --'",
        "product LIKE '%'' OR 1=1 --'",
        "station = '\"]'') OR 1 --'",
        "station IN ('a\"', '],[')",
    ] {
        let filter: Filter = text.parse().unwrap();
        let page = reader.search(&ItemQuery { filter: Some(filter), after: None, limit: 10 });
        assert_eq!(page.unwrap().items.len(), 0, "{text}");
    }
    assert_eq!(
        reader.search(&ItemQuery { filter: None, after: None, limit: 99 }).unwrap().items.len(),
        10
    );
}

fn block(second: u64) -> BlockTimes {
    let [last_received, closed, taken, sent, arrived, whole, stored, sorted] =
        std::array::from_fn(|step| at(second + step as u64));
    BlockTimes { frames: 3, last_received, closed, taken, sent, arrived, whole, stored, sorted }
}

fn accounts(reader: &CatalogueReader) -> Vec<AccountRow> {
    let mut rows = Vec::new();
    let all = AccountScope::Published { from: at(0), to: at(100_000) };
    reader.accounts(all, |row| rows.push(row.clone())).unwrap();
    rows
}

#[test]
fn the_account_of_a_product_has_its_way_and_the_first_time_at_each_consumer() {
    let (_folder, catalogue) = fresh();
    let published = catalogue.publish(item(1), vec![offer("a"), offer("b")], at(1)).unwrap();
    catalogue.publish(item(2), Vec::new(), at(1)).unwrap();
    let times = ItemTimes { contact: "c-1".to_owned(), last_bit: at(19), block: block(20) };
    catalogue.keep_times("P1", 2, times.clone()).unwrap();
    // What is there stays, and of what is not there nothing is kept.
    let other = ItemTimes { contact: "c-2".to_owned(), ..times.clone() };
    catalogue.keep_times("P1", 2, other.clone()).unwrap();
    catalogue.keep_times("P1", 9, other).unwrap();
    let (rules, reader) = (DeliveryRules::default(), catalogue.reader().unwrap());
    let mut delivery = Delivery::offered(at(1));
    for (second, input) in [
        (2_000, DeliveryInput::Begin),
        (2_001, DeliveryInput::Placed(Proof::Digest)),
        (2_002, DeliveryInput::Recorded),
        (2_003, DeliveryInput::Ordered(DeliveryOrder::Again)),
        (2_004, DeliveryInput::Begin),
        (2_005, DeliveryInput::Placed(Proof::Digest)),
        (2_006, DeliveryInput::Recorded),
    ] {
        delivery.handle(at(second), input, &rules);
        catalogue.save(published.deliveries[0].1, delivery.clone()).unwrap();
    }
    let rows = accounts(&reader);
    let consumers: Vec<_> =
        rows.iter().map(|row| (row.name.as_str(), row.consumer.clone())).collect();
    let consumer = |name: &str, handed| ConsumerTimes {
        name: name.to_owned(),
        handed,
        accepted: None,
        is_given_up: false,
    };
    assert_eq!(
        consumers,
        [
            ("P1", Some(consumer("a", Some(at(2_002))))),
            ("P1", Some(consumer("b", None))),
            ("P2", None),
        ]
    );
    assert_eq!(rows[0].times, Some(times));
    assert_eq!((rows[0].observed, rows[0].published), (item(1).end, item(1).published));
    assert_eq!((rows[2].times.as_ref(), rows[2].stations.len()), (None, 2));
    delivery.state = DeliveryState::Recorded;
    let answer = NoticeContent::Accepted;
    delivery.handle(at(2_007), DeliveryInput::Noticed(Notice { sequence: None, answer }), &rules);
    catalogue.save(published.deliveries[0].1, delivery).unwrap();
    assert_eq!(accounts(&reader)[0].acceptance(), Some(5_000_000));
    let total: i64 = rows[0].elements().iter().map(|(_, took)| took).sum();
    assert_eq!(Some(total), rows[0].total());
}

#[test]
fn the_way_of_a_contact_is_kept_for_products_that_are_made_later_and_forgotten_in_time() {
    let (_folder, catalogue) = fresh();
    let mut times = ContactTimes::new("aqua");
    (0..5).for_each(|number| times.push(block(number * 10)));
    catalogue.keep_contact("c-1", at(50), times.clone()).unwrap();
    let reader = catalogue.reader().unwrap();
    assert_eq!(reader.contact("c-1").unwrap(), Some(times.clone()));
    assert_eq!(reader.contact("c-2").unwrap(), None);
    let mut seen = 0;
    reader.contacts(at(50), at(51), |contact| seen += contact.blocks().len()).unwrap();
    reader.contacts(at(51), at(99), |contact| seen += contact.blocks().len()).unwrap();
    assert_eq!(seen, 5);
    let later = at(50) + Duration::from_secs(101 * 86_400);
    catalogue.keep_contact("c-2", later, times).unwrap();
    assert_eq!(reader.contact("c-1").unwrap(), None);
}

#[test]
fn a_file_of_the_first_version_is_taken_over_with_the_times_that_its_events_have() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalogue.db");
    let former = Connection::open(&path).unwrap();
    former.execute_batch(schema::FIRST).unwrap();
    former.pragma_update(None, "user_version", 1).unwrap();
    former
        .execute_batch(
            "INSERT INTO item VALUES(1,'P',1,'session','aqua','modis','aqua-modis',',s,',',1,',\
             NULL,NULL,5000000,1,0,1,'present');\
             INSERT INTO destination(id, name, sequence) VALUES(1,'a',1);\
             INSERT INTO subscription VALUES(1,'a');\
             INSERT INTO delivery VALUES(1,1,1,1,1,5,9000000,1,0,NULL,NULL,NULL,NULL,4,NULL);\
             INSERT INTO event(at, delivery, what, text) VALUES(7000000,1,'placed',''),\
             (8000000,1,'recorded',''),(9000000,1,'accepted','');",
        )
        .unwrap();
    let early = CatalogueReader::open(&path).unwrap();
    let scope = AccountScope::Published { from: at(0), to: at(1) };
    let error = early.accounts(scope, |_| {}).unwrap_err().to_string();
    assert!(error.contains("has version 1, this program reads 7; start the node once"), "{error}");
    drop((former, early));
    // Regression: a start that was killed in the middle left a copy, and no further one succeeded.
    std::fs::write(path.with_extension("version-1"), "a copy that was cut short").unwrap();
    let catalogue = Catalogue::open(&path).unwrap();
    let mut rows = Vec::new();
    let all = (Utc::from_micros(0), Utc::from_micros(i64::MAX));
    let scope = AccountScope::Published { from: all.0, to: all.1 };
    catalogue.reader().unwrap().accounts(scope, |row| rows.push(row.clone())).unwrap();
    let consumer = rows[0].consumer.as_ref().unwrap();
    let wanted = [8_000_000, 9_000_000].map(|micros| Some(Utc::from_micros(micros)));
    assert_eq!([consumer.handed, consumer.accepted], wanted);
    assert!(!path.with_extension("version-1").exists());
}

/// Regression: SQLite refused a filter of more than a thousand conditions, and the reason named the
/// catalogue.
#[test]
fn a_filter_as_long_and_as_deep_as_one_may_be_is_searched_for() {
    let (_folder, catalogue) = fresh();
    (0..10).for_each(|number| drop(catalogue.publish(item(number), Vec::new(), at(1)).unwrap()));
    let reader = catalogue.reader().unwrap();
    let aqua = "mission = 'aqua'";
    let long = |word: &str| vec!["size > 0"; 4_900].join(word);
    let deep = format!("{}{aqua}{}", format!("{aqua} OR (").repeat(60), ")".repeat(60));
    let nots = format!("{}{aqua}{}", "NOT (".repeat(30), ")".repeat(30));
    for text in [&long(" OR "), &long(" AND "), &deep, &nots] {
        let filter: Filter = text.parse().unwrap();
        let wanted = (0..10).filter(|number| filter.takes(&item(*number))).count();
        let found = reader.search(&ItemQuery { filter: Some(filter), after: None, limit: 99 });
        assert_eq!(found.unwrap().items.len(), wanted, "{}", &text[..40]);
    }
}

/// The words of filters that take some of the items.
fn term() -> impl Strategy<Value = String> {
    proptest::sample::select(vec![
        "mission = 'aqua'",
        "mission <> 'aqua'",
        "mission > 'a'",
        "kind IN ('session', 'time')",
        "station = 'inuvik'",
        "station <> 'svalbard-1'",
        "station IS NULL",
        "station LIKE 'mc%'",
        "apid = 813",
        "apid BETWEEN 801 AND 820",
        "apid IN (800, 826)",
        "apid IS NULL",
        "product LIKE 'viirs*%'",
        "product LIKE '%[a]'",
        "product LIKE 'x?_'",
        "product LIKE '100\\%'",
        "product LIKE 'VIIRS%'",
        "version >= 2",
        "size > 100.5",
        "missing = 0",
        "state = 'removed'",
        "collection = 'aqua-modis'",
        "id LIKE 'P1_'",
        "start_datetime IS NULL",
        "end_datetime > TIMESTAMP('2026-11-23T00:05:00Z')",
        "start_datetime < TIMESTAMP('2026-11-23T00:05:00Z')",
        "T_AFTER(published, TIMESTAMP('2026-11-23T00:16:50Z'))",
        "TRUE",
        "FALSE",
    ])
    .prop_map(str::to_owned)
}

fn filter() -> impl Strategy<Value = String> {
    term().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("({one}) AND ({two})")),
            (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("({one}) OR ({two})")),
            inner.prop_map(|inner| format!("NOT ({inner})")),
        ]
    })
}

#[test]
fn a_filter_means_the_same_in_sql_as_in_memory() {
    let (_folder, catalogue) = fresh();
    let items: Vec<Item> = (0..150).map(item).collect();
    for item in &items {
        catalogue.publish(item.clone(), Vec::new(), at(1)).unwrap();
    }
    let reader = catalogue.reader().unwrap();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(400));
    runner
        .run(&filter(), |text| {
            let filter: Filter = text.parse().unwrap();
            let mut wanted: Vec<&str> = items
                .iter()
                .filter(|item| filter.takes(item))
                .map(|item| item.name.as_str())
                .collect();
            let page = reader
                .search(&ItemQuery { filter: Some(filter.clone()), after: None, limit: 1_000 })
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            let mut found: Vec<&str> =
                page.items.iter().map(|row| row.item.name.as_str()).collect();
            wanted.sort_unstable();
            found.sort_unstable();
            prop_assert_eq!(found, wanted, "{}", text);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_subscription_gets_the_versions_that_it_wants_also_of_what_was_published_before() {
    let (_folder, catalogue) = fresh();
    let version = |version| Item { name: "P".to_owned(), version, ..item(8) };
    let ids: Vec<u64> = [1, 2, 3]
        .map(|number| catalogue.publish(version(number), Vec::new(), at(1)).unwrap().item)
        .into();
    let reader = catalogue.reader().unwrap();
    // Newest first for the latest, oldest first for the first: that is the caller's.
    let (oldest, newest) = (ids.clone(), ids.iter().rev().copied().collect::<Vec<_>>());
    for (rule, order, wanted) in [
        (VersionRule::Latest, &newest, vec![ids[2]]),
        (VersionRule::First, &oldest, vec![ids[0]]),
        (VersionRule::All, &oldest, ids.clone()),
    ] {
        let subscription = format!("{rule:?}");
        let offer = DeliveryOffer {
            subscription: subscription.clone(),
            versions: rule,
            deadline: Some(at(20)),
            ..offer("a")
        };
        let items: Vec<_> = order.iter().map(|id| (*id, vec![offer.clone()])).collect();
        let begun = catalogue.offer(items.clone(), at(2)).unwrap();
        let of = |(destination, id): &(String, u64)| {
            assert_eq!(destination, "a");
            assert!(!reader.has_later_version(*id).unwrap());
            reader.delivery(*id).unwrap().unwrap().item
        };
        if rule != VersionRule::All {
            assert_eq!(begun.iter().map(of).collect::<Vec<_>>(), wanted, "{rule:?}");
        }
        assert_eq!(begun.len(), wanted.len(), "{rule:?}");
        assert_eq!(catalogue.offer(items, at(3)).unwrap(), [], "once");
        let states = reader.states_of(wanted[0], &subscription).unwrap();
        assert_eq!(states, [("a".to_owned(), DeliveryState::Waiting)]);
    }
    let all = DeliveryQuery {
        subscription: Some("All".to_owned()),
        limit: 9,
        ..DeliveryQuery::default()
    };
    let has_later = |(row, _): &(crate::DeliveryRow, _)| reader.has_later_version(row.id).unwrap();
    let later: Vec<bool> = reader.deliveries(&all).unwrap().iter().map(has_later).collect();
    assert_eq!(later, [false, true, true], "newest first");
    // Those that are not there when their time is over are late.
    assert_eq!(reader.late_deliveries("a", at(20), 9).unwrap(), []);
    let late = reader.late_deliveries("a", at(21), 9).unwrap();
    assert_eq!(late.len(), 5);
    let mut delivery = late[0].delivery.clone();
    let rules = DeliveryRules::default();
    for input in [DeliveryInput::Begin, DeliveryInput::Placed(Proof::Size), DeliveryInput::Recorded]
    {
        delivery.handle(at(22), input, &rules);
    }
    catalogue.save(late[0].id, delivery).unwrap();
    assert_eq!(reader.late_deliveries("a", at(23), 9).unwrap().len(), 4);
}

#[test]
fn candidates_are_those_of_a_rule_and_of_no_earlier_one_oldest_first_in_pages() {
    let (_folder, catalogue) = fresh();
    (0..40).for_each(|number| drop(catalogue.publish(item(number), Vec::new(), at(1)).unwrap()));
    let reader = catalogue.reader().unwrap();
    let [first, second] =
        ["mission = 'aqua'", "size > 9"].map(|text| text.parse::<Filter>().unwrap());
    let before = [Some(first.clone())];
    for from in RetentionStart::ALL {
        let scope = RetentionScope { before: &before, own: Some(&second), from };
        let figures = reader.archive().figures(scope, at(1)).unwrap();
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = reader.archive().candidates(scope, after, 3).unwrap();
            after = page.last().map(|last| CandidatePlace { at: last.at, id: last.row.id });
            found.extend(page);
            if found.len() as u64 >= figures.items || after.is_none() {
                break;
            }
        }
        let takes = |item: &Item| {
            item.state == ItemState::Present && second.takes(item) && !first.takes(item)
        };
        let expected = (0..40).map(item).filter(|item| takes(item)).count();
        assert_eq!((found.len(), figures.items), (expected, expected as u64));
        assert!(found.is_sorted_by_key(|candidate| (candidate.at, candidate.row.id)));
        let bytes: u64 = found.iter().map(|candidate| candidate.row.item.size()).sum();
        assert!(found.iter().all(|one| takes(&one.row.item)) && bytes == figures.bytes);
    }
}

#[test]
fn what_a_delivery_needs_or_an_operator_holds_cannot_be_marked_and_what_left_is_not_sent() {
    let (_folder, catalogue) = fresh();
    let published = catalogue.publish(present(1), vec![offer("a")], at(1)).unwrap();
    let (item, delivery) = (published.item, published.deliveries[0].1);
    let archive = catalogue.archive();
    let removal = || {
        let reason = "old".to_owned();
        vec![ItemRemoval { item, leaves: RetentionLeaves::Record, reason }]
    };
    assert!(archive.mark(removal(), at(2)).unwrap().is_empty(), "a delivery needs it");
    let standing = catalogue.reader().unwrap().archive().standing(item).unwrap();
    assert_eq!((standing.pending.unwrap().id, standing.copies), (delivery, 0));
    let mut state = catalogue.reader().unwrap().delivery(delivery).unwrap().unwrap().delivery;
    for input in
        [DeliveryInput::Begin, DeliveryInput::Placed(Proof::Written), DeliveryInput::Recorded]
    {
        state.handle(at(3), input, &DeliveryRules::default());
    }
    catalogue.save(delivery, state.clone()).unwrap();
    let standing = catalogue.reader().unwrap().archive().standing(item).unwrap();
    assert_eq!((standing.pending, standing.copies), (None, 1));
    assert!(archive.hold(item, HoldOrder::Hold("study".to_owned()), at(4)).unwrap());
    assert!(archive.mark(removal(), at(5)).unwrap().is_empty(), "it is held");
    assert!(archive.hold(item, HoldOrder::Release, at(6)).unwrap());
    assert_eq!(archive.mark(removal(), at(7)).unwrap(), [item]);
    assert_eq!(catalogue.renew(delivery, state).unwrap(), None, "its files leave");
    let begun = catalogue.offer(vec![(item, vec![offer("b")])], at(8)).unwrap();
    assert!(begun.is_empty());
    archive.settle(vec![item]).unwrap();
    archive.placed("v-1", "/media/a", vec![item], at(9)).unwrap();
    assert_eq!(catalogue.reader().unwrap().archive().volumes_of(item).unwrap(), ["v-1"]);
    assert!(archive.restored(item, "v-1", at(10)).unwrap());
    assert_eq!(catalogue.reader().unwrap().archive().standing(item).unwrap().copies, 2);
}
