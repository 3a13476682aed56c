//! Transmissions on one path whose fate is open, in the order they were sent, and the round-trip
//! time they measure.
//!
//! A transmission counts as lost when one sent later by more than a reordering window has arrived
//! (the time-based detection of RFC 8985), when the path says so, when the far end says on another
//! path that it lacks what should have come, or when no news came for longer than a round trip
//! allows. The window is small where the path keeps order, and grows when what was called lost
//! arrives after all.

mod silence;

pub use silence::many;

use crate::path::Token;
use crate::repair::Sid;
use crate::wire::{FlowReport, Recovered};
use silence::Quiet;
use skyhaul_units::{Duration, FlowId, Instant, Seq};
use std::collections::{BTreeMap, VecDeque};

/// What was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SentDatagram {
    Slice(Slice),
    Report {
        flows: Vec<FlowId>,
        recovered: Vec<Recovered>,
    },
    /// Sent again by a time-out of its own, or a copy.
    Notice,
    /// Sent to see whether a full datagram arrives.
    Padding,
    Repair,
}

/// Part of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    pub flow: FlowId,
    pub seq: Seq,
    pub start: u32,
    pub end: u32,
}

#[derive(Debug)]
struct Entry {
    sent: SentDatagram,
    sid: Option<Sid>,
    at: Instant,
    /// Why it was called lost: it has been acted on.
    judged: Option<LossReason>,
}

/// Why something counts as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossReason {
    /// What was sent after it has arrived.
    Overtaken,
    /// No news came in time.
    Overdue,
    /// The far end lacks it, and should have it.
    Missed,
}

/// Open transmissions. Tokens count up, so a token finds its entry by subtraction.
#[derive(Debug, Default)]
pub struct Inflight {
    first: u64,
    entries: VecDeque<Option<Entry>>,
    /// Tokens below this have been judged.
    judged_below: u64,
    /// Tokens from the first to the second were given up with the path; whether they were lost
    /// shows when it is back.
    doubted: (u64, u64),
    /// When the newest transmission known to have arrived was sent.
    newest_arrived: Option<Instant>,
    /// When something was last heard to have arrived.
    last_news: Option<Instant>,
    /// The oldest open transmission after all that arrived: it and those after it owe an answer.
    /// What is sent again meanwhile does not begin a silence anew.
    owed_from: u64,
    /// Tokens below this were given out as unanswered.
    told_below: u64,
    quiet: Quiet,
    /// How often patience ended since something was last heard to have arrived, and when it did
    /// last.
    backoff: (u32, Instant),
    /// Eighths of a round trip by which order may be off, and by how much more than half a round
    /// trip the way there may be.
    window_eighths: u64,
    detour_eighths: u64,
    sids: BTreeMap<u32, Token>,
    rtt: RoundTrip,
    /// What the path says that a round trip takes, for as long as none was measured here.
    said: Duration,
    fates: Fates,
}

/// Fates in the order of sending, for whoever measures loss.
#[derive(Debug, Default)]
struct Fates {
    first: u64,
    /// `None` while open.
    known: VecDeque<Option<bool>>,
}

/// What the far end lacks of the blocks that it waits for first, each flow's, by a report.
#[derive(Debug)]
pub struct MissingAtFarEnd<'a>(BTreeMap<(FlowId, Seq), &'a FlowReport>);

impl<'a> MissingAtFarEnd<'a> {
    pub fn of(flows: &'a [FlowReport]) -> Self {
        Self(flows.iter().map(|flow| ((flow.flow, Seq(flow.next)), flow)).collect())
    }

    /// Whether it is part of a block that the far end waits for.
    fn waits_for(&self, slice: &Slice) -> bool {
        self.0.contains_key(&(slice.flow, slice.seq))
    }

    /// Whether something of it is lacking.
    fn slice(&self, slice: &Slice) -> bool {
        let mut missing =
            self.0.get(&(slice.flow, slice.seq)).into_iter().flat_map(|flow| &flow.missing);
        missing.any(|(start, end)| *start < slice.end && end.is_none_or(|end| end > slice.start))
    }
}

/// What settling an arrival tells.
#[derive(Debug)]
pub struct Acknowledged {
    pub sent: SentDatagram,
    pub sid: Option<Sid>,
    /// It had been called lost.
    pub was_judged: bool,
}

/// Transmissions remembered at most: 375 MB of full-size symbols. Beyond, the oldest counts as
/// lost.
pub const ENTRIES_MAX: usize = 1 << 18;
/// What a transmission remembered costs, in bytes: its entry, its coding number's and its fate.
pub const ENTRY: u64 = 128;
/// A path that does not answer is tried again after at most 32 times its patience.
const BACKOFF_MAX: u32 = 5;
/// Half a round trip: what is later than that was not merely overtaken.
const WINDOW_MAX_EIGHTHS: u64 = 4;
/// Ticks of the sender and batches of acknowledgements shift packets by so much.
const WINDOW_MIN: Duration = Duration::from_millis(4);
/// Ticks of both ends, and the queue of a path before it is part of the smoothed round trip.
const MISSED_MARGIN: Duration = Duration::from_millis(10);

impl Inflight {
    /// Transmissions remembered.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn add(
        &mut self,
        now: Instant,
        sent: SentDatagram,
        sid: Option<Sid>,
    ) -> (Token, Option<SentDatagram>) {
        let token = Token(self.first + self.entries.len() as u64);
        self.entries.push_back(Some(Entry { sent, sid, at: now, judged: None }));
        self.fates.known.push_back(None);
        if let Some(sid) = sid {
            self.sids.insert(sid.to_wire(), token);
        }
        let forgotten = if self.entries.len() > ENTRIES_MAX {
            self.know(Token(self.first), true);
            self.first += 1;
            let oldest = self.entries.pop_front().flatten();
            self.owed_from = self.owed_from.max(self.first);
            if let Some(sid) = oldest.as_ref().and_then(|entry| entry.sid) {
                self.sids.remove(&sid.to_wire());
            }
            oldest.filter(|entry| entry.judged.is_none()).map(|entry| entry.sent)
        } else {
            None
        };
        (token, forgotten)
    }

    /// Takes out what was lost under `token`; with whether it had been acted on.
    pub fn settle_lost(&mut self, token: Token) -> Option<Acknowledged> {
        self.know(token, true);
        let entry = self.take(token)?;
        Some(Acknowledged { sent: entry.sent, sid: entry.sid, was_judged: entry.judged.is_some() })
    }

    /// Takes out what arrived under `token`, and measures the round trip.
    pub fn settle_arrived(&mut self, token: Token, now: Instant) -> Option<Acknowledged> {
        self.know(token, false);
        if self.rtt.smoothed > Duration::ZERO
            && let Some(expected) = self.expected(self.rtt.smoothed)
        {
            self.quiet.add(now, now.since(expected));
        }
        let entry = self.take(token)?;
        self.last_news = Some(now);
        self.owed_from = self.owed_from.max(token.0 + 1);
        self.backoff.0 = 0;
        if self.newest_arrived.is_none_or(|newest| newest < entry.at) {
            self.newest_arrived = Some(entry.at);
            self.rtt.sample(now.since(entry.at));
            self.settle_doubts(entry.at);
        }
        // A silence that ended, or a late answer, says nothing of the order.
        match entry.judged {
            Some(LossReason::Overtaken) => {
                self.window_eighths = (self.window_eighths + 1).min(WINDOW_MAX_EIGHTHS);
            }
            Some(LossReason::Missed) => {
                self.detour_eighths = (self.detour_eighths + 1).min(WINDOW_MAX_EIGHTHS);
            }
            Some(LossReason::Overdue) | None => {}
        }
        Some(Acknowledged { sent: entry.sent, sid: entry.sid, was_judged: entry.judged.is_some() })
    }

    /// What was sent under a coding number, taken out: repair stood for it.
    pub fn settle_recovered(&mut self, sid: Sid) -> Option<SentDatagram> {
        let token = *self.sids.get(&sid.to_wire())?;
        self.know(token, true);
        self.take(token).map(|entry| entry.sent)
    }

    /// The next transmission that counts as lost. It stays open: news may yet come.
    pub fn next_lost(&mut self, now: Instant) -> Option<(SentDatagram, Option<Sid>, LossReason)> {
        let (patience, window) = (self.patience(), self.window());
        loop {
            let at = self.judged_index();
            let entry = self.entries.get_mut(at)?;
            let verdict = match entry {
                None => None,
                Some(entry) if entry.judged.is_some() => None,
                Some(entry)
                    if self.newest_arrived.is_some_and(|newest| entry.at + window < newest) =>
                {
                    Some(LossReason::Overtaken)
                }
                Some(entry) if entry.at + patience <= now => Some(LossReason::Overdue),
                Some(_) => return None,
            };
            self.judged_below = self.first + at as u64 + 1;
            if let (Some(entry), Some(verdict)) = (entry, verdict) {
                entry.judged = Some(verdict);
                let (found, at) = ((entry.sent.clone(), entry.sid, verdict), entry.at);
                if verdict == LossReason::Overdue && at >= self.backoff.1 {
                    self.backoff = ((self.backoff.0 + 1).min(BACKOFF_MAX), now);
                }
                self.know(Token(self.judged_below - 1), true);
                return Some(found);
            }
        }
    }

    /// Calls lost what the far end `lacks`, where it was made by `made`: what would have arrived
    /// before then. What is coded is left to its repair. With how many the far end lacks in a row,
    /// of the blocks that it waits for, up to the last that should have come: none where something
    /// sent later is known to have arrived.
    pub fn miss(
        &mut self,
        lacks: &MissingAtFarEnd<'_>,
        made: Instant,
        flight: Duration,
    ) -> (Vec<Slice>, usize) {
        let late =
            flight + self.window() + self.rtt.smoothed * self.detour_eighths / 8 + MISSED_MARGIN;
        let newest = self.newest_arrived.unwrap_or(Instant::ZERO);
        let (mut missed, mut in_a_row) = (Vec::new(), 0);
        for place in self.judged_index()..self.entries.len() {
            let Some(entry) = &mut self.entries[place] else { continue };
            if entry.at + late > made {
                break;
            }
            let SentDatagram::Slice(slice) = entry.sent else { continue };
            if !lacks.waits_for(&slice) {
                continue;
            }
            let is_lacking = lacks.slice(&slice);
            in_a_row = if is_lacking && entry.at > newest { in_a_row + 1 } else { 0 };
            if is_lacking && entry.judged.is_none() && entry.sid.is_none() {
                entry.judged = Some(LossReason::Missed);
                missed.push(slice);
                self.know(Token(self.first + place as u64), true);
            }
        }
        (missed, in_a_row)
    }

    /// Calls everything open lost: the path does not answer. Gives what had not been judged yet.
    pub fn judge_all(&mut self) -> Vec<SentDatagram> {
        let from = self.judged_index().min(self.entries.len());
        self.doubted = (self.doubted.0.max(self.first), self.end());
        self.owed_from = self.end();
        self.judged_below = self.first + self.entries.len() as u64;
        let open = self.entries.range_mut(from..).flatten().filter(|entry| entry.judged.is_none());
        open.map(|entry| {
            entry.judged = Some(LossReason::Overdue);
            entry.sent.clone()
        })
        .collect()
    }

    /// The next fate in the order of sending: whether it was lost.
    pub fn next_fate(&mut self) -> Option<bool> {
        let fate = (*self.fates.known.front()?)?;
        self.fates.known.pop_front();
        self.fates.first += 1;
        Some(fate)
    }

    /// The path is back: what was given up with it, and sent well before what has arrived now, was
    /// lost.
    fn settle_doubts(&mut self, arrived: Instant) {
        let window = self.window();
        while self.doubted.0 < self.doubted.1 {
            let token = self.doubted.0.max(self.first);
            let entry =
                usize::try_from(token - self.first).ok().and_then(|at| self.entries.get(at));
            match entry {
                Some(Some(entry)) if entry.at + window >= arrived => return,
                Some(Some(_)) => self.know(Token(token), true),
                Some(None) | None => {}
            }
            self.doubted.0 = token + 1;
        }
    }

    fn know(&mut self, token: Token, lost: bool) {
        let at = token.0.checked_sub(self.fates.first).and_then(|at| usize::try_from(at).ok());
        if let Some(fate) = at.and_then(|at| self.fates.known.get_mut(at)) {
            fate.get_or_insert(lost);
        }
    }

    /// When [`Self::next_lost`] may next have something.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.oldest_unjudged().map(|(_, at)| at + self.patience())
    }

    fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// How long no news is normal, doubled each time that it ended with no news since (RFC 6298
    /// 5.5).
    fn patience(&self) -> Duration {
        self.rtt.patience(self.said) * (1 << self.backoff.0)
    }

    /// The path has measured a round trip by itself.
    pub const fn hear(&mut self, rtt: Duration) {
        self.said = rtt;
    }

    /// The smoothed round-trip time; zero before the first measurement.
    pub fn rtt(&self) -> Duration {
        self.rtt.smoothed
    }

    fn oldest_unjudged(&self) -> Option<(u64, Instant)> {
        let from = self.judged_index().min(self.entries.len());
        let mut open = (self.first + from as u64..).zip(self.entries.range(from..));
        open.find_map(|(token, entry)| {
            entry.as_ref().filter(|entry| entry.judged.is_none()).map(|entry| (token, entry.at))
        })
    }

    fn window(&self) -> Duration {
        (self.rtt.smoothed / 16 + self.rtt.smoothed * self.window_eighths / 8).max(WINDOW_MIN)
    }

    fn judged_index(&self) -> usize {
        self.judged_below.saturating_sub(self.first) as usize
    }

    fn take(&mut self, token: Token) -> Option<Entry> {
        let at = usize::try_from(token.0.checked_sub(self.first)?).ok()?;
        let entry = self.entries.get_mut(at)?.take();
        while let Some(None) = self.entries.front() {
            self.entries.pop_front();
            self.first += 1;
        }
        if let Some(sid) = entry.as_ref().and_then(|entry| entry.sid) {
            self.sids.remove(&sid.to_wire());
        }
        if token.0 == self.owed_from {
            let later = self.entries.range((token.0 + 1).saturating_sub(self.first) as usize..);
            let answered = later.take_while(|entry| entry.is_none()).count() as u64;
            self.owed_from = token.0 + 1 + answered;
        }
        entry
    }
}

/// Smoothed round-trip time and its mean deviation (RFC 6298 2).
#[derive(Debug, Default)]
struct RoundTrip {
    smoothed: Duration,
    deviation: Duration,
}

/// Patience before the first measurement: longer than a geostationary round trip with its queue.
const PATIENCE_FIRST: Duration = Duration::from_millis(1_500);
/// The far end may hold an acknowledgement back for 25 ms (RFC 9000 18.2), and a tick of 4 ms at
/// each end.
const ACK_DELAY: Duration = Duration::from_millis(35);

impl RoundTrip {
    fn sample(&mut self, rtt: Duration) {
        if self.smoothed == Duration::ZERO {
            self.smoothed = rtt;
            self.deviation = rtt / 2;
            return;
        }
        let off = if rtt > self.smoothed { rtt - self.smoothed } else { self.smoothed - rtt };
        self.deviation = self.deviation.scaled(3, 4) + off / 4;
        self.smoothed = self.smoothed.scaled(7, 8) + rtt / 8;
    }

    /// How long no news is normal: for what nothing sent later can tell of, the last symbols before
    /// a pause.
    fn patience(&self, said: Duration) -> Duration {
        if self.smoothed == Duration::ZERO {
            return PATIENCE_FIRST.max(said.scaled(3, 2) + ACK_DELAY);
        }
        self.smoothed + (self.deviation * 4).max(self.smoothed / 4) + ACK_DELAY
    }
}

#[cfg(test)]
mod tests;
