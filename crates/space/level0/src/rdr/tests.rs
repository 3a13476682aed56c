use super::*;
use proptest::prelude::*;
use skyhaul_ccsds::id::Apid;
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_ccsds::packet::{Grouping, SpaceHeader};
use skyhaul_ccsds::time::TimeCode;
use skyhaul_units::{Duration, Utc};

fn mission() -> Mission {
    MissionSet::built_in().by_name("suomi-npp").unwrap().clone()
}

fn plan() -> RdrPlan {
    RdrTable::built_in().plan("suomi-npp").unwrap().clone()
}

/// 2024-12-06T17:38:15, a granule of VIIRS's start further on.
fn noon() -> Utc {
    Utc::from_day(20_063, Duration::from_secs(63_495))
}

fn packet(apid: u16, count: u16, grouping: Grouping, time: Option<Utc>, len: usize) -> Vec<u8> {
    let header = SpaceHeader {
        is_telecommand: false,
        has_secondary: time.is_some(),
        apid: Apid::new(apid).unwrap(),
        grouping,
        count: count & 0x3FFF,
        total_len: len,
    };
    let mut bytes: Vec<u8> = (0..len).map(|at| (at as u16 ^ apid ^ count) as u8).collect();
    bytes[..6].copy_from_slice(&header.to_bytes());
    if let Some(time) = time {
        assert!(TimeCode::Cds8.write(time, &mut bytes[6..]));
    }
    bytes
}

fn facts() -> FileFacts {
    FileFacts {
        origin: "sky".parse().unwrap(),
        mode: "ops".parse().unwrap(),
        orbit: 67_890,
        created: noon() + Duration::from_millis(1_234),
        software: "skyhaul 0.1.0".to_owned(),
    }
}

/// Packs a granule of an indexed set of packets that lie one after the other in `file`.
fn pack(
    plan: &RdrPlan,
    sorted: &Sorted,
    granule: &GranulePlan,
    files: &[Vec<Vec<u8>>],
) -> PackedGranule {
    let mut builder =
        GranuleBuilder::new(plan, &plan.collections[granule.collection], granule.span);
    for packet in sorted.packets(granule) {
        builder.add(packet.time, &files[packet.source as usize][packet.offset as usize]).unwrap();
    }
    builder.finish()
}

/// Sorts packets; offsets are places in the lists.
fn sort(plan: &RdrPlan, wanted: &[&str], files: &[Vec<Vec<u8>>]) -> Sorted {
    let mission = mission();
    let mut index = PacketIndex::new(&mission, plan, wanted);
    for (source, file) in files.iter().enumerate() {
        for (at, packet) in file.iter().enumerate() {
            index.push(source as u32, at as u64, packet).unwrap();
        }
    }
    let sorted = index.finish().unwrap();
    let IndexAccount {
        read,
        placed,
        duplicates,
        differing,
        other_applications,
        untimed,
        before_base,
    } = sorted.account;
    assert_eq!(read, placed + duplicates + differing + other_applications + untimed + before_base);
    sorted
}

#[test]
fn known_answers_for_granules() {
    let plan = plan();
    let viirs = plan.collection("viirs").unwrap();
    let granule = plan.granule(viirs, Iet::from_micros(2_112_504_636_060_127)).unwrap();
    assert_eq!(granule.start, Iet::from_micros(2_112_504_609_700_000));
    assert_eq!(granule.end.since(granule.start), Duration::from_micros(85_350_000));
    assert_eq!(
        plan.granule_id(Iet::from_micros(2_112_504_394_000_000)).as_str(),
        "NPP004144851600"
    );
    assert_eq!(plan.granule(viirs, Iet::from_micros(1_698_019_233_999_999)), None);
}

#[test]
fn the_table_of_the_repository_has_what_the_control_book_says() {
    let table = RdrTable::built_in();
    let lengths = |mission: &str| {
        let plan = table.plan(mission).unwrap();
        let length =
            |collection: &Collection| (collection.name.clone(), collection.granule.as_micros());
        plan.collections.iter().map(length).collect::<std::collections::BTreeMap<_, _>>()
    };
    let npp = lengths("suomi-npp");
    for (name, micros) in [
        ("viirs", 85_350_000),
        ("cris", 31_997_000),
        ("atms", 31_997_000),
        ("omps-nadir-profiler", 37_405_000),
        ("omps-total-column", 37_405_000),
        ("omps-limb", 37_437_000),
        ("diary", 20_000_000),
    ] {
        assert_eq!(npp[name], micros, "{name}");
    }
    assert_eq!(lengths("jpss-3")["viirs"], 85_000_000);
    assert!(!lengths("noaa-20").contains_key("omps-limb"), "JPSS-1 has no limb profiler");
    let plan = table.plan("noaa-21").unwrap();
    assert!(plan.sensors().all(|sensor| sensor.packed_with == ["diary"]));
    assert_eq!(plan.collection("cris").unwrap().packets.len(), 83);
    assert_eq!(plan.by_short_name("SPACECRAFT-DIARY-RDR").unwrap().packets[0].apid.value(), 11);
    assert_eq!(table.plan("aqua"), None);
}

#[test]
fn every_mission_of_the_program_that_has_a_plan_times_its_packets() {
    let missions = MissionSet::built_in();
    for plan in RdrTable::built_in().plans() {
        let Some(mission) = missions.by_name(&plan.satellite.mission) else { continue };
        for kind in plan.collections.iter().flat_map(|collection| &collection.packets) {
            assert!(mission.time_rule(kind.apid).is_some(), "{}, {}", mission.name(), kind.apid);
        }
    }
}

#[test]
fn tables_that_contradict_themselves_are_refused_by_line() {
    let good = r#"[[satellite]]
mission = "m"
id = "sat"
short_name = "SAT"
platform = "SAT"
mission_name = "M"
base_time_us = 0
[[collection]]
name = "a"
short_name = "A-RDR"
product_id = "RAAAA"
sensor = "A"
kind = "SCIENCE"
granule_us = 1_000_000
packets = [
  { apid = 1, name = "ONE" },
]
"#;
    assert!(RdrTable::from_toml(good).is_ok());
    for (from, to, line, says) in [
        ("apid = 1,", "apid = 2047,", 16, "0 to 2046"),
        ("granule_us = 1_000_000", "granule_us = 0", 14, "an hour"),
        ("\"SAT\"\nplatform", "\"LONGER\"\nplatform", 4, "1 to 4"),
        ("\"A-RDR\"", "\"../A\"", 10, "not a name"),
        ("name = \"ONE\" }", "name = \"ONE\", satellites = [\"x\"] }", 16, "no satellite"),
        ("name = \"ONE\" },", "name = \"ONE\" }, { apid = 1, name = \"TWO\" },", 16, "twice"),
        ("name = \"ONE\" }", "name = \"ONE\", expected = 0 }", 16, "1000000"),
        ("kind = \"SCIENCE\"", "kind = \"SCIENCE\"\npacked_with = [\"b\"]", 14, "no collection"),
        ("kind = \"SCIENCE\"", "kind = \"SCIENCE\"\nsort = 1", 14, "sort"),
        ("base_time_us = 0", "base_time_us = -1", 7, "invalid value"),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good, "{from}");
        let error = RdrTable::from_toml(&bad).unwrap_err();
        assert!(error.line == line && error.reason.contains(says), "{to}: {error}");
    }
}

#[test]
fn the_blob_is_laid_out_as_the_control_book_says() {
    let plan = plan();
    let diary = plan.collection("diary").unwrap();
    let time = Iet::from_utc(noon()).unwrap();
    let span = plan.granule(diary, time).unwrap();
    let mut builder = GranuleBuilder::new(&plan, diary, span);
    let packets = [(8, 5), (11, 9), (8, 6)]
        .map(|(apid, count)| packet(apid, count, Grouping::Standalone, Some(noon()), 40));
    packets.iter().for_each(|packet| builder.add(time, packet).unwrap());
    let blob = builder.finish().blob;
    let word = |at: usize| u32::from_be_bytes(blob[at..at + 4].try_into().unwrap());
    assert_eq!(&blob[..8], b"NPP\0SPAC");
    assert_eq!(&blob[20..26], b"DIARY\0");
    let trackers = 72 + 3 * 32;
    let storage = trackers + 3 * 21 * 24;
    assert_eq!([36, 40, 44, 48, 52].map(word), [3, 72, trackers, storage, 120]);
    assert_eq!(u64::from_be_bytes(blob[56..64].try_into().unwrap()), span.start.as_micros());
    assert_eq!(u64::from_be_bytes(blob[64..72].try_into().unwrap()), span.end.as_micros());
    let entry = 72 + 32;
    assert_eq!(&blob[entry..entry + 9], b"ADCS_HKH\0");
    assert_eq!([16, 20, 24, 28].map(|at| word(entry + at)), [8, 21, 21, 2]);
    let tracker = |place: usize| {
        let at = trackers as usize + 24 * place;
        [word(at + 8), word(at + 12), word(at + 16), word(at + 20)]
    };
    assert_eq!(tracker(21), [5, 40, 0, 0]);
    assert_eq!(tracker(22), [6, 40, 80, 0]);
    assert_eq!(tracker(23), [u32::MAX, 0, u32::MAX, 0], "not received");
    assert_eq!(tracker(42), [9, 40, 40, 0]);
    assert_eq!(blob[storage as usize..], packets.concat());
}

#[test]
fn what_is_missing_is_counted_by_gaps_and_by_what_a_whole_granule_has() {
    let plan = plan();
    let viirs = plan.collection("viirs").unwrap();
    let span = plan.granule(viirs, Iet::from_utc(noon()).unwrap()).unwrap();
    let builder = || GranuleBuilder::new(&plan, viirs, span);
    let missing = |granule: &PackedGranule, name: &str| {
        granule
            .types
            .iter()
            .find(|kind| kind.name == name)
            .map(|kind| (kind.received, kind.missing))
            .unwrap()
    };
    let mut some = builder();
    // 799 packets are 47 scans of a moderate band, which is whole; one of the calibration is
    // missing in the middle.
    for count in 0..799 {
        some.add(span.start, &packet(804, 16_000 + count, Grouping::Standalone, None, 7)).unwrap();
    }
    for count in (0..1_152).filter(|count| *count != 500) {
        some.add(span.start, &packet(825, count, Grouping::Standalone, None, 7)).unwrap();
    }
    let some = some.finish();
    assert_eq!(missing(&some, "M01"), (799, 0));
    assert_eq!(missing(&some, "CAL"), (1_151, 1));
    assert_eq!(missing(&some, "ENG"), (0, 47), "sent day and night");
    assert_eq!(missing(&some, "I01"), (0, 0), "may be off");
    let expected = 100.0 * 48.0 / (799.0 + 1_151.0 + 48.0);
    assert!((some.percent_missing() - expected).abs() < 1e-4, "{}", some.percent_missing());
    assert!((builder().finish().percent_missing() - 100.0).abs() < f32::EPSILON);
}

#[test]
fn packets_that_are_not_the_granules_are_refused() {
    let plan = plan();
    let diary = plan.collection("diary").unwrap();
    let time = Iet::from_utc(noon()).unwrap();
    let span = plan.granule(diary, time).unwrap();
    let mut builder = GranuleBuilder::new(&plan, diary, span);
    let good = packet(11, 0, Grouping::Standalone, None, 20);
    assert_eq!(builder.add(time, &good[..19]), Err(GranuleError::NotAPacket));
    assert_eq!(builder.add(span.end, &good), Err(GranuleError::Outside(span.end.utc())));
    let other = packet(800, 0, Grouping::Standalone, None, 20);
    assert_eq!(
        builder.add(time, &other),
        Err(GranuleError::OtherApplication(Apid::new(800).unwrap()))
    );
    assert_eq!(builder.add(time, &good), Ok(()));
    assert_eq!(builder.finish().types[2].received, 1);
}

#[test]
fn packets_go_into_the_granule_that_their_group_began_in() {
    let plan = plan();
    let viirs = plan.collection("viirs").unwrap();
    let span = plan.granule(viirs, Iet::from_utc(noon()).unwrap()).unwrap();
    let before_end = Utc::from_micros(span.end.utc().as_micros() - 1);
    let at = |time| Some(time);
    let file = vec![
        packet(800, 2, Grouping::Continuation, None, 20),
        packet(800, 3, Grouping::First, at(before_end), 20),
        packet(800, 4, Grouping::Continuation, None, 20),
        packet(800, 5, Grouping::Last, None, 20),
        packet(800, 6, Grouping::First, at(span.end.utc()), 20),
        packet(800, 6 + 1_024, Grouping::Last, None, 20),
        packet(800, 7, Grouping::First, None, 20),
        packet(800, 8, Grouping::Last, None, 20),
        packet(2_047, 0, Grouping::Standalone, None, 20),
        packet(11, 0, Grouping::Standalone, at(Utc::from_day(10_000, Duration::ZERO)), 20),
    ];
    let sorted = sort(&plan, &["viirs"], std::slice::from_ref(&file));
    let place = plan.of_apid(Apid::new(800).unwrap()).unwrap();
    let granules: Vec<_> =
        sorted.granules(place).map(|granule| sorted.packets(granule).len()).collect();
    assert_eq!(granules, [3, 1]);
    let IndexAccount { untimed, other_applications, before_base, .. } = sorted.account;
    assert_eq!((untimed, other_applications, before_base), (4, 1, 1));
    assert_eq!(sort(&plan, &["atms"], &[file]).account.other_applications, 9);
}

#[test]
fn groups_of_one_time_stay_together() {
    let plan = plan();
    let begin = |count| packet(561, count, Grouping::First, Some(noon()), 20);
    let end = |count| packet(561, count, Grouping::Last, None, 20);
    let files = [vec![begin(5), end(6), begin(7), end(8)]];
    let sorted = sort(&plan, &["omps-nadir-profiler"], &files);
    let place = plan.of_apid(Apid::new(561).unwrap()).unwrap();
    let granule = pack(&plan, &sorted, sorted.granules(place).next().unwrap(), &files);
    let read = CommonRdr::parse(&granule.blob).unwrap();
    assert_eq!(
        read.packets().iter().map(|packet| packet.tracker.count).collect::<Vec<_>>(),
        [5, 6, 7, 8]
    );
    assert_eq!(granule.types[0].missing, 0);
}

#[test]
fn a_file_holds_the_diary_that_its_granules_overlap() {
    let plan = plan();
    let start = plan
        .granule(plan.collection("atms").unwrap(), Iet::from_utc(noon()).unwrap())
        .unwrap()
        .start
        .utc();
    let atms = vec![packet(528, 0, Grouping::Standalone, Some(start + Duration::from_secs(1)), 20)];
    let second = |second: u64| start + Duration::from_secs(second) - Duration::from_secs(60);
    let diary = |count| packet(11, count, Grouping::Standalone, Some(second(count.into())), 20);
    let sorted = sort(&plan, &["atms"], &[atms, (0..180).map(diary).collect()]);
    let place = plan.collections.iter().position(|collection| collection.name == "atms").unwrap();
    let file = sorted.packed_file(&plan, place, None);
    let own: Vec<_> = file.iter().filter(|granule| granule.collection == place).collect();
    assert_eq!(own.len(), 1);
    let diary: Vec<_> = file.iter().filter(|granule| granule.collection != place).collect();
    assert!(diary.len() >= 2 && diary.iter().all(|granule| granule.span.overlaps(&own[0].span)));
    assert!(
        diary[0].span.start <= own[0].span.start
            && diary.last().unwrap().span.end >= own[0].span.end
    );
    assert_eq!(sorted.file_alone(place, None).len(), 1);
}

#[test]
fn names_are_those_of_the_control_book() {
    let plan = plan();
    let span = GranuleSpan {
        start: Iet::from_utc(noon() + Duration::from_millis(199)).unwrap(),
        end: Iet::from_utc(noon() + Duration::from_secs(85)).unwrap(),
    };
    assert_eq!(
        file_name(&["RVIRS", "RNSCA"], &plan.satellite, span, &facts()),
        "RNSCA-RVIRS_npp_d20241206_t1738151_e1739400_b67890_c20241206173816234000_skyu_ops.h5"
    );
    for bad in ["", "LOUD", "long1", "a/b"] {
        assert!(bad.parse::<Origin>().is_err(), "{bad}");
    }
}

#[test]
fn attributes_say_what_a_granule_is() {
    let plan = plan();
    let diary = plan.collection("diary").unwrap();
    let span = plan.granule(diary, Iet::from_utc(noon()).unwrap()).unwrap();
    let granule = GranuleBuilder::new(&plan, diary, span).finish();
    let attributes = facts().granule(diary, &granule);
    let value = |name: &str| {
        attributes.iter().find(|attribute| attribute.name == name).unwrap().value.clone()
    };
    let text = |text: &str| Value::Text(vec![text.to_owned()]);
    assert_eq!(value("N_Granule_ID"), text(granule.id.as_str()));
    assert_eq!(value("Beginning_Date"), text("20241206"));
    assert_eq!(
        value("N_Reference_ID"),
        text(&format!("SPACECRAFT-DIARY-RDR:{}:A1", granule.id.as_str()))
    );
    assert_eq!(value("N_Packet_Type_Count"), Value::U64(vec![0, 0, 0]));
    assert_eq!(value("N_Beginning_Time_IET"), Value::U64(vec![span.start.as_micros()]));
    let Value::Text(time) = value("Beginning_Time") else { panic!("a text") };
    assert!(time[0].len() == 14 && time[0].ends_with('Z'), "{time:?}");
}

#[test]
fn damaged_blobs_are_refused_or_say_what_is_damaged() {
    let plan = plan();
    let diary = plan.collection("diary").unwrap();
    let time = Iet::from_utc(noon()).unwrap();
    let mut builder = GranuleBuilder::new(&plan, diary, plan.granule(diary, time).unwrap());
    builder.add(time, &packet(11, 0, Grouping::Standalone, None, 20)).unwrap();
    let blob = builder.finish().blob;
    assert_eq!(CommonRdr::parse(&blob).unwrap().damaged(), 0);
    assert_eq!(CommonRdr::parse(&blob[..71]), Err(BlobError::TooShort { len: 71 }));
    let with = |at: usize, value: u32| {
        let mut changed = blob.clone();
        changed[at..at + 4].copy_from_slice(&value.to_be_bytes());
        changed
    };
    for (at, value) in
        [(36, 99), (40, 0), (44, 71), (48, 73), (48, u32::MAX), (52, u32::MAX), (52, 21)]
    {
        let error = CommonRdr::parse(&with(at, value)).unwrap_err();
        assert!(matches!(error, BlobError::Misplaced { .. }), "{at}: {error}");
    }
    let beyond = with(72 + 20, 60);
    assert_eq!(CommonRdr::parse(&beyond), Err(BlobError::Trackers { apid: 0, trackers: 63 }));
    let shared = with(72 + 24, 22);
    assert_eq!(CommonRdr::parse(&shared), Err(BlobError::Trackers { apid: 11, trackers: 63 }));
    let elsewhere = with(72 + 96 + 42 * 24 + 16, 5);
    let elsewhere = CommonRdr::parse(&elsewhere).unwrap();
    assert_eq!((elsewhere.damaged(), elsewhere.packets().len()), (1, 0));
}

/// A small contact: some scans of two bands, each a group, with diary packets between them.
fn contact(scans: u16, lens: &[usize]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for scan in 0..scans {
        let time = noon() + Duration::from_micros(1_786_400 * u64::from(scan));
        for apid in [800, 818] {
            for (at, len) in lens.iter().enumerate() {
                let (first, last) = (at == 0, at + 1 == lens.len());
                let grouping = match (first, last) {
                    (true, true) => Grouping::Standalone,
                    (true, false) => Grouping::First,
                    (false, true) => Grouping::Last,
                    (false, false) => Grouping::Continuation,
                };
                let count = 16_380 + scan * lens.len() as u16 + at as u16;
                packets.push(packet(apid, count, grouping, first.then_some(time), *len));
            }
        }
        packets.push(packet(11, scan, Grouping::Standalone, Some(time), 71));
    }
    packets
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_packed_is_unpacked(scans in 1u16..100,
        lens in proptest::collection::vec(14usize..200, 1..6)) {
        let plan = plan();
        let file = contact(scans, &lens);
        let files = [file.clone()];
        let sorted = sort(&plan, &["viirs"], &files);
        let mut unpacked = Vec::new();
        for granule in (0..plan.collections.len()).flat_map(|place| sorted.granules(place)) {
            let packed = pack(&plan, &sorted, granule, &files);
            let read = CommonRdr::parse(&packed.blob).unwrap();
            prop_assert_eq!((read.header.start, read.header.end),
                (granule.span.start, granule.span.end));
            prop_assert_eq!(read.damaged(), 0);
            let received: u64 = packed.types.iter().map(|kind| kind.received).sum();
            prop_assert_eq!(received, sorted.packets(granule).len() as u64);
            for packet in read.packets() {
                let time = Iet::from_micros(packet.tracker.time as u64);
                prop_assert!(granule.span.start <= time && time < granule.span.end);
                unpacked.push(packet.bytes.to_vec());
            }
        }
        let of = |packets: &[Vec<u8>], apid: u16| -> Vec<Vec<u8>> {
            let is = |packet: &&Vec<u8>| SpaceHeader::parse(packet).unwrap().apid.value() == apid;
            packets.iter().filter(is).cloned().collect()
        };
        for apid in [800, 818, 11] {
            prop_assert_eq!(of(&unpacked, apid), of(&file, apid));
        }
        prop_assert_eq!(unpacked.len(), file.len());
    }

    #[test]
    fn the_order_of_files_and_copies_in_them_change_nothing(
        scans in 1u16..60,
        cut in 0usize..180,
        overlap in 0usize..40,
        swap in any::<bool>(),
    ) {
        let plan = plan();
        let whole = contact(scans, &[20, 30]);
        // The first part ends anywhere; the second begins before that with a scan or, where the
        // overlap has its group whole, inside one.
        let cut = (cut * 5 + overlap % 5).min(whole.len());
        let from = if overlap < 10 { cut / 5 * 5 } else { cut.saturating_sub(overlap) };
        let mut parts = [whole[..cut].to_vec(), whole[from..].to_vec()];
        if swap {
            parts.swap(0, 1);
        }
        let pack_all = |files: &[Vec<Vec<u8>>]| {
            let sorted = sort(&plan, &["viirs"], files);
            let granules = (0..plan.collections.len()).flat_map(|place| sorted.granules(place));
            (granules.map(|granule| pack(&plan, &sorted, granule, files)).collect::<Vec<_>>(),
                sorted.account)
        };
        let (expected, alone) = pack_all(&[whole]);
        let (packed, account) = pack_all(&parts);
        prop_assert!(packed == expected);
        prop_assert_eq!((alone.duplicates, account.duplicates), (0, (cut - from) as u64));
    }

    #[test]
    fn any_bytes_are_a_blob_or_refused(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..400),
        words in proptest::collection::vec(0u32..400, 5),
    ) {
        if bytes.len() >= 56 {
            for (at, word) in words.iter().enumerate() {
                bytes[36 + 4 * at..40 + 4 * at].copy_from_slice(&word.to_be_bytes());
            }
        }
        if let Ok(read) = CommonRdr::parse(&bytes) {
            prop_assert!(read.packets().len() <= read.trackers.len());
            read.damaged();
        }
    }

    #[test]
    fn a_time_lies_in_its_granule(micros in 1_698_019_234_000_000u64..4_000_000_000_000_000,
        length in 1u64..100_000_000) {
        let base = Iet::from_micros(1_698_019_234_000_000);
        let time = Iet::from_micros(micros);
        let span = GranuleSpan::of(time, Duration::from_micros(length), base).unwrap();
        prop_assert!(span.start <= time && time < span.end);
        prop_assert_eq!(span.start.since(base).as_micros() % length, 0);
        prop_assert_eq!(GranuleSpan::of(span.end, Duration::from_micros(length),
            base).unwrap().start, span.end);
    }
}
