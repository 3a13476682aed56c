//! Round trips, and what they say of the difference of the two ends' clocks.
//!
//! As in RFC 5905 8: the far end's clock is read in the middle of a question's round trip, and the
//! shortest round trip is believed. The error is at most half of that round trip, whatever the two
//! ways are like: no ping can tell how it divides.

use skyhaul_units::{Duration, Utc};

/// A question after the far end's time, and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ping {
    /// The question left, by our clock.
    pub sent: Utc,
    /// It came, by theirs.
    pub reached: Utc,
    /// The answer left, by theirs.
    pub answered: Utc,
    /// It came, by ours.
    pub back: Utc,
}

impl Ping {
    /// Time under way, without that at the far end.
    pub const fn round_trip(&self) -> Duration {
        self.back.since(self.sent).saturating_sub(self.answered.since(self.reached))
    }

    /// Nanoseconds by which their clock is ahead of ours, where both ways take as long.
    pub const fn ahead(&self) -> i64 {
        let up = self.reached.as_nanos().saturating_sub(self.sent.as_nanos());
        let down = self.answered.as_nanos().saturating_sub(self.back.as_nanos());
        up / 2 + down / 2 + (up % 2 + down % 2) / 2
    }
}

/// Pings so far.
#[derive(Debug, Clone, Default)]
pub struct PingComparison {
    asked: u64,
    /// At most [`PINGS_MAX`], the latest.
    pings: std::collections::VecDeque<Ping>,
    answered: u64,
    best: Option<Ping>,
    longest: Duration,
}

impl PingComparison {
    /// A question left.
    pub fn asked(&mut self) {
        self.asked += 1;
    }

    /// An answer came.
    pub fn answered(&mut self, ping: Ping) {
        self.answered += 1;
        if self.pings.len() == PINGS_MAX {
            self.pings.pop_front();
        }
        self.pings.push_back(ping);
        self.longest = self.longest.max(ping.round_trip()).min(LONGEST);
        if self.best.is_none_or(|best| ping.round_trip() < best.round_trip()) {
            self.best = Some(ping);
        }
    }

    /// Questions, and answers to them.
    pub const fn counts(&self) -> (u64, u64) {
        (self.asked, self.answered)
    }

    /// Questions that have no answer yet.
    pub const fn outstanding(&self) -> u64 {
        self.asked.saturating_sub(self.answered)
    }

    /// The answers, the earliest first.
    pub fn pings(&self) -> impl Iterator<Item = &Ping> {
        self.pings.iter()
    }

    /// The ping with the shortest round trip.
    pub const fn best(&self) -> Option<Ping> {
        self.best
    }

    /// The longest round trip; `None` before the first answer.
    pub fn longest(&self) -> Option<Duration> {
        self.best.map(|_| self.longest)
    }

    /// The longest round trip of the latest answers, some two seconds of them beside a stream;
    /// `None` before the first.
    pub fn lately(&self) -> Option<Duration> {
        self.pings.iter().rev().take(LATELY).map(|ping| ping.round_trip().min(LONGEST)).max()
    }

    /// One-way delay of each answered ping in nanoseconds, there and back, with the difference of
    /// the clocks taken out.
    pub fn delays(&self) -> Vec<[i64; 2]> {
        let between = |late: Utc, early: Utc| late.as_nanos().saturating_sub(early.as_nanos());
        let (best, skew) = (self.best(), self.skew_ppm());
        let of = |ping: &Ping| {
            [
                between(ping.reached, ping.sent).saturating_sub(ahead_at(best, skew, ping.sent)),
                between(ping.back, ping.answered).saturating_add(ahead_at(best, skew, ping.back)),
            ]
        };
        self.pings.iter().map(of).collect()
    }

    /// Nanoseconds by which their clock is ahead of ours, and how far that may be wrong either way.
    pub fn ahead(&self) -> Option<(i64, Duration)> {
        self.best.map(|best| (best.ahead(), best.round_trip() / 2))
    }

    /// By how many parts in a million their clock runs faster than ours, from the shortest round
    /// trips of the first and the last third; `None` where these are less than ten seconds apart,
    /// or differ so much in round trip that a thousand parts in a million would not show.
    pub fn skew_ppm(&self) -> Option<f64> {
        let third = self.pings.len() / 3;
        let shortest = |pings: &mut dyn Iterator<Item = &Ping>| {
            pings.min_by_key(|ping| ping.round_trip()).copied()
        };
        let first = shortest(&mut self.pings.iter().take(third))?;
        let last = shortest(&mut self.pings.iter().skip(self.pings.len() - third))?;
        let between = last.sent.since(first.sent);
        let noise =
            first.round_trip().max(last.round_trip()) - first.round_trip().min(last.round_trip());
        if between < Duration::from_secs(10) || noise * 1_000 > between {
            return None;
        }
        let drift = last.ahead().saturating_sub(first.ahead());
        Some(drift as f64 / between.as_nanos() as f64 * 1e6)
    }
}

/// By how much the far end's clock is ahead at `at`, in nanoseconds: as the best ping says, and
/// with the skew since.
pub(crate) fn ahead_at(best: Option<Ping>, skew_ppm: Option<f64>, at: Utc) -> i64 {
    let Some(best) = best else { return 0 };
    let since = at.as_nanos().saturating_sub(best.sent.as_nanos());
    let drift = skew_ppm.unwrap_or(0.0) * since as f64 / 1e6;
    best.ahead().saturating_add(drift as i64)
}

/// At ten a second, an hour and three quarters.
const PINGS_MAX: usize = 1 << 16;

/// Answers that say how long the next one takes: one that is late, of so many, is not forgotten by
/// chance.
const LATELY: usize = 20;

/// A round trip that took longer says nothing of how long to wait.
const LONGEST: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests {
    use super::*;

    fn ping(sent: i64, up: i64, down: i64, ahead: i64) -> Ping {
        let at = Utc::from_micros;
        Ping {
            sent: at(sent),
            reached: at(sent + up + ahead),
            answered: at(sent + up + ahead + 7),
            back: at(sent + up + 7 + down),
        }
    }

    #[test]
    fn the_shortest_round_trip_is_believed_to_half_of_it() {
        let mut comparison = PingComparison::default();
        for (up, down) in [(50_000, 20_000), (10_000, 12_000), (10_000, 90_000)] {
            comparison.asked();
            comparison.answered(ping(0, up, down, 3_600_000_000));
        }
        let (ahead, error) = comparison.ahead().unwrap();
        assert_eq!((ahead, error), (3_600_000_000_000 - 1_000_000, Duration::from_millis(11)));
        assert_eq!(comparison.longest(), Some(Duration::from_millis(100)));
        assert_eq!(comparison.outstanding(), 0);
    }

    #[test]
    fn clocks_that_run_apart_are_found_out_over_a_minute() {
        let mut comparison = PingComparison::default();
        for second in 0..60 {
            comparison.answered(ping(second * 1_000_000, 10_000, 10_000, second * 20));
        }
        assert!((comparison.skew_ppm().unwrap() - 20.0).abs() < 0.1);
        assert_eq!(PingComparison::default().skew_ppm(), None);
    }

    #[test]
    fn any_times_are_taken() {
        let far = Ping {
            sent: Utc::from_nanos(i64::MIN),
            reached: Utc::from_nanos(i64::MAX),
            answered: Utc::from_nanos(i64::MIN),
            back: Utc::from_nanos(i64::MAX),
        };
        let _ = (far.round_trip(), far.ahead());
    }
}
