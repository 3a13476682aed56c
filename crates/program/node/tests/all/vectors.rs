//! `docs/reference/wire-vectors.json`: the records and blocks on the wire page are those that this
//! program writes and reads.

use skyhaul_ccsds::id::Channel;
use skyhaul_ccsds::quality::CapturedFrame;
use skyhaul_ccsds::select::InputAccount;
use skyhaul_records::payload::{BlockHead, PayloadError, split_taken, with_taken};
use skyhaul_records::{InputReport, Record, RecordReader, RecordWriter};
use std::borrow::Cow;

fn vectors(part: &str) -> Vec<serde_json::Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/wire-vectors.json");
    let page = std::fs::read_to_string(path).expect("docs/reference/wire-vectors.json");
    let page: serde_json::Value = serde_json::from_str(&page).expect("JSON");
    page[part].as_array().expect("a part of the page").clone()
}

fn bytes(vector: &serde_json::Value) -> Vec<u8> {
    let digits: Vec<u8> = vector["hex"].as_str().expect("hex").bytes().collect();
    let digit = |byte: u8| (byte as char).to_digit(16).expect("a hex digit") as u8;
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn frames_text(frames: &[(Channel, u64)]) -> String {
    let entries = frames.iter().map(|(channel, count)| {
        let Channel { scid, vcid } = channel;
        format!("{}/{}:{count}", scid.value(), vcid.value())
    });
    entries.collect::<Vec<_>>().join(" ")
}

fn frame_text(frame: &CapturedFrame) -> String {
    let quality = &frame.quality;
    format!(
        "frame received={} position={} verdict={:?} marker_errors={} slip={} inverted={} \
        flywheel={} corrected={:?} \
         fhec={:?} fecf={:?} check_symbols={} set_aside={} bytes={}",
        frame.received.as_micros(),
        frame.position.as_bits(),
        quality.verdict,
        quality.marker_errors,
        quality.slip,
        quality.inverted,
        quality.flywheel,
        quality.corrected.by_codeword(),
        quality.fhec,
        quality.fecf,
        hex(&frame.check_symbols),
        frame.set_aside.map_or("-".to_owned(), |reason| format!("{reason:?}")),
        hex(&frame.bytes)
    )
}

fn record_text(record: &Record) -> String {
    match record {
        Record::Open(open) => format!(
            "open at={} channel={} scid={} check_symbols={} mission={}",
            open.opened.as_micros(),
            open.channel,
            open.scid.map_or("-".to_owned(), |scid| scid.value().to_string()),
            open.keeps_check_symbols,
            open.mission
        ),
        Record::Frame(frame) => frame_text(frame),
        Record::Progress(counts) => format!(
            "progress bits={} frames={} locks={} losses={} inverted={} slips={} flywheel={} \
            marker_errors={} \
             skipped_bits={} dropped_bits={}",
            counts.bits,
            counts.frames,
            counts.locks,
            counts.losses,
            counts.inverted,
            counts.slips,
            counts.flywheel,
            counts.marker_errors,
            counts.skipped_bits,
            counts.dropped_bits
        ),
        Record::Resumed(position) => format!("resumed position={}", position.as_bits()),
        Record::Close(close) => format!(
            "close at={} last_bit={} set_aside={} corrected_symbols={} frames=[{}]",
            close.closed.as_micros(),
            close.last_bit.as_micros(),
            close.set_aside,
            close.corrected_symbols,
            frames_text(&close.frames)
        ),
        Record::Inputs(inputs) => {
            let text = |input: &InputReport| {
                let InputReport { name, source, account, foreign } = input;
                let InputAccount {
                    given,
                    chosen,
                    only_here,
                    worse,
                    duplicates,
                    repeated,
                    late,
                    skew,
                } = account;
                format!(
                    "{name} from {source}: given={given} chosen={chosen} only_here={only_here} \
                    worse={worse} duplicates={duplicates} \
                     repeated={repeated} late={late} skew={} foreign={foreign}",
                    skew.as_micros()
                )
            };
            let texts: Vec<String> = inputs.iter().map(text).collect();
            format!("inputs [{}]", texts.join("; "))
        }
    }
}

#[test]
fn records_of_the_wire_page() {
    let (mut reader, mut writer) = (RecordReader::new(), RecordWriter::new());
    for vector in vectors("records") {
        let bytes = bytes(&vector);
        let mut rest = &bytes[..];
        let record = reader.read(&mut rest).expect("a valid vector").expect("a whole record");
        assert!(rest.is_empty(), "{}", vector["name"]);
        assert_eq!(record_text(&record), vector["reads"], "{}", vector["name"]);
        let mut written = Vec::new();
        writer.write(&record, &mut written);
        assert_eq!(hex(&written), hex(&bytes), "{}", vector["name"]);
    }
}

#[test]
fn blocks_of_the_wire_page() {
    for vector in vectors("blocks") {
        let bytes = bytes(&vector);
        let (taken, payload) = split_taken(&bytes).expect("a valid vector");
        let time = taken.as_micros();
        let (text, written) = match BlockHead::decode(payload) {
            Err(PayloadError::Lost) => (format!("lost taken={time}"), payload.to_vec()),
            Err(PayloadError::KeptBack) => (format!("kept back taken={time}"), payload.to_vec()),
            decoded => {
                let (head, content) = decoded.expect("a valid vector");
                let text = format!(
                    "block taken={time} closed={} position={} set_aside={} corrected_symbols={} \
                    channel={} mission={} frames=[{}] \
                     records={}",
                    head.closed.as_micros(),
                    head.position.as_bits(),
                    head.set_aside,
                    head.corrected_symbols,
                    head.channel,
                    head.mission,
                    frames_text(&head.frames),
                    hex(&content.records().expect("whole records"))
                );
                let mut written = Vec::new();
                head.encode(content, &mut written);
                (text, written)
            }
        };
        assert_eq!(text, vector["reads"], "{}", vector["name"]);
        assert_eq!(hex(&with_taken(taken, &written)), hex(&bytes), "{}", vector["name"]);
    }
}

#[test]
fn what_the_wire_page_says_is_refused() {
    for vector in vectors("refused_contacts") {
        let bytes = bytes(&vector);
        let error = match vector["on"].as_str() {
            Some("record") => {
                RecordReader::new().read(&mut &bytes[..]).expect_err("refused").to_string()
            }
            _ => split_taken(&bytes)
                .and_then(|(_, payload)| {
                    BlockHead::decode(payload)?.1.records().map(Cow::into_owned)
                })
                .expect_err("refused")
                .to_string(),
        };
        assert_eq!(error, vector["error"], "{}", vector["hex"]);
    }
}
