//! Aligns the frames of all inputs in one order.

use super::identity::{Arrived, Identity, Key};
use super::idle::IdleCounts;
use super::input::Input;
use super::timeline::Timeline;
use crate::quality::{BitPosition, CapturedFrame, FrameVerdict};
use skyhaul_units::{Duration, Utc};

/// A frame that goes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// The input whose copy it is.
    pub input: usize,
    /// The frame as that input captured it.
    pub frame: CapturedFrame,
}

/// The inputs, and the one order of their frames.
#[derive(Debug)]
pub(super) struct Alignment {
    pub inputs: Vec<Input>,
    pub timeline: Timeline,
    pub idle: IdleCounts,
    /// The largest constant skew of an input.
    pub steady_skew: Duration,
}

/// A jump of a place by more frames is a mistake or another downlink.
const LONGEST_JUMP: i64 = 1 << 20;

impl Alignment {
    pub fn new(inputs: usize, stride: u64) -> Self {
        Self {
            inputs: (0..inputs).map(|_| Input::new(stride)).collect(),
            timeline: Timeline::default(),
            idle: IdleCounts::default(),
            steady_skew: Duration::ZERO,
        }
    }

    /// Puts a frame at its place, as far as that is known.
    pub fn arrive(&mut self, input: usize, arrived: Arrived) {
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
        let identity =
            arrived.identity.as_ref().filter(|identity| self.idle.is_distinct(identity))?;
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

    /// The frame is that of slot `index`, which gives the place of the input.
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
        // All other inputs are further behind in the downlink than was assumed.
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
        if let Some(skew) = self.inputs[input].steady_skew() {
            self.steady_skew = self.steady_skew.max(skew);
        }
        let found = known.and_then(|key| {
            let here = self.timeline.at(place).find(|index| self.timeline.slot(*index).has(&key));
            here.or_else(|| self.timeline.find(&key))
        });
        match found {
            // Another copy of it was among the waiting frames.
            Some(index) if self.timeline.slot(index).is_given_by(input) => {
                self.inputs[input].account.repeated += 1;
            }
            Some(index) => self.add(input, index, arrived.frame),
            None => self.inputs[input].account.late += 1,
        }
    }

    /// Frames of the input that preceded its copy of slot `index`, but were placed after the slot,
    /// move before it. Returns the new index of the slot.
    fn straighten(&mut self, input: usize, index: usize) -> usize {
        let place = self.timeline.slot(index).place;
        let is_behind = self.inputs[input].place().is_some_and(|at| at >= place);
        if is_behind { self.timeline.bring_before(index, input) } else { index }
    }

    /// Frames that waited for a place are before the frame at `place`.
    fn place_waiting(&mut self, input: usize, place: i64, bits: BitPosition) {
        let waiting = self.inputs[input].take_waiting();
        if let Some(first) = waiting.front() {
            let source = &mut self.inputs[input];
            let before = source.steps(bits, first.frame.position);
            source.stand_before(place.saturating_add(before), first.frame.position);
            source.is_sure = false;
        }
        // Other waiting frames may have got a place through these.
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

    /// Puts a frame without another copy at its place, with regard to the count of its channel.
    fn put(&mut self, input: usize, arrived: Arrived) {
        let place = self.inputs[input].expect(&arrived).unwrap_or_default();
        let (fit, same) =
            (self.timeline.fit(arrived.identity.as_ref(), place), self.timeline.at(place));
        let distinct = arrived.identity.as_ref().filter(|identity| self.idle.is_distinct(identity));
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
            let place = self.timeline.insert(index, place, input, arrived);
            self.inputs[input].pending += 1;
            self.inputs[input].stand(place, bits, key.as_ref());
        }
        if let Some(key) = key {
            self.wake(&key);
        }
    }

    /// Whether the slot at the place of a frame is that frame although the bytes differ, of which
    /// at most one copy is proven. Frames with different headers are never the same.
    fn is_same(&self, index: usize, input: usize, arrived: &Arrived) -> bool {
        let slot = self.timeline.slot(index);
        if slot.is_given_by(input) {
            return false;
        }
        let headers = slot.identity.as_ref().zip(arrived.identity.as_ref());
        let is_alike = headers.map(|(one, other)| one.key.has_header_of(&other.key));
        match &slot.best.1 {
            // A good frame is not dropped because one set aside was returned in its place.
            None if is_alike.is_none() => arrived.identity.is_none() && !arrived.frame.is_good(),
            None => is_alike == Some(true) && !is_checked(&arrived.frame),
            Some(best) => {
                is_alike != Some(false) && !(is_checked(best) && is_checked(&arrived.frame))
            }
        }
    }

    /// Inputs without a known place may have one now that this frame has one.
    fn wake(&mut self, key: &Key) {
        for input in 0..self.inputs.len() {
            if self.inputs[input].waits_with(key) {
                let waiting = self.inputs[input].take_waiting();
                waiting.into_iter().for_each(|arrived| self.arrive(input, arrived));
            }
        }
    }

    /// Places the waiting frames of `input` by their reception time.
    pub fn settle(&mut self, input: usize) {
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

    /// Whether every input is past the next frame.
    pub fn is_past_front(&self) -> bool {
        let Some(front) = self.timeline.front() else { return false };
        self.inputs.iter().enumerate().all(|(input, source)| {
            let is_past = front.is_good_at(input) || source.is_past(front.place);
            source.waiting.is_empty() && is_past
        })
    }

    /// The reception time of the frame that waits longest.
    pub fn oldest(&self) -> Option<Utc> {
        let unplaced = self.inputs.iter().filter_map(|input| input.waiting.front());
        unplaced.map(|arrived| arrived.frame.received).chain(self.timeline.oldest()).min()
    }

    /// Frames that wait, whether their place is known or not.
    pub fn waiting(&self) -> usize {
        let unplaced: usize = self.inputs.iter().map(|input| input.waiting.len()).sum();
        self.timeline.len() + unplaced
    }

    /// Places the frame that waits longest, and those that are known to be before it. Returns the
    /// number of frames at the front that wait no longer.
    pub fn settle_oldest(&mut self) -> usize {
        let Some(oldest) = self.oldest() else { return 0 };
        // A frame that gets a place may be one that another input's waiting frame is before.
        for _ in 0..self.inputs.len() {
            let next = self.timeline.last_of_next(self.timeline.through_oldest());
            let is_due = |input: &usize| {
                let source = &self.inputs[*input];
                let is_old = |arrived: &Arrived| arrived.frame.received <= oldest;
                source.waiting.front().is_some_and(is_old)
                    || next.values().any(|next| source.waits_before(next))
            };
            let due: Vec<usize> = (0..self.inputs.len()).filter(is_due).collect();
            if due.is_empty() {
                break;
            }
            due.into_iter().for_each(|input| self.settle(input));
        }
        self.timeline.through_oldest()
    }

    /// Removes the next frame: returns its best copy, and the input that gave it.
    pub fn release(&mut self) -> Option<Selected> {
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
}

/// Whether the frame is good, and proven by error control.
const fn is_checked(frame: &CapturedFrame) -> bool {
    frame.is_good()
        && matches!(frame.quality.verdict, FrameVerdict::Clean | FrameVerdict::Corrected)
}
