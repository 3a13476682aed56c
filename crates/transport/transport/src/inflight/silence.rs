//! When a path counts as silent: it owes answers that do not come.

use super::log::SentLog;
use super::sent::{SentDatagram, Slice};
use crate::path::Token;
use skyhaul_units::{Duration, Instant};

/// The answers that a path owes.
#[derive(Debug, Default)]
pub struct OwedAnswers {
    /// When something was last heard to have arrived.
    last_news: Option<Instant>,
    /// The oldest open transmission after all that arrived: it and those after it owe an answer.
    /// What is sent again meanwhile does not begin a silence anew.
    owed_from: u64,
    /// Tokens below this were given out as unanswered.
    told_below: u64,
    quiet: Quiet,
}

impl OwedAnswers {
    /// When the path counts as silent, should nothing be heard until then. One transmission alone
    /// may have been lost; for several, that is after `patience`. Where `many` owe an answer, so
    /// many that chance has not taken them all, it is soon after their `rtt`.
    pub fn silent_at(
        &self,
        log: &SentLog,
        rtt: Duration,
        patience: Duration,
        many: u64,
    ) -> Option<Instant> {
        let news = |at: Instant| self.last_news.map_or(at, |news| news.max(at));
        let margin = (self.quiet.longest() * 2).max(QUIET_MIN);
        let [first, second] = self.first_two(log)?;
        let patient = (news(first) + patience).max(second + rtt);
        let quick = self.asked(log, many).map(|at| news(at + rtt) + margin);
        Some(quick.map_or(patient, |quick| quick.min(patient)))
    }

    /// When a path that has no other beside it counts as silent, should it not answer until then:
    /// several owe an answer, the path's own signs of life have had none since `answered` either,
    /// and that for as long as `patience`.
    pub fn mute_at(
        &self,
        log: &SentLog,
        answered: Instant,
        rtt: Duration,
        patience: Duration,
    ) -> Option<Instant> {
        let [first, second] = self.first_two(log)?;
        let heard = self.last_news.map_or(answered, |news| news.max(answered));
        Some((first.max(heard) + patience).max(second + rtt))
    }

    /// From when on silence is in doubt: `many` owe an answer, and those which may be held back for
    /// a while are due too.
    pub fn doubted_at(&self, log: &SentLog, rtt: Duration, many: u64) -> Option<Instant> {
        self.asked(log, many).map(|at| at + rtt + QUIET_MIN / 3)
    }

    /// Slices that owe an answer and were not called lost, nor given here before. What is coded is
    /// left to its repair.
    pub fn unanswered(&mut self, log: &SentLog) -> Vec<Slice> {
        let from = self.owed_from.max(self.told_below).max(log.first());
        self.told_below = log.end();
        let open = log.open_from(from).map(|(_, open)| open);
        open.filter(|open| open.judged.is_none() && open.sid.is_none())
            .filter_map(|open| match open.sent {
                SentDatagram::Slice(slice) => Some(slice),
                _ => None,
            })
            .collect()
    }

    /// A transmission's fate is known, and the log has it no longer.
    pub fn resolved(&mut self, token: Token, log: &SentLog) {
        let next = token.0 + 1;
        if token.0 == self.owed_from {
            // Where the log begins behind it already, nothing is owed until something arrives.
            self.owed_from = if next < log.first() { next } else { log.next_open(next) };
        }
    }

    /// Something has arrived: what was sent after it owes an answer.
    pub fn heard(&mut self, now: Instant, token: Token) {
        self.last_news = Some(now);
        self.owe_from(token.0 + 1);
    }

    /// Nothing before this token owes an answer.
    pub fn owe_from(&mut self, token: u64) {
        self.owed_from = self.owed_from.max(token);
    }

    /// News came: remembers how long they were overdue, for a path of this round trip.
    pub fn note_delay(&mut self, now: Instant, log: &SentLog, rtt: Duration) {
        if rtt > Duration::ZERO
            && let Some(expected) = self.expected(log, rtt)
        {
            self.quiet.add(now, now.since(expected));
        }
    }

    /// When the first two were sent that owe an answer; none where only one does.
    fn first_two(&self, log: &SentLog) -> Option<[Instant; 2]> {
        let first = self.asked(log, 0)?;
        if log.end() < self.owed_from + 2 {
            return None;
        }
        Some([first, self.asked(log, 1).unwrap_or(first)])
    }

    /// When the transmission was made that is the `nth` of those which owe an answer, or the next
    /// one that does.
    fn asked(&self, log: &SentLog, nth: u64) -> Option<Instant> {
        let token = self.owed_from + nth;
        token.checked_sub(log.first())?;
        log.open_from(token).next().map(|(_, open)| open.at)
    }

    /// Since when an answer is expected that has not come.
    fn expected(&self, log: &SentLog, rtt: Duration) -> Option<Instant> {
        let answer = self.asked(log, 0)? + rtt;
        Some(self.last_news.map_or(answer, |news| news.max(answer)))
    }
}

/// The longest time without the news that were expected, over the last ten to twenty seconds.
#[derive(Debug, Default)]
struct Quiet {
    since: Instant,
    now: Duration,
    before: Duration,
}

/// So many transmissions in a row are not lost by chance, where losses come in bursts of so many
/// thousandths of a datagram on average: 12 bursts' length, or one burst in 160,000; 16 where each
/// is lost by itself.
pub fn many(mean_burst_milli: u32) -> u64 {
    (u64::from(mean_burst_milli) * 12 / 1_000).max(16)
}

/// Shorter silences than this come from ticks and busy machines: three times what an
/// acknowledgement may wait (RFC 9000 18.2).
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
