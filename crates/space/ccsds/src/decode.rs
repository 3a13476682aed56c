//! From a block after a marker to a transfer frame: derandomise, correct, check.

mod memory;
mod parity;

use crate::frame::{Check, Frame, FrameError};
use crate::id::Scid;
use crate::inner::LineCode;
use crate::mission::{Derandomise, FrameFormat, Mission};
use crate::quality::{CapturedFrame, CorrectedSymbols, FrameVerdict, Iterations, Reason};
use crate::sync::{Judge, Judgement, Run};
use bytes::Bytes;
use memory::RunMemory;
use parity::{ParityDecoder, Place, SoftBits};
use skyhaul_coding::align::Polarity;
use skyhaul_coding::gf::Kernel;
use skyhaul_coding::marker::Marker;
use skyhaul_coding::{BatchDecoder, Codeword, Decoded, ReedSolomon, Sequence};
use std::sync::Arc;

/// What decoding made of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedBlock {
    /// What error control said.
    pub verdict: FrameVerdict,
    /// Why it is set aside; `None` for a good frame.
    pub set_aside: Option<Reason>,
    /// Symbols corrected; empty for a clean block.
    pub corrected: CorrectedSymbols,
    /// Of a low-density parity-check code.
    pub iterations: Option<Iterations>,
    /// Header error control.
    pub fhec: Check,
    /// Frame error control.
    pub fecf: Check,
    /// The spacecraft in the header, if it has one.
    pub scid: Option<Scid>,
    /// The frame, or, where it is set aside, the block as received. Frames of one run share their
    /// memory: copy a frame that is kept longer than the others.
    pub bytes: Bytes,
    /// Check symbols after correction, where they are kept.
    pub check_symbols: Bytes,
}

/// Whether a block's check symbols are kept after decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckSymbols {
    /// They come with the frame: [`DecodedBlock::check_symbols`].
    Kept,
    /// They are dropped.
    Dropped,
}

/// Decodes and encodes the blocks of one mission.
#[derive(Debug, Clone)]
pub struct BlockDecoder {
    rules: Rules,
    kernel: Kernel,
    randomiser: Option<(Sequence, Derandomise)>,
    code: Option<ReedSolomon>,
    /// The code, for many blocks at once.
    decoder: Option<Box<BatchDecoder>>,
    /// Of missions with a low-density parity-check code.
    parity: Option<Box<ParityDecoder>>,
    /// Position in the soft bits of the next block to decode.
    place: Place,
    block_len: usize,
    work: Vec<u8>,
    memory: RunMemory,
}

/// Makes a frame of a decoded block.
#[derive(Debug, Clone)]
struct Rules {
    format: FrameFormat,
    /// The mission's spacecraft; any where none is named.
    scids: Arc<[Scid]>,
    check_symbols: CheckSymbols,
}

impl BlockDecoder {
    /// For a mission's blocks, with the fastest instructions that the processor has.
    pub fn new(mission: &Mission, check_symbols: CheckSymbols) -> Self {
        Self::with_kernel(mission, check_symbols, Kernel::best())
    }

    /// With given instructions. The results are the same for all.
    pub fn with_kernel(mission: &Mission, check_symbols: CheckSymbols, kernel: Kernel) -> Self {
        let block_len = mission.block_len();
        let randomiser = mission.coding().randomiser;
        let code = mission.reed_solomon();
        Self {
            rules: Rules::new(mission, check_symbols),
            kernel,
            randomiser: randomiser.map(|(kind, place)| (kind.sequence(block_len), place)),
            decoder: code.as_ref().map(|code| Box::new(BatchDecoder::with_kernel(code, kernel))),
            parity: mission.coding().ldpc.map(|code| {
                Box::new(ParityDecoder::new(code, randomiser.map(|(kind, _)| kind), kernel))
            }),
            place: NO_PLACE,
            code,
            block_len,
            work: Vec::with_capacity(block_len),
            memory: RunMemory::default(),
        }
    }

    /// For bare frames of a mission: there is nothing to derandomise or correct, only the frame's
    /// own checks apply.
    pub fn bare(mission: &Mission) -> Self {
        Self {
            rules: Rules::new(mission, CheckSymbols::Dropped),
            kernel: Kernel::best(),
            randomiser: None,
            code: None,
            decoder: None,
            parity: None,
            place: NO_PLACE,
            block_len: mission.frame().length,
            work: Vec::with_capacity(mission.frame().length),
            memory: RunMemory::default(),
        }
    }

    /// Decodes a block of the mission's length in true polarity.
    ///
    /// # Panics
    /// Where the block has another length.
    pub fn decode(&mut self, block: &[u8]) -> DecodedBlock {
        let is_shorter =
            self.rules.format.is_variable() && self.rules.format.has_length(block.len());
        let fits = block.len() == self.block_len || is_shorter;
        assert!(fits, "a block of {} bytes where the mission has {}", block.len(), self.block_len);
        if let Some(parity) = &mut self.parity {
            let mut work = core::mem::take(&mut self.work);
            work.clear();
            let blocks = core::iter::once((block, self.place));
            let outcome = parity.decode(blocks, &mut work).first().map(parity::outcome);
            work.resize(self.block_len, 0);
            let decoded = self.rules.check_codeword(parity, &mut work, outcome, block);
            self.work = work;
            self.place = NO_PLACE;
            return decoded;
        }
        let mut work = core::mem::take(&mut self.work);
        work.clear();
        work.extend_from_slice(block);
        if let Some((sequence, Derandomise::BeforeDecoding)) = &self.randomiser {
            sequence.apply_with(self.kernel, 0, &mut work);
        }
        let outcome = self.code.as_ref().map(|code| error_control(&code.decode(&mut work)));
        if let Some((sequence, Derandomise::AfterDecoding { skip })) = &self.randomiser {
            sequence.apply_with(self.kernel, 0, &mut work[*skip..self.rules.format.length]);
        }
        let decoded = self.rules.check(&work, outcome, Bytes::copy_from_slice, block);
        self.work = work;
        decoded
    }

    /// Appends marker and block of a transfer frame to `out`: check symbols computed, randomised.
    ///
    /// # Panics
    /// Where the frame has not the mission's length.
    pub fn encode(&self, marker: Marker, frame: &[u8], out: &mut Vec<u8>) {
        assert!(self.rules.format.has_length(frame.len()), "frame length of the mission");
        let block_len = if self.rules.format.is_variable() { frame.len() } else { self.block_len };
        marker.append_to(out);
        let start = out.len();
        out.extend_from_slice(frame);
        out.resize(start + block_len, 0);
        let block = &mut out[start..];
        if let Some((sequence, Derandomise::AfterDecoding { skip })) = &self.randomiser {
            sequence.apply(0, &mut block[*skip..frame.len()]);
        }
        if let Some(code) = &self.code {
            let (data, check) = block.split_at_mut(frame.len());
            code.encode(data, check);
        }
        if let Some(parity) = &self.parity {
            parity.encode(frame, block);
        }
        if let Some((sequence, Derandomise::BeforeDecoding)) = &self.randomiser {
            sequence.apply(0, block);
        }
    }

    /// From now on, blocks of codes that profit from it get a position in the soft bits:
    /// [`Self::soft_bits`].
    pub fn take_soft_bits(&mut self, line: LineCode) {
        if let Some(parity) = &mut self.parity {
            parity.take_soft(SoftBits::new(line));
        }
    }

    /// Takes the symbols of the next bits of the stream, a byte each, whose sign is the bit. Bits
    /// before number `from` will not be decoded any more.
    pub fn soft_bits(&mut self, symbols: &[u8], from: u64) {
        if let Some(soft) = self.parity.as_mut().and_then(|parity| parity.soft()) {
            soft.push(symbols, from);
        }
    }

    /// Decodes a run of codewords at once.
    fn judge_codewords(&mut self, run: Run<'_>, take: &mut dyn FnMut(Judgement, DecodedBlock)) {
        let Some(parity) = &mut self.parity else { return };
        let places = (0..).map(|index| Place {
            position: run.position + index * 8 * run.stride as u64,
            polarity: run.polarity,
        });
        let (mut frames, len) = (Vec::new(), self.rules.format.length);
        let outcomes = parity.decode(run.blocks().zip(places), &mut frames);
        for ((received, frame), outcome) in
            run.blocks().zip(frames.chunks_exact(len)).zip(&outcomes)
        {
            let work = &mut self.work;
            work.clear();
            work.extend_from_slice(frame);
            work.resize(self.block_len, 0);
            let outcome = Some(parity::outcome(outcome));
            let decoded = self.rules.check_codeword(parity, work, outcome, received);
            take(self.rules.judgement(&decoded, received), decoded);
        }
    }
}

const NO_PLACE: Place = Place { position: u64::MAX, polarity: Polarity::Upright };

impl Judge for BlockDecoder {
    type Opinion = DecodedBlock;

    fn aim(&mut self, position: u64, polarity: Polarity) {
        self.place = Place { position, polarity };
    }

    fn judge(&mut self, block: &[u8]) -> (Judgement, DecodedBlock) {
        let decoded = self.decode(block);
        (self.rules.judgement(&decoded, block), decoded)
    }

    fn judge_run(&mut self, run: Run<'_>, take: &mut dyn FnMut(Judgement, DecodedBlock)) {
        let len = run.block_len;
        assert_eq!(len, self.block_len, "block length of the mission");
        if self.parity.is_some() {
            return self.judge_codewords(run, take);
        }
        let Self { rules, kernel, randomiser, decoder, memory, .. } = self;
        let (before, after) = match randomiser {
            Some((sequence, Derandomise::BeforeDecoding)) => (Some(&*sequence), None),
            Some((sequence, Derandomise::AfterDecoding { skip })) => {
                (None, Some((&*sequence, *skip)))
            }
            None => (None, None),
        };
        let total = len * run.blocks().count();
        let mut room = memory.room(total);
        let blocks = &mut room[..total];
        let outcomes = match decoder {
            Some(decoder) => decoder.receive_from(run.stretches, run.stride, before, blocks),
            None => {
                for (block, received) in blocks.chunks_exact_mut(len).zip(run.blocks()) {
                    block.copy_from_slice(received);
                    before.into_iter().for_each(|sequence| sequence.apply_with(*kernel, 0, block));
                }
                &[]
            }
        };
        if let Some((sequence, skip)) = after {
            for block in blocks.chunks_exact_mut(len) {
                sequence.apply_with(*kernel, 0, &mut block[skip..rules.format.length]);
            }
        }
        let shared = memory.share(room);
        for (index, (received, block)) in run.blocks().zip(shared.chunks_exact(len)).enumerate() {
            let outcome = outcomes.get(index).map(error_control);
            let decoded = rules.check(block, outcome, |part| shared.slice_ref(part), received);
            take(rules.judgement(&decoded, received), decoded);
        }
    }
}

impl Rules {
    fn new(mission: &Mission, check_symbols: CheckSymbols) -> Self {
        Self { format: *mission.frame(), scids: mission.scids().into(), check_symbols }
    }

    /// The code alone does not prove the position: it is cyclic, and so is the randomiser's
    /// sequence. A block that is some bytes early or late decodes too, but to a frame with a random
    /// header.
    fn judgement(&self, decoded: &DecodedBlock, block: &[u8]) -> Judgement {
        let is_ours = |scid| self.scids.is_empty() || self.scids.contains(&scid);
        let is_frame = decoded.set_aside.is_none() && decoded.scid.is_some_and(is_ours);
        match decoded.verdict {
            FrameVerdict::Clean | FrameVerdict::Corrected if is_frame && !is_constant(block) => {
                Judgement::Good
            }
            FrameVerdict::NotChecked if decoded.set_aside.is_none() => Judgement::Unknown,
            _ => Judgement::Bad,
        }
    }

    /// Classifies a codeword; `work` holds its frame and has room for its check symbols.
    fn check_codeword(
        &self,
        parity: &ParityDecoder,
        work: &mut [u8],
        outcome: Option<Outcome>,
        as_received: &[u8],
    ) -> DecodedBlock {
        if self.check_symbols == CheckSymbols::Kept {
            let frame = work[..self.format.length].to_vec();
            parity.encode(&frame, work);
        }
        self.check(work, outcome, Bytes::copy_from_slice, as_received)
    }

    /// Classifies a block that is derandomised and corrected. `hold` keeps a part of it.
    fn check(
        &self,
        block: &[u8],
        outcome: Option<Outcome>,
        hold: impl Fn(&[u8]) -> Bytes,
        as_received: &[u8],
    ) -> DecodedBlock {
        let Outcome { mut verdict, corrected, iterations, reason } = outcome.unwrap_or(NOT_CHECKED);
        let (frame, check_symbols) = block.split_at(self.format.length.min(block.len()));
        let mut set_aside = (verdict == FrameVerdict::Uncorrectable).then_some(reason);
        let (fhec, fecf, scid) = match Frame::parse(frame, &self.format) {
            Ok(frame) => (frame.fhec, frame.fecf, Some(frame.channel.scid)),
            Err(error) => {
                set_aside = set_aside.or(Some(Reason::Header));
                (
                    if error == FrameError::Header { Check::Bad } else { Check::None },
                    Check::None,
                    None,
                )
            }
        };
        if set_aside.is_none() && verdict == FrameVerdict::NotChecked {
            verdict = match fecf {
                Check::Good | Check::Corrected => FrameVerdict::Clean,
                Check::Bad => FrameVerdict::Uncorrectable,
                Check::None => FrameVerdict::NotChecked,
            };
        }
        if fecf == Check::Bad {
            set_aside = set_aside.or(Some(Reason::FrameErrorControl));
        }
        let keeps_check_symbols = self.check_symbols == CheckSymbols::Kept && set_aside.is_none();
        DecodedBlock {
            verdict,
            set_aside,
            corrected,
            iterations,
            fhec,
            fecf,
            scid,
            bytes: if set_aside.is_some() {
                Bytes::copy_from_slice(as_received)
            } else {
                hold(frame)
            },
            check_symbols: if keeps_check_symbols { hold(check_symbols) } else { Bytes::new() },
        }
    }
}

/// A line without signal, all bits alike, is a codeword of a linear code, but no frame.
fn is_constant(block: &[u8]) -> bool {
    block.iter().all(|byte| *byte == block[0])
}

/// The result of error control for a block.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    verdict: FrameVerdict,
    corrected: CorrectedSymbols,
    iterations: Option<Iterations>,
    /// Why it is set aside, if it cannot be corrected.
    reason: Reason,
}

const NOT_CHECKED: Outcome = Outcome {
    verdict: FrameVerdict::NotChecked,
    corrected: CorrectedSymbols::EMPTY,
    iterations: None,
    reason: Reason::ReedSolomon,
};

/// What Reed-Solomon said of a block.
fn error_control(decoded: &Decoded) -> Outcome {
    if decoded.is_clean() {
        return Outcome { verdict: FrameVerdict::Clean, ..NOT_CHECKED };
    }
    let mut symbols = [0u8; skyhaul_coding::MAX_INTERLEAVE];
    for (count, codeword) in symbols.iter_mut().zip(decoded.codewords()) {
        *count = match codeword {
            Codeword::Clean => 0,
            Codeword::Corrected(symbols) => *symbols,
            Codeword::Uncorrectable => CorrectedSymbols::UNCORRECTABLE,
        };
    }
    let corrected = CorrectedSymbols::new(&symbols[..decoded.codewords().len()]);
    let verdict =
        if decoded.is_good() { FrameVerdict::Corrected } else { FrameVerdict::Uncorrectable };
    Outcome { verdict, corrected, ..NOT_CHECKED }
}

/// Why a CADU cannot be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a frame of {found} bytes cannot be restored: the mission has {expected}; use the mission of \
    its contact"
)]
pub struct RestoreError {
    /// Bytes of the frame.
    pub found: usize,
    /// Length in bytes of the mission's frames, or of its blocks for a frame set aside.
    pub expected: usize,
}

/// The CADU of a captured frame, in true polarity and with a whole marker: bit for bit what was
/// sent, for a good frame; for one set aside, what was received.
///
/// # Errors
/// [`RestoreError`] where the frame is of another mission.
pub fn restore_cadu(captured: &CapturedFrame, mission: &Mission) -> Result<Vec<u8>, RestoreError> {
    let expected = if captured.is_good() { mission.frame().length } else { mission.block_len() };
    let found = captured.bytes.len();
    let is_shorter = mission.frame().is_variable() && mission.frame().has_length(found);
    if found != expected && !is_shorter {
        return Err(RestoreError { found, expected });
    }
    let mut out = Vec::with_capacity(mission.cadu_len());
    let marker = mission.coding().marker;
    if captured.is_good() {
        BlockDecoder::new(mission, CheckSymbols::Dropped).encode(marker, &captured.bytes, &mut out);
    } else {
        marker.append_to(&mut out);
        out.extend_from_slice(&captured.bytes);
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
