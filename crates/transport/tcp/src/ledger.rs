//! Datagrams under way, in order, until the far end's count covers them; and the rate of arrival.
//!
//! The stream keeps order and loses nothing, so one number acknowledges all. The rate of arrival is
//! measured as in draft-cheng-iccrg-delivery-rate-estimation, 2.2: what was delivered between the
//! sending of a datagram and its acknowledgement, over the longer of the time it took to send that
//! and the time it took to be acknowledged. Counts that come late and together, as when TCP has
//! filled a gap, then do not look like a fast line.

use skyhaul_transport::Token;
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::collections::VecDeque;

/// The datagrams on their way.
#[derive(Debug)]
pub(crate) struct Ledger {
    entries: VecDeque<Entry>,
    /// Datagrams that the far end has.
    acked: u64,
    in_flight: ByteCount,
    delivered: ByteCount,
    delivered_at: Instant,
    /// When the datagram was sent whose acknowledgement set `delivered_at` last.
    first_sent: Instant,
    /// Until this many datagrams are acknowledged, the application had nothing to send for part of
    /// the time.
    limited_until: u64,
}

#[derive(Debug)]
struct Entry {
    token: Option<Token>,
    bytes: ByteCount,
    sent: Instant,
    delivered: ByteCount,
    delivered_at: Instant,
    first_sent: Instant,
    limited_by: LimitedBy,
}

/// What one acknowledgement says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Since the newest datagram was sent that it covers.
    pub(crate) elapsed: Duration,
    /// The rate of arrival; `None` where no time passed.
    pub(crate) rate: Option<Rate>,
    /// What held the rate down.
    pub(crate) limited_by: LimitedBy,
}

/// What held a measured rate down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitedBy {
    /// The line carries no more.
    Line,
    /// The application had nothing to send for part of the time, so the line may be faster.
    Application,
}

/// The far end counts what it cannot have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it acknowledges {count} datagrams, {least} to {most} are possible")]
pub(crate) struct WrongCount {
    count: u64,
    least: u64,
    most: u64,
}

impl Ledger {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            entries: VecDeque::new(),
            acked: 0,
            in_flight: ByteCount::ZERO,
            delivered: ByteCount::ZERO,
            delivered_at: now,
            first_sent: now,
            limited_until: 0,
        }
    }

    /// A datagram of `bytes` left.
    pub(crate) fn sent(&mut self, now: Instant, bytes: ByteCount, token: Option<Token>) {
        if self.entries.is_empty() {
            // The time since the last acknowledgement is the application's, not the line's.
            self.delivered_at = now;
            self.first_sent = now;
        }
        self.in_flight += bytes;
        self.entries.push_back(Entry {
            token,
            bytes,
            sent: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            limited_by: if self.acked < self.limited_until {
                LimitedBy::Application
            } else {
                LimitedBy::Line
            },
        });
    }

    /// The application left room unused.
    pub(crate) fn application_limits(&mut self) {
        self.limited_until = self.acked + (self.entries.len() as u64).max(1);
    }

    /// The far end has `count` datagrams; tells whose they are. `None` where that is nothing new.
    pub(crate) fn acknowledged(
        &mut self,
        now: Instant,
        count: u64,
        mut arrived: impl FnMut(Token),
    ) -> Result<Option<Sample>, WrongCount> {
        let most = self.acked + self.entries.len() as u64;
        if !(self.acked..=most).contains(&count) {
            return Err(WrongCount { count, least: self.acked, most });
        }
        let mut newest = None;
        while self.acked < count {
            let Some(entry) = self.entries.pop_front() else { break };
            self.acked += 1;
            self.in_flight = self.in_flight - entry.bytes;
            self.delivered += entry.bytes;
            entry.token.into_iter().for_each(&mut arrived);
            newest = Some(entry);
        }
        let Some(newest) = newest else { return Ok(None) };
        self.delivered_at = now;
        self.first_sent = newest.sent;
        let sending = newest.sent.since(newest.first_sent);
        let interval = sending.max(now.since(newest.delivered_at));
        let rate = (interval > Duration::ZERO)
            .then(|| Rate::over(self.delivered - newest.delivered, interval));
        Ok(Some(Sample { elapsed: now.since(newest.sent), rate, limited_by: newest.limited_by }))
    }

    pub(crate) fn in_flight(&self) -> ByteCount {
        self.in_flight
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The tokens of all that is under way, oldest first.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Token> + '_ {
        self.in_flight = ByteCount::ZERO;
        self.entries.drain(..).filter_map(|entry| entry.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATAGRAM: ByteCount = ByteCount::new(1_000);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_count_tells_the_fate_of_all_before_it_once() {
        let mut ledger = Ledger::new(at(0));
        (0..10).for_each(|n| ledger.sent(at(n), DATAGRAM, (n != 4).then_some(Token(n))));
        let mut arrived = Vec::new();
        let sample =
            ledger.acknowledged(at(100), 6, |token| arrived.push(token.0)).unwrap().unwrap();
        assert_eq!(arrived, [0, 1, 2, 3, 5]);
        assert_eq!(sample.elapsed, Duration::from_millis(95));
        assert_eq!(ledger.in_flight(), ByteCount::new(4_000));
        assert_eq!(ledger.acknowledged(at(101), 6, |_| panic!("twice")), Ok(None));
        assert_eq!(ledger.take_all().map(|token| token.0).collect::<Vec<_>>(), [6, 7, 8, 9]);
    }

    #[test]
    fn counts_that_cannot_be_are_refused() {
        let mut ledger = Ledger::new(at(0));
        (0..3).for_each(|n| ledger.sent(at(n), DATAGRAM, None));
        assert!(ledger.acknowledged(at(9), 4, |_| ()).is_err());
        assert!(ledger.acknowledged(at(9), 2, |_| ()).is_ok());
        assert!(ledger.acknowledged(at(9), 1, |_| ()).is_err());
    }

    #[test]
    fn the_rate_is_that_of_the_line_however_acknowledgements_bunch() {
        // One datagram a millisecond, 100 ms there and back: 8 Mbit/s. Counts come every 20 ms, but
        // for a stop of 200 ms, after which all comes at once.
        let mut ledger = Ledger::new(at(0));
        let mut fastest = Rate::ZERO;
        for millis in 0..1_000 {
            let arrived = millis - millis.min(100);
            if millis % 20 == 0 && !(500..700).contains(&millis) {
                let sample = ledger.acknowledged(at(millis), arrived, |_| ()).unwrap();
                fastest =
                    sample.and_then(|sample| sample.rate).map_or(fastest, |rate| rate.max(fastest));
            }
            ledger.sent(at(millis), DATAGRAM, None);
        }
        let line = Rate::from_mbps(8);
        assert!(fastest >= line.scaled(95, 100) && fastest <= line.scaled(110, 100), "{fastest}");
    }

    #[test]
    fn a_sample_says_when_the_application_was_the_limit() {
        let mut ledger = Ledger::new(at(0));
        ledger.sent(at(0), DATAGRAM, None);
        ledger.application_limits();
        ledger.sent(at(1), DATAGRAM, None);
        let first = ledger.acknowledged(at(100), 1, |_| ()).unwrap().unwrap();
        let second = ledger.acknowledged(at(101), 2, |_| ()).unwrap().unwrap();
        assert_eq!(
            (first.limited_by, second.limited_by),
            (LimitedBy::Line, LimitedBy::Application)
        );
        ledger.sent(at(200), DATAGRAM, None);
        let third = ledger.acknowledged(at(300), 3, |_| ()).unwrap().unwrap();
        assert_eq!(third.limited_by, LimitedBy::Line);
    }
}
