//! What is decoded many blocks at a time is what is decoded block by block: every event, every
//! count, every packet.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use crate::rung::is_all;
use proptest::prelude::*;
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions, CaptureStats};
use skyhaul_ccsds::decode::{BlockDecoder, CheckSymbols};
use skyhaul_ccsds::extract::{ChannelCounts, ExtractedPacket, Extractor};
use skyhaul_ccsds::id::Channel;
use skyhaul_ccsds::identify::InputLayout;
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_coding::gf::Kernel;
use skyhaul_units::Utc;

/// Downlinks whose frames check themselves, whose blocks of zeros are codewords, and where nothing
/// checks anything.
const TEXTS: [&str; 3] = [
    "name = \"a\"\ntitle = \"A\"\nscids = [157]\n[frame]\nkind = \"aos\"\nlength = 100\nfecf = \
    true\n[coding]\n\
     randomiser = \"ccsds131071\"\n",
    "name = \"a\"\ntitle = \"A\"\nscids = [157]\n[frame]\nkind = \"aos\"\nlength = 120\n[coding]\n\
     randomiser = \"none\"\n[coding.reed_solomon]\ncorrects = 8\ninterleave = 2\nbasis = \
     \"conventional\"\n\
     virtual_fill = 358\n",
    "name = \"a\"\ntitle = \"A\"\nscids = [157]\n[frame]\nkind = \"aos\"\nlength = \
    90\n[coding]\nrandomiser = \"none\"\n",
];

fn missions() -> Vec<Mission> {
    let built_in = MissionSet::built_in();
    let known = ["suomi-npp", "terra"].map(|name| built_in.by_name(name).unwrap().clone());
    known.into_iter().chain(TEXTS.iter().map(|text| Mission::from_toml(text).unwrap())).collect()
}

/// What happens to a frame on its way.
#[derive(Debug, Clone)]
enum Fate {
    /// Its header is of another kind.
    OtherVersion,
    /// Its block is all zeros.
    Silent,
    /// So many bytes of its block are wrong.
    Errors(usize),
    /// These bits of its marker are wrong.
    Marker(u32),
    /// So many bits are missing from its middle.
    Lost(usize),
    /// So many bits follow it that belong to nothing.
    Noise(usize),
    /// From here on all bits are inverted.
    Turned,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        1 => Just(Fate::OtherVersion),
        1 => Just(Fate::Silent),
        1 => (1usize..90).prop_map(Fate::Errors),
        1 => any::<u32>().prop_map(|bits| Fate::Marker(bits & bits.rotate_left(7))),
        3 => any::<u32>().prop_map(Fate::Marker),
        1 => (1usize..40).prop_map(Fate::Lost),
        1 => (1usize..1_500).prop_map(Fate::Noise),
        1 => Just(Fate::Turned),
    ]
}

/// Packets one after the other that fill the zones of so many frames, and where each begins.
fn packets(
    frames: usize,
    zone: usize,
    draw: &mut impl FnMut(usize) -> usize,
) -> (Vec<u8>, Vec<usize>) {
    let mut packets: Vec<u8> = Vec::new();
    let mut starts = Vec::new();
    for count in 0.. {
        starts.push(packets.len());
        if packets.len() >= frames * zone {
            break;
        }
        let len = [7, 20, 300, zone, 3 * zone][draw(5)].max(7);
        packets.extend([
            0x08,
            1 + (count % 3) as u8,
            0xC0 | (count >> 8) as u8 & 0x3F,
            count as u8,
        ]);
        packets.extend(((len - 7) as u16).to_be_bytes());
        packets.extend((6..len).map(|_| draw(256) as u8));
    }
    (packets, starts)
}

/// A downlink whose frames hold one packet after the other, and what befell the frames with these
/// numbers.
fn downlink(
    mission: &Mission,
    frames: usize,
    fates: &[(usize, Fate)],
    offset: usize,
    seed: u64,
) -> Vec<u8> {
    let mut state = seed | 1;
    let mut draw = move |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let coder = BlockDecoder::new(mission, CheckSymbols::Dropped);
    let zone = mission.frame().length - 8 - mission.frame().fecf.len();
    let (packets, starts) = packets(frames, zone, &mut draw);
    let mut bits: Vec<bool> = (0..offset).map(|_| draw(2) == 0).collect();
    let mut inverted = false;
    for number in 0..frames {
        let here = number * zone;
        let first = starts.iter().find(|start| **start >= here && **start < here + zone);
        let [_, _, high, low] = (number as u32).to_be_bytes();
        let mut frame = vec![0x67, 0x45, 0, high, low, 0];
        frame.extend(first.map_or(0x7FF, |start| (start - here) as u16).to_be_bytes());
        frame.extend(&packets[here..here + zone]);
        let fates = fates.iter().filter(|(at, _)| *at == number).map(|(_, fate)| fate);
        for fate in fates.clone() {
            if let Fate::OtherVersion = fate {
                frame[0] ^= 0xC0;
            }
        }
        if !mission.frame().fecf.is_empty() {
            frame.extend(skyhaul_coding::crc::fecf(&frame).to_be_bytes());
        }
        let mut cadu = Vec::new();
        coder.encode(mission.coding().marker, &frame, &mut cadu);
        let (mut lost, mut noise) = (0, 0);
        for fate in fates {
            match fate {
                Fate::OtherVersion => {}
                Fate::Silent => cadu[4..].fill(0),
                Fate::Errors(count) => {
                    for _ in 0..*count {
                        let place = 4 + draw(cadu.len() - 4);
                        cadu[place] ^= 1 + draw(255) as u8;
                    }
                }
                Fate::Marker(wrong) => {
                    for (byte, wrong) in cadu.iter_mut().zip(wrong.to_be_bytes()) {
                        *byte ^= wrong;
                    }
                }
                Fate::Lost(count) => lost = *count,
                Fate::Noise(count) => noise = *count,
                Fate::Turned => inverted = !inverted,
            }
        }
        let of_byte =
            |byte: &u8| core::array::from_fn::<bool, 8, _>(|bit| byte >> (7 - bit) & 1 == 1);
        let start = bits.len();
        bits.extend(cadu.iter().flat_map(of_byte).map(|bit| bit ^ inverted));
        bits.drain(start + 400..start + 400 + lost);
        bits.extend((0..noise).map(|_| draw(2) == 0));
    }
    let byte = |bits: &[bool]| {
        bits.iter().enumerate().fold(0, |byte, (at, bit)| byte | u8::from(*bit) << (7 - at))
    };
    bits.chunks(8).map(byte).collect()
}

/// Everything that a capture says.
#[derive(Debug, PartialEq)]
struct Heard {
    events: Vec<CaptureEvent>,
    stats: CaptureStats,
    packets: Vec<ExtractedPacket>,
    channels: Vec<(Channel, ChannelCounts)>,
}

/// Captures what comes in pushes of these lengths, over and over; each is received when its last
/// byte is.
fn capture(
    mission: &Mission,
    kernel: Kernel,
    keep_check_symbols: bool,
    bytes: &[u8],
    pushes: &[usize],
) -> Heard {
    let options = CaptureOptions {
        mission: Some(mission.clone()),
        format: Some(InputLayout::Bits),
        keep_check_symbols,
        kernel,
        ..CaptureOptions::default()
    };
    let mut capture = Capture::new(MissionSet::built_in(), options);
    let mut extractor = Extractor::new(mission.clone());
    let (mut events, mut packets) = (Vec::new(), Vec::new());
    let mut take = |capture: &mut Capture| {
        while let Some(event) = capture.poll() {
            if let CaptureEvent::Frame(frame) = &event
                && frame.is_good()
            {
                extractor.push(frame, |packet| packets.push(packet)).unwrap();
            }
            events.push(event);
        }
    };
    let mut rest = bytes;
    for push in pushes.iter().cycle() {
        let (now, later) = rest.split_at(rest.len().min(*push));
        capture.push(Utc::from_micros(0), now);
        take(&mut capture);
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    capture.finish();
    take(&mut capture);
    Heard { events, stats: capture.stats(), packets, channels: extractor.channels().collect() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if is_all() { 256 } else { 64 }))]

    #[test]
    fn runs_decode_as_single_blocks_do(
        mission in 0usize..5,
        frames in 5usize..60,
        // Two good frames follow each: how far a search looks back depends on how much comes at a
        // time.
        fates in proptest::collection::vec(((0usize..20).prop_map(|third| 3 * third), fate()),
            0..16),
        offset in 0usize..20,
        pushes in proptest::collection::vec(prop_oneof![1usize..3_000, 3_000usize..100_000], 1..6),
        keep_check_symbols: bool,
        seed: u64,
    ) {
        let mission = &missions()[mission];
        let bytes = downlink(mission, frames, &fates, offset, seed);
        // Never enough for a run.
        let single = capture(mission, Kernel::best(), keep_check_symbols, &bytes,
            &[mission.block_len()]);
        for kernel in Kernel::available() {
            let runs = capture(mission, kernel, keep_check_symbols, &bytes, &pushes);
            prop_assert_eq!(&runs, &single, "{}", kernel.name());
        }
    }
}

#[test]
fn each_run_winds_the_flywheel_up_again() {
    let marker = |number: usize| (8 * number, Fate::Marker(0x0F0F_0F0F));
    for mission in missions() {
        let bytes = downlink(&mission, 120, &(1..14).map(marker).collect::<Vec<_>>(), 0, 3);
        let single = capture(&mission, Kernel::best(), false, &bytes, &[mission.block_len()]);
        assert_eq!(
            (single.stats.sync.frames, single.stats.sync.losses),
            (120, 0),
            "{}",
            mission.name()
        );
        assert_eq!(capture(&mission, Kernel::best(), false, &bytes, &[bytes.len()]), single);
        assert_eq!(capture(&mission, Kernel::best(), false, &bytes, &[9_000]), single);
    }
}

#[test]
fn a_clean_downlink_is_heard_whole_however_it_comes() {
    for mission in missions() {
        for offset in [0, 3] {
            let bytes = downlink(&mission, 300, &[], offset, 7);
            for push in [1_000, 4_096, 65_536, bytes.len()] {
                let heard = capture(&mission, Kernel::best(), false, &bytes, &[push]);
                assert_eq!(heard.stats.sync.frames, 300, "{}, pushes of {push}", mission.name());
                let counts = heard.channels[0].1;
                assert_eq!((counts.frames, counts.gaps, counts.dropped_bytes), (300, 0, 0));
            }
        }
    }
}

#[test]
fn a_frame_is_received_with_the_push_that_ends_it() {
    let mission = &missions()[0];
    let bytes = downlink(mission, 200, &[], 5, 1);
    for push in [700, 1_024, 5_000, 70_000] {
        let options = CaptureOptions {
            mission: Some(mission.clone()),
            format: Some(InputLayout::Bits),
            ..CaptureOptions::default()
        };
        let mut capture = Capture::new(MissionSet::empty(), options);
        let mut frames = 0;
        for (number, piece) in bytes.chunks(push).enumerate() {
            capture.push(Utc::from_micros(number as i64), piece);
            while let Some(event) = capture.poll() {
                let CaptureEvent::Frame(frame) = event else { continue };
                let last_bit = frame.position.as_bits() + 8 * mission.cadu_len() as u64 - 1;
                assert_eq!(
                    frame.received.as_micros() as u64,
                    last_bit / 8 / push as u64,
                    "pushes of {push}"
                );
                frames += 1;
            }
        }
        assert!(frames >= 199);
    }
}
