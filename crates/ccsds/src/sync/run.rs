//! Blocks whose markers stand where they are due, decoded many at once: what a clean downlink consists of.

use super::{Hit, Judge, MARKER_BITS, Synchroniser};

/// Most blocks of a run: so many that a decoder's lanes are full several times, and so few that a run of blocks of
/// 1024 bytes stays within the processor's cache.
pub const RUN_BLOCKS: usize = 256;

/// Fewer blocks than this are taken one by one.
const SHORTEST: usize = 4;

impl<T> Synchroniser<T> {
    /// Takes the blocks from the one that is due on, as far as they have come and each has a marker in the polarity of
    /// the frame before. Whatever else there may be is left to the one that looks at single blocks. Returns whether
    /// anything was done.
    pub(super) fn follow_run<J: Judge<Opinion = T>>(&mut self, judge: &mut J) -> bool {
        let length = self.block_bits();
        let whole = self.bits.end().saturating_sub(self.due) / length;
        let hits: Vec<Hit> = (0..whole.min(RUN_BLOCKS as u64))
            .map(|index| self.hit_at(self.due + index * length))
            .take_while(|hit| hit.inverted == self.inverted && hit.errors <= self.config.lock_errors)
            .collect();
        if hits.len() < SHORTEST {
            return false;
        }
        let mut blocks = Vec::with_capacity(hits.len() * self.block_len);
        for hit in &hits {
            self.bits.append(hit.position + MARKER_BITS, self.block_len, hit.inverted, &mut blocks);
        }
        let as_received = |index: usize| {
            let hit = &hits[index];
            let mut block = Vec::with_capacity(self.block_len);
            self.bits.append(hit.position + MARKER_BITS, self.block_len, hit.inverted, &mut block);
            block
        };
        let judged = judge.judge_run(blocks, self.block_len, &as_received);
        self.coasted = 0;
        for (hit, judged) in hits.into_iter().zip(judged) {
            self.report(hit, judged);
        }
        true
    }
}
