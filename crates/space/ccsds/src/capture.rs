//! The capture pipeline: from the bytes of a receiver or a file to captured frames.
//!
//! `push` bytes with the time of their reception, then `poll` until `None`. An input of unknown
//! format is buffered until it is identified; then the buffer is captured from its first bit. If no
//! mission is named and the stream changes to another downlink (another spacecraft, length or
//! coding), the capture reports it and continues with that one.
//!
//! Memory is bounded: the buffer for identifying by [`CaptureOptions::identify_limit`] or the size
//! of forty frames, later a few blocks, and in addition the bytes of one `push`. While frames are
//! good, nothing is buffered. After the last good frame, input is buffered as for identifying, and
//! up to 64 frames set aside or of another spacecraft wait until their downlink is known.

mod held;
mod open_block;
mod stage;
mod watch;

use crate::end_of_input::EndOfInput;
use crate::frame;
use crate::id::{Channel, Scid};
use crate::identify::{Identification, InputLayout, Unidentified, identify};
use crate::inner::{InnerDecoder, Symbols, identify_symbols};
use crate::likeness::mistaken;
use crate::mission::{Mission, MissionSet};
use crate::quality::{BitPosition, CapturedFrame};
use crate::sync::SyncConfig;
use crate::sync::SyncCounts;
use held::Held;
pub use open_block::OpenBlock;
use open_block::Tail;
use skyhaul_coding::gf::Kernel;
use skyhaul_units::Utc;
use stage::{FrameSource, StageEvent};
use std::collections::{BTreeMap, VecDeque};
use watch::{FIRST_TRY_BYTES, Reached, Successor, Watch, end_of};

/// What the caller knows of the input.
#[derive(Debug, Clone)]
pub struct CaptureOptions {
    /// Its layout; `None`: detected.
    pub format: Option<InputLayout>,
    /// The mission; `None`: found out.
    pub mission: Option<Mission>,
    /// The mission describes only the beginning of the input: another one may follow. Without this
    /// option a named mission applies to the whole input, and another downlink is reported but not
    /// captured.
    pub may_change: bool,
    /// The position at which the input continues: the first byte pushed holds this bit. Any
    /// position but the start needs a mission.
    pub start: BitPosition,
    /// Frames that begin before this position are skipped, because they are known already. Symbols
    /// have to be decoded from before the wanted frame, see [`CaptureOptions::read_from`].
    pub frames_from: BitPosition,
    /// Good frames include their check symbols.
    pub keep_check_symbols: bool,
    /// Thresholds of the synchroniser.
    pub sync: SyncConfig,
    /// Most bytes held while the input is not identified; beyond it the older half is dropped and
    /// counted. Default 256 KiB: 140 ms at 15 Mbit/s, 250 frames. At least 16 KiB.
    pub identify_limit: usize,
    /// The instructions to decode with. Default: the fastest that the processor has; the results
    /// are the same for all.
    pub kernel: Kernel,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        Self {
            format: None,
            mission: None,
            may_change: false,
            start: BitPosition::START,
            frames_from: BitPosition::START,
            keep_check_symbols: false,
            sync: SyncConfig::default(),
            identify_limit: 256 * 1024,
            kernel: Kernel::best(),
        }
    }
}

/// What a capture reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureEvent {
    /// The input is identified; frames follow. Reported once, even if the caller named the mission,
    /// and again after each [`CaptureEvent::Changed`].
    Identified(Box<Identification>),
    /// The synchroniser is in lock from here on.
    Locked(BitPosition),
    /// A frame, good or set aside.
    Frame(CapturedFrame),
    /// The synchroniser lost lock; the last frame ended here.
    LockLost(BitPosition),
    /// The stream has frames of a further spacecraft: reported at its second frame.
    OtherSpacecraft {
        /// Its id.
        scid: Scid,
        /// Its mission, where it is a known one.
        mission: Option<Box<Mission>>,
    },
    /// The downlink ended, and another one follows, which is reported by
    /// [`CaptureEvent::Identified`] next.
    Changed {
        /// Where the first good frame of that one begins.
        at: BitPosition,
        /// The statistics of the one that ended.
        stats: CaptureStats,
    },
    /// The stream has another downlink than the named mission. None of its frames are returned.
    OtherDownlink(Box<Identification>),
    /// The input ended and was never identified.
    Unidentified(Unidentified),
}

/// The statistics of the input since the present downlink began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CaptureStats {
    /// The synchroniser's counts. For bare frames: bits, frames and skipped bits only.
    pub sync: SyncCounts,
    /// Good frames.
    pub good_frames: u64,
    /// Good frames with symbols corrected.
    pub corrected_frames: u64,
    /// Symbols corrected in good frames.
    pub corrected_symbols: u64,
    /// Frames set aside.
    pub set_aside: u64,
}

/// Captures one input.
#[derive(Debug)]
pub struct Capture {
    missions: MissionSet,
    options: CaptureOptions,
    stage: Stage,
    events: VecDeque<CaptureEvent>,
    stats: CaptureStats,
    spacecraft: BTreeMap<Scid, u64>,
    dropped_bits: u64,
    /// The probable format of the input, if it was declared as another and nothing was found so
    /// far.
    doubt: Option<Unidentified>,
    end: EndOfInput,
}

#[derive(Debug)]
enum Stage {
    /// Buffered until it is identified.
    Unknown(Held),
    Known(Box<Known>),
}

/// A downlink that is followed.
#[derive(Debug)]
struct Known {
    found: Identification,
    source: FrameSource,
    watch: Watch,
    /// What the source gave before it took over.
    events: VecDeque<StageEvent>,
    /// Where its first bit is.
    start: BitPosition,
    /// Of what was handed on.
    handed_on: SyncCounts,
    /// Bits of those frames.
    frame_bits: u64,
    /// Another downlink that was told of last.
    told: Option<(String, Option<Scid>)>,
    /// The newest bytes, which may belong to an incomplete frame.
    tail: Tail,
}

/// A frame that begins up to this many bits before the wanted position is still wanted: positions
/// in symbols are rounded, and no frame is that short.
const PLACE_SLACK: u64 = 64;
/// Bytes after which it is decided whether the input of a named mission with an inner code has bits
/// or symbols.
const SYMBOLS_SHOW: usize = 64 * 1024;
/// Most spacecraft looked out for.
const MAX_SPACECRAFT: usize = 64;
/// Good frames after which a spacecraft counts as present.
const BELIEVED_FRAMES: u64 = 2;

impl Capture {
    /// Begins a capture. With a mission and no format, bits are expected (CADUs are bits too); for
    /// bare frames of a named mission, give [`InputLayout::Frames`].
    pub fn new(missions: MissionSet, options: CaptureOptions) -> Self {
        let mut capture = Self {
            missions: missions.identifiable(),
            stage: Stage::Unknown(Held::starting_at(options.start.byte())),
            options,
            events: VecDeque::new(),
            stats: CaptureStats::default(),
            spacecraft: BTreeMap::new(),
            dropped_bits: 0,
            doubt: None,
            end: EndOfInput::Ahead,
        };
        if let (Some(mission), Some(format)) =
            (capture.options.mission.clone(), capture.options.format)
        {
            capture.begin(Identification::given(format, mission));
        }
        capture
    }

    /// Takes the next bytes of the input, whose last bit was received at `received`.
    pub fn push(&mut self, received: Utc, bytes: &[u8]) {
        let received = Utc::from_micros(received.as_micros());
        match &mut self.stage {
            Stage::Known(known) => {
                known.source.push(received, bytes);
                known.watch.push(&known.source, received, bytes);
                known.tail.push(received, bytes);
            }
            Stage::Unknown(held) => {
                held.push(received, bytes);
                self.try_to_identify();
            }
        }
    }

    /// The input ends here. Poll for what is left.
    pub fn finish(&mut self) {
        if self.end == EndOfInput::Reached {
            return;
        }
        self.end = EndOfInput::Reached;
        if let Stage::Unknown(_) = &self.stage {
            self.try_to_identify();
        }
        if let Stage::Known(known) = &mut self.stage {
            known.source.finish();
        }
    }

    /// The next event; `None` where more bytes are needed, or after the end.
    pub fn poll(&mut self) -> Option<CaptureEvent> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let Stage::Known(known) = &mut self.stage else { return None };
            let event = known.events.pop_front().or_else(|| known.source.poll());
            match event {
                Some(event) => {
                    if let Some(event) = self.take(event) {
                        return Some(event);
                    }
                }
                None => {
                    let place = BitPosition::from_bits(8 * known.watch.held.end());
                    if !self.look_out(Reached { place, end: self.end }) {
                        return None;
                    }
                }
            }
        }
    }

    /// The same input continues after a pause: takes the bytes of an incomplete frame from the
    /// previous capture, which has ended.
    pub fn going_on(missions: MissionSet, options: CaptureOptions, open: &OpenBlock) -> Self {
        let options = CaptureOptions { start: open.from, frames_from: open.frames_from, ..options };
        let mut capture = Self::new(missions, options);
        open.pushes.iter().for_each(|(received, bytes)| capture.push(*received, bytes));
        capture
    }

    /// The bytes after the last frame, if they are no more than an incomplete frame. Call it after
    /// [`Self::poll`] has returned `None`.
    pub fn open_block(&self) -> Option<OpenBlock> {
        match &self.stage {
            Stage::Known(known) => known.tail.open_block(known.found.format),
            Stage::Unknown(_) => None,
        }
    }

    /// The statistics of the input since the present downlink began.
    pub fn stats(&self) -> CaptureStats {
        let sync = match &self.stage {
            Stage::Known(known) => known.source.counts(self.end),
            Stage::Unknown(held) => {
                SyncCounts { bits: 8 * held.bytes.len() as u64, ..SyncCounts::default() }
            }
        };
        let dropped_bits = self.dropped_bits;
        let sync = SyncCounts { bits: sync.bits + dropped_bits, dropped_bits, ..sync };
        CaptureStats { sync, ..self.stats }
    }

    /// The probable format of an input in which nothing was found so far, if it differs from the
    /// declared one.
    pub const fn doubt(&self) -> Option<Unidentified> {
        match self.stage {
            Stage::Unknown(_) => self.doubt,
            Stage::Known(_) => None,
        }
    }

    /// Whether frames are being followed.
    pub fn is_locked(&self) -> bool {
        match &self.stage {
            Stage::Known(known) => known.source.is_locked(),
            Stage::Unknown(_) => false,
        }
    }

    /// Tries with a number of bytes, then with twice as many, so that the result does not depend on
    /// the sizes of the pushes.
    fn try_to_identify(&mut self) {
        let limit = self.options.identify_limit;
        loop {
            let Stage::Unknown(held) = &mut self.stage else { return };
            let next =
                held.tried + held.tried.clamp(FIRST_TRY_BYTES, (limit / 2).max(FIRST_TRY_BYTES));
            let len = held.bytes.len();
            if self.end == EndOfInput::Ahead && len < next {
                return;
            }
            let end = if len <= next { self.end } else { EndOfInput::Ahead };
            held.tried = next.min(len);
            let sample = &held.bytes[..held.tried];
            match self.options.recognise(sample, &self.missions, end) {
                Ok(identification) => return self.begin(identification),
                Err(reason) if end == EndOfInput::Reached => {
                    let reason = match self.options.format {
                        Some(InputLayout::Frames) => Unidentified::NoFrames,
                        format => mistaken(sample, format).unwrap_or(reason),
                    };
                    self.dropped_bits += 8 * len as u64;
                    *held = Held::default();
                    return self.events.push_back(CaptureEvent::Unidentified(reason));
                }
                Err(_) if held.tried >= limit => {
                    self.doubt = mistaken(sample, self.options.format);
                    self.dropped_bits += 8 * (limit / 2) as u64;
                    held.drop_first(limit / 2);
                }
                Err(_) => {}
            }
        }
    }

    /// Captures from the first held byte on.
    fn begin(&mut self, identification: Identification) {
        let Stage::Unknown(held) = &mut self.stage else { return };
        let held = core::mem::take(held);
        let start = BitPosition::from_bits(self.options.start.as_bits().max(8 * held.start));
        let Identification { mission, format, .. } = &identification;
        let source = FrameSource::new(mission, *format, start, &self.options);
        let watch = Watch::new(&identification, start, &self.options);
        self.stage =
            Stage::Known(Box::new(Known::new(identification.clone(), source, watch, start)));
        self.events.push_back(CaptureEvent::Identified(Box::new(identification)));
        held.pushes().for_each(|(received, bytes)| self.push(received, bytes));
    }

    /// What is passed on for an event: the event itself, nothing yet, or further events through the
    /// queue.
    fn take(&mut self, event: StageEvent) -> Option<CaptureEvent> {
        let Stage::Known(known) = &mut self.stage else { return None };
        let watch = &mut known.watch;
        let event = match event {
            StageEvent::Locked(position) => CaptureEvent::Locked(position),
            StageEvent::Lost(position) => CaptureEvent::LockLost(position),
            StageEvent::Frame(frame) => {
                if frame.position.as_bits() + PLACE_SLACK < self.options.frames_from.as_bits() {
                    return None;
                }
                if watch.is_own(&frame) {
                    watch.own_came(end_of(&known.found, &frame));
                    if watch.pending.is_empty() {
                        self.count(&frame);
                        return Some(CaptureEvent::Frame(frame));
                    }
                    self.release(usize::MAX);
                    self.hand_on(CaptureEvent::Frame(frame));
                    return None;
                }
                CaptureEvent::Frame(frame)
            }
        };
        let place = match &event {
            CaptureEvent::Frame(frame) => end_of(&known.found, frame),
            _ => watch.own_end,
        };
        if watch.wait(event) {
            self.look_out(Reached { place, end: EndOfInput::Ahead });
        } else {
            self.settle();
        }
        None
    }

    /// Checks whether the input is still the same downlink. Returns whether there is more to poll
    /// for.
    fn look_out(&mut self, reached: Reached) -> bool {
        let Stage::Known(known) = &mut self.stage else { return false };
        let Known { found, watch, told, .. } = &mut **known;
        watch.held.drop_before(watch.own_end.byte());
        let successor = watch.look(found, &self.missions, &self.options, reached);
        match successor {
            Some(successor) if !self.options.is_bound() => {
                self.change(successor);
                return true;
            }
            Some(Successor { identification, .. }) => {
                // One report is enough; the next check follows after the same amount of input.
                watch.held.drop_first(watch.held.bytes.len());
                let other = (identification.mission.name().to_owned(), identification.scid);
                if told.as_ref() != Some(&other) {
                    *told = Some(other);
                    self.events.push_back(CaptureEvent::OtherDownlink(Box::new(identification)));
                }
            }
            None if reached.end == EndOfInput::Reached => self.release(usize::MAX),
            None => self.settle(),
        }
        !self.events.is_empty()
    }

    /// Ends the downlink with the events that are certainly before the next one, and continues with
    /// that one.
    fn change(&mut self, successor: Successor) {
        let Stage::Known(known) = &mut self.stage else { return };
        let Successor { identification, source, events, from } = successor;
        let Known { found, watch, .. } = &mut **known;
        watch.pending.retain(|event| match event {
            CaptureEvent::Frame(frame) => end_of(found, frame) <= from.plus_bits(PLACE_SLACK),
            _ => true,
        });
        self.release(usize::MAX);
        let Stage::Known(known) = &mut self.stage else { return };
        let held = core::mem::take(&mut known.watch.held);
        let start = known.watch.own_end.max(BitPosition::from_bits(8 * held.start));
        let bits = 8 * start.byte().saturating_sub(known.start.byte());
        let skipped_bits = bits.saturating_sub(known.frame_bits);
        let dropped_bits = core::mem::take(&mut self.dropped_bits);
        let sync =
            SyncCounts { bits: bits + dropped_bits, skipped_bits, dropped_bits, ..known.handed_on };
        let stats = CaptureStats { sync, ..core::mem::take(&mut self.stats) };
        self.events.push_back(CaptureEvent::Changed { at: from, stats });
        let watch = Watch::new(&identification, start, &self.options).holding(held);
        let mut next = Known::new(identification.clone(), source, watch, start);
        next.tail.hold(&next.watch.held);
        **known = Known { events, ..next };
        self.spacecraft.clear();
        self.events.push_back(CaptureEvent::Identified(Box::new(identification)));
    }

    /// Passes on the events that need not wait any longer.
    fn settle(&mut self) {
        let Stage::Known(known) = &self.stage else { return };
        self.release(known.watch.settled());
    }

    /// Passes on at most this many of the waiting events.
    fn release(&mut self, most: usize) {
        let Stage::Known(known) = &mut self.stage else { return };
        let pending = &mut known.watch.pending;
        let released: Vec<CaptureEvent> = pending.drain(..most.min(pending.len())).collect();
        released.into_iter().for_each(|event| self.hand_on(event));
    }

    fn hand_on(&mut self, event: CaptureEvent) {
        let Stage::Known(known) = &mut self.stage else { return };
        let counted = match event {
            CaptureEvent::Frame(frame) => {
                self.events.push_back(CaptureEvent::Frame(frame.clone()));
                return self.count(&frame);
            }
            CaptureEvent::Locked(_) => &mut known.handed_on.locks,
            _ => &mut known.handed_on.losses,
        };
        *counted += 1;
        self.events.push_back(event);
    }

    fn count(&mut self, frame: &CapturedFrame) {
        let Stage::Known(known) = &mut self.stage else { return };
        known.count(frame);
        if !frame.is_good() {
            self.stats.set_aside += 1;
            return;
        }
        let symbols = frame.quality.corrected_symbols();
        self.stats.good_frames += 1;
        self.stats.corrected_frames += u64::from(symbols > 0);
        self.stats.corrected_symbols += u64::from(symbols);
        let format = known.found.mission.frame();
        let Some((_, Channel { scid, .. }, _)) = frame::glimpse_as(&frame.bytes, format) else {
            return;
        };
        let others = self.spacecraft.len();
        let frames = match self.spacecraft.get_mut(&scid) {
            Some(frames) => frames,
            None if others >= MAX_SPACECRAFT => return,
            None => {
                self.spacecraft.entry(scid).or_insert(if others == 0 { BELIEVED_FRAMES } else { 0 })
            }
        };
        *frames += 1;
        if *frames == BELIEVED_FRAMES {
            let fits = |mission: &&Mission| {
                mission.scids().contains(&scid) && mission.frame().length == format.length
            };
            let known = self.missions.iter().find(fits);
            let mission = known.cloned().map(Box::new);
            self.events.push_back(CaptureEvent::OtherSpacecraft { scid, mission });
        }
    }
}

impl Known {
    fn new(found: Identification, source: FrameSource, watch: Watch, start: BitPosition) -> Self {
        let (events, handed_on, told) = (VecDeque::new(), SyncCounts::default(), None);
        let tail = Tail::new(&found, start);
        Self { found, source, watch, events, start, handed_on, frame_bits: 0, told, tail }
    }

    fn count(&mut self, frame: &CapturedFrame) {
        let (quality, counts) = (&frame.quality, &mut self.handed_on);
        counts.frames += 1;
        let end = end_of(&self.found, frame);
        self.frame_bits += end.as_bits() - frame.position.as_bits();
        self.tail.taken(end);
        counts.inverted += u64::from(quality.inverted);
        counts.slips += u64::from(quality.slip != 0);
        counts.flywheel += u64::from(quality.flywheel);
        counts.marker_errors += u64::from(quality.marker_errors);
    }
}

impl CaptureOptions {
    /// Whether the mission holds for the whole input.
    const fn is_bound(&self) -> bool {
        self.mission.is_some() && !self.may_change
    }

    /// The position from which an input must be read to get the frame at `position`: the same
    /// position, or an earlier one if symbols have to be decoded first.
    pub fn read_from(format: InputLayout, position: BitPosition) -> BitPosition {
        let Some(symbols) = format.symbols() else { return position };
        let from = position.as_bits().saturating_sub(InnerDecoder::lead(symbols));
        BitPosition::from_bits(from / 8 * 8)
    }

    /// Identifies the input; what the caller declared is not questioned.
    fn recognise(
        &self,
        sample: &[u8],
        missions: &MissionSet,
        end: EndOfInput,
    ) -> Result<Identification, Unidentified> {
        let Some(mission) = &self.mission else {
            return match self.format {
                Some(format) => match format.symbols() {
                    Some(symbols) => identify_symbols(sample, symbols, missions, end),
                    None => identify(sample, missions, end)
                        .map(|found| Identification { format, ..found }),
                },
                None => identify(sample, missions, end).or_else(|reason| {
                    identify_symbols(sample, Symbols::Hard, missions, end).map_err(|_| reason)
                }),
            };
        };
        let mut only = MissionSet::empty();
        only.add(mission.clone()).expect("an empty set has room");
        let has_inner = !mission.coding().inner.is_none();
        let is_own =
            |found: &Identification| found.mission.name() == mission.name() && !found.is_generic;
        let mut found = match self.format.and_then(InputLayout::symbols) {
            Some(symbols) => identify_symbols(sample, symbols, &only, end),
            None => identify(sample, &only, end),
        };
        if self.format.is_none() && has_inner && !found.as_ref().is_ok_and(is_own) {
            found = identify_symbols(sample, Symbols::Hard, &only, end);
            if !found.as_ref().is_ok_and(is_own)
                && end == EndOfInput::Ahead
                && sample.len() < SYMBOLS_SHOW
            {
                return Err(found.err().unwrap_or(Unidentified::Nothing));
            }
        }
        let own = found.ok().filter(is_own);
        // The caller named the mission: an input without any sign of it so far is read as bits, if
        // the mission allows it.
        let format =
            if mission.frame().is_variable() { InputLayout::Frames } else { InputLayout::Bits };
        Ok(own.unwrap_or_else(|| Identification::given(format, mission.clone())))
    }
}
