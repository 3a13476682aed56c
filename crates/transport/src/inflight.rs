//! Transmissions on one path whose fate is open, in the order they were sent, and the round-trip time they measure.
//!
//! A transmission counts as lost when one sent later by more than a reordering window has arrived (the time-based
//! detection of RFC 8985), when the path says so, or when no news came for longer than a round trip allows. The window
//! is small where the path keeps order, and grows when what was called lost arrives after all.

use crate::path::Token;
use crate::repair::Sid;
use crate::wire::Recovered;
use skyhaul_units::{Duration, FlowId, Instant, Seq};
use std::collections::{BTreeMap, VecDeque};

/// What was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    Slice(Slice),
    Report {
        flows: Vec<FlowId>,
        recovered: Vec<Recovered>,
    },
    /// Sent again by a time-out of its own, or a copy.
    Notice,
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
    sent: Sent,
    sid: Option<Sid>,
    at: Instant,
    /// It was called lost, and has been acted on.
    judged: bool,
}

/// Why something counts as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// What was sent after it has arrived.
    Overtaken,
    /// No news came in time.
    Overdue,
}

/// Open transmissions. Tokens count up, so a token finds its entry by subtraction.
#[derive(Debug, Default)]
pub struct Inflight {
    first: u64,
    entries: VecDeque<Option<Entry>>,
    /// Tokens below this have been judged.
    judged_below: u64,
    /// When the newest transmission known to have arrived was sent.
    newest_arrived: Option<Instant>,
    /// When something was last heard to have arrived.
    last_news: Option<Instant>,
    /// The oldest transmission that had neither arrived nor been judged when something was last heard. What is sent again
    /// meanwhile does not begin a silence anew.
    owed_from: u64,
    quiet: Quiet,
    /// How often patience ended since something was last heard to have arrived, and when it did last.
    backoff: (u32, Instant),
    /// Eighths of a round trip by which order may be off.
    window_eighths: u64,
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

/// What settling an arrival tells.
#[derive(Debug)]
pub struct Arrival {
    pub sent: Sent,
    pub sid: Option<Sid>,
    /// It had been called lost.
    pub was_judged: bool,
}

/// Transmissions remembered at most: 375 MB of full-size symbols. Beyond, the oldest counts as lost.
pub const ENTRIES_MAX: usize = 1 << 18;
/// What a transmission remembered costs, in bytes: its entry, its coding number's and its fate.
pub const ENTRY: u64 = 128;
/// A path that does not answer is tried again after at most 32 times its patience.
const BACKOFF_MAX: u32 = 5;
/// Half a round trip: what is later than that was not merely overtaken.
const WINDOW_MAX_EIGHTHS: u64 = 4;
/// Ticks of the sender and batches of acknowledgements shift packets by so much.
const WINDOW_MIN: Duration = Duration::from_millis(4);

impl Inflight {
    /// Transmissions remembered.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn add(&mut self, now: Instant, sent: Sent, sid: Option<Sid>) -> (Token, Option<Sent>) {
        let token = Token(self.first + self.entries.len() as u64);
        self.entries.push_back(Some(Entry { sent, sid, at: now, judged: false }));
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
            oldest.filter(|entry| !entry.judged).map(|entry| entry.sent)
        } else {
            None
        };
        (token, forgotten)
    }

    /// Takes out what was lost under `token`; with whether it had been acted on.
    pub fn settle_lost(&mut self, token: Token) -> Option<Arrival> {
        self.know(token, true);
        let entry = self.take(token)?;
        if self.oldest_unjudged().is_none() {
            self.owed_from = self.end();
        }
        Some(Arrival { sent: entry.sent, sid: entry.sid, was_judged: entry.judged })
    }

    /// Takes out what arrived under `token`, and measures the round trip.
    pub fn settle_arrived(&mut self, token: Token, now: Instant) -> Option<Arrival> {
        self.know(token, false);
        if self.rtt.smoothed > Duration::ZERO
            && let Some(expected) = self.expected(self.rtt.smoothed)
        {
            self.quiet.add(now, now.since(expected));
        }
        let entry = self.take(token)?;
        self.last_news = Some(now);
        self.owed_from = self.first_unjudged();
        self.backoff.0 = 0;
        if self.newest_arrived.is_none_or(|newest| newest < entry.at) {
            self.newest_arrived = Some(entry.at);
            self.rtt.sample(now.since(entry.at));
        }
        if entry.judged {
            self.window_eighths = (self.window_eighths + 1).min(WINDOW_MAX_EIGHTHS);
        }
        Some(Arrival { sent: entry.sent, sid: entry.sid, was_judged: entry.judged })
    }

    /// What was sent under a coding number, taken out: repair stood for it.
    pub fn settle_recovered(&mut self, sid: Sid) -> Option<Sent> {
        let token = *self.sids.get(&sid.to_wire())?;
        self.know(token, true);
        self.take(token).map(|entry| entry.sent)
    }

    /// The next transmission that counts as lost. It stays open: news may yet come.
    pub fn next_lost(&mut self, now: Instant) -> Option<(Sent, Option<Sid>, Verdict)> {
        let (patience, window) = (self.patience(), self.window());
        loop {
            let at = self.judged_index();
            let entry = self.entries.get_mut(at)?;
            let verdict = match entry {
                None => None,
                Some(entry) if self.newest_arrived.is_some_and(|newest| entry.at + window < newest) => {
                    Some(Verdict::Overtaken)
                }
                Some(entry) if entry.at + patience <= now => Some(Verdict::Overdue),
                Some(_) => return None,
            };
            self.judged_below = self.first + at as u64 + 1;
            if let (Some(entry), Some(verdict)) = (entry, verdict) {
                entry.judged = true;
                let (found, at) = ((entry.sent.clone(), entry.sid, verdict), entry.at);
                if verdict == Verdict::Overdue && at >= self.backoff.1 {
                    self.backoff = ((self.backoff.0 + 1).min(BACKOFF_MAX), now);
                }
                self.know(Token(self.judged_below - 1), true);
                return Some(found);
            }
        }
    }

    /// Calls everything open lost: the path does not answer. Gives what had not been judged yet.
    pub fn judge_all(&mut self) -> Vec<Sent> {
        let from = self.judged_index().min(self.entries.len());
        for token in self.first..self.first + self.entries.len() as u64 {
            self.know(Token(token), true);
        }
        self.owed_from = self.end();
        self.judged_below = self.first + self.entries.len() as u64;
        let open = self.entries.range_mut(from..).flatten();
        open.map(|entry| {
            entry.judged = true;
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

    /// When the path counts as silent, should nothing be heard until then. One transmission alone may have been lost; for
    /// several, that is after `patience`. Where so many owe an answer that chance has not taken them all, it is soon after
    /// their `rtt`.
    pub fn silent_at(&self, rtt: Duration, patience: Duration) -> Option<Instant> {
        let news = |at: Instant| self.last_news.map_or(at, |news| news.max(at));
        let margin = (self.quiet.longest() * 2).max(QUIET_MIN);
        let second = self.asked(1)?;
        let patient = (news(self.asked(0)?) + patience).max(second + rtt);
        let quick = self.asked(MANY).map(|at| news(at + rtt) + margin);
        Some(quick.map_or(patient, |quick| quick.min(patient)))
    }

    /// Since when an answer is expected that has not come.
    fn expected(&self, rtt: Duration) -> Option<Instant> {
        let answer = self.asked(0)? + rtt;
        Some(self.last_news.map_or(answer, |news| news.max(answer)))
    }

    /// When the transmission was made that is the `nth` of those which owe an answer.
    fn asked(&self, nth: u64) -> Option<Instant> {
        let place = usize::try_from((self.owed_from + nth).checked_sub(self.first)?).ok()?;
        self.entries.get(place)?.as_ref().map(|entry| entry.at)
    }

    fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// The oldest transmission that is open and unjudged; the next one where none is.
    fn first_unjudged(&self) -> u64 {
        self.oldest_unjudged().map_or(self.end(), |(token, _)| token)
    }

    /// How long no news is normal, doubled each time that it ended with no news since (RFC 6298 5.5).
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
        open.find_map(|(token, entry)| entry.as_ref().map(|entry| (token, entry.at)))
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
            self.owed_from = self.first_unjudged();
        }
        entry
    }
}

/// The longest time without the news that were expected, over the last ten to twenty seconds.
#[derive(Debug, Default)]
struct Quiet {
    since: Instant,
    now: Duration,
    before: Duration,
}

/// So many transmissions after the first that owes an answer: not even bursts of loss take them all.
const MANY: u64 = 16;
/// Shorter silences than this come from ticks and busy machines: three times what an acknowledgement may wait (RFC 9000
/// 18.2).
const QUIET_MIN: Duration = Duration::from_millis(75);
/// How long a silence is remembered, at least.
const QUIET_KEPT: Duration = Duration::from_secs(10);

impl Quiet {
    fn add(&mut self, now: Instant, span: Duration) {
        if now.since(self.since) >= QUIET_KEPT {
            self.before = core::mem::take(&mut self.now);
            self.since = now;
        }
        self.now = self.now.max(span);
    }

    fn longest(&self) -> Duration {
        self.now.max(self.before)
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
/// The far end may hold an acknowledgement back for 25 ms (RFC 9000 18.2), and a tick of 4 ms at each end.
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

    /// How long no news is normal: for what nothing sent later can tell of, the last symbols before a pause.
    fn patience(&self, said: Duration) -> Duration {
        if self.smoothed == Duration::ZERO {
            return PATIENCE_FIRST.max(said.scaled(3, 2) + ACK_DELAY);
        }
        self.smoothed + (self.deviation * 4).max(self.smoothed / 4) + ACK_DELAY
    }
}
