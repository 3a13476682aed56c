//! The frame synchroniser: finds blocks of one length behind markers in a bit stream, at any bit
//! offset, in true or inverted polarity.
//!
//! If a marker is damaged or bits slipped, error control decides: a block that decodes is a frame
//! even without its marker ([`Judge`]). If a marker is not where it was due, the bits since the
//! last frame that is certainly good are searched again, so that no good frame between two
//! impairments is lost. Left out: the block length ([`crate::identify`]), and the content of a
//! block.

mod bits;
mod cadus;
mod config;
mod counts;
mod event;
mod hit;
mod judge;
mod prediction;
mod reports;
mod run;
mod search;
mod state;

use crate::quality::BitPosition;
use cadus::CaduBuffer;
pub use config::SyncConfig;
pub use counts::SyncCounts;
pub use event::{Found, SyncEvent};
use hit::{CaduLayout, Hit};
pub use judge::{Judge, Judgement, Run};
use prediction::Prediction;
use reports::Reports;
pub use run::RUN_BLOCKS;
use run::RunBuffers;
use search::{MarkerSearch, Proof};
use skyhaul_coding::marker::Marker;
use skyhaul_units::Utc;
use state::State;

/// Finds blocks in a bit stream. After each [`Self::push`], call [`Self::poll`] until it returns
/// `None`: then at most [`SyncConfig::flywheel_frames`] + 4 blocks and 64 KiB stay buffered. While
/// in lock, the blocks received are decoded up to [`RUN_BLOCKS`] at a time.
#[derive(Debug)]
pub struct Synchroniser<T> {
    config: SyncConfig,
    state: State,
    /// The first bit.
    start: u64,
    cadus: CaduBuffer,
    search: MarkerSearch,
    prediction: Prediction,
    reports: Reports<T>,
    run_buffers: RunBuffers,
}

impl<T> Synchroniser<T> {
    /// For blocks of `block_len` bytes after `marker`; the first byte pushed holds the bit `start`,
    /// at which the search begins.
    pub fn new(config: SyncConfig, marker: Marker, block_len: usize, start: BitPosition) -> Self {
        let config = config.of(marker);
        let start = start.as_bits();
        Self {
            state: State::Search,
            start,
            cadus: CaduBuffer::new(CaduLayout { marker, block_len }, start),
            search: MarkerSearch::new(marker, &config, start),
            prediction: Prediction::starting_at(start),
            reports: Reports::new(),
            run_buffers: RunBuffers::default(),
            config,
        }
    }

    /// Takes the next bytes of the input.
    pub fn push(&mut self, received: Utc, bytes: &[u8]) {
        self.reports.counts.bits += 8 * bytes.len() as u64;
        self.cadus.bits.push(received, bytes);
    }
    /// Takes the next bytes like [`Self::push`]; in lock, it decodes their blocks at once without
    /// copying them first. [`Self::poll`] reports them.
    pub fn push_through<J: Judge<Opinion = T>>(
        &mut self,
        received: Utc,
        bytes: &[u8],
        judge: &mut J,
    ) {
        self.reports.counts.bits += 8 * bytes.len() as u64;
        if !self.follow_through(received, bytes, judge) {
            self.cadus.bits.push(received, bytes);
        }
    }
    /// No more bytes follow: frames that wait for proof are decided with the bits present.
    pub fn finish(&mut self) {
        self.cadus.ended = true;
    }
    /// Counts up to here.
    pub fn counts(&self) -> SyncCounts {
        let Prediction { due, unclaimed, .. } = self.prediction;
        let reached = if self.cadus.ended { self.cadus.bits.end() } else { due.max(unclaimed) };
        let counts = self.reports.counts;
        let in_frames = counts.frames * self.cadus.layout.cadu_bits();
        SyncCounts { skipped_bits: (reached - self.start).saturating_sub(in_frames), ..counts }
    }
    /// Whether it is in lock.
    pub fn is_locked(&self) -> bool {
        matches!(self.state, State::Lock | State::Flywheel)
    }
    /// The first bit still held: earlier bits are not judged any more.
    pub fn held_from(&self) -> u64 {
        self.cadus.bits.view().start
    }
    /// The events that are not polled yet.
    pub fn waiting(&self) -> impl DoubleEndedIterator<Item = &SyncEvent<T>> {
        self.reports.events.iter()
    }
    /// Bits searched since the last frame without success.
    pub const fn searched_bits(&self) -> u64 {
        self.search.cursor().saturating_sub(self.prediction.unclaimed)
    }

    /// The next event; `None` where more bytes are needed.
    pub fn poll<J: Judge<Opinion = T>>(&mut self, judge: &mut J) -> Option<SyncEvent<T>> {
        loop {
            if let Some(event) = self.reports.events.pop_front() {
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

    /// Drops bits to which no search can go back.
    fn trim(&mut self) {
        let behind = u64::from(self.config.flywheel_frames) + 1;
        let searched = self.search.cursor().saturating_sub(behind * self.cadus.layout.cadu_bits());
        let unclaimed = self.prediction.unclaimed;
        let keep = if self.is_locked() { unclaimed } else { searched.max(unclaimed) };
        self.prediction.unclaimed = keep;
        self.cadus.bits.trim(keep);
    }

    /// Searches without a predicted position. Returns whether anything was done.
    fn search<J: Judge<Opinion = T>>(&mut self, judge: &mut J) -> bool {
        if !self.find_candidate(self.cadus.markers_end()) {
            return false;
        }
        match self.search.prove(&mut self.cadus, &self.config, judge) {
            Proof::Waits => false,
            Proof::Fails => {
                self.reject();
                true
            }
            Proof::Holds(hit) => {
                self.reports.locked(hit.position);
                self.relock(hit, None, judge);
                true
            }
        }
    }

    /// A marker is due, and the one before was there.
    fn follow<J: Judge<Opinion = T>>(&mut self, judge: &mut J) -> bool {
        let Prediction { due, unclaimed, polarity, .. } = self.prediction;
        let ended = self.cadus.ended;
        if !self.cadus.holds(due) {
            // A slip in a last frame that is not good may leave room for one more after it.
            let has_room = ended && unclaimed < due && self.cadus.holds(unclaimed);
            if has_room {
                self.miss();
            }
            return has_room;
        }
        if self.follow_run(judge) {
            return true;
        }
        if let Some(hit) = self.prediction.marker_when_due(&mut self.cadus, &self.config, judge) {
            self.prediction.coasted = 0;
            match self.hidden_behind(hit, judge) {
                Some(hidden) => self.relock(hidden, None, judge),
                None => {
                    self.state = self.state.confirmed().expect(IN_LOCK);
                    self.take(hit, judge);
                }
            }
            return true;
        }
        // The bits of a late marker are incomplete: nothing is decided yet.
        if !ended && !self.cadus.holds(due + u64::from(self.config.slip_bits)) {
            return false;
        }
        if let Some(hit) = self.prediction.marker_after_slip(&self.cadus, &self.config) {
            self.prediction.coasted = 0;
            self.state = self.state.confirmed().expect(IN_LOCK);
            self.take(hit, judge);
            return true;
        }
        // No marker. A block that decodes where one was due is a frame with a damaged marker, and
        // keeps the lock; otherwise the bits since the last good frame are searched.
        self.prediction.coasted = self.prediction.coasted.saturating_add(1);
        self.miss();
        let hit = self.cadus.coasting(due, polarity);
        if self.prediction.coasted <= self.config.flywheel_frames && self.cadus.is_good(hit, judge)
        {
            self.state = self.state.confirmed().expect(COASTING);
            self.take(hit, judge);
        }
        true
    }

    /// The good frame that begins in bits of no good frame and extends over the position of
    /// `doubtful`, which was accepted as the marker due: every 2000th position in a frame that is
    /// too early looks like a marker.
    fn hidden_behind<J: Judge<Opinion = T>>(
        &mut self,
        doubtful: Hit,
        judge: &mut J,
    ) -> Option<Hit> {
        let unclaimed = self.prediction.unclaimed;
        // A clear marker is a chance hit once in four million times; after a good frame there are
        // no bits in which another frame could begin.
        let is_sure = doubtful.errors <= self.config.check_errors || unclaimed >= doubtful.position;
        if is_sure || !self.cadus.is_bad(doubtful, judge) {
            return None;
        }
        self.search.good_frame(&mut self.cadus, unclaimed..doubtful.position, judge)
    }

    fn miss(&mut self) {
        self.state = self.state.missed().expect(IN_LOCK);
        self.search.restart(self.prediction.unclaimed);
    }

    /// A marker was due and is not there: searches for another one, from the last good frame to the
    /// end of the flywheel.
    fn coast<J: Judge<Opinion = T>>(&mut self, judge: &mut J) -> bool {
        let due = self.prediction.due;
        let blocks = u64::from(self.config.flywheel_frames) + 1;
        let limit = due + blocks * self.cadus.layout.cadu_bits();
        if !self.find_candidate(self.cadus.markers_end().min(limit)) {
            if self.search.cursor() < limit && !self.cadus.ended {
                return false;
            }
            self.lose(judge);
            return true;
        }
        match self.search.prove(&mut self.cadus, &self.config, judge) {
            Proof::Waits => false,
            Proof::Fails => {
                self.reject();
                true
            }
            Proof::Holds(hit) => {
                self.prediction.coasted = 0;
                self.relock(hit, Some(due), judge);
                true
            }
        }
    }

    /// Whether there is a candidate before `to`; searches for one if there is none yet.
    fn find_candidate(&mut self, to: u64) -> bool {
        if self.search.has_candidate() {
            return true;
        }
        let is_found = self.search.advance(&self.cadus.bits, to);
        if is_found {
            self.state = self.state.candidate().expect(SEARCHING);
        }
        is_found
    }

    fn reject(&mut self) {
        self.state = self.state.rejected().expect(COASTING);
        self.search.reject();
    }

    /// The flywheel has reached its limit. At the end of the input, whole blocks that may be frames
    /// still count.
    fn lose<J: Judge<Opinion = T>>(&mut self, judge: &mut J) {
        let mut blocks = 0;
        while self.cadus.ended
            && self.cadus.holds(self.prediction.due)
            && blocks < self.config.flywheel_frames
        {
            let hit = self.cadus.coasting(self.prediction.due, self.prediction.polarity);
            // No later marker can confirm the flywheel any more: one bad block ends it.
            if self.cadus.is_bad(hit, judge) {
                break;
            }
            blocks += 1;
            self.take(hit, judge);
        }
        self.prediction.coasted = 0;
        self.reports.lost(self.prediction.due);
        self.state = self.state.limit().expect(COASTING);
    }

    /// Continues from a proved frame, after taking the blocks before it that belong to no frame
    /// yet: every block at a position that the flywheel predicts from `due`, and elsewhere only
    /// those with a marker or good error control.
    fn relock<J: Judge<Opinion = T>>(&mut self, hit: Hit, due: Option<u64>, judge: &mut J) {
        self.state = self.state.confirmed().expect(COASTING);
        let length = self.cadus.layout.cadu_bits();
        // Whole blocks that fit between the last good frame and the proved one. A rest that is
        // shorter than a block is a slip or the end of a damaged frame, and holds no frame.
        let before = (hit.position - self.prediction.unclaimed) / length;
        // The flywheel's prediction holds only if no bit slipped since: then the proved frame lies
        // a whole number of blocks behind `due`. Otherwise it is not known on which side of the
        // slip a block lies, and no block is taken on the prediction alone.
        let first_promised = due
            .filter(|due| hit.position >= *due && (hit.position - due).is_multiple_of(length))
            .unwrap_or(hit.position);
        for back in (1..=before).rev() {
            let position = hit.position - back * length;
            let earlier = self.cadus.frame_before(position, hit.polarity, &self.config, judge);
            match earlier {
                Some(earlier) => self.take(earlier, judge),
                // Neither marker nor error control confirms the frame, but the frames before and
                // after it agree on its position: it is reported, so that it is counted and set
                // aside.
                None if position >= first_promised => {
                    let promised = self.cadus.coasting(position, self.prediction.polarity);
                    self.take(promised, judge);
                }
                // There is no sign of a frame: these bits count as skipped.
                None => {}
            }
        }
        // With blocks in between, the distance to `due` is not the slip of this frame alone. More
        // than 127 bits are a gap, not the slip of a bit synchroniser, and do not count as a slip.
        let late = due.filter(|_| before == 0).map_or(0, |due| hit.position as i64 - due as i64);
        self.take(Hit { slip: i8::try_from(late).unwrap_or(0), ..hit }, judge);
    }

    /// Reports the frame at `hit` and continues after it.
    fn take<J: Judge<Opinion = T>>(&mut self, hit: Hit, judge: &mut J) {
        let (judgement, opinion) = self.cadus.judge(hit, judge);
        self.report(hit, self.cadus.received(hit), judgement, opinion);
    }

    /// Reports the frame at `hit`, which the judge has decided, and continues after it.
    fn report(&mut self, hit: Hit, received: Utc, judgement: Judgement, opinion: T) {
        self.reports.found(hit, received, opinion);
        self.prediction.advance(hit, judgement, self.cadus.layout);
        self.search.restart(self.prediction.unclaimed);
    }
}

const SEARCHING: &str = "candidates are looked for in search and flywheel only";
const IN_LOCK: &str = "only called in lock";
const COASTING: &str = "only called with a candidate or in flywheel";

#[cfg(test)]
mod tests;
