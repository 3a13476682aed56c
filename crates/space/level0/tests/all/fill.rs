//! Packets that a missing frame cut: left out, or filled up, counted and listed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::{Make, Memory, close, contact, mission, packet_file, tiny};
use skyhaul_ccsds::extract::{ExtractedPacket, FILL};
use skyhaul_level0::construction::{ConstructionRecord, FillEntry};
use skyhaul_level0::report::Product;
use skyhaul_level0::{ContactProcessor, FillPolicy, Limits, ProductRuleSet};
use skyhaul_units::ByteCount;
use std::collections::BTreeMap;

fn made(count: u16) -> Make {
    Make { count, millis: Some(u32::from(count) * 10), ..Make::default() }
}

/// The packet of this count with so many octets of fill at its end.
fn cut(count: u16, fill: u32) -> ExtractedPacket {
    let whole = made(count).packet();
    let mut bytes = whole.bytes.to_vec();
    let first = bytes.len() - fill as usize;
    bytes[first..].fill(FILL);
    ExtractedPacket { bytes: bytes.into(), fill, ..whole }
}

fn pad() -> ProductRuleSet {
    ProductRuleSet { fill: FillPolicy::Pad, ..ProductRuleSet::default() }
}

fn process(
    limits: Limits,
    rules: ProductRuleSet,
    packets: &[ExtractedPacket],
) -> (Product, Memory) {
    let mut files = Memory::default();
    let mut processor =
        ContactProcessor::new(&mission(), contact(), limits, &mut files).with_rules(rules);
    packets.iter().for_each(|packet| processor.packet(packet.clone()).unwrap());
    let product = processor.finish(close()).unwrap().remove(0);
    assert!(product.sidecar.accounting.balanced, "{:?}", product.sidecar.accounting);
    (product, files)
}

fn record(product: &Product, files: &Memory) -> ConstructionRecord {
    ConstructionRecord::parse(&files.published[&product.name.to_string()]).unwrap()
}

#[test]
fn a_cut_packet_is_left_out_unless_its_product_pads() {
    let packets = [made(0).packet(), cut(1, 12), made(2).packet()];
    let only_others = ProductRuleSet {
        fills: BTreeMap::from([("imager".to_owned(), FillPolicy::Drop)]),
        ..pad()
    };
    for rules in [ProductRuleSet::default(), only_others] {
        let (product, files) = process(Limits::default(), rules, &packets);
        let accounting = product.sidecar.accounting;
        assert_eq!((accounting.received, accounting.delivered, accounting.missing), (2, 2, 1));
        assert_eq!((accounting.filled_packets, accounting.fill_octets), (0, 0));
        assert_eq!(record(&product, &files).totals.fill, ByteCount::ZERO);
    }
}

#[test]
fn a_filled_packet_is_counted_and_listed_where_it_lies() {
    for limits in [Limits::default(), tiny()] {
        // The last is late where memory is short.
        let packets: Vec<_> = (0..40)
            .filter(|count| *count != 3)
            .map(|count| made(count).packet())
            .chain([cut(3, 12)])
            .collect();
        let (product, files) = process(limits, pad(), &packets);
        let accounting = product.sidecar.accounting;
        assert_eq!((accounting.delivered, accounting.missing), (40, 0));
        assert_eq!((accounting.filled_packets, accounting.fill_octets), (1, 12));
        let listed = &product.sidecar.apids[0].incomplete.fill_list;
        assert_eq!(listed.len(), 1);
        assert_eq!((listed[0].count, listed[0].offset), (3, 3 * 40));
        assert_eq!((listed[0].first_fill, listed[0].octets), (28, 12));
        let bytes = packet_file(&product, &files);
        assert_eq!(bytes[3 * 40..4 * 40], cut(3, 12).bytes[..]);
        let record = record(&product, &files);
        assert_eq!(record.totals.fill, ByteCount::new(12));
        let entry = FillEntry { sequence_count: 3, offset: ByteCount::new(120), first_fill: 28 };
        assert_eq!(
            (&record.apids[0].fill, record.apids[0].fill_octets),
            (&vec![entry], ByteCount::new(12))
        );
    }
}

#[test]
fn the_copy_with_more_of_the_packet_stays_and_the_other_is_a_duplicate() {
    let copies = [cut(1, 20), cut(1, 4), cut(1, 12)];
    for first in 0..copies.len() {
        let mut copies = copies.to_vec();
        copies.rotate_left(first);
        let (product, files) = process(Limits::default(), pad(), &copies);
        assert_eq!(packet_file(&product, &files), &cut(1, 4).bytes[..]);
        assert_eq!(
            (product.sidecar.accounting.duplicates, product.sidecar.accounting.set_aside),
            (2, 0)
        );
        copies.push(made(1).packet());
        let (product, files) = process(Limits::default(), pad(), &copies);
        assert_eq!(packet_file(&product, &files), made(1).bytes());
        assert_eq!(
            (product.sidecar.accounting.duplicates, product.sidecar.accounting.filled_packets),
            (3, 0)
        );
    }
    let mut other = made(1);
    other.fill = 0x55;
    let (product, _) = process(Limits::default(), pad(), &[cut(1, 4), other.packet()]);
    assert_eq!(product.sidecar.accounting.set_aside, 1, "what came of them differs");
}

#[test]
fn a_packet_cut_before_its_time_is_left_out() {
    let (product, _) =
        process(Limits::default(), pad(), &[made(0).packet(), cut(1, 30), made(2).packet()]);
    let accounting = product.sidecar.accounting;
    assert_eq!((accounting.received, accounting.delivered, accounting.filled_packets), (2, 2, 0));
}

#[test]
fn a_contradicted_length_is_counted_and_listed_under_either_policy() {
    for rules in [ProductRuleSet::default(), pad()] {
        let packets =
            [made(0).packet(), ExtractedPacket { length_differs: true, ..made(1).packet() }];
        let (product, files) = process(Limits::default(), rules, &packets);
        assert_eq!(product.sidecar.accounting.length_discrepancies, 1);
        assert_eq!(product.sidecar.apids[0].incomplete.length_discrepancy_list, [1]);
        let record = record(&product, &files);
        assert_eq!(
            (record.totals.length_discrepancies, &record.apids[0].length_discrepancies[..]),
            (1, &[1][..])
        );
    }
}
