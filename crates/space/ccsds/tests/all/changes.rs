//! Streams that go over from one downlink to another: each comes out whole, by itself, with its own
//! counts.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use sha2::{Digest, Sha256};
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions, CaptureStats};
use skyhaul_ccsds::decode::{BlockDecoder, CheckSymbols};
use skyhaul_ccsds::frame::glimpse;
use skyhaul_ccsds::generate::{Generator, GeneratorOptions, Layout, Source, Truth};
use skyhaul_ccsds::identify::{Identification, InputLayout};
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_ccsds::quality::{BitPosition, CapturedFrame};
use skyhaul_units::Utc;

const NPP: &str = "npp.20241206T173815.dat";
const AQUA: &str = "aqua.20241206T175646.dat";
const METOP: &str = "metopb.20241206T152751.dat";

/// One downlink of a stream.
struct Contact {
    found: Identification,
    frames: Vec<CapturedFrame>,
    /// What became of it, as was said at its end.
    stats: CaptureStats,
    /// Where it was said to begin.
    at: BitPosition,
    others: usize,
}

impl Contact {
    fn good(&self) -> Vec<&CapturedFrame> {
        self.frames.iter().filter(|frame| frame.is_good()).collect()
    }

    fn digest(&self) -> String {
        let mut hash = Sha256::new();
        self.good().iter().for_each(|frame| hash.update(&frame.bytes));
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn contacts_of(input: &[u8], options: CaptureOptions, piece: usize) -> Vec<Contact> {
    contacts_among(MissionSet::built_in(), input, options, piece)
}

fn contacts_among(
    missions: MissionSet,
    input: &[u8],
    options: CaptureOptions,
    piece: usize,
) -> Vec<Contact> {
    let mut capture = Capture::new(missions, options);
    let mut contacts: Vec<Contact> = Vec::new();
    let mut next = BitPosition::START;
    let mut take = |capture: &mut Capture| {
        while let Some(event) = capture.poll() {
            match event {
                CaptureEvent::Identified(found) => contacts.push(Contact {
                    found: *found,
                    frames: Vec::new(),
                    stats: CaptureStats::default(),
                    at: next,
                    others: 0,
                }),
                CaptureEvent::Frame(frame) => contacts.last_mut().unwrap().frames.push(frame),
                CaptureEvent::Changed { at, stats } => {
                    contacts.last_mut().unwrap().stats = stats;
                    next = at;
                }
                CaptureEvent::OtherSpacecraft { .. } => contacts.last_mut().unwrap().others += 1,
                CaptureEvent::Unidentified(reason) => panic!("{reason}"),
                CaptureEvent::Locked(_)
                | CaptureEvent::LockLost(_)
                | CaptureEvent::OtherDownlink(_) => {}
            }
        }
    };
    for (index, bytes) in input.chunks(piece).enumerate() {
        capture.push(Utc::from_micros(index as i64), bytes);
        take(&mut capture);
    }
    capture.finish();
    take(&mut capture);
    let stats = capture.stats();
    contacts.last_mut().unwrap().stats = stats;
    contacts
}

fn contacts(input: &[u8]) -> Vec<Contact> {
    contacts_of(input, CaptureOptions::default(), 4_096)
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../../testdata/cadu/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn mission(name: &str) -> Mission {
    MissionSet::built_in().by_name(name).unwrap().clone()
}

/// Frames of a mission with what a receiver can get out of them.
fn generated(mission: &Mission, frames: u64) -> (Vec<u8>, Truth) {
    let source = Source::described(mission, &Default::default(), 7).unwrap();
    let options = GeneratorOptions {
        frames,
        errors: Default::default(),
        offset_bits: 0,
        seed: 7,
        layout: Layout::Cadus,
    };
    let mut generator = Generator::new(source, options);
    let bits = generator.by_ref().flatten().collect();
    (bits, generator.truth())
}

fn names(contacts: &[Contact]) -> Vec<&str> {
    contacts.iter().map(|contact| contact.found.mission.name()).collect()
}

/// Every real capture behind every other: each gives the frames that it gives alone. The bits
/// before a capture's first marker and behind its last frame belong to nobody, whatever stands
/// beside them.
#[test]
fn real_passes_one_behind_the_other_give_the_frames_that_each_gives_alone() {
    let alone: Vec<(String, usize)> = [NPP, AQUA, METOP]
        .map(|name| {
            let [contact] = contacts(&file(name)).try_into().ok().unwrap();
            (contact.digest(), contact.good().len())
        })
        .to_vec();
    let stream = [NPP, AQUA, METOP, NPP].map(file).concat();
    for piece in [1_000, 4_096, 64 << 10, 256 << 10, stream.len()] {
        let found = contacts_of(&stream, CaptureOptions::default(), piece);
        assert_eq!(
            names(&found),
            ["suomi-npp", "aqua", "metop-b", "suomi-npp"],
            "pieces of {piece}"
        );
        for (contact, alone) in found.iter().zip([&alone[0], &alone[1], &alone[2], &alone[0]]) {
            let name = contact.found.mission.name();
            assert_eq!(
                (&contact.digest(), contact.good().len()),
                (&alone.0, alone.1),
                "{name}, {piece}"
            );
            assert_eq!(contact.others, 0);
            assert_eq!(contact.stats.good_frames, contact.good().len() as u64);
            assert_eq!(
                contact.stats.set_aside as usize,
                contact.frames.len() - contact.good().len()
            );
            assert_eq!(contact.stats.sync.frames as usize, contact.frames.len());
        }
        let bits: u64 = found.iter().map(|contact| contact.stats.sync.bits).sum();
        assert_eq!(bits, 8 * stream.len() as u64, "every bit is one contact's");
        for frame in found.iter().flat_map(|contact| &contact.frames) {
            let last = (frame.position.as_bits() as i64 + 8 * 1024 - 1) / 8;
            assert_eq!(
                frame.received.as_micros(),
                last / piece as i64,
                "times are those of the input"
            );
        }
    }
}

/// With another length, kind or coding, aligned or not, straight behind the last frame or after
/// noise: nothing of the next one is lost, and the one before ends with its own.
#[test]
fn another_length_kind_or_coding_costs_no_frame() {
    let npp = file(NPP);
    let [alone] = contacts(&npp).try_into().ok().unwrap();
    // Up to the end of its last whole frame.
    let end = alone.frames.last().unwrap().position.as_bits() + 8 * 1024;
    let same_length = "name = \"other\"\ntitle = \"Other coding\"\nscids = [157]\n[frame]\nkind = \
                      \"aos\"\n\
                       length = 1020\nfecf = true\n[coding]\nrandomiser = \"ccsds131071\"\n\
                       [[product]]\nname = \"one\"\nvcids = [3]\napids = [\"7\"]\n";
    let same_length = Mission::from_toml(same_length).unwrap();
    let mut missions = MissionSet::built_in();
    missions.add(same_length.clone()).unwrap();
    let seconds = [
        mission("noaa-21"),
        mission("gcom-w1"),
        mission("euclid"),
        mission("goes-16"),
        same_length,
    ];
    for second in &seconds {
        let (bits, truth) = generated(second, 60);
        for noise_len in [0, 3, 5_000, 400_000] {
            let mut stream = Bits::default();
            stream.push(&npp, end);
            stream.push(&noise(noise_len), 8 * noise_len as u64 + 3 * u64::from(noise_len > 0));
            let from = stream.len;
            stream.push(&bits, 8 * bits.len() as u64);
            let found =
                contacts_among(missions.clone(), &stream.bytes, CaptureOptions::default(), 4_096);
            let name = format!("{} after {noise_len} bytes of noise", second.name());
            let [first, next] = found.as_slice() else { panic!("{name}: {:?}", names(&found)) };
            assert_eq!(
                (first.digest(), first.frames.len()),
                (alone.digest(), alone.frames.len()),
                "{name}"
            );
            assert_eq!(next.good().len() as u64, truth.good_frames, "{name}");
            assert_eq!(next.digest(), truth.good_frames_sha256, "{name}");
            assert_eq!(next.at.as_bits(), from, "{name}");
            assert_eq!(
                (next.found.scid, next.frames.len()),
                (second.scids().first().copied(), 60),
                "{name}"
            );
        }
    }
}

/// Two spacecraft of one family: nothing changes but the number in the headers.
#[test]
fn another_spacecraft_under_the_same_framing_is_another_contact() {
    let npp = file(NPP);
    let [alone] = contacts(&npp).try_into().ok().unwrap();
    for (scid, name) in [(159, "noaa-20"), (200, "generic")] {
        let stream = [npp.clone(), renamed(&alone.frames, |_| scid)].concat();
        let found = contacts(&stream);
        assert_eq!(names(&found), ["suomi-npp", name]);
        assert_eq!(
            (found[0].digest(), found[0].frames.len()),
            (alone.digest(), alone.frames.len())
        );
        assert_eq!(found[1].good().len(), alone.good().len());
        assert_eq!(found[1].found.scid.unwrap().value(), scid);
        assert_eq!((found[0].others, found[1].others), (0, 0));
    }
    // From one unknown spacecraft to another, and back.
    let all = &alone.frames[..200];
    let stream = [renamed(all, |_| 200), renamed(all, |_| 201), renamed(all, |_| 200)].concat();
    let found = contacts(&stream);
    let scids =
        found.iter().map(|contact| (contact.found.scid.unwrap().value(), contact.good().len()));
    assert_eq!(scids.collect::<Vec<_>>(), [(200, 200), (201, 200), (200, 200)]);
}

/// Frames of another spacecraft among its own are a stream of both, as before; and so are too few
/// at the end.
#[test]
fn spacecraft_that_share_a_stream_are_one_contact() {
    let [alone] = contacts(&file(NPP)).try_into().ok().unwrap();
    for (own, all) in [(9, 10), (10, 41), (2, 3)] {
        let stream = renamed(&alone.frames, |index| if index % all < own { 157 } else { 159 });
        let found = contacts(&stream);
        assert_eq!(names(&found), ["suomi-npp"], "{own} of {all}");
        assert_eq!((found[0].good().len(), found[0].others), (alone.frames.len(), 1));
        assert!(found[0].frames.is_sorted_by_key(|frame| frame.position));
    }
    let frames = &alone.frames[..100];
    let found = contacts(&renamed(frames, |index| if index < 97 { 157 } else { 159 }));
    assert_eq!((names(&found), found[0].good().len()), (vec!["suomi-npp"], 100));
    let found = contacts(&renamed(frames, |index| if index < 96 { 157 } else { 159 }));
    assert_eq!((names(&found), found[1].good().len()), (vec!["suomi-npp", "noaa-20"], 4));
}

/// A fade, however long, is no other downlink: what is set aside stays where it was received.
#[test]
fn a_downlink_that_fades_stays_the_same_contact() {
    let bits = file(NPP);
    let [alone] = contacts(&bits).try_into().ok().unwrap();
    for damaged in [1, 20, 300, 700] {
        let mut faded = bits.clone();
        for frame in &alone.frames[100..100 + damaged] {
            let at = frame.position.byte() as usize;
            faded[at + 100..at + 900].iter_mut().step_by(3).for_each(|byte| *byte ^= 0x5A);
        }
        let found = contacts(&faded);
        assert_eq!(names(&found), ["suomi-npp"]);
        assert_eq!(found[0].frames.len(), alone.frames.len(), "{damaged} damaged");
        assert_eq!(found[0].good().len(), alone.frames.len() - damaged);
        assert!(found[0].frames.is_sorted_by_key(|frame| frame.position));
    }
}

#[test]
fn a_mission_that_was_named_holds_and_another_downlink_is_told_of_once() {
    let (other, _) = generated(&mission("noaa-21"), 2_000);
    let npp = file(NPP);
    let [alone] = contacts(&npp).try_into().ok().unwrap();
    let named = CaptureOptions { mission: Some(mission("suomi-npp")), ..CaptureOptions::default() };
    let stream = [npp.clone(), other, npp].concat();
    let mut capture = Capture::new(MissionSet::built_in(), named.clone());
    let mut told = Vec::new();
    let mut good = 0;
    for piece in stream.chunks(10_000) {
        capture.push(Utc::default(), piece);
        while let Some(event) = capture.poll() {
            match event {
                CaptureEvent::OtherDownlink(found) => told.push(found.mission.name().to_owned()),
                CaptureEvent::Frame(frame) => good += usize::from(frame.is_good()),
                CaptureEvent::Changed { .. } => panic!("the mission was named"),
                _ => {}
            }
        }
    }
    assert_eq!((told, good), (vec!["noaa-21".to_owned()], 2 * alone.good().len()));
    // A mission that the input only begins with may be followed by another.
    let begun = CaptureOptions { may_change: true, ..named };
    let found = contacts_of(&stream, begun, 10_000);
    assert_eq!(names(&found), ["suomi-npp", "noaa-21", "suomi-npp"]);
}

#[test]
fn bare_frames_of_another_length_are_another_contact() {
    let [alone] = contacts(&file(NPP)).try_into().ok().unwrap();
    let mut stream: Vec<u8> = alone.frames.iter().flat_map(|frame| frame.bytes.to_vec()).collect();
    let noaa = mission("noaa-21");
    let [other] = contacts(&generated(&noaa, 100).0).try_into().ok().unwrap();
    stream.extend(other.frames.iter().flat_map(|frame| frame.bytes.to_vec()));
    let found = contacts(&stream);
    assert_eq!(names(&found), ["suomi-npp", "noaa-21"]);
    assert_eq!(found[1].found.format, InputLayout::Frames);
    assert_eq!((found[0].digest(), found[1].digest()), (alone.digest(), other.digest()));
}

#[test]
fn cadus_and_bare_frames_after_one_another_are_two_contacts() {
    let cadus = file(NPP);
    let [alone] = contacts(&cadus).try_into().ok().unwrap();
    let bare: Vec<u8> = alone.frames.iter().flat_map(|frame| frame.bytes.to_vec()).collect();
    for (stream, are_bare) in [
        ([cadus.clone(), bare.clone()].concat(), [false, true]),
        ([bare.clone(), cadus.clone()].concat(), [true, false]),
    ] {
        let found = contacts(&stream);
        assert_eq!(names(&found), ["suomi-npp", "suomi-npp"], "{are_bare:?}");
        assert_eq!([0, 1].map(|at| found[at].found.format == InputLayout::Frames), are_bare);
        for one in &found {
            assert_eq!(one.good().len(), alone.frames.len(), "{are_bare:?}");
            assert_eq!(one.digest(), alone.digest(), "{are_bare:?}");
        }
    }
    // A layout that was named stays.
    let named = CaptureOptions { format: Some(InputLayout::Frames), ..CaptureOptions::default() };
    assert_eq!(names(&contacts_of(&[bare, cadus].concat(), named, 4_096)), ["suomi-npp"]);
}

/// The frames as CADUs again, each of the spacecraft that `scid` gives it.
fn renamed(frames: &[CapturedFrame], scid: impl Fn(usize) -> u16) -> Vec<u8> {
    let mission = mission("suomi-npp");
    let coder = BlockDecoder::new(&mission, CheckSymbols::Dropped);
    let mut out = Vec::new();
    for (index, frame) in frames.iter().enumerate() {
        let mut bytes = frame.bytes.to_vec();
        let ids = u16::from_be_bytes([bytes[0], bytes[1]]) & !(0xFF << 6) | scid(index) << 6;
        bytes[..2].copy_from_slice(&ids.to_be_bytes());
        assert_eq!(glimpse(&bytes).unwrap().1.scid.value(), scid(index));
        coder.encode(mission.coding().marker, &bytes, &mut out);
    }
    out
}

/// Bits, one after the other.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    len: u64,
}

impl Bits {
    /// Appends the first `len` bits; those beyond `bytes` are zeros.
    fn push(&mut self, bytes: &[u8], len: u64) {
        for at in 0..len {
            let byte = bytes.get((at / 8) as usize).copied().unwrap_or(0);
            if self.len.is_multiple_of(8) {
                self.bytes.push(0);
            }
            *self.bytes.last_mut().unwrap() |= (byte >> (7 - at % 8) & 1) << (7 - self.len % 8);
            self.len += 1;
        }
    }
}

fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x5EED_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}
