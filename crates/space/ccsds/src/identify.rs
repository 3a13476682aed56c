//! Identifies an unknown input from a sample: bits, CADUs or bare frames, and the mission.
//!
//! The distance between markers gives the block length; codings of that length are tried until
//! blocks decode; spacecraft id and length are then looked up among the missions. If none fits, a
//! generic mission is made from the result, so that frames are still decoded. Without markers, the
//! search is for a frame length at which headers repeat and their counts advance.

mod fitness;

use crate::count::CountStep;
use crate::decode::{BlockDecoder, CheckSymbols};
use crate::delimit::run_of;
use crate::end_of_input::EndOfInput;
use crate::frame::{self, VcCount};
use crate::id::{Channel, Scid};
use crate::inner::Symbols;
use crate::mission::{FrameKind, Mission, MissionSet};
use crate::sync::{Judge, Judgement};
use bytes::Bytes;
use fitness::{Fitness, closest};
use skyhaul_coding::marker::{Finder, Hit, Marker};
use std::collections::BTreeMap;

/// How the input is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputLayout {
    /// Demodulated bits: markers at any bit offset.
    Bits,
    /// Markers and blocks, byte aligned from the first byte.
    Cadus,
    /// Contiguous transfer frames without markers.
    Frames,
    /// A demodulator's symbols, one bit each, to be decoded to bits as the mission's inner code
    /// says.
    Symbols,
    /// The same, each a signed byte: the sign is the bit, positive for one, and the magnitude is
    /// its reliability.
    Soft,
}

impl InputLayout {
    /// The representation of symbols, if the input has symbols.
    pub const fn symbols(self) -> Option<Symbols> {
        match self {
            Self::Symbols => Some(Symbols::Hard),
            Self::Soft => Some(Symbols::Soft),
            Self::Bits | Self::Cadus | Self::Frames => None,
        }
    }
}

/// The result of identifying an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identification {
    /// How it is laid out.
    pub format: InputLayout,
    /// The mission that fits, or a generic one.
    pub mission: Mission,
    /// The spacecraft seen.
    pub scid: Option<Scid>,
    /// The mission is generic: made for this input, frames only.
    pub is_generic: bool,
    /// Names of other missions that fit as many frames; the one above fits more closely, or is
    /// first in the set.
    pub also_fits: Vec<String>,
}

impl Identification {
    /// What the caller says it is.
    pub const fn given(format: InputLayout, mission: Mission) -> Self {
        Self { format, mission, scid: None, is_generic: false, also_fits: Vec::new() }
    }
}

/// Why a sample was not identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unidentified {
    /// Neither markers nor frames.
    #[error(
        "there is no CCSDS marker and no run of frames in the input; check receiver and \
        demodulator, or name the mission: a mission file with the `kind` and `length` of the \
        frames will do"
    )]
    Nothing,
    /// No run of frames, although the caller declared frames without markers.
    #[error(
        "no run of frames was found in the input: at no length do headers repeat and their counts \
        go on; name the mission: a mission file with the `kind` and `length` of the frames will do"
    )]
    NoFrames,
    /// Markers, but no regular distance.
    #[error(
        "markers were found but at no regular distance; name the mission if the signal is that weak"
    )]
    Irregular,
    /// Blocks of one length, but nothing decodes.
    #[error(
        "blocks of {0} bytes were found but no known coding fits; describe the mission in a file \
        and name it"
    )]
    Coding(usize),
    /// Soft symbols, taken for bits.
    #[error(
        "the bytes of the input look like soft symbols, one byte each, and were taken for bits; \
        write the format `soft`"
    )]
    SoftAsBits,
    /// Bits, taken for soft symbols.
    #[error(
        "the bytes of the input look like packed bits, and were taken for soft symbols; write the \
        format `bits`, `symbols` or `auto`"
    )]
    BitsAsSoft,
}

/// Identifies `sample`. At the end of the input fewer repetitions suffice. Of several missions that
/// fit equally well, the first is taken; a mission that names no spacecraft fits any.
///
/// # Errors
/// [`Unidentified`], for this much of the input; more of it may succeed.
pub fn identify(
    sample: &[u8],
    missions: &MissionSet,
    end: EndOfInput,
) -> Result<Identification, Unidentified> {
    let marked = identify_marked(sample, missions, end, None);
    marked.or_else(|reason| bare_frames(sample, missions, end).ok_or(reason))
}

/// The same for an input with markers only. Blocks of `known_length` bytes are tried with the
/// missions' codings only: a trial of every coding of the standards takes milliseconds.
///
/// # Errors
/// [`Unidentified`], as above.
pub(crate) fn identify_marked(
    sample: &[u8],
    missions: &MissionSet,
    end: EndOfInput,
    known_length: Option<usize>,
) -> Result<Identification, Unidentified> {
    let hits = markers(sample);
    if hits.is_empty() {
        return Err(Unidentified::Nothing);
    }
    let lengths = cadu_lengths(&hits, missions, end);
    // The length that is reported if no coding fits: the most frequent one.
    let mut tried = None;
    for length in lengths {
        let blocks = blocks(sample, &hits, length - MARKER_LEN);
        let found = known(&blocks, missions);
        let is_known_length = known_length == Some(length - MARKER_LEN);
        if let Some(found) = found.or_else(|| if is_known_length { None } else { generic(&blocks) })
        {
            // Files of CADUs begin with a marker and hold whole bytes. If one marker is elsewhere,
            // it is a bit stream, in which every bit offset is searched.
            let aligned = hits[0].position == 0
                && hits.iter().all(|hit| hit.position % 8 == 0 && !hit.inverted);
            let format = if aligned { InputLayout::Cadus } else { InputLayout::Bits };
            return Ok(Identification { format, ..found });
        }
        tried = tried.or(Some(length));
    }
    Err(tried.map_or(Unidentified::Irregular, Unidentified::Coding))
}

/// The marker that all built-in missions have. A mission with another one has to be named.
const MARKER: u32 = 0x1ACF_FC1D;
const MARKER_LEN: usize = 4;
/// Most markers looked at: enough for a distance, few enough to be quick.
const MAX_MARKERS: usize = 256;
/// Most blocks decoded for each coding that is tried.
const MAX_BLOCKS: usize = 8;
/// Shortest and longest distance between markers in bytes that is believed.
const CADU_LENGTHS: core::ops::RangeInclusive<usize> = 32..=16_384;
/// Most distances tried.
const MAX_LENGTHS: usize = 8;

/// Exact markers in either polarity.
fn markers(sample: &[u8]) -> Vec<Hit> {
    let finder = Finder::new(Marker::Bits32(MARKER), 0);
    let mut from = 0;
    let next = || {
        let hit = finder.find(sample, from..8 * sample.len())?;
        from = hit.position + 1;
        Some(hit)
    };
    core::iter::from_fn(next).take(MAX_MARKERS).collect()
}

/// Distances between markers in bytes, the most frequent first; at a whole input's end also those
/// of the missions.
fn cadu_lengths(hits: &[Hit], missions: &MissionSet, end: EndOfInput) -> Vec<usize> {
    let mut distances: BTreeMap<usize, usize> = BTreeMap::new();
    for pair in hits.windows(2) {
        let bits = pair[1].position - pair[0].position;
        if bits.is_multiple_of(8) && CADU_LENGTHS.contains(&(bits / 8)) {
            *distances.entry(bits / 8).or_default() += 1;
        }
    }
    // A distance that occurs once may come from a random marker; more bits can confirm it, unless
    // the input has ended.
    let fewest = if end == EndOfInput::Reached { 1 } else { 2 };
    let mut lengths: Vec<(usize, usize)> = distances
        .into_iter()
        .filter(|(_, count)| *count >= fewest)
        .map(|(length, count)| (count, length))
        .collect();
    lengths.sort_by_key(|(count, length)| (core::cmp::Reverse(*count), *length));
    let mut lengths: Vec<usize> =
        lengths.into_iter().map(|(_, length)| length).take(MAX_LENGTHS).collect();
    // A complete input may have a single CADU, without a distance to the next one.
    if end == EndOfInput::Reached {
        for mission in missions.iter() {
            if !lengths.contains(&mission.cadu_len()) {
                lengths.push(mission.cadu_len());
            }
        }
    }
    lengths
}

/// Up to [`MAX_BLOCKS`] blocks after markers, in true polarity.
fn blocks(sample: &[u8], hits: &[Hit], block_len: usize) -> Vec<Vec<u8>> {
    let block = |hit: &Hit| {
        let start = hit.position + 8 * MARKER_LEN;
        let (byte, shift) = (start / 8, start % 8);
        let flip = if hit.inverted { 0xFF } else { 0 };
        if shift == 0 {
            return Some(
                sample.get(byte..byte + block_len)?.iter().map(|byte| byte ^ flip).collect(),
            );
        }
        let bytes = sample.get(byte..=byte + block_len)?.windows(2);
        Some(bytes.map(|pair| (pair[0] << shift | pair[1] >> (8 - shift)) ^ flip).collect())
    };
    hits.iter().filter_map(block).take(MAX_BLOCKS).collect()
}

/// The mission whose coding decodes the most blocks to frames of its own. Its input format is left
/// to the caller.
fn known(blocks: &[Vec<u8>], missions: &MissionSet) -> Option<Identification> {
    let block_len = blocks.first()?.len();
    let mut fitting = Vec::new();
    for mission in missions.iter().filter(|mission| {
        mission.block_len() == block_len && mission.coding().marker.len() == MARKER_LEN
    }) {
        let fitness = Fitness::of(mission, &decoded(blocks, mission));
        // Uncoded blocks always "decode": for them most headers must fit the mission.
        let fewest = if mission.is_coded() { 1 } else { blocks.len() / 2 + 1 };
        if fitness.frames >= fewest {
            fitting.push((mission, fitness));
        }
    }
    closest(&fitting, InputLayout::Bits)
}

/// A mission without a name, of the coding that decodes the most blocks to frames of one
/// spacecraft. As above.
fn generic(blocks: &[Vec<u8>]) -> Option<Identification> {
    let mut best: Option<(usize, Mission, Scid)> = None;
    for text in generic_codings(blocks.first()?.len()) {
        let Ok(mission) = Mission::from_toml(&text) else { continue };
        let frames = decoded(blocks, &mission);
        let scids = || frames.iter().filter_map(|bytes| Some(frame::glimpse(bytes)?.1.scid));
        let Some(first) = scids().next() else { continue };
        let same = scids().filter(|scid| *scid == first).count();
        // As above, and a single block is not evidence.
        let fewest = if mission.is_coded() { 1 } else { (blocks.len() / 2 + 1).max(2) };
        if same >= fewest && best.as_ref().is_none_or(|(most, ..)| same > *most) {
            best = Some((same, mission, first));
        }
    }
    best.map(|(_, mission, scid)| Identification {
        format: InputLayout::Bits,
        mission,
        scid: Some(scid),
        is_generic: true,
        also_fits: Vec::new(),
    })
}

/// The frames that a mission's coding makes of the blocks.
fn decoded(blocks: &[Vec<u8>], mission: &Mission) -> Vec<Bytes> {
    let mut decoder = BlockDecoder::new(mission, CheckSymbols::Dropped);
    let judged = blocks.iter().map(|block| decoder.judge(block));
    let good = judged
        .filter(|(judgement, decoded)| *judgement != Judgement::Bad && decoded.set_aside.is_none());
    good.map(|(_, decoded)| decoded.bytes).collect()
}

/// Mission texts for every coding of the standards with blocks of this length, the most usual
/// first.
fn generic_codings(block_len: usize) -> Vec<String> {
    let mut texts = Vec::new();
    let mut add = |frame_len: usize, check: &str| {
        for kind in [FrameKind::Aos, FrameKind::Tm, FrameKind::Uslp] {
            for randomiser in ["ccsds255", "ccsds131071", "none"] {
                texts.push(generic_text(
                    kind,
                    frame_len,
                    &format!("randomiser = \"{randomiser}\"\n{check}"),
                ));
            }
        }
    };
    for (corrects, check_len) in [(16, 32), (8, 16)] {
        for basis in ["dual", "conventional"] {
            for interleave in [1usize, 2, 3, 4, 5, 8] {
                let Some(fill) = (255 * interleave).checked_sub(block_len) else { continue };
                // If more than half of a code is virtual fill, a code of less interleaving depth is
                // more likely.
                if !fill.is_multiple_of(interleave)
                    || fill > 128 * interleave
                    || block_len <= check_len * interleave
                {
                    continue;
                }
                let check = format!(
                    "[coding.reed_solomon]\ncorrects = {corrects}\ninterleave = \
                    {interleave}\nbasis = \"{basis}\"\n\
                     virtual_fill = {fill}\n"
                );
                add(block_len - check_len * interleave, &check);
            }
        }
    }
    add(block_len, "");
    texts
}

fn generic_text(kind: FrameKind, frame_len: usize, coding: &str) -> String {
    format!(
        "name = \"generic\"\ntitle = \"Unknown spacecraft\"\nscids = []\ncontent = \"opaque\"\n\n\
         [frame]\nkind = \"{}\"\nlength = {frame_len}\n\n[coding]\n{coding}",
        kind.name()
    )
}

/// The first byte of a run of frames of a mission that may begin at any byte, after the rest of
/// another downlink.
pub(crate) fn first_frame(sample: &[u8], missions: &MissionSet) -> Option<usize> {
    let mut first = None;
    for mission in missions.iter().filter(|mission| !mission.frame().is_variable()) {
        let (format, length) = (mission.frame(), mission.frame().length);
        let is_own = |at: usize| {
            let seen =
                sample.get(at..at + length).and_then(|bytes| frame::glimpse_as(bytes, format));
            seen.is_some_and(|(kind, channel, _)| {
                kind == format.kind && mission.covers(channel.scid)
            })
        };
        let is_run = |at: &usize| (0..FEWEST_IN_RUN).all(|frame| is_own(at + frame * length));
        first = (0..first.unwrap_or(LEFT_MAX)).find(is_run).or(first);
    }
    first
}

/// Most bytes of the rest of another downlink: its longest block.
const LEFT_MAX: usize = 16_384;
/// Frames of a mission in a row that cannot be random.
const FEWEST_IN_RUN: usize = 4;

/// The shortest divisor of the length found that has the same run of headers. If each frame is
/// repeated many times, few of the headers checked have the next count, but at a multiple of the
/// length more do.
fn shortest(sample: &[u8], length: usize, found: Headers) -> (usize, Headers) {
    let shorter =
        (*FRAME_LENGTHS.start()..=length / 2).filter(|shorter| length.is_multiple_of(*shorter));
    let mut runs = shorter.filter_map(|shorter| {
        let seen = running_headers(sample, shorter, MAX_HEADERS * (length / shorter))?;
        (seen == found).then_some((shorter, seen))
    });
    runs.next().unwrap_or((length, found))
}

/// Frames without markers: of a mission, or else of any length at which the counts in headers
/// advance.
pub(crate) fn bare_frames(
    sample: &[u8],
    missions: &MissionSet,
    end: EndOfInput,
) -> Option<Identification> {
    let mut fitting = Vec::new();
    for mission in missions.iter() {
        let length = mission.frame().length;
        let is_variable = mission.frame().is_variable();
        let frames = match is_variable {
            true => run_of(mission, sample, MAX_HEADERS),
            false => sample.chunks_exact(length).take(MAX_HEADERS).collect(),
        };
        let frames: Vec<Bytes> = frames.into_iter().map(Bytes::copy_from_slice).collect();
        let readable = frames.iter().filter(|bytes| frame::glimpse(bytes).is_some()).count();
        let fitness = Fitness::of(mission, &frames);
        let ends_with_frame = match is_variable {
            true => frames.iter().map(Bytes::len).sum::<usize>() == sample.len(),
            false => sample.len().is_multiple_of(length),
        };
        // In a complete file of whole frames one header is enough evidence; otherwise a run of
        // headers is needed that cannot be random.
        let enough = if end == EndOfInput::Reached && ends_with_frame { 1 } else { FEWEST_IN_RUN };
        // One readable header in ten may be damaged or of another spacecraft.
        let fits = fitness.frames >= enough && fitness.frames * 10 >= readable * 9;
        // Every fifth header of 220-byte frames is at the position of a header of 1,100-byte
        // frames, every fifth of 446 bytes at that of every second of 1,115 bytes.
        let kind = mission.frame().kind;
        let is_shorter = |scid| {
            let runs = |shorter| {
                running_headers(sample, shorter, MANY_HEADERS) == Some(Headers { kind, scid })
            };
            !is_variable && (*FRAME_LENGTHS.start()..length).any(runs)
        };
        if fits && !fitness.scid.is_some_and(is_shorter) {
            fitting.push((mission, fitness));
        }
    }
    if let Some(found) = closest(&fitting, InputLayout::Frames) {
        return Some(found);
    }
    let (length, Headers { kind, scid }) = FRAME_LENGTHS
        .clone()
        .find_map(|length| Some((length, running_headers(sample, length, MAX_HEADERS)?)))
        .map(|(length, found)| shortest(sample, length, found))?;
    let mission =
        Mission::from_toml(&generic_text(kind, length, "randomiser = \"none\"\n")).ok()?;
    Some(Identification {
        format: InputLayout::Frames,
        mission,
        scid: Some(scid),
        is_generic: true,
        also_fits: Vec::new(),
    })
}

/// Lengths of bare frames in bytes that are tried.
const FRAME_LENGTHS: core::ops::RangeInclusive<usize> = 32..=4_096;
/// Most headers checked for each length.
const MAX_HEADERS: usize = 64;
/// Most headers checked if each frame may be repeated: with 24 repetitions they have 21 counts.
const MANY_HEADERS: usize = 512;
/// Fewest steps of frame counts in a run.
const FEWEST_STEPS: usize = 6;

/// The steps of the frame counts of one channel.
#[derive(Default)]
struct Run {
    last: Option<VcCount>,
    frames: usize,
    steps: usize,
    /// Steps to the next count.
    in_sequence: usize,
    /// Steps forward, between which frames may be lost.
    onward: usize,
}

/// Most counts that a step forward may skip.
const MOST_LOST: u64 = 15;

/// What the headers of a run of frames have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Headers {
    kind: FrameKind,
    scid: Scid,
}

/// Kind and spacecraft of at most `most` headers, `length` bytes apart, if the counts of each
/// channel mostly advance. Frames may be repeated or lost; bytes whose count never advances, such
/// as idle data, are not headers.
fn running_headers(sample: &[u8], length: usize, most: usize) -> Option<Headers> {
    let looked_at = (sample.len() / length).min(most);
    let headers: Vec<_> =
        sample.chunks_exact(length).take(looked_at).filter_map(frame::glimpse).collect();
    let (kind, first, _) = *headers.first()?;
    let mut runs: BTreeMap<Channel, Run> = BTreeMap::new();
    for (_, channel, count) in headers.iter().filter(|header| header.0 == kind) {
        let run = runs.entry(*channel).or_default();
        run.frames += 1;
        if let Some(last) = run.last.replace(*count).filter(|last| last != count) {
            run.steps += 1;
            let step = last.modulus.step(last.value, count.value);
            run.in_sequence += usize::from(step == CountStep::Next);
            run.onward += usize::from(matches!(
                step,
                CountStep::Next | CountStep::Gap { missing: ..=MOST_LOST }
            ));
        }
    }
    let counting = || runs.values().filter(|run| run.onward > 0);
    let total = |part: fn(&Run) -> usize| counting().map(part).sum::<usize>();
    let (frames, steps, in_sequence, onward) = (
        total(|run| run.frames),
        total(|run| run.steps),
        total(|run| run.in_sequence),
        total(|run| run.onward),
    );
    // Of the steps between different counts, 7 in 10 must go forward by 16 at most: random 24-bit
    // counts do so once in a million steps, the 8-bit counts of TM frames once in 16. Only 2 in 10
    // must go to the next count, because frames may be lost in bursts. The channels with advancing
    // counts must have 2 in 3 of the headers: the rest may be idle or damaged frames.
    let is_run = steps >= FEWEST_STEPS
        && onward * 10 >= steps * 7
        && in_sequence * 10 >= steps * 2
        && frames * 3 >= looked_at * 2;
    is_run.then_some(Headers { kind, scid: first.scid })
}
