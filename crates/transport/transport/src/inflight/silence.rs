//! When a path counts as silent: it owes answers that do not come.

use super::{Inflight, SentDatagram, Slice};
use skyhaul_units::{Duration, Instant};

impl Inflight {
    /// When the path counts as silent, should nothing be heard until then. One transmission alone
    /// may have been lost; for several, that is after `patience`. Where `many` owe an answer, so
    /// many that chance has not taken them all, it is soon after their `rtt`.
    pub fn silent_at(&self, rtt: Duration, patience: Duration, many: u64) -> Option<Instant> {
        let news = |at: Instant| self.last_news.map_or(at, |news| news.max(at));
        let margin = (self.quiet.longest() * 2).max(QUIET_MIN);
        let first = self.asked(0)?;
        if self.end() < self.owed_from + 2 {
            return None;
        }
        let second = self.asked(1).unwrap_or(first);
        let patient = (news(first) + patience).max(second + rtt);
        let quick = self.asked(many).map(|at| news(at + rtt) + margin);
        Some(quick.map_or(patient, |quick| quick.min(patient)))
    }

    /// When a path that has no other beside it counts as silent, should it not answer until then:
    /// several owe an answer, the path's own signs of life have had none since `answered` either,
    /// and that for as long as `patience`.
    pub fn mute_at(&self, answered: Instant, rtt: Duration, patience: Duration) -> Option<Instant> {
        let first = self.asked(0)?;
        if self.end() < self.owed_from + 2 {
            return None;
        }
        let second = self.asked(1).unwrap_or(first);
        let heard = self.last_news.map_or(answered, |news| news.max(answered));
        Some((first.max(heard) + patience).max(second + rtt))
    }

    /// From when on silence is in doubt: `many` owe an answer, and those which may be held back for
    /// a while are due too.
    pub fn doubted_at(&self, rtt: Duration, many: u64) -> Option<Instant> {
        self.asked(many).map(|at| at + rtt + QUIET_MIN / 3)
    }

    /// Slices that owe an answer and were not called lost, nor given here before. What is coded is
    /// left to its repair.
    pub fn unanswered(&mut self) -> Vec<Slice> {
        let from = self.owed_from.max(self.told_below).max(self.first);
        self.told_below = self.end();
        let place =
            usize::try_from(from - self.first).unwrap_or(usize::MAX).min(self.entries.len());
        let open = self.entries.range(place..).flatten().filter(|entry| entry.judged.is_none());
        open.filter(|entry| entry.sid.is_none())
            .filter_map(|entry| match entry.sent {
                SentDatagram::Slice(slice) => Some(slice),
                _ => None,
            })
            .collect()
    }

    /// When the transmission was made that is the `nth` of those which owe an answer, or the next
    /// one that does.
    fn asked(&self, nth: u64) -> Option<Instant> {
        let place = usize::try_from((self.owed_from + nth).checked_sub(self.first)?).ok()?;
        let mut later = self.entries.range(place.min(self.entries.len())..).flatten();
        later.next().map(|entry| entry.at)
    }

    /// Since when an answer is expected that has not come.
    pub(super) fn expected(&self, rtt: Duration) -> Option<Instant> {
        let answer = self.asked(0)? + rtt;
        Some(self.last_news.map_or(answer, |news| news.max(answer)))
    }
}

/// The longest time without the news that were expected, over the last ten to twenty seconds.
#[derive(Debug, Default)]
pub(super) struct Quiet {
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
    pub(super) fn add(&mut self, now: Instant, span: Duration) {
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
