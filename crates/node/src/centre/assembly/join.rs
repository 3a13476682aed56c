//! Joins contacts that overlap, frame by frame: read side by side from the store, of each frame the better copy, in order, once.
//!
//! What comes out depends on what the contacts hold only, neither on the order in which they came nor on the clock.

use super::forms::Contact;
use super::job::{Source, Undone, reader, records};
use crate::centre::files::ProductFiles;
use crate::centre::shared::Shared;
use bytes::Bytes;
use skyhaul_ccsds::id::Scid;
use skyhaul_ccsds::quality::{BitPosition, CapturedFrame};
use skyhaul_ccsds::record::Record as Entry;
use skyhaul_ccsds::select::{Select, SelectOptions};
use skyhaul_level0::{Assembly, Standing};
use skyhaul_store::{Item, KeptReader};
use skyhaul_units::Utc;
use std::collections::{BTreeMap, VecDeque};

/// A contact to be joined, and whether the version before had it.
pub type Member<'a> = (&'a Source, Standing);

/// Most frames that wait for their like: a minute of 11 Mbit/s, 80 MB of frames of a usual length. Where a recording begins further
/// before another one, and was played later, packets come whole from each contact by itself.
const HELD: usize = 1 << 16;
/// Frames by which it is found how far apart they are.
const SAMPLE: usize = 256;

/// The contacts of a group whose frames have the form of the first one's, in the order in which they began.
pub fn members<'a>(group: &[Contact], sources: impl Iterator<Item = Member<'a>>) -> Vec<Member<'a>> {
    let is_of = |source: &Source| {
        group.iter().any(|(station, flow)| (station, *flow) == (&source.station, source.flow))
    };
    let mut members: Vec<Member<'a>> = sources.filter(|(source, _)| is_of(source)).collect();
    members.sort_by_key(|(source, _)| (source.open.opened, &source.station, source.flow));
    if let Some((first, _)) = members.first().copied() {
        members.retain(|(source, _)| {
            source.mission.name() == first.mission.name() && source.mission.frame() == first.mission.frame()
        });
    }
    members
}

/// Gives the products the frames that these contacts have together, and says what each gave.
///
/// # Errors
/// [`Undone`].
pub fn give(
    members: &[Member<'_>],
    scid: Scid,
    shared: &Shared,
    assembly: &mut Assembly<ProductFiles>,
) -> Result<(), Undone> {
    let [(first, _), _, ..] = members else { return Ok(()) };
    let refused = |error: skyhaul_level0::Error| Undone::Refused(error.to_string());
    let is_new = members.iter().any(|(_, standing)| *standing == Standing::New);
    let standing = if is_new { Standing::New } else { Standing::Known };
    let options = SelectOptions { window: None, held: HELD, ..SelectOptions::default() };
    let mut select = Select::new(*first.mission.frame(), members.len(), options);
    let mut sides = Vec::new();
    for (input, (source, _)) in members.iter().enumerate() {
        let side = Side::open(source, shared)?;
        select.stride(input, side.stride);
        sides.push(side);
    }
    let mut joint = assembly.joint(&first.mission, scid, standing).map_err(refused)?;
    let mut going: Vec<usize> = (0..sides.len()).collect();
    while let Some(input) = going.iter().copied().min_by_key(|input| select.holding(*input)) {
        if let Some(frame) = sides[input].next(shared)? {
            select.push(input, frame);
        } else {
            select.close(input);
            going.retain(|other| *other != input);
        }
        if going.is_empty() {
            select.finish();
        }
        // Nothing waits for a time: the contacts are held back instead.
        while let Some(selected) = select.poll(NO_TIME) {
            joint.frame(&selected.frame).map_err(refused)?;
        }
    }
    joint.finish().map_err(refused)?;
    for (input, (source, _)) in members.iter().enumerate() {
        if let Some(account) = select.account(input) {
            assembly.joined(&source.name(), account.into());
        }
    }
    Ok(())
}

/// The good frames of one contact.
struct Side {
    reader: KeptReader,
    ready: VecDeque<CapturedFrame>,
    /// Bits from one frame to the next.
    stride: u64,
    /// The place of the next frame where the contact's own do not say where it was in the downlink: they are those of several inputs.
    place: Option<BitPosition>,
}

impl Side {
    fn open(source: &Source, shared: &Shared) -> Result<Self, Undone> {
        let usual = 8 * source.mission.cadu_len() as u64;
        let place = (!source.inputs.is_empty()).then_some(BitPosition::START);
        let reader = reader(&source.station, source.flow, shared)?;
        let mut side = Self { reader, ready: VecDeque::new(), stride: usual, place };
        while side.ready.len() < SAMPLE && side.read(shared)? {}
        if side.place.is_none() {
            side.stride = apart(side.ready.iter().map(|frame| frame.position)).unwrap_or(usual);
        }
        Ok(side)
    }

    fn next(&mut self, shared: &Shared) -> Result<Option<CapturedFrame>, Undone> {
        while self.ready.is_empty() && self.read(shared)? {}
        let Some(mut frame) = self.ready.pop_front() else { return Ok(None) };
        if let Some(place) = &mut self.place {
            frame.position = *place;
            *place = place.plus_bits(self.stride);
        }
        Ok(Some(frame))
    }

    /// Reads the next block; whether there was one.
    fn read(&mut self, shared: &Shared) -> Result<bool, Undone> {
        if shared.life.is_stopping() {
            return Err(Undone::Stopped);
        }
        let ready = &mut self.ready;
        match self.reader.read().map_err(|error| Undone::Refused(error.to_string()))? {
            Some(Item::Block(record)) => records(&record, &mut |entry| {
                if let Entry::Frame(frame) = entry
                    && frame.is_good()
                {
                    // What is read of a block shares its memory.
                    let (bytes, check_symbols) = (Bytes::copy_from_slice(&frame.bytes), Bytes::new());
                    ready.push_back(CapturedFrame { bytes, check_symbols, ..frame });
                }
                Ok(())
            })?,
            // Damage was told when the contact was processed.
            Some(Item::Damaged(_) | Item::SegmentEnd(_)) => {}
            None => return Ok(false),
        }
        Ok(true)
    }
}

/// How far apart most frames are; of two distances as frequent, the shorter.
fn apart(positions: impl Iterator<Item = BitPosition>) -> Option<u64> {
    let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
    let mut before: Option<BitPosition> = None;
    for position in positions {
        if let Some(bits) = before.and_then(|before| position.as_bits().checked_sub(before.as_bits()))
            && bits > 0
        {
            *counts.entry(bits).or_default() += 1;
        }
        before = Some(position);
    }
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(bits, _)| bits)
}

const NO_TIME: Utc = Utc::from_nanos(i64::MIN);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_as_far_apart_as_most_of_them_are() {
        let apart = |positions: &[u64]| apart(positions.iter().map(|bits| BitPosition::from_bits(*bits)));
        assert_eq!(apart(&[]), None);
        assert_eq!(apart(&[7]), None);
        assert_eq!(apart(&[0, 100, 300, 400, 499, 599]), Some(100), "lost frames and slips");
        assert_eq!(apart(&[0, 200, 300]), Some(100));
        assert_eq!(apart(&[300, 200, 100]), None, "of several inputs");
    }
}
