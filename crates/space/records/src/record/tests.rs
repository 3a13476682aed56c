use super::*;
use bytes::Bytes;
use proptest::prelude::*;
use skyhaul_ccsds::frame::Check;
use skyhaul_ccsds::quality::{CorrectedSymbols, FrameVerdict, Iterations, Quality, Reason};

fn frame(number: u64) -> CapturedFrame {
    CapturedFrame {
        received: Utc::from_micros(1_733_506_695_000_000 + number as i64 * 4_096),
        position: BitPosition::from_bits(3_333 + number * 8_192),
        quality: Quality { verdict: FrameVerdict::Clean, ..Quality::NOT_CHECKED },
        set_aside: None,
        bytes: Bytes::from(vec![0x5A; 892]),
        check_symbols: Bytes::new(),
    }
}

#[test]
fn a_clean_frame_costs_at_most_eight_bytes() {
    let mut writer = RecordWriter::new();
    let mut lengths = Vec::new();
    for number in 0..4 {
        let mut out = Vec::new();
        writer.write_frame(&frame(number), &mut out);
        lengths.push(out.len() - 892);
    }
    assert_eq!(lengths, [20, 9, 7, 7], "base, first step, then steady");
}

#[test]
fn records_can_be_read_from_a_restart_on_and_from_nowhere_else() {
    let mut writer = RecordWriter::new();
    let mut blocks = [Vec::new(), Vec::new()];
    for block in &mut blocks {
        writer.restart();
        for number in 0..3 {
            writer.write_frame(&frame(number), block);
        }
    }
    let mut second = blocks[1].as_slice();
    assert_eq!(RecordReader::new().read(&mut second).unwrap(), Some(Record::Frame(frame(0))));
    assert_eq!(RecordReader::new().read(&mut second), Err(RecordError::NoBase));
}

#[test]
fn another_version_is_named() {
    let error = RecordReader::new().read(&mut [0x21u8, 0].as_slice()).unwrap_err();
    assert_eq!(error, RecordError::Version(2));
}

#[test]
fn the_bytes_of_a_frame_record() {
    let quality = Quality {
        marker_errors: 2,
        inverted: true,
        slip: -3,
        flywheel: false,
        verdict: FrameVerdict::Corrected,
        corrected: CorrectedSymbols::new(&[1, 0, 16, 4]),
        iterations: None,
        fhec: Check::Good,
        fecf: Check::None,
    };
    let frame = CapturedFrame {
        received: Utc::from_micros(1),
        position: BitPosition::from_bits(258),
        quality,
        set_aside: None,
        bytes: Bytes::from_static(b"frame"),
        check_symbols: Bytes::from_static(b"check"),
    };
    let mut out = Vec::new();
    RecordWriter::new().write_frame(&frame, &mut out);
    let mut expected = vec![0x12, 37, 0b0111_1101, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 2];
    expected.extend([2, 0xFD, 1, 4, 1, 0, 16, 4, 5, 0b0100]);
    expected.extend(b"framecheck");
    assert_eq!(out, expected);
}

fn any_check() -> impl Strategy<Value = Check> {
    prop_oneof![Just(Check::None), Just(Check::Good), Just(Check::Corrected), Just(Check::Bad)]
}

fn any_frame() -> impl Strategy<Value = Record> {
    let sync = (any::<u8>(), any::<bool>(), any::<i8>(), any::<bool>());
    let verdict = prop_oneof![
        Just(FrameVerdict::Clean),
        Just(FrameVerdict::Corrected),
        Just(FrameVerdict::Uncorrectable),
        Just(FrameVerdict::NotChecked)
    ];
    let reason = prop_oneof![
        Just(None),
        Just(Some(Reason::ReedSolomon)),
        Just(Some(Reason::FrameErrorControl)),
        Just(Some(Reason::Header)),
        Just(Some(Reason::Ldpc))
    ];
    let iterations = proptest::option::of((any::<u16>(), any::<u32>()));
    let corrected = proptest::collection::vec(any::<u8>(), 0..=8);
    let contents = (
        proptest::collection::vec(any::<u8>(), 0..60),
        proptest::collection::vec(any::<u8>(), 0..9),
    );
    let place = (-1_000_000_000_000_000i64..4_000_000_000_000_000, any::<u64>());
    (sync, verdict, reason, (corrected, iterations), contents, (any_check(), any_check()), place)
        .prop_map(
            |(
                sync,
                verdict,
                set_aside,
                (corrected, iterations),
                contents,
                (fhec, fecf),
                (received, position),
            )| {
                let (marker_errors, inverted, slip, flywheel) = sync;
                let corrected = CorrectedSymbols::new(&corrected);
                let iterations = iterations
                    .map(|(count, corrected_symbols)| Iterations { count, corrected_symbols });
                let control =
                    Quality { verdict, corrected, iterations, fhec, fecf, ..Quality::NOT_CHECKED };
                let quality = Quality { marker_errors, inverted, slip, flywheel, ..control };
                Record::Frame(CapturedFrame {
                    received: Utc::from_micros(received),
                    position: BitPosition::from_bits(position),
                    quality,
                    set_aside,
                    bytes: Bytes::from(contents.0),
                    check_symbols: Bytes::from(contents.1),
                })
            },
        )
}

fn any_record() -> impl Strategy<Value = Record> {
    let others = proptest::collection::vec("[a-z0-9-]{1,32}", 0..4);
    let ids = (proptest::option::of(any::<u16>()), proptest::option::of(any::<u32>()));
    let bits = (any::<bool>(), proptest::option::of(".{0,20}"));
    let open = (".{0,20}", ".{0,90}", others, ids, any::<u32>(), bits).prop_map(
        |(channel, mission, also_fits, (scid, completes), opened, (keeps_check_symbols, file))| {
            let opened = Utc::from_micros(i64::from(opened));
            let scid = scid.and_then(Scid::new);
            let completes = completes.map(FlowId);
            Record::Open(Open {
                channel,
                mission,
                also_fits,
                scid,
                opened,
                keeps_check_symbols,
                completes,
                file,
            })
        },
    );
    let counts = any::<[u64; 10]>().prop_map(|c| {
        Record::Progress(SyncCounts {
            bits: c[0],
            frames: c[1],
            locks: c[2],
            losses: c[3],
            inverted: c[4],
            slips: c[5],
            flywheel: c[6],
            marker_errors: c[7],
            skipped_bits: c[8],
            dropped_bits: c[9],
        })
    });
    let channels = proptest::collection::vec((0u16..1024, 0u8..64, any::<u64>()), 0..9);
    let close =
        (channels, any::<u32>(), any::<[u64; 2]>()).prop_map(|(channels, closed, totals)| {
            let channel = |scid, vcid| Channel {
                scid: Scid::from_bits(scid),
                vcid: skyhaul_ccsds::id::Vcid::from_bits(vcid),
            };
            Record::Close(Close {
                closed: Utc::from_micros(i64::from(closed)),
                last_bit: Utc::from_micros(i64::from(closed) - 5),
                set_aside: totals[0],
                corrected_symbols: totals[1],
                frames: channels
                    .into_iter()
                    .map(|(scid, vcid, count)| (channel(scid, vcid), count))
                    .collect(),
            })
        });
    let resumed = any::<u64>().prop_map(|bits| Record::Resumed(BitPosition::from_bits(bits)));
    let inputs = proptest::collection::vec(
        (".{0,9}", ".{0,30}", any::<[u64; 8]>(), 0u64..9_000_000),
        1..=16,
    );
    let inputs = inputs.prop_map(|inputs| {
        let report = |(name, source, counts, skew): (String, String, [u64; 8], u64)| {
            let [given, chosen, only_here, worse, duplicates, repeated, late, foreign] = counts;
            let skew = Duration::from_micros(skew);
            let account =
                InputAccount { given, chosen, only_here, worse, duplicates, repeated, late, skew };
            InputReport { name, source, account, foreign }
        };
        Record::Inputs(inputs.into_iter().map(report).collect())
    });
    prop_oneof![1 => open, 1 => counts, 1 => resumed, 1 => close, 1 => inputs, 4 => any_frame()]
}

proptest! {
    #[test]
    fn records_survive_a_round_trip(records in proptest::collection::vec(any_record(), 0..12)) {
        let mut writer = RecordWriter::new();
        let mut out = Vec::new();
        for record in &records {
            writer.write(record, &mut out);
        }
        let mut reader = RecordReader::new();
        let mut rest = out.as_slice();
        for record in records {
            prop_assert_eq!(reader.read(&mut rest), Ok(Some(record)));
        }
        prop_assert_eq!(reader.read(&mut rest), Ok(None));
    }

    #[test]
    fn a_record_cut_short_is_waited_for(record in any_record(), cut: proptest::sample::Index) {
        let mut out = Vec::new();
        RecordWriter::new().write(&record, &mut out);
        let mut rest = &out[..cut.index(out.len())];
        let before = rest.len();
        prop_assert_eq!(RecordReader::new().read(&mut rest), Ok(None));
        prop_assert_eq!(rest.len(), before);
    }

    #[test]
    fn any_bytes_are_records_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200),
        kind in 0u8..9) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = 0x10 | kind;
        }
        let mut rest = bytes.as_slice();
        let mut reader = RecordReader::new();
        while let Ok(Some(_)) = reader.read(&mut rest) {}
    }
}
