//! What a standby sends to one centre, and when.
//!
//! ```text
//!                    the centre lacks something, and the first is silent
//!   held ----------------------------------------------------------------> released
//!    ^  \  closed, and the centre has it from the first: settled              |
//!    |   `-> (gone)                                                           |
//!    +------------------------------------------------------------------------+
//!                the first delivers again without a pause ([`STEADY`])
//! ```
//!
//! This is the state of one contact. Of a released contact, each block that the centre has is kept
//! back, and goes as an empty place. While the first delivers again, a block waits for it for
//! [`HOLD`]; so the change back needs no agreement, and nothing flaps.

use super::cover::{Cover, FlowSpan, SLACK};
use super::{DeliveredContact, EdgeFrame, FrameMark, StandbyReport, StandbyRequest};
use skyhaul_units::{Duration, FlowId, Instant, Utc};
use std::collections::BTreeMap;

/// What a standby does for one centre.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandbyState {
    /// The centre has not said yet what it has: nothing is sent.
    Asking,
    /// The first station delivers, or there is nothing to deliver.
    StandingBy,
    /// Since then it sends what the centre misses.
    TakingOver(Utc),
    /// The centre does not say what it has: everything is sent.
    Unanswered,
    /// The centre knows no such station: everything is sent that it does not take from another.
    Unknown,
}

/// Where a block is in its contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockPlace {
    /// The first one, which says what the contact is of.
    Opening,
    /// Between them.
    Middle,
    /// The one that says that the contact has ended.
    Closing,
}

/// What becomes of a block now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockVerdict {
    /// It is sent.
    Send,
    /// The centre has it from the first station: an empty place is sent for it.
    KeepBack,
    /// The first station may still deliver it.
    Wait,
}

/// The first and the last good frame of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockFrames {
    /// The first.
    pub first: EdgeFrame,
    /// The last; the same where there is one.
    pub last: EdgeFrame,
}

/// Decides what a standby sends to one centre.
#[derive(Debug)]
pub struct StandbyGate {
    of: String,
    after: Duration,
    channels: ChannelMatch,
    /// The session with the centre began.
    connected: Option<Instant>,
    /// The last report, and whether all was told since the session began.
    reported: Option<Instant>,
    is_whole: bool,
    is_known: bool,
    /// By name: at most [`CONTACTS_MAX`].
    contacts: BTreeMap<String, DeliveredContact>,
    /// As many as the spool has live flows.
    flows: BTreeMap<FlowId, HeldFlow>,
    state: StandbyState,
}

/// A contact in the spool.
#[derive(Debug)]
struct HeldFlow {
    mission: String,
    channel: String,
    /// None before its first frame.
    span: Option<FlowSpan>,
    is_closed: bool,
    /// The centre has a part of it from here.
    has_begun: bool,
    /// It is not of the feed: a file, or frames that the centre asked for.
    is_own: bool,
    is_released: bool,
    /// Frames up to this time were given to the session, or kept back.
    given: Option<Utc>,
    /// Since when the centre lacks something that it might never get.
    lacking: Option<Instant>,
    /// The end of what the centre had from the first.
    had: Option<Utc>,
    /// Since when the first has delivered it without a pause.
    steady: Option<Instant>,
}

/// So long a block of a released contact waits for a first station that delivers again.
const HOLD: Duration = Duration::from_millis(1_500);
/// After so long without a pause the first station delivers alone again.
const STEADY: Duration = Duration::from_secs(5);
/// A report older than this says nothing about what the first station does now.
const FRESH: Duration = Duration::from_secs(1);
/// A centre that says nothing for so long after the greeting does not answer.
const UNANSWERED: Duration = Duration::from_secs(10);
/// Contacts of the other station that are remembered; the oldest go first.
const CONTACTS_MAX: usize = 1_024;

impl StandbyGate {
    /// A standby of the station `of`, without a session. The station is silent when no frames have
    /// come for `after`.
    pub const fn new(of: String, after: Duration, channels: ChannelMatch) -> Self {
        Self {
            of,
            after,
            channels,
            connected: None,
            reported: None,
            is_whole: false,
            is_known: true,
            contacts: BTreeMap::new(),
            flows: BTreeMap::new(),
            state: StandbyState::Asking,
        }
    }

    /// The station that it stands by for.
    pub fn of(&self) -> &str {
        &self.of
    }

    /// What it does.
    pub const fn state(&self) -> StandbyState {
        self.state
    }

    /// A session begins: all is read and told anew.
    pub fn connected(&mut self, now: Instant) {
        self.disconnected();
        self.connected = Some(now);
    }

    /// The session has ended.
    pub fn disconnected(&mut self) {
        *self = Self::new(core::mem::take(&mut self.of), self.after, self.channels);
    }

    /// What to ask the centre for.
    pub fn request(&self, utc: Utc) -> StandbyRequest {
        let begun = self.flows.values().filter_map(|flow| Some(flow.span?.first.received));
        let since = begun.min().unwrap_or(utc).min(utc);
        StandbyRequest { of: self.of.clone(), since: since - Duration::from_secs(60) }
    }

    /// A contact is in the spool; `is_own` where it is not of the feed.
    pub fn open(&mut self, flow: FlowId, mission: &str, channel: &str, source: FlowSource) {
        let held = HeldFlow {
            mission: mission.to_owned(),
            channel: channel.to_owned(),
            span: None,
            is_closed: false,
            has_begun: false,
            is_own: source == FlowSource::Asked,
            is_released: source == FlowSource::Asked,
            given: None,
            lacking: None,
            had: None,
            steady: None,
        };
        self.flows.entry(flow).or_insert(held);
    }

    /// A block of a contact with frames is durable in the spool.
    pub fn spooled(&mut self, flow: FlowId, frames: BlockFrames) {
        let Some(held) = self.flows.get_mut(&flow) else { return };
        let BlockFrames { first, last } = frames;
        if first.mark == FrameMark::default() {
            // Idle frames, which nobody misses at either end.
            return;
        }
        match &mut held.span {
            None => held.span = Some(FlowSpan { first, last }),
            Some(span) if last.received >= span.last.received => span.last = last,
            Some(_) => {}
        }
    }

    /// The centre has a part of the contact from here.
    pub fn begun(&mut self, flow: FlowId) {
        if let Some(held) = self.flows.get_mut(&flow) {
            held.has_begun = true;
        }
    }

    /// The contact has ended, and all of it was read.
    pub fn closed(&mut self, flow: FlowId) {
        if let Some(held) = self.flows.get_mut(&flow) {
            held.is_closed = true;
        }
    }

    /// Forgets the flows that the spool does not have for this centre any more.
    pub fn retain(&mut self, is_there: impl Fn(FlowId) -> bool) {
        self.flows.retain(|flow, _| is_there(*flow));
    }

    /// Whether a contact is known here.
    pub fn knows(&self, flow: FlowId) -> bool {
        self.flows.contains_key(&flow)
    }

    /// A report of the centre.
    pub fn report(&mut self, now: Instant, report: StandbyReport) {
        if report.of != self.of {
            return;
        }
        self.reported = Some(now);
        self.is_known = report.is_known;
        self.is_whole |= report.is_whole;
        for contact in report.contacts {
            self.contacts.insert(contact.name.clone(), contact);
        }
        while self.contacts.len() > CONTACTS_MAX {
            let oldest = self.contacts.values().min_by_key(|contact| contact.last.received);
            let Some(oldest) = oldest.map(|contact| contact.name.clone()) else { break };
            self.contacts.remove(&oldest);
        }
    }

    /// Looks what the centre lacks. Returns the contacts that it has from the first station: they
    /// are settled, and not known here any more. Call it at least every 200 ms.
    pub fn look(&mut self, now: Instant, utc: Utc) -> Vec<FlowId> {
        let is_late = self.connected.is_some_and(|since| now >= since + UNANSWERED);
        if !self.is_whole {
            if is_late && self.reported.is_none() {
                self.state = StandbyState::Unanswered;
                self.flows.values_mut().for_each(|flow| flow.is_released = true);
            }
            return Vec::new();
        }
        let age = self.reported.map_or(Duration::MAX, |at| now.since(at));
        let patience = Patience { age, after: self.after };
        let mut settled = Vec::new();
        let mut is_taking_over = false;
        for (flow, held) in &mut self.flows {
            let contacts = same_feed(&self.contacts, held, self.channels);
            match held.look(now, patience, contacts.iter().copied()) {
                Looked::Settled => settled.push(*flow),
                Looked::Held => {}
                Looked::Released => is_taking_over |= !held.is_own,
            }
        }
        settled.iter().for_each(|flow| drop(self.flows.remove(flow)));
        self.state = match (self.is_known, is_taking_over, self.state) {
            (false, ..) => StandbyState::Unknown,
            (true, true, state @ StandbyState::TakingOver(_)) => state,
            (true, true, _) => StandbyState::TakingOver(utc),
            (true, false, _) => StandbyState::StandingBy,
        };
        settled
    }

    /// Whether blocks of the contact go to the centre.
    pub fn is_released(&self, flow: FlowId) -> bool {
        self.flows.get(&flow).is_some_and(|held| held.is_released)
    }

    /// What becomes of the next block of a released contact, which may have no frames. What is not
    /// to wait counts as given.
    pub fn verdict(
        &mut self,
        flow: FlowId,
        frames: Option<BlockFrames>,
        place: BlockPlace,
        utc: Utc,
    ) -> BlockVerdict {
        let is_answered = self.is_whole;
        let patience = Patience { age: Duration::ZERO, after: self.after };
        let Some(held) = self.flows.get_mut(&flow) else { return BlockVerdict::Send };
        if !held.is_released {
            return BlockVerdict::Wait;
        }
        let contacts = same_feed(&self.contacts, held, self.channels);
        let contacts = contacts.iter().copied();
        let verdict = match is_answered && !held.is_own {
            true => held.verdict(BlockAt { frames, place, utc }, patience, contacts),
            false => BlockVerdict::Send,
        };
        if verdict != BlockVerdict::Wait {
            held.has_begun = true;
            let last = frames.map(|frames| frames.last.received);
            held.given = held.given.max(last);
        }
        verdict
    }
}

/// How contacts of two stations are known to be of one feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelMatch {
    /// By their mission, as long as the other station has one channel of it.
    Mission,
    /// By their mission and the name of their channel.
    Name,
}

/// What a contact in the spool is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowSource {
    /// The feed that both stations have.
    Feed,
    /// A file of this station, frames that the centre asked it for, or what it passes on.
    Asked,
}

/// A block to be judged.
#[derive(Debug, Clone, Copy)]
struct BlockAt {
    frames: Option<BlockFrames>,
    place: BlockPlace,
    utc: Utc,
}

/// How long the other station may be silent.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// The age of the last report.
    age: Duration,
    after: Duration,
}

impl Patience {
    /// Whether frames of one of the contacts came lately.
    fn hears<'a>(self, mut contacts: impl Iterator<Item = &'a DeliveredContact>) -> bool {
        contacts.any(|contact| !contact.is_ended && contact.idle + self.age < self.after)
    }
}

/// What a look at a contact gave.
enum Looked {
    Held,
    Released,
    Settled,
}

impl HeldFlow {
    fn look<'a>(
        &mut self,
        now: Instant,
        patience: Patience,
        contacts: impl Iterator<Item = &'a DeliveredContact> + Clone,
    ) -> Looked {
        let Some(span) = self.span.filter(|_| !self.is_own) else {
            // A contact that ended without a good frame.
            self.is_released |= self.is_closed;
            return self.shown();
        };
        let cover = Cover::of(&span, contacts.clone());
        let (had, end) = (cover.end(), span.last.received);
        let delivers = patience.hears(contacts);
        match delivers && had.is_some_and(|had| end.since(had) < HOLD) {
            true => drop(self.steady.get_or_insert(now)),
            false => self.steady = None,
        }
        // Where a part was given, every later block is looked at by itself.
        let begin = self.given.map_or(span.first.received, |given| given + SLACK);
        let Some(lacks) = cover.lacks_from(begin, end) else {
            self.lacking = None;
            return match (self.is_closed, self.has_begun) {
                (false, _) => self.step_back(now),
                (true, false) => Looked::Settled,
                (true, true) => {
                    // The centre waits for its end.
                    self.is_released = true;
                    Looked::Held
                }
            };
        };
        let is_tail = had.is_none_or(|end| lacks >= end);
        if is_tail && self.had < had {
            self.lacking = None;
        }
        self.had = self.had.max(had);
        let since = *self.lacking.get_or_insert(now);
        if is_tail && delivers {
            return self.step_back(now);
        }
        if patience.age < FRESH && now.since(since) >= patience.after {
            self.is_released = true;
        }
        self.shown()
    }

    fn step_back(&mut self, now: Instant) -> Looked {
        if self.steady.is_some_and(|since| now.since(since) >= STEADY) {
            self.is_released = false;
        }
        self.shown()
    }

    const fn shown(&self) -> Looked {
        if self.is_released { Looked::Released } else { Looked::Held }
    }

    fn verdict<'a>(
        &self,
        block: BlockAt,
        patience: Patience,
        contacts: impl Iterator<Item = &'a DeliveredContact> + Clone,
    ) -> BlockVerdict {
        let BlockAt { frames, place, utc } = block;
        let (Some(span), Some(frames)) = (self.span, frames) else {
            return match place {
                BlockPlace::Middle => BlockVerdict::KeepBack,
                BlockPlace::Opening | BlockPlace::Closing => BlockVerdict::Send,
            };
        };
        if place == BlockPlace::Opening {
            return BlockVerdict::Send;
        }
        let (from, to) = (frames.first.received, frames.last.received);
        let cover = Cover::of(&span, contacts.clone());
        if cover.has(from, to) {
            return match place {
                BlockPlace::Closing => BlockVerdict::Send,
                BlockPlace::Opening | BlockPlace::Middle => BlockVerdict::KeepBack,
            };
        }
        let is_tail = cover.end().is_none_or(|end| to >= end);
        let may_come = is_tail && patience.hears(contacts);
        if may_come && utc < to + HOLD { BlockVerdict::Wait } else { BlockVerdict::Send }
    }
}

/// The contacts of the other station that are of the same feed as one of this station. Frames of
/// another channel of the mission must not be taken for its frames.
fn same_feed<'a>(
    contacts: &'a BTreeMap<String, DeliveredContact>,
    held: &HeldFlow,
    channels: ChannelMatch,
) -> Vec<&'a DeliveredContact> {
    let its = contacts.values().filter(|contact| contact.mission == held.mission);
    let mut its: Vec<&DeliveredContact> = its.collect();
    let is_one = its.windows(2).all(|pair| pair[0].channel == pair[1].channel);
    if channels == ChannelMatch::Name || !is_one {
        its.retain(|contact| contact.channel == held.channel);
    }
    its
}
