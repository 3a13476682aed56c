//! The frame synchroniser: finds blocks of one length behind markers in a bit stream, at any bit
//! offset, in true or inverted polarity.
//!
//! Where a marker is damaged or bits slipped, error control decides: a block that decodes is a
//! frame, wherever its marker went ([`Judge`]). When a marker is not where it was due, the bits
//! since the last frame that is surely good are searched again, so that no good frame between two
//! impairments is lost. What the synchroniser leaves out: finding the block length
//! ([`crate::identify`]) and what a block means.

mod bits;
mod config;
mod counts;
mod hit;
mod run;
mod state;

use crate::quality::BitPosition;
use bits::{BitBuffer, BitView};
pub use config::SyncConfig;
pub use counts::SyncCounts;
pub use run::{RUN_BLOCKS, Run};
use skyhaul_coding::marker::{Finder, Marker};
use skyhaul_units::Utc;
use state::State;
use std::collections::VecDeque;

/// What error control thinks of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// The block decodes: it is where the synchroniser thought.
    Good,
    /// It does not decode.
    Bad,
    /// There is nothing to judge it by.
    Unknown,
}

/// Decodes blocks for the synchroniser.
pub trait Judge {
    /// What is known of a block after decoding it.
    type Opinion;

    /// Where in the bits the block that is judged next begins, and whether it came inverted: for
    /// who knows more of the bits than their signs.
    fn aim(&mut self, _position: u64, _inverted: bool) {}

    /// Decodes `block`, the bytes after a marker in true polarity.
    fn judge(&mut self, block: &[u8]) -> (Judgement, Self::Opinion);

    /// Decodes a run of blocks: hands on the same, in the same order, as [`Self::judge`] gives of
    /// each.
    fn judge_run(&mut self, run: Run<'_>, take: &mut dyn FnMut(Judgement, Self::Opinion)) {
        for block in run.blocks() {
            let (judgement, opinion) = self.judge(block);
            take(judgement, opinion);
        }
    }
}

/// What the synchroniser reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyncEvent<T> {
    /// Lock was reached at this place.
    Locked(BitPosition),
    /// A block was found.
    Found(Found<T>),
    /// Lock was lost; the last frame ended here.
    Lost(BitPosition),
}

/// A block that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T> {
    /// Where its marker begins.
    pub position: BitPosition,
    /// When its last bit came.
    pub received: Utc,
    /// Wrong bits in the marker.
    pub marker_errors: u8,
    /// The bits came inverted.
    pub inverted: bool,
    /// Bits by which the marker came later than it was due.
    pub slip: i8,
    /// There was no marker.
    pub flywheel: bool,
    /// What the judge said.
    pub opinion: T,
}

/// Finds blocks in a bit stream. After each [`Self::push`], call [`Self::poll`] until it returns
/// `None`: then at most [`SyncConfig::flywheel_frames`] + 4 blocks and 64 KiB stay buffered. While
/// in lock, blocks are decoded up to
/// [`RUN_BLOCKS`] at a time, as many as have come.
#[derive(Debug)]
pub struct Synchroniser<T> {
    config: SyncConfig,
    marker: Marker,
    finder: Finder,
    block_len: usize,
    bits: BitBuffer,
    state: State,
    /// The first bit.
    start: u64,
    /// Where the next marker is due (lock, flywheel).
    due: u64,
    /// Where searching goes on, or the candidate in check.
    cursor: u64,
    /// Whether the bit at the cursor is a candidate that waits for more bits.
    has_candidate: bool,
    /// The first bit that belongs to no good frame.
    unclaimed: u64,
    inverted: bool,
    /// Blocks without a marker in a row.
    coasted: u8,
    events: VecDeque<SyncEvent<T>>,
    counts: SyncCounts,
    ended: bool,
    /// The block that is looked at.
    block: Vec<u8>,
    /// Wrong bits in each marker of a run.
    marker_errors: Vec<u8>,
    /// A run that came inverted or between bytes, turned right, by stretches.
    realigned: [Vec<u8>; 2],
}

/// Where a frame is taken to be, and why.
#[derive(Debug, Clone, Copy)]
struct Hit {
    position: u64,
    /// Wrong bits in the marker.
    errors: u8,
    inverted: bool,
    /// Bits later than due.
    slip: i8,
    /// Not for its marker's sake.
    flywheel: bool,
}

impl<T> Synchroniser<T> {
    /// For blocks of `block_len` bytes after `marker`; the first byte pushed holds the bit `start`,
    /// at which searching begins.
    pub fn new(config: SyncConfig, marker: Marker, block_len: usize, start: BitPosition) -> Self {
        let config = config.of(marker);
        let start = start.as_bits();
        Self {
            config,
            marker,
            finder: Finder::new(marker, u32::from(config.search_errors)),
            block_len,
            bits: BitBuffer::starting_at(start),
            state: State::Search,
            start,
            due: start,
            cursor: start,
            has_candidate: false,
            unclaimed: start,
            inverted: false,
            coasted: 0,
            events: VecDeque::new(),
            counts: SyncCounts::default(),
            ended: false,
            block: Vec::new(),
            marker_errors: Vec::new(),
            realigned: [Vec::new(), Vec::new()],
        }
    }

    /// Takes the next bytes of the input.
    pub fn push(&mut self, received: Utc, bytes: &[u8]) {
        self.counts.bits += 8 * bytes.len() as u64;
        self.bits.push(received, bytes);
    }
    /// The same, for the one who decodes: in lock, blocks are decoded where they lie, and not
    /// copied first. They are reported by [`Self::poll`].
    pub fn push_through<J: Judge<Opinion = T>>(
        &mut self,
        received: Utc,
        bytes: &[u8],
        judge: &mut J,
    ) {
        self.counts.bits += 8 * bytes.len() as u64;
        if !self.follow_through(received, bytes, judge) {
            self.bits.push(received, bytes);
        }
    }
    /// No more bytes will come: what waits for proof is decided with what there is.
    pub fn finish(&mut self) {
        self.ended = true;
    }
    /// Counts up to here.
    pub fn counts(&self) -> SyncCounts {
        let reached = if self.ended { self.bits.end() } else { self.due.max(self.unclaimed) };
        let in_frames = self.counts.frames * self.block_bits();
        SyncCounts { skipped_bits: (reached - self.start).saturating_sub(in_frames), ..self.counts }
    }
    /// Whether it is in lock.
    pub fn is_locked(&self) -> bool {
        matches!(self.state, State::Lock | State::Flywheel)
    }
    /// The first bit that is still held: what comes before is not judged any more.
    pub fn held_from(&self) -> u64 {
        self.bits.view().start
    }
    /// What was found and was not polled for yet.
    pub fn waiting(&self) -> impl DoubleEndedIterator<Item = &SyncEvent<T>> {
        self.events.iter()
    }
    /// Bits searched since the last frame without success.
    pub const fn searched_bits(&self) -> u64 {
        self.cursor.saturating_sub(self.unclaimed)
    }

    /// The next event; `None` where more bytes are needed.
    pub fn poll<J: Judge<Opinion = T>>(&mut self, judge: &mut J) -> Option<SyncEvent<T>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let went_on = match self.state {
                State::Search | State::Check => self.search(judge),
                State::Lock => self.follow(judge),
                State::Flywheel => self.coast(judge),
            };
            if !went_on {
                self.trim();
                return None;
            }
        }
    }

    const fn marker_bits(&self) -> u64 {
        self.marker.bits() as u64
    }

    const fn block_bits(&self) -> u64 {
        self.marker_bits() + 8 * self.block_len as u64
    }

    fn holds_block(&self, position: u64) -> bool {
        position + self.block_bits() <= self.bits.end()
    }

    /// Gives up bits that no search can go back to.
    fn trim(&mut self) {
        let behind = u64::from(self.config.flywheel_frames) + 1;
        let kept = self.cursor.saturating_sub(behind * self.block_bits()).max(self.unclaimed);
        let keep = if self.is_locked() { self.unclaimed } else { kept };
        self.unclaimed = keep;
        self.bits.trim(keep);
    }

    /// Searching, without knowing where a marker is due. Returns whether anything was done.
    fn search<J: Judge<Opinion = T>>(&mut self, judge: &mut J) -> bool {
        if !self.has_candidate {
            let to = (self.bits.end() + 1).saturating_sub(self.marker_bits());
            match self.bits.find(&self.finder, self.cursor, to) {
                None => {
                    self.cursor = self.cursor.max(to);
                    return false;
                }
                Some(position) => {
                    self.cursor = position;
                    self.has_candidate = true;
                    self.state = self.state.candidate().expect(SEARCHING);
                }
            }
        }
        match self.prove(judge) {
            Proof::Waits => false,
            Proof::Fails => {
                self.reject();
                true
            }
            Proof::Holds(hit) => {
                self.has_candidate = false;
                self.counts.locks += 1;
                self.events.push_back(SyncEvent::Locked(BitPosition::from_bits(hit.position)));
                self.relock(hit, None, judge);
                true
            }
        }
    }

    /// A marker is due, and the one before was there.
    fn follow<J: Judge<Opinion = T>>(&mut self, judge: &mut J) -> bool {
        if !self.holds_block(self.due) {
            // A slip in a last frame that is not good can leave room for one more behind it.
            let has_room =
                self.ended && self.unclaimed < self.due && self.holds_block(self.unclaimed);
            if has_room {
                self.miss();
            }
            return has_room;
        }
        if self.follow_run(judge) {
            return true;
        }
        if let Some(hit) = self.hit_when_due(judge) {
            self.coasted = 0;
            match self.hidden_behind(hit, judge) {
                Some(hidden) => self.relock(hidden, None, judge),
                None => {
                    self.state = self.state.confirmed().expect(IN_LOCK);
                    self.take(hit, judge);
                }
            }
            return true;
        }
        if !self.ended && !self.holds_block(self.due + u64::from(self.config.slip_bits)) {
            return false;
        }
        if let Some(hit) = self.hit_after_slip() {
            self.coasted = 0;
            self.state = self.state.confirmed().expect(IN_LOCK);
            self.take(hit, judge);
            return true;
        }
        self.coasted = self.coasted.saturating_add(1);
        self.miss();
        let hit = self.coasting(self.due);
        if self.coasted <= self.config.flywheel_frames
            && self.judgement(hit, judge) == Judgement::Good
        {
            self.state = self.state.confirmed().expect(COASTING);
            self.take(hit, judge);
        }
        true
    }

    /// The good frame that begins in bits of no good frame and reaches over the place where
    /// `doubtful` was taken for the marker that is due: among the bits of a frame that came too
    /// early, every 2000th place looks like one.
    fn hidden_behind<J: Judge<Opinion = T>>(
        &mut self,
        doubtful: Hit,
        judge: &mut J,
    ) -> Option<Hit> {
        let is_sure =
            doubtful.errors <= self.config.check_errors || self.unclaimed >= doubtful.position;
        if is_sure || self.judgement(doubtful, judge) != Judgement::Bad {
            return None;
        }
        let mut from = self.unclaimed;
        while let Some(position) = self.bits.find(&self.finder, from, doubtful.position) {
            let hit = self.hit_at(position);
            if self.judgement(hit, judge) == Judgement::Good {
                return Some(hit);
            }
            from = position + 1;
        }
        None
    }

    fn miss(&mut self) {
        self.state = self.state.missed().expect(IN_LOCK);
        self.cursor = self.unclaimed;
        self.has_candidate = false;
    }

    /// A marker was due and is not there: looks for another one, from the last good frame on, as
    /// far as the flywheel may turn.
    fn coast<J: Judge<Opinion = T>>(&mut self, judge: &mut J) -> bool {
        let limit = self.due + (u64::from(self.config.flywheel_frames) + 1) * self.block_bits();
        if !self.has_candidate {
            let end = (self.bits.end() + 1).saturating_sub(self.marker_bits());
            let to = end.min(limit);
            match self.bits.find(&self.finder, self.cursor, to) {
                Some(position) => {
                    self.cursor = position;
                    self.has_candidate = true;
                    self.state = self.state.candidate().expect(COASTING);
                }
                None => {
                    self.cursor = self.cursor.max(to);
                    if self.cursor < limit && !self.ended {
                        return false;
                    }
                    self.lose(judge);
                    return true;
                }
            }
        }
        match self.prove(judge) {
            Proof::Waits => false,
            Proof::Fails => {
                self.reject();
                true
            }
            Proof::Holds(hit) => {
                self.has_candidate = false;
                self.coasted = 0;
                self.relock(hit, Some(self.due), judge);
                true
            }
        }
    }

    fn reject(&mut self) {
        self.state = self.state.rejected().expect(COASTING);
        self.has_candidate = false;
        self.cursor += 1;
    }

    /// The flywheel has turned as long as it may. At the input's end, whole blocks that may be
    /// frames still count.
    fn lose<J: Judge<Opinion = T>>(&mut self, judge: &mut J) {
        let mut blocks = 0;
        while self.ended && self.holds_block(self.due) && blocks < self.config.flywheel_frames {
            let hit = self.coasting(self.due);
            // No later marker can confirm the flywheel any more: one bad block ends it.
            if self.judgement(hit, judge) == Judgement::Bad {
                break;
            }
            blocks += 1;
            self.take(hit, judge);
        }
        self.coasted = 0;
        self.counts.losses += 1;
        self.events.push_back(SyncEvent::Lost(BitPosition::from_bits(self.due)));
        self.state = self.state.limit().expect(COASTING);
    }

    /// Whether error control or the markers after it prove the candidate at the cursor.
    fn prove<J: Judge<Opinion = T>>(&mut self, judge: &mut J) -> Proof {
        let position = self.cursor;
        if !self.holds_block(position) {
            return if self.ended { Proof::Fails } else { Proof::Waits };
        }
        let hit = self.hit_at(position);
        // Good error control proves a frame at once; a bad one disproves nothing, since the block
        // may be damaged: then the markers that follow decide.
        if self.judgement(hit, judge) == Judgement::Good {
            return Proof::Holds(hit);
        }
        for frame in 1..=u64::from(self.config.check_frames) {
            let next = position + frame * self.block_bits();
            if next + self.marker_bits() > self.bits.end() {
                return if self.ended { Proof::Fails } else { Proof::Waits };
            }
            if self.hit_at(next).errors > self.config.check_errors {
                return Proof::Fails;
            }
        }
        Proof::Holds(hit)
    }

    /// Continues from a proved frame, after taking the blocks before it that belong to no frame
    /// yet: every block at a position that the flywheel predicts from `due`, and elsewhere only
    /// those with a marker or good error control.
    fn relock<J: Judge<Opinion = T>>(&mut self, hit: Hit, due: Option<u64>, judge: &mut J) {
        self.state = self.state.confirmed().expect(COASTING);
        let length = self.block_bits();
        // Whole blocks that fit between the last good frame and the proved one. A rest that is
        // shorter than a block is a slip or the end of a damaged frame, and holds no frame.
        let before = (hit.position - self.unclaimed) / length;
        // The flywheel's prediction holds only if no bit slipped since: then the proved frame lies
        // a whole number of blocks behind `due`. Otherwise it is not known on which side of the
        // slip a block lies, and no block is taken on the prediction alone.
        let first_promised = due
            .filter(|due| hit.position >= *due && (hit.position - due).is_multiple_of(length))
            .unwrap_or(hit.position);
        for back in (1..=before).rev() {
            let position = hit.position - back * length;
            match self.backward(position, hit.inverted, judge) {
                Some(earlier) => self.take(earlier, judge),
                // Neither marker nor error control confirms it, but the frames before and after it
                // agree on its position: it is reported, so that it is counted and set aside.
                None if position >= first_promised => self.take(self.coasting(position), judge),
                // Nothing says that a frame was sent here: these bits count as skipped.
                None => {}
            }
        }
        // With blocks in between, the distance to `due` is not the slip of this frame alone. One
        // of more than 127 bits is a gap, not the slip of a bit synchroniser, and counts as none.
        let late = due.filter(|_| before == 0).map_or(0, |due| hit.position as i64 - due as i64);
        self.take(Hit { slip: i8::try_from(late).unwrap_or(0), ..hit }, judge);
    }

    /// A frame at `position`, before one of polarity `inverted`, if it has a marker or decodes.
    fn backward<J: Judge<Opinion = T>>(
        &mut self,
        position: u64,
        inverted: bool,
        judge: &mut J,
    ) -> Option<Hit> {
        let hit = self.hit_at(position);
        // `check_errors` are passed by chance once in four million times: no decoding is needed.
        if hit.errors <= self.config.check_errors {
            return Some(hit);
        }
        // A damaged marker says little of the polarity. That of the proved frame comes first, since
        // a receiver seldom changes it; the other is for a change between the two frames.
        [inverted, !inverted].into_iter().find_map(|inverted| {
            let errors = if inverted == hit.inverted {
                hit.errors
            } else {
                self.marker_bits() as u8 - hit.errors
            };
            let hit = Hit { inverted, errors, flywheel: errors > self.config.lock_errors, ..hit };
            (self.judgement(hit, judge) == Judgement::Good).then_some(hit)
        })
    }

    fn judgement<J: Judge<Opinion = T>>(&mut self, hit: Hit, judge: &mut J) -> Judgement {
        self.bits.copy(
            hit.position + self.marker_bits(),
            self.block_len,
            hit.inverted,
            &mut self.block,
        );
        judge.aim(hit.position + self.marker_bits(), hit.inverted);
        judge.judge(&self.block).0
    }

    /// Reports the frame at `hit` and goes on behind it.
    fn take<J: Judge<Opinion = T>>(&mut self, hit: Hit, judge: &mut J) {
        self.bits.copy(
            hit.position + self.marker_bits(),
            self.block_len,
            hit.inverted,
            &mut self.block,
        );
        judge.aim(hit.position + self.marker_bits(), hit.inverted);
        let judged = judge.judge(&self.block);
        let received = self.bits.received(hit.position + self.block_bits());
        self.report(hit, received, judged);
    }

    /// Reports the frame at `hit`, of which the judge has spoken, and goes on behind it.
    fn report(&mut self, hit: Hit, received: Utc, (judgement, opinion): (Judgement, T)) {
        let end = hit.position + self.block_bits();
        self.counts.frames += 1;
        self.counts.inverted += u64::from(hit.inverted);
        self.counts.slips += u64::from(hit.slip != 0);
        self.counts.flywheel += u64::from(hit.flywheel);
        self.counts.marker_errors += u64::from(hit.errors);
        self.events.push_back(SyncEvent::Found(Found {
            position: BitPosition::from_bits(hit.position),
            received,
            marker_errors: hit.errors,
            inverted: hit.inverted,
            slip: hit.slip,
            flywheel: hit.flywheel,
            opinion,
        }));
        self.inverted = hit.inverted;
        self.due = end;
        // A frame that is not surely good may hide the start of the next one.
        self.unclaimed =
            if judgement == Judgement::Good { end } else { hit.position + self.marker_bits() };
        self.cursor = self.unclaimed;
    }
}

enum Proof {
    /// More bits are needed.
    Waits,
    Holds(Hit),
    Fails,
}

const SEARCHING: &str = "candidates are looked for in search and flywheel only";
const IN_LOCK: &str = "only called in lock";
const COASTING: &str = "only called with a candidate or in flywheel";

#[cfg(test)]
mod tests;
