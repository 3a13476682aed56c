//! What comes out of the demodulator, and what a station says about it.

use bytes::Bytes;
use skyhaul_ccsds::EndOfInput;
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
use skyhaul_ccsds::extract::Extractor;
use skyhaul_ccsds::generate::{Description, Source};
use skyhaul_ccsds::identify::InputLayout;
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_ccsds::packet::Packets;
use skyhaul_ccsds::quality::{BitPosition, CapturedFrame, Quality};
use skyhaul_ccsds::scan::{DamageKind, Scanned, Scanner};
use skyhaul_records::pack::{Effort, Packer, unpack};
use skyhaul_records::{Record, RecordReader, RecordWriter};
use skyhaul_units::Utc;

/// Any bits, in two pieces, as an unknown input: the account of every frame adds up.
pub fn bit_stream(input: &[u8]) {
    let mut capture = Capture::new(MissionSet::built_in(), CaptureOptions::default());
    let (first, second) = input.split_at(input.len() / 3);
    let (mut good, mut set_aside, mut bits) = (0, 0, 0);
    for piece in [first, second, &[]] {
        capture.push(Utc::from_micros(0), piece);
        if piece.is_empty() {
            capture.finish();
        }
        while let Some(event) = capture.poll() {
            match event {
                CaptureEvent::Frame(frame) => {
                    match frame.is_good() {
                        true => good += 1,
                        false => set_aside += 1,
                    }
                    assert!(frame.position.as_bits() < 8 * input.len() as u64);
                }
                CaptureEvent::Changed { stats, .. } => {
                    assert_eq!((stats.good_frames, stats.set_aside), (good, set_aside));
                    (good, set_aside) = (0, 0);
                    bits += stats.sync.bits;
                }
                _ => {}
            }
        }
    }
    let stats = capture.stats();
    assert_eq!((stats.good_frames, stats.set_aside), (good, set_aside));
    assert_eq!(bits + stats.sync.bits, 8 * input.len() as u64);
}

/// Any bytes as frames that say their own length, with error control and without: every byte is in
/// one frame or skipped, however the stream comes.
pub fn frame_stream(input: &[u8]) {
    let (step, stream) =
        input.split_first().map_or((1, input), |(step, rest)| (usize::from(*step) + 1, rest));
    for check in ["", "fecf = true\n"] {
        let mission =
            Mission::from_toml(&VARIABLE.replace("[coding]", &format!("{check}[coding]")));
        let mission = mission.expect("it is a mission");
        let captured = |step: usize| {
            let format = Some(InputLayout::Frames);
            let options = CaptureOptions {
                format,
                mission: Some(mission.clone()),
                ..CaptureOptions::default()
            };
            let mut capture = Capture::new(MissionSet::empty(), options);
            stream.chunks(step).for_each(|piece| capture.push(Utc::from_micros(0), piece));
            capture.finish();
            let mut frames = Vec::new();
            while let Some(event) = capture.poll() {
                let CaptureEvent::Frame(frame) = event else { continue };
                let at = frame.position.byte() as usize;
                assert_eq!(stream[at..][..frame.bytes.len()], frame.bytes);
                frames.push((at, frame.bytes.len(), frame.is_good()));
            }
            let sync = capture.stats().sync;
            let of_frames: u64 = frames.iter().map(|(_, len, _)| *len as u64).sum();
            assert_eq!(
                (sync.bits, 8 * of_frames + sync.skipped_bits),
                (8 * stream.len() as u64, sync.bits)
            );
            frames
        };
        assert_eq!(captured(step), captured(stream.len().max(1)));
    }
}

/// A mission of short frames of any length, truncated ones among them.
const VARIABLE: &str = "name = \"lengths\"\ntitle = \"Lengths\"\nscids = [66]\n[frame]\nkind = \
                       \"uslp\"\nlength = 80\n\
                        variable_length = true\ntruncated_length = 20\n[coding]\nrandomiser = \
                        \"none\"\n";

/// Any symbols, hard and soft, as an unknown input and as a known mission's: frames are within the
/// input.
pub fn symbols(input: &[u8]) {
    let npp = MissionSet::built_in().by_name("suomi-npp").cloned();
    let parity = Mission::from_toml(PARITY).ok();
    for format in [InputLayout::Symbols, InputLayout::Soft] {
        for mission in [None, npp.clone(), parity.clone()] {
            let options =
                CaptureOptions { format: Some(format), mission, ..CaptureOptions::default() };
            let mut capture = Capture::new(MissionSet::built_in(), options);
            for piece in input.chunks(1 + input.len() / 3) {
                capture.push(Utc::from_micros(0), piece);
            }
            capture.finish();
            while let Some(event) = capture.poll() {
                let CaptureEvent::Frame(frame) = event else { continue };
                assert!(frame.position.as_bits() <= 8 * input.len() as u64);
            }
        }
    }
}

/// A mission of short codewords behind a long marker.
const PARITY: &str = "name = \"parity\"\ntitle = \"Parity\"\nscids = []\n[frame]\nkind = \
                     \"tm\"\nlength = 128\n[coding]\n\
                      randomiser = \"ccsds255\"\n[coding.ldpc]\ncode = \"ar4ja\"\nrate = \
                      \"4/5\"\nk = 1024\n";

/// A packet file is divided into packets and a rest, and nothing is lost between them.
pub fn packets(input: &[u8]) {
    let mut packets = Packets::new(input);
    let mut taken = 0;
    for (header, packet) in &mut packets {
        assert_eq!(header.total_len(), packet.len());
        assert_eq!(packet, &input[taken..taken + packet.len()]);
        taken += packet.len();
    }
    assert_eq!(packets.rest(), &input[taken..]);
}

/// A packet file that may be damaged: every byte is in one packet or one damaged place, however the
/// file comes.
pub fn packet_scan(input: &[u8]) {
    let (step, file) =
        input.split_first().map_or((1, input), |(step, file)| (usize::from(*step) + 1, file));
    let whole = scanned(file, file.len().max(1));
    let mut end = 0;
    for (offset, len, _) in &whole {
        assert_eq!(*offset, end);
        end += len;
    }
    assert_eq!(end, file.len() as u64);
    assert_eq!(scanned(file, step), whole);
}

/// Offset, length and kind (none for a packet) of what stands in a file that comes in pieces of
/// `step` bytes.
fn scanned(file: &[u8], step: usize) -> Vec<(u64, u64, Option<DamageKind>)> {
    let (mut scanner, mut found) = (Scanner::default(), Vec::new());
    let (mut start, mut end) = (0, 0);
    while end < file.len() {
        end = (end + step).min(file.len());
        let here = if end == file.len() { EndOfInput::Reached } else { EndOfInput::Ahead };
        start += scanner.scan(&file[start..end], here, |place| {
            found.push(match place {
                Scanned::Packet { offset, bytes, .. } => (offset, bytes.len() as u64, None),
                Scanned::Damage(damage) => (damage.offset, damage.bytes, Some(damage.kind)),
            });
        });
    }
    found
}

/// A packed block: what unpacks is as long as was allowed at most; and any bytes, packed as frames
/// of some mission, come back.
pub fn packed_records(input: &[u8]) {
    const MOST: usize = 1 << 16;
    if let Ok(records) = unpack(input, MOST) {
        assert!(records.len() <= MOST);
    }
    for mission in MissionSet::built_in().iter().take(3) {
        let len = mission.frame().length;
        let frames: Vec<_> = (0..input.len() / len).map(|at| at * len..(at + 1) * len).collect();
        if let Some(packed) = Packer::new().pack(input, &frames, mission.frame(), Effort::Fast) {
            assert_eq!(unpack(&packed, input.len()).as_deref(), Ok(input));
        }
    }
}

/// A mission of USLP frames: short, so that an input holds many.
const USLP: &str = "name = \"uslp\"\ntitle = \"USLP\"\nscids = []\n[frame]\nkind = \
                   \"uslp\"\nlength = 64\ninsert_zone = 2\n\
                    [coding]\nrandomiser = \"none\"\n";

/// Frames of each format, one after the other: packets come out with the bytes that the counts say.
pub fn frames(input: &[u8]) {
    let mut missions: Vec<Mission> = Vec::new();
    let uslp = Mission::from_toml(USLP).expect("it is a mission");
    for mission in MissionSet::built_in().iter().chain([&uslp]) {
        if !missions.iter().any(|known| known.frame() == mission.frame()) {
            missions.push(mission.clone());
        }
    }
    let extractors = missions.iter().flat_map(|mission| {
        let extractor = || Extractor::new(mission.clone());
        [(mission, extractor()), (mission, extractor().filling())]
    });
    for (mission, mut extractor) in extractors {
        let (mut packets, mut size) = (0, 0);
        for frame in input.chunks(mission.frame().length) {
            // A frame that is not one of the mission's is counted by the extractor.
            let _ = extractor.push(&captured(frame), |packet| {
                assert_eq!(packet.header.total_len(), packet.bytes.len());
                assert!((packet.fill as usize) < packet.bytes.len());
                packets += 1;
                size += packet.bytes.len() as u64;
            });
        }
        let counted = extractor.channels().fold((0, 0), |(packets, size), (_, counts)| {
            (packets + counts.packets, size + counts.packet_bytes)
        });
        assert_eq!(counted, (packets, size), "{}", mission.name());
    }
}

/// A description of a made-up downlink: read or refused with a sentence, and so is what it asks of
/// a mission.
pub fn description(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let missions = MissionSet::built_in();
    let mission = missions.iter().next().expect("there are missions");
    match Description::from_toml(text)
        .and_then(|description| Source::described(mission, &description, 0))
    {
        Ok(source) => assert!(source.frames() > 0),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A mission file: read or refused, with a sentence.
pub fn mission(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match Mission::from_toml(text) {
        Ok(mission) => {
            assert!(mission.frame().length > 0 && mission.cadu_len() >= mission.block_len())
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Contact records that read are written to bytes that read and write to themselves. (The input
/// itself may differ: it may have wide integers, or a time past the year 2262, which is held to
/// it.)
pub fn contact_records(input: &[u8]) {
    let records = read(input);
    let written = write(&records);
    let again = read(&written);
    assert_eq!(again.len(), records.len());
    assert_eq!(write(&again), written);
}

fn write(records: &[Record]) -> Vec<u8> {
    let mut writer = RecordWriter::new();
    let mut written = Vec::new();
    for record in records {
        writer.write(record, &mut written);
    }
    written
}

/// The records up to the first that is not whole or not one; nothing is taken of that.
fn read(input: &[u8]) -> Vec<Record> {
    let mut reader = RecordReader::new();
    let mut rest = input;
    let mut records = Vec::new();
    loop {
        let before = rest;
        match reader.read(&mut rest) {
            Ok(Some(record)) => {
                assert!(rest.len() < before.len());
                records.push(record);
            }
            Ok(None) | Err(_) => {
                assert_eq!(rest, before);
                return records;
            }
        }
    }
}

fn captured(frame: &[u8]) -> CapturedFrame {
    CapturedFrame {
        received: Utc::from_micros(0),
        position: BitPosition::from_bits(0),
        quality: Quality::NOT_CHECKED,
        set_aside: None,
        bytes: Bytes::copy_from_slice(frame),
        check_symbols: Bytes::new(),
    }
}
