//! Detects that an input changes to another downlink.
//!
//! Everything after the last frame of the downlink is held: the bytes, so that they can be
//! identified if they belong to another downlink, and the frames and lock changes, which are passed
//! on when their downlink is known. The next frame of the downlink proves that nothing has changed.
//! It is nearly always the very next frame, so that nothing waits.

use super::held::Held;
use super::stage::{FrameSource, StageEvent};
use super::{CaptureEvent, CaptureOptions};
use crate::end_of_input::EndOfInput;
use crate::frame;
use crate::id::Scid;
use crate::identify::{
    Identification, InputLayout, bare_frames, first_frame, identify, identify_marked,
};
use crate::inner::{InnerDecoder, identify_symbols};
use crate::mission::{FrameFormat, MissionSet};
use crate::quality::{BitPosition, CapturedFrame, FrameVerdict};
use std::collections::VecDeque;

/// Follows one downlink.
#[derive(Debug)]
pub(super) struct Watch {
    own: Own,
    /// The input from about the end of the downlink's last own frame.
    pub held: Held,
    /// Where that frame ends.
    pub own_end: BitPosition,
    /// Events since then that are not passed on yet.
    pub pending: VecDeque<CaptureEvent>,
    /// Good frames of other spacecraft since.
    foreign: usize,
    /// They were checked once there were enough of them.
    is_looked_at: bool,
    /// Everything belongs to the downlink, and nothing waits.
    is_bound: bool,
    /// Frames of other spacecraft arrived between its own: the stream has several spacecraft.
    is_mixed: bool,
    /// Checks of the input since the last own frame that found no other downlink.
    fruitless: u32,
    /// Bytes in which another downlink would be found.
    first_try: usize,
    /// Most bytes held.
    limit: usize,
}

/// The framing and the spacecraft of the downlink.
#[derive(Debug, Clone)]
pub(super) struct Own {
    /// Any spacecraft where empty.
    scids: Vec<Scid>,
    format: FrameFormat,
}

/// The position up to which the frames of an input were taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reached {
    pub place: BitPosition,
    /// Whether more may follow.
    pub end: EndOfInput,
}

/// The result for a sample.
#[derive(Debug)]
struct Recognised {
    downlink: Identification,
    /// Bytes of something else before it.
    skipped: usize,
}

/// Another downlink, found after the last frame of the previous one.
#[derive(Debug)]
pub(super) struct Successor {
    pub identification: Identification,
    pub source: FrameSource,
    /// Its frames in the bytes held, from its first good frame.
    pub events: VecDeque<StageEvent>,
    /// Where that frame begins.
    pub from: BitPosition,
}

/// The first attempt to identify uses this many bytes, some frames; the next ones follow each time
/// the amount has doubled.
pub(super) const FIRST_TRY_BYTES: usize = 8 * 1024;
/// Frames that show what they are.
const FIRST_TRY_FRAMES: u64 = 3;
/// After this many good frames in a row of one other spacecraft with the same framing, the stream
/// is that spacecraft's: 20 ms at 15 Mbit/s. With fewer between frames of the first spacecraft, the
/// stream has both.
const CHANGED_AFTER: usize = 32;
/// The same at the input's end.
const CHANGED_AT_END: usize = 4;
/// In a long stretch of blocks of the downlink's length in which nothing decodes, only one check in
/// this many tries every coding, after the first few: noise is more likely than a spacecraft
/// without a mission file.
const THOROUGH: u32 = 64;
/// Good frames that prove another downlink.
const BELIEVED: usize = 2;
/// Fewest frames that are held: those above, and the same number that may precede them.
const MOST_FRAMES: usize = 40;
/// Most frames and changes of lock that wait.
const MOST_PENDING: usize = 64;

impl Own {
    /// Frames of the mission's spacecraft; if the mission names none, of the one seen.
    pub fn of(found: &Identification) -> Self {
        let named = found.mission.scids();
        let scids = match named.is_empty() {
            false => named.to_vec(),
            true => found.scid.into_iter().collect(),
        };
        Self { scids, format: *found.mission.frame() }
    }

    /// Frames of any spacecraft: the caller named the mission of the whole input.
    pub fn any(found: &Identification) -> Self {
        Self { scids: Vec::new(), format: *found.mission.frame() }
    }

    /// Whether a good frame is one.
    pub fn has(&self, bytes: &[u8]) -> bool {
        self.scids.is_empty()
            || frame::glimpse_as(bytes, &self.format)
                .is_some_and(|(_, channel, _)| self.scids.contains(&channel.scid))
    }
}

impl Watch {
    /// For a downlink whose first bit is at `start`.
    pub fn new(found: &Identification, start: BitPosition, options: &CaptureOptions) -> Self {
        let format = found.format;
        let unit = unit_bits(found).div_ceil(8);
        let lead = format.symbols().map_or(0, InnerDecoder::lead) / 8;
        let first_try = FIRST_TRY_BYTES.max((FIRST_TRY_FRAMES * unit + lead) as usize);
        Self {
            own: if options.is_bound() { Own::any(found) } else { Own::of(found) },
            held: Held::starting_at(start.byte()),
            own_end: start,
            pending: VecDeque::new(),
            foreign: 0,
            is_looked_at: false,
            is_bound: options.is_bound(),
            is_mixed: false,
            fruitless: 0,
            first_try,
            limit: options.identify_limit.max(4 * first_try).max(MOST_FRAMES * unit as usize),
        }
    }

    /// With what the one before held.
    pub fn holding(self, held: Held) -> Self {
        Self { held, ..self }
    }

    /// Whether a frame is the downlink's own.
    pub fn is_own(&self, frame: &CapturedFrame) -> bool {
        frame.is_good() && self.own.has(&frame.bytes)
    }

    /// An own frame arrived, which ends there.
    pub fn own_came(&mut self, end: BitPosition) {
        self.own_end = end;
        self.is_mixed |= self.foreign > 0;
        self.foreign = 0;
        self.is_looked_at = false;
        self.fruitless = 0;
    }

    /// An event waits until its downlink is known. Returns whether a check is due.
    pub fn wait(&mut self, event: CaptureEvent) -> bool {
        if let CaptureEvent::Frame(frame) = &event {
            self.foreign += usize::from(frame.is_good());
        }
        self.pending.push_back(event);
        !self.is_bound && (self.pending.len() >= MOST_PENDING || self.foreign == CHANGED_AFTER)
    }

    /// The number of waiting events that belong to the downlink: a check of their input found no
    /// other.
    pub fn settled(&self) -> usize {
        if self.is_bound {
            return self.pending.len();
        }
        let start = BitPosition::from_bits(8 * self.held.start);
        let before = self.pending.iter().take_while(|event| place(event) < start).count();
        let is_full = self.pending.len() >= MOST_PENDING;
        if is_full { before.max(MOST_PENDING / 2) } else { before }
    }

    /// Takes the input's next bytes, which `source` has taken.
    pub fn push(&mut self, source: &FrameSource, received: skyhaul_units::Utc, bytes: &[u8]) {
        let waiting = source.end_of_last(|frame| self.own.has(frame)).unwrap_or(self.own_end);
        self.held.push_from(self.own_end.max(waiting).byte(), received, bytes);
    }

    /// How many of the `len` relevant bytes held are checked now; `None` if more input is needed
    /// first.
    fn due(&self, len: usize, end: EndOfInput) -> Option<usize> {
        let tried = self.held.tried;
        if self.foreign >= CHANGED_AFTER && !self.is_looked_at {
            return (len > 0).then_some(len.min(self.limit));
        }
        let next = tried + tried.clamp(self.first_try, self.limit / 2);
        if len >= next {
            Some(next)
        } else {
            (end == EndOfInput::Reached && tried < len).then_some(len)
        }
    }

    /// Checks the bytes held before `reached`, up to which frames were taken, as far as due, until
    /// another downlink is found or more input is needed.
    pub fn look(
        &mut self,
        found: &Identification,
        missions: &MissionSet,
        options: &CaptureOptions,
        reached: Reached,
    ) -> Option<Successor> {
        let end = reached.end;
        loop {
            let held = reached.place.byte().saturating_sub(self.held.start) as usize;
            let len = self.due(held.min(self.held.bytes.len()), end)?;
            self.held.tried = len;
            self.is_looked_at = self.foreign >= CHANGED_AFTER;
            let sample_end = if len == self.held.bytes.len() { end } else { EndOfInput::Ahead };
            let is_thorough = sample_end == EndOfInput::Reached
                || self.fruitless.is_power_of_two()
                || self.fruitless.is_multiple_of(THOROUGH);
            let known = (!is_thorough).then(|| found.mission.block_len());
            let sample = &self.held.bytes[..len];
            let seen = recognise(found.format, sample, missions, sample_end, known);
            let is_other = |Recognised { downlink: seen, .. }: &Recognised| {
                let is_reframed = seen.mission.block_len() != found.mission.block_len()
                    || !has_layout_of(found, seen);
                !is_same(found, seen) && (is_reframed || self.has_changed(end))
            };
            // A layout that the caller named stays.
            let seen = seen
                .filter(|seen| options.format.is_none() || has_layout_of(found, &seen.downlink));
            let other = seen.filter(is_other);
            let successor = other.and_then(|other| self.prove(found, other, options, end));
            if let Some(successor) = successor.filter(|successor| successor.from < reached.place) {
                return Some(successor);
            }
            self.fruitless = self.fruitless.saturating_add(1);
            if len >= self.limit {
                // The input is the downlink's own, or noise: another downlink can only begin later.
                self.held.drop_first(self.limit / 2);
            }
        }
    }

    /// Whether frames of other spacecraft are too many to be stray frames.
    const fn has_changed(&self, end: EndOfInput) -> bool {
        match self.foreign {
            0 | CHANGED_AFTER.. => true,
            frames => {
                matches!(end, EndOfInput::Reached) && !self.is_mixed && frames >= CHANGED_AT_END
            }
        }
    }

    /// Whether the bytes held have frames of the downlink that was recognised in them.
    fn prove(
        &self,
        found: &Identification,
        recognised: Recognised,
        options: &CaptureOptions,
        end: EndOfInput,
    ) -> Option<Successor> {
        let Recognised { downlink: other, mut skipped } = recognised;
        let held = BitPosition::from_bits(8 * self.held.start);
        let start =
            if skipped > 0 { held.plus_bits(8 * skipped as u64) } else { self.own_end.max(held) };
        let mut source = FrameSource::new(&other.mission, other.format, start, options);
        for (received, bytes) in self.held.pushes() {
            let (_, rest) = bytes.split_at(skipped.min(bytes.len()));
            skipped -= bytes.len() - rest.len();
            source.push(received, rest);
        }
        if end == EndOfInput::Reached {
            source.finish();
        }
        let mut events: VecDeque<StageEvent> = core::iter::from_fn(|| source.poll()).collect();
        let own = Own::of(&other);
        let good = || {
            events.iter().filter_map(|event| match event {
                StageEvent::Frame(frame) if frame.is_good() && own.has(&frame.bytes) => Some(frame),
                _ => None,
            })
        };
        let is_proven = |frame: &&CapturedFrame| {
            matches!(frame.quality.verdict, FrameVerdict::Clean | FrameVerdict::Corrected)
        };
        // Damaged frames of the downlink itself look like frames without coding, of the same length
        // and spacecraft.
        let differs = other.mission.block_len() != found.mission.block_len()
            || other.scid != found.scid.or(other.scid)
            || !has_layout_of(found, &other);
        if good().count() < BELIEVED || !(differs || good().filter(is_proven).count() >= BELIEVED) {
            return None;
        }
        let from = good().next()?.position;
        events.retain(|event| match event {
            StageEvent::Frame(frame) => frame.position >= from,
            StageEvent::Locked(_) | StageEvent::Lost(_) => true,
        });
        Some(Successor { identification: other, source, events, from })
    }
}

/// Where a frame ends in the input.
pub(super) fn end_of(found: &Identification, frame: &CapturedFrame) -> BitPosition {
    let is_variable = found.mission.frame().is_variable();
    frame.position.plus_bits(if is_variable {
        8 * frame.bytes.len() as u64
    } else {
        unit_bits(found)
    })
}

fn place(event: &CaptureEvent) -> BitPosition {
    match event {
        CaptureEvent::Frame(frame) => frame.position,
        CaptureEvent::Locked(position) | CaptureEvent::LockLost(position) => *position,
        _ => BitPosition::START,
    }
}

/// Bits of the input from one frame to the next; if lengths vary, for the longest.
pub(super) fn unit_bits(found: &Identification) -> u64 {
    let mission = &found.mission;
    match (found.format, found.format.symbols()) {
        (InputLayout::Frames, _) => 8 * mission.frame().length as u64,
        (_, None) => 8 * mission.cadu_len() as u64,
        (_, Some(symbols)) => {
            mission.coding().inner.input_bits(symbols, 8 * mission.cadu_len() as u64)
        }
    }
}

/// What the sample is.
fn recognise(
    format: InputLayout,
    sample: &[u8],
    missions: &MissionSet,
    end: EndOfInput,
    known_length: Option<usize>,
) -> Option<Recognised> {
    let seen = match (format, format.symbols()) {
        (_, Some(symbols)) => identify_symbols(sample, symbols, missions, end),
        (InputLayout::Frames, None) => identify(sample, missions, end),
        (_, None) => identify_marked(sample, missions, end, known_length),
    };
    // A search for frames at every length and position takes milliseconds, as does a trial of every
    // coding.
    let is_marked = format != InputLayout::Frames && format.symbols().is_none();
    match seen {
        Ok(downlink) => Some(Recognised { downlink, skipped: 0 }),
        Err(_) if is_marked && known_length.is_none() => {
            let skipped = first_frame(sample, missions).unwrap_or(0);
            let downlink = bare_frames(&sample[skipped..], missions, end)?;
            Some(Recognised { downlink, skipped })
        }
        Err(_) => None,
    }
}

/// Whether both have markers, or neither has.
fn has_layout_of(found: &Identification, seen: &Identification) -> bool {
    (found.format == InputLayout::Frames) == (seen.format == InputLayout::Frames)
}

/// Whether both are the same spacecraft's downlink.
fn is_same(found: &Identification, seen: &Identification) -> bool {
    let is_named = !found.mission.scids().is_empty();
    has_layout_of(found, seen)
        && found.mission.text() == seen.mission.text()
        && (is_named || found.scid == seen.scid)
}
