use super::*;
use crate::account::Account;
use crate::capture::{Capture, CaptureEvent, CaptureOptions};
use crate::mission::MissionSet;
use crate::quality::CapturedFrame;
use skyhaul_units::{Duration, Probability, Utc};

fn frames_of(bytes: impl Iterator<Item = Vec<u8>>) -> (Mission, Vec<CapturedFrame>) {
    frames_with(bytes, None)
}

/// The frames of an input, of the mission named or of one that is found.
fn frames_with(
    bytes: impl Iterator<Item = Vec<u8>>,
    named: Option<&Mission>,
) -> (Mission, Vec<CapturedFrame>) {
    let options = CaptureOptions { mission: named.cloned(), ..CaptureOptions::default() };
    let mut capture = Capture::new(MissionSet::built_in(), options);
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
    let path = format!("{}/../../../testdata/cadu/{name}", env!("CARGO_MANIFEST_DIR"));
    let (mission, frames) = frames_of(std::iter::once(std::fs::read(path).unwrap()));
    Source::from_frames(&mission, &frames).unwrap()
}

const CAPTURES: [&str; 3] =
    ["npp.20241206T173815.dat", "aqua.20241206T175646.dat", "metopb.20241206T152751.dat"];

/// Compares what the capture pipeline finds with the generator's own account.
fn assert_truth(generator: Generator) -> Truth {
    assert_truth_of(generator, None)
}

fn assert_truth_of(mut generator: Generator, named: Option<&Mission>) -> Truth {
    let (mission, frames) = frames_with(generator.by_ref(), named);
    assert_eq!(mission.name(), generator.mission.name());
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
        let options = GeneratorOptions {
            frames: 5_000,
            errors: ErrorPlan::default(),
            offset_bits: 3,
            seed: 1,
            layout: Layout::Cadus,
        };
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
        ..ErrorPlan::default()
    };
    for (seed, name) in CAPTURES.into_iter().enumerate() {
        let options = GeneratorOptions {
            frames: 3_000,
            errors,
            offset_bits: 5,
            seed: seed as u64,
            layout: Layout::Cadus,
        };
        let truth = assert_truth(Generator::new(source(name), options));
        assert!(
            truth.corrected_frames > 700
                && truth.uncorrectable_frames > 60
                && truth.dropped_frames > 10
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    let errors = ErrorPlan { correctable: Probability::of(1, 2), ..ErrorPlan::default() };
    let bits = |seed| {
        let options =
            GeneratorOptions { frames: 100, errors, offset_bits: 0, seed, layout: Layout::Cadus };
        Generator::new(source(CAPTURES[0]), options).flatten().collect::<Vec<u8>>()
    };
    assert_eq!(bits(7), bits(7));
    assert_ne!(bits(7), bits(8));
}

#[test]
fn times_and_counts_go_on_from_cycle_to_cycle() {
    let source = source(CAPTURES[1]);
    let cycle = source.cycle();
    let options = GeneratorOptions {
        frames: 5 * 1_023,
        errors: ErrorPlan::default(),
        offset_bits: 0,
        seed: 0,
        layout: Layout::Cadus,
    };
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
    let path = format!("{}/../../../testdata/cadu/{}", env!("CARGO_MANIFEST_DIR"), CAPTURES[0]);
    let (mission, frames) = frames_of(std::iter::once(std::fs::read(path).unwrap()));
    assert_eq!(Source::from_frames(&mission, &frames[..2]).unwrap_err(), SourceError::NoPackets);
}

/// A mission of any kind of frame and coding.
fn made_up(kind: &str, frame: &str, coding: &str) -> Mission {
    let text = format!(
        "name = \"made-up\"\ntitle = \"Made up\"\nscids = [66]\n[frame]\nkind = \
        \"{kind}\"\n{frame}\n[coding]\n{coding}\n\
         [[time]]\napids = [\"100-101\"]\ncode = \"cds8\"\n"
    );
    Mission::from_toml(&text).unwrap()
}

fn described(mission: &Mission, text: &str, options: GeneratorOptions) -> Generator {
    let description = Description::from_toml(text).unwrap();
    options.errors.fits(mission).unwrap();
    Generator::new(Source::described(mission, &description, options.seed).unwrap(), options)
}

const PLAIN: GeneratorOptions = GeneratorOptions {
    frames: 600,
    errors: ErrorPlan {
        correctable: Probability::from_ppb(0),
        uncorrectable: Probability::from_ppb(0),
        bursts: Probability::from_ppb(0),
        burst_bytes: 0,
        dropped: Probability::from_ppb(0),
        gaps: Probability::from_ppb(0),
        gap_frames: 0,
        slipped: Probability::from_ppb(0),
        marker: Probability::from_ppb(0),
        inverted: Probability::from_ppb(0),
    },
    offset_bits: 0,
    seed: 1,
    layout: Layout::Cadus,
};

#[test]
fn every_built_in_mission_receives_what_its_made_up_downlink_sent() {
    for mission in MissionSet::built_in().iter() {
        let percent = |percent: u64| Probability::of(percent, 100);
        let mut errors =
            ErrorPlan { dropped: percent(1), inverted: percent(1), ..ErrorPlan::default() };
        if mission.is_coded() {
            errors = ErrorPlan {
                correctable: percent(10),
                uncorrectable: percent(2),
                bursts: percent(3),
                burst_bytes: 60,
                ..errors
            };
        }
        let options = GeneratorOptions { offset_bits: 3, errors, frames: 400, ..PLAIN };
        // Those that name no spacecraft are not identified.
        let named = Some(mission).filter(|mission| mission.scids().is_empty());
        let truth = assert_truth_of(described(mission, "", options), named);
        assert!(truth.good_frames > 350, "{}", mission.name());
        let packets: u64 = truth.vcids.values().map(|channel| channel.packets).sum();
        assert_eq!(
            packets > 50,
            mission.name() != "escapade-gold",
            "{}: {packets}",
            mission.name()
        );
    }
}

#[test]
fn every_kind_of_frame_and_coding_is_received_as_it_was_sent() {
    let rs = |corrects: usize, interleave: usize, fill: usize| {
        format!(
            "randomiser = \"ccsds255\"\n[coding.reed_solomon]\ncorrects = {corrects}\ninterleave = \
            {interleave}\nbasis = \
             \"dual\"\nvirtual_fill = {fill}"
        )
    };
    let plain = "randomiser = \"ccsds131071\"".to_owned();
    let none = "randomiser = \"none\"".to_owned();
    let cases = [
        ("tm", "length = 1115\nfecf = true\nocf = true", rs(16, 5, 0)),
        ("tm", "length = 223", rs(16, 1, 0)),
        ("tm", "length = 1113\nfecf = true", plain.clone()),
        ("aos", "length = 1912", rs(8, 8, 0)),
        ("aos", "length = 1100\nfhec = true\ninsert_zone = 5", rs(16, 5, 15)),
        ("aos", "length = 702\nocf = true\nfecf = true", rs(8, 3, 15)),
        ("aos", "length = 500\nfhec = true\nfecf = true", none),
        ("uslp", "length = 892", rs(16, 4, 0)),
        (
            "uslp",
            "length = 956\ninsert_zone = 7\nocf = true\nfecf = true\nfecf_bits = 32",
            rs(8, 4, 0),
        ),
        ("uslp", "length = 640\nfecf = true", plain),
    ];
    let percent = |percent: u64| Probability::of(percent, 100);
    for (number, (kind, frame, coding)) in cases.into_iter().enumerate() {
        let mission = made_up(kind, frame, &coding);
        let errors = ErrorPlan {
            correctable: if mission.is_coded() { percent(10) } else { Probability::default() },
            uncorrectable: percent(2),
            bursts: percent(2),
            burst_bytes: 40,
            dropped: percent(1),
            gaps: percent(1),
            gap_frames: 9,
            slipped: percent(1),
            marker: percent(2),
            inverted: percent(1),
        };
        let text = "vc_count_octets = 2\n[[packets]]\nvcid = 2\nmap = 3\napids = \
                   [\"100-101\"]\nevery = \"20 ms\"\ngroup = 3\n\
                    [[packets]]\nvcid = 3\napids = [\"7\", \"9\"]\nshortest = 7\nlongest = 3000\n";
        let options =
            GeneratorOptions { errors, offset_bits: 1, seed: number as u64, frames: 700, ..PLAIN };
        // Without a code the headers alone do not tell the zones: the mission is named.
        let truth = assert_truth_of(described(&mission, text, options), Some(&mission));
        assert!(truth.uncorrectable_frames > 0 && truth.dropped_frames > 20, "{kind} {frame}");
        assert!(
            truth.vcids[&2].packets > 9 && truth.vcids[&3].packets > 9,
            "{kind} {frame}: {truth:?}"
        );
    }
}

#[test]
fn bare_frames_are_received_as_they_were_sent() {
    for (kind, frame) in
        [("aos", "length = 444\nocf = true"), ("tm", "length = 300"), ("uslp", "length = 128")]
    {
        let mission = made_up(kind, frame, "randomiser = \"none\"");
        let errors =
            ErrorPlan { gaps: Probability::of(1, 50), gap_frames: 3, ..ErrorPlan::default() };
        let options = GeneratorOptions { layout: Layout::Frames, errors, ..PLAIN };
        let generator = described(&mission, "", options);
        assert_eq!(generator.nominal_bits(), 600 * 8 * mission.frame().length as u64);
        let truth = assert_truth_of(generator, Some(&mission));
        assert!(truth.dropped_frames > 0 && truth.vcids[&1].packets > 50);
    }
}

#[test]
fn frames_that_say_their_own_length_are_received_as_they_were_sent() {
    let gaps = ErrorPlan { gaps: Probability::of(1, 50), gap_frames: 3, ..ErrorPlan::default() };
    let cases = [
        ("length = 400", 3, gaps),
        ("length = 250\ntruncated_length = 40\nfecf = true", 1, gaps),
        (
            "length = 3000\ninsert_zone = 5\nocf = true\nfecf = true\nfecf_bits = \
            32\ntruncated_length = 600",
            7,
            gaps,
        ),
        // Frames that do not count cannot be missed.
        ("length = 500\ntruncated_length = 100", 0, ErrorPlan::default()),
    ];
    for (frame, octets, errors) in cases {
        let mission =
            made_up("uslp", &format!("{frame}\nvariable_length = true"), "randomiser = \"none\"");
        let text = format!(
            "vc_count_octets = {octets}\n[[packets]]\nvcid = 2\nmap = 3\napids = \
            [\"100-101\"]\nevery = \"20 ms\"\n\
             [[packets]]\nvcid = 3\napids = [\"7\", \"9\"]\nshortest = 7\nlongest = 1500\n"
        );
        let options = GeneratorOptions { errors, frames: 1_500, ..PLAIN };
        let generate = || described(&mission, &text, options);
        let truth = assert_truth_of(generate(), Some(&mission));
        assert!(truth.vcids[&2].packets > 1 && truth.vcids[&3].packets > 20, "{frame}: {truth:?}");
        assert_eq!(truth.dropped_frames > 0, octets > 0);
        let (_, frames) = frames_with(generate(), Some(&mission));
        let mut lengths: Vec<usize> = frames.iter().map(|frame| frame.bytes.len()).collect();
        lengths.sort_unstable();
        lengths.dedup();
        assert!(lengths.len() > 20, "{frame}: {lengths:?}");
        // Found by itself, and the frames are where they say they are.
        let mut known = MissionSet::built_in();
        known.add(mission.clone()).unwrap();
        let mut capture = Capture::new(known, CaptureOptions::default());
        let stream: Vec<u8> = generate().flatten().collect();
        stream.chunks(1_000).for_each(|piece| capture.push(Utc::default(), piece));
        capture.finish();
        let mut found = Vec::new();
        while let Some(event) = capture.poll() {
            if let CaptureEvent::Frame(frame) = event {
                let at = frame.position.byte() as usize;
                assert_eq!(stream[at..][..frame.bytes.len()], frame.bytes, "{frame:?}");
                found.push(frame.bytes);
            }
        }
        let named: Vec<_> = frames.into_iter().map(|frame| frame.bytes).collect();
        assert!(found == named, "{frame}: {} of {} frames", found.len(), named.len());
    }
}

#[test]
fn packets_have_the_rate_times_and_groups_described() {
    let mission = made_up("aos", "length = 892", "randomiser = \"none\"");
    let text = "rate = \"10 Mbit/s\"\nstart = 2026-11-22T12:00:00Z\n[[packets]]\nvcid = 5\napids = \
               [\"100\"]\nevery = \"50 ms\"\n\
                group = 4\n";
    // 10 Mbit/s are 1395 frames of 896 bytes a second.
    let generator = described(&mission, text, GeneratorOptions { frames: 2_791, ..PLAIN });
    let (_, frames) = frames_with(generator, Some(&mission));
    let mut account = Account::new(&mission, &MissionSet::empty());
    let (mut times, mut packets) = (Vec::new(), 0);
    for frame in &frames {
        account.feed_with(frame, |packet| {
            packets += u32::from(!packet.header.is_idle());
            times.extend(mission.packet_time(&packet.bytes));
        });
    }
    assert!((38..=41).contains(&times.len()), "{}", times.len());
    assert!((packets as usize).abs_diff(4 * times.len()) < 4);
    assert!(times[0].to_string().starts_with("2026-11-22T12:00:00.000000"), "{}", times[0]);
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(times[2].since(times[1]), Duration::from_millis(50));
}

#[test]
fn what_does_not_fit_the_mission_is_refused_with_a_reason() {
    let mission = made_up("aos", "length = 892", "randomiser = \"none\"");
    let cases = [
        ("scid = 67", "spacecraft 67 is not of mission made-up"),
        ("rate = \"0 bit/s\"", "does not carry frames"),
        ("vc_count_octets = 8", "0 to 7"),
        ("[[packets]]\nvcid = 63\napids = [\"1\"]", "does not carry packets"),
        ("[[packets]]\nvcid = 1\napids = [\"2047\"]", "0 to 2046"),
        ("[[packets]]\nvcid = 1\napids = [\"9-2\"]", "not a range"),
        ("[[packets]]\nvcid = 1\napids = [\"1\"]\ngroup = 0", "more than zero"),
        ("[[packets]]\nvcid = 1\nmap = 16\napids = [\"1\"]", "access point 16"),
        ("[[packets]]\nvcid = 1\napids = [\"100\"]\nshortest = 14", "14 bytes before their data"),
        ("[[packets]]\nvcid = 1\napids = [\"1\"]\nevery = \"1 us\"", "need more than"),
        ("[[packets]]\nvcid = 1\napids = [\"1\"]\nevery = \"1 h\"", "too rare"),
        ("[[packets]]\nvcid = 1\napids = [\"0-600\"]", "at most 512"),
    ];
    for (text, reason) in cases {
        let description = Description::from_toml(text).unwrap();
        let error = Source::described(&mission, &description, 1).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
    let often = Probability::of(1, 10);
    let plan = |plan: ErrorPlan| plan.fits(&mission).unwrap_err().to_string();
    assert!(plan(ErrorPlan { slipped: often, ..PLAIN.errors }).contains("`slipped` need"));
    assert!(plan(ErrorPlan { correctable: often, ..PLAIN.errors }).contains("Reed-Solomon"));
    assert!(plan(ErrorPlan { gap_frames: 101, ..PLAIN.errors }).contains("101 frames"));
    let all = Probability::of(2, 3);
    assert!(plan(ErrorPlan { gaps: all, dropped: all, ..PLAIN.errors }).contains("100 %"));
}
