//! The fast path for a clean downlink: blocks whose markers are where they are due are decoded many
//! at a time.

use super::Synchroniser;
use super::bits::BitView;
use super::config::SyncConfig;
use super::hit::{CaduLayout, Hit};
use super::judge::{Judge, Run};
use super::prediction::Prediction;
use super::state::State;
use skyhaul_units::Utc;

/// Most blocks of a run: so many that a decoder's lanes are full several times, and so few that a
/// run of blocks of 1024 bytes stays within the processor's cache.
pub const RUN_BLOCKS: usize = 256;

/// Fewer blocks than this are taken one by one.
const SHORTEST: usize = 4;

/// Markers read before the first of them is checked: each is in another part of the memory, and a
/// processor fetches this many at a time.
const MARKERS: usize = 16;

/// Longer pushes are buffered and decoded when polled; otherwise all their frames would be in
/// memory at once.
const MOST_THROUGH: usize = 1 << 20;

/// Memory that one run passes to the next.
#[derive(Debug, Default)]
pub(super) struct RunBuffers {
    /// Wrong bits in each marker of a run.
    marker_errors: Vec<u8>,
    /// A run that was received inverted or not byte aligned, converted to true polarity and whole
    /// bytes, by stretches.
    realigned: [Vec<u8>; 2],
}

/// The positions of the blocks of a run, which are due one after the other.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    /// The view that holds the first `ahead` blocks.
    before: BitView<'a>,
    ahead: usize,
    /// The view that holds the others.
    bits: BitView<'a>,
    /// Whole blocks there are.
    whole: u64,
}

impl Place<'_> {
    /// The wrong bits of the markers due, up to the first that is missing.
    fn markers(
        self,
        prediction: &Prediction,
        layout: CaduLayout,
        config: &SyncConfig,
        errors: &mut Vec<u8>,
    ) {
        let Self { before, ahead, bits, whole } = self;
        let (length, whole) = (layout.cadu_bits(), whole.min(RUN_BLOCKS as u64));
        let mut words = [0; MARKERS];
        errors.clear();
        for start in (0..whole).step_by(MARKERS) {
            let indices = start..whole.min(start + MARKERS as u64);
            for (word, index) in words.iter_mut().zip(indices.clone()) {
                let bits = if index < ahead as u64 { before } else { bits };
                *word = layout.marker_at(bits, prediction.due + index * length);
            }
            for (word, index) in words.iter().zip(indices) {
                let hit = layout.hit_of(*word, prediction.due + index * length);
                // A doubtful marker is checked alone, because a good frame may begin elsewhere.
                let is_sure = hit.errors <= config.lock_errors.min(config.check_errors);
                if hit.polarity != prediction.polarity || !is_sure {
                    return;
                }
                errors.push(hit.errors);
            }
        }
    }
}

impl<T> Synchroniser<T> {
    /// Takes the received blocks from the one due on, while each has a marker in the polarity of
    /// the frame before. All else is left to the check of single blocks. Returns whether anything
    /// was done.
    pub(super) fn follow_run<J: Judge<Opinion = T>>(&mut self, judge: &mut J) -> bool {
        let whole = self.cadus.bits.end().saturating_sub(self.prediction.due)
            / self.cadus.layout.cadu_bits();
        // Reports change all state except the bits.
        let bits = core::mem::take(&mut self.cadus.bits);
        let place = Place { before: bits.view(), ahead: 0, bits: bits.view(), whole };
        let is_run = self.run(place, |position| bits.received(position), judge);
        self.cadus.bits = bits;
        is_run
    }

    /// Takes the blocks of bytes received at `received` in place, except the first, a part of which
    /// was received earlier. Returns whether that was possible; if so, all bytes are used or
    /// buffered.
    pub(super) fn follow_through<J: Judge<Opinion = T>>(
        &mut self,
        received: Utc,
        bytes: &[u8],
        judge: &mut J,
    ) -> bool {
        let (length, start) = (self.cadus.layout.cadu_bits(), self.cadus.bits.end());
        let begun = start.checked_sub(self.prediction.due).is_some_and(|bits| bits < length);
        let is_followed = self.state == State::Lock && !self.cadus.ended && begun;
        let end = start + 8 * bytes.len() as u64;
        if !is_followed
            || bytes.len() > MOST_THROUGH
            || (end - self.prediction.due) / length < SHORTEST as u64
        {
            return false;
        }
        let missing = ((self.prediction.due + length - start).div_ceil(8)) as usize;
        self.cadus.bits.push(received, &bytes[..missing]);
        let mut held = core::mem::take(&mut self.cadus.bits);
        let view = BitView { bytes, start };
        let mut ahead = 1;
        loop {
            let place = Place {
                before: held.view(),
                ahead,
                bits: view,
                whole: (end - self.prediction.due) / length,
            };
            if !self.run(place, |_| received, judge) {
                break;
            }
            ahead = 0;
        }
        if ahead == 0 {
            // A run is longer than the block that began before these bytes: what is unclaimed lies
            // in them.
            held.go_on(view, received, self.prediction.unclaimed);
        } else {
            held.push(received, &bytes[missing..]);
        }
        self.cadus.bits = held;
        true
    }

    /// Takes the blocks there up to the first missing marker, if they are enough for a run.
    fn run<J: Judge<Opinion = T>>(
        &mut self,
        place: Place<'_>,
        received: impl Fn(u64) -> Utc,
        judge: &mut J,
    ) -> bool {
        let layout = self.cadus.layout;
        let length = layout.cadu_bits();
        let Place { before, ahead, bits, .. } = place;
        let Prediction { due: first, polarity, .. } = self.prediction;
        let mut marker_errors = core::mem::take(&mut self.run_buffers.marker_errors);
        place.markers(&self.prediction, layout, &self.config, &mut marker_errors);
        let count = marker_errors.len();
        let is_run = count >= SHORTEST;
        if is_run {
            let mut realigned = core::mem::take(&mut self.run_buffers.realigned);
            let [room, other_room] = &mut realigned;
            let (marker_bits, marker_len) = (layout.marker_bits(), layout.marker.len());
            let stride = marker_len + layout.block_len;
            let ends = [first, first + ahead as u64 * length, first + count as u64 * length];
            let len = |part: usize| ((ends[part + 1] - ends[part]) / 8) as usize - marker_len;
            let rest = bits.stretch(ends[1] + marker_bits, len(1), polarity, other_room);
            let stretches = match ahead {
                0 => [rest, &[]],
                _ => [before.stretch(ends[0] + marker_bits, len(0), polarity, room), rest],
            };
            let (stretches, position) = (&stretches[..=ahead.min(1)], first + marker_bits);
            let run = Run { stretches, stride, block_len: layout.block_len, position, polarity };
            self.prediction.coasted = 0;
            let mut position = first;
            let mut markers = marker_errors.iter();
            judge.judge_run(run, &mut |judgement, opinion| {
                let errors = *markers.next().expect("one opinion for each block");
                let hit = Hit { position, errors, polarity, slip: 0, flywheel: false };
                position += length;
                self.report(hit, received(position), judgement, opinion);
            });
            self.run_buffers.realigned = realigned;
        }
        self.run_buffers.marker_errors = marker_errors;
        is_run
    }
}
