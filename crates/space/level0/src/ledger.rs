//! The gaps of all contacts known to a centre: the missing frames, the requests to the station, and
//! the frames that were filled.
//!
//! A [`Ledger`] takes each durable frame, in the order of its contact's blocks. Counts of a virtual
//! channel that were skipped are a [`MissingFrames`]; frames of another contact fill it, either one
//! that the station made to complete this one, or one of another station. A frame of the former may
//! come before the gap is found: behind a relay, nobody waits for the question. [`Ledger::ask`]
//! returns the questions for a station, [`Ledger::answer`] takes its answers ([`talk`]).
//!
//! The caller keeps the state of a contact as one small record ([`Ledger::record`],
//! [`Ledger::restore`]); after a restart, blocks that are in the record are skipped
//! ([`Ledger::takes`]), so that each counts once.
//!
//! A frame count that repeats or goes back is a replay or a reset, not a gap; for short counts, the
//! bits, the time and the packets between decide ([`skyhaul_ccsds::continuity`]). VC 63 and
//! channels of idle frames are left out by the caller.

mod contact;
mod early;
mod frame;
mod gap;
mod position;
mod questions;
mod record;
pub mod talk;
mod unfilled;

pub use contact::{ContactStart, PacketGap, PacketGapState, PacketLoss};
pub use frame::DurableFrame;
pub use gap::{GapState, MissingCounts, MissingFrames};
pub use position::Place;
pub use record::LedgerRecordError;

use contact::Contact;
use early::ALL_EARLY_MAX;
use gap::Withdrawal;
use questions::{Asked, Questions};
use skyhaul_units::{Duration, FlowId, Instant, Seq, Utc};
use std::collections::{BTreeMap, BTreeSet};
use talk::{Ask, GapAnswer, SPANS_MAX};
use unfilled::{GapPlace, Unfilled};

/// A contact: its station, and its number there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContactId {
    /// The station's name.
    pub station: String,
    /// Its flow there.
    pub flow: FlowId,
}

/// Why a block of a contact is not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbsentBlock {
    /// It cannot be read back, or could not be read from the station's disk.
    Damaged,
    /// A standby kept it back: frames between those before and those behind are not missing.
    KeptBack,
}

/// A contact that a ledger knows.
#[derive(Debug)]
pub struct KnownContact<'a, G> {
    /// Which.
    pub id: &'a ContactId,
    /// How it began.
    pub opened: &'a ContactStart,
    /// When its newest counted frame was received.
    pub newest: Option<Utc>,
    /// Whether it has ended.
    pub is_closed: bool,
    /// Its gaps.
    pub gaps: G,
}

/// The gaps of all contacts.
#[derive(Debug, Default)]
pub struct Ledger {
    contacts: BTreeMap<ContactId, Contact>,
    /// Gaps with something missing.
    unfilled: Unfilled,
    /// Contacts about which there may be a question.
    due: BTreeSet<ContactId>,
    questions: Questions,
    /// Contacts whose record is behind.
    changed: BTreeSet<ContactId>,
    /// Contacts that are no longer known, whose records the caller must remove.
    forgotten: Vec<ContactId>,
    totals: LedgerTotals,
}

/// What is asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AskedAgain {
    /// Contacts that were meant.
    pub contacts: u64,
    /// Gaps that are open again.
    pub gaps: u64,
    /// Frames missing in them.
    pub frames: u64,
    /// Gaps for which a new request cannot help: their station is not in the configuration, or more
    /// frames are missing than a request may have.
    pub left: u64,
}

/// The counts of a ledger for all contacts that it has known since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct LedgerTotals {
    /// Gaps beyond the limit of a contact, which are only counted here.
    pub overflow: u64,
    /// Contacts that were not followed, because too many were open.
    pub unfollowed: u64,
    /// Frame counts that repeated or went back: replays and resets.
    pub restarts: u64,
    /// Questions asked.
    pub asks: u64,
}

/// How much more of a contact may be kept.
#[derive(Debug, Clone, Copy)]
struct Room {
    gaps: usize,
    early: usize,
}

/// Whether a frame was missing somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filled {
    None,
    One,
}

/// Contacts kept: two weeks of fifty a day and their refills. Closed contacts without missing
/// frames are removed first, the oldest first.
pub const CONTACTS_MAX: usize = 1_024;
/// Gaps kept of all contacts together: 40 MB. Further ones are only counted.
const ALL_GAPS_MAX: usize = 200_000;
/// Between two questions about one contact: frames that are found missing meanwhile are requested
/// together.
const GATHER: Duration = Duration::from_millis(50);
/// The number of requests to a connected station that does not answer.
const ASKED_MAX: u8 = 5;
/// The largest difference of the clocks of two stations, light time included.
const TOLERANCE: Duration = Duration::from_secs(1);

impl Ledger {
    /// An empty ledger. Questions are numbered from `first_ask`, which must be above those of
    /// earlier runs, so that a late answer to one of those is recognised.
    pub fn new(first_ask: u64) -> Self {
        Self { questions: Questions::from(first_ask), ..Self::default() }
    }

    /// A contact begins, or is read again from its beginning.
    pub fn open(&mut self, id: &ContactId, opened: ContactStart) {
        if self.contacts.contains_key(id) {
            return;
        }
        if !self.make_room() {
            self.totals.unfollowed += 1;
            return;
        }
        self.contacts.insert(id.clone(), Contact::new(opened));
        self.changed.insert(id.clone());
    }

    /// Whether a contact's block is news.
    pub fn takes(&self, id: &ContactId, block: Seq) -> bool {
        self.contacts.get(id).is_some_and(|contact| contact.next_block <= block)
    }

    /// Takes the good frames of a contact's block, in their order. Frames of a known block only
    /// show how the counts of later ones continue.
    pub fn block(&mut self, id: &ContactId, block: Seq, frames: &[DurableFrame]) {
        let Some(contact) = self.contacts.get_mut(id) else { return };
        if contact.next_block > block {
            return frames.iter().for_each(|seen| contact.learn(seen));
        }
        contact.next_block = block.next();
        self.changed.insert(id.clone());
        let completes = contact.opened.completes;
        let room = Room::of(&self.contacts, id);
        for seen in frames {
            match (self.fill(id, completes, seen), completes) {
                // A contact that completes another has only frames that are missing there, so it
                // always has gaps.
                (Filled::None, Some(_)) => {
                    keep_early(&mut self.contacts, id, seen, room.early);
                }
                (_, Some(_)) => {}
                (_, None) => self.follow(id, seen, room.gaps),
            }
        }
    }

    /// A block of a contact is not here.
    pub fn absent(&mut self, id: &ContactId, why: AbsentBlock) {
        let Some(contact) = self.contacts.get_mut(id) else { return };
        match why {
            AbsentBlock::KeptBack => contact.begin_anew(),
            AbsentBlock::Damaged if contact.is_damaged => {}
            AbsentBlock::Damaged => {
                contact.is_damaged = true;
                self.changed.insert(id.clone());
            }
        }
    }

    /// The stations of the configuration: others cannot be asked. Missing frames of a station that
    /// is there again are open again.
    pub fn stations(&mut self, known: &BTreeSet<String>) {
        for (id, contact) in &mut self.contacts {
            let is_known = known.contains(&id.station);
            let mut any = false;
            for gap in contact.gaps.values_mut() {
                any |= if is_known { gap.station_returned() } else { gap.station_removed() };
            }
            if any {
                self.changed.insert(id.clone());
                self.due.insert(id.clone());
            }
        }
    }

    /// Opens unrecoverable gaps again, for the contacts and gaps in `which`: a station may have its
    /// recording back, or other settings.
    pub fn ask_again(
        &mut self,
        which: impl Fn(&ContactId, &ContactStart, &MissingFrames) -> bool,
    ) -> AskedAgain {
        let mut again = AskedAgain::default();
        for (id, contact) in &mut self.contacts {
            let (mut is_meant, mut is_open) = (false, false);
            for gap in contact.gaps.values_mut().filter(|gap| which(id, &contact.opened, gap)) {
                is_meant = true;
                if gap.ask_again() {
                    is_open = true;
                    again.gaps += 1;
                    again.frames += gap.missing();
                } else if matches!(gap.state, GapState::Unrecoverable(_)) {
                    again.left += 1;
                }
            }
            again.contacts += u64::from(is_meant);
            if is_open {
                contact.said_last = false;
                self.changed.insert(id.clone());
                self.due.insert(id.clone());
            }
        }
        again
    }

    /// The contact ends; `packets` are the breaks in its packets' sequence counts.
    pub fn close(&mut self, id: &ContactId, packets: Vec<PacketGap>) {
        let Some(contact) = self.contacts.get_mut(id) else { return };
        if !contact.is_closed {
            // A contact that completes another always has breaks.
            let completes = contact.opened.completes;
            let is_whole = completes.is_none();
            contact.close(if is_whole { packets } else { Vec::new() });
            self.changed.insert(id.clone());
            self.due.insert(id.clone());
            // No more gaps are found in it.
            for (other, completing) in &mut self.contacts {
                let is_its =
                    completing.opened.completes == Some(id.flow) && other.station == id.station;
                if is_its && completing.early.clear() {
                    self.changed.insert(other.clone());
                }
            }
            if let Some(flow) = completes {
                self.undelivered(ContactId { station: id.station.clone(), flow });
            }
        }
    }

    /// The next question for a connected station.
    pub fn ask(&mut self, station: &str, now: Instant) -> Option<Ask> {
        let late: Vec<u64> = self.questions.late(station, now).collect();
        self.withdraw(&late, Withdrawal::NoAnswer);
        if self.questions.is_full(station) {
            return None;
        }
        let of_station = |id: &&ContactId| id.station == station;
        let candidates: Vec<ContactId> = self.due.iter().filter(of_station).cloned().collect();
        let id = candidates.into_iter().find(|id| {
            let contact = self.contacts.get(id).filter(|contact| contact.has_question());
            if contact.is_none() {
                self.due.remove(id);
            }
            contact.is_some_and(|contact| contact.asked_at.is_none_or(|at| at + GATHER <= now))
        })?;
        let contact = self.contacts.get_mut(&id)?;
        let number = self.questions.next();
        let (spans, gaps) = contact.take_spans(number, SPANS_MAX);
        self.totals.asks += 1;
        contact.asked_at = Some(now);
        contact.said_last = contact.is_closed && !contact.has_open();
        let ContactStart { channel, mission, .. } = contact.opened.clone();
        let (flow, is_damaged, is_last) = (id.flow, contact.is_damaged, contact.said_last);
        self.changed.insert(id.clone());
        self.questions.ask(Asked { contact: id, at: now, gaps });
        Some(Ask { number, contact: flow, channel, mission, is_damaged, is_last, spans })
    }

    /// A station's answer; an answer to a question that is not open is ignored.
    pub fn answer(&mut self, station: &str, answer: &GapAnswer) {
        let Some(asked) = self.questions.take_of(answer.number, station) else { return };
        let Some(contact) = self.contacts.get_mut(&asked.contact) else { return };
        let mut outcomes: BTreeMap<u64, (u64, talk::UnavailableReason)> = BTreeMap::new();
        for (gap, (sent, why)) in asked.gaps.iter().zip(&answer.outcomes) {
            let outcome = outcomes.entry(*gap).or_insert((0, *why));
            outcome.0 = outcome.0.saturating_add(*sent);
            if *why != talk::UnavailableReason::Found {
                outcome.1 = *why;
            }
        }
        for number in asked.gaps {
            // An answer that is shorter than the question has nothing for the rest.
            let (sent, why) =
                outcomes.get(&number).copied().unwrap_or((0, talk::UnavailableReason::NoAnswer));
            if let Some(gap) = contact.gaps.get_mut(&number) {
                gap.answered(answer.number, sent, why);
            }
        }
        self.changed.insert(asked.contact);
    }

    /// The line to a station is down: questions without an answer are asked again.
    pub fn disconnected(&mut self, station: &str) {
        let numbers: Vec<u64> = self.questions.of(station).collect();
        self.withdraw(&numbers, Withdrawal::NotDelivered);
    }

    /// The line did not accept the question.
    pub fn not_asked(&mut self, number: u64) {
        self.withdraw(&[number], Withdrawal::NotDelivered);
    }

    /// The contacts that are known, with their gaps.
    pub fn contacts(
        &self,
    ) -> impl Iterator<Item = KnownContact<'_, impl Iterator<Item = &MissingFrames>>> {
        self.contacts.iter().map(|(id, contact)| KnownContact {
            id,
            opened: &contact.opened,
            newest: contact.newest.values().map(|frame| frame.place.received).max(),
            is_closed: contact.is_closed,
            gaps: contact.gaps.values(),
        })
    }

    /// The breaks in a contact's packets, with what is known of each.
    pub fn packets(&self, id: &ContactId) -> impl Iterator<Item = (&PacketGap, PacketGapState)> {
        let contact = self.contacts.get(id);
        contact
            .into_iter()
            .flat_map(|contact| contact.packets.iter().map(|gap| (gap, contact.state_of(gap))))
    }

    /// Counters.
    pub const fn totals(&self) -> LedgerTotals {
        self.totals
    }

    /// The contacts whose record must be written, each once.
    pub fn changed(&mut self) -> BTreeSet<ContactId> {
        core::mem::take(&mut self.changed)
    }

    /// Their records could not be written.
    pub fn not_kept(&mut self, contacts: BTreeSet<ContactId>) {
        self.changed.extend(contacts);
    }

    /// The contacts whose records must be removed, each once.
    pub fn forgotten(&mut self) -> Vec<ContactId> {
        core::mem::take(&mut self.forgotten)
    }

    /// The record of a contact.
    pub fn record(&self, id: &ContactId) -> Option<Vec<u8>> {
        self.contacts.get(id).map(|contact| record::write(id, contact))
    }

    /// Restores a contact from its record. Questions without an answer are open again.
    ///
    /// # Errors
    /// [`LedgerRecordError`] if the record cannot be used. The contact is then known as far as its
    /// blocks are read again.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), LedgerRecordError> {
        let (id, contact) = record::read(bytes)?;
        if self.contacts.len() >= CONTACTS_MAX {
            self.forgotten.push(id);
            return Ok(());
        }
        for (number, gap) in contact.gaps.iter().filter(|(_, gap)| !gap.is_filled()) {
            self.unfilled.insert(gap, &id, *number);
        }
        self.due.insert(id.clone());
        self.contacts.insert(id, contact);
        Ok(())
    }

    /// Follows the frame count of a contact.
    fn follow(&mut self, id: &ContactId, seen: &DurableFrame, room: usize) {
        let Some(contact) = self.contacts.get_mut(id) else { return };
        let (lost, now) = contact.follow(seen, room);
        // A restart that was none.
        self.totals.restarts = self.totals.restarts.saturating_sub(u64::from(lost.is_some()));
        for followed in lost.into_iter().chain([now]) {
            match followed {
                contact::Followed::On => {}
                contact::Followed::Restart => self.totals.restarts += 1,
                contact::Followed::Overflow => self.totals.overflow += 1,
                contact::Followed::Gap(number) => {
                    let gap = fill_early(&mut self.contacts, id, number);
                    if let Some(gap) = gap.filter(|gap| !gap.is_filled()) {
                        self.unfilled.insert(gap, id, number);
                        self.due.insert(id.clone());
                    }
                }
            }
        }
    }

    /// Checks whether a frame is missing in another contact: in the one that its own completes, or
    /// in one of another station.
    fn fill(&mut self, id: &ContactId, completes: Option<FlowId>, seen: &DurableFrame) -> Filled {
        let mut filled: Option<(ContactId, GapPlace, bool)> = None;
        let is_own = |other: &ContactId| other.station == id.station;
        let is_meant = |other: &ContactId| !is_own(other) || completes == Some(other.flow);
        let until = seen.place.received + TOLERANCE;
        for (of, place) in self.unfilled.before(seen.channel, until, is_meant) {
            let contact = self.contacts.get_mut(of);
            let Some(gap) = contact.and_then(|contact| contact.gaps.get_mut(&place.number)) else {
                continue;
            };
            let is_there = if is_own(of) {
                gap.spans(seen.place.position)
            } else {
                gap.is_about(seen.place.received, TOLERANCE) && gap.wraps_in() > TOLERANCE * 4
            };
            if is_there && gap.take(seen.count) {
                filled = Some((of.clone(), place, gap.is_filled()));
                break;
            }
        }
        let Some((of, place, is_whole)) = filled else { return Filled::None };
        if is_whole {
            self.unfilled.remove(seen.channel, &of, place);
        }
        self.changed.insert(of);
        Filled::One
    }

    /// The contact that completes another has ended: frames that were promised but are not there
    /// are requested again.
    fn undelivered(&mut self, id: ContactId) {
        let Some(contact) = self.contacts.get_mut(&id) else { return };
        let mut any = false;
        for gap in contact.gaps.values_mut() {
            any |= gap.undelivered(ASKED_MAX);
        }
        if any {
            contact.said_last = false;
            self.changed.insert(id.clone());
            self.due.insert(id);
        }
    }

    /// Opens the gaps again that these questions were about.
    fn withdraw(&mut self, numbers: &[u64], why: Withdrawal) {
        for number in numbers {
            let Some(asked) = self.questions.take(*number) else { continue };
            let Some(contact) = self.contacts.get_mut(&asked.contact) else { continue };
            // A station that does not answer "nothing more will be asked" is not told again: it
            // ends its open refill by itself.
            contact.said_last &= why == Withdrawal::NoAnswer && asked.gaps.is_empty();
            for gap in &asked.gaps {
                if let Some(gap) = contact.gaps.get_mut(gap) {
                    gap.withdrawn(*number, why, ASKED_MAX);
                }
            }
            self.changed.insert(asked.contact.clone());
            self.due.insert(asked.contact);
        }
    }

    /// Forgets a contact if there are too many. Returns whether there is room for one more.
    fn make_room(&mut self) -> bool {
        if self.contacts.len() < CONTACTS_MAX {
            return true;
        }
        let closed = self.contacts.iter().filter(|(_, contact)| contact.is_closed);
        let oldest = closed.min_by_key(|(id, contact)| {
            (contact.gaps.values().any(|gap| !gap.is_filled()), contact.opened.at, (*id).clone())
        });
        let Some(id) = oldest.map(|(id, _)| id.clone()) else { return false };
        self.contacts.remove(&id);
        self.questions.forget(&id);
        self.unfilled.forget(&id);
        self.changed.remove(&id);
        self.due.remove(&id);
        self.forgotten.push(id);
        true
    }
}

impl Room {
    /// For one contact beside all others.
    fn of(contacts: &BTreeMap<ContactId, Contact>, id: &ContactId) -> Self {
        let mut room = Self { gaps: ALL_GAPS_MAX, early: ALL_EARLY_MAX };
        for (_, contact) in contacts.iter().filter(|(other, _)| *other != id) {
            room.gaps = room.gaps.saturating_sub(contact.gaps.len());
            room.early = room.early.saturating_sub(contact.early.len());
        }
        room
    }
}

/// Keeps a frame of a contact that no gap of the one that this completes lacks so far, until that
/// one has ended.
fn keep_early(
    contacts: &mut BTreeMap<ContactId, Contact>,
    id: &ContactId,
    seen: &DurableFrame,
    room: usize,
) {
    let completes = contacts.get(id).and_then(|contact| contact.opened.completes);
    let whole = completes.map(|flow| ContactId { station: id.station.clone(), flow });
    let whole = whole.and_then(|whole| contacts.get(&whole));
    if whole.is_some_and(|whole| whole.is_closed) {
        return;
    }
    if let Some(contact) = contacts.get_mut(id) {
        contact.early.keep(seen, room);
    }
}

/// Fills a gap of a contact, which is new, with the early frames of those that complete it.
fn fill_early<'a>(
    contacts: &'a mut BTreeMap<ContactId, Contact>,
    id: &ContactId,
    number: u64,
) -> Option<&'a MissingFrames> {
    let mut gap = contacts.get_mut(id)?.gaps.remove(&number)?;
    for (other, contact) in &*contacts {
        if contact.opened.completes == Some(id.flow) && other.station == id.station {
            contact.early.fill(&mut gap);
        }
    }
    Some(contacts.get_mut(id)?.gaps.entry(number).or_insert(gap))
}

#[cfg(test)]
mod tests;
