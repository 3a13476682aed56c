//! Searches every bit for a marker, and proves that it begins a frame.

use super::bits::BitBuffer;
use super::cadus::CaduBuffer;
use super::config::SyncConfig;
use super::hit::Hit;
use super::judge::Judge;
use skyhaul_coding::marker::{Finder, Marker};
use std::ops::Range;

/// The search for a marker without a prediction.
#[derive(Debug)]
pub(super) struct MarkerSearch {
    finder: Finder,
    progress: Progress,
}

/// How far the search has come.
#[derive(Debug, Clone, Copy)]
enum Progress {
    /// There is no candidate before this bit.
    Searched(u64),
    /// The candidate at this bit waits for its proof.
    Candidate(u64),
}

/// Whether a candidate begins a frame.
#[derive(Debug, Clone, Copy)]
pub(super) enum Proof {
    /// More bits are needed.
    Waits,
    Holds(Hit),
    Fails,
}

impl MarkerSearch {
    pub fn new(marker: Marker, config: &SyncConfig, start: u64) -> Self {
        let finder = Finder::new(marker, u32::from(config.search_errors));
        Self { finder, progress: Progress::Searched(start) }
    }

    /// The position at which the search continues, or the candidate.
    pub const fn cursor(&self) -> u64 {
        match self.progress {
            Progress::Searched(cursor) | Progress::Candidate(cursor) => cursor,
        }
    }

    pub const fn has_candidate(&self) -> bool {
        matches!(self.progress, Progress::Candidate(_))
    }

    /// Begins anew at `position`.
    pub const fn restart(&mut self, position: u64) {
        self.progress = Progress::Searched(position);
    }

    /// Searches for the next candidate before `to`. Returns whether there is one.
    pub fn advance(&mut self, bits: &BitBuffer, to: u64) -> bool {
        let cursor = self.cursor();
        match bits.find(&self.finder, cursor, to) {
            Some(position) => self.progress = Progress::Candidate(position),
            None => self.progress = Progress::Searched(cursor.max(to)),
        }
        self.has_candidate()
    }

    /// Continues after a candidate that does not begin a frame.
    pub const fn reject(&mut self) {
        self.restart(self.cursor() + 1);
    }

    /// Whether error control or the markers after it prove the candidate.
    pub fn prove<J: Judge>(
        &self,
        cadus: &mut CaduBuffer,
        config: &SyncConfig,
        judge: &mut J,
    ) -> Proof {
        let position = self.cursor();
        let undecided = if cadus.ended { Proof::Fails } else { Proof::Waits };
        if !cadus.holds(position) {
            return undecided;
        }
        let hit = cadus.hit_at(position);
        // A good result of error control proves a frame at once. A bad one does not disprove it,
        // because the block may be damaged: then the markers that follow decide.
        if cadus.is_good(hit, judge) {
            return Proof::Holds(hit);
        }
        for frame in 1..=u64::from(config.check_frames) {
            let next = position + frame * cadus.layout.cadu_bits();
            if next >= cadus.markers_end() {
                return undecided;
            }
            if cadus.hit_at(next).errors > config.check_errors {
                return Proof::Fails;
            }
        }
        Proof::Holds(hit)
    }

    /// The first good frame that begins in `range`.
    pub fn good_frame<J: Judge>(
        &self,
        cadus: &mut CaduBuffer,
        range: Range<u64>,
        judge: &mut J,
    ) -> Option<Hit> {
        let mut from = range.start;
        while let Some(position) = cadus.bits.find(&self.finder, from, range.end) {
            let hit = cadus.hit_at(position);
            if cadus.is_good(hit, judge) {
                return Some(hit);
            }
            from = position + 1;
        }
        None
    }
}
