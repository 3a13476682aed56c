//! From a block after a marker to a transfer frame: derandomise, correct, check.

mod memory;

use crate::frame::{Check, Frame, FrameError};
use crate::mission::{Derandomise, FrameFormat, MARKER_LEN, Mission};
use crate::quality::{CapturedFrame, CorrectedSymbols, Reason, Verdict};
use crate::sync::{Judge, Judgement, Run};
use bytes::Bytes;
use memory::RunMemory;
use skyhaul_coding::gf::Kernel;
use skyhaul_coding::{Codeword, Decoded, Decoder, ReedSolomon, Sequence};

/// What decoding made of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedBlock {
    /// What error control said.
    pub verdict: Verdict,
    /// Why it is set aside; `None` for a good frame.
    pub set_aside: Option<Reason>,
    /// Symbols corrected; empty for a clean block.
    pub corrected: CorrectedSymbols,
    /// Header error control.
    pub fhec: Check,
    /// Frame error control.
    pub fecf: Check,
    /// The frame, or, where it is set aside, the block as received. Frames of one run share their memory: copy what is
    /// kept longer than its neighbours.
    pub bytes: Bytes,
    /// Check symbols after correction, where they are kept.
    pub check_symbols: Bytes,
}

/// Decodes and encodes the blocks of one mission.
#[derive(Debug, Clone)]
pub struct BlockDecoder {
    rules: Rules,
    kernel: Kernel,
    randomiser: Option<(Sequence, Derandomise)>,
    code: Option<ReedSolomon>,
    /// The code, for many blocks at once.
    decoder: Option<Box<Decoder>>,
    block_len: usize,
    work: Vec<u8>,
    memory: RunMemory,
}

/// What makes a frame of a decoded block.
#[derive(Debug, Clone, Copy)]
struct Rules {
    format: FrameFormat,
    keep_check_symbols: bool,
}

impl BlockDecoder {
    /// For a mission's blocks, with the fastest instructions that the processor has.
    pub fn new(mission: &Mission, keep_check_symbols: bool) -> Self {
        Self::with_kernel(mission, keep_check_symbols, Kernel::best())
    }

    /// With given instructions. The results are the same for all.
    pub fn with_kernel(mission: &Mission, keep_check_symbols: bool, kernel: Kernel) -> Self {
        let block_len = mission.block_len();
        let randomiser = mission.coding().randomiser;
        let code = mission.reed_solomon();
        Self {
            rules: Rules { format: *mission.frame(), keep_check_symbols },
            kernel,
            randomiser: randomiser.map(|(kind, place)| (kind.sequence(block_len), place)),
            decoder: code.as_ref().map(|code| Box::new(Decoder::with_kernel(code, kernel))),
            code,
            block_len,
            work: Vec::with_capacity(block_len),
            memory: RunMemory::default(),
        }
    }

    /// For bare frames of a mission: nothing to derandomise or correct, the frame's own checks remain.
    pub fn bare(mission: &Mission) -> Self {
        Self {
            rules: Rules { format: *mission.frame(), keep_check_symbols: false },
            kernel: Kernel::best(),
            randomiser: None,
            code: None,
            decoder: None,
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
        assert_eq!(block.len(), self.block_len, "block length of the mission");
        let mut work = core::mem::take(&mut self.work);
        work.clear();
        work.extend_from_slice(block);
        if let Some((sequence, Derandomise::BeforeDecoding)) = &self.randomiser {
            sequence.apply_with(self.kernel, 0, &mut work);
        }
        let outcome = self.code.as_ref().map(|code| code.decode(&mut work));
        if let Some((sequence, Derandomise::AfterDecoding { skip })) = &self.randomiser {
            sequence.apply_with(self.kernel, 0, &mut work[*skip..self.rules.format.length]);
        }
        let decoded = self.rules.check(&work, outcome.as_ref(), Bytes::copy_from_slice, block);
        self.work = work;
        decoded
    }

    /// Appends marker and block of a transfer frame to `out`: check symbols computed, randomised.
    ///
    /// # Panics
    /// Where the frame has not the mission's length.
    pub fn encode(&self, marker: u32, frame: &[u8], out: &mut Vec<u8>) {
        assert_eq!(frame.len(), self.rules.format.length, "frame length of the mission");
        out.extend_from_slice(&marker.to_be_bytes());
        let start = out.len();
        out.extend_from_slice(frame);
        out.resize(start + self.block_len, 0);
        let block = &mut out[start..];
        if let Some((sequence, Derandomise::AfterDecoding { skip })) = &self.randomiser {
            sequence.apply(0, &mut block[*skip..frame.len()]);
        }
        if let Some(code) = &self.code {
            let (data, check) = block.split_at_mut(frame.len());
            code.encode(data, check);
        }
        if let Some((sequence, Derandomise::BeforeDecoding)) = &self.randomiser {
            sequence.apply(0, block);
        }
    }
}

impl Judge for BlockDecoder {
    type Opinion = DecodedBlock;

    fn judge(&mut self, block: &[u8]) -> (Judgement, DecodedBlock) {
        let decoded = self.decode(block);
        (judgement(&decoded, is_constant(block)), decoded)
    }

    fn judge_run(&mut self, run: Run<'_>, take: &mut dyn FnMut(Judgement, DecodedBlock)) {
        let len = run.block_len;
        assert_eq!(len, self.block_len, "block length of the mission");
        let Self { rules, kernel, randomiser, decoder, memory, .. } = self;
        let (before, after) = match randomiser {
            Some((sequence, Derandomise::BeforeDecoding)) => (Some(&*sequence), None),
            Some((sequence, Derandomise::AfterDecoding { skip })) => (None, Some((&*sequence, *skip))),
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
            let decoded = rules.check(block, outcomes.get(index), |part| shared.slice_ref(part), received);
            take(judgement(&decoded, is_constant(received)), decoded);
        }
    }
}

impl Rules {
    /// What a block is, once it is derandomised and corrected. `hold` keeps a part of it.
    fn check(
        &self,
        block: &[u8],
        outcome: Option<&Decoded>,
        hold: impl Fn(&[u8]) -> Bytes,
        as_received: &[u8],
    ) -> DecodedBlock {
        let (mut verdict, corrected) = outcome.map_or(NOT_CHECKED, error_control);
        let (frame, check_symbols) = block.split_at(self.format.length);
        let mut set_aside = (verdict == Verdict::Uncorrectable).then_some(Reason::ReedSolomon);
        let (fhec, fecf) = match Frame::parse(frame, &self.format) {
            Ok(frame) => (frame.fhec, frame.fecf),
            Err(error) => {
                set_aside = set_aside.or(Some(Reason::Header));
                (if error == FrameError::Header { Check::Bad } else { Check::None }, Check::None)
            }
        };
        if set_aside.is_none() && verdict == Verdict::NotChecked {
            verdict = match fecf {
                Check::Good | Check::Corrected => Verdict::Clean,
                Check::Bad => Verdict::Uncorrectable,
                Check::None => Verdict::NotChecked,
            };
        }
        if fecf == Check::Bad {
            set_aside = set_aside.or(Some(Reason::FrameErrorControl));
        }
        let keeps_check_symbols = self.keep_check_symbols && set_aside.is_none();
        DecodedBlock {
            verdict,
            set_aside,
            corrected,
            fhec,
            fecf,
            bytes: if set_aside.is_some() { Bytes::copy_from_slice(as_received) } else { hold(frame) },
            check_symbols: if keeps_check_symbols { hold(check_symbols) } else { Bytes::new() },
        }
    }
}

/// A line without signal, all bits alike, is a codeword of a linear code, but no frame.
fn is_constant(block: &[u8]) -> bool {
    block.iter().all(|byte| *byte == block[0])
}

fn judgement(decoded: &DecodedBlock, is_constant: bool) -> Judgement {
    match decoded.verdict {
        Verdict::Clean | Verdict::Corrected if !is_constant => Judgement::Good,
        Verdict::NotChecked if decoded.set_aside.is_none() => Judgement::Unknown,
        _ => Judgement::Bad,
    }
}

const NOT_CHECKED: (Verdict, CorrectedSymbols) = (Verdict::NotChecked, CorrectedSymbols::EMPTY);

/// What Reed-Solomon said of a block.
fn error_control(decoded: &Decoded) -> (Verdict, CorrectedSymbols) {
    if decoded.is_clean() {
        return (Verdict::Clean, CorrectedSymbols::EMPTY);
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
    (if decoded.is_good() { Verdict::Corrected } else { Verdict::Uncorrectable }, corrected)
}

/// Why a CADU cannot be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a frame of {found} bytes cannot be restored: the mission has {expected}; use the mission of its contact"
)]
pub struct RestoreError {
    /// Bytes of the frame.
    pub found: usize,
    /// Bytes of the mission's frames, or blocks for a frame set aside.
    pub expected: usize,
}

/// The CADU of a captured frame, in true polarity and with a whole marker: bit for bit what was sent, for a good
/// frame; for one set aside, what was received.
///
/// # Errors
/// [`RestoreError`] where the frame is of another mission.
pub fn restore_cadu(captured: &CapturedFrame, mission: &Mission) -> Result<Vec<u8>, RestoreError> {
    let expected = if captured.is_good() { mission.frame().length } else { mission.block_len() };
    let found = captured.bytes.len();
    if found != expected {
        return Err(RestoreError { found, expected });
    }
    let mut out = Vec::with_capacity(MARKER_LEN + mission.block_len());
    let marker = mission.coding().marker;
    if captured.is_good() {
        BlockDecoder::new(mission, false).encode(marker, &captured.bytes, &mut out);
    } else {
        out.extend_from_slice(&marker.to_be_bytes());
        out.extend_from_slice(&captured.bytes);
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
