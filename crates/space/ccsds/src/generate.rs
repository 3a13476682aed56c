//! Makes a downlink of any length from packets: continues their times and counters, frames, codes
//! and randomises them, adds channel errors if requested, and records what a receiver can decode.
//!
//! The packets of a [`Source`], which are those of a capture ([`Source::from_frames`]) or made up
//! after a [`Description`] ([`Source::described`]), are sent repeatedly in cycles. In each cycle
//! the times are later by the cycle's length, and sequence counts and frame counts continue. The
//! rest of a virtual channel's share of the frames in a cycle is filled with idle packets. Memory
//! does not grow with the length. The same source, options and seed give the same bits.

mod arrivals;
mod channel;
mod cycle;
mod description;
mod errors;
mod packet_cycle;
mod random;
mod source;
mod symbols;
mod variable;

pub use description::{Description, DescriptionError, PacketPlan};
pub use errors::{ChannelErrors, ErrorPlan, ErrorPlanError, LONGEST_GAP};
pub use source::{Source, SourceError};
pub use symbols::{SymbolOptions, SymbolTruth, SymbolWriter};

use crate::decode::{BlockDecoder, CheckSymbols};
use crate::id::{Channel, Vcid};
use crate::mission::Mission;
use arrivals::Arrival;
use channel::ChannelStream;
use errors::{Damage, Damager};
use random::Random;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// What is generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneratorOptions {
    /// Frames sent, including those that are then lost.
    pub frames: u64,
    /// Channel errors.
    pub errors: ErrorPlan,
    /// Bits before the first marker, so that the stream is not byte aligned: 0 to 7.
    pub offset_bits: u8,
    /// Seed of the errors.
    pub seed: u64,
    /// What is put out.
    pub layout: Layout,
}

/// What a generator puts out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Coded blocks behind markers, as a demodulator gives them.
    #[default]
    Cadus,
    /// Transfer frames without markers: the only possible error is a missing frame. Frames with a
    /// length field are always generated in this form.
    Frames,
}

/// What a receiver can decode of the downlink.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Truth {
    /// Frames sent, lost ones included.
    pub frames_sent: u64,
    /// Frames that arrive good.
    pub good_frames: u64,
    /// Digest of those, one after the other.
    pub good_frames_sha256: String,
    /// Good frames that have wrong symbols to correct.
    pub corrected_frames: u64,
    /// Wrong symbols in good frames.
    pub corrected_symbols: u64,
    /// Frames that arrive beyond correction.
    pub uncorrectable_frames: u64,
    /// Frames that do not arrive.
    pub dropped_frames: u64,
    /// By virtual channel.
    pub vcids: BTreeMap<u8, ChannelTruth>,
}

/// What a receiver can decode of one virtual channel.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ChannelTruth {
    /// Frames that arrive good.
    pub good_frames: u64,
    /// Packets of which all frames arrive without damage, idle ones included.
    pub packets: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Digest of those, one after the other.
    pub packets_sha256: String,
    /// Packets by application process id.
    pub apids: BTreeMap<u16, u64>,
}

/// Generates a downlink, a piece at a time.
#[derive(Debug)]
pub struct Generator {
    mission: Mission,
    coder: BlockDecoder,
    options: GeneratorOptions,
    /// The channels of a cycle's frames, in order.
    order: Vec<Channel>,
    channels: BTreeMap<Channel, ChannelStream>,
    damager: Damager,
    bits: BitWriter,
    sent: u64,
    truth: Truth,
    good_frames: Sha256,
    /// The random numbers for the lengths of frames with a length field.
    lengths: Random,
}

/// The lengths are independent of the errors of the same seed.
const LENGTHS: u64 = 0x1E_7657_0000_0003;

/// Frames made for each piece.
const PIECE_FRAMES: u64 = 32;

impl Generator {
    /// Begins a downlink.
    pub fn new(source: Source, options: GeneratorOptions) -> Self {
        let Source { mission, order, channels, cycle } = source;
        let layout = if mission.frame().is_variable() { Layout::Frames } else { options.layout };
        let options = GeneratorOptions { layout, ..options };
        let streams = channels
            .into_iter()
            .map(|(channel, packets)| {
                let share = order.iter().filter(|of_frame| **of_frame == channel).count();
                (channel, ChannelStream::new(&mission, packets, share, cycle))
            })
            .collect();
        let mut bits = BitWriter::default();
        bits.push(&[0], usize::from(options.offset_bits % 8));
        Self {
            coder: BlockDecoder::new(&mission, CheckSymbols::Dropped),
            damager: Damager::new(&mission, options.errors, options.seed),
            mission,
            lengths: Random::new(options.seed ^ LENGTHS),
            options,
            order,
            channels: streams,
            bits,
            sent: 0,
            truth: Truth::default(),
            good_frames: Sha256::new(),
        }
    }

    /// What a receiver can decode of the downlink so far.
    pub fn truth(&self) -> Truth {
        let vcids = self
            .channels
            .iter()
            .map(|(channel, stream)| (channel.vcid.value(), stream.arrivals.truth()));
        let digest = self.good_frames.clone().finalize();
        Truth {
            vcids: vcids.collect(),
            frames_sent: self.sent,
            good_frames_sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            ..self.truth.clone()
        }
    }

    /// Length of the whole downlink in bits, before any are deleted, inserted or dropped; if
    /// lengths vary, the maximum.
    pub fn nominal_bits(&self) -> u64 {
        let unit = match self.options.layout {
            Layout::Cadus => self.mission.cadu_len(),
            Layout::Frames => self.mission.frame().length,
        };
        8 * unit as u64 * self.options.frames
    }

    fn send_frame(&mut self) {
        let index = usize::try_from(self.sent % self.order.len() as u64).expect("below a length");
        let channel = self.order[index];
        let stream =
            self.channels.get_mut(&channel).expect("the order names the source's channels");
        let is_variable = self.mission.frame().is_variable();
        let frame = match is_variable {
            true => stream.next_variable(&self.mission, &mut self.lengths),
            false => stream.next_frame(&self.mission),
        };
        let mut cadu = Vec::with_capacity(self.mission.cadu_len());
        if is_variable {
            // The only possible error is a missing frame.
            cadu.resize(self.mission.cadu_len(), 0);
        } else {
            self.coder.encode(self.mission.coding().marker, &frame, &mut cadu);
        }
        let (errors, mut damage) = self.damager.damage(&mut cadu);
        if self.options.layout == Layout::Frames && damage != Damage::Dropped {
            damage = Damage::None;
        }
        self.sent += 1;
        let is_good = matches!(damage, Damage::None | Damage::Correctable(_));
        let arrival = if is_good { Arrival::Good } else { Arrival::Lost };
        stream.arrivals.settle(arrival);
        if is_good {
            self.good_frames.update(&frame);
        }
        match damage {
            Damage::None => self.truth.good_frames += 1,
            Damage::Correctable(symbols) => {
                self.truth.good_frames += 1;
                self.truth.corrected_frames += 1;
                self.truth.corrected_symbols += symbols;
            }
            Damage::Uncorrectable => self.truth.uncorrectable_frames += 1,
            Damage::Dropped => {
                self.truth.dropped_frames += 1;
                return;
            }
        }
        match self.options.layout {
            Layout::Cadus => self.bits.push_damaged(&cadu, &errors),
            Layout::Frames => self.bits.push(&frame, 8 * frame.len()),
        }
    }
}

impl Iterator for Generator {
    type Item = Vec<u8>;

    /// The next piece: some 32 CADUs; `None` after the last one. The last piece is filled up with
    /// zero bits.
    fn next(&mut self) -> Option<Vec<u8>> {
        if self.sent >= self.options.frames {
            let rest = self.bits.finish();
            return (!rest.is_empty()).then_some(rest);
        }
        for _ in 0..PIECE_FRAMES.min(self.options.frames - self.sent) {
            self.send_frame();
        }
        Some(self.bits.take_whole())
    }
}

/// Puts bits together to bytes.
#[derive(Debug, Default)]
struct BitWriter {
    bytes: Vec<u8>,
    /// Bits not yet in a byte, in the lowest places.
    partial: u8,
    partial_len: usize,
}

impl BitWriter {
    /// Appends the first `len` bits of `bytes`.
    fn push(&mut self, bytes: &[u8], len: usize) {
        let whole = len / 8;
        let shift = self.partial_len;
        for byte in &bytes[..whole] {
            self.bytes.push(if shift == 0 {
                *byte
            } else {
                self.partial << (8 - shift) | byte >> shift
            });
            self.partial = if shift == 0 { 0 } else { byte & ((1 << shift) - 1) };
        }
        for bit in 0..len % 8 {
            self.push_bit(bytes[whole] >> (7 - bit) & 1);
        }
    }

    fn push_bit(&mut self, bit: u8) {
        self.partial = self.partial << 1 | bit;
        self.partial_len += 1;
        if self.partial_len == 8 {
            self.bytes.push(self.partial);
            self.partial = 0;
            self.partial_len = 0;
        }
    }

    fn push_damaged(&mut self, cadu: &[u8], errors: &ChannelErrors) {
        let flipped: Vec<u8>;
        let cadu = if errors.inverted {
            flipped = cadu.iter().map(|byte| !byte).collect();
            &flipped
        } else {
            cadu
        };
        let bits = 8 * cadu.len();
        let Some((at, slip)) = errors.slip else { return self.push(cadu, bits) };
        for bit in (0..bits)
            .filter(|bit| slip >= 0 || !(at..at + slip.unsigned_abs() as usize).contains(bit))
        {
            self.push_bit(cadu[bit / 8] >> (7 - bit % 8) & 1);
            if bit == at {
                (0..slip).for_each(|_| self.push_bit(0));
            }
        }
    }

    fn take_whole(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.bytes)
    }

    fn finish(&mut self) -> Vec<u8> {
        while self.partial_len > 0 {
            self.push_bit(0);
        }
        self.take_whole()
    }
}

/// Whether a channel carries packets that are passed on.
fn carries_packets(mission: &Mission, vcid: Vcid) -> bool {
    mission.content(vcid) == crate::mission::Content::Packets
        && !(mission.frame().kind != crate::mission::FrameKind::Tm && vcid == Vcid::MAX)
}

#[cfg(test)]
mod tests;
