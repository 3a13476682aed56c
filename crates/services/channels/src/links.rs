//! Application channels within one session: each behaves like a session of its own, except that
//! they share the line.
//!
//! A link has a slot, and its flows lie in that slot. A slot is used again when its link has ended
//! at the end that began it. Each message names its link within the slot, so that a late message is
//! never taken for one of the next link. A link begins with the first block that one end sends.
//! Reliable blocks have a window: the far end's program has at most [`WINDOW`] that it has not
//! taken, so that a slow program holds back its own link alone. Expendable blocks have no window: a
//! program that does not take them loses them.
//!
//! ```text
//!   at the end that begins:  free ── begin ──► open ── end ──► free
//!   at the other one:        free ── first block ──► open ── the far end's end ──► free
//!                                                        or its next link
//! ```

pub mod wire;

use bytes::Bytes;
use skyhaul_transport::{Block, Mode, cost};
use skyhaul_units::{ByteCount, FlowId};
use std::collections::{BTreeMap, BTreeSet};
use wire::{HEAD, LinkMessage, Malformed, Message};

/// Where a link is: its slot, and which link of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkSlot {
    slot: u32,
    link: u32,
}

/// Which end of the session this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// It called the other: its links have the even slots.
    Calling,
    /// It was called: its links have the odd ones.
    Called,
}

/// What became known of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The far end has begun one.
    Begun(LinkSlot),
    /// A block of the far end's program: tell with [`Links::taken`] when this one's has taken it.
    Data(LinkSlot, FlowId, Bytes),
    /// An expendable block: nothing is told of it.
    Passing(LinkSlot, FlowId, Bytes),
    /// More may be sent.
    Credit(LinkSlot),
    /// The far end says nothing more.
    Ended(LinkSlot),
}

/// The far end said what no node of this version says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LinkPeerError {
    /// A block is no message.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// More bytes than it was given.
    #[error("a channel exceeds its flow-control window")]
    OverWindow,
    /// A message of a link that was never begun.
    #[error("a message for a channel that was never opened")]
    Unknown,
}

/// All links of one service in one session. It holds a state for each slot, and at most one message
/// for each.
#[derive(Debug)]
pub struct Links {
    end: SessionEnd,
    /// The first of the service's own flows: each slot has as many as programs use.
    first: FlowId,
    slots: BTreeMap<u32, Slot>,
    /// Slots whose program has taken what the far end has not heard of.
    untold: BTreeSet<u32>,
    /// Ends to say, by slot: that of a later link of it says the end of the one before too.
    ends: BTreeMap<u32, u32>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    link: u32,
    is_open: bool,
    /// Cost of reliable blocks sent, and of those that the far end's program has taken.
    sent: u64,
    taken_there: u64,
    received: u64,
    taken: u64,
    told: u64,
}

/// Reliable blocks that one end has sent and the other's program has not taken, at most: 93 Mbit/s
/// at 660 ms, four times over, so that repairs of repairs do not stop the line.
pub const WINDOW: ByteCount = ByteCount::mib(32);
/// Links at a time that each end began.
pub const LINKS_MAX: usize = 32;
/// Flows of a slot.
const FLOWS: u32 = 1 << 10;
/// The slot's flow for what is said of the link as such.
const CONTROL: u32 = FLOWS - 1;
/// The far end hears of what was taken when it is this part of the window.
const TELL_PART: u64 = 4;

impl Links {
    /// None yet, of a service whose own flows begin with `first`.
    pub const fn new(end: SessionEnd, first: FlowId) -> Self {
        Self { end, first, slots: BTreeMap::new(), untold: BTreeSet::new(), ends: BTreeMap::new() }
    }

    /// Begins a link; `None` where [`LINKS_MAX`] are open. The far end hears of it with its first
    /// block.
    pub fn begin(&mut self) -> Option<LinkSlot> {
        let parity = u32::from(self.end == SessionEnd::Called);
        let mut slots = (0..LINKS_MAX as u32).map(|place| 2 * place + parity);
        let slot = slots.find(|slot| self.slots.get(slot).is_none_or(|slot| !slot.is_open))?;
        let link = self.slots.get(&slot).map_or(0, |slot| slot.link).checked_add(1)?;
        self.slots.insert(slot, Slot::open(link));
        Some(LinkSlot { slot, link })
    }

    /// What of reliable blocks may be sent now.
    pub fn credit(&self, place: LinkSlot) -> u64 {
        let Some(slot) = self.slot(place) else { return 0 };
        (WINDOW.as_u64() + slot.taken_there).saturating_sub(slot.sent)
    }

    /// Whether a block may be sent now: there is credit for it, or it needs none.
    pub fn may_send(&self, place: LinkSlot, block: &Block) -> bool {
        let needs = if block.mode == Mode::Reliable { cost(block.bytes.len() + HEAD) } else { 0 };
        self.slot(place).is_some() && needs <= self.credit(place)
    }

    /// The session's block for one of a program; `None` where its link has ended, its flow is none
    /// of a link's, or it is empty.
    pub fn data(&mut self, place: LinkSlot, block: Block) -> Option<Block> {
        if block.bytes.is_empty() {
            return None;
        }
        let flow = block.flow.0.checked_sub(self.first.0).filter(|flow| *flow < CONTROL)?;
        let flow = self.flow(place, flow);
        let slot = self.slot_mut(place)?;
        let said = match block.mode {
            Mode::Reliable => {
                slot.sent += cost(block.bytes.len() + HEAD);
                LinkMessage::Data(block.bytes.clone())
            }
            _ => LinkMessage::Passing(block.bytes.clone()),
        };
        Some(Block { flow, bytes: Message { link: place.link, said }.encode(), ..block })
    }

    /// This end's program has taken a block of so many bytes.
    pub fn taken(&mut self, place: LinkSlot, len: usize) {
        let Some(slot) = self.slot_mut(place) else { return };
        let was_told = slot.taken - slot.told < WINDOW.as_u64() / TELL_PART;
        slot.taken = (slot.taken + cost(len + HEAD)).min(slot.received);
        if was_told && slot.taken - slot.told >= WINDOW.as_u64() / TELL_PART {
            self.untold.insert(place.slot);
        }
    }

    /// This end's program is done with a link. What comes of it is dropped from now on.
    pub fn end(&mut self, place: LinkSlot) {
        if let Some(slot) = self.slot_mut(place) {
            slot.is_open = false;
            self.ends.insert(place.slot, place.link);
        }
    }

    /// The next message of links as such; one that the session does not take is put back.
    pub fn poll_block(&mut self) -> Option<Block> {
        while let Some(number) = self.untold.pop_first() {
            let slot =
                self.slots.get_mut(&number).filter(|slot| slot.is_open && slot.taken > slot.told);
            if let Some(slot) = slot {
                slot.told = slot.taken;
                let (place, told) = (LinkSlot { slot: number, link: slot.link }, slot.told);
                return Some(self.control(place, LinkMessage::Taken(told)));
            }
        }
        let (slot, link) = self.ends.pop_first()?;
        Some(self.control(LinkSlot { slot, link }, LinkMessage::End))
    }

    /// Takes in a block of the session, on one of the service's own flows. What came for a link
    /// that is over is for nobody.
    ///
    /// # Errors
    /// The far end keeps to no rule: close the session.
    pub fn receive(&mut self, flow: FlowId, block: &Bytes) -> Result<Vec<Event>, LinkPeerError> {
        let Message { link, said } = Message::decode(block)?;
        let inner = flow.0.checked_sub(self.first.0).ok_or(LinkPeerError::Unknown)?;
        let place = LinkSlot { slot: inner / FLOWS, link };
        if place.slot >= 2 * LINKS_MAX as u32 {
            return Err(LinkPeerError::Unknown);
        }
        let mut events = Vec::new();
        let is_theirs = (place.slot % 2 == 1) == (self.end == SessionEnd::Calling);
        let known = self.slots.get(&place.slot).map_or(0, |slot| slot.link);
        if link > known {
            if !is_theirs {
                return Err(LinkPeerError::Unknown);
            }
            let before =
                self.slots.insert(place.slot, Slot::open(link)).filter(|slot| slot.is_open);
            // Its end has been overtaken.
            events.extend(before.map(|slot| Event::Ended(LinkSlot { link: slot.link, ..place })));
            events.push(Event::Begun(place));
        }
        let own = FlowId(self.first.0 + inner % FLOWS);
        let Some(slot) = self.slot_mut(place) else { return Ok(events) };
        match said {
            LinkMessage::Data(bytes) => {
                slot.received += cost(bytes.len() + HEAD);
                if slot.received - slot.taken > WINDOW.as_u64() {
                    return Err(LinkPeerError::OverWindow);
                }
                events.push(Event::Data(place, own, bytes));
            }
            LinkMessage::Passing(bytes) => events.push(Event::Passing(place, own, bytes)),
            LinkMessage::Taken(total) => {
                if total > slot.sent {
                    return Err(LinkPeerError::Unknown);
                }
                slot.taken_there = slot.taken_there.max(total);
                events.push(Event::Credit(place));
            }
            LinkMessage::End => {
                slot.is_open = false;
                events.push(Event::Ended(place));
            }
        }
        Ok(events)
    }

    fn control(&self, place: LinkSlot, said: LinkMessage) -> Block {
        let message = Message { link: place.link, said };
        let block = Block::reliable(self.flow(place, CONTROL), message.encode());
        Block { priority: 0, ..block }
    }

    fn flow(&self, place: LinkSlot, flow: u32) -> FlowId {
        FlowId(self.first.0 + place.slot * FLOWS + flow)
    }

    fn slot(&self, place: LinkSlot) -> Option<&Slot> {
        self.slots.get(&place.slot).filter(|slot| slot.link == place.link && slot.is_open)
    }

    fn slot_mut(&mut self, place: LinkSlot) -> Option<&mut Slot> {
        self.slots.get_mut(&place.slot).filter(|slot| slot.link == place.link && slot.is_open)
    }
}

impl Slot {
    const fn open(link: u32) -> Self {
        Self { link, is_open: true, sent: 0, taken_there: 0, received: 0, taken: 0, told: 0 }
    }
}

#[cfg(test)]
mod tests;
