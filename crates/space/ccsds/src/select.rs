//! Best-frame select: of several inputs of one downlink (two antennas, two stations, two front
//! ends), the union of their frames, the better copy of each, in order, once.
//!
//! `push` the frames of each input in its own order, then `poll` with the present time until
//! `None`, and again when it is
//! [`Select::due`]. A frame waits until every input has given it or has come past it by some
//! frames, at most for the window: so an input that is silent holds nothing up beyond that.
//!
//! A good frame is known by its bytes; one that no code proves, and whose bytes differ, by its
//! header and place: frames of which spacecraft, channel or count differ are never the same. The
//! others have their place among their neighbours: where one input stands in the downlink is known
//! from the last frame that it had in common with others, and how far it went since then from its
//! positions. Counts of the virtual channels overrule places where an input lost part of its
//! stream, and so does a frame in common: what an input gave before it goes out before it. A frame
//! set aside at one input is dropped if another has it good, and kept once otherwise.
//!
//! Memory is bounded by [`SelectOptions::held`] frames that wait, and as many remembered as come in
//! twice the longest window, at most [`REMEMBERED`]. The same pushes and polls give the same
//! frames.

mod identity;
mod input;
mod timeline;

use crate::mission::FrameFormat;
use crate::quality::{BitPosition, CapturedFrame, FrameVerdict};
use identity::{Identity, Key, Series};
use input::{Arrived, Input, SILENCE};
use skyhaul_units::{Duration, Utc};
use std::collections::{BTreeMap, VecDeque};
use timeline::Timeline;

pub use input::InputAccount;

/// How long frames wait for better copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectOptions {
    /// The longest that a frame waits after its first copy was received. `None`: as long as it
    /// takes, for inputs that can be held back, such as files. Default 50 ms: antennas of one
    /// station, and stations of one network, are no further apart.
    pub window: Option<Duration>,
    /// The longest that the window grows to when an input is later than that all the time. Default
    /// 1 s.
    pub most_window: Duration,
    /// Most frames that wait. Default 16,384: 50 ms at 2.9 Gbit/s, 20 MB of frames of a usual
    /// length.
    pub held: usize,
}

impl Default for SelectOptions {
    fn default() -> Self {
        Self {
            window: Some(Duration::from_millis(50)),
            most_window: Duration::from_secs(1),
            held: 16_384,
        }
    }
}

/// A frame that goes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// The input whose copy it is.
    pub input: usize,
    /// The frame as that input captured it.
    pub frame: CapturedFrame,
}

/// Joins the inputs of one downlink.
#[derive(Debug)]
pub struct Select {
    format: FrameFormat,
    options: SelectOptions,
    /// As it is now.
    window: Option<Duration>,
    inputs: Vec<Input>,
    timeline: Timeline,
    /// The newest count of idle frames of each channel, and whether it goes on from frame to frame.
    idle: BTreeMap<Series, (u64, bool)>,
    /// Frames at the front that go out whoever has not come past them.
    forced: usize,
    /// Of a single input: nothing to select.
    passed: VecDeque<CapturedFrame>,
    newest: Utc,
}

/// Most inputs of a downlink.
pub const MAX_INPUTS: usize = 16;
/// Most frames that are remembered after they have gone out: two seconds at 1 Gbit/s, 30 MB.
pub const REMEMBERED: usize = 1 << 18;
/// Most channels whose idle frames are looked at: as many as a spacecraft has.
const MAX_CHANNELS: usize = 64;
/// Beyond so many frames, a jump of a place is a mistake or another downlink.
const LONGEST_JUMP: i64 = 1 << 20;

impl Select {
    /// Joins `inputs` inputs (1 to [`MAX_INPUTS`]; more are left out) of a downlink of this format.
    pub fn new(format: FrameFormat, inputs: usize, options: SelectOptions) -> Self {
        let stride = 8 * format.length as u64;
        Self {
            format,
            window: options.window,
            options,
            inputs: (0..inputs.clamp(1, MAX_INPUTS)).map(|_| Input::new(stride)).collect(),
            timeline: Timeline::default(),
            idle: BTreeMap::new(),
            forced: 0,
            passed: VecDeque::new(),
            newest: Utc::from_nanos(i64::MIN),
        }
    }

    /// From one frame to the next, positions of `input` go on by this many bits. To be said before
    /// its first frame; otherwise, the length of a frame.
    pub fn stride(&mut self, input: usize, bits: u64) {
        if let Some(input) = self.inputs.get_mut(input) {
            input.stride = bits.max(1);
        }
    }

    /// Takes the next frame of `input`, which was closed until then, perhaps. Frames of inputs that
    /// there are not are dropped.
    pub fn push(&mut self, input: usize, frame: CapturedFrame) {
        let alone = self.inputs.len() == 1;
        let Some(source) = self.inputs.get_mut(input) else { return };
        source.account.given += 1;
        source.is_open = true;
        if alone {
            return self.passed.push_back(frame);
        }
        if let Some(window) = self.window {
            source.keep_time(&frame, window);
        }
        self.newest = self.newest.max(frame.received);
        let identity = Identity::of(&frame, &self.format);
        self.note_idle(identity.as_ref());
        self.arrive(input, Arrived { frame, identity });
        self.remember();
    }

    /// `input` has ended, or nothing is connected to it: frames do not wait for it until it gives
    /// another one.
    pub fn close(&mut self, input: usize) {
        if let Some(input) = self.inputs.get_mut(input) {
            input.is_open = false;
        }
    }

    /// All inputs have ended: everything goes out.
    pub fn finish(&mut self) {
        for input in 0..self.inputs.len() {
            self.inputs[input].is_open = false;
            self.settle(input);
        }
    }

    /// The next frame that goes out by `now`.
    pub fn poll(&mut self, now: Utc) -> Option<Selected> {
        if let Some(frame) = self.passed.pop_front() {
            self.inputs[0].account.chosen += 1;
            self.inputs[0].account.only_here += u64::from(frame.is_good());
            return Some(Selected { input: 0, frame });
        }
        loop {
            if self.forced > 0 || self.is_past_front() {
                return self.release();
            }
            if !self.is_due(now) {
                return None;
            }
            self.force();
        }
    }

    /// When the next frame goes out at the latest, if nothing comes until then.
    pub fn due(&self) -> Option<Utc> {
        if !self.passed.is_empty() {
            return Some(self.newest);
        }
        Some(self.oldest()? + self.window?)
    }

    /// What became of the frames of `input`, and how far it is behind.
    pub fn account(&self, input: usize) -> Option<InputAccount> {
        self.inputs.get(input).map(|input| InputAccount { skew: input.skew(), ..input.account })
    }

    /// How long frames wait now; it grows where an input is later than that all the time.
    pub const fn window(&self) -> Option<Duration> {
        self.window
    }

    /// Frames of `input` that wait for others. Inputs that can be held back are to be read evenly:
    /// the one with the fewest first.
    pub fn holding(&self, input: usize) -> usize {
        self.inputs.get(input).map_or(0, |input| input.pending + input.waiting.len())
    }

    fn note_idle(&mut self, identity: Option<&Identity>) {
        let Some(Identity { key, is_idle: true, .. }) = identity else { return };
        let channels = self.idle.len();
        match self.idle.get_mut(&key.series) {
            Some((count, goes_on)) => *goes_on |= *count != key.count,
            None if channels < MAX_CHANNELS => {
                self.idle.insert(key.series, (key.count, false));
            }
            None => {}
        }
    }

    /// Whether there is no other frame with these bytes until its count wraps.
    fn is_distinct(&self, identity: &Identity) -> bool {
        !identity.is_idle
            || self.idle.get(&identity.key.series).is_some_and(|(_, goes_on)| *goes_on)
    }

    /// Puts a frame where it belongs, as far as that is known.
    fn arrive(&mut self, input: usize, arrived: Arrived) {
        if let Some(index) = self.recognise(input, &arrived) {
            self.join(input, index, arrived);
        } else if self.inputs[input].has_place() || self.timeline.is_untouched() {
            self.put(input, arrived);
        } else {
            self.inputs[input].wait(arrived);
        }
    }

    /// The slot of the same good frame.
    fn recognise(&self, input: usize, arrived: &Arrived) -> Option<usize> {
        let Identity { key, .. } = arrived.identity.as_ref()?;
        let expected = self.inputs[input].expect(arrived);
        if let Some(place) = expected {
            let fits = |index: &usize| {
                let slot = self.timeline.slot(*index);
                slot.has(key) && !slot.is_given_by(input)
            };
            if let Some(index) = self.timeline.at(place).find(fits) {
                return Some(index);
            }
        }
        let identity = arrived.identity.as_ref().filter(|identity| self.is_distinct(identity))?;
        let Some(index) = self.timeline.find(&identity.key) else {
            return self
                .timeline
                .alike(identity, expected?)
                .find(|index| self.is_same(*index, input, arrived));
        };
        let away = expected.map_or(0, |place| place.abs_diff(self.timeline.slot(index).place));
        let again = self.timeline.slot(index).is_given_by(input) && away >= identity.comes_round();
        (!again).then_some(index)
    }

    /// The frame is that of slot `index`: from here on it is known where the input stands.
    fn join(&mut self, input: usize, index: usize, arrived: Arrived) {
        let index = self.straighten(input, index);
        let (bits, slot) = (arrived.frame.position, self.timeline.slot(index));
        let (place, is_own, first) = (slot.place, slot.is_given_by(input), slot.first);
        let known = slot.identity.as_ref().map(|identity| identity.key);
        let expected = self.inputs[input].expect(&arrived);
        if is_own {
            self.inputs[input].account.repeated += 1;
            self.place_waiting(input, place, bits);
            return self.inputs[input].stand(place, bits, None);
        }
        // Everyone else is further behind in the downlink than was thought.
        let steps = expected.map_or(0, |expected| expected.saturating_sub(place));
        let source = &self.inputs[input];
        let is_ahead = source.is_sure && source.place().is_some_and(|at| at < place);
        let mut place = place;
        let may_move = is_ahead && (1..=LONGEST_JUMP).contains(&steps);
        if may_move && self.timeline.make_room(place, steps, input) {
            let others = self.inputs.iter_mut().enumerate().filter(|(other, _)| *other != input);
            others.for_each(|(_, other)| other.make_room(place, steps));
            place += steps;
        }
        let id = arrived.identity.as_ref().map(|identity| identity.key);
        self.place_waiting(input, place, bits);
        self.inputs[input].stand(place, bits, id.as_ref());
        self.inputs[input].is_sure = true;
        self.inputs[input].is_in_doubt = false;
        self.inputs[input].note_lag(arrived.frame.received.since(first.0));
        self.inputs[first.1].note_lag(Duration::ZERO);
        self.widen(input);
        let found = known.and_then(|key| {
            let here = self.timeline.at(place).find(|index| self.timeline.slot(*index).has(&key));
            here.or_else(|| self.timeline.find(&key))
        });
        match found {
            // Another copy of it was among those that waited.
            Some(index) if self.timeline.slot(index).is_given_by(input) => {
                self.inputs[input].account.repeated += 1;
            }
            Some(index) => self.add(input, index, arrived.frame),
            None => self.inputs[input].account.late += 1,
        }
    }

    /// What the input gave before its copy of slot `index`, and was held to be behind that, goes
    /// before it. Returns where the slot is then.
    fn straighten(&mut self, input: usize, index: usize) -> usize {
        let place = self.timeline.slot(index).place;
        let is_behind = self.inputs[input].place().is_some_and(|at| at >= place);
        if is_behind { self.timeline.bring_before(index, input) } else { index }
    }

    /// What waited to be placed is before the frame that is at `place`.
    fn place_waiting(&mut self, input: usize, place: i64, bits: BitPosition) {
        let waiting = self.inputs[input].take_waiting();
        if let Some(first) = waiting.front() {
            let source = &mut self.inputs[input];
            let before = source.steps(bits, first.frame.position);
            source.stand_before(place.saturating_add(before), first.frame.position);
            source.is_sure = false;
        }
        // Others that waited too may have been placed through these.
        waiting.into_iter().for_each(|arrived| self.arrive(input, arrived));
    }

    /// Adds a copy to slot `index`.
    fn add(&mut self, input: usize, index: usize, frame: CapturedFrame) {
        let slot = self.timeline.slot_mut(index);
        if slot.best.1.is_some() {
            slot.add(input, frame);
            self.inputs[input].pending += 1;
            return;
        }
        self.inputs[input].account.duplicates += 1;
        let (chosen, alone) = (slot.best.0, slot.good_givers == 1 << slot.best.0);
        slot.givers |= 1 << input;
        if frame.is_good() {
            slot.good_givers |= 1 << input;
            self.inputs[chosen].account.only_here -= u64::from(alone);
        }
    }

    /// Puts a frame that nobody else has as it is: by its place, and by the count of its channel.
    fn put(&mut self, input: usize, arrived: Arrived) {
        let place = self.inputs[input].expect(&arrived).unwrap_or_default();
        let (fit, same) =
            (self.timeline.fit(arrived.identity.as_ref(), place), self.timeline.at(place));
        let distinct = arrived.identity.as_ref().filter(|identity| self.is_distinct(identity));
        let is_missed = distinct.is_some_and(|identity| self.timeline.may_follow(fit, identity));
        let index = if is_missed { fit.max(self.timeline.gone()) } else { fit };
        let key = arrived.identity.as_ref().map(|identity| identity.key);
        let bits = arrived.frame.position;
        let other = same.clone().find(|other| self.is_same(*other, input, &arrived));
        self.inputs[input].is_in_doubt |= other.is_none() && !same.is_empty();
        // Not past another frame of its channel.
        if let Some(other) = other.filter(|other| (*other..=*other + 1).contains(&index)) {
            let is_good = self.timeline.slot(other).identity.is_some();
            self.inputs[input].stand(place, bits, key.as_ref());
            if !is_good {
                self.timeline.identify(other, arrived.identity);
            }
            self.add(input, other, arrived.frame);
        } else if index < self.timeline.gone() {
            self.inputs[input].stand(place, bits, key.as_ref());
            self.inputs[input].account.late += 1;
            return;
        } else {
            let place =
                self.timeline.insert(index, place, input, (arrived.frame, arrived.identity));
            self.inputs[input].pending += 1;
            self.inputs[input].stand(place, bits, key.as_ref());
        }
        if let Some(key) = key {
            self.wake(&key);
        }
    }

    /// Whether the slot at the place of a frame is that frame, though the bytes differ: at most one
    /// of them is known to be right. Frames whose headers differ never are.
    fn is_same(&self, index: usize, input: usize, arrived: &Arrived) -> bool {
        let slot = self.timeline.slot(index);
        if slot.is_given_by(input) {
            return false;
        }
        let headers = slot.identity.as_ref().zip(arrived.identity.as_ref());
        let is_alike = headers.map(|(one, other)| one.key.has_header_of(&other.key));
        match &slot.best.1 {
            // A good frame is not lost for one set aside that has gone out.
            None if is_alike.is_none() => arrived.identity.is_none() && !arrived.frame.is_good(),
            None => is_alike == Some(true) && !is_checked(&arrived.frame),
            Some(best) => {
                is_alike != Some(false) && !(is_checked(best) && is_checked(&arrived.frame))
            }
        }
    }

    /// Inputs that did not know their place may do now that this frame has one.
    fn wake(&mut self, key: &Key) {
        for input in 0..self.inputs.len() {
            if self.inputs[input].waits_with(key) {
                let waiting = self.inputs[input].take_waiting();
                waiting.into_iter().for_each(|arrived| self.arrive(input, arrived));
            }
        }
    }

    /// What waits to be placed at `input` is placed by the time of its reception.
    fn settle(&mut self, input: usize) {
        let source = &mut self.inputs[input];
        let Some(first) = source.waiting.front() else { return };
        let (received, bits) = (first.frame.received, first.frame.position);
        let waiting = source.take_waiting();
        let source = &mut self.inputs[input];
        let place =
            self.timeline.last_by(received).max(self.timeline.gone_to()).unwrap_or_default();
        source.stand_before(place.saturating_add(1), bits);
        source.is_sure = false;
        waiting.into_iter().for_each(|arrived| self.arrive(input, arrived));
    }

    /// Lets the window grow where `input` is behind by more than it all the time.
    fn widen(&mut self, input: usize) {
        let (Some(window), Some(skew)) = (self.window, self.inputs[input].steady_skew()) else {
            return;
        };
        let wanted = skew.scaled(5, 4).min(self.options.most_window);
        if wanted > window {
            self.window = Some(wanted);
        }
    }

    /// Whether every input has come past the next frame.
    fn is_past_front(&self) -> bool {
        let Some(front) = self.timeline.front() else { return false };
        let mut inputs = self.inputs.iter().enumerate();
        inputs
            .all(|(input, source)| source.is_past(front.place, front.good_givers & 1 << input != 0))
    }

    /// When the frame that waits longest was received.
    fn oldest(&self) -> Option<Utc> {
        let unplaced = self.inputs.iter().filter_map(|input| input.waiting.front());
        unplaced.map(|arrived| arrived.frame.received).chain(self.timeline.oldest()).min()
    }

    fn is_due(&self, now: Utc) -> bool {
        let unplaced: usize = self.inputs.iter().map(|input| input.waiting.len()).sum();
        let is_full = self.timeline.len() + unplaced > self.options.held;
        is_full || self.due().is_some_and(|due| due <= now)
    }

    /// What waits longest waits no longer, nor does what is known to be before it.
    fn force(&mut self) {
        let Some(oldest) = self.oldest() else { return };
        let next = self.timeline.last_of_next(self.timeline.through_oldest());
        for input in 0..self.inputs.len() {
            let source = &self.inputs[input];
            let is_old = |arrived: &Arrived| arrived.frame.received <= oldest;
            if source.waiting.front().is_some_and(is_old)
                || next.values().any(|next| source.waits_before(next))
            {
                self.settle(input);
            }
        }
        self.forced = self.timeline.through_oldest();
    }

    fn release(&mut self) -> Option<Selected> {
        self.forced = self.forced.saturating_sub(1);
        let slot = self.timeline.release()?;
        let (chosen, givers, good_givers) = (slot.best.0, slot.givers, slot.good_givers);
        let frame = slot.best.1.take()?;
        for (index, input) in
            self.inputs.iter_mut().enumerate().filter(|(index, _)| givers & 1 << index != 0)
        {
            input.pending -= 1;
            if index == chosen {
                input.account.chosen += 1;
                input.account.only_here += u64::from(good_givers == 1 << index);
            } else {
                input.account.worse += 1;
            }
        }
        Some(Selected { input: chosen, frame })
    }

    fn remember(&mut self) {
        let kept = self.options.most_window.scaled(2, 1).max(SILENCE);
        let horizon =
            if self.window.is_some() { self.newest - kept } else { Utc::from_nanos(i64::MIN) };
        let most = if self.window.is_some() { REMEMBERED } else { self.options.held };
        self.timeline.forget(horizon, most);
    }
}

/// Whether the frame is good, and error control vouches for it.
const fn is_checked(frame: &CapturedFrame) -> bool {
    frame.is_good()
        && matches!(frame.quality.verdict, FrameVerdict::Clean | FrameVerdict::Corrected)
}

#[cfg(test)]
mod tests;
