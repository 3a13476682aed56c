//! Frames from an identified input: behind markers, or bare.

use super::CaptureOptions;
use crate::decode::{BlockDecoder, CheckSymbols, DecodedBlock};
use crate::delimit::{Cut, Delimiter};
use crate::end_of_input::EndOfInput;
use crate::identify::InputLayout;
use crate::inner::InnerDecoder;
use crate::mission::Mission;
use crate::quality::{BitPosition, CapturedFrame, Quality};
use crate::sync::SyncCounts;
use crate::sync::{Found, SyncEvent, Synchroniser};
use skyhaul_units::Utc;
use std::collections::VecDeque;

/// What comes out of a stage.
#[derive(Debug)]
pub(super) enum StageEvent {
    Locked(BitPosition),
    Lost(BitPosition),
    Frame(CapturedFrame),
}

/// What makes frames of an input.
#[derive(Debug)]
pub(super) enum FrameSource {
    Bits(Box<BitStage>),
    Frames(Box<FrameStage>),
}

/// Frames behind markers.
#[derive(Debug)]
pub(super) struct BitStage {
    /// Decodes symbols to bits, if the input has symbols.
    inner: Option<InnerDecoder>,
    /// The bits of one push.
    bits: Vec<u8>,
    /// When the last input was received.
    received: Utc,
    sync: Synchroniser<DecodedBlock>,
    decoder: BlockDecoder,
    /// Bits from one marker to the next.
    block_bits: u64,
}

/// Frames one after the other.
#[derive(Debug)]
pub(super) struct FrameStage {
    decoder: BlockDecoder,
    frame_len: usize,
    /// Where frames say their own length.
    delimiter: Option<Delimiter>,
    /// Bytes of an incomplete frame: at most the longest frame and the header of the next.
    partial: Vec<u8>,
    /// When the last input was received.
    received: Utc,
    /// Bits before the partial frame.
    position: u64,
    /// Bits that belong to no frame.
    skipped: u64,
    ready: VecDeque<CapturedFrame>,
    bits: u64,
    frames: u64,
}

impl FrameSource {
    /// For an input of this layout, whose first byte pushed holds the bit `start`.
    pub fn new(
        mission: &Mission,
        format: InputLayout,
        start: BitPosition,
        options: &CaptureOptions,
    ) -> Self {
        match format {
            InputLayout::Bits | InputLayout::Cadus | InputLayout::Symbols | InputLayout::Soft => {
                Self::Bits(Box::new(BitStage::new(mission, format, start, options)))
            }
            InputLayout::Frames => {
                Self::Frames(Box::new(FrameStage::new(mission, start.as_bits())))
            }
        }
    }

    /// Takes the next bytes of the input.
    pub fn push(&mut self, received: Utc, bytes: &[u8]) {
        match self {
            Self::Bits(stage) => stage.push(received, bytes),
            Self::Frames(stage) => stage.push(received, bytes),
        }
    }

    /// The input ends here.
    pub fn finish(&mut self) {
        match self {
            Self::Bits(stage) => stage.finish(),
            Self::Frames(stage) => stage.finish(),
        }
    }

    /// The next event; `None` where more bytes are needed.
    pub fn poll(&mut self) -> Option<StageEvent> {
        match self {
            Self::Frames(stage) => stage.ready.pop_front().map(StageEvent::Frame),
            Self::Bits(stage) => Some(match stage.sync.poll(&mut stage.decoder)? {
                SyncEvent::Locked(position) => StageEvent::Locked(stage.place(position)),
                SyncEvent::Lost(position) => StageEvent::Lost(stage.place(position)),
                SyncEvent::Found(found) => {
                    let position = stage.place(found.position);
                    StageEvent::Frame(CapturedFrame { position, ..captured(found) })
                }
            }),
        }
    }

    /// The end in the input of the last frame that waits to be polled, is good and `is_own`.
    pub fn end_of_last(&self, is_own: impl Fn(&[u8]) -> bool) -> Option<BitPosition> {
        match self {
            Self::Bits(stage) => {
                let end = stage.sync.waiting().rev().find_map(|event| match event {
                    SyncEvent::Found(found) if found.opinion.set_aside.is_none() => {
                        is_own(&found.opinion.bytes)
                            .then(|| found.position.plus_bits(stage.block_bits))
                    }
                    _ => None,
                });
                end.map(|end| stage.place(end))
            }
            Self::Frames(stage) => {
                let last =
                    stage.ready.iter().rev().find(|frame| frame.is_good() && is_own(&frame.bytes));
                last.map(|frame| frame.position.plus_bits(8 * frame.bytes.len() as u64))
            }
        }
    }

    /// The synchroniser's counts. At the end of the input, an incomplete frame counts as skipped.
    pub fn counts(&self, end: EndOfInput) -> SyncCounts {
        match self {
            Self::Bits(stage) => stage.sync.counts(),
            Self::Frames(stage) => SyncCounts {
                bits: stage.bits,
                frames: stage.frames,
                skipped_bits: stage.skipped
                    + match end {
                        EndOfInput::Ahead => 0,
                        EndOfInput::Reached => 8 * stage.partial.len() as u64,
                    },
                ..SyncCounts::default()
            },
        }
    }

    /// Whether frames are being followed.
    pub fn is_locked(&self) -> bool {
        match self {
            Self::Bits(stage) => stage.sync.is_locked(),
            Self::Frames(_) => true,
        }
    }
}

impl BitStage {
    fn new(
        mission: &Mission,
        format: InputLayout,
        start: BitPosition,
        options: &CaptureOptions,
    ) -> Self {
        let inner = format.symbols().map(|symbols| {
            InnerDecoder::new(mission.coding().inner, symbols, start, options.kernel)
        });
        let check_symbols =
            if options.keep_check_symbols { CheckSymbols::Kept } else { CheckSymbols::Dropped };
        let mut decoder = BlockDecoder::with_kernel(mission, check_symbols, options.kernel);
        if format == InputLayout::Soft {
            decoder.take_soft_bits(mission.coding().inner.line);
        }
        let start = if inner.is_some() { BitPosition::START } else { start };
        Self {
            sync: Synchroniser::new(
                options.sync,
                mission.coding().marker,
                mission.block_len(),
                start,
            ),
            decoder,
            inner,
            bits: Vec::new(),
            received: Utc::default(),
            block_bits: 8 * mission.cadu_len() as u64,
        }
    }

    fn push(&mut self, received: Utc, bytes: &[u8]) {
        let bits = match &mut self.inner {
            None => bytes,
            Some(inner) => {
                self.bits.clear();
                inner.push(bytes, &mut self.bits);
                self.decoder.soft_bits(bytes, self.sync.held_from());
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

    /// Converts a position in the bits to one in the input.
    fn place(&self, position: BitPosition) -> BitPosition {
        self.inner.as_ref().map_or(position, |inner| inner.position(position.as_bits()))
    }
}

impl FrameStage {
    fn new(mission: &Mission, position: u64) -> Self {
        Self {
            decoder: BlockDecoder::bare(mission),
            frame_len: mission.frame().length,
            delimiter: mission.frame().is_variable().then(|| Delimiter::new(mission)),
            partial: Vec::new(),
            received: Utc::default(),
            position,
            skipped: 0,
            ready: VecDeque::new(),
            bits: 0,
            frames: 0,
        }
    }

    fn push(&mut self, received: Utc, bytes: &[u8]) {
        self.bits += 8 * bytes.len() as u64;
        self.partial.extend_from_slice(bytes);
        self.received = received;
        if self.delimiter.is_some() {
            return self.cut(EndOfInput::Ahead);
        }
        let whole = self.partial.len() / self.frame_len * self.frame_len;
        let partial = self.partial.split_off(whole);
        let frames = core::mem::replace(&mut self.partial, partial);
        frames.chunks_exact(self.frame_len).for_each(|frame| self.take(frame));
    }

    fn finish(&mut self) {
        self.cut(EndOfInput::Reached);
    }

    /// Takes the complete frames of a format with a length field.
    fn cut(&mut self, end: EndOfInput) {
        let Some(mut delimiter) = self.delimiter.take() else { return };
        let held = core::mem::take(&mut self.partial);
        let mut at = 0;
        while let Some(cut) = delimiter.cut(&held[at..], end) {
            let len = match cut {
                Cut::Frame(len) => {
                    self.take(&held[at..at + len]);
                    len
                }
                Cut::Skipped(len) => {
                    self.position += 8 * len as u64;
                    self.skipped += 8 * len as u64;
                    len
                }
            };
            at += len;
        }
        self.partial.extend_from_slice(&held[at..]);
        self.delimiter = Some(delimiter);
    }

    fn take(&mut self, frame: &[u8]) {
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
            received: self.received,
            position,
            quality,
            set_aside: decoded.set_aside,
            bytes: decoded.bytes,
            check_symbols: decoded.check_symbols,
        });
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
            iterations: decoded.iterations,
            fhec: decoded.fhec,
            fecf: decoded.fecf,
        },
        set_aside: decoded.set_aside,
        bytes: decoded.bytes,
        check_symbols: decoded.check_symbols,
    }
}
