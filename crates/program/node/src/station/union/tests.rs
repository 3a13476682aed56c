use super::*;
use skyhaul_ccsds::capture::{Capture, CaptureEvent, CaptureOptions};
use skyhaul_ccsds::identify::InputLayout;
use skyhaul_ccsds::mission::MissionSet;
use skyhaul_units::{ByteCount, Rate};

/// Of the downlink below, in bytes.
const CADU: usize = 1_024;
const WINDOW: Duration = Duration::from_millis(50);

fn clean() -> Vec<u8> {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata/cadu/npp.20241206T173815.dat");
    let mut bytes = std::fs::read(path).expect("the bundled capture");
    bytes.truncate(600 * CADU);
    bytes
}

/// From block `first` on, a stretch of every fourth is destroyed, which lies in two CADUs at the
/// most.
fn damaged(first: usize) -> Vec<u8> {
    let mut bytes = clean();
    for cadu in bytes.chunks_mut(CADU).skip(first).step_by(4) {
        cadu[8..700].iter_mut().for_each(|byte| *byte ^= 0x5A);
    }
    bytes
}

fn soft(bytes: &[u8]) -> Vec<u8> {
    let bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |place| byte >> place & 1));
    bits.map(|bit| if bit == 1 { 60 } else { 196 }).collect()
}

/// When the pieces of each input come, at 15 Mbit/s and so much later, and what their captures make
/// of them.
fn events(inputs: &[(Vec<u8>, Option<InputLayout>, Duration)]) -> Vec<(Utc, usize, CaptureEvent)> {
    let mut all = Vec::new();
    for (input, (bytes, format, skew)) in inputs.iter().enumerate() {
        let options = CaptureOptions { format: *format, ..CaptureOptions::default() };
        let mut capture = Capture::new(MissionSet::built_in(), options);
        let per_bit = if *format == Some(InputLayout::Soft) { 8 } else { 1 };
        for (number, piece) in bytes.chunks(4_096 * per_bit).enumerate() {
            let sent = Rate::from_mbps(15).time_for(ByteCount::of(4_096 * (number + 1)));
            let at = Utc::from_micros(0) + sent + *skew;
            capture.push(at, piece);
            all.extend(std::iter::from_fn(|| capture.poll()).map(|event| (at, input, event)));
        }
        let last = all.last().map_or(Utc::from_micros(0), |(at, ..)| *at);
        capture.finish();
        all.extend(std::iter::from_fn(|| capture.poll()).map(|event| (last, input, event)));
    }
    all.sort_by_key(|(at, input, _)| (*at, *input));
    all
}

/// What comes out when, where the union is asked when something comes or is due.
fn joined(union: &mut Union, events: Vec<(Utc, usize, CaptureEvent)>) -> Vec<(Utc, CapturedFrame)> {
    let mut out = Vec::new();
    for (at, input, event) in events {
        while let Some(due) = union.due().filter(|due| *due <= at) {
            out.extend(std::iter::from_fn(|| union.poll(due)).map(|frame| (due, frame)));
        }
        match event {
            CaptureEvent::Identified(found) => drop(union.identified(input, &found)),
            CaptureEvent::Frame(frame) => union.push(input, frame),
            _ => {}
        }
        out.extend(std::iter::from_fn(|| union.poll(at)).map(|frame| (at, frame)));
    }
    union.finish();
    let last = out.last().map_or(Utc::from_micros(0), |(at, _)| *at);
    out.extend(std::iter::from_fn(|| union.poll(last)).map(|frame| (last, frame)));
    out
}

fn good(frames: &[(Utc, CapturedFrame)]) -> Vec<&[u8]> {
    frames.iter().filter(|(_, frame)| frame.is_good()).map(|(_, frame)| &*frame.bytes).collect()
}

#[test]
fn inputs_of_different_formats_are_one_downlink_and_no_frame_waits_longer_than_the_window() {
    let alone = [(clean(), None, Duration::ZERO)];
    let whole = joined(&mut Union::new(1, Some(WINDOW)), events(&alone));
    let two = [
        (damaged(4), None, Duration::from_millis(20)),
        (soft(&damaged(6)), Some(InputLayout::Soft), Duration::ZERO),
    ];
    let mut union = Union::new(2, Some(WINDOW));
    let out = joined(&mut union, events(&two));
    let reports = union.reports([("a", "x".to_owned()), ("b", "y".to_owned())].into_iter());
    let (ours, theirs) = (good(&out), good(&whole));
    let missing: Vec<usize> = (0..theirs.len()).filter(|at| !ours.contains(&theirs[*at])).collect();
    assert!(ours == theirs, "{missing:?} of {} and {} {reports:?}", ours.len(), theirs.len());
    assert_eq!(out.len(), whole.len(), "none twice");
    assert!(out.iter().all(|(at, frame)| at.since(frame.received) <= WINDOW));
    assert!(reports.iter().all(|report| report.account.only_here >= 140), "{reports:?}");
    assert_eq!(reports.iter().map(|report| report.account.chosen).sum::<u64>(), whole.len() as u64);
    assert_eq!((reports[0].account.late, reports[1].account.late), (0, 0));
    assert!(reports[0].account.skew >= Duration::from_millis(15), "{reports:?}");
}

#[test]
fn an_input_of_another_downlink_is_left_out_and_counted() {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata/cadu/aqua.20241206T175646.dat");
    let other = std::fs::read(path).expect("the bundled capture")[..100 * CADU].to_vec();
    let mut union = Union::new(2, Some(WINDOW));
    let mut all =
        events(&[(clean(), None, Duration::ZERO), (other, None, Duration::from_millis(40))]);
    let sightings: Vec<Sighting> = all
        .iter()
        .filter_map(|(_, input, event)| match event {
            CaptureEvent::Identified(found) => Some(union.identified(*input, found)),
            _ => None,
        })
        .collect();
    let other = Sighting::Other { of_contact: "suomi-npp".to_owned(), its: "aqua".to_owned() };
    assert_eq!(sightings, [Sighting::First, other]);
    all.retain(|(_, _, event)| !matches!(event, CaptureEvent::Identified(_)));
    let out = joined(&mut union, all);
    assert_eq!(out.len(), 599, "the recording does not begin with a frame");
    assert_eq!(union.account(1), (InputAccount::default(), 99));
}

#[test]
fn where_inputs_wait_for_each_other_what_comes_out_does_not_depend_on_when() {
    let run = |skews: [Duration; 2]| {
        let inputs = [(damaged(4), None, skews[0]), (damaged(6), None, skews[1])];
        let mut given = events(&inputs);
        // As they are read: in turn.
        given.sort_by_key(|(at, input, _)| (*at - skews[*input], *input));
        let out = joined(&mut Union::new(2, None), given);
        assert!(out.iter().all(|(at, frame)| frame.received == Utc::from_micros(at.as_micros())));
        out.into_iter().map(|(_, frame)| (frame.position, frame.bytes)).collect::<Vec<_>>()
    };
    let first = run([Duration::ZERO, Duration::ZERO]);
    assert_eq!(first.len(), 599);
    assert_eq!(first, run([Duration::from_millis(3_000), Duration::from_millis(7)]));
}
