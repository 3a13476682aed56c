use super::*;
use crate::capture::{Capture, CaptureEvent, CaptureOptions};
use crate::count::Modulus;
use crate::frame::{self, FirstHeader, FrameFields, VcCount};
use crate::id::{Channel, Scid, Vcid};
use crate::identify::InputLayout;
use crate::mission::{FrameKind, MissionSet};
use crate::quality::{BitPosition, Quality};
use skyhaul_coding::crc;
use skyhaul_units::Utc;

fn frame_of(mission: &Mission, number: u8) -> Vec<u8> {
    let scid = mission.scids().first().copied().unwrap_or(Scid::from_bits(99));
    let data: Vec<u8> =
        (8..mission.frame().length - 40).map(|i| (i as u8).wrapping_mul(number ^ 77)).collect();
    let modulus =
        if mission.frame().kind == FrameKind::Tm { Modulus::TM_FRAME } else { Modulus::AOS_FRAME };
    let fields = FrameFields {
        channel: Channel { scid, vcid: Vcid::from_bits(5) },
        count: VcCount { value: u64::from(number), modulus },
        is_replay: false,
        first_header: Some(FirstHeader::Continuation),
        insert_zone: &[],
        data: &data,
        ocf: None,
        uslp: None,
    };
    frame::write(&fields, mission.frame()).unwrap()
}

fn captured(bytes: &[u8]) -> CapturedFrame {
    CapturedFrame {
        received: Utc::default(),
        position: BitPosition::START,
        quality: Quality::NOT_CHECKED,
        set_aside: None,
        bytes: Bytes::copy_from_slice(bytes),
        check_symbols: Bytes::new(),
    }
}

#[test]
fn every_built_in_mission_decodes_what_it_restores() {
    for mission in MissionSet::built_in().iter() {
        let frame = frame_of(mission, 9);
        let mut cadu = restore_cadu(&captured(&frame), mission).unwrap();
        assert_eq!(cadu.len(), mission.cadu_len());
        let mut decoder = BlockDecoder::new(mission, CheckSymbols::Kept);
        let clean = decoder.decode(&cadu[4..]);
        let is_checked = !mission.frame().fecf.is_empty();
        let expected = if mission.is_coded() || is_checked {
            FrameVerdict::Clean
        } else {
            FrameVerdict::NotChecked
        };
        assert_eq!(clean.verdict, expected, "{}", mission.name());
        assert!(clean.bytes == frame, "{}", mission.name());
        assert_eq!(clean.check_symbols.len(), mission.block_len() - frame.len());
        cadu[100] ^= 0x55;
        let damaged = decoder.decode(&cadu[4..]);
        if mission.is_coded() {
            assert_eq!((damaged.verdict, damaged.corrected.total()), (FrameVerdict::Corrected, 1));
            assert_eq!(damaged.bytes, clean.bytes);
        } else {
            assert_eq!(damaged.set_aside, is_checked.then_some(Reason::FrameErrorControl));
        }
    }
}

#[test]
fn terra_leaves_the_frame_header_and_the_check_symbols_unrandomised() {
    let set = MissionSet::built_in();
    let terra = set.by_name("terra").unwrap();
    let frame = frame_of(terra, 9);
    let cadu = restore_cadu(&captured(&frame), terra).unwrap();
    assert_eq!(cadu[4..10], frame[..6]);
    // The sequence starts behind the header: FF 48 0E.
    assert_eq!(cadu[10..13], [frame[6] ^ 0xFF, frame[7] ^ 0x48, frame[8] ^ 0x0E]);
    assert!(terra.reed_solomon().unwrap().is_clean(&cadu[4..]), "the code is over what is sent");
}

#[test]
fn a_block_beyond_correction_is_set_aside_as_received() {
    let set = MissionSet::built_in();
    let npp = set.by_name("suomi-npp").unwrap();
    let mut cadu = restore_cadu(&captured(&frame_of(npp, 3)), npp).unwrap();
    for symbol in 0..17 {
        cadu[4 + 4 * 9 * symbol] ^= 0xA5;
    }
    let decoded = BlockDecoder::new(npp, CheckSymbols::Kept).decode(&cadu[4..]);
    assert_eq!(decoded.set_aside, Some(Reason::ReedSolomon));
    assert_eq!(decoded.corrected.by_codeword(), [CorrectedSymbols::UNCORRECTABLE, 0, 0, 0]);
    assert_eq!(decoded.bytes, cadu[4..]);
    let aside =
        CapturedFrame { set_aside: decoded.set_aside, bytes: decoded.bytes, ..captured(&[]) };
    assert_eq!(restore_cadu(&aside, npp).unwrap(), cadu);
    assert!(restore_cadu(&captured(&cadu), npp).is_err());
}

#[test]
fn a_line_without_signal_is_not_taken_for_frames() {
    let text = "name = \"test\"\ntitle = \"Test\"\nscids = [7]\n[frame]\nkind = \"tm\"\nlength = \
               223\n[coding]\n\
                randomiser = \"none\"\n[coding.reed_solomon]\ncorrects = 16\ninterleave = 1\nbasis \
                = \"dual\"\n";
    let mission = Mission::from_toml(text).unwrap();
    let (judgement, _) = BlockDecoder::new(&mission, CheckSymbols::Dropped).judge(&[0; 255]);
    assert_eq!(judgement, Judgement::Bad);
}

#[test]
fn frames_with_only_a_frame_error_control_are_checked_by_it() {
    let text = "name = \"test\"\ntitle = \"Test\"\nscids = [7]\n[frame]\nkind = \"aos\"\nlength = \
               100\nfecf = true\n\
                [coding]\nrandomiser = \"ccsds131071\"\n";
    let mission = Mission::from_toml(text).unwrap();
    let coder = BlockDecoder::new(&mission, CheckSymbols::Dropped);
    let mut bits = Vec::new();
    for number in 0..20 {
        let mut frame = frame_of(&mission, number);
        let check = crc::fecf(&frame[..98]).to_be_bytes();
        frame[98..].copy_from_slice(&check);
        coder.encode(mission.coding().marker, &frame, &mut bits);
    }
    bits[104 * 5 + 50] ^= 1;
    bits[104 * 8] ^= 0xFF;
    let options = CaptureOptions {
        mission: Some(mission),
        format: Some(InputLayout::Bits),
        ..CaptureOptions::default()
    };
    let mut capture = Capture::new(MissionSet::empty(), options);
    capture.push(Utc::default(), &bits);
    capture.finish();
    let frames: Vec<CapturedFrame> = std::iter::from_fn(|| capture.poll())
        .filter_map(|event| if let CaptureEvent::Frame(frame) = event { Some(frame) } else { None })
        .collect();
    let reasons: Vec<_> = frames.iter().map(|frame| frame.set_aside).collect();
    assert_eq!(frames.len(), 20);
    assert_eq!(reasons.iter().filter(|reason| reason.is_none()).count(), 19);
    assert_eq!(reasons[5], Some(Reason::FrameErrorControl));
    assert!(frames[8].quality.flywheel && frames[8].quality.fecf == Check::Good);
}

#[test]
fn a_wide_spacecraft_id_is_identified_by_all_its_bits() {
    let text = "name = \"jpss-3\"\ntitle = \"JPSS-3\"\nscids = [434]\n[frame]\nkind = \
               \"aos\"\nscid_bits = 10\nlength = 1115\n\
                insert_zone = 9\nocf = true\n[coding]\nrandomiser = \
                \"ccsds255\"\n[coding.reed_solomon]\ncorrects = 16\n\
                interleave = 5\nbasis = \"dual\"\n";
    let mission = Mission::from_toml(text).unwrap();
    let coder = BlockDecoder::new(&mission, CheckSymbols::Dropped);
    let mut bits = Vec::new();
    for number in 0..8 {
        let mut frame = frame_of(&mission, number);
        // 434 = 0b01_10110010: the two high bits are in the signalling field (732.0-B-5 4.1.2.2.2).
        frame[..6].copy_from_slice(&[0x6C, 0x85, 0, 0, number, 0x10]);
        coder.encode(mission.coding().marker, &frame, &mut bits);
    }
    let mut missions = MissionSet::built_in();
    missions.add(mission.clone()).unwrap();
    let found = crate::identify::identify(
        &bits,
        &missions.identifiable(),
        crate::end_of_input::EndOfInput::Reached,
    )
    .unwrap();
    assert_eq!((found.mission.name(), found.scid.unwrap().value()), ("jpss-3", 434));

    let bare: Vec<u8> =
        bits.chunks(mission.cadu_len()).flat_map(|cadu| decoded(&mission, cadu)).collect();
    let found = crate::identify::identify(
        &bare,
        &missions.identifiable(),
        crate::end_of_input::EndOfInput::Reached,
    )
    .unwrap();
    assert_eq!((found.format, found.scid.unwrap().value()), (InputLayout::Frames, 434));

    // Two frames of spacecraft 178, which has the same low bits.
    for number in 8..10 {
        let mut frame = frame_of(&mission, number);
        frame[..6].copy_from_slice(&[0x6C, 0x85, 0, 0, number, 0]);
        coder.encode(mission.coding().marker, &frame, &mut bits);
    }
    let mut capture = Capture::new(missions, CaptureOptions::default());
    capture.push(Utc::default(), &bits);
    capture.finish();
    let others: Vec<_> = std::iter::from_fn(|| capture.poll())
        .filter_map(|event| match event {
            CaptureEvent::OtherSpacecraft { scid, .. } => Some(scid.value()),
            _ => None,
        })
        .collect();
    assert_eq!(others, [178]);
}

/// The frame of a CADU without errors.
fn decoded(mission: &Mission, cadu: &[u8]) -> Vec<u8> {
    BlockDecoder::new(mission, CheckSymbols::Dropped).judge(&cadu[4..]).1.bytes.to_vec()
}

/// The block that is due decodes there too: Reed-Solomon codes are cyclic, and so is the
/// randomiser's sequence.
#[test]
fn a_frame_that_is_whole_bytes_late_is_not_hidden_by_what_decodes_where_it_was_due() {
    let missions = MissionSet::built_in();
    let mission = missions.by_name("suomi-npp").unwrap();
    for bytes in 1..=6 {
        let (mut stream, mut frames) = (Vec::new(), Vec::new());
        for number in 0..8 {
            let frame = frame_of(mission, number);
            let start = stream.len() + if number == 4 { bytes } else { 0 };
            stream.resize(start, 0x55);
            stream.extend(restore_cadu(&captured(&frame), mission).unwrap());
            stream[start] ^= 0x10;
            // Behind it too, so that the next one does not tell where it is.
            stream.extend((number == 4).then_some(0x55));
            frames.push(frame);
        }
        let options = CaptureOptions {
            mission: Some(mission.clone()),
            format: Some(InputLayout::Bits),
            ..CaptureOptions::default()
        };
        let mut capture = Capture::new(missions.clone(), options);
        capture.push(Utc::default(), &stream);
        capture.finish();
        let found = std::iter::from_fn(|| capture.poll()).filter_map(|event| match event {
            CaptureEvent::Frame(frame) if frame.is_good() => Some(frame.bytes.to_vec()),
            _ => None,
        });
        let found = found.map(|bytes| frames.iter().position(|frame| *frame == bytes));
        assert_eq!(
            found.collect::<Vec<_>>(),
            (0..8).map(Some).collect::<Vec<_>>(),
            "{bytes} bytes late"
        );
    }
}
