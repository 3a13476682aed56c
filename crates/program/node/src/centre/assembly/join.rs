//! Joins overlapping contacts frame by frame: they are read side by side from the store, and of
//! each frame the better copy is used, once and in order.
//!
//! The result depends on the content of the contacts alone, not on their order of arrival or on the
//! clock.

use super::fill::{Fill, FrameCursor};
use super::forms::ContactKey;
use super::source::{ContactSource, Undone, reader, records};
use crate::centre::files::ProductFiles;
use crate::centre::shared::CentreShared;
use bytes::Bytes;
use skyhaul_ccsds::id::Scid;
use skyhaul_ccsds::quality::{BitPosition, CapturedFrame};
use skyhaul_ccsds::select::{Select, SelectOptions};
use skyhaul_level0::{Assembly, Novelty};
use skyhaul_records::Record as Entry;
use skyhaul_store::{KeptReader, LogEntry};
use skyhaul_units::Utc;
use std::collections::{BTreeMap, VecDeque};

/// A contact to be joined.
#[derive(Clone, Copy)]
pub struct JoinedContact<'a> {
    /// The contact.
    pub source: &'a ContactSource,
    /// Whether the version before had it.
    pub standing: Novelty,
    /// The frames of other contacts to merge into its own.
    pub fill: &'a Fill,
    /// Whether its frames only contribute here: the products are of another contact.
    pub is_other: bool,
}

/// Contacts that are joined.
pub struct JoinGroup<'a> {
    /// The contacts, in the order in which they began.
    members: Vec<JoinedContact<'a>>,
    /// New where any of its contacts is, also a refill contact.
    standing: Novelty,
}

/// The most frames that wait for their copies: a minute of 11 Mbit/s, 80 MB of frames of a usual
/// length.
const HELD: usize = 1 << 16;
/// The frames from which their distance is found.
const SAMPLE: usize = 256;

/// The contacts of a group whose frames have the format of the first one's.
pub fn group<'a>(contacts: &[ContactKey], all: &[JoinedContact<'a>]) -> JoinGroup<'a> {
    let is_of = |member: &&JoinedContact<'a>| {
        let source = member.source;
        contacts.iter().any(|(station, flow)| (station, *flow) == (&source.station, source.flow))
    };
    let is_new = all.iter().filter(is_of).any(|member| member.standing == Novelty::New);
    let standing = if is_new { Novelty::New } else { Novelty::Known };
    let whole = all.iter().filter(is_of).filter(|member| member.source.open.completes.is_none());
    let mut members: Vec<JoinedContact<'a>> = whole.copied().collect();
    members.sort_by_key(|JoinedContact { source, .. }| {
        (source.open.opened, &source.station, source.flow)
    });
    if let Some(JoinedContact { source: first, .. }) = members.first().copied() {
        members.retain(|JoinedContact { source, .. }| {
            source.mission.name() == first.mission.name()
                && source.mission.frame() == first.mission.frame()
        });
    }
    JoinGroup { members, standing }
}

/// Passes the joined frames of these contacts to the products, with what each contact gave.
///
/// # Errors
/// [`Undone`].
pub fn give(
    group: &JoinGroup<'_>,
    scid: Scid,
    shared: &CentreShared,
    assembly: &mut Assembly<ProductFiles>,
) -> Result<(), Undone> {
    let [JoinedContact { source: first, .. }, _, ..] = &group.members[..] else { return Ok(()) };
    let options = SelectOptions { window: None, held: HELD, ..SelectOptions::default() };
    let mut select = Select::new(*first.mission.frame(), group.members.len(), options);
    let mut sides = Vec::new();
    for (input, member) in group.members.iter().enumerate() {
        let side = Side::open(member, group.standing, shared)?;
        select.stride(input, side.stride);
        sides.push(side);
    }
    let mut joint = assembly.joint(&first.mission, scid, group.standing).map_err(refused)?;
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
        // No frame waits for a time: contacts are read as fast as they are needed.
        while let Some(selected) = select.poll(NO_TIME) {
            let from = &group.members[selected.input];
            let is_listed = from.is_other && from.standing == Novelty::New;
            let given = if is_listed {
                joint.new_frame(&selected.frame)
            } else {
                joint.frame(&selected.frame)
            };
            given.map_err(refused)?;
        }
    }
    joint.finish().map_err(refused)?;
    for (input, member) in group.members.iter().enumerate() {
        if let Some(account) = select.account(input) {
            assembly.joined(&member.source.name(), account.into());
        }
    }
    Ok(())
}

/// Passes the packets to the products that a contact of other products had whole: packets that were
/// sent twice come in other frames.
///
/// # Errors
/// [`Undone`].
pub fn beside(
    member: &JoinedContact<'_>,
    scid: Scid,
    shared: &CentreShared,
    assembly: &mut Assembly<ProductFiles>,
) -> Result<(), Undone> {
    let mut side = Side::open(member, Novelty::New, shared)?;
    let mut joint =
        assembly.joint(&member.source.mission, scid, member.standing).map_err(refused)?;
    while let Some(frame) = side.next(shared)? {
        joint.frame(&frame).map_err(refused)?;
    }
    joint.finish().map_err(refused)
}

fn refused(error: skyhaul_level0::Error) -> Undone {
    Undone::Refused(error.to_string())
}

/// The good frames of one contact, and those merged into them.
struct Side<'a> {
    reader: KeptReader,
    ready: VecDeque<CapturedFrame>,
    /// Bits from one frame to the next.
    stride: u64,
    /// The position of the next frame in the downlink, where the contact's own positions do not
    /// show it because they are those of several inputs.
    place: Option<BitPosition>,
    fill: FrameCursor<'a>,
    /// Which of the frames to merge are used: all, or those that the version before had.
    given: Novelty,
}

impl<'a> Side<'a> {
    fn open(
        member: &JoinedContact<'a>,
        given: Novelty,
        shared: &CentreShared,
    ) -> Result<Self, Undone> {
        let source = member.source;
        let usual = 8 * source.mission.cadu_len() as u64;
        let place = (!source.inputs.is_empty()).then_some(BitPosition::START);
        let reader = reader(&source.station, source.flow, shared)?;
        let (ready, fill) = (VecDeque::new(), member.fill.cursor());
        let mut side = Self { reader, ready, stride: usual, place, fill, given };
        while side.ready.len() < SAMPLE && side.read(shared)? {}
        if side.place.is_none() {
            side.stride = apart(side.ready.iter().map(|frame| frame.position)).unwrap_or(usual);
        }
        Ok(side)
    }

    fn next(&mut self, shared: &CentreShared) -> Result<Option<CapturedFrame>, Undone> {
        while self.ready.is_empty() && self.read(shared)? {}
        let Some(mut frame) = self.completing().or_else(|| self.ready.pop_front()) else {
            return Ok(None);
        };
        if let Some(place) = &mut self.place {
            frame.position = *place;
            *place = place.plus_bits(self.stride);
        }
        Ok(Some(frame))
    }

    /// A frame of another contact that is merged before the next one.
    fn completing(&mut self) -> Option<CapturedFrame> {
        let next = self.ready.front().map(|frame| frame.position);
        loop {
            let found = match next {
                Some(position) => self.fill.before(position),
                None => self.fill.rest(),
            };
            let (frame, standing) = found?;
            if *standing == Novelty::Known || self.given == Novelty::New {
                return Some(frame.clone());
            }
        }
    }

    /// Reads the next block. Returns whether there was one.
    fn read(&mut self, shared: &CentreShared) -> Result<bool, Undone> {
        if shared.shutdown.is_requested() {
            return Err(Undone::Stopped);
        }
        let ready = &mut self.ready;
        match self.reader.read().map_err(|error| Undone::Refused(error.to_string()))? {
            Some(LogEntry::Block(record)) => records(&record, &mut |entry| {
                if let Entry::Frame(frame) = entry
                    && frame.is_good()
                {
                    // The bytes share the memory of their block: copied, so that it can be freed.
                    let (bytes, check_symbols) =
                        (Bytes::copy_from_slice(&frame.bytes), Bytes::new());
                    ready.push_back(CapturedFrame { bytes, check_symbols, ..frame });
                }
                Ok(())
            })?,
            // Damage was reported when the contact was processed.
            Some(LogEntry::Damaged(_) | LogEntry::SegmentEnd(_)) => {}
            None => return Ok(false),
        }
        Ok(true)
    }
}

/// The most frequent distance between frames; of two that are as frequent, the shorter.
fn apart(positions: impl Iterator<Item = BitPosition>) -> Option<u64> {
    let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
    let mut before: Option<BitPosition> = None;
    for position in positions {
        if let Some(bits) =
            before.and_then(|before| position.as_bits().checked_sub(before.as_bits()))
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
        let apart =
            |positions: &[u64]| apart(positions.iter().map(|bits| BitPosition::from_bits(*bits)));
        assert_eq!(apart(&[]), None);
        assert_eq!(apart(&[7]), None);
        assert_eq!(apart(&[0, 100, 300, 400, 499, 599]), Some(100), "lost frames and slips");
        assert_eq!(apart(&[0, 200, 300]), Some(100));
        assert_eq!(apart(&[300, 200, 100]), None, "of several inputs");
    }
}
