//! Real captures as a demodulator's symbols: differentially and convolutionally coded again, with
//! noise, at any place and turn, they give the frames that independent decoders found in the bits.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use serde_json::Value;
use sha2::{Digest, Sha256};
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
use skyhaul_ccsds::identify::{Identification, InputLayout};
use skyhaul_ccsds::inner::InnerCode;
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_ccsds::quality::{BitPosition, CapturedFrame};
use skyhaul_coding::convolutional::ConvolutionalEncoder;
use skyhaul_coding::nrzm;
use skyhaul_units::Utc;

const NPP: &str = "npp.20241206T173815.dat";

/// How the receiver is off.
#[derive(Clone, Copy)]
struct Channel {
    /// Noise symbols before the downlink.
    before: usize,
    /// The carrier is turned by 90 degrees: the symbols of a pair change places, one of them
    /// inverted.
    turned: bool,
    /// All symbols are inverted.
    inverted: bool,
    /// Deviation of the noise, to symbols of size 40.
    noise: f64,
}

const STRAIGHT: Channel = Channel { before: 0, turned: false, inverted: false, noise: 0.0 };

fn npp() -> Mission {
    MissionSet::built_in().by_name("suomi-npp").unwrap().clone()
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../../testdata/cadu/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Bits as soft symbols of the mission's inner code.
fn soft(code: InnerCode, bits: &[u8], channel: Channel) -> Vec<u8> {
    let mut state = 0x5EED_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    // The sum of twelve is nearly normal, with a deviation of one.
    let mut normal = || (0..12).map(|_| draw()).sum::<f64>() - 6.0;
    let mut levels = bits.to_vec();
    nrzm::NrzmEncoder::default().encode(&mut levels);
    let mut sent: Vec<f64> = (0..channel.before).map(|_| 40.0 * normal()).collect();
    let (convolutional, _) = code.convolutional.unwrap();
    ConvolutionalEncoder::new(convolutional)
        .encode(&levels, |bit| sent.push(if bit { 40.0 } else { -40.0 }));
    let mut sent: Vec<f64> =
        sent.into_iter().map(|symbol| symbol + channel.noise * normal()).collect();
    if channel.turned {
        for pair in sent.as_chunks_mut::<2>().0 {
            *pair = [-pair[1], pair[0]];
        }
    }
    let sign = if channel.inverted { -1.0 } else { 1.0 };
    sent.into_iter()
        .map(|symbol| ((sign * symbol).clamp(-127.0, 127.0) as i8).cast_unsigned())
        .collect()
}

/// The signs of soft symbols, packed.
fn hard(soft: &[u8]) -> Vec<u8> {
    let byte = |symbols: &[u8]| {
        symbols.iter().fold(0, |byte, symbol| byte << 1 | u8::from(symbol.cast_signed() > 0))
    };
    soft.chunks(8).map(byte).collect()
}

fn capture(
    input: &[u8],
    options: CaptureOptions,
    piece: usize,
) -> (Identification, Vec<CapturedFrame>) {
    let mut capture = Capture::new(MissionSet::built_in(), options);
    let (mut identified, mut frames) = (None, Vec::new());
    let mut take = |capture: &mut Capture| {
        while let Some(event) = capture.poll() {
            match event {
                CaptureEvent::Identified(found) => identified = Some(*found),
                CaptureEvent::Frame(frame) => frames.push(frame),
                CaptureEvent::Unidentified(reason) => panic!("{reason}"),
                _ => {}
            }
        }
    };
    for (index, bytes) in input.chunks(piece).enumerate() {
        capture.push(Utc::from_micros(index as i64), bytes);
        take(&mut capture);
    }
    capture.finish();
    take(&mut capture);
    (identified.unwrap(), frames)
}

fn digest(frames: &[CapturedFrame]) -> String {
    let mut hash = Sha256::new();
    frames.iter().for_each(|frame| hash.update(&frame.bytes));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn expected() -> Value {
    let path = format!("{}/../../../testdata/expected.json", env!("CARGO_MANIFEST_DIR"));
    let all: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    all.get(format!("cadu/{NPP}"))
        .or_else(|| all["files"].get(format!("cadu/{NPP}")))
        .unwrap()
        .clone()
}

#[test]
fn soft_symbols_of_a_real_pass_give_the_frames_that_its_bits_give() {
    let (mission, bits) = (npp(), file(NPP));
    // Two decibels above what the code needs for a wrong bit in ten thousand.
    let noisy = Channel { before: 5_000, noise: 30.0, ..STRAIGHT };
    let channels = [
        noisy,
        Channel { turned: true, ..noisy },
        Channel { inverted: true, before: 5_001, ..noisy },
        Channel { turned: true, inverted: true, before: 1, ..noisy },
    ];
    let options = CaptureOptions { format: Some(InputLayout::Soft), ..CaptureOptions::default() };
    for channel in channels {
        let input = soft(mission.coding().inner, &bits, channel);
        let (identified, frames) = capture(&input, options.clone(), 64 << 10);
        assert_eq!(
            (identified.mission.name(), identified.format),
            ("suomi-npp", InputLayout::Soft)
        );
        assert_eq!(Value::from(frames.len()), expected()["frames_total"]);
        assert_eq!(Value::from(digest(&frames)), expected()["frames_sha256"]);
    }
}

#[test]
fn hard_symbols_are_found_out_without_being_named() {
    let (mission, bits) = (npp(), file(NPP));
    let input = hard(&soft(
        mission.coding().inner,
        &bits,
        Channel { before: 1_000, noise: 15.0, ..STRAIGHT },
    ));
    for named in [None, Some(mission)] {
        let options = CaptureOptions { mission: named, ..CaptureOptions::default() };
        let (identified, frames) = capture(&input, options, 5_000);
        assert_eq!(
            (identified.mission.name(), identified.format),
            ("suomi-npp", InputLayout::Symbols)
        );
        assert_eq!(Value::from(digest(&frames)), expected()["frames_sha256"]);
    }
}

#[test]
fn bits_stay_bits_for_a_mission_with_an_inner_code() {
    let (identified, frames) = capture(
        &file(NPP),
        CaptureOptions { mission: Some(npp()), ..CaptureOptions::default() },
        5_000,
    );
    assert_eq!(identified.format, InputLayout::Bits);
    assert_eq!(Value::from(digest(&frames)), expected()["frames_sha256"]);
}

#[test]
fn symbols_are_read_again_from_any_frame_on() {
    let mission = npp();
    let input = soft(
        mission.coding().inner,
        &file(NPP)[..400 << 10],
        Channel { before: 777, noise: 20.0, ..STRAIGHT },
    );
    let known = CaptureOptions {
        format: Some(InputLayout::Soft),
        mission: Some(mission),
        ..CaptureOptions::default()
    };
    let (_, all) = capture(&input, known.clone(), 64 << 10);
    for from in [1, 40, 150, all.len() - 2] {
        let frames_from = all[from].position;
        let start = CaptureOptions::read_from(InputLayout::Soft, frames_from);
        let options = CaptureOptions { start, frames_from, ..known.clone() };
        let (_, rest) = capture(&input[start.byte() as usize..], options, 64 << 10);
        assert_eq!(digest(&rest), digest(&all[from..]), "from frame {from}");
        for (again, first) in rest.iter().zip(&all[from..]) {
            assert!(
                again.position.as_bits().abs_diff(first.position.as_bits()) <= 16,
                "places agree"
            );
        }
    }
    assert_eq!(
        CaptureOptions::read_from(InputLayout::Bits, BitPosition::from_bits(83)).as_bits(),
        83
    );
}

/// The inner decoder has to find its way into the second downlink; that costs three frames at most,
/// and none of the first.
#[test]
fn symbols_of_another_downlink_behind_the_first_are_followed() {
    let noisy = Channel { noise: 20.0, ..STRAIGHT };
    // The same spacecraft's code at another rate; the bits are another one's, which comes with that
    // code here.
    let aqua = MissionSet::built_in()
        .by_name("aqua")
        .unwrap()
        .text()
        .replace("line_code = \"nrz-m\"\n", "");
    let aqua = aqua.replace("[coding]\n", "[coding]\nline_code = \"nrz-m\"\n");
    let aqua =
        Mission::from_toml(&format!("{aqua}\n[coding.convolutional]\nrate = \"3/4\"\n")).unwrap();
    let mut missions = MissionSet::built_in();
    missions.add(aqua.clone()).unwrap();
    let other = "aqua.20241206T175646.dat";
    for turned in [false, true] {
        let mut input = soft(npp().coding().inner, &file(NPP)[..300 << 10], noisy);
        let second = Channel { turned, ..noisy };
        input.extend(soft(aqua.coding().inner, &file(other)[..300 << 10], second));
        let alone = [&file(NPP)[..300 << 10], &file(other)[..300 << 10]]
            .map(|bits| capture(bits, CaptureOptions::default(), 64 << 10).1.len());
        let options =
            CaptureOptions { format: Some(InputLayout::Soft), ..CaptureOptions::default() };
        let mut capture = Capture::new(missions.clone(), options);
        let mut found: Vec<(String, usize)> = Vec::new();
        let mut take = |capture: &mut Capture| {
            while let Some(event) = capture.poll() {
                match event {
                    CaptureEvent::Identified(seen) => {
                        found.push((seen.mission.name().to_owned(), 0));
                    }
                    CaptureEvent::Frame(frame) if frame.is_good() => {
                        found.last_mut().unwrap().1 += 1;
                    }
                    _ => {}
                }
            }
        };
        for bytes in input.chunks(10_000) {
            capture.push(Utc::default(), bytes);
            take(&mut capture);
        }
        capture.finish();
        take(&mut capture);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["suomi-npp", "aqua"], "turned {turned}");
        let lost = [alone[0] - found[0].1, alone[1] - found[1].1];
        assert!(lost[0] <= 1 && lost[1] <= 3, "{lost:?} of {alone:?}, turned {turned}");
    }
}
