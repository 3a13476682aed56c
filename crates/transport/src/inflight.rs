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
    /// The oldest open transmission after all that arrived: it and those after it owe an answer. What is sent again
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
        self.owed_from = self.owed_from.max(token.0 + 1);
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
        let first = self.asked(0)?;
        if self.end() < self.owed_from + 2 {
            return None;
        }
        let second = self.asked(1).unwrap_or(first);
        let patient = (news(first) + patience).max(second + rtt);
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
            let later = self.entries.range((token.0 + 1).saturating_sub(self.first) as usize..);
            let answered = later.take_while(|entry| entry.is_none()).count() as u64;
            self.owed_from = token.0 + 1 + answered;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn slice(number: u32) -> Sent {
        Sent::Slice(Slice { flow: FlowId(0), seq: Seq(0), start: number, end: number + 1 })
    }

    fn add(inflight: &mut Inflight, millis: u64, number: u32) -> Token {
        inflight.add(at(millis), slice(number), None).0
    }

    /// A path with a round trip of 160 ms, measured eight times.
    fn measured() -> Inflight {
        let mut inflight = Inflight::default();
        for number in 0..8 {
            let token = add(&mut inflight, u64::from(number), number);
            inflight.settle_arrived(token, at(u64::from(number) + 160));
        }
        while inflight.next_fate().is_some() {}
        inflight
    }

    fn lost(inflight: &mut Inflight, millis: u64) -> Vec<(Sent, Verdict)> {
        let next = || inflight.next_lost(at(millis)).map(|(sent, _, verdict)| (sent, verdict));
        core::iter::from_fn(next).collect()
    }

    #[test]
    fn what_is_overtaken_by_more_than_the_window_is_lost_and_no_sooner() {
        let mut inflight = measured();
        let [_, _, inside, beyond] = [(1_000, 0), (1_001, 1), (1_009, 2), (1_012, 3)]
            .map(|(millis, number)| add(&mut inflight, millis, number));
        inflight.settle_arrived(inside, at(1_169));
        assert_eq!(lost(&mut inflight, 1_169), [], "the window is 10 ms: a sixteenth of a round trip");
        inflight.settle_arrived(beyond, at(1_172));
        let both = [(slice(0), Verdict::Overtaken), (slice(1), Verdict::Overtaken)];
        assert_eq!(lost(&mut inflight, 1_172), both);
        assert_eq!(lost(&mut inflight, 1_172), [], "each is told once");
    }

    #[test]
    fn the_window_grows_to_half_a_round_trip_when_what_was_called_lost_arrives() {
        let mut inflight = measured();
        let before = inflight.window();
        for round in 0..10 {
            let start = 1_000 + round * 1_000;
            let early = add(&mut inflight, start, 0);
            let late = add(&mut inflight, start + 150, 1);
            inflight.settle_arrived(late, at(start + 310));
            assert_eq!(lost(&mut inflight, start + 310).len(), 1);
            let arrival = inflight.settle_arrived(early, at(start + 311)).unwrap();
            assert!(arrival.was_judged);
        }
        let rtt = inflight.rtt();
        assert!(before < rtt / 8 && inflight.window() == rtt / 16 + rtt / 2, "{}", inflight.window());
    }

    #[test]
    fn patience_ends_after_a_round_trip_and_doubles_until_something_arrives() {
        let mut inflight = measured();
        let mut sent = 1_000;
        let mut waits = Vec::new();
        for number in 0..8 {
            add(&mut inflight, sent, number);
            let due = inflight.next_timeout().unwrap();
            assert_eq!(lost(&mut inflight, due.as_nanos() / 1_000_000 - 1), []);
            assert_eq!(inflight.next_lost(due).map(|(_, _, verdict)| verdict), Some(Verdict::Overdue));
            waits.push(due.since(at(sent)).as_millis());
            sent = due.as_nanos() / 1_000_000 + 1;
        }
        assert!((160..320).contains(&waits[0]), "{waits:?}");
        assert!((1..6).all(|step| waits[step].abs_diff(waits[step - 1] * 2) <= 1), "{waits:?}");
        assert_eq!(waits[7], waits[5], "but not for ever: {waits:?}");
        let silent = inflight.silent_at(Duration::from_millis(160), Duration::from_millis(320)).unwrap();
        assert!(silent <= at(1_480), "repetitions do not begin the silence anew: {silent}");
        let token = add(&mut inflight, sent, 9);
        inflight.settle_arrived(token, at(sent + 160));
        add(&mut inflight, sent + 161, 10);
        let wait = inflight.next_timeout().unwrap().since(at(sent + 161)).as_millis();
        assert!(wait.abs_diff(waits[0]) <= 5, "{wait} after {waits:?}");
        let silent = inflight.silent_at(Duration::from_millis(160), Duration::from_millis(320));
        assert!(silent.is_none_or(|silent| silent > at(sent + 320)), "an answer came");
    }

    #[test]
    fn fates_come_in_the_order_of_sending_whatever_is_told_first() {
        let mut inflight = measured();
        let tokens = [0, 1, 2, 3].map(|number| add(&mut inflight, 1_000 + u64::from(number), number));
        inflight.settle_arrived(tokens[3], at(1_163));
        inflight.settle_lost(tokens[1]);
        assert_eq!(inflight.next_fate(), None, "the first is open");
        inflight.settle_arrived(tokens[0], at(1_164));
        let known: Vec<bool> = core::iter::from_fn(|| inflight.next_fate()).collect();
        assert_eq!(known, [false, true]);
        assert_eq!(inflight.judge_all(), [slice(2)]);
        let known: Vec<bool> = core::iter::from_fn(|| inflight.next_fate()).collect();
        assert_eq!(known, [true, false], "a path given up tells of what was open there");
        assert!(inflight.settle_arrived(tokens[2], at(1_400)).unwrap().was_judged);
        assert_eq!(inflight.len(), 0);
    }

    #[test]
    fn no_more_is_remembered_than_the_bound_and_the_oldest_counts_as_lost() {
        let mut inflight = Inflight::default();
        for number in 0..ENTRIES_MAX as u32 {
            assert_eq!(inflight.add(at(0), slice(number), Some(Sid::from_wire(number))).1, None);
        }
        assert_eq!(inflight.add(at(1), slice(0), None).1, Some(slice(0)));
        assert_eq!((inflight.len(), inflight.sids.len()), (ENTRIES_MAX, ENTRIES_MAX - 1));
        assert!(inflight.settle_recovered(Sid::from_wire(0)).is_none());
        assert_eq!(inflight.next_fate(), Some(true));
    }
}
