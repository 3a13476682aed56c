//! Real downlinks, as a station packs them: block by block, nothing lost, and as much smaller as
//! was promised.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::disallowed_methods, reason = "reads captures")]

use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_records::RecordWriter;
use skyhaul_records::pack::{Effort, Packer, unpack};
use skyhaul_units::Utc;
use std::ops::Range;

/// A block's records, and where frames are in them.
type Block = (Vec<u8>, Vec<Range<usize>>);

const CAPTURES: [(&str, u64); 3] = [
    ("npp.20241206T173815.dat", 220),
    ("metopb.20241206T152751.dat", 280),
    ("aqua.20241206T175646.dat", 320),
];

/// The records of a capture in blocks of at least `len` bytes, and the bytes of its frames as they
/// were sent.
fn blocks(name: &str, len: usize) -> (Mission, Vec<Block>, usize) {
    let path = format!("{}/../../../testdata/cadu/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut capture = Capture::new(MissionSet::built_in(), CaptureOptions::default());
    // 15 Mbit/s, read 64 KiB at a time.
    for (read, bytes) in std::fs::read(path).unwrap().chunks(64 << 10).enumerate() {
        capture.push(Utc::from_micros(1_733_506_000_000_000 + 34_953 * read as i64), bytes);
    }
    capture.finish();
    let (mut mission, mut writer, mut blocks) = (None, RecordWriter::new(), vec![Block::default()]);
    let mut raw = 0;
    while let Some(event) = capture.poll() {
        match event {
            CaptureEvent::Identified(found) => mission = Some(found.mission.clone()),
            CaptureEvent::Frame(frame) => {
                let (records, frames) = blocks.last_mut().unwrap();
                writer.write_frame(&frame, records);
                raw += mission.as_ref().unwrap().cadu_len();
                if frame.is_good() {
                    let end = records.len() - frame.check_symbols.len();
                    frames.push(end - frame.bytes.len()..end);
                }
                if records.len() >= len {
                    blocks.push(Block::default());
                    writer.restart();
                }
            }
            _ => {}
        }
    }
    (mission.unwrap(), blocks, raw)
}

/// Bytes that a capture takes, packed in blocks of this length.
fn packed(name: &str, len: usize, effort: Effort) -> (usize, usize) {
    let (mission, blocks, raw) = blocks(name, len);
    let mut packer = Packer::new();
    let sizes =
        blocks.iter().filter(|(records, _)| !records.is_empty()).map(|(records, frames)| {
            // A block that does not get smaller goes as it is.
            packer.pack(records, frames, mission.frame(), effort).map_or(records.len(), |packed| {
                assert_eq!(&unpack(&packed, records.len()).unwrap(), records);
                packed.len()
            })
        });
    (sizes.sum(), raw)
}

/// Against the coded bytes that came from the spacecraft; published for these missions: 12 % by the
/// check symbols, and 20 % by compression.
#[test]
fn real_downlinks_shrink_as_promised() {
    for (name, least) in CAPTURES {
        for len in [192 << 10, 64 << 10, 32 << 10] {
            for effort in [Effort::Fast, Effort::Normal, Effort::Thorough] {
                let (packed, raw) = packed(name, len, effort);
                let saved = 1_000 - 1_000 * packed as u64 / raw as u64;
                println!("{name} {len} {effort:?}: {saved} of 1000 saved");
                if len == 192 << 10 && effort >= Effort::Normal {
                    assert!(
                        saved >= least,
                        "{name}: {saved} of 1000 saved with {effort:?}, promised {least}"
                    );
                }
            }
        }
    }
}

/// Frames that were damaged or came without lock are packed with the rest.
#[test]
fn impaired_downlinks_come_back_too() {
    for name in ["npp_rs_errors.dat", "npp_sync_impaired.dat", "snpp_synchronized_cadus.dat"] {
        let (packed, raw) = packed(name, 50_000, Effort::Fast);
        assert!(packed < raw, "{name}");
    }
}
