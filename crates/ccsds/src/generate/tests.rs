use super::*;
use crate::account::Account;
use crate::capture::{Capture, CaptureEvent, CaptureOptions};
use crate::mission::MissionSet;
use crate::quality::CapturedFrame;
use skyhaul_units::{Probability, Utc};

fn frames_of(bytes: impl Iterator<Item = Vec<u8>>) -> (Mission, Vec<CapturedFrame>) {
    let mut capture = Capture::new(MissionSet::built_in(), CaptureOptions::default());
    let mut frames = Vec::new();
    let mut mission = None;
    let mut drain = |capture: &mut Capture| {
        while let Some(event) = capture.poll() {
            match event {
                CaptureEvent::Identified(found) => mission = Some(found.mission.clone()),
                CaptureEvent::Frame(frame) => frames.push(frame),
                _ => {}
            }
        }
    };
    for piece in bytes {
        capture.push(Utc::default(), &piece);
        drain(&mut capture);
    }
    capture.finish();
    drain(&mut capture);
    (mission.unwrap(), frames)
}

fn source(name: &str) -> Source {
    let path = format!("{}/../../testdata/cadu/{name}", env!("CARGO_MANIFEST_DIR"));
    let (mission, frames) = frames_of(std::iter::once(std::fs::read(path).unwrap()));
    Source::from_frames(&mission, &frames).unwrap()
}

const CAPTURES: [&str; 3] =
    ["npp.20241206T173815.dat", "aqua.20241206T175646.dat", "metopb.20241206T152751.dat"];

/// Compares what the capture pipeline finds with the generator's own account.
fn assert_truth(generator: Generator) -> Truth {
    let mut generator = generator;
    let (mission, frames) = frames_of(generator.by_ref());
    let truth = generator.truth();
    let mut account = Account::new(&mission, &MissionSet::empty());
    frames.iter().for_each(|frame| account.feed(frame));
    let report = account.finish("generated");
    assert_eq!(report.good_frames, truth.good_frames);
    assert_eq!(report.good_frames_sha256, truth.good_frames_sha256);
    assert_eq!(report.corrected_frames, truth.corrected_frames);
    assert_eq!(report.corrected_symbols, truth.corrected_symbols);
    for (vcid, channel) in &truth.vcids {
        let found = report.vcids.get(vcid).cloned().unwrap_or_default();
        assert_eq!(
            (found.good_frames, found.packets),
            (channel.good_frames, channel.packets),
            "channel {vcid}"
        );
        assert_eq!((&found.apids, found.bytes), (&channel.apids, channel.bytes), "channel {vcid}");
        if channel.good_frames > 0 {
            assert_eq!(found.packets_sha256, channel.packets_sha256, "channel {vcid}");
        }
    }
    truth
}

#[test]
fn a_longer_pass_is_received_as_it_was_sent() {
    for name in CAPTURES {
        let options =
            GeneratorOptions { frames: 5_000, errors: ErrorPlan::default(), offset_bits: 3, seed: 1 };
        let generator = Generator::new(source(name), options);
        assert_eq!(generator.nominal_bits(), 5_000 * 8_192);
        let truth = assert_truth(generator);
        assert_eq!((truth.good_frames, truth.corrected_frames), (5_000, 0), "{name}");
        assert!(truth.vcids.values().map(|channel| channel.packets).sum::<u64>() > 200, "{name}");
    }
}

#[test]
fn channel_errors_cost_what_the_truth_says() {
    let percent = |percent: u64| Probability::of(percent, 100);
    let errors = ErrorPlan {
        correctable: percent(30),
        uncorrectable: percent(2),
        dropped: percent(1),
        slipped: percent(1),
        marker: percent(5),
        inverted: percent(1),
    };
    for (seed, name) in CAPTURES.into_iter().enumerate() {
        let options = GeneratorOptions { frames: 3_000, errors, offset_bits: 5, seed: seed as u64 };
        let truth = assert_truth(Generator::new(source(name), options));
        assert!(truth.corrected_frames > 700 && truth.uncorrectable_frames > 60 && truth.dropped_frames > 10);
    }
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    let errors = ErrorPlan { correctable: Probability::of(1, 2), ..ErrorPlan::default() };
    let bits = |seed| {
        let options = GeneratorOptions { frames: 100, errors, offset_bits: 0, seed };
        Generator::new(source(CAPTURES[0]), options).flatten().collect::<Vec<u8>>()
    };
    assert_eq!(bits(7), bits(7));
    assert_ne!(bits(7), bits(8));
}

#[test]
fn times_and_counts_go_on_from_cycle_to_cycle() {
    let source = source(CAPTURES[1]);
    let cycle = source.cycle();
    let options =
        GeneratorOptions { frames: 5 * 1_023, errors: ErrorPlan::default(), offset_bits: 0, seed: 0 };
    let (mission, frames) = frames_of(Generator::new(source, options));
    let mut account = Account::new(&mission, &MissionSet::empty());
    let mut modis = Vec::new();
    for frame in &frames {
        account.feed_with(frame, |packet| {
            if let crate::packet::Header::Space(header) = packet.header
                && header.apid.value() == 64
            {
                modis.push((header.count, mission.packet_time(&packet.bytes).unwrap()));
            }
        });
    }
    assert!(modis.len() > 4 * 1_000);
    for pair in modis.windows(2) {
        assert_eq!(pair[1].0, (pair[0].0 + 1) % 16_384);
        assert!(pair[1].1 >= pair[0].1, "{} after {}", pair[1].1, pair[0].1);
        assert!(pair[1].1.since(pair[0].1) <= cycle, "{} after {}", pair[1].1, pair[0].1);
    }
    let span = modis.last().unwrap().1.since(modis[0].1);
    assert!(span > cycle * 4 && span < cycle * 5, "{span} in cycles of {cycle}");
}

#[test]
fn captures_without_frames_or_packets_are_refused() {
    let mission = source(CAPTURES[0]).mission;
    assert_eq!(Source::from_frames(&mission, []).unwrap_err(), SourceError::NoFrames);
    let path = format!("{}/../../testdata/cadu/{}", env!("CARGO_MANIFEST_DIR"), CAPTURES[0]);
    let (mission, frames) = frames_of(std::iter::once(std::fs::read(path).unwrap()));
    assert_eq!(Source::from_frames(&mission, &frames[..2]).unwrap_err(), SourceError::NoPackets);
}
