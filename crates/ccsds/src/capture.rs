//! The capture pipeline: from the bytes of a receiver or a file to captured frames.
//!
//! `push` bytes with the time of their reception, then `poll` until `None`. An input of unknown kind is held
//! until it is identified; then everything held is captured from its first bit on. Memory is bounded: what is
//! held for identifying by [`CaptureOptions::identify_limit`], after that a few blocks; beyond that only what one
//! `push` brings.

use crate::decode::{BlockDecoder, DecodedBlock};
use crate::frame;
use crate::id::{Channel, Scid};
use crate::identify::{Identification, InputFormat, Unidentified, identify};
use crate::inner::{InnerDecoder, Symbols, identify_symbols};
use crate::likeness::mistaken;
use crate::mission::{FrameFormat, Mission, MissionSet};
use crate::quality::{BitPosition, CapturedFrame, Quality};
use crate::record::SyncCounts;
use crate::sync::{Found, SyncConfig, SyncEvent, Synchroniser};
use skyhaul_coding::gf::Kernel;
use skyhaul_units::Utc;
use std::collections::{BTreeMap, VecDeque};

/// What the caller knows of the input.
#[derive(Debug, Clone)]
pub struct CaptureOptions {
    /// How it is laid out; `None`: found out.
    pub format: Option<InputFormat>,
    /// The mission; `None`: found out.
    pub mission: Option<Mission>,
    /// Where the input goes on: the first byte pushed holds this bit. Later than the start needs a mission.
    pub start: BitPosition,
    /// Frames that begin before this place of the input are passed over: they are known. Symbols have to be decoded from
    /// further back than the frame wanted, see [`CaptureOptions::read_from`].
    pub frames_from: BitPosition,
    /// Good frames come with their check symbols.
    pub keep_check_symbols: bool,
    /// Thresholds of the synchroniser.
    pub sync: SyncConfig,
    /// Most bytes held while the input is not identified; beyond it the older half is dropped and counted. Default
    /// 256 KiB: 140 ms at 15 Mbit/s, 250 frames. At least 16 KiB.
    pub identify_limit: usize,
    /// The instructions to decode with. Default: the fastest that the processor has; the results are the same for all.
    pub kernel: Kernel,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        Self {
            format: None,
            mission: None,
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
    /// The input is known now; frames follow. Reported once, also where the caller named the mission.
    Identified(Box<Identification>),
    /// The synchroniser is in lock from here on.
    Locked(BitPosition),
    /// A frame, good or set aside.
    Frame(CapturedFrame),
    /// The synchroniser lost lock; the last frame ended here.
    LockLost(BitPosition),
    /// Frames of one more spacecraft are in the stream: reported at its second one.
    OtherSpacecraft {
        /// Its id.
        scid: Scid,
        /// Its mission, where it is a known one.
        mission: Option<Box<Mission>>,
    },
    /// The input ended and was never identified.
    Unidentified(Unidentified),
}

/// What became of the input so far.
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
    /// Of the frames, once it is known.
    format: Option<FrameFormat>,
    spacecraft: BTreeMap<Scid, u64>,
    dropped_bits: u64,
    /// What the input looks like, where it was taken for something else and nothing was found so far.
    doubt: Option<Unidentified>,
    ended: bool,
}

#[derive(Debug)]
enum Stage {
    /// Held until it is known what it is.
    Unknown(Held),
    Bits(Box<BitStage>),
    Frames(Box<FrameStage>),
}

#[derive(Debug, Default)]
struct Held {
    bytes: Vec<u8>,
    /// Place of the first byte held, in bytes.
    start: u64,
    /// Ends of the pushes in held bytes, and their times.
    arrivals: VecDeque<(usize, Utc)>,
    /// Bytes held when identifying was tried last.
    tried: usize,
}

#[derive(Debug)]
struct BitStage {
    /// Makes bits of symbols, where symbols come.
    inner: Option<InnerDecoder>,
    /// Bits that were made of one push.
    bits: Vec<u8>,
    /// When the last of the input came.
    received: Utc,
    sync: Synchroniser<DecodedBlock>,
    decoder: BlockDecoder,
}

#[derive(Debug)]
struct FrameStage {
    decoder: BlockDecoder,
    frame_len: usize,
    /// Bytes of a frame that is not whole yet.
    partial: Vec<u8>,
    /// Bits before the partial frame.
    position: u64,
    ready: VecDeque<CapturedFrame>,
    bits: u64,
    frames: u64,
}

/// Identifying is first tried with this many bytes, some frames, and then each time that twice as many have come.
const FIRST_TRY_BYTES: usize = 8 * 1024;
/// Bits by which a frame may begin before the place from which frames are wanted, and be the one meant: places among symbols
/// are rounded, and no frame is that short.
const PLACE_SLACK: u64 = 64;
/// Bytes by which a mission that has an inner code, and was named by the caller, shows whether bits come or symbols.
const SYMBOLS_SHOW: usize = 64 * 1024;
/// Most pushes whose times are told apart while the input is unknown.
const MAX_ARRIVALS: usize = 4_096;
/// Most spacecraft looked out for.
const MAX_SPACECRAFT: usize = 64;
/// Good frames after which a spacecraft is believed to be there.
const BELIEVED_FRAMES: u64 = 2;

impl Capture {
    /// Begins. With a mission and no format, bits are expected (CADUs are bits, too); with the mission of bare
    /// frames, give [`InputFormat::Frames`].
    pub fn new(missions: MissionSet, options: CaptureOptions) -> Self {
        let mut capture = Self {
            missions: missions.identifiable(),
            stage: Stage::Unknown(Held { start: options.start.byte(), ..Held::default() }),
            options,
            events: VecDeque::new(),
            stats: CaptureStats::default(),
            format: None,
            spacecraft: BTreeMap::new(),
            dropped_bits: 0,
            doubt: None,
            ended: false,
        };
        if let (Some(mission), Some(format)) = (capture.options.mission.clone(), capture.options.format) {
            capture.begin(Identification::given(format, mission));
        }
        capture
    }

    /// Takes the next bytes of the input, whose last bit was received at `received`.
    pub fn push(&mut self, received: Utc, bytes: &[u8]) {
        let received = Utc::from_micros(received.as_micros());
        match &mut self.stage {
            Stage::Bits(stage) => stage.push(received, bytes),
            Stage::Frames(stage) => stage.push(received, bytes),
            Stage::Unknown(held) => {
                held.push(received, bytes);
                self.try_to_identify();
            }
        }
    }

    /// The input ends here. Poll for what is left.
    pub fn finish(&mut self) {
        if self.ended {
            return;
        }
        self.ended = true;
        if let Stage::Unknown(_) = &self.stage {
            self.try_to_identify();
        }
        match &mut self.stage {
            Stage::Bits(stage) => stage.finish(),
            Stage::Frames(_) | Stage::Unknown(_) => {}
        }
    }

    /// The next event; `None` where more bytes are needed, or after the end.
    pub fn poll(&mut self) -> Option<CaptureEvent> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        loop {
            let frame = match &mut self.stage {
                Stage::Unknown(_) => return None,
                Stage::Frames(stage) => stage.ready.pop_front()?,
                Stage::Bits(stage) => match stage.sync.poll(&mut stage.decoder)? {
                    SyncEvent::Locked(position) => return Some(CaptureEvent::Locked(stage.place(position))),
                    SyncEvent::Lost(position) => return Some(CaptureEvent::LockLost(stage.place(position))),
                    SyncEvent::Found(found) => {
                        let position = stage.place(found.position);
                        CapturedFrame { position, ..captured(found) }
                    }
                },
            };
            if frame.position.as_bits() + PLACE_SLACK < self.options.frames_from.as_bits() {
                continue;
            }
            self.count(&frame);
            return Some(CaptureEvent::Frame(frame));
        }
    }

    /// What became of the input so far.
    pub fn stats(&self) -> CaptureStats {
        let sync = match &self.stage {
            Stage::Bits(stage) => stage.sync.counts(),
            Stage::Frames(stage) => SyncCounts {
                bits: stage.bits,
                frames: stage.frames,
                skipped_bits: if self.ended { 8 * stage.partial.len() as u64 } else { 0 },
                ..SyncCounts::default()
            },
            Stage::Unknown(held) => SyncCounts { bits: 8 * held.bytes.len() as u64, ..SyncCounts::default() },
        };
        let dropped_bits = self.dropped_bits;
        let sync = SyncCounts { bits: sync.bits + dropped_bits, dropped_bits, ..sync };
        CaptureStats { sync, ..self.stats }
    }

    /// What is odd about an input in which nothing was found so far.
    pub const fn doubt(&self) -> Option<Unidentified> {
        match self.stage {
            Stage::Unknown(_) => self.doubt,
            Stage::Bits(_) | Stage::Frames(_) => None,
        }
    }

    /// Whether frames are being followed.
    pub fn is_locked(&self) -> bool {
        match &self.stage {
            Stage::Bits(stage) => stage.sync.is_locked(),
            Stage::Frames(_) => true,
            Stage::Unknown(_) => false,
        }
    }

    fn try_to_identify(&mut self) {
        let Stage::Unknown(held) = &mut self.stage else { return };
        let more = held.tried.clamp(FIRST_TRY_BYTES, (self.options.identify_limit / 2).max(FIRST_TRY_BYTES));
        if !self.ended && held.bytes.len() < held.tried + more {
            return;
        }
        held.tried = held.bytes.len();
        match self.options.recognise(&held.bytes, &self.missions, self.ended) {
            Ok(identification) => self.begin(identification),
            Err(reason) if self.ended => {
                let reason = mistaken(&held.bytes, self.options.format).unwrap_or(reason);
                self.dropped_bits += 8 * held.bytes.len() as u64;
                *held = Held::default();
                self.events.push_back(CaptureEvent::Unidentified(reason));
            }
            Err(_) => {
                if held.bytes.len() >= self.options.identify_limit {
                    self.doubt = mistaken(&held.bytes, self.options.format);
                    self.dropped_bits += 8 * held.drop_older(self.options.identify_limit / 2);
                }
            }
        }
    }

    /// Captures from the first held byte on.
    fn begin(&mut self, identification: Identification) {
        let Identification { format, mission, .. } = &identification;
        let Stage::Unknown(held) = &mut self.stage else { return };
        let held = core::mem::take(held);
        self.format = Some(*mission.frame());
        let start = self.options.start.as_bits().max(8 * held.start);
        self.stage = match format {
            InputFormat::Bits | InputFormat::Cadus | InputFormat::Symbols | InputFormat::Soft => {
                let start = BitPosition::from_bits(start);
                Stage::Bits(Box::new(BitStage::new(mission, *format, start, &self.options)))
            }
            InputFormat::Frames => Stage::Frames(Box::new(FrameStage::new(mission, start))),
        };
        self.events.push_back(CaptureEvent::Identified(Box::new(identification)));
        let mut from = 0;
        for (end, received) in held.arrivals {
            self.push(received, &held.bytes[from..end]);
            from = end;
        }
    }

    fn count(&mut self, frame: &CapturedFrame) {
        if !frame.is_good() {
            self.stats.set_aside += 1;
            return;
        }
        let symbols = frame.quality.corrected.total();
        self.stats.good_frames += 1;
        self.stats.corrected_frames += u64::from(symbols > 0);
        self.stats.corrected_symbols += u64::from(symbols);
        let seen = self.format.and_then(|format| frame::glimpse_as(&frame.bytes, &format));
        let Some((_, Channel { scid, .. }, _)) = seen else { return };
        let others = self.spacecraft.len();
        let frames = match self.spacecraft.get_mut(&scid) {
            Some(frames) => frames,
            None if others >= MAX_SPACECRAFT => return,
            None => self.spacecraft.entry(scid).or_insert(if others == 0 { BELIEVED_FRAMES } else { 0 }),
        };
        *frames += 1;
        if *frames == BELIEVED_FRAMES {
            let fits = |mission: &&Mission| {
                mission.scids().contains(&scid)
                    && Some(mission.frame().length) == self.format.map(|f| f.length)
            };
            let known = self.missions.iter().find(fits);
            let mission = known.cloned().map(Box::new);
            self.events.push_back(CaptureEvent::OtherSpacecraft { scid, mission });
        }
    }
}

impl CaptureOptions {
    /// The place to read an input from so that the frame at `position` comes out: the place itself, or further back where
    /// symbols have to be decoded first.
    pub fn read_from(format: InputFormat, position: BitPosition) -> BitPosition {
        let Some(symbols) = format.symbols() else { return position };
        let from = position.as_bits().saturating_sub(InnerDecoder::lead(symbols));
        BitPosition::from_bits(from / 8 * 8)
    }

    /// What the input is, with what the caller knows of it taken for granted.
    fn recognise(
        &self,
        sample: &[u8],
        missions: &MissionSet,
        is_whole: bool,
    ) -> Result<Identification, Unidentified> {
        let Some(mission) = &self.mission else {
            return match self.format {
                Some(format) => match format.symbols() {
                    Some(symbols) => identify_symbols(sample, symbols, missions, is_whole),
                    None => {
                        identify(sample, missions, is_whole).map(|found| Identification { format, ..found })
                    }
                },
                None => identify(sample, missions, is_whole).or_else(|reason| {
                    identify_symbols(sample, Symbols::Hard, missions, is_whole).map_err(|_| reason)
                }),
            };
        };
        let mut only = MissionSet::empty();
        only.add(mission.clone()).expect("an empty set has room");
        let has_inner = !mission.coding().inner.is_none();
        let is_own = |found: &Identification| found.mission.name() == mission.name() && !found.is_generic;
        let mut found = match self.format.and_then(InputFormat::symbols) {
            Some(symbols) => identify_symbols(sample, symbols, &only, is_whole),
            None => identify(sample, &only, is_whole),
        };
        if self.format.is_none() && has_inner && !found.as_ref().is_ok_and(is_own) {
            found = identify_symbols(sample, Symbols::Hard, &only, is_whole);
            if !found.as_ref().is_ok_and(is_own) && !is_whole && sample.len() < SYMBOLS_SHOW {
                return Err(found.err().unwrap_or(Unidentified::Nothing));
            }
        }
        let own = found.ok().filter(is_own);
        // The caller names the mission: an input that shows no sign of it yet is taken for bits.
        Ok(own.unwrap_or_else(|| Identification::given(InputFormat::Bits, mission.clone())))
    }
}

impl BitStage {
    fn new(mission: &Mission, format: InputFormat, start: BitPosition, options: &CaptureOptions) -> Self {
        let inner = format
            .symbols()
            .map(|symbols| InnerDecoder::new(mission.coding().inner, symbols, start, options.kernel));
        let start = if inner.is_some() { BitPosition::START } else { start };
        Self {
            sync: Synchroniser::new(options.sync, mission.coding().marker, mission.block_len(), start),
            decoder: BlockDecoder::with_kernel(mission, options.keep_check_symbols, options.kernel),
            inner,
            bits: Vec::new(),
            received: Utc::default(),
        }
    }

    fn push(&mut self, received: Utc, bytes: &[u8]) {
        let bits = match &mut self.inner {
            None => bytes,
            Some(inner) => {
                self.bits.clear();
                inner.push(bytes, &mut self.bits);
                &self.bits
            }
        };
        self.sync.push_through(received, bits, &mut self.decoder);
        self.received = received;
    }

    fn finish(&mut self) {
        if let Some(inner) = &mut self.inner {
            self.bits.clear();
            inner.finish(&mut self.bits);
            self.sync.push_through(self.received, &self.bits, &mut self.decoder);
        }
        self.sync.finish();
    }

    /// A place in the bits as one of the input.
    fn place(&self, position: BitPosition) -> BitPosition {
        self.inner.as_ref().map_or(position, |inner| inner.position(position.as_bits()))
    }
}

impl Held {
    fn push(&mut self, received: Utc, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let end = self.bytes.len();
        let is_full = self.arrivals.len() >= MAX_ARRIVALS;
        match self.arrivals.back_mut() {
            Some(last) if last.1 == received || is_full => *last = (end, received),
            _ => self.arrivals.push_back((end, received)),
        }
    }

    /// Keeps the newest `keep` bytes; returns how many were dropped.
    fn drop_older(&mut self, keep: usize) -> u64 {
        let dropped = self.bytes.len().saturating_sub(keep);
        self.bytes.drain(..dropped);
        self.start += dropped as u64;
        self.tried = self.bytes.len();
        self.arrivals.retain(|(end, _)| *end > dropped);
        for (end, _) in &mut self.arrivals {
            *end -= dropped;
        }
        dropped as u64
    }
}

impl FrameStage {
    fn new(mission: &Mission, position: u64) -> Self {
        Self {
            decoder: BlockDecoder::bare(mission),
            frame_len: mission.frame().length,
            partial: Vec::new(),
            position,
            ready: VecDeque::new(),
            bits: 0,
            frames: 0,
        }
    }

    fn push(&mut self, received: Utc, bytes: &[u8]) {
        self.bits += 8 * bytes.len() as u64;
        self.partial.extend_from_slice(bytes);
        let whole = self.partial.len() / self.frame_len * self.frame_len;
        let partial = self.partial.split_off(whole);
        let frames = core::mem::replace(&mut self.partial, partial);
        for frame in frames.chunks_exact(self.frame_len) {
            let decoded = self.decoder.decode(frame);
            let position = BitPosition::from_bits(self.position);
            self.position += 8 * frame.len() as u64;
            self.frames += 1;
            let quality = Quality {
                verdict: decoded.verdict,
                fhec: decoded.fhec,
                fecf: decoded.fecf,
                ..Quality::NOT_CHECKED
            };
            self.ready.push_back(CapturedFrame {
                received,
                position,
                quality,
                set_aside: decoded.set_aside,
                bytes: decoded.bytes,
                check_symbols: decoded.check_symbols,
            });
        }
    }
}

fn captured(found: Found<DecodedBlock>) -> CapturedFrame {
    let decoded = found.opinion;
    CapturedFrame {
        received: found.received,
        position: found.position,
        quality: Quality {
            marker_errors: found.marker_errors,
            inverted: found.inverted,
            slip: found.slip,
            flywheel: found.flywheel,
            verdict: decoded.verdict,
            corrected: decoded.corrected,
            fhec: decoded.fhec,
            fecf: decoded.fecf,
        },
        set_aside: decoded.set_aside,
        bytes: decoded.bytes,
        check_symbols: decoded.check_symbols,
    }
}
