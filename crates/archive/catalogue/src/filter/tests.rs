//! Filters take the items that they should, are read back as they are written, and refuse anything
//! else.

use super::*;
use crate::item::{Item, ItemFile, ItemForm, ItemState};
use proptest::prelude::*;
use skyhaul_units::{Duration, Utc};

fn item() -> Item {
    let at = |hour| Utc::from_day(20_780, Duration::from_secs(hour * 3_600u64));
    Item {
        name: "P1590826VIIRSSCIENCEAT26327060000001".to_owned(),
        version: 2,
        form: ItemForm::Session,
        mission: "noaa-20".to_owned(),
        product: "viirs-science".to_owned(),
        stations: vec!["svalbard-1".to_owned(), "mcmurdo-2".to_owned()],
        apids: vec![800, 826],
        start: Some(at(6)),
        end: None,
        published: at(8),
        packets: 811_204,
        missing: 0,
        state: ItemState::Present,
        files: vec![ItemFile {
            name: "a.PDS".to_owned(),
            size: 1_000,
            sha256: [0; 32],
            md5: None,
            cksum: None,
            is_metadata: false,
        }],
    }
}

fn takes(text: &str) -> bool {
    text.parse::<Filter>().unwrap_or_else(|error| panic!("{text}: {error}")).takes(&item())
}

#[test]
fn filters_take_what_they_say() {
    for text in [
        "mission = 'noaa-20'",
        "platform = 'noaa-20' AND NOT product LIKE 'at%'",
        "'noaa-20' = mission AND 2 <= version",
        "kind IN ('session', 'time')",
        "station = 'mcmurdo-2' and station <> 'mcmurdo-2'",
        "NOT (station = 'fairbanks')",
        "apid BETWEEN 820 AND 830",
        "apid NOT IN (801, 802)",
        "product LIKE 'viirs%' OR FALSE",
        "id LIKE 'P159____VIIRS%1'",
        "start_datetime >= TIMESTAMP('2026-11-23T06:00:00Z')",
        "T_DURING(start_datetime, INTERVAL('2026-11-23T00:00:00Z', '..'))",
        "T_AFTER(published, DATE('2026-11-23')) AND published < '2026-11-24'",
        "end_datetime IS NULL AND start_datetime IS NOT NULL",
        "size = 1e3 AND missing = 0",
        "((((TRUE))))",
        "\"collection\" = 'noaa-20-viirs-science'",
    ] {
        assert!(takes(text), "{text}");
    }
    for text in [
        "mission = 'NOAA-20'",
        "product LIKE 'VIIRS%'",
        "product LIKE 'viirs\\%'",
        "version < 2",
        "FALSE OR kind = 'time'",
        // Not known is not true, nor is its contrary.
        "end_datetime > TIMESTAMP('2000-01-01T00:00:00Z')",
        "NOT end_datetime > TIMESTAMP('2000-01-01T00:00:00Z')",
        "end_datetime NOT BETWEEN '2000-01-01' AND '2001-01-01'",
    ] {
        assert!(!takes(text), "{text}");
    }
}

#[test]
fn what_is_no_filter_is_refused_with_its_place() {
    let brackets = format!("{}TRUE{}", "(".repeat(10_000), ")".repeat(10_000));
    let nots = format!("{}TRUE", "NOT ".repeat(10_000));
    let many = format!("apid IN ({}1)", "1,".repeat(1_000));
    for (text, wanted) in [
        ("", "at 1: expected the name of a property"),
        ("mission", "at 8: expected =, <>, <, <=, > or >="),
        ("mission = ", "at 11: `mission` takes text such as 'aqua'"),
        ("mission = aqua", "at 11: `mission` takes text such as 'aqua'"),
        ("mission = 'aqua", "at 11: the text has no closing '"),
        ("mission = 5", "at 11: `mission` takes text such as 'aqua'"),
        ("version = 'two'", "at 11: `version` takes a number such as 826"),
        ("version = 1e999", "at 11: `1e999` is no number"),
        ("version LIKE '2'", "at 14: `version` is no text; compare it instead"),
        ("start_datetime > 'soon'", "at 18: `start_datetime` takes a time such as"),
        (
            "mision = 'aqua'",
            "at 1: there is no property `mision`; write one of id, versioned_id, collection",
        ),
        ("mission = 'aqua' kind = 'time'", "at 18: expected AND, OR or the end of the filter"),
        ("mission = 'a'; DROP TABLE item", "at 14: `;` is not expected; put text in apostrophes"),
        ("(mission = 'a'", "at 15: expected `)`"),
        ("mission NOT = 'a'", "at 13: expected LIKE, IN or BETWEEN"),
        (&brackets, "at 66: brackets are nested more than 64 deep"),
        (&nots, "at 261: NOT is nested more than 64 deep"),
        (&many, "at 2010: IN has more than 1000 values"),
        (&"x".repeat(70_000), "at 65536: the filter is longer than 65536 bytes"),
    ] {
        let error = text.parse::<Filter>().unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{text:.40}: {error}");
    }
}

#[test]
fn a_pattern_of_many_stars_takes_no_longer_than_it_must() {
    let like = Like("%a".repeat(2_000));
    assert!(!like.matches(&"b".repeat(4_000)));
    assert!(like.matches(&"ab a".repeat(2_000)));
}

#[test]
fn filters_that_exclude_each_other_are_known() {
    let excludes = |one: &str, other: &str| {
        let [one, other] = [one, other].map(|text| text.parse::<Filter>().unwrap());
        assert_eq!(one.excludes(&other), other.excludes(&one), "{one} and {other}");
        one.excludes(&other)
    };
    for (one, other) in [
        ("mission = 'aqua'", "mission = 'terra' AND apid = 3"),
        ("kind IN ('session', 'time')", "kind = 'expedited'"),
        ("kind <> 'time'", "kind = 'time'"),
        ("version < 2", "version >= 2"),
        ("mission = 'aqua' OR mission = 'terra'", "mission IN ('noaa-20', 'noaa-21')"),
        ("missing = 0", "NOT missing = 0"),
        ("product LIKE 'viirs%'", "product = 'other'"),
        ("start_datetime IS NULL", "start_datetime > TIMESTAMP('2026-11-23T06:00:00Z')"),
        ("size BETWEEN 1 AND 5", "size BETWEEN 6 AND 9"),
        ("FALSE", "TRUE"),
    ] {
        assert!(excludes(one, other), "{one} and {other}");
    }
    for (one, other) in [
        ("mission = 'aqua'", "kind = 'time'"),
        ("version <= 2", "version >= 2"),
        // An item has several of them.
        ("station = 'a'", "station = 'b'"),
        ("mission = 'aqua' OR kind = 'time'", "mission = 'terra'"),
        ("TRUE", "TRUE"),
    ] {
        assert!(!excludes(one, other), "{one} and {other}");
    }
}

fn value(property: Property) -> BoxedStrategy<PropertyValue> {
    use crate::property::PropertyType;
    match property.of_type() {
        PropertyType::Text => "[a-z' %_0-9-]{0,8}".prop_map(PropertyValue::Text).boxed(),
        PropertyType::Number => (-1_000i32..1_000)
            .prop_map(|value| PropertyValue::Number(f64::from(value) / 4.0))
            .boxed(),
        PropertyType::Time => (0i64..4_000_000_000)
            .prop_map(|seconds| PropertyValue::Time(Utc::from_micros(seconds * 1_000_001)))
            .boxed(),
    }
}

fn filter() -> impl Strategy<Value = Filter> {
    let leaf = proptest::sample::select(Property::ALL.to_vec()).prop_flat_map(|property| {
        let ops = [
            CompareOp::Equal,
            CompareOp::NotEqual,
            CompareOp::Less,
            CompareOp::LessEqual,
            CompareOp::Greater,
            CompareOp::GreaterEqual,
        ];
        prop_oneof![
            (proptest::sample::select(ops.to_vec()), value(property))
                .prop_map(move |(op, value)| Filter::Compare(property, op, value)),
            proptest::collection::vec(value(property), 1..4)
                .prop_map(move |values| Filter::In(property, values)),
            Just(Filter::IsNull(property)),
            any::<bool>().prop_map(Filter::Always),
        ]
    });
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 2..4).prop_map(Filter::And),
            proptest::collection::vec(inner.clone(), 2..4).prop_map(Filter::Or),
            inner.prop_map(|inner| Filter::Not(Box::new(inner))),
        ]
    })
}

proptest! {
    #[test]
    fn a_filter_is_read_back_as_it_is_written(filter in filter()) {
        let text = filter.to_string();
        prop_assert_eq!(text.parse::<Filter>(), Ok(filter));
    }

    #[test]
    fn no_item_is_taken_by_two_filters_that_exclude_each_other(
        one in filter(), other in filter(), version in 0u32..3, missing in 0u64..3
    ) {
        let item = Item { version, missing, ..item() };
        prop_assert!(!(one.excludes(&other) && one.takes(&item) && other.takes(&item)));
    }

    #[test]
    fn any_text_is_a_filter_or_is_refused(text in ".{0,80}") {
        if let Ok(filter) = text.parse::<Filter>() {
            let _ = filter.takes(&item());
        }
    }

    #[test]
    fn words_and_signs_in_any_order_are_a_filter_or_are_refused(
        words in proptest::collection::vec(proptest::sample::select(vec![
            "mission", "apid", "published", "'a'", "7", "(", ")", ",", "=", "<", "NOT", "AND", "OR",
            "IN", "LIKE", "BETWEEN", "IS", "NULL", "TRUE", "TIMESTAMP", "T_DURING", "INTERVAL",
        ]), 0..20)
    ) {
        let _ = words.join(" ").parse::<Filter>();
    }
}
