//! Expedited data sets: published while the contact goes on, in slices, the same whenever it is
//! processed again.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use crate::support::{Make, Memory, close, contact, mission, packet_file};
use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::id::Apid;
use skyhaul_ccsds::mission::ApidRange;
use skyhaul_level0::construction::{ConstructionRecord, ProductKind};
use skyhaul_level0::naming::Digit;
use skyhaul_level0::report::Product;
use skyhaul_level0::{ContactProcessor, Expedite, Limits};
use skyhaul_units::Duration;

fn subset(product: Option<&str>) -> Expedite {
    Expedite {
        product: product.map(str::to_owned),
        apids: Vec::new(),
        slice: Duration::from_secs(10),
        quick_look: false,
        uniqueness: Digit::default(),
    }
}

/// A packet of the imager and one of the sounder each second, for a minute; neighbours come the
/// wrong way round.
fn packets() -> Vec<ExtractedPacket> {
    let make = |second: u16| {
        let at = second ^ 1;
        let imager = Make { count: at, millis: Some(u32::from(at) * 1_000), ..Make::default() };
        [imager, Make { apid: 520, vcid: 6, ..imager }]
    };
    let received = |(second, make): (u16, Make)| {
        let packet = make.packet();
        ExtractedPacket {
            received: packet.received + Duration::from_secs(u64::from(second)),
            ..packet
        }
    };
    (0..60).flat_map(|second| make(second).map(|made| (second, made))).map(received).collect()
}

fn process(subsets: Vec<Expedite>) -> (Vec<Product>, Vec<Product>, Memory) {
    let mut files = Memory::default();
    let mut processor = ContactProcessor::new(&mission(), contact(), Limits::default(), &mut files)
        .with_expedited(subsets);
    let mut early = Vec::new();
    for packet in packets() {
        processor.packet(packet).unwrap();
        early.extend(processor.expedited());
    }
    let last = processor.finish(close()).unwrap();
    assert!(files.working.is_empty(), "left over: {:?}", files.working.keys());
    (early, last, files)
}

#[test]
fn slices_are_published_while_the_contact_goes_on() {
    let (early, last, files) = process(vec![subset(Some("imager"))]);
    assert_eq!(early.len(), 5, "the last is over with the contact");
    let (expedited, whole): (Vec<_>, Vec<_>) = early
        .iter()
        .chain(&last)
        .partition(|product| product.sidecar.product.kind == ProductKind::Eds);
    assert_eq!((expedited.len(), whole.len()), (6, 2));
    let together: Vec<u8> =
        expedited.iter().flat_map(|product| packet_file(product, &files).to_vec()).collect();
    assert_eq!(
        together,
        packet_file(whole[0], &files),
        "nothing is in two slices, and order holds across them"
    );
    let first = expedited[0];
    let name = first.name.to_string();
    assert!(name.starts_with("E1570826VIIRSSCIENCEAS") && name.ends_with("00.EDS"), "{name}");
    let record = ConstructionRecord::parse(&files.published[&name]).unwrap();
    assert_eq!((record.kind, record.totals.packets), (ProductKind::Eds, 10));
    let mut names: Vec<_> = expedited.iter().map(|product| product.name).collect();
    names.dedup();
    assert_eq!(names.len(), 6);
}

#[test]
fn a_subset_is_of_applications_and_for_quick_look() {
    let only = Apid::new(520).unwrap();
    let look = Expedite {
        apids: vec![ApidRange { first: only, last: only }],
        quick_look: true,
        slice: Duration::from_secs(3_600),
        ..subset(None)
    };
    let (early, last, files) = process(vec![look]);
    assert!(early.is_empty());
    let record = ConstructionRecord::parse(&files.published[&last[0].name.to_string()]).unwrap();
    assert_eq!((record.kind, record.totals.packets), (ProductKind::QuickLookEds, 60));
    assert_eq!(last[0].sidecar.product.name, "sounder");
    assert!(last.iter().all(|product| product.sidecar.accounting.balanced));
}

#[test]
fn a_contact_that_is_processed_again_gives_the_same_slices() {
    let once = process(vec![
        subset(Some("imager")),
        Expedite { uniqueness: Digit::NINE, ..subset(Some("imager")) },
    ]);
    let again = process(vec![
        subset(Some("imager")),
        Expedite { uniqueness: Digit::NINE, ..subset(Some("imager")) },
    ]);
    assert_eq!(once.2.published, again.2.published);
}

#[test]
fn the_first_slice_of_a_slow_downlink_does_not_wait_for_many_times() {
    let mut files = Memory::default();
    let mut processor = ContactProcessor::new(&mission(), contact(), Limits::default(), &mut files)
        .with_expedited(vec![subset(Some("imager"))]);
    let (packets, mut taken) = (packets(), 0);
    while processor.expedited().is_empty() {
        processor.packet(packets[taken].clone()).unwrap();
        taken += 1;
    }
    let waited = packets[taken - 1].received.since(packets[0].received);
    assert_eq!(waited, Duration::from_secs(10), "two packets a second");
}
