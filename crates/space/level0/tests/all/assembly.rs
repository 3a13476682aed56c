//! Products of several contacts: of windows of time, and further versions. What comes out does not
//! depend on the order in which contacts arrive, nor on how frames were divided among them; each
//! version says what changed.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on says so")]

use crate::support::{DAY, Make, Memory, mission, packet_file, tiny};
use proptest::collection::vec;
use proptest::prelude::*;
use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_level0::construction::ConstructionRecord;
use skyhaul_level0::report::Product;
use skyhaul_level0::{
    Assembly, ContactInfo, Edition, EditionScope, Form, Limits, Novelty, Previous, ProductBasis,
    ProductRuleSet, SetAsideReason, TimeWindow, WindowLength,
};
use skyhaul_units::{Duration, Utc};
use std::collections::BTreeMap;

const HOUR: u64 = 3_600_000;

/// What one station received in one contact.
#[derive(Debug, Clone)]
struct Heard {
    station: &'static str,
    opened: u64,
    packets: Vec<ExtractedPacket>,
    standing: Novelty,
}

fn at(millis: u64) -> Utc {
    Utc::from_day(DAY, Duration::from_millis(millis))
}

fn heard(station: &'static str, opened: u64, made: &[Make]) -> Heard {
    let packet = |(place, make): (usize, &Make)| {
        let received = at(opened + place as u64);
        ExtractedPacket { received, ..make.packet() }
    };
    let packets = made.iter().enumerate().map(packet).collect();
    Heard { station, opened, packets, standing: Novelty::Known }
}

fn window() -> TimeWindow {
    TimeWindow::containing(at(2 * HOUR), WindowLength::TWO_HOURS)
}

fn edition(previous: BTreeMap<String, Previous>) -> Edition {
    let created = at(10 * HOUR) + Duration::from_secs(previous.len() as u64);
    Edition {
        window: Some(window()),
        span: None,
        only: Some(vec!["imager".to_owned()]),
        created,
        previous,
        scope: EditionScope::Changed,
    }
}

fn assemble(
    edition: Edition,
    limits: Limits,
    rules: ProductRuleSet,
    contacts: &[Heard],
) -> (Vec<Product>, Memory) {
    let (mission, mut files) = (mission(), Memory::default());
    let scid = mission.scids()[0];
    let mut assembly = Assembly::new(&mission, scid, edition, limits, &mut files).with_rules(rules);
    for heard in contacts {
        let info = ContactInfo {
            station: heard.station.to_owned(),
            contact: format!("{}-{}", heard.station, heard.opened),
            also_fits: Vec::new(),
            file: None,
            scid,
            opened: at(heard.opened),
            window: None,
        };
        assembly.contact(&mission, info, at(heard.opened + 600_000), heard.standing).unwrap();
        for packet in &heard.packets {
            assembly.packet(packet.clone()).unwrap();
        }
    }
    let products = assembly.finish().unwrap();
    assert!(files.working.is_empty(), "left over: {:?}", files.working.keys());
    for product in &products {
        assert!(product.sidecar.accounting.balanced, "{:?}", product.sidecar.accounting);
    }
    (products, files)
}

fn of_window(contacts: &[Heard]) -> (Product, Memory) {
    let (mut products, files) =
        assemble(edition(BTreeMap::new()), Limits::default(), ProductRuleSet::default(), contacts);
    assert_eq!(products.len(), 1);
    (products.remove(0), files)
}

/// Packets a second apart from 1:50 to 4:10, with counts that go on.
fn series() -> Vec<Make> {
    let make = |second: u64| Make {
        count: (second % 16_384) as u16,
        millis: Some(u32::try_from(2 * HOUR + second * 1_000 - 600_000).unwrap()),
        fill: second as u8,
        ..Make::default()
    };
    (0..8_400)
        .step_by(10)
        .map(|second| Make { count: (second / 10) as u16, ..make(second) })
        .collect()
}

fn inside(made: &[Make]) -> Vec<u8> {
    let times = |make: &&Make| window().contains(at(u64::from(make.millis.unwrap())));
    made.iter().filter(times).flat_map(Make::bytes).collect()
}

#[test]
fn a_window_takes_what_lies_in_it_of_every_contact() {
    let made = series();
    let contacts =
        [heard("svalbard", 3 * HOUR, &made[..500]), heard("mcmurdo", 5 * HOUR, &made[400..])];
    let (product, files) = of_window(&contacts);
    assert_eq!(packet_file(&product, &files), inside(&made));
    let (sidecar, name) = (&product.sidecar, product.name.to_string());
    assert!(name.starts_with("P1570826VIIRSSCIENCEAT") && name.ends_with("000.PDS"), "{name}");
    assert_eq!((sidecar.product.basis, sidecar.product.version), (ProductBasis::Time, 1));
    assert_eq!((sidecar.product.window, sidecar.product.replaces.as_ref()), (Some(window()), None));
    let counted = sidecar.accounting;
    assert_eq!((counted.received, counted.delivered, counted.duplicates), (940, 720, 100));
    assert_eq!((counted.outside_window, counted.gaps), (120, 0));
    let record = ConstructionRecord::parse(&files.published[&name]).unwrap();
    let sessions: Vec<_> =
        record.sessions.iter().map(|session| session.first.utc().unwrap()).collect();
    assert_eq!(sessions, [at(3 * HOUR), at(5 * HOUR)]);
    assert_eq!(product.cells.len(), 12, "two hours of ten minutes");
}

#[test]
fn of_two_copies_the_better_one_is_kept_whichever_contact_comes_first() {
    let made = &series()[100..104];
    let poor: Vec<_> =
        made.iter().map(|make| Make { corrected: make.count % 2 == 0, ..*make }).collect();
    let fair: Vec<_> =
        made.iter().map(|make| Make { corrected: make.count % 2 == 1, ..*make }).collect();
    let mut contacts = [heard("svalbard", 3 * HOUR, &poor), heard("mcmurdo", 3 * HOUR, &fair)];
    for _ in 0..2 {
        let (product, files) = of_window(&contacts);
        assert_eq!(product.sidecar.accounting.corrected_packets, 0);
        assert_eq!(packet_file(&product, &files), inside(made));
        contacts.reverse();
    }
}

fn previous(product: &Product) -> BTreeMap<String, Previous> {
    let sidecar = &product.sidecar;
    let previous = Previous {
        version: sidecar.product.version,
        name: product.name,
        missing: sidecar.accounting.missing,
        gaps: sidecar.accounting.gaps,
    };
    BTreeMap::from([(sidecar.product.name.clone(), previous)])
}

#[test]
fn a_new_version_says_what_was_added_improved_and_closed() {
    let made = &series()[100..160];
    let first: Vec<_> = made
        .iter()
        .filter(|make| !(120..130).contains(&make.count) && make.count != 140)
        .map(|make| Make { corrected: make.count < 105, ..*make })
        .collect();
    let later: Vec<_> = made[18..42]
        .iter()
        .chain(&made[..3])
        .map(|make| Make { corrected: make.count == 102, ..*make })
        .collect();
    let known = heard("svalbard", 3 * HOUR, &first);
    let (one, _) = of_window(std::slice::from_ref(&known));
    assert_eq!((one.sidecar.accounting.gaps, one.sidecar.accounting.missing), (2, 11));
    let late = Heard { standing: Novelty::New, ..heard("mcmurdo", 6 * HOUR, &later) };
    for contacts in [[known.clone(), late.clone()], [late.clone(), known.clone()]] {
        for limits in [Limits::default(), tiny()] {
            let (products, files) =
                assemble(edition(previous(&one)), limits, ProductRuleSet::default(), &contacts);
            let [two] = &products[..] else { panic!("{}", products.len()) };
            assert_eq!(packet_file(two, &files), inside(made));
            let replaced = two.sidecar.product.replaces.clone().unwrap();
            assert_eq!((two.sidecar.product.version, replaced.version), (2, 1));
            assert_eq!(replaced.name, one.name.stem());
            // 120 to 129 and 140 were missing; of 100, 101 and 102, the third was no better.
            assert_eq!((replaced.added, replaced.improved), (11, 2));
            assert_eq!((replaced.missing_filled, replaced.gaps_closed), (11, 2));
            assert!(replaced.frames.is_empty(), "the test gives packets");
        }
    }
}

#[test]
fn a_version_without_a_change_is_not_made() {
    let made = &series()[100..160];
    let known = heard("svalbard", 3 * HOUR, made);
    let (one, _) = of_window(std::slice::from_ref(&known));
    let again = Heard { standing: Novelty::New, ..heard("mcmurdo", 2 * HOUR, &made[..20]) };
    let (products, files) =
        assemble(edition(previous(&one)), tiny(), ProductRuleSet::default(), &[known, again]);
    assert!(!products[0].is_published() && files.published.is_empty());
    assert_eq!((products[0].name, products[0].sidecar.accounting.duplicates), (one.name, 20));
}

#[test]
fn a_version_that_is_ordered_is_made_without_a_change_and_has_the_same_packets() {
    let made = series();
    let contacts = [heard("svalbard", 3 * HOUR, &made)];
    let (first, before) = of_window(&contacts);
    let edition = Edition { scope: EditionScope::All, ..edition(previous(&first)) };
    let (products, files) =
        assemble(edition, Limits::default(), ProductRuleSet::default(), &contacts);
    let product = &products[0];
    assert!(product.is_published());
    assert_eq!(packet_file(product, &files), packet_file(&first, &before));
    let replaces = product.sidecar.product.replaces.as_ref().unwrap();
    assert_eq!((product.sidecar.product.version, replaces.version), (2, 1));
    assert_eq!((replaces.added, replaces.improved), (0, 0));
}

#[test]
fn what_has_no_place_in_time_is_counted_and_left_with_the_contact() {
    let mut made = series()[100..110].to_vec();
    made.push(Make { count: 300, day: DAY - 4_000, ..Make::default() });
    made.push(Make { apid: 12, ..Make::default() });
    let (product, files) = of_window(&[heard("svalbard", 3 * HOUR, &made)]);
    let sidecar = &product.sidecar;
    assert_eq!((sidecar.accounting.received, sidecar.accounting.set_aside), (11, 1));
    assert_eq!(
        (sidecar.set_aside.reasons[&SetAsideReason::ClockJump], sidecar.set_aside.file.as_ref()),
        (1, None)
    );
    assert_eq!(files.published.len(), 3);
}

#[test]
fn a_contact_and_what_completes_it_make_a_version_of_the_contacts_products() {
    let made = &series()[100..160];
    let untimed = Make { apid: 12, vcid: 5, ..Make::default() };
    let mut first = made[..20].to_vec();
    first.push(untimed);
    let contacts = [
        heard("svalbard", 3 * HOUR, &first),
        Heard { standing: Novelty::New, ..heard("svalbard", 4 * HOUR, &made[20..]) },
    ];
    let edition = Edition {
        window: None,
        span: None,
        only: None,
        created: at(9 * HOUR),
        previous: BTreeMap::new(),
        scope: EditionScope::Changed,
    };
    let (products, files) =
        assemble(edition, Limits::default(), ProductRuleSet::default(), &contacts);
    let names: Vec<_> =
        products.iter().map(|product| product.sidecar.product.name.as_str()).collect();
    assert_eq!(names, ["imager", "untimed"]);
    assert_eq!(
        packet_file(&products[0], &files),
        made.iter().flat_map(Make::bytes).collect::<Vec<_>>()
    );
    let name = products[0].name.to_string();
    assert!(name.starts_with("P1570826VIIRSSCIENCEAS") && name.ends_with("900.PDS"), "{name}");
}

#[test]
fn a_product_is_a_plain_packet_file_or_an_account_where_that_is_asked_for() {
    let made = &series()[100..110];
    for (form, kinds) in [(Form::Packets, vec!["dat", "json"]), (Form::Account, vec!["json"])] {
        let rules = ProductRuleSet {
            forms: BTreeMap::from([("imager".to_owned(), form)]),
            ..ProductRuleSet::default()
        };
        let contacts = [heard("svalbard", 3 * HOUR, made)];
        let (products, files) =
            assemble(edition(BTreeMap::new()), Limits::default(), rules, &contacts);
        let found: Vec<_> =
            files.published.keys().map(|name| name.rsplit('.').next().unwrap()).collect();
        let mut expected = kinds;
        expected.sort_unstable();
        let mut sorted = found.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, expected);
        let sidecar = &products[0].sidecar;
        assert_eq!((sidecar.product.form, sidecar.accounting.delivered), (form, 10));
        assert_eq!(sidecar.product.construction_record, None);
        if form == Form::Packets {
            assert_eq!(packet_file(&products[0], &files), inside(made));
        }
    }
}

#[test]
fn test_data_are_marked_in_the_construction_record() {
    let rules = ProductRuleSet { is_test: true, ..ProductRuleSet::default() };
    let contacts = [heard("svalbard", 3 * HOUR, &series()[100..110])];
    let (products, files) = assemble(edition(BTreeMap::new()), Limits::default(), rules, &contacts);
    let record =
        ConstructionRecord::parse(&files.published[&products[0].name.to_string()]).unwrap();
    assert!(record.test);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Packets with times out of order and counts that repeat, each heard by one or more of three
    /// stations, sometimes twice, some copies corrected; contacts of the stations split anywhere,
    /// in any order of arrival.
    #[test]
    fn what_comes_out_does_not_depend_on_arrival_copies_or_splits(
        made in vec((0u16..40, 0u32..20, 1u8..8, any::<u8>()), 1..120),
        splits in vec(1usize..40, 3),
        order in Just((0usize..24).collect::<Vec<_>>()).prop_shuffle(),
        small: bool,
    ) {
        let station = ["svalbard", "mcmurdo", "troll"];
        let copy = |which: u8, &(count, tick, by, flaws): &(u16, u32, u8, u8)| {
            let millis = u32::try_from(2 * HOUR).unwrap() - 5_000 + tick * 1_000;
            let make = Make {
                count, millis: Some(millis), fill: (count as u8).wrapping_mul(7) ^ tick as u8,
                corrected: flaws >> which & 1 == 1, ..Make::default()
            };
            (by >> which & 1 == 1).then_some(make)
        };
        let mut contacts = Vec::new();
        for (which, split) in splits.iter().enumerate() {
            let heard_here: Vec<_> = made.iter().filter_map(|packet| copy(which as u8,
                packet)).collect();
            for (part, packets) in heard_here.chunks(*split).enumerate() {
                contacts.push(heard(station[which], 3 * HOUR + part as u64 * 1_000_000, packets));
            }
        }
        prop_assume!(!contacts.is_empty());
        let limits = if small { tiny() } else { Limits::default() };
        let mut shuffled: Vec<_> = contacts.iter().enumerate().collect();
        shuffled.sort_by_key(|(at, _)| order[at % order.len()]);
        let shuffled: Vec<_> = shuffled.into_iter().map(|(_, heard)| heard.clone()).collect();
        let whole = |contacts: &[Heard]| {
            let (products, files) = assemble(edition(BTreeMap::new()), limits,
                ProductRuleSet::default(), contacts);
            let files: Vec<_> = files.published.iter().filter(|(name,
                _)| name.ends_with(".PDS")).map(|(name, bytes)| (name.clone(),
                    bytes.clone())).collect();
            let counted: Vec<_> = products.iter().map(|product| {
                let accounting = product.sidecar.accounting;
                (accounting.received, accounting.delivered,
                    accounting.duplicates + accounting.set_aside, accounting.missing)
            }).collect();
            (files, counted)
        };
        prop_assert_eq!(whole(&shuffled), whole(&contacts));
        // As if one contact had heard everything: the packets are the same.
        let packets: Vec<_> = contacts.iter().flat_map(|heard| heard.packets.clone()).collect();
        let one = Heard { packets, ..contacts[0].clone() };
        let bytes = |found: &(Vec<(String, Vec<u8>)>, Vec<_>)| {
            found.0.iter().find(|(name, _)| name.ends_with("01.PDS")).map(|(_,
                bytes)| bytes.clone())
        };
        prop_assert_eq!(bytes(&whole(&[one])), bytes(&whole(&contacts)));
    }
}
