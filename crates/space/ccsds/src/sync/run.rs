//! Blocks whose markers stand where they are due, decoded many at once: what a clean downlink
//! consists of.

use super::bits::BitView;
use super::state::State;
use super::{Hit, Judge, Synchroniser};
use skyhaul_units::Utc;

/// Most blocks of a run: so many that a decoder's lanes are full several times, and so few that a
/// run of blocks of 1024 bytes stays within the processor's cache.
pub const RUN_BLOCKS: usize = 256;

/// Fewer blocks than this are taken one by one.
const SHORTEST: usize = 4;

/// Markers read before the first of them is looked at: each is in another part of the memory, and a
/// processor fetches so many at a time.
const MARKERS: usize = 16;

/// Longer pushes are held and decoded as they are polled for: frames of all of them would be in
/// memory at once.
const MOST_THROUGH: usize = 1 << 20;

/// Blocks that follow each other in the input, in true polarity.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Where they lie: in each stretch the first at its start, each next one a stride later.
    pub stretches: &'a [&'a [u8]],
    /// From the start of a block to that of the next, in bytes: block and marker.
    pub stride: usize,
    /// Length of a block in bytes.
    pub block_len: usize,
    /// Where in the bits the first block begins.
    pub position: u64,
    /// The bits came inverted.
    pub inverted: bool,
}

impl<'a> Run<'a> {
    /// The blocks.
    pub fn blocks(self) -> impl Iterator<Item = &'a [u8]> {
        let Self { stretches, stride, block_len, .. } = self;
        stretches
            .iter()
            .flat_map(move |stretch| stretch.chunks(stride))
            .map(move |block| &block[..block_len])
    }
}

/// Where the blocks of a run are, which are due one after the other.
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

impl<T> Synchroniser<T> {
    /// Takes the blocks from the one that is due on, as far as they have come and each has a marker
    /// in the polarity of the frame before. Whatever else there may be is left to the one that
    /// looks at single blocks. Returns whether anything was done.
    pub(super) fn follow_run<J: Judge<Opinion = T>>(&mut self, judge: &mut J) -> bool {
        let whole = self.bits.end().saturating_sub(self.due) / self.block_bits();
        // What is reported changes everything but the bits.
        let bits = core::mem::take(&mut self.bits);
        let place = Place { before: bits.view(), ahead: 0, bits: bits.view(), whole };
        let is_run = self.run(place, |position| bits.received(position), judge);
        self.bits = bits;
        is_run
    }

    /// Takes the blocks in bytes that came at `received` where they lie, but for the first, of
    /// which a part came before. Returns whether that was possible; then all bytes are dealt with
    /// or held.
    pub(super) fn follow_through<J: Judge<Opinion = T>>(
        &mut self,
        received: Utc,
        bytes: &[u8],
        judge: &mut J,
    ) -> bool {
        let (length, start) = (self.block_bits(), self.bits.end());
        let begun = start.checked_sub(self.due).is_some_and(|bits| bits < length);
        let is_followed = self.state == State::Lock && !self.ended && begun;
        let end = start + 8 * bytes.len() as u64;
        if !is_followed || bytes.len() > MOST_THROUGH || (end - self.due) / length < SHORTEST as u64
        {
            return false;
        }
        let missing = ((self.due + length - start).div_ceil(8)) as usize;
        self.bits.push(received, &bytes[..missing]);
        let mut held = core::mem::take(&mut self.bits);
        let view = BitView { bytes, start };
        let mut ahead = 1;
        loop {
            let place =
                Place { before: held.view(), ahead, bits: view, whole: (end - self.due) / length };
            if !self.run(place, |_| received, judge) {
                break;
            }
            ahead = 0;
        }
        if ahead == 0 {
            // A run is longer than the block that began before these bytes: what is unclaimed lies
            // in them.
            held.go_on(view, received, self.unclaimed);
        } else {
            held.push(received, &bytes[missing..]);
        }
        self.bits = held;
        true
    }

    /// Takes the blocks there as far as their markers stand, if they are enough for a run.
    fn run<J: Judge<Opinion = T>>(
        &mut self,
        place: Place<'_>,
        received: impl Fn(u64) -> Utc,
        judge: &mut J,
    ) -> bool {
        let length = self.block_bits();
        let Place { before, ahead, bits, .. } = place;
        let (first, inverted) = (self.due, self.inverted);
        let mut marker_errors = core::mem::take(&mut self.marker_errors);
        self.markers(place, &mut marker_errors);
        let count = marker_errors.len();
        let is_run = count >= SHORTEST;
        if is_run {
            let mut realigned = core::mem::take(&mut self.realigned);
            let [room, other_room] = &mut realigned;
            let (marker_bits, marker_len) = (self.marker_bits(), self.marker.len());
            let stride = marker_len + self.block_len;
            let ends = [first, first + ahead as u64 * length, first + count as u64 * length];
            let len = |part: usize| ((ends[part + 1] - ends[part]) / 8) as usize - marker_len;
            let rest = bits.stretch(ends[1] + marker_bits, len(1), inverted, other_room);
            let stretches = match ahead {
                0 => [rest, &[]],
                _ => [before.stretch(ends[0] + marker_bits, len(0), inverted, room), rest],
            };
            let (stretches, position) = (&stretches[..=ahead.min(1)], first + marker_bits);
            let run = Run { stretches, stride, block_len: self.block_len, position, inverted };
            self.coasted = 0;
            let mut position = first;
            let mut markers = marker_errors.iter();
            judge.judge_run(run, &mut |judgement, opinion| {
                let errors = *markers.next().expect("one opinion for each block");
                let hit = Hit { position, errors, inverted, slip: 0, flywheel: false };
                position += length;
                self.report(hit, received(position), (judgement, opinion));
            });
            self.realigned = realigned;
        }
        self.marker_errors = marker_errors;
        is_run
    }
    /// The wrong bits of the markers that are due, as far as they stand.
    fn markers(&self, place: Place<'_>, errors: &mut Vec<u8>) {
        let Place { before, ahead, bits, whole } = place;
        let (length, whole) = (self.block_bits(), whole.min(RUN_BLOCKS as u64));
        let mut words = [0; MARKERS];
        errors.clear();
        for start in (0..whole).step_by(MARKERS) {
            let indices = start..whole.min(start + MARKERS as u64);
            for (word, index) in words.iter_mut().zip(indices.clone()) {
                let bits = if index < ahead as u64 { before } else { bits };
                *word = self.marker_at(bits, self.due + index * length);
            }
            for (word, index) in words.iter().zip(indices) {
                let hit = self.hit_of(*word, self.due + index * length);
                // A doubtful marker is looked at alone: a good frame may hide behind it.
                let is_sure = hit.errors <= self.config.lock_errors.min(self.config.check_errors);
                if hit.inverted != self.inverted || !is_sure {
                    return;
                }
                errors.push(hit.errors);
            }
        }
    }
}
