//! The newest bytes of an input, which may belong to an incomplete frame. After a pause, capture
//! continues from them.

use super::CaptureOptions;
use super::held::Held;
use super::watch::unit_bits;
use crate::identify::{Identification, InputLayout};
use crate::inner::InnerDecoder;
use crate::quality::BitPosition;
use bytes::Bytes;
use skyhaul_units::Utc;

/// The received part of an incomplete frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenBlock {
    /// The first bit kept; before the frame if symbols have to be decoded first.
    pub from: BitPosition,
    /// Where the last frame ended.
    pub(super) frames_from: BitPosition,
    /// The bytes from the one with that bit, as they were pushed.
    pub(super) pushes: Vec<(Utc, Bytes)>,
}

/// The bytes after the last frame that was passed on, and those before that the next frame may
/// need.
#[derive(Debug)]
pub(super) struct Tail {
    held: Held,
    /// Where that frame ended.
    taken_to: BitPosition,
    /// Most bytes kept.
    reach: u64,
}

/// Most blocks in progress: an incomplete one, and one that waits for the input after it.
const BLOCKS: u64 = 2;

impl Tail {
    /// Of a downlink that begins at `start`.
    pub fn new(found: &Identification, start: BitPosition) -> Self {
        let lead = found.format.symbols().map_or(0, InnerDecoder::lead);
        let reach = (BLOCKS * unit_bits(found) + lead).div_ceil(8) + 1;
        Self { held: Held::starting_at(start.byte()), taken_to: start, reach }
    }

    /// Takes the input's next bytes.
    pub fn push(&mut self, received: Utc, bytes: &[u8]) {
        let end = self.held.end() + bytes.len() as u64;
        self.held.push_from(end.saturating_sub(self.reach), received, bytes);
    }

    /// Replaces the bytes by those held of the input.
    pub fn hold(&mut self, held: &Held) {
        self.held = Held::starting_at(held.start);
        held.pushes().for_each(|(received, bytes)| self.push(received, bytes));
    }

    /// A frame that ends there was passed on.
    pub fn taken(&mut self, end: BitPosition) {
        self.taken_to = self.taken_to.max(end);
    }

    /// The bytes after the last frame; `None` if there are none, or more than a frame.
    pub fn open_block(&self, format: InputLayout) -> Option<OpenBlock> {
        let from = CaptureOptions::read_from(format, self.taken_to);
        let skipped = usize::try_from(from.byte().checked_sub(self.held.start)?).ok()?;
        if self.taken_to.as_bits() >= 8 * self.held.end() {
            return None;
        }
        let mut at = 0;
        let pushes = self.held.pushes().filter_map(|(received, bytes)| {
            let first = skipped.saturating_sub(at).min(bytes.len());
            at += bytes.len();
            let bytes = &bytes[first..];
            (!bytes.is_empty()).then(|| (received, Bytes::copy_from_slice(bytes)))
        });
        Some(OpenBlock { from, frames_from: self.taken_to, pushes: pushes.collect() })
    }
}
