//! Downlinks without a code that proves frames, whose recordings lack frames and bits of them
//! independently.

use super::*;
use core::fmt;

/// How frames look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A count of 24 bits for each channel.
    Aos,
    /// A count of 8 bits for each channel, and one over all.
    Tm,
}

/// What befalls a frame on the way to one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Came,
    /// Its bits did not come.
    Lost,
    /// Its bits came, and were not taken for a frame.
    Missed,
    /// A bit of its data is wrong, and nothing says so.
    Wrong,
}

/// What befalls each frame on the way to one input.
#[derive(Clone)]
struct Ways(Vec<Way>);

/// Those that something befalls.
impl fmt::Debug for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let befallen = self.0.iter().enumerate().filter(|(_, way)| **way != Way::Came);
        f.debug_map().entries(befallen).finish()
    }
}

const LENGTH: usize = 40;
/// The bytes that say which frame it is; what is wrong is behind them.
const NAMED: usize = 16;
/// The channel of idle frames, 63 in AOS.
const IDLE: u8 = 7;

fn format(form: Form) -> FrameFormat {
    let kind = if form == Form::Tm { "tm" } else { "aos" };
    let text = format!(
        "name = \"bare\"\ntitle = \"Bare\"\nscids = [159]\n[frame]\nkind = \"{kind}\"\nlength = \
        {LENGTH}\n\
         [coding]\nrandomiser = \"none\"\n"
    );
    *Mission::from_toml(&text).unwrap().frame()
}

/// The frames of a downlink, each with its channel.
fn downlink(form: Form, channels: &str) -> Vec<Vec<u8>> {
    let mut counts = [250_u32; 8];
    let frame = |(index, channel): (usize, u8)| {
        let vcid = channel - b'0';
        let count = &mut counts[usize::from(vcid)];
        *count += 1;
        let mut bytes = vec![0; LENGTH];
        match form {
            Form::Aos => {
                let vcid = if vcid == IDLE { 63 } else { u16::from(vcid) };
                bytes[..2].copy_from_slice(&(1 << 14 | 159 << 6 | vcid).to_be_bytes());
                bytes[2..5].copy_from_slice(&count.to_be_bytes()[1..]);
            }
            Form::Tm => {
                bytes[..2].copy_from_slice(&(159 << 4 | u16::from(vcid) << 1).to_be_bytes());
                bytes[2..4].copy_from_slice(&[index as u8, *count as u8]);
                let pointer: u16 = if vcid == IDLE { 0x1FFE } else { 0x1800 };
                bytes[4..6].copy_from_slice(&pointer.to_be_bytes());
            }
        }
        if vcid != IDLE {
            bytes[8..NAMED].copy_from_slice(&(index as u64).to_be_bytes());
        }
        bytes
    };
    channels.bytes().enumerate().map(frame).collect()
}

/// The frames that one input gives.
fn recorded(sent: &[Vec<u8>], ways: &Ways, skew: Duration) -> Vec<(usize, CapturedFrame)> {
    let mut position = 0;
    let mut frames = Vec::new();
    for (index, (bytes, way)) in sent.iter().zip(&ways.0).enumerate() {
        let mut bytes = bytes.clone();
        if *way == Way::Wrong {
            bytes[NAMED + index % (LENGTH - NAMED)] ^= 1;
        }
        if matches!(way, Way::Came | Way::Wrong) {
            let frame = CapturedFrame {
                received: Utc::from_micros(1_000_000) + FRAME * index as u64 + skew,
                position: BitPosition::from_bits(position),
                quality: Quality::NOT_CHECKED,
                set_aside: None,
                bytes: Bytes::from(bytes),
                check_symbols: Bytes::new(),
            };
            frames.push((index, frame));
        }
        position += if *way == Way::Lost { 0 } else { 8 * LENGTH as u64 };
    }
    frames
}

/// The frames of recordings that are read evenly, as files are.
fn joined(form: Form, inputs: &[Vec<(usize, CapturedFrame)>]) -> Vec<Bytes> {
    let options = SelectOptions { window: None, ..SelectOptions::default() };
    let mut select = Select::new(format(form), inputs.len(), options);
    let mut files: Vec<_> = inputs.iter().map(|frames| frames.iter().peekable()).collect();
    let mut out = Vec::new();
    let mut turn = 0;
    while let Some(next) = (0..files.len())
        .filter(|at| files[*at].peek().is_some())
        .min_by_key(|at| select.holding(*at))
    {
        turn += 1;
        for (_, frame) in files[next].by_ref().take(1) {
            select.push(next, CapturedFrame { received: Utc::from_micros(turn), ..frame.clone() });
        }
        if files[next].peek().is_none() {
            select.close(next);
        }
        out.extend(std::iter::from_fn(|| select.poll(Utc::from_micros(0))));
    }
    select.finish();
    out.extend(std::iter::from_fn(|| select.poll(Utc::from_micros(0))));
    out.into_iter().map(|selected| selected.frame.bytes).collect()
}

/// Which channel a frame is of.
fn channel(form: Form, bytes: &[u8]) -> u8 {
    if form == Form::Tm { bytes[1] >> 1 & 7 } else { bytes[1] & 63 }
}

/// Every frame that an input has is in the union once; each channel in its order; and what comes
/// before a frame that all have, comes before it.
fn check(form: Form, sent: &[Vec<u8>], ways: &[Ways], out: &[Bytes]) -> Result<(), TestCaseError> {
    let has = |index: usize, ways: &Ways| matches!(ways.0[index], Way::Came | Way::Wrong);
    let good = |index: &usize| ways.iter().any(|ways| has(*index, ways));
    let expected: Vec<usize> = (0..sent.len()).filter(good).collect();
    for of in 0..64 {
        let is_of = |bytes: &&[u8]| channel(form, bytes) == of;
        let sent: Vec<&[u8]> =
            expected.iter().map(|index| &sent[*index][..NAMED]).filter(is_of).collect();
        let out: Vec<&[u8]> = out.iter().map(|bytes| &bytes[..NAMED]).filter(is_of).collect();
        prop_assert_eq!(out, sent, "channel {}", of);
    }
    let index_of = |bytes: &Bytes| match u64::from_be_bytes(*bytes[8..].first_chunk::<8>().unwrap())
    {
        0 => None,
        index => Some(index as usize),
    };
    let mut latest = 0;
    for index in out.iter().filter_map(index_of) {
        let is_common = ways.iter().all(|ways| has(index, ways));
        prop_assert!(!is_common || index >= latest, "{} after {}", index, latest);
        latest = latest.max(index);
    }
    Ok(())
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![94 => Just(Way::Came), 3 => Just(Way::Lost), 1 => Just(Way::Missed),
        2 => Just(Way::Wrong)]
}

fn form() -> impl Strategy<Value = Form> {
    prop_oneof![Just(Form::Aos), Just(Form::Tm)]
}

/// Channels as they are interleaved: one that has most frames, and idle frames among them. Two of
/// these come first: it is known by them that their count goes on.
fn channels() -> impl Strategy<Value = String> {
    let channel = prop_oneof![6 => Just('1'), 2 => Just('2'), 1 => prop::char::range('3', '5'),
        1 => Just('7')];
    prop::collection::vec(channel, 600).prop_map(|channels| "77".chars().chain(channels).collect())
}

fn ways() -> impl Strategy<Value = Vec<Ways>> {
    // Most alone, as of noise; some in a row, as of a receiver that lost lock.
    let run = (way(), prop_oneof![9 => Just(1_usize), 1 => 2..60_usize]);
    let after_the_first = |runs: Vec<(Way, usize)>| {
        let all = runs.into_iter().flat_map(|(way, run)| std::iter::repeat_n(way, run)).take(600);
        Ways([Way::Came; 2].into_iter().chain(all).collect())
    };
    prop::collection::vec(prop::collection::vec(run, 600).prop_map(after_the_first), 2..4)
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_frame_good_at_one_recording_is_in_the_union_once_in_order_without_a_code_that_proves_it(
        (form, channels, ways) in (form(), channels(), ways()),
    ) {
        let sent = downlink(form, &channels);
        let inputs: Vec<_> = ways.iter().map(|ways| recorded(&sent, ways,
            Duration::ZERO)).collect();
        check(form, &sent, &ways, &joined(form, &inputs))?;
    }

    #[test]
    fn a_frame_good_at_one_live_input_goes_out_once_in_order_without_a_code_that_proves_it(
        (form, channels, ways) in (form(), channels(), ways()),
        skews in prop::collection::vec(0_u64..20_000, 3),
    ) {
        let sent = downlink(form, &channels);
        let skewed = |(ways, skew): (&Ways, &u64)| recorded(&sent, ways,
            Duration::from_micros(*skew));
        let inputs: Vec<_> = ways.iter().zip(&skews).map(skewed).collect();
        let mut select = Select::new(format(form), inputs.len(), SelectOptions::default());
        let out = run(&mut select, &inputs);
        let out: Vec<Bytes> = out.into_iter().map(|(_, selected)| selected.frame.bytes).collect();
        check(form, &sent, &ways, &out)?;
    }
}

#[test]
fn two_recordings_that_each_lack_one_frame_give_all() {
    for form in [Form::Aos, Form::Tm] {
        let channels = "123".repeat(20);
        let sent = downlink(form, &channels);
        for (one, other) in [(30, 31), (31, 30), (20, 40), (1, 2), (58, 57)] {
            let lacking = |at: usize| {
                let mut ways = vec![Way::Came; 60];
                ways[at] = Way::Lost;
                Ways(ways)
            };
            let ways = [lacking(one), lacking(other)];
            let inputs: Vec<_> =
                ways.iter().map(|ways| recorded(&sent, ways, Duration::ZERO)).collect();
            let out = joined(form, &inputs);
            assert_eq!(out.len(), 60, "{form:?} without {one}, and without {other}");
            check(form, &sent, &ways, &out).unwrap();
        }
    }
}
