//! Inputs that pause: the capture after a pause goes on with what came of a frame before it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions, OpenBlock};
use skyhaul_ccsds::generate::{SymbolOptions, SymbolWriter};
use skyhaul_ccsds::identify::InputLayout;
use skyhaul_ccsds::inner::Symbols;
use skyhaul_ccsds::mission::MissionSet;
use skyhaul_ccsds::quality::CapturedFrame;
use skyhaul_units::Utc;

const NPP: &str = "npp.20241206T173815.dat";

fn file(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../../testdata/cadu/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The frames of a capture that ends, and what is left of one that is not whole.
fn ended(mut capture: Capture, bytes: &[u8]) -> (Vec<CapturedFrame>, Option<OpenBlock>) {
    let mut frames = Vec::new();
    let mut take = |capture: &mut Capture| {
        while let Some(event) = capture.poll() {
            if let CaptureEvent::Frame(frame) = event {
                frames.push(frame);
            }
        }
    };
    for piece in bytes.chunks(4_096) {
        capture.push(Utc::default(), piece);
        take(&mut capture);
    }
    capture.finish();
    take(&mut capture);
    let open = capture.open_block();
    (frames, open)
}

/// Every frame comes as it does without a pause, wherever that is.
fn assert_no_pause_shows(input: &[u8], options: &CaptureOptions, pauses: &[usize]) {
    let known = MissionSet::built_in;
    let (whole, _) = ended(Capture::new(known(), options.clone()), input);
    assert!(whole.len() > 20, "{}", whole.len());
    for pause in pauses {
        let (before, open) = ended(Capture::new(known(), options.clone()), &input[..*pause]);
        let open = open.unwrap();
        let (after, _) =
            ended(Capture::going_on(known(), options.clone(), &open), &input[*pause..]);
        let places = |frames: &[CapturedFrame]| {
            frames.iter().map(|frame| (frame.position, frame.bytes.clone())).collect::<Vec<_>>()
        };
        let both = [places(&before), places(&after)].concat();
        assert_eq!(both.len(), whole.len(), "a pause after {pause} bytes");
        assert_eq!(both, places(&whole), "a pause after {pause} bytes");
    }
}

#[test]
fn a_frame_that_a_pause_cut_is_whole_whatever_the_input_holds() {
    let cadus = file(NPP);
    let places = [200 * 1_024 + 1, 200 * 1_024 + 3, 201 * 1_024 + 500, 202 * 1_024 + 1_023];
    assert_no_pause_shows(&cadus, &CaptureOptions::default(), &places);
    // The same at another bit offset.
    let shifted: Vec<u8> = cadus.windows(2).map(|pair| pair[0] << 3 | pair[1] >> 5).collect();
    assert_no_pause_shows(&shifted, &CaptureOptions::default(), &places);
    let (frames, _) =
        ended(Capture::new(MissionSet::built_in(), CaptureOptions::default()), &cadus);
    let bare: Vec<u8> = frames.iter().flat_map(|frame| frame.bytes.to_vec()).collect();
    assert_no_pause_shows(&bare, &CaptureOptions::default(), &[100 * 892 + 1, 100 * 892 + 891]);
}

#[test]
fn a_frame_of_symbols_that_a_pause_cut_is_whole() {
    let mission = MissionSet::built_in().by_name("suomi-npp").unwrap().clone();
    let mut writer =
        SymbolWriter::new(&mission, SymbolOptions { form: Symbols::Hard, ebn0_db: None, seed: 7 });
    let symbols = [writer.push(&file(NPP)[..300 * 1_024]), writer.finish()].concat();
    let options = CaptureOptions {
        mission: Some(mission),
        format: Some(InputLayout::Symbols),
        ..CaptureOptions::default()
    };
    assert_no_pause_shows(&symbols, &options, &[200_000, 200_777, 201_500]);
}
