//! One input of a selection: its position in the downlink, the frames that wait until the position
//! is known, and its account.

use super::identity::{Arrived, Identity, Key, Series};
use crate::count::CountStep;
use crate::quality::{BitPosition, CapturedFrame};
use skyhaul_units::{Duration, Utc};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The account of an input's frames: `given` is the sum of `chosen`, `worse`, `duplicates`,
/// `repeated`, `late` and those that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InputAccount {
    /// Frames that it gave, good or not.
    pub given: u64,
    /// Frames returned with the copy of this input.
    pub chosen: u64,
    /// Of these, good frames without a good copy at another input.
    pub only_here: u64,
    /// Copies that were not better than the one returned.
    pub worse: u64,
    /// Copies that arrived after the frame was returned.
    pub duplicates: u64,
    /// Frames that it gave twice itself.
    pub repeated: u64,
    /// Frames without a copy whose place was returned already: the skew of the input exceeds the
    /// window, or it paused for longer.
    pub late: u64,
    /// Its skew behind the first input with the same frame: the least of its last few frames.
    pub skew: Duration,
}

impl InputAccount {
    /// Both together; the skew is that of the later one.
    #[must_use]
    pub const fn plus(self, later: Self) -> Self {
        Self {
            given: self.given + later.given,
            chosen: self.chosen + later.chosen,
            only_here: self.only_here + later.only_here,
            worse: self.worse + later.worse,
            duplicates: self.duplicates + later.duplicates,
            repeated: self.repeated + later.repeated,
            late: self.late + later.late,
            skew: later.skew,
        }
    }
}

/// One input.
#[derive(Debug)]
pub(super) struct Input {
    pub account: InputAccount,
    pub is_open: bool,
    /// Bits from one frame to the next.
    pub stride: u64,
    /// The reception time and the position of its last frame.
    last: Option<(Utc, BitPosition)>,
    /// The recent mean time from one frame to the next.
    pace: Duration,
    /// Frames whose place is not known.
    pub waiting: VecDeque<Arrived>,
    waiting_keys: BTreeSet<Key>,
    /// Copies in slots that wait.
    pub pending: usize,
    /// The place of its last frame, and its position.
    at: Option<(i64, u64)>,
    /// The place of its last good frame: the places of other frames may be wrong.
    past: Option<i64>,
    /// Whether the place is known from a frame that other inputs had too.
    pub is_sure: bool,
    /// Another good frame was at the assumed place of one of its frames: it does not count as past
    /// any frame until its place is known again.
    pub is_in_doubt: bool,
    /// Places up to there at which it had no good frame.
    free: i64,
    /// The newest count of each channel, and how many places were free by then.
    counts: BTreeMap<Series, (u64, i64)>,
    lags: VecDeque<Duration>,
}

/// An input that was silent for this long may have lost any number of bits.
pub(super) const SILENCE: Duration = Duration::from_secs(1);
/// Frames from which an input's skew is computed.
const LAGS: usize = 16;
/// Frames by which an input must be ahead of a missing frame to be past it: after lost pieces of a
/// stream, places may be wrong by some frames, and the interleaving of channels may differ. 35 ms
/// at 15 Mbit/s.
const SLACK: i64 = 64;
/// Most channels whose counts are followed.
const MAX_CHANNELS: usize = 64;
/// A larger step of a count is a reset of the counter, and does not affect places.
const LONGEST_GAP: u64 = 4_096;

impl Input {
    pub fn new(stride: u64) -> Self {
        Self {
            account: InputAccount::default(),
            is_open: true,
            stride: stride.max(1),
            last: None,
            pace: Duration::ZERO,
            waiting: VecDeque::new(),
            waiting_keys: BTreeSet::new(),
            pending: 0,
            at: None,
            past: None,
            is_sure: true,
            is_in_doubt: false,
            free: 0,
            counts: BTreeMap::new(),
            lags: VecDeque::new(),
        }
    }

    /// Whether its place is known.
    pub const fn has_place(&self) -> bool {
        self.at.is_some()
    }

    /// The place of its last frame.
    pub fn place(&self) -> Option<i64> {
        self.at.map(|(place, _)| place)
    }

    /// A frame was received of an input that can't be held back. If much more time than bits passed
    /// since the one before, an unknown number of bits is lost, and the place is unknown: frames
    /// placed by their bits would be returned before earlier frames of the other inputs, once these
    /// have waited for the `window`.
    pub fn keep_time(&mut self, frame: &CapturedFrame, window: Duration) {
        let Some((at, position)) = self.last.replace((frame.received, frame.position)) else {
            return;
        };
        let passed = frame.received.since(at);
        let steps = self.steps(position, frame.position).max(1).cast_unsigned();
        if passed > SILENCE || passed > self.pace.scaled(2 * steps, 1) + window.scaled(1, 2) {
            self.lose_place();
        } else {
            self.pace = (self.pace.scaled(7, 1) + passed.scaled(1, steps)).scaled(1, 8);
        }
    }

    /// Its place is not known any more.
    pub fn lose_place(&mut self) {
        (self.at, self.past) = (None, None);
        self.counts.clear();
    }

    /// Frames from one position to another.
    pub fn steps(&self, from: BitPosition, to: BitPosition) -> i64 {
        let bits = to.as_bits().wrapping_sub(from.as_bits()).cast_signed();
        let stride = self.stride.cast_signed();
        bits.saturating_add(stride / 2).div_euclid(stride)
    }

    /// The place of a frame, if the place of the input is known: by its position, and at least so
    /// far ahead that the frames missing by its channel's count have places of their own.
    pub fn expect(&self, arrived: &Arrived) -> Option<i64> {
        let (place, bits) = self.at?;
        let steps = self.steps(BitPosition::from_bits(bits), arrived.frame.position);
        let by_bits = place.saturating_add(steps);
        let Some(Identity { key, modulus, .. }) = arrived.identity else { return Some(by_bits) };
        let Some((last, free)) = self.counts.get(&key.series) else { return Some(by_bits) };
        let CountStep::Gap { missing: missing @ ..=LONGEST_GAP } = modulus.step(*last, key.count)
        else {
            return Some(by_bits);
        };
        let passed = steps.saturating_sub(1).max(0);
        let free = self.free.saturating_add(passed).saturating_sub(*free);
        Some(by_bits.saturating_add(missing.cast_signed().saturating_sub(free).max(0)))
    }

    /// Its place is `place` for the frame at this position, which is good if it has a key.
    pub fn stand(&mut self, place: i64, position: BitPosition, key: Option<&Key>) {
        if let Some((before, _)) = self.at {
            let passed = place.saturating_sub(before).saturating_sub(1).max(0);
            self.free = self.free.saturating_add(passed).saturating_add(i64::from(key.is_none()));
        }
        self.at = Some((place, position.as_bits()));
        let Some(key) = key else { return };
        self.past = Some(place);
        if self.counts.len() < MAX_CHANNELS || self.counts.contains_key(&key.series) {
            self.counts.insert(key.series, (key.count, self.free));
        }
    }

    /// It is before the frame at this position, whose assumed place is `place`.
    pub fn stand_before(&mut self, place: i64, position: BitPosition) {
        self.at = Some((place.saturating_sub(1), position.as_bits().wrapping_sub(self.stride)));
    }

    /// Places from `place` on are `steps` later.
    pub fn make_room(&mut self, place: i64, steps: i64) {
        let places = self.at.iter_mut().map(|(at, _)| at).chain(self.past.as_mut());
        places.filter(|at| **at >= place).for_each(|at| *at = at.saturating_add(steps));
    }

    /// Whether it is past a frame at `place` that it did not give, or nothing waits for it.
    pub fn is_past(&self, place: i64) -> bool {
        let is_far = |past: i64| !self.is_in_doubt && past.saturating_sub(place) > SLACK;
        !self.is_open || self.past.is_some_and(is_far)
    }

    /// Keeps a frame until its place is known.
    pub fn wait(&mut self, arrived: Arrived) {
        self.waiting_keys.extend(arrived.identity.as_ref().map(|identity| identity.key));
        self.waiting.push_back(arrived);
    }

    /// Whether this frame is among those that wait.
    pub fn waits_with(&self, key: &Key) -> bool {
        self.waiting_keys.contains(key)
    }

    /// Whether a waiting frame is before this one by the counts of their channel.
    pub fn waits_before(&self, next: &Identity) -> bool {
        let identities = self.waiting.iter().filter_map(|arrived| arrived.identity.as_ref());
        let first =
            identities.map(|identity| identity.key).find(|key| key.series == next.key.series);
        first.is_some_and(|key| next.modulus.step(next.key.count, key.count) == CountStep::Back)
    }

    /// Returns the frames that wait for a place.
    pub fn take_waiting(&mut self) -> VecDeque<Arrived> {
        self.waiting_keys.clear();
        core::mem::take(&mut self.waiting)
    }

    /// Records the delay of a frame after its first copy.
    pub fn note_lag(&mut self, lag: Duration) {
        if self.lags.len() == LAGS {
            self.lags.pop_front();
        }
        self.lags.push_back(lag);
    }

    /// By how much it is behind.
    pub fn skew(&self) -> Duration {
        self.lags.iter().copied().min().unwrap_or(Duration::ZERO)
    }

    /// Its constant skew; `None` as long as there are too few frames.
    pub fn steady_skew(&self) -> Option<Duration> {
        (self.lags.len() == LAGS).then(|| self.skew())
    }
}
