//! Transmissions whose fate is open, in the order they were sent, and the round-trip time they measure.

use crate::path::Token;
use skyhaul_units::{Duration, FlowId, Instant, Seq};
use std::collections::VecDeque;

/// What was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    Slice(Slice),
    Report { flows: Vec<FlowId> },
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
    at: Instant,
    overdue: bool,
}

/// Open transmissions. Tokens count up, so a token finds its entry by subtraction.
#[derive(Debug, Default)]
pub struct Inflight {
    first: u64,
    entries: VecDeque<Option<Entry>>,
    /// Tokens below this have been looked at by [`Self::next_overdue`].
    overdue_below: u64,
    rtt: RoundTrip,
}

/// Transmissions remembered at most: 375 MB of full-size symbols. Beyond, the oldest counts as lost.
const ENTRIES_MAX: usize = 1 << 18;

impl Inflight {
    pub fn add(&mut self, now: Instant, sent: Sent) -> (Token, Option<Sent>) {
        let token = Token(self.first + self.entries.len() as u64);
        self.entries.push_back(Some(Entry { sent, at: now, overdue: false }));
        let forgotten = if self.entries.len() > ENTRIES_MAX {
            self.first += 1;
            self.entries.pop_front().flatten().map(|entry| entry.sent)
        } else {
            None
        };
        (token, forgotten)
    }

    /// Takes out what was lost under `token`, unless it was overdue and so has been acted on.
    pub fn settle_lost(&mut self, token: Token) -> Option<Sent> {
        self.take(token).filter(|entry| !entry.overdue).map(|entry| entry.sent)
    }

    /// Takes out what arrived under `token`, and measures the round trip.
    pub fn settle_arrived(&mut self, token: Token, now: Instant) -> Option<Sent> {
        let entry = self.take(token)?;
        self.rtt.sample(now.since(entry.at));
        Some(entry.sent)
    }

    /// The next transmission without news for longer than a round trip allows. It stays open: news may yet come.
    pub fn next_overdue(&mut self, now: Instant) -> Option<Sent> {
        let patience = self.rtt.patience();
        loop {
            let at = self.overdue_index();
            let entry = self.entries.get_mut(at)?;
            if entry.as_ref().is_some_and(|entry| entry.at + patience > now) {
                return None;
            }
            self.overdue_below = self.first + at as u64 + 1;
            if let Some(entry) = entry {
                entry.overdue = true;
                return Some(entry.sent.clone());
            }
        }
    }

    /// When [`Self::next_overdue`] may next have something.
    pub fn next_timeout(&self) -> Option<Instant> {
        let open = self.entries.range(self.overdue_index().min(self.entries.len())..);
        open.flatten().next().map(|entry| entry.at + self.rtt.patience())
    }

    /// The smoothed round-trip time; zero before the first measurement.
    pub fn rtt(&self) -> Duration {
        self.rtt.smoothed
    }

    fn overdue_index(&self) -> usize {
        self.overdue_below.saturating_sub(self.first) as usize
    }

    fn take(&mut self, token: Token) -> Option<Entry> {
        let at = usize::try_from(token.0.checked_sub(self.first)?).ok()?;
        let entry = self.entries.get_mut(at)?.take();
        while let Some(None) = self.entries.front() {
            self.entries.pop_front();
            self.first += 1;
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

    /// How long no news is normal. The path itself finds losses after 1.25 round trips; this comes after it, for what
    /// the path cannot see: the last symbols before a pause.
    fn patience(&self) -> Duration {
        if self.smoothed == Duration::ZERO {
            return PATIENCE_FIRST;
        }
        self.smoothed + (self.deviation * 4).max(self.smoothed / 4) + ACK_DELAY
    }
}
