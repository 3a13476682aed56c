use super::*;
use proptest::prelude::*;
use skyhaul_ccsds::frame::Frame;
use skyhaul_level0::ledger::talk::{Ask, GapAnswer, UnavailableReason};
use skyhaul_level0::ledger::{ContactId, ContactStart, DurableFrame, Ledger, Place};
use skyhaul_store::raw::{RawConfig, RawRecorder, RawStamp};
use skyhaul_store::{Disk, sim::SimDisk};
use skyhaul_units::{ByteCount, FlowId, Instant, Seq};
use std::collections::BTreeMap;
use std::sync::Arc;

const CADU: usize = 1_024;
/// Bytes read from the input at once.
const PIECE: usize = 3_000;
/// No marker with a wrong bit is believed.
const STRICT: SyncConfig = SyncConfig {
    search_errors: 0,
    check_errors: 0,
    lock_errors: 0,
    check_frames: 1,
    flywheel_frames: 0,
    slip_bits: 0,
};

/// A frame by its virtual channel and count.
type Name = (skyhaul_ccsds::id::Channel, u64);

fn capture() -> Vec<u8> {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata/cadu/snpp_synchronized_cadus.dat");
    std::fs::read(path).expect("the bundled capture")
}

fn mission() -> Mission {
    MissionSet::built_in().by_name("suomi-npp").expect("a mission").clone()
}

fn received(piece: usize) -> Utc {
    Utc::from_micros(1_000 * piece as i64)
}

/// The good frames that a decoding finds.
fn frames(bytes: &[u8], sync: SyncConfig) -> Vec<CapturedFrame> {
    let options = CaptureOptions { mission: Some(mission()), sync, ..CaptureOptions::default() };
    let mut capture = Capture::new(MissionSet::built_in(), options);
    let (mut good, pieces) = (Vec::new(), bytes.chunks(PIECE).map(Some).chain([None]));
    for (at, piece) in pieces.enumerate() {
        match piece {
            Some(piece) => capture.push(received(at), piece),
            None => capture.finish(),
        }
        while let Some(event) = capture.poll() {
            if let CaptureEvent::Frame(frame) = event {
                good.extend(Some(frame).filter(CapturedFrame::is_good));
            }
        }
    }
    good
}

fn seen(frame: &CapturedFrame) -> DurableFrame {
    let parsed = Frame::parse(&frame.bytes, mission().frame()).expect("a frame");
    let place = Place { received: frame.received, position: frame.position };
    DurableFrame {
        channel: parsed.channel,
        count: parsed.count.value,
        modulus: parsed.count.modulus,
        place,
        packet: None,
    }
}

fn by_name(frames: &[CapturedFrame]) -> BTreeMap<Name, Vec<u8>> {
    frames
        .iter()
        .map(|frame| ((seen(frame).channel, seen(frame).count), frame.bytes.to_vec()))
        .collect()
}

/// What a centre asks that got these frames.
fn ask(live: &[CapturedFrame]) -> Option<Ask> {
    let id = ContactId { station: "s".to_owned(), flow: FlowId(1) };
    let opened = ContactStart {
        channel: "x".to_owned(),
        mission: "suomi-npp".to_owned(),
        at: Utc::default(),
        completes: None,
    };
    let mut ledger = Ledger::new(1);
    ledger.open(&id, opened);
    ledger.block(&id, Seq(0), &live.iter().map(seen).collect::<Vec<_>>());
    ledger.ask("s", Instant::ZERO)
}

fn recorded(bytes: &[u8]) -> RawReader {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(ByteCount::mib(512)));
    let mut recorder =
        RawRecorder::open(disk.clone(), "raw/x", RawConfig::default()).expect("a recording");
    for (at, piece) in bytes.chunks(PIECE).enumerate() {
        let stamp =
            RawStamp { received: received(at), input: (PIECE * at) as u64, kind: RawKind::Stream };
        recorder.append(stamp, piece).expect("room");
    }
    recorder.flush().expect("room");
    RawReader::open(disk, "raw/x")
}

/// What a station with these thresholds finds in its recording, and says.
fn refill(bytes: &[u8], ask: &Ask, attempts: &[SyncConfig]) -> (Vec<CapturedFrame>, GapAnswer) {
    let (mut wanted, mut found) = (Wanted::new(ask), Vec::new());
    let mut keep = |frame: &CapturedFrame, _| found.push(frame.clone());
    let search =
        |decoding: &Decoding<'_>| in_recording(&recorded(bytes), decoding, &mut wanted, &mut keep);
    decoding(attempts, search).expect("a disk");
    (found, wanted.answer(ask.number, None))
}

/// What `search` gives with these thresholds.
fn decoding<T>(attempts: &[SyncConfig], search: impl FnOnce(&Decoding<'_>) -> T) -> T {
    let text = "name = \"x\"\ninput = \"udp:127.0.0.1:9\"\nrecord_raw = true\n";
    let channel: skyhaul_config::Channel = toml::from_str(text).expect("a channel");
    let (mission, missions) = (mission(), MissionSet::built_in());
    let feed = channel.feeds().swap_remove(0);
    search(&Decoding {
        channel: &channel,
        feed: &feed,
        mission: &mission,
        missions: &missions,
        attempts,
    })
}

fn usual() -> [SyncConfig; 3] {
    toml::from_str::<skyhaul_config::Refill>("").expect("defaults").attempts()
}

/// What happens to a frame on its way to the recording.
#[derive(Debug, Clone)]
enum Harm {
    /// Bits of no frame come before it and behind it, some bits of its marker are wrong, and forty
    /// bytes that the code corrects.
    Displaced { before: usize, wrong: Vec<usize>, mask: u8, behind: usize },
    /// Its marker is noise, and bits of no frame come behind it.
    NoMarker { marker: u32, behind: usize },
    /// From here on bits come inverted, and a bit of the marker is wrong.
    Inverted(usize),
    /// It is beyond repair.
    Destroyed(u64),
}

fn any_harm() -> impl Strategy<Value = Harm> {
    let wrong = proptest::sample::subsequence((0..32).collect::<Vec<usize>>(), 1..=5);
    let displaced = (1usize..3_000, wrong, any::<u8>(), 1usize..300);
    prop_oneof![
        6 => displaced.prop_map(|(before, wrong, mask, behind)| Harm::Displaced { before, wrong,
            mask, behind }),
        3 => (any::<u32>(), 1usize..300).prop_map(|(marker, behind)| Harm::NoMarker { marker,
            behind }),
        1 => (0usize..32).prop_map(Harm::Inverted),
        1 => any::<u64>().prop_map(Harm::Destroyed),
    ]
}

/// Bytes that look like nothing.
fn noise(seed: u64) -> impl Iterator<Item = u8> {
    let mut state = seed | 1;
    std::iter::repeat_with(move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
}

fn bits(bytes: &[u8]) -> impl Iterator<Item = bool> + '_ {
    bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> (7 - bit) & 1 == 1))
}

fn flip(cadu: &mut [u8], bit: usize) {
    cadu[bit / 8] ^= 0x80 >> (bit % 8);
}

/// The downlink with harm done to some of its frames, and which of them are beyond repair.
fn harmed(clean: &[u8], harms: &BTreeMap<usize, Harm>) -> (Vec<u8>, Vec<usize>) {
    let (mut stream, mut destroyed, mut inverted) = (Vec::new(), Vec::new(), false);
    for (at, cadu) in clean.chunks_exact(CADU).enumerate() {
        let mut cadu = cadu.to_vec();
        let (mut before, mut behind) = (0, 0);
        match harms.get(&at) {
            None => {}
            Some(Harm::Displaced { before: early, wrong, mask, behind: late }) => {
                (before, behind) = (*early, *late);
                wrong.iter().for_each(|bit| flip(&mut cadu, *bit));
                cadu[100..140].iter_mut().for_each(|byte| *byte ^= mask);
            }
            Some(Harm::NoMarker { marker, behind: late }) => {
                behind = *late;
                cadu[..4].copy_from_slice(&marker.to_be_bytes());
            }
            Some(Harm::Inverted(bit)) => {
                flip(&mut cadu, *bit);
                inverted = !inverted;
            }
            Some(Harm::Destroyed(seed)) => {
                cadu[40..440].iter_mut().zip(noise(*seed)).for_each(|(byte, noise)| *byte ^= noise);
                destroyed.push(at);
            }
        }
        let other = noise(at as u64).take(1_000).collect::<Vec<u8>>();
        stream.extend(bits(&other).take(before));
        stream.extend(bits(&cadu).map(|bit| bit ^ inverted));
        stream.extend(bits(&other).skip(4_000).take(behind));
    }
    let bytes = stream.chunks(8).map(|chunk| {
        chunk.iter().enumerate().fold(0, |byte, (at, bit)| byte | u8::from(*bit) << (7 - at))
    });
    (bytes.collect(), destroyed)
}

/// Whatever is asked for and not beyond repair is found, as it was sent; nothing else is.
fn assert_found(harms: &BTreeMap<usize, Harm>) {
    let clean = capture();
    let sent = frames(&clean, SyncConfig::default());
    let truth = by_name(&sent);
    let (bytes, destroyed) = harmed(&clean, harms);
    let gone: Vec<Name> =
        destroyed.iter().map(|at| (seen(&sent[*at]).channel, seen(&sent[*at]).count)).collect();
    let Some(ask) = ask(&frames(&bytes, STRICT)) else { return };
    let asked =
        ask.spans.iter().flat_map(|span| (0..span.count).map(|at| (span.channel, span.first + at)));
    // The capture itself has gaps.
    let wanted: Vec<Name> =
        asked.filter(|name| truth.contains_key(name) && !gone.contains(name)).collect();
    let (found, answer) = refill(&bytes, &ask, &usual());
    let found = by_name(&found);
    for (name, bytes) in &found {
        assert_eq!(truth.get(name), Some(bytes), "{name:?} was never sent so");
    }
    let missing: Vec<&Name> = wanted.iter().filter(|name| !found.contains_key(name)).collect();
    assert!(missing.is_empty(), "{missing:?} of {} not found; {answer:?}", wanted.len());
    assert_eq!(found.len(), wanted.len());
}

#[test]
fn what_strict_thresholds_lose_is_found_in_the_recording_and_strict_ones_say_why_not() {
    let harms = (5..60)
        .step_by(11)
        .map(|at| (at, Harm::Displaced { before: 8, wrong: vec![10, 13], mask: 0, behind: 8 }));
    let harms = harms.collect::<BTreeMap<usize, Harm>>();
    assert_found(&harms);
    let (bytes, _) = harmed(&capture(), &harms);
    let ask = ask(&frames(&bytes, STRICT)).expect("frames are missing");
    assert!(ask.spans.len() >= harms.len(), "{ask:?}");
    let (found, answer) = refill(&bytes, &ask, &[STRICT]);
    assert!(
        found.is_empty()
            && answer
                .outcomes
                .iter()
                .all(|outcome| *outcome == (0, UnavailableReason::NotDecodable))
    );
}

/// Regression: the recording reached a frame between two attempts, of which only the first would
/// have found it, and the answer was that it is not there.
#[test]
fn what_is_not_found_in_a_recording_that_grows_is_looked_for_again() {
    let harm = Harm::Displaced { before: 8, wrong: vec![10, 13], mask: 0, behind: 8 };
    let (bytes, _) = harmed(&capture(), &[(30, harm)].into());
    let mut ask = ask(&frames(&bytes, STRICT)).expect("frames are missing");
    ask.spans.retain(|span| span.from.position.byte() > 25 * CADU as u64);
    ask.spans.truncate(1);
    let sizes = [20 * CADU, bytes.len(), bytes.len()];
    let [usual, ..] = usual();
    let mut wanted = Wanted::new(&ask);
    let mut outcomes = Vec::new();
    for (size, (sync, is_first)) in
        sizes.into_iter().zip([(usual, true), (STRICT, false), (usual, true)])
    {
        let attempt = |decoding: &Decoding<'_>, wanted: &mut Wanted| {
            let attempt = DecodingAttempt { decoding, sync, is_first };
            let [stretch] = &wanted.stretches()[..] else { panic!("one gap") };
            in_stretch(&recorded(&bytes[..size]), stretch, attempt, wanted, &mut |_, _| {})
        };
        decoding(&[sync], |decoding| attempt(decoding, &mut wanted)).expect("a disk");
        outcomes.push((wanted.is_complete(), wanted.behind().is_some()));
    }
    assert_eq!(outcomes, [(false, true), (false, true), (true, false)]);
}

/// Without a code, a place is all that says that there is a frame: none is sent for it.
#[test]
fn a_frame_that_no_code_proves_is_not_taken_for_one_that_is_missing() {
    let clean = capture();
    let frame = frames(&clean, SyncConfig::default()).swap_remove(0);
    assert!(is_proved(&frame));
    let quality =
        skyhaul_ccsds::quality::Quality { verdict: FrameVerdict::NotChecked, ..frame.quality };
    assert!(!is_proved(&CapturedFrame { quality, ..frame }));
}

/// How many cases are tried: a quarter where not everything is tested (`SKYHAUL_RUNG=all`).
#[allow(clippy::disallowed_methods, reason = "how much is tested is the caller's choice")]
fn cases(all: u32) -> ProptestConfig {
    let is_all = std::env::var("SKYHAUL_RUNG").is_ok_and(|rung| rung == "all");
    ProptestConfig::with_cases(if is_all { all } else { all / 4 })
}

proptest! {
    #![proptest_config(cases(64))]

    /// Between two frames that are harmed there is a whole one, which says where the one before it
    /// ends.
    #[test]
    fn whatever_a_code_proves_is_found_whatever_happened_to_it(
        harms in proptest::collection::btree_map((1usize..32).prop_map(|at| 2 * at), any_harm(),
            1..16),
    ) {
        assert_found(&harms);
    }
}
