//! The frames of a downlink in the spacecraft's order: those that wait, and for some time those
//! that were returned.

use super::identity::{Arrived, Identity, Key, Rank, Series};
use crate::count::{CountStep, Modulus};
use crate::quality::CapturedFrame;
use skyhaul_units::Utc;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// One frame of the downlink.
#[derive(Debug)]
pub(super) struct Slot {
    /// Slots are numbered in the order in which they were made.
    pub id: u64,
    /// Its place, in frames; several slots may have the same place, and are in order nevertheless.
    pub place: i64,
    /// `None` as long as every copy is set aside.
    pub identity: Option<Identity>,
    /// When the first copy was received, and by which input.
    pub first: (Utc, usize),
    /// Inputs that gave a copy, a bit each.
    pub givers: u16,
    /// Inputs that gave a good one.
    pub good_givers: u16,
    /// The best copy and the input that gave it; the frame is `None` once it was returned.
    pub best: (usize, Option<CapturedFrame>),
}

/// The slots in order.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    slots: VecDeque<Slot>,
    /// Slots at the front that were returned.
    gone: usize,
    /// The newest place of each good frame.
    places: BTreeMap<Key, i64>,
    /// The slots that wait, by the reception of their first copy, and number: the first one waits
    /// longest.
    waiting: BTreeSet<(Utc, u64)>,
    next_id: u64,
}

/// Slots that are searched for frames of the same channel: channels whose frames are further apart
/// are not reordered.
const REACH: usize = 256;

/// Places by which a frame may be wrong if its input lost or repeated bits since its place was last
/// known: less than half of the shortest count.
const NEAR: u64 = 64;

impl Timeline {
    /// Whether there was never a frame.
    pub const fn is_untouched(&self) -> bool {
        self.next_id == 0
    }

    /// Slots that wait.
    pub fn len(&self) -> usize {
        self.slots.len() - self.gone
    }

    /// Slots that were returned and are remembered.
    pub const fn gone(&self) -> usize {
        self.gone
    }

    pub fn slot(&self, index: usize) -> &Slot {
        &self.slots[index]
    }

    pub fn slot_mut(&mut self, index: usize) -> &mut Slot {
        &mut self.slots[index]
    }

    /// The place of the last slot that was returned.
    pub fn gone_to(&self) -> Option<i64> {
        self.gone.checked_sub(1).map(|last| self.slots[last].place)
    }

    /// The slots at `place`.
    pub fn at(&self, place: i64) -> Range<usize> {
        let start = self.slots.partition_point(|slot| slot.place < place);
        start..self.slots.partition_point(|slot| slot.place <= place)
    }

    /// The newest slot of the good frame `key`.
    pub fn find(&self, key: &Key) -> Option<usize> {
        let place = *self.places.get(key)?;
        self.at(place).rev().find(|index| self.slots[*index].has(key))
    }

    /// Slots near `place` of good frames with the same header as one whose assumed place that is.
    pub fn alike(&self, identity: &Identity, place: i64) -> impl Iterator<Item = usize> {
        let counted = (identity.modulus != Modulus::NONE).then(|| identity.key.alike());
        let known = counted.into_iter().flat_map(|alike| self.places.range(alike));
        let near = known.filter(move |(_, at)| at.abs_diff(place) <= NEAR);
        near.filter_map(|(key, _)| self.find(key))
    }

    /// Brings what `input` gave and stands behind slot `index` before it, which it is about to
    /// give, too: not what one that gave that slot gave after it, nor past frames of the same
    /// channel that come before. Returns where the slot is then.
    pub fn bring_before(&mut self, index: usize, input: usize) -> usize {
        if index < self.gone {
            return index;
        }
        let givers = self.slots[index].givers;
        let mut stays: Vec<Identity> = self.slots[index].identity.into_iter().collect();
        let mut to = index;
        for from in index + 1..(index + REACH).min(self.slots.len()) {
            let slot = &self.slots[from];
            let is_its = slot.is_given_by(input) && slot.givers & givers == 0;
            if !is_its
                || slot.identity.is_some_and(|own| stays.iter().any(|other| !own.precedes(other)))
            {
                stays.extend(slot.identity);
                continue;
            }
            let Some(mut slot) = self.slots.remove(from) else { continue };
            let least = to
                .checked_sub(1)
                .map_or(slot.place, |before| self.slots[before].place.saturating_add(1));
            slot.place = least.min(self.slots[to].place);
            if let Some(identity) = &slot.identity {
                self.places.insert(identity.key, slot.place);
            }
            self.slots.insert(to, slot);
            to += 1;
        }
        to
    }

    /// The index for a frame whose assumed place is `place`: after others of that place, but in the
    /// order of the counts of its channel.
    pub fn fit(&self, identity: Option<&Identity>, place: i64) -> usize {
        let at = self.at(place).end;
        let counted = identity.filter(|identity| identity.modulus != Modulus::NONE);
        let Some(Identity { key, modulus, .. }) = counted else { return at };
        let steps = |indices: Range<usize>| {
            indices.filter_map(|index| {
                let other = self.slots[index].identity.as_ref().map(|identity| identity.key)?;
                (other.series == key.series).then(|| (index, modulus.step(other.count, key.count)))
            })
        };
        let earlier = steps(at.saturating_sub(REACH)..at)
            .rev()
            .take_while(|(_, step)| *step == CountStep::Back);
        if let Some((index, _)) = earlier.last() {
            return index;
        }
        let later = steps(at..(at + REACH).min(self.slots.len()));
        let later = later
            .take_while(|(_, step)| matches!(step, CountStep::Next | CountStep::Gap { .. }))
            .last();
        later.map_or(at, |(index, _)| index + 1)
    }

    /// Whether a good frame that belongs at `index` may be returned after all that were: none of
    /// these is a later frame of its channel. Before the first common frame, the interleaving of
    /// channels is a guess.
    pub fn may_follow(&self, index: usize, identity: &Identity) -> bool {
        let Identity { key, modulus, .. } = identity;
        let is_after = |slot: &Slot| {
            let other = slot
                .identity
                .as_ref()
                .map(|identity| identity.key)
                .filter(|other| other.series == key.series);
            other.is_some_and(|other| {
                !matches!(
                    modulus.step(other.count, key.count),
                    CountStep::Next | CountStep::Gap { .. }
                )
            })
        };
        self.gone.saturating_sub(index) <= REACH
            && !self.slots.range(index.min(self.gone)..self.gone).any(is_after)
    }

    /// Makes a slot at `index` for a copy of `input`, as near to `place` as its neighbours allow.
    pub fn insert(&mut self, index: usize, place: i64, input: usize, copy: Arrived) -> i64 {
        let Arrived { frame, identity } = copy;
        // It is another frame than the one before it, so it gets another place if there is one.
        let least =
            index.checked_sub(1).map_or(place, |before| self.slots[before].place.saturating_add(1));
        let most = self.slots.get(index).map_or(i64::MAX, |after| after.place);
        let place = place.max(least).min(most);
        let first = (frame.received, input);
        self.waiting.insert((frame.received, self.next_id));
        let (id, givers) = (self.next_id, 1 << input);
        let good_givers = if frame.is_good() { givers } else { 0 };
        let best = (input, Some(frame));
        self.slots
            .insert(index, Slot { id, place, identity: None, first, givers, good_givers, best });
        self.next_id += 1;
        self.identify(index, identity);
        place
    }

    /// Slot `index` was found to be this frame.
    pub fn identify(&mut self, index: usize, identity: Option<Identity>) {
        let Some(identity) = identity else { return };
        let slot = &mut self.slots[index];
        slot.identity = Some(identity);
        self.places.insert(identity.key, slot.place);
    }

    /// Moves the slots from `place` on by `steps`, except those that only `input` gave. Returns
    /// whether it does: it does not if frames of a channel would get out of order.
    pub fn make_room(&mut self, place: i64, steps: i64, input: usize) -> bool {
        let start = self.at(place).start;
        let mut moved = BTreeSet::new();
        for slot in self.slots.range(start..) {
            let Some(Identity { key, .. }) = slot.identity else { continue };
            if slot.givers != 1 << input {
                moved.insert(key.series);
            } else if moved.contains(&key.series) {
                return false;
            }
        }
        for slot in self.slots.range_mut(start..).filter(|slot| slot.givers != 1 << input) {
            slot.place = slot.place.saturating_add(steps);
            if let Some(identity) = &slot.identity
                && let Some(known) = self.places.get_mut(&identity.key)
            {
                *known = (*known).max(slot.place);
            }
        }
        // Returned slots stay in front.
        let of_order = |slot: &Slot| (slot.best.1.is_some(), slot.place);
        self.slots.make_contiguous()[start..].sort_by_key(of_order);
        let floor = self.gone_to().unwrap_or(i64::MIN);
        for slot in self.slots.range_mut(self.gone..).take_while(|slot| slot.place < floor) {
            slot.place = floor;
            if let Some(identity) = &slot.identity {
                self.places.insert(identity.key, floor);
            }
        }
        true
    }

    /// The reception time of the first copy of the slot that waits longest, and its index.
    pub fn oldest(&self) -> Option<Utc> {
        self.waiting.first().map(|(since, _)| *since)
    }

    /// The waiting slots up to and including the one that waits longest.
    pub fn through_oldest(&self) -> usize {
        let Some((_, oldest)) = self.waiting.first() else { return 0 };
        let before = self.slots.range(self.gone..).take_while(|slot| slot.id != *oldest).count();
        before + 1
    }

    /// The last frame of each channel among this many of the next ones.
    pub fn last_of_next(&self, slots: usize) -> BTreeMap<Series, Identity> {
        let next = self.slots.range(self.gone..(self.gone + slots).min(self.slots.len()));
        next.filter_map(|slot| slot.identity)
            .map(|identity| (identity.key.series, identity))
            .collect()
    }

    /// The next slot to go out.
    pub fn front(&self) -> Option<&Slot> {
        self.slots.get(self.gone)
    }

    /// Returns the next slot; the caller takes its frame.
    pub fn release(&mut self) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(self.gone)?;
        self.gone += 1;
        self.waiting.remove(&(slot.first.0, slot.id));
        Some(slot)
    }

    /// Forgets returned slots received before `horizon`, and all beyond `most`.
    pub fn forget(&mut self, horizon: Utc, most: usize) {
        while self.gone > 0 && (self.gone > most || self.slots[0].first.0 < horizon) {
            let Some(slot) = self.slots.pop_front() else { return };
            self.gone -= 1;
            if let Some(identity) = slot.identity
                && self.places.get(&identity.key) == Some(&slot.place)
            {
                self.places.remove(&identity.key);
            }
        }
    }

    /// The last slot whose first copy was received by `time`.
    pub fn last_by(&self, time: Utc) -> Option<i64> {
        let slots = self.slots.iter().rev();
        slots.take(REACH).find(|slot| slot.first.0 <= time).map(|slot| slot.place)
    }
}

impl Slot {
    /// Whether it is the good frame `key`.
    pub fn has(&self, key: &Key) -> bool {
        self.identity.as_ref().is_some_and(|identity| identity.key == *key)
    }

    /// Whether `input` gave a copy.
    pub const fn is_given_by(&self, input: usize) -> bool {
        self.givers & 1 << input != 0
    }

    /// Whether `input` gave a good copy.
    pub const fn is_good_at(&self, input: usize) -> bool {
        self.good_givers & 1 << input != 0
    }

    /// Takes a further copy, which is kept if it is the better one.
    pub fn add(&mut self, input: usize, frame: CapturedFrame) {
        self.givers |= 1 << input;
        if frame.is_good() {
            self.good_givers |= 1 << input;
        }
        if let (_, Some(best)) = &self.best
            && Rank::of(&frame) > Rank::of(best)
        {
            self.best = (input, Some(frame));
        }
    }
}
