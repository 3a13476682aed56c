//! Reads buffered bits as CADUs: markers, and blocks for error control.

use super::bits::BitBuffer;
use super::config::SyncConfig;
use super::hit::{CaduLayout, Hit};
use super::judge::{Judge, Judgement};
use skyhaul_coding::align::Polarity;
use skyhaul_units::Utc;

/// The bits that are held, read as CADUs.
#[derive(Debug)]
pub(super) struct CaduBuffer {
    pub layout: CaduLayout,
    pub bits: BitBuffer,
    /// No more bits will come.
    pub ended: bool,
    /// The block for error control.
    block: Vec<u8>,
}

impl CaduBuffer {
    /// Begins at the byte that holds bit `start`.
    pub fn new(layout: CaduLayout, start: u64) -> Self {
        Self { layout, bits: BitBuffer::starting_at(start), ended: false, block: Vec::new() }
    }

    /// Whether a whole CADU is held from `position` on.
    pub fn holds(&self, position: u64) -> bool {
        position + self.layout.cadu_bits() <= self.bits.end()
    }

    /// The first position from which no whole marker is held.
    pub fn markers_end(&self) -> u64 {
        (self.bits.end() + 1).saturating_sub(self.layout.marker_bits())
    }

    /// The marker at `position` in the polarity that fits better.
    pub fn hit_at(&self, position: u64) -> Hit {
        self.layout.hit_of(self.layout.marker_at(self.bits.view(), position), position)
    }

    /// A frame at `position` without regard to its marker, in a given polarity.
    pub fn coasting(&self, position: u64, polarity: Polarity) -> Hit {
        let word = self.layout.marker_at(self.bits.view(), position);
        self.layout.coasting(word, position, polarity)
    }

    /// The result of error control for the frame at `hit`.
    pub fn judge<J: Judge>(&mut self, hit: Hit, judge: &mut J) -> (Judgement, J::Opinion) {
        let position = hit.position + self.layout.marker_bits();
        self.bits.copy(position, self.layout.block_len, hit.polarity, &mut self.block);
        judge.aim(position, hit.polarity);
        judge.judge(&self.block)
    }

    /// Whether error control proves the frame at `hit`.
    pub fn is_good<J: Judge>(&mut self, hit: Hit, judge: &mut J) -> bool {
        self.judge(hit, judge).0 == Judgement::Good
    }

    /// Whether error control denies the frame at `hit`.
    pub fn is_bad<J: Judge>(&mut self, hit: Hit, judge: &mut J) -> bool {
        self.judge(hit, judge).0 == Judgement::Bad
    }

    /// A frame at `position`, before one of this polarity, if it has a marker or decodes.
    pub fn frame_before<J: Judge>(
        &mut self,
        position: u64,
        polarity: Polarity,
        config: &SyncConfig,
        judge: &mut J,
    ) -> Option<Hit> {
        let hit = self.hit_at(position);
        // `check_errors` are passed by chance once in four million times: no decoding is needed.
        if hit.errors <= config.check_errors {
            return Some(hit);
        }
        // A damaged marker hardly shows the polarity. The polarity of the proved frame is tried
        // first, because a receiver seldom changes it; then the other, for a change between the two
        // frames.
        [polarity, polarity.opposite()].into_iter().find_map(|polarity| {
            let hit = self.coasting(position, polarity);
            let hit = Hit { flywheel: hit.errors > config.lock_errors, ..hit };
            self.is_good(hit, judge).then_some(hit)
        })
    }

    /// When the last bit of the frame at `hit` was received.
    pub fn received(&self, hit: Hit) -> Utc {
        self.bits.received(hit.position + self.layout.cadu_bits())
    }
}
