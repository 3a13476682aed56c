use super::*;
use crate::frame::Check;
use crate::mission::{FrameKind, Mission};
use crate::quality::{BitPosition, CorrectedSymbols, FrameVerdict, Quality, Reason};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;

mod unproven;

/// A frame of the downlink: of a virtual channel, with its count there; `None`: idle, with a count
/// that stands still.
type Sent = Option<(u8, u32)>;

const LENGTH: usize = 40;
/// From one frame to the next; 1 ms is 320 kbit/s with frames this short.
const FRAME: Duration = Duration::from_millis(1);
const WINDOW: Duration = Duration::from_millis(50);

fn format() -> FrameFormat {
    let text = "name = \"given\"\ntitle = \"Given\"\nscids = [159]\n[frame]\nkind = \
               \"aos\"\nlength = 40\n[coding]\nrandomiser = \"none\"\n";
    *Mission::from_toml(text).unwrap().frame()
}

fn bytes_of(index: usize, sent: Sent) -> Vec<u8> {
    let (vcid, count) = sent.unwrap_or((63, 0));
    let mut bytes = vec![0; LENGTH];
    bytes[..2].copy_from_slice(&(1 << 14 | 159 << 6 | u16::from(vcid)).to_be_bytes());
    bytes[2..5].copy_from_slice(&count.to_be_bytes()[1..]);
    if sent.is_some() {
        bytes[8..16].copy_from_slice(&(index as u64).to_be_bytes());
    }
    bytes
}

fn index_of(frame: &CapturedFrame) -> Option<usize> {
    let is_idle = frame.bytes[1] & 63 == 63;
    (frame.is_good() && !is_idle)
        .then(|| u64::from_be_bytes(*frame.bytes[8..].first_chunk::<8>().unwrap()) as usize)
}

/// What a channel did to a frame on the way to one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Clean,
    Corrected(u8),
    SetAside,
    /// Not found among the bits.
    Missed,
    /// Its bits did not come.
    Lost,
    /// Its bits came twice.
    Twice,
}

fn quality(verdict: FrameVerdict, corrected: &[u8]) -> Quality {
    Quality {
        verdict,
        corrected: CorrectedSymbols::new(corrected),
        fecf: Check::None,
        ..Quality::NOT_CHECKED
    }
}

/// What befalls each frame on its way to an input, and by how many microseconds that is late.
type Way = (Vec<Fate>, u64);

/// The frames that one input gives, with the index of each in the downlink.
fn received(
    sent: &[Sent],
    fates: &[Fate],
    skew: Duration,
    slips: &[i8],
) -> Vec<(usize, CapturedFrame)> {
    let mut frames = Vec::new();
    let mut position = 13_u64;
    for (index, (sent, fate)) in sent.iter().zip(fates).enumerate() {
        let (set_aside, quality) = match fate {
            Fate::Clean | Fate::Twice | Fate::Missed | Fate::Lost => {
                (None, quality(FrameVerdict::Clean, &[]))
            }
            Fate::Corrected(symbols) => (None, quality(FrameVerdict::Corrected, &[*symbols, 0])),
            Fate::SetAside => {
                let lost = CorrectedSymbols::UNCORRECTABLE;
                (Some(Reason::ReedSolomon), quality(FrameVerdict::Uncorrectable, &[lost]))
            }
        };
        let mut bytes = bytes_of(index, *sent);
        if set_aside.is_some() {
            bytes.iter_mut().for_each(|byte| *byte ^= 0x5A);
        }
        let frame = CapturedFrame {
            received: Utc::from_micros(1_000_000) + FRAME * index as u64 + skew,
            position: BitPosition::from_bits(position),
            quality,
            set_aside,
            bytes: Bytes::from(bytes),
            check_symbols: Bytes::new(),
        };
        let copies = match fate {
            Fate::Missed | Fate::Lost => 0,
            Fate::Twice => 2,
            Fate::Clean | Fate::Corrected(_) | Fate::SetAside => 1,
        };
        for _ in 0..copies {
            frames.push((
                index,
                CapturedFrame { position: BitPosition::from_bits(position), ..frame.clone() },
            ));
            position += 8 * LENGTH as u64;
        }
        position += if *fate == Fate::Missed { 8 * LENGTH as u64 } else { 0 };
        position =
            position.wrapping_add_signed(i64::from(slips.get(index).copied().unwrap_or_default()));
    }
    frames
}

/// A frame that went out, when, and its account's input.
type Out = (Utc, Selected);

/// Pushes what the inputs give in the order of time, polls whenever something is due, and looks at
/// the account.
fn run(select: &mut Select, inputs: &[Vec<(usize, CapturedFrame)>]) -> Vec<Out> {
    let mut pushes: Vec<(Utc, usize, &CapturedFrame)> = inputs
        .iter()
        .enumerate()
        .flat_map(|(input, frames)| {
            frames.iter().map(move |(_, frame)| (frame.received, input, frame))
        })
        .collect();
    pushes.sort_by_key(|(at, input, _)| (*at, *input));
    let mut out = Vec::new();
    for (at, input, frame) in pushes {
        while let Some(due) = select.due().filter(|due| *due <= at) {
            let before = out.len();
            out.extend(std::iter::from_fn(|| select.poll(due)).map(|selected| (due, selected)));
            assert!(out.len() > before || select.due() != Some(due), "due, and nothing goes out");
        }
        select.push(input, frame.clone());
        out.extend(std::iter::from_fn(|| select.poll(at)).map(|selected| (at, selected)));
    }
    while let Some(due) = select.due() {
        let before = out.len();
        out.extend(std::iter::from_fn(|| select.poll(due)).map(|selected| (due, selected)));
        assert!(out.len() > before || select.due() != Some(due), "due, and nothing goes out");
    }
    select.finish();
    assert_eq!(select.poll(Utc::from_micros(0)), None, "nothing is left");
    for (input, frames) in inputs.iter().enumerate() {
        let account = select.account(input).unwrap();
        let InputAccount { given, chosen, worse, duplicates, repeated, late, .. } = account;
        assert_eq!(given, frames.len() as u64);
        assert_eq!(given, chosen + worse + duplicates + repeated + late, "{account:?}");
    }
    out
}

fn select(inputs: usize) -> Select {
    Select::new(format(), inputs, SelectOptions::default())
}

/// A downlink: mostly channels that count, interleaved as they come.
fn downlink(
    channels: impl Strategy<Value = u8>,
    length: usize,
) -> impl Strategy<Value = Vec<Sent>> {
    prop::collection::vec(channels, 2..length).prop_map(|channels| {
        let mut counts = BTreeMap::new();
        let count_of = |vcid: u8| {
            // Close to where the count wraps.
            let count = counts.entry(vcid).or_insert(0xFF_FFF0_u32);
            *count = (*count + 1) & 0xFF_FFFF;
            (vcid < 63).then_some((vcid, *count))
        };
        channels.into_iter().map(count_of).collect()
    })
}

fn damage() -> impl Strategy<Value = Fate> {
    prop_oneof![
        10 => Just(Fate::Clean),
        2 => (1_u8..16).prop_map(Fate::Corrected),
        3 => Just(Fate::SetAside),
        3 => Just(Fate::Missed),
    ]
}

fn any_fate() -> impl Strategy<Value = Fate> {
    prop_oneof![12 => damage(), 1 => Just(Fate::Lost), 1 => Just(Fate::Twice)]
}

/// Two to four inputs: what befalls each frame, and how late the input is.
fn inputs(fate: impl Strategy<Value = Fate>, length: usize) -> impl Strategy<Value = Vec<Way>> {
    prop::collection::vec((prop::collection::vec(fate, length), 0_u64..40_000), 2..5)
}

/// As it is, after a frame that all have: before one, nothing tells how channels are interleaved.
fn with_a_frame_in_common(sent: Vec<Sent>, ways: Vec<Way>) -> (Vec<Sent>, Vec<Way>) {
    let first = |fates: Vec<Fate>| std::iter::once(Fate::Clean).chain(fates).collect();
    let ways = ways.into_iter().map(|(fates, skew)| (first(fates), skew)).collect();
    (std::iter::once(Some((9, 1))).chain(sent).collect(), ways)
}

fn is_good(fate: Fate) -> bool {
    matches!(fate, Fate::Clean | Fate::Corrected(_) | Fate::Twice)
}

/// The frames of channels that count that at least one input has good.
fn good_somewhere(sent: &[Sent], inputs: &[Way]) -> Vec<usize> {
    let here = |index: &usize| inputs.iter().any(|(fates, _)| is_good(fates[*index]));
    (0..sent.len()).filter(|index| sent[*index].is_some()).filter(here).collect()
}

fn numbers(out: &[Out]) -> Vec<usize> {
    out.iter().filter_map(|(_, selected)| index_of(&selected.frame)).collect()
}

/// How many cases are tried: a quarter where not everything is tested (`SKYHAUL_RUNG=all`).
#[allow(clippy::disallowed_methods, reason = "how much is tested is the caller's choice")]
fn cases(all: u32) -> ProptestConfig {
    let is_all = std::env::var("SKYHAUL_RUNG").is_ok_and(|rung| rung == "all");
    ProptestConfig::with_cases(if is_all { all } else { all / 4 })
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_frame_good_at_one_input_goes_out_once_in_order_within_the_window(
        sent in downlink(0_u8..4, 150),
        ways in inputs(damage(), 150),
        slips in prop::collection::vec(prop_oneof![30 => Just(0_i8), 1 => -2_i8..=2], 151),
    ) {
        let (sent, ways) = with_a_frame_in_common(sent, ways);
        let given: Vec<_> = ways
            .iter()
            .map(|(fates, skew)| received(&sent, fates, Duration::from_micros(*skew), &slips))
            .collect();
        let out = run(&mut select(ways.len()), &given);
        prop_assert_eq!(numbers(&out), good_somewhere(&sent, &ways));
        for (at, selected) in &out {
            prop_assert!(at.since(selected.frame.received) <= WINDOW);
        }
    }

    #[test]
    fn streams_that_lose_and_repeat_pieces_give_each_frame_once_and_channels_in_order(
        sent in downlink(0_u8..4, 150),
        ways in inputs(any_fate(), 150),
    ) {
        let given: Vec<_> =
            ways.iter().map(|(fates, skew)| received(&sent, fates, Duration::from_micros(*skew),
                &[])).collect();
        let out = run(&mut select(ways.len()), &given);
        let mut once = numbers(&out);
        for channel in 0..4 {
            let of_channel = |index: &&usize| sent[**index].is_some_and(|(vcid, _)| vcid ==
                channel);
            let order: Vec<usize> = once.iter().filter(of_channel).copied().collect();
            prop_assert!(order.is_sorted(), "channel {}: {:?}", channel, order);
        }
        once.sort_unstable();
        prop_assert_eq!(once, good_somewhere(&sent, &ways));
    }

    #[test]
    fn one_input_alone_passes_through_unchanged(
        sent in downlink(prop_oneof![0_u8..4, Just(63)], 60),
        fates in prop::collection::vec(any_fate(), 60),
    ) {
        let given = received(&sent, &fates, Duration::ZERO, &[]);
        let out = run(&mut select(1), std::slice::from_ref(&given));
        let frames: Vec<_> = out.into_iter().map(|(_, selected)| selected.frame).collect();
        prop_assert_eq!(frames, given.into_iter().map(|(_, frame)| frame).collect::<Vec<_>>());
    }

    /// Idle frames are all the same, and nothing but their place tells them apart.
    #[test]
    fn frames_that_are_all_the_same_and_frames_set_aside_go_out_once_by_their_place(
        sent in downlink(prop_oneof![3 => 0_u8..2, 1 => Just(63)], 100),
        ways in inputs(damage(), 100),
    ) {
        let (sent, ways) = with_a_frame_in_common(sent, ways);
        let given: Vec<_> =
            ways.iter().map(|(fates, skew)| received(&sent, fates, Duration::from_micros(*skew),
                &[])).collect();
        let out = run(&mut select(ways.len()), &given);
        let has = |index: usize, wanted: fn(Fate) -> bool| ways.iter().any(|(fates,
            _)| wanted(fates[index]));
        let good = (0..sent.len()).filter(|index| has(*index, is_good)).count();
        let found = (0..sent.len()).filter(|index| has(*index,
            |fate| fate != Fate::Missed)).count();
        prop_assert_eq!(out.iter().filter(|(_, selected)| selected.frame.is_good()).count(), good);
        prop_assert_eq!(out.len(), found);
    }
}

fn clean(length: usize) -> Vec<Sent> {
    (0..length as u32).map(|count| Some((1, count))).collect()
}

#[test]
fn the_better_copy_goes_out_whoever_is_first() {
    let sent = clean(4);
    let first = received(
        &sent,
        &[Fate::SetAside, Fate::Corrected(3), Fate::Clean, Fate::SetAside],
        Duration::ZERO,
        &[],
    );
    let second = received(
        &sent,
        &[Fate::Clean, Fate::Corrected(2), Fate::Clean, Fate::SetAside],
        FRAME * 2,
        &[],
    );
    let mut select = select(2);
    let out = run(&mut select, &[first, second]);
    let chosen: Vec<usize> = out.iter().map(|(_, selected)| selected.input).collect();
    assert_eq!(chosen, [1, 1, 0, 0]);
    assert_eq!(select.account(1).unwrap().only_here, 1);
    assert_eq!(select.account(0).unwrap().only_here, 0);
}

#[test]
fn a_silent_input_holds_frames_up_for_the_window_and_a_closed_one_not_at_all() {
    let sent = clean(20);
    let given = received(&sent, &[Fate::Clean; 20], Duration::ZERO, &[]);
    let out = run(&mut select(2), &[given.clone(), Vec::new()]);
    assert!(out.iter().all(|(at, selected)| at.since(selected.frame.received) == WINDOW));
    let mut closed = select(2);
    closed.close(1);
    let out = run(&mut closed, &[given, Vec::new()]);
    assert!(out.iter().all(|(at, selected)| *at == selected.frame.received));
}

#[test]
fn an_input_that_is_late_all_the_time_widens_the_window_up_to_the_most() {
    let sent = clean(400);
    let halves = |odd: usize| -> Vec<Fate> {
        let fate = |index: usize| if index % 4 == 2 * odd { Fate::Missed } else { Fate::Clean };
        (0..400).map(fate).collect()
    };
    let given = [
        received(&sent, &halves(0), Duration::ZERO, &[]),
        received(&sent, &halves(1), Duration::from_millis(80), &[]),
    ];
    let mut select = select(2);
    let out = run(&mut select, &given);
    assert_eq!(select.window(), Some(Duration::from_millis(100)));
    assert_eq!(select.account(1).unwrap().skew, Duration::from_millis(80));
    let numbers = numbers(&out);
    assert!(numbers.is_sorted());
    assert_eq!(
        numbers.iter().filter(|index| **index >= 200).count(),
        200,
        "whole once the window is wide enough"
    );
    assert!(select.account(1).unwrap().late > 0, "and told before");
    let options =
        SelectOptions { most_window: Duration::from_millis(60), ..SelectOptions::default() };
    let mut narrow = Select::new(format(), 2, options);
    run(&mut narrow, &given);
    assert_eq!(narrow.window(), Some(Duration::from_millis(60)));
}

#[test]
fn inputs_that_can_be_held_back_are_read_evenly_and_wait_for_each_other() {
    let sent = clean(3_000);
    // The second begins a thousand frames later, as a receiver that was switched on later.
    let first = received(&sent, &vec![Fate::Clean; 3_000], Duration::ZERO, &[]);
    let second = received(&sent[1_000..], &vec![Fate::Clean; 2_000], Duration::ZERO, &[]);
    let second: Vec<_> = second
        .into_iter()
        .map(|(index, frame)| {
            (
                index,
                CapturedFrame {
                    bytes: Bytes::from(bytes_of(index + 1_000, sent[index + 1_000])),
                    ..frame
                },
            )
        })
        .collect();
    let options = SelectOptions { window: None, ..SelectOptions::default() };
    let mut select = Select::new(format(), 2, options);
    let mut files = [first.into_iter().peekable(), second.into_iter().peekable()];
    let mut out = Vec::new();
    let mut most = 0;
    while let Some(next) = (0..2)
        .filter(|input| files[*input].peek().is_some())
        .min_by_key(|input| select.holding(*input))
    {
        let (_, frame) = files[next].next().unwrap();
        select.push(next, frame);
        if files[next].peek().is_none() {
            select.close(next);
        }
        out.extend(std::iter::from_fn(|| select.poll(Utc::from_micros(0))));
        most = most.max(select.holding(0) + select.holding(1));
    }
    select.finish();
    out.extend(std::iter::from_fn(|| select.poll(Utc::from_micros(0))));
    let order: Vec<_> = out.iter().filter_map(|selected| index_of(&selected.frame)).collect();
    assert_eq!(order, (0..3_000).collect::<Vec<_>>());
    assert!(most <= 2_200, "{most}");
}

#[test]
fn memory_is_bounded_where_nothing_is_in_common() {
    let sent = clean(4_000);
    let given = received(&sent, &vec![Fate::Clean; 4_000], Duration::ZERO, &[]);
    let options = SelectOptions { window: None, held: 100, ..SelectOptions::default() };
    let mut select = Select::new(format(), 3, options);
    let mut out = 0;
    for (index, frame) in given {
        select.push(index % 2, frame);
        out += std::iter::from_fn(|| select.poll(Utc::from_micros(0))).count();
        assert!(select.holding(0) + select.holding(1) <= 101);
    }
    select.finish();
    out += std::iter::from_fn(|| select.poll(Utc::from_micros(0))).count();
    assert_eq!(out, 4_000);
}

#[test]
fn frames_of_another_kind_and_inputs_that_there_are_not_do_no_harm() {
    let mut select = select(2);
    let (_, frame) = received(&clean(1), &[Fate::Clean], Duration::ZERO, &[]).remove(0);
    for (input, bytes) in [(0, vec![]), (1, vec![0xFF; 3]), (7, vec![0; 2]), (0, vec![0x80; 40])] {
        let position = BitPosition::from_bits(u64::MAX - input as u64);
        select.push(input, CapturedFrame { bytes: Bytes::from(bytes), position, ..frame.clone() });
    }
    select.finish();
    assert_eq!(std::iter::from_fn(|| select.poll(frame.received)).count(), 3);
    assert_eq!(format().kind, FrameKind::Aos);
}

#[test]
fn frames_of_an_input_that_waits_come_before_those_of_others_by_their_count() {
    let sent = [Some((3, 201)), Some((3, 202)), Some((0, 201))];
    let ways = [
        (vec![Fate::Clean, Fate::SetAside, Fate::SetAside], 27_930),
        (vec![Fate::SetAside, Fate::Missed, Fate::Clean], 0),
        (vec![Fate::Lost, Fate::Clean, Fate::Clean], 6),
    ];
    let given = ways.map(|(fates, skew)| received(&sent, &fates, Duration::from_micros(skew), &[]));
    let mut select = select(3);
    let out = run(&mut select, &given);
    assert_eq!(numbers(&out), [0, 1, 2]);
}
