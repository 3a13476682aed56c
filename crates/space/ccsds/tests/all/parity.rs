//! Downlinks with low-density parity-check codes, from bits and soft symbols, with and without
//! noise, against what was sent.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use sha2::{Digest, Sha256};
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
use skyhaul_ccsds::decode::restore_cadu;
use skyhaul_ccsds::generate::{
    Generator, GeneratorOptions, Layout, Source, SymbolOptions, SymbolTruth, SymbolWriter, Truth,
};
use skyhaul_ccsds::identify::InputLayout;
use skyhaul_ccsds::inner::Symbols;
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_ccsds::quality::{CapturedFrame, FrameVerdict, Reason};
use skyhaul_coding::ldpc::Code;
use skyhaul_coding::marker::Marker;
use skyhaul_units::Utc;

/// Keys of each code, its frame's length, and the noise that it is to bear, in dB: half a decibel
/// above where it loses one codeword in a thousand, which is where a marker is still found among
/// noise.
const CODES: [(&str, usize, f64); 10] = [
    ("code = \"c2\"", 892, 4.6),
    ("code = \"ar4ja\"\nrate = \"4/5\"\nk = 1024", 128, 4.4),
    ("code = \"ar4ja\"\nrate = \"2/3\"\nk = 1024", 128, 3.4),
    ("code = \"ar4ja\"\nrate = \"1/2\"\nk = 1024", 128, 2.8),
    ("code = \"ar4ja\"\nrate = \"4/5\"\nk = 4096", 512, 3.8),
    ("code = \"ar4ja\"\nrate = \"2/3\"\nk = 4096", 512, 2.8),
    ("code = \"ar4ja\"\nrate = \"1/2\"\nk = 4096", 512, 2.2),
    ("code = \"ar4ja\"\nrate = \"4/5\"\nk = 16384", 2048, 3.6),
    ("code = \"ar4ja\"\nrate = \"2/3\"\nk = 16384", 2048, 2.6),
    ("code = \"ar4ja\"\nrate = \"1/2\"\nk = 16384", 2048, 1.9),
];

fn mission(keys: &str, length: usize, coding: &str) -> Mission {
    let text = format!(
        "name = \"parity\"\ntitle = \"Parity\"\nscids = [77]\n[frame]\nkind = \"tm\"\nlength = \
        {length}\nfecf = true\n\
         [coding]\nrandomiser = \"ccsds255\"\n{coding}[coding.ldpc]\n{keys}\n"
    );
    Mission::from_toml(&text).unwrap()
}

fn bits(mission: &Mission, frames: u64, offset_bits: u8) -> (Vec<Vec<u8>>, Truth) {
    let source = Source::described(mission, &Default::default(), 3).unwrap();
    let errors = Default::default();
    let layout = Layout::Cadus;
    let mut generator =
        Generator::new(source, GeneratorOptions { frames, errors, offset_bits, seed: 3, layout });
    let pieces = generator.by_ref().collect();
    (pieces, generator.truth())
}

fn symbols(
    mission: &Mission,
    pieces: &[Vec<u8>],
    form: Symbols,
    ebn0_db: Option<f64>,
) -> (Vec<u8>, SymbolTruth) {
    let mut writer = SymbolWriter::new(mission, SymbolOptions { form, ebn0_db, seed: 5 });
    let mut sent: Vec<u8> = pieces.iter().flat_map(|piece| writer.push(piece)).collect();
    sent.extend(writer.finish());
    (sent, writer.truth())
}

fn captured(mission: &Mission, format: Option<InputLayout>, input: &[u8]) -> Vec<CapturedFrame> {
    let options = CaptureOptions {
        mission: Some(mission.clone()),
        format,
        keep_check_symbols: true,
        ..CaptureOptions::default()
    };
    let mut capture = Capture::new(MissionSet::built_in(), options);
    let mut frames = Vec::new();
    let mut take = |capture: &mut Capture| {
        while let Some(event) = capture.poll() {
            if let CaptureEvent::Frame(frame) = event {
                frames.push(frame);
            }
        }
    };
    for piece in input.chunks(50_000) {
        capture.push(Utc::default(), piece);
        take(&mut capture);
    }
    capture.finish();
    take(&mut capture);
    frames
}

fn digest<'a>(frames: impl IntoIterator<Item = &'a CapturedFrame>) -> String {
    let mut hash = Sha256::new();
    frames.into_iter().filter(|frame| frame.is_good()).for_each(|frame| hash.update(&frame.bytes));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn all_codes_come_back_from_noise_as_they_were_sent() {
    for ((keys, length, ebn0_db), code) in CODES.into_iter().zip(Code::ALL) {
        let mission = mission(keys, length, "");
        let ldpc = mission.coding().ldpc.unwrap();
        assert_eq!(ldpc.frame_len(), length);
        if code == Code::C2 {
            assert_eq!((ldpc, mission.coding().marker), (code, Marker::Bits32(0x1ACF_FC1D)));
        } else {
            assert_eq!(mission.coding().marker, Marker::Bits64(0x0347_76C7_2728_95B0));
        }
        let frames = (40_000 / length as u64).min(120);
        let (pieces, truth) = bits(&mission, frames, 5);
        let (soft, sent) = symbols(&mission, &pieces, Symbols::Soft, Some(ebn0_db));
        assert!(sent.wrong_symbols * 100 > sent.symbols, "{keys}: {sent:?} is hardly noise");
        let found = captured(&mission, Some(InputLayout::Soft), &soft);
        assert_eq!(digest(&found), truth.good_frames_sha256, "{keys}: {} of {frames}", found.len());
        for frame in &found {
            let iterations = frame.quality.iterations.unwrap();
            assert!(iterations.count > 0 && iterations.corrected_symbols > 0);
            assert_eq!(
                (frame.quality.verdict, frame.quality.corrected.total()),
                (FrameVerdict::Corrected, 0)
            );
        }
        // What was sent comes back with its check symbols.
        let first = restore_cadu(&found[0], &mission).unwrap();
        let kept = &found[0].check_symbols;
        assert_eq!(first.len(), mission.cadu_len());
        let block = &first[mission.coding().marker.len()..];
        let mut plain = block.to_vec();
        skyhaul_coding::Randomiser::Ccsds255.sequence(block.len()).apply(0, &mut plain);
        assert_eq!((&plain[..length], &plain[length..]), (&found[0].bytes[..], &kept[..]));
    }
}

#[test]
fn bits_are_decoded_too_and_a_changing_level_is_undone() {
    for (coding, inverted) in [("", false), ("", true), ("line_code = \"nrz-m\"\n", true)] {
        for (keys, length, _) in [CODES[0], CODES[3], CODES[7]] {
            let mission = mission(keys, length, coding);
            let (pieces, truth) = bits(&mission, 20, 3);
            for (form, format) in
                [(Symbols::Hard, InputLayout::Symbols), (Symbols::Soft, InputLayout::Soft)]
            {
                let (mut sent, _) = symbols(&mission, &pieces, form, Some(7.5));
                if inverted {
                    sent.iter_mut().for_each(|symbol| match form {
                        Symbols::Hard => *symbol = !*symbol,
                        Symbols::Soft => *symbol = symbol.wrapping_neg(),
                    });
                }
                let found = captured(&mission, Some(format), &sent);
                assert_eq!(digest(&found), truth.good_frames_sha256, "{keys} {coding} {form:?}");
            }
            // A receiver that gives bits has undone the line code.
            let found = captured(&mission, Some(InputLayout::Bits), &pieces.concat());
            assert_eq!(digest(&found), truth.good_frames_sha256);
            assert!(found.iter().all(|frame| frame.quality.verdict == FrameVerdict::Clean));
        }
    }
}

#[test]
fn a_codeword_beyond_correction_is_set_aside_and_says_why() {
    let (keys, length, _) = CODES[0];
    let mission = mission(keys, length, "");
    let (pieces, truth) = bits(&mission, 30, 0);
    let mut sent = pieces.concat();
    for byte in &mut sent[10 * 1024 + 100..10 * 1024 + 500] {
        *byte ^= 0x3C;
    }
    let found = captured(&mission, None, &sent);
    assert_eq!((found.len() as u64, truth.good_frames), (30, 30));
    let aside: Vec<_> = found.iter().filter(|frame| !frame.is_good()).collect();
    assert_eq!(aside.len(), 1);
    assert_eq!(aside[0].set_aside, Some(Reason::Ldpc));
    assert_eq!(aside[0].quality.verdict, FrameVerdict::Uncorrectable);
    assert_eq!(aside[0].quality.iterations.unwrap().count, 100);
    assert_eq!(aside[0].bytes[..], sent[10 * 1024 + 4..11 * 1024]);
}
