use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// A genuine record: NOAA-20 APID 11, two hours of 2021-04-09, one APID, one virtual channel, four
/// contacts.
const GENUINE: &str = "P1590011AAAAAAAAAAAAAT21099051420500.PDS";

fn shared(file: &str) -> Option<Vec<u8>> {
    let path = format!("{}/../../../../shared/data/{file}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).ok();
    if bytes.is_none() {
        eprintln!("SKIPPED: {path} is not there");
    }
    bytes
}

#[test]
fn a_genuine_record_gives_the_figures_that_other_readers_found() {
    let Some(bytes) = shared(&format!("l0/{GENUINE}")) else { return };
    let record = ConstructionRecord::parse(&bytes).unwrap();
    assert_eq!(record.write().unwrap(), bytes);

    let expected = shared("expected.json").unwrap();
    let expected: serde_json::Value = serde_json::from_slice(&expected).unwrap();
    let expected = &expected[format!("l0/{GENUINE}")];
    let version = format!("{}.{}", record.software.major, record.software.minor);
    assert_eq!(expected["edos_version"], version);
    let utc =
        |time: RecordTime| time.utc().unwrap().to_string().replace('T', " ").replace('Z', "+00:00");
    let sessions: Vec<_> =
        record.sessions.iter().map(|session| vec![utc(session.first), utc(session.last)]).collect();
    assert_eq!(expected["scs_sessions"], serde_json::json!(sessions));
    assert_eq!(expected["first_packet_utc"], utc(record.totals.packet_times.first));
    assert_eq!(expected["last_packet_utc"], utc(record.totals.packet_times.last));
    assert_eq!(expected["packets"], record.totals.packets);
    assert_eq!(expected["bytes"], record.totals.size.as_u64());
    assert_eq!(expected["discontinuities"], record.totals.gaps);
    let files: Vec<_> = record.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(expected["files"], serde_json::json!(files));
    let [apid] = &record.apids[..] else { panic!("{:?}", record.apids) };
    assert_eq!((apid.stream.scid(), apid.stream.apid()), (159, 11));
    assert_eq!((apid.vcids[0].scid(), apid.vcids[0].vcid()), (159, 0));
}

#[test]
fn a_genuine_record_cut_anywhere_is_refused() {
    let Some(bytes) = shared(&format!("l0/{GENUINE}")) else { return };
    for len in 0..bytes.len() {
        let error = ConstructionRecord::parse(&bytes[..len]).unwrap_err();
        assert!(matches!(error, ConstructionRecordError::Truncated { .. }), "{len}: {error}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(
        ConstructionRecord::parse(&longer),
        Err(ConstructionRecordError::Length { expected: 432, actual: 433 })
    );
}

#[test]
fn times_are_days_since_1958_and_milliseconds_and_microseconds() {
    // CCSDS 301.0-B-4 3.3: day 24411, 1684 ms, 519 us.
    let time = RecordTime([0x5F, 0x5B, 0, 0, 0x06, 0x94, 0x02, 0x07]);
    let utc = time.utc().unwrap();
    assert_eq!(utc.to_string(), "2024-11-01T00:00:01.684519Z");
    assert_eq!(RecordTime::cds(utc), time);
    assert_eq!(RecordTime::NONE.utc(), None);
    assert_eq!(RecordTime([0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0]).utc(), None);
    let before = skyhaul_units::Utc::from_nanos(i64::MIN);
    assert_eq!(RecordTime::cds(before), RecordTime::NONE);
    let after = skyhaul_units::Utc::from_nanos(i64::MAX);
    assert_eq!(RecordTime::cds(after).utc().unwrap().date().0, 2137);
}

#[test]
fn a_list_longer_than_its_count_is_refused() {
    let mut record = ConstructionRecord {
        software: SoftwareVersion { major: 1, minor: 0 },
        kind: ProductKind::Pds,
        id: FixedText::new(&"A".repeat(36)).unwrap(),
        test: false,
        sessions: vec![],
        totals: FileSetTotals::default(),
        completed: RecordTime::NONE,
        apids: vec![],
        files: vec![
            FileEntry { name: FixedText::new(&"A".repeat(40)).unwrap(), apids: vec![] };
            256
        ],
    };
    let error = record.write().unwrap_err();
    assert_eq!(
        error.to_string(),
        "a construction record has room for 255 files and was given 256; split the product"
    );
    record.files.pop();
    assert_eq!(record.write().unwrap().len(), record.encoded_len());
}

fn time() -> impl Strategy<Value = RecordTime> {
    any::<[u8; 8]>().prop_map(RecordTime)
}
fn span() -> impl Strategy<Value = Span> {
    (time(), time()).prop_map(|(first, last)| Span { first, last })
}
fn size() -> impl Strategy<Value = ByteCount> {
    any::<u64>().prop_map(ByteCount::new)
}
fn stream() -> impl Strategy<Value = SpacecraftApid> {
    any::<(u16, u16)>().prop_map(|(scid, apid)| SpacecraftApid::new(scid, apid))
}
fn gap() -> impl Strategy<Value = GapEntry> {
    (any::<(u32, u32)>(), size(), span(), span()).prop_map(
        |((first_missing, missed), offset, packet_times, reception)| GapEntry {
            first_missing,
            offset,
            missed,
            packet_times,
            reception,
        },
    )
}
fn fill() -> impl Strategy<Value = FillEntry> {
    (any::<(u32, u32)>(), size()).prop_map(|((sequence_count, first_fill), offset)| FillEntry {
        sequence_count,
        offset,
        first_fill,
    })
}
fn apid() -> impl Strategy<Value = ApidEntry> {
    let vcids =
        vec(any::<(u16, u8)>().prop_map(|(scid, vcid)| SpacecraftVcid::new(scid, vcid)), 0..3);
    let lists = (vcids, vec(gap(), 0..3), vec(fill(), 0..3), vec(any::<u32>(), 0..3));
    (stream(), lists, (size(), size(), size()), (span(), span()), any::<(u32, u32)>()).prop_map(
        |(stream, (vcids, gaps, fill, length_discrepancies), sizes, spans, counts)| ApidEntry {
            stream,
            first_offset: sizes.0,
            vcids,
            gaps,
            fill,
            fill_octets: sizes.1,
            length_discrepancies,
            packet_times: spans.0,
            reception: spans.1,
            corrected_packets: counts.0,
            packets: counts.1,
            size: sizes.2,
        },
    )
}
fn file() -> impl Strategy<Value = FileEntry> {
    let apids = vec(
        (stream(), span()).prop_map(|(stream, packet_times)| ApidSpan { stream, packet_times }),
        0..3,
    );
    ("[ -~]{40}", apids)
        .prop_map(|(name, apids)| FileEntry { name: FixedText::new(&name).unwrap(), apids })
}
fn totals() -> impl Strategy<Value = FileSetTotals> {
    (any::<(u32, u32, u32, u32)>(), size(), size(), span(), span()).prop_map(
        |(
            (length_discrepancies, corrected_packets, packets, gaps),
            fill,
            size,
            packet_times,
            reception,
        )| {
            FileSetTotals {
                fill,
                length_discrepancies,
                packet_times,
                reception,
                corrected_packets,
                packets,
                size,
                gaps,
            }
        },
    )
}
fn record() -> impl Strategy<Value = ConstructionRecord> {
    let kind = prop_oneof![
        Just(ProductKind::Pds),
        Just(ProductKind::Eds),
        Just(ProductKind::QuickLookEds)
    ];
    let lists = (vec(span(), 0..4), vec(apid(), 0..4), vec(file(), 0..4));
    (any::<(u8, u8, bool)>(), kind, "[ -~]{36}", totals(), time(), lists).prop_map(
        |((major, minor, test), kind, id, totals, completed, (sessions, apids, files))| {
            ConstructionRecord {
                software: SoftwareVersion { major, minor },
                kind,
                id: FixedText::new(&id).unwrap(),
                test,
                sessions,
                totals,
                completed,
                apids,
                files,
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(record in record()) {
        let bytes = record.write().unwrap();
        prop_assert_eq!(bytes.len(), record.encoded_len());
        prop_assert_eq!(ConstructionRecord::parse(&bytes).unwrap(), record);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..600)) {
        let _ = ConstructionRecord::parse(&bytes);
    }

    #[test]
    fn a_record_with_one_byte_changed_is_read_or_refused(record in record(),
        at in any::<prop::sample::Index>(), to: u8) {
        let mut bytes = record.write().unwrap();
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Ok(read) = ConstructionRecord::parse(&bytes) {
            prop_assert_eq!(read.encoded_len(), bytes.len());
        }
    }
}
