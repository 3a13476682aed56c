//! Products of packets in any order: what is in them, what is not, and that all of it is counted.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on says so")]

use crate::support::shared;
use crate::support::{
    self, Make, Memory, close, contact, mission, packet_file, process, process_contact,
    process_mission, tiny,
};
use proptest::collection::vec;
use proptest::prelude::*;
use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::packet::{Grouping, Packets};
use skyhaul_level0::construction::ConstructionRecord;
use skyhaul_level0::naming::Digit;
use skyhaul_level0::report::Product;
use skyhaul_level0::{
    ClockCheck, ClockReference, ContactClose, ContactProcessor, Error, Limits, SetAsideReason,
    SortedBy,
};
use skyhaul_units::{ByteCount, Duration, Utc};

/// A packet group: the first packet has the time, the others follow.
fn group(first: Make, packets: u16) -> Vec<Make> {
    let part = |at: u16| Make {
        count: (first.count + at) & 0x3FFF,
        grouping: match at {
            0 => Grouping::First,
            _ if at + 1 == packets => Grouping::Last,
            _ => Grouping::Continuation,
        },
        millis: if at == 0 { first.millis } else { None },
        fill: (first.count + at) as u8,
        ..first
    };
    (0..packets).map(part).collect()
}

fn packets(made: &[Vec<Make>]) -> Vec<ExtractedPacket> {
    made.iter().flatten().map(Make::packet).collect()
}

fn bytes(made: &[Vec<Make>]) -> Vec<u8> {
    made.iter().flatten().flat_map(Make::bytes).collect()
}

#[test]
fn packets_are_in_the_order_of_time_then_the_missions_order_of_applications_then_count() {
    let in_order = vec![
        group(Make { apid: 826, count: 9, millis: Some(10), ..Make::default() }, 2),
        group(Make { apid: 800, count: 7, millis: Some(10), ..Make::default() }, 3),
        group(Make { apid: 801, count: 3, millis: Some(10), ..Make::default() }, 2),
        group(Make { apid: 800, count: 10, millis: Some(20), ..Make::default() }, 4),
    ];
    let shuffled = [2, 3, 1, 0].map(|at: usize| in_order[at].clone());
    let (products, files) = process(Limits::default(), &packets(&shuffled));
    assert_eq!(packet_file(&products[0], &files), bytes(&in_order));
    let sidecar = &products[0].sidecar;
    assert_eq!(
        (sidecar.product.name.as_str(), sidecar.product.sorted_by),
        ("imager", SortedBy::PacketTime)
    );
    assert_eq!((sidecar.accounting.delivered, sidecar.accounting.gaps), (11, 0));
    assert_eq!(files.created.get("merged"), None, "nothing was late");
}

#[test]
fn a_group_that_wraps_the_count_stays_in_sequence() {
    let made = vec![
        group(Make { count: 16_381, millis: Some(1), ..Make::default() }, 6),
        group(Make { count: 3, millis: Some(2), ..Make::default() }, 3),
    ];
    for limits in [Limits::default(), tiny()] {
        let (products, files) = process(limits, &packets(&[made[1].clone(), made[0].clone()]));
        assert_eq!(packet_file(&products[0], &files), bytes(&made));
        assert_eq!(products[0].sidecar.accounting.gaps, 0);
    }
}

#[test]
fn gaps_are_in_the_account_and_in_the_construction_record() {
    let single = |count, millis| Make { count, millis: Some(millis), ..Make::default() };
    let made = [single(5, 0), single(6, 1_000), single(16, 2_000), single(18, 3_000)]
        .map(|make| vec![make]);
    let (products, files) = process(Limits::default(), &packets(&made));
    let sidecar = &products[0].sidecar;
    assert_eq!((sidecar.accounting.missing, sidecar.accounting.gaps), (10, 2));
    let record =
        ConstructionRecord::parse(&files.published[&products[0].name.to_string()]).unwrap();
    assert_eq!(record.id.as_str(), products[0].name.stem());
    assert_eq!(
        (record.totals.packets, record.totals.gaps, record.totals.size.as_u64()),
        (4, 2, 160)
    );
    let [apid] = &record.apids[..] else { panic!("{:?}", record.apids) };
    assert_eq!((apid.stream.scid(), apid.stream.apid(), apid.vcids[0].vcid()), (157, 800, 16));
    let gaps: Vec<_> =
        apid.gaps.iter().map(|gap| (gap.first_missing, gap.missed, gap.offset.as_u64())).collect();
    assert_eq!(gaps, [(7, 9, 80), (17, 1, 120)]);
    let at = |millis| Some(Utc::from_day(support::DAY, Duration::from_millis(millis)));
    assert_eq!(apid.gaps[0].packet_times.first.utc(), at(1_000));
    assert_eq!(apid.gaps[0].packet_times.last.utc(), at(2_000));
    assert_eq!(record.sessions[0].first.utc(), Some(contact().opened));
    assert_eq!(record.sessions[0].last.utc(), Some(close().closed));
    let names: Vec<_> = record.files.iter().map(|file| file.name.as_str()).collect();
    let packets = sidecar.product.packet_file.clone().unwrap();
    assert_eq!(names, [products[0].name.to_string(), packets.name]);
    assert_eq!(sidecar.product.construction_record, Some(products[0].name.to_string()));
}

/// Packets of three applications that share one counter, each with a time of its own kind: three at
/// once, one behind, and over the wrap of the count.
fn shared_count() -> Vec<Make> {
    let made = [
        (811, 0),
        (812, 0),
        (810, 0),
        (811, 40),
        (812, 60),
        (810, 80),
        (811, 90),
        (812, 90),
        (810, 90),
    ];
    let make = |(at, (apid, millis)): (usize, &(u16, u32))| Make {
        apid: *apid,
        count: (16_379 + at as u16) & 0x3FFF,
        millis: Some(*millis),
        ..Make::default()
    };
    made.iter().enumerate().map(make).collect()
}

/// As the mission of the other tests, with one counter for three of the imager's applications.
fn process_shared(limits: Limits, packets: &[ExtractedPacket]) -> (Vec<Product>, Memory) {
    let text = format!("{}\n[[shared_counter]]\napids = [\"810-812\"]\n", support::MISSION);
    process_mission(&Mission::from_toml(&text).unwrap(), contact(), limits, packets)
}

#[test]
fn applications_that_share_a_counter_have_no_gaps_between_their_packets() {
    let made = shared_count();
    let packets: Vec<_> = made.iter().map(Make::packet).collect();
    let (products, files) = process_shared(Limits::default(), &packets);
    let accounting = products[0].sidecar.accounting;
    assert_eq!((accounting.delivered, accounting.gaps, accounting.missing), (9, 0, 0));
    assert!(products[0].sidecar.apids.iter().all(|apid| apid.resets == 0));
    let expected: Vec<u8> = made.iter().flat_map(Make::bytes).collect();
    assert_eq!(packet_file(&products[0], &files), expected, "in the order of the count");
    let backwards: Vec<_> = packets.iter().rev().cloned().collect();
    let (products, files) = process_shared(tiny(), &backwards);
    assert_eq!(packet_file(&products[0], &files), expected, "whatever the order of arrival");
    assert_eq!(products[0].sidecar.accounting.gaps, 0);
    let (alone, _) = process(Limits::default(), &packets);
    assert!(alone[0].sidecar.accounting.gaps > 0, "a counter for each application would have gaps");
}

#[test]
fn each_packet_missing_from_a_shared_counter_shows_as_a_gap() {
    let made = shared_count();
    for missing in 1..made.len() - 1 {
        let packets: Vec<_> = made
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != missing)
            .map(|(_, make)| make.packet())
            .collect();
        let (products, files) = process_shared(Limits::default(), &packets);
        let sidecar = &products[0].sidecar;
        assert_eq!(
            (sidecar.accounting.gaps, sidecar.accounting.missing),
            (1, 1),
            "without {missing}"
        );
        let record =
            ConstructionRecord::parse(&files.published[&products[0].name.to_string()]).unwrap();
        assert_eq!(record.totals.gaps, 1);
        let with_gap: Vec<_> = record.apids.iter().filter(|apid| !apid.gaps.is_empty()).collect();
        let [apid] = &with_gap[..] else { panic!("{:?}", record.apids) };
        let (after, gap) = (made[missing + 1], apid.gaps[0]);
        assert_eq!(apid.stream.apid(), after.apid, "the gap is with the packet after it");
        assert_eq!((gap.first_missing, gap.missed), (u32::from(made[missing].count), 1));
        assert_eq!(gap.offset.as_u64(), 40 * missing as u64);
        let at = |make: Make| {
            Some(Utc::from_day(support::DAY, Duration::from_millis(make.millis.unwrap().into())))
        };
        assert_eq!(gap.packet_times.first.utc(), at(made[missing - 1]), "of another application");
        assert_eq!(gap.packet_times.last.utc(), at(after));
    }
}

#[test]
fn a_clock_jump_of_years_is_set_aside_with_the_rest_of_its_group() {
    for years in [-20, 20] {
        let good = group(Make { count: 0, ..Make::default() }, 3);
        let jumped =
            group(Make { count: 3, day: support::DAY + years * 365, ..Make::default() }, 3);
        let after = group(Make { count: 6, millis: Some(1_000), ..Make::default() }, 3);
        let made = [good.clone(), jumped.clone(), after.clone()];
        let (products, files) = process(Limits::default(), &packets(&made));
        assert_eq!(packet_file(&products[0], &files), bytes(&[good, after]));
        let sidecar = &products[0].sidecar;
        assert_eq!(sidecar.set_aside.reasons[&SetAsideReason::ClockJump], 1);
        assert_eq!(sidecar.set_aside.reasons[&SetAsideReason::GroupSetAside], 2);
        assert_eq!((sidecar.accounting.set_aside, sidecar.accounting.missing), (3, 3));
        let file = sidecar.set_aside.file.as_ref().unwrap();
        assert_eq!(files.published[&file.name], bytes(&[jumped]));
        assert_eq!(sidecar.set_aside.packets[2].offset, 80);
    }
}

#[test]
fn an_archived_pass_is_believed_unless_reception_is_the_reference() {
    let made = [group(Make { day: support::DAY - 3_000, ..Make::default() }, 3)];
    let (products, _) = process(Limits::default(), &packets(&made));
    assert_eq!(products[0].sidecar.accounting.delivered, 3);
    let clock = ClockCheck { reference: ClockReference::Reception, ..ClockCheck::default() };
    let (products, _) = process(Limits { clock, ..Limits::default() }, &packets(&made));
    assert_eq!(
        (products[0].sidecar.accounting.delivered, products[0].sidecar.accounting.set_aside),
        (0, 3)
    );
}

#[test]
fn the_contacts_time_is_found_however_many_packets_without_time_come_first() {
    let without =
        Make { grouping: Grouping::Continuation, millis: None, len: 60_000, ..Make::default() };
    let mut made = vec![without.packet(); 100];
    made.push(Make { apid: 12, len: 60_000, ..Make::default() }.packet());
    made.push(Make { count: 1, ..Make::default() }.packet());
    let (products, _) = process(Limits::default(), &made);
    let accounting = products[0].sidecar.accounting;
    assert_eq!((accounting.delivered, accounting.set_aside), (1, 100));
    assert_eq!(products[1].sidecar.accounting.delivered, 1);
}

#[test]
fn a_second_spacecraft_in_the_stream_is_kept_apart() {
    let mut foreign = Make { fill: 3, ..Make::default() }.packet();
    foreign.channel.scid = skyhaul_ccsds::id::Scid::new(99).unwrap();
    let (products, files) =
        process(Limits::default(), &[foreign.clone(), Make::default().packet()]);
    assert_eq!(packet_file(&products[0], &files), Make::default().bytes());
    let aside = &products[1].sidecar.set_aside;
    assert_eq!(aside.reasons[&SetAsideReason::OtherSpacecraft], 1);
    assert_eq!(files.published[&aside.file.as_ref().unwrap().name], foreign.bytes);
}

#[test]
fn packets_that_cannot_be_timed_are_set_aside_by_reason() {
    let tail = Make { count: 1, grouping: Grouping::Continuation, millis: None, ..Make::default() };
    let untimed_first =
        Make { count: 2, grouping: Grouping::First, millis: None, ..Make::default() };
    let its_tail = Make { count: 3, grouping: Grouping::Last, millis: None, ..Make::default() };
    let good = Make { count: 4, ..Make::default() };
    let mut made: Vec<_> = [tail, untimed_first, its_tail, good].iter().map(Make::packet).collect();
    let mut impossible = Make { count: 5, ..Make::default() }.bytes();
    impossible[8..12].fill(0xFF);
    made.push(support::received(16, impossible, false));
    made.push(support::received(16, vec![0xE8, 4, 1, 2], false));
    made.push(support::received(16, vec![0xE0], false));
    let (products, _) = process(Limits::default(), &made);
    let [imager, other] = &products[..] else { panic!("{} products", products.len()) };
    let reasons: Vec<_> =
        imager.sidecar.set_aside.reasons.iter().map(|(key, count)| (*key, *count)).collect();
    assert_eq!(
        reasons,
        [
            (SetAsideReason::ImpossibleTime, 1),
            (SetAsideReason::NoTime, 2),
            (SetAsideReason::GroupSetAside, 1)
        ]
    );
    assert_eq!(imager.sidecar.accounting.delivered, 1);
    assert_eq!(other.sidecar.set_aside.reasons[&SetAsideReason::NotASpacePacket], 1);
    assert_eq!(other.sidecar.frames.idle_packets, 1);
    let kinds: Vec<_> =
        other.files.iter().map(|file| file.name.rsplit('.').next().unwrap()).collect();
    assert_eq!(kinds, ["aside", "json"], "no record of a product without packets");
}

#[test]
fn packets_of_no_group_and_without_time_code_have_products_of_their_own() {
    let made = [
        Make { apid: 900, count: 2, millis: Some(7), ..Make::default() },
        Make { apid: 12, count: 9, ..Make::default() },
        Make { apid: 901, count: 1, millis: Some(3), ..Make::default() },
        Make { apid: 12, count: 8, ..Make::default() },
        Make { apid: 520, vcid: 6, ..Make::default() },
    ];
    let (products, files) = process(Limits::default(), &made.map(|make| make.packet()));
    let names: Vec<_> = products.iter().map(|product| product.name.to_string()).collect();
    assert_eq!(
        names,
        [
            "P1570500AAAAAAAAAAAAAS24341011001000.PDS",
            "P1570000OTHERPACKETSAS24341011001000.PDS",
            "P1570000UNTIMEDPACKETS24341011001000.PDS",
        ]
    );
    assert_eq!(packet_file(&products[1], &files), [made[2].bytes(), made[0].bytes()].concat());
    assert_eq!(packet_file(&products[2], &files), [made[1].bytes(), made[3].bytes()].concat());
    assert_eq!(products[2].sidecar.product.sorted_by, SortedBy::Reception);
    assert_eq!(products[2].sidecar.product.first.unwrap().time, None);
}

#[test]
fn of_two_copies_the_better_stays_and_the_other_is_kept_aside() {
    let good = Make { fill: 9, ..Make::default() };
    let worse = Make { fill: 1, corrected: true, ..Make::default() };
    // Enough before and after that with tiny limits one copy is written before the other comes.
    let filler = |count| Make { count, millis: Some(1_000 + u32::from(count)), ..Make::default() };
    for limits in [Limits::default(), tiny()] {
        for copies in [[good, worse], [worse, good]] {
            let mut made = vec![copies[0]];
            made.extend((1..50).map(filler));
            made.push(copies[1]);
            let made: Vec<_> = made.iter().map(Make::packet).collect();
            let (products, files) = process(limits, &made);
            assert!(packet_file(&products[0], &files).starts_with(&good.bytes()));
            let sidecar = &products[0].sidecar;
            assert_eq!((sidecar.accounting.delivered, sidecar.accounting.set_aside), (50, 1));
            assert_eq!(
                files.published[&sidecar.set_aside.file.as_ref().unwrap().name],
                worse.bytes()
            );
            assert_eq!(sidecar.set_aside.packets[0].reason, SetAsideReason::Differs);
        }
    }
}

#[test]
fn a_window_of_time_is_half_open() {
    let at = |millis| Utc::from_day(support::DAY, Duration::from_millis(millis));
    let made = [0, 9, 10, 19, 20].map(|millis| Make {
        count: millis as u16,
        millis: Some(millis),
        ..Make::default()
    });
    let info = skyhaul_level0::ContactInfo {
        window: Some(skyhaul_level0::TimeWindow { from: at(10), to: at(20) }),
        ..contact()
    };
    let (products, files) =
        process_contact(info, Limits::default(), &made.map(|make| make.packet()));
    assert_eq!(packet_file(&products[0], &files), [made[2].bytes(), made[3].bytes()].concat());
    assert_eq!(products[0].sidecar.accounting.outside_window, 3);
}

#[test]
fn what_does_not_fit_the_file_of_packets_set_aside_is_rejected_and_counted() {
    let made = [(); 3]
        .map(|()| Make { grouping: Grouping::Last, millis: None, ..Make::default() }.packet());
    let (products, _) =
        process(Limits { set_aside: ByteCount::new(100), ..Limits::default() }, &made);
    let accounting = products[0].sidecar.accounting;
    assert_eq!((accounting.received, accounting.set_aside, accounting.rejected), (3, 2, 1));
}

#[test]
fn a_contact_without_packets_has_no_products() {
    let (products, files) = process(Limits::default(), &[]);
    assert!(products.is_empty() && files.published.is_empty());
}

#[test]
fn storage_that_fails_is_named() {
    for name in
        ["group0.packets", "group0.index", "group0.aside", "group0.record", "group0.account"]
    {
        let mut files = Memory { refuses: Some(name), ..Memory::default() };
        let mut processor =
            ContactProcessor::new(&mission(), contact(), Limits::default(), &mut files);
        let aside = Make { grouping: Grouping::Last, millis: None, ..Make::default() };
        let made = [aside, Make::default()].map(|make| processor.packet(make.packet()));
        assert!(made.iter().all(Result::is_ok), "packets wait for the contact's time");
        let error = processor.finish(close()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(name) && text.contains("no space left on device"), "{text}");
        assert!(
            files.published.keys().all(|name| !name.ends_with("00.PDS")),
            "no record without its product"
        );
    }
}

#[test]
fn products_of_one_second_are_told_apart_until_the_digits_are_used_up() {
    let text = support::MISSION
        .replace("name = \"sounder\"", "name = \"sounder\"\nlabel = \"0826VIIRSSCIENCEAS\"");
    let mission = Mission::from_toml(&text).unwrap();
    let run = |digit| {
        let mut processor =
            ContactProcessor::new(&mission, contact(), Limits::default(), Memory::default());
        processor.packet(Make::default().packet()).unwrap();
        processor.packet(Make { apid: 500, vcid: 6, ..Make::default() }.packet()).unwrap();
        processor.finish(ContactClose { uniqueness: Digit::new(digit).unwrap(), ..close() })
    };
    let digits: Vec<_> =
        run(8).unwrap().iter().map(|product| product.name.uniqueness().as_u8()).collect();
    assert_eq!(digits, [8, 9]);
    assert!(matches!(run(9), Err(Error::NamesUsedUp { .. })));
}

#[test]
fn one_time_stamp_for_a_whole_pass_still_delivers_every_packet() {
    // A stuck clock: more than the longest run, and counts that wrap.
    let made: Vec<_> = (0..20_000u32)
        .map(|at| Make {
            count: (at & 0x3FFF) as u16,
            fill: (at >> 14) as u8,
            len: 1_000,
            ..Make::default()
        })
        .collect();
    let made: Vec<_> = made.iter().map(Make::packet).collect();
    let limits =
        Limits { window: ByteCount::kib(64), late: ByteCount::kib(256), ..Limits::default() };
    let (products, _) = process(limits, &made);
    let accounting = products[0].sidecar.accounting;
    assert_eq!(accounting.delivered + accounting.set_aside, 20_000);
}

fn groups() -> impl Strategy<Value = Vec<Vec<Make>>> {
    let one = (0u16..3, 0u16..1_000, 0u32..200, 1u16..5, 16usize..60).prop_map(
        |(apid, count, millis, n, len)| {
            // What a packet is follows from its place, so that two of one place are copies.
            let len = len.min(16) + usize::from(count % 40);
            let single = n == 1;
            let first = Make {
                apid: 800 + apid,
                count: count * 8,
                millis: Some(millis * 50),
                len,
                ..Make::default()
            };
            if single { vec![Make { fill: first.count as u8, ..first }] } else { group(first, n) }
        },
    );
    vec(one, 1..60)
}

/// One group for each time and application, in order: what the product should hold.
fn distinct(groups: &[Vec<Make>]) -> Vec<Vec<Make>> {
    let rank = |make: &Make| (make.millis, make.apid);
    let mut groups = groups.to_vec();
    groups.sort_by_key(|group| rank(&group[0]));
    groups.dedup_by_key(|group| rank(&group[0]));
    groups
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_order_of_arrival_and_copies_do_not_change_the_product(
        groups in groups(), picks in vec(any::<prop::sample::Index>(), 0..40), seed: u64
    ) {
        let in_order = distinct(&groups);
        let mut arriving = in_order.clone();
        arriving.extend(picks.iter().map(|pick| in_order[pick.index(in_order.len())].clone()));
        let copies: usize = arriving.iter().map(Vec::len).sum::<usize>()
            - in_order.iter().map(Vec::len).sum::<usize>();
        shuffle(&mut arriving, seed);
        for limits in [Limits::default(), tiny()] {
            let (products, files) = process(limits, &packets(&arriving));
            prop_assert_eq!(packet_file(&products[0], &files), &bytes(&in_order)[..]);
            prop_assert_eq!(products[0].sidecar.accounting.duplicates, copies as u64);
            prop_assert_eq!(products[0].sidecar.accounting.set_aside, 0);
        }
    }

    #[test]
    fn any_packets_are_each_counted_once(
        made in vec((any::<[u8; 2]>(), any::<[u8; 2]>(), 7usize..60, any::<u64>(), 0u8..20), 0..120)
    ) {
        let made: Vec<_> = made.iter().filter_map(|(id, sequence, len, seed, vcid)| {
            let mut bytes = vec![0; *len];
            bytes[..2].copy_from_slice(&[id[0] & 0x1F, id[1]]);
            bytes[2..4].copy_from_slice(sequence);
            bytes[5] = (*len - 7) as u8;
            for (at, byte) in bytes[6..].iter_mut().enumerate() {
                *byte = (seed >> (at % 8 * 8)) as u8;
            }
            let packet = support::received(*vcid, bytes, seed & 1 == 1);
            (!packet.header.is_idle()).then_some(packet)
        }).collect();
        for limits in [Limits::default(), tiny()] {
            // Balance is asserted within.
            let (products, _) = process(limits, &made);
            let received: u64 = products.iter().map(|product|
                product.sidecar.accounting.received).sum();
            prop_assert_eq!(received, made.len() as u64);
        }
    }
}

#[test]
fn many_late_packets_go_through_many_run_files() {
    // Backwards in time: each packet is late, so that run files are merged with each other on the
    // way.
    let made: Vec<_> = (0..2_000u16)
        .map(|at| Make {
            count: at,
            millis: Some(u32::from(at) * 1_000),
            fill: at as u8,
            ..Make::default()
        })
        .collect();
    let backwards: Vec<_> = made.iter().rev().map(Make::packet).collect();
    let (products, files) = process(tiny(), &backwards);
    let expected: Vec<u8> = made.iter().flat_map(Make::bytes).collect();
    assert_eq!(packet_file(&products[0], &files), expected);
    assert!(products[0].sidecar.accounting.late > 1_900);
    assert!(files.created["run"] > 100, "{:?}", files.created);
    assert!(
        files.most_run_files <= 33,
        "32, and the one that they become: {}",
        files.most_run_files
    );
    let (again, _) = process(tiny(), &backwards);
    assert_eq!(again, products, "same packets and creation time, same product");
}

#[test]
fn overlapping_packet_files_of_a_real_instrument_merge_to_their_union() {
    let Some(expected) = shared::read("expected.json") else { return };
    let expected: serde_json::Value = serde_json::from_slice(&expected).unwrap();
    let expected = &expected["l0/viirs_merge1.dat+viirs_merge2.dat"];
    let read = |file: &str| -> Vec<_> {
        let bytes = shared::read(file).unwrap();
        Packets::new(&bytes)
            .map(|(_, packet)| support::received(16, packet.to_vec(), false))
            .collect()
    };
    let (first, second) = (read("l0/viirs_merge1.dat"), read("l0/viirs_merge2.dat"));
    let union = [first.clone(), second.clone()].concat();
    let (products, files) = process(Limits::default(), &union);
    let accounting = products[0].sidecar.accounting;
    assert_eq!(expected["union_packets"], accounting.delivered);
    assert_eq!(expected["common_packets"], accounting.duplicates);
    assert_eq!((accounting.set_aside, accounting.gaps), (0, 0));
    for (limits, packets) in [(tiny(), union), (Limits::default(), [second, first].concat())] {
        let (again, others) = process(limits, &packets);
        assert_eq!(packet_file(&again[0], &others), packet_file(&products[0], &files));
    }
}

/// Fisher-Yates by a linear congruence.
fn shuffle<T>(items: &mut [T], mut seed: u64) {
    for last in (1..items.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(last, (seed >> 33) as usize % (last + 1));
    }
}
